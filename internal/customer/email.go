// Package customer is what is known of a buyer. All of it is personal data.
package customer

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/mail"
)

// maxEmailBytes is the longest address that mail can be sent to (RFC 5321
// section 4.5.3.1.3, a path of 256 without its angle brackets).
const maxEmailBytes = 254

// ErrEmail says that a string is no e-mail address. Its text never quotes it.
var ErrEmail = errors.New("customer: not an e-mail address")

// Email is a buyer's e-mail address, "" when unknown. Every way of printing it
// gives a placeholder; Reveal is the one way out, for the store, for the mail and
// for the merchant it was given to.
type Email string

const redacted = "[redacted]"

// ParseEmail returns s as an Email, or ErrEmail when it is not one bare address
// of at most 254 bytes: no display name, no comment, no line break.
func ParseEmail(s string) (Email, error) {
	if len(s) > maxEmailBytes {
		return "", ErrEmail
	}
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Address != s {
		return "", ErrEmail
	}
	return Email(s), nil
}

// Reveal is the address itself.
func (e Email) Reveal() string { return string(e) }

// String hides the address from fmt.
func (e Email) String() string { return e.placeholder() }

// Format hides the address from every verb of fmt, also from those that make no
// sense for it: fmt would print the operand of a wrong verb.
func (e Email) Format(f fmt.State, _ rune) {
	// The state belongs to fmt, which keeps no error of writing to it.
	_, _ = io.WriteString(f, e.placeholder())
}

// LogValue hides the address from slog.
func (e Email) LogValue() slog.Value { return slog.StringValue(e.placeholder()) }

// MarshalText hides the address from every encoder.
func (e Email) MarshalText() ([]byte, error) { return []byte(e.placeholder()), nil }

func (e Email) placeholder() string {
	if e == "" {
		return ""
	}
	return redacted
}
