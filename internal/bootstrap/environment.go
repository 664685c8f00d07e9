package bootstrap

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Durations are every length of time that may be configured. All are required:
// what decides about money has no default here.
type Durations struct {
	IdempotencyTTL   time.Duration // IDEMPOTENCY_TTL: a key is remembered at least this long
	InProgressTTL    time.Duration // IN_PROGRESS_TTL: a first request may be in flight this long
	LeaseTTL         time.Duration // LEASE_TTL: lease on one payment
	PSPTimeout       time.Duration // PSP_TIMEOUT: one call to a PSP
	PaymentExpiry    time.Duration // PAYMENT_EXPIRY: an open payment is given up after this
	ReconcileAfter   time.Duration // RECONCILE_AFTER: what is in doubt longer than this is swept
	ReconcileEvery   time.Duration // RECONCILE_EVERY: the sweep's schedule
	WebhookTolerance time.Duration // WEBHOOK_TOLERANCE: how far a signature's time may be off
}

// Variable is an environment variable and what it is without one in a local run.
type Variable struct{ Name, Local string }

// DurationVariables are the names of all durations, with the documented defaults
// that a local run and the template use.
func DurationVariables() []Variable {
	return []Variable{
		{"IDEMPOTENCY_TTL", "24h"},
		{"IN_PROGRESS_TTL", "30s"},
		{"LEASE_TTL", "30s"},
		{"PSP_TIMEOUT", "10s"},
		{"PAYMENT_EXPIRY", "30m"},
		{"RECONCILE_AFTER", "1m"},
		{"RECONCILE_EVERY", "1m"},
		{"WEBHOOK_TOLERANCE", "5m"},
	}
}

// Environment reads variables and collects everything wrong with them, so that
// one message names all.
type Environment struct {
	lookup func(string) (string, bool)
	faults []error
}

// ProcessEnvironment is the environment of this process. With defaults, a
// variable that is not set takes its local default; without, it is a fault.
func ProcessEnvironment(defaults ...Variable) *Environment {
	return NewEnvironment(os.LookupEnv, defaults...)
}

// NewEnvironment reads through lookup.
func NewEnvironment(lookup func(string) (string, bool), defaults ...Variable) *Environment {
	fallback := map[string]string{}
	for _, v := range defaults {
		fallback[v.Name] = v.Local
	}
	return &Environment{lookup: func(name string) (string, bool) {
		if text, set := lookup(name); set {
			return text, true
		}
		text, has := fallback[name]
		return text, has
	}}
}

// Err names every variable that was missing or malformed, nil when none was.
func (e *Environment) Err() error {
	if len(e.faults) == 0 {
		return nil
	}
	return fmt.Errorf("environment: %w", errors.Join(e.faults...))
}

// Required reads a variable that must not be empty.
func (e *Environment) Required(name string) string {
	text, set := e.lookup(name)
	if !set || strings.TrimSpace(text) == "" {
		e.fault(name, "is missing")
	}
	return text
}

// Optional reads a variable that may be missing or empty.
func (e *Environment) Optional(name string) string {
	text, _ := e.lookup(name)
	return text
}

// Duration reads a length of time above zero, in Go's notation such as 30s.
func (e *Environment) Duration(name string) time.Duration {
	text, set := e.lookup(name)
	if !set || text == "" {
		e.fault(name, "is missing")
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		e.fault(name, "is no length of time above zero, such as 30s")
	}
	return d
}

// Address reads the base address of a service, "" when it is not set.
func (e *Environment) Address(name string) string {
	text := e.Optional(name)
	if text == "" {
		return ""
	}
	if u, err := url.Parse(text); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		e.fault(name, "is no http address")
	}
	return text
}

// LogLevel reads LOG_LEVEL: DEBUG, INFO, WARN or ERROR.
func (e *Environment) LogLevel() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(e.Required("LOG_LEVEL"))); err != nil {
		e.fault("LOG_LEVEL", "is no level")
	}
	return level
}

// Durations reads all lengths of time.
func (e *Environment) Durations() Durations {
	d := Durations{
		IdempotencyTTL: e.Duration("IDEMPOTENCY_TTL"), InProgressTTL: e.Duration("IN_PROGRESS_TTL"), LeaseTTL: e.Duration("LEASE_TTL"),
		PSPTimeout: e.Duration("PSP_TIMEOUT"), PaymentExpiry: e.Duration("PAYMENT_EXPIRY"), ReconcileAfter: e.Duration("RECONCILE_AFTER"),
		ReconcileEvery: e.Duration("RECONCILE_EVERY"), WebhookTolerance: e.Duration("WEBHOOK_TOLERANCE"),
	}
	return d
}

func (e *Environment) fault(name, what string) {
	e.faults = append(e.faults, fmt.Errorf("%s %s", name, what))
}

// Port reads a TCP port.
func (e *Environment) Port(name string) int {
	port, err := strconv.Atoi(e.Required(name))
	if err != nil || port < 1 || port > 65535 {
		e.fault(name, "is no port")
	}
	return port
}
