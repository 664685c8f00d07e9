package api

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/problem"
)

// Limits of what merchants write. Metadata is sized like other payment APIs'.
const (
	maxPaymentMethod  = 255
	maxReference      = 64
	maxReturnURL      = 2048
	maxReason         = 255
	maxMetadata       = 20
	maxMetadataName   = 40
	maxMetadataValue  = 500
	maxMerchantName   = 100
	maxPSP            = 32
	messageUnknownPSP = "is no payment service provider that is configured here"
)

var (
	ruleCurrency = textRule{
		3, func(s string) bool { return money.Currency(s).Known() },
		"must be an active ISO 4217 code: three upper-case letters",
	}
	rulePaymentMethod = textRule{maxPaymentMethod, visibleASCII, "must be a token: 1 to 255 visible ASCII characters"}
	ruleReference     = textRule{maxReference, validReference, "must be 1 to 64 characters without a colon"}
	ruleReturnURL     = textRule{maxReturnURL, validReturnURL, "must be an https address, or http on localhost"}
	ruleReason        = textRule{maxReason, nil, "must be 1 to 255 characters"}
	ruleMerchantName  = textRule{maxMerchantName, nil, "must be 1 to 100 characters"}
	rulePSP           = textRule{maxPSP, visibleASCII, messageUnknownPSP}
)

func visibleASCII(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func validReference(s string) bool { return !strings.Contains(s, ":") }

// validReturnURL allows what a customer may be sent back to: https, or http on
// this machine. No user information, which disguises a host, and ASCII only, so
// that a host is what it looks like.
func validReturnURL(s string) bool {
	if !visibleASCII(s) || strings.ContainsAny(s, `\<>"{}|^`+"`") {
		return false
	}
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.Hostname() == "" || !validPort(u) {
		return false
	}
	if strings.HasPrefix(s, "https://") {
		return true
	}
	if !strings.HasPrefix(s, "http://") {
		return false
	}
	switch u.Hostname() {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	return false
}

// validPort reports whether an address names no port, or one that there is.
func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	_, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil
}

// metadata is the field of a merchant's own notes, nil when there are none.
func (f *form) metadata(name string) map[string]string {
	v := f.take(name, optional)
	if v == nil {
		return nil
	}
	if v.kind != jsontext.KindBeginObject || len(v.members) > maxMetadata {
		f.fault(name, "must be an object of up to 20 strings")
		return nil
	}
	notes := make(map[string]string, len(v.members))
	for _, m := range v.members {
		at := name + "." + m.name
		if n := utf8.RuneCountInString(m.name); n < 1 || n > maxMetadataName {
			f.fault(at, "must have a name of 1 to 40 characters")
		}
		if m.value.kind != jsontext.KindString || utf8.RuneCountInString(m.value.text) > maxMetadataValue {
			f.fault(at, "must be a string of up to 500 characters")
		}
		notes[m.name] = m.value.text
	}
	if len(notes) == 0 {
		return nil
	}
	return notes
}

// queryInteger reads an integer of a query, or returns fallback when it is not there.
func queryInteger(q url.Values, name string, least, most, fallback int) (int, error) {
	values, there := q[name]
	if !there {
		return fallback, nil
	}
	n, ok := 0, len(values) == 1 && len(values[0]) >= 1 && len(values[0]) <= maxQueryDigits
	if ok {
		for _, c := range []byte(values[0]) {
			ok = ok && '0' <= c && c <= '9'
			n = n*10 + int(c-'0')
		}
	}
	if !ok || n < least || n > most {
		return 0, problem.Invalid(name, queryMessage(least, most))
	}
	return n, nil
}

// queryText reads a text of a query that must be there once.
func queryText(q url.Values, name string, rule textRule) (string, error) {
	if values := q[name]; len(values) == 1 && utf8.ValidString(values[0]) && rule.allows(values[0]) {
		return values[0], nil
	}
	return "", problem.Invalid(name, rule.message)
}
