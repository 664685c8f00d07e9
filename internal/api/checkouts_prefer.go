package api

import (
	"strconv"
	"strings"
)

// preferredWait is how many seconds the client prefers to wait for an answer (RFC
// 7240 section 4.3), at most maxWaitSeconds; ok is false when it names no time, or
// none that can be read: a preference is never an error. Of several the first counts.
func (c *call) preferredWait() (seconds int, ok bool) {
	header := c.header("Prefer")
	for _, preference := range splitUnquoted(header, ',') {
		preference = splitUnquoted(preference, ';')[0] // wait has no parameters
		name, text, valued := strings.Cut(preference, "=")
		if !strings.EqualFold(strings.Trim(name, " \t"), "wait") {
			continue
		}
		text = strings.Trim(text, " \t")
		if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
			text = text[1 : n-1]
		}
		return parseWait(text, valued)
	}
	return 0, false
}

func parseWait(text string, valued bool) (seconds int, ok bool) {
	if !valued || text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil { // only digits, and more than an int holds
		return maxWaitSeconds, true
	}
	return min(n, maxWaitSeconds), true
}

// splitUnquoted splits at a separator that is not within a quoted string.
func splitUnquoted(s string, separator byte) []string {
	var parts []string
	quoted, start := false, 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quoted:
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == separator && !quoted:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}
