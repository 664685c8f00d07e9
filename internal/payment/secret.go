package payment

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a value that must not be seen: a client secret, a redirect address,
// a payment token. Every way of printing it gives a placeholder; Reveal is the
// one way out, for the store and for the provider.
type Secret string

const redacted = "[redacted]"

// Reveal is the value itself.
func (s Secret) Reveal() string { return string(s) }

// String is a placeholder.
func (s Secret) String() string { return s.placeholder() }

// Format hides the value from every verb of fmt, also from those that make no
// sense for it: fmt would print the operand of a wrong verb. Only %p and %w do so
// without asking; go vet refuses both.
func (s Secret) Format(f fmt.State, _ rune) {
	// The state belongs to fmt, which keeps no error of writing to it.
	_, _ = io.WriteString(f, s.placeholder())
}

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.placeholder()) }

// MarshalText hides the value from every encoder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.placeholder()), nil }

func (s Secret) placeholder() string {
	if s == "" {
		return ""
	}
	return redacted
}
