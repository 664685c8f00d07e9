package payment

import "log/slog"

// Secret is a value that must not be seen: a client secret, a redirect address,
// a payment token. Every way of printing it gives a placeholder; Reveal is the
// one way out, for the store and for the provider.
type Secret string

const redacted = "[redacted]"

// Reveal is the value itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the value from fmt.
func (s Secret) String() string { return s.placeholder() }

// GoString hides the value from %#v.
func (s Secret) GoString() string { return s.placeholder() }

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
