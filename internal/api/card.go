package api

import (
	"regexp"
	"slices"
	"time"
	"unicode"
)

// Lengths of a primary account number (ISO/IEC 7812-1).
const (
	minCardDigits = 13
	maxCardDigits = 19
)

// cardLike reports whether a text holds what looks like a card number: 13 to 19
// digits of any script whose last one checks the others (Luhn), also with spaces,
// dashes or invisible characters in between. Between groups of digits any
// beginning and any end counts, so that a number is found after a house number.
//
// Two things that look so by chance are let pass, since merchants use them as
// references: a UUID, and a point in time; and what begins with a zero, which is no
// card's. Digits that stand right beside a letter, or with dots or underscores in
// between, are something else nine times in ten; they count only with the beginning
// and length that an issuer gives out.
func cardLike(text string) bool {
	if len(text) < minCardDigits {
		return false
	}
	text = uuid.ReplaceAllStringFunc(text, func(s string) string {
		if !hexLetter.MatchString(s) {
			return s
		}
		return "x"
	})
	for _, run := range digitRuns([]rune(text)) {
		if run.holdsCard() {
			return true
		}
	}
	return false
}

var (
	uuid      = regexp.MustCompile(`\b[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b`)
	hexLetter = regexp.MustCompile(`[A-Fa-f]`)
)

// run is digits with only separators between them.
type run struct {
	digits       []byte // 0 to 9
	starts, ends []int  // indexes into digits where a group starts, and after its end
	odd          []int  // of those starts, the ones behind a separator that numbers rarely have
	before       bool   // a letter stands right before
	after        bool   // a letter stands right after
}

// digitRuns takes a text apart.
func digitRuns(text []rune) []run {
	var all []run
	var current run
	separated, odd := false, false
	finish := func(next rune) {
		if n := len(current.digits); n > 0 {
			current.ends = append(current.ends, n)
			current.after = !separated && unicode.IsLetter(next)
			all = append(all, current)
		}
		current, separated, odd = run{}, false, false
	}
	previous := ' '
	for _, r := range text {
		digit, ok := digitOf(r)
		switch {
		case ok && len(current.digits) == 0:
			current.before = unicode.IsLetter(previous)
			current.starts = append(current.starts, 0)
			current.digits = append(current.digits, digit)
		case ok:
			if n := len(current.digits); separated {
				current.ends, current.starts = append(current.ends, n), append(current.starts, n)
				if odd {
					current.odd = append(current.odd, n)
				}
			}
			current.digits, separated, odd = append(current.digits, digit), false, false
		case separates(r):
			separated = true
		case r == '.' || r == '_':
			separated, odd = true, true
		default:
			finish(r)
		}
		previous = r
	}
	finish(' ')
	return all
}

// separates reports whether people or programs put r between the groups of a number.
func separates(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || unicode.In(r, unicode.Zs, unicode.Pd, unicode.Cf)
}

// digitOf is the value of a decimal digit of any script. Each script has its ten
// digits in a row, and each range of the table begins with a zero.
func digitOf(r rune) (byte, bool) {
	if '0' <= r && r <= '9' {
		return byte(r - '0'), true
	}
	if r < unicode.MaxLatin1 || !unicode.IsDigit(r) {
		return 0, false
	}
	for _, block := range unicode.Nd.R16 {
		if rune(block.Lo) <= r && r <= rune(block.Hi) {
			return byte((r - rune(block.Lo)) % 10), true
		}
	}
	for _, block := range unicode.Nd.R32 {
		if rune(block.Lo) <= r && r <= rune(block.Hi) {
			return byte((r - rune(block.Lo)) % 10), true
		}
	}
	return 0, false
}

// holdsCard tries every sequence of whole groups.
func (r run) holdsCard() bool {
	for i, start := range r.starts {
		for j := i; j < len(r.ends); j++ {
			number := r.digits[start:r.ends[j]]
			if len(number) > maxCardDigits {
				break
			}
			if len(number) < minCardDigits || number[0] == 0 || !luhn(number) || pointInTime(number) {
				continue
			}
			rare := i == 0 && r.before || j == len(r.ends)-1 && r.after ||
				slices.ContainsFunc(r.odd, func(at int) bool { return start < at && at < r.ends[j] })
			if !rare || issued(number) {
				return true
			}
		}
	}
	return false
}

// luhn checks the last digit of a number (ISO/IEC 7812-1 annex B).
func luhn(number []byte) bool {
	sum := 0
	for i := range number {
		d := int(number[len(number)-1-i])
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// pointInTime reports whether a number is a time as programs write it: since 1970
// in milli-, micro- or nanoseconds from 2001 to 2033, or date and time of day. No
// issuer has numbers of these lengths that begin so.
func pointInTime(number []byte) bool {
	switch len(number) {
	case 13, 16, 19:
		return number[0] == 1
	case 14, 17:
		text := make([]byte, 14)
		for i := range text {
			text[i] = '0' + number[i]
		}
		at, err := time.Parse("20060102150405", string(text))
		return err == nil && at.Year() >= 1900 && at.Year() < 2100
	}
	return false
}

// issuer is a scheme's first two digits and lengths of numbers, each from and to.
type issuer struct{ from, to, least, most int }

var issuers = []issuer{
	{40, 49, 13, 13}, {40, 49, 16, 16}, {40, 49, 19, 19}, // Visa
	{22, 27, 16, 16}, {51, 55, 16, 16}, // Mastercard, Mir
	{34, 34, 15, 15}, {37, 37, 15, 15}, // American Express
	{30, 30, 14, 14}, {36, 36, 14, 14}, {38, 39, 14, 14}, // Diners Club
	{35, 35, 16, 16}, {60, 60, 16, 16}, {64, 65, 16, 16}, // JCB, Discover
	{62, 62, 16, 19}, {81, 82, 16, 19}, // UnionPay, RuPay
	{50, 50, 13, 19}, {56, 58, 13, 19}, {61, 61, 13, 19}, {63, 63, 13, 19}, {67, 67, 13, 19}, // Maestro
}

// issued reports whether an issuer gives out numbers with this beginning and length.
func issued(number []byte) bool {
	first := int(number[0])*10 + int(number[1])
	return slices.ContainsFunc(issuers, func(i issuer) bool {
		return i.from <= first && first <= i.to && i.least <= len(number) && len(number) <= i.most
	})
}
