package bootstrap

import (
	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/outbox"
)

// Watch notes what the table's stream brings and what it does not.
func (c Core) Watch() *outbox.Watch {
	return &outbox.Watch{Marks: c.Payments, Gaps: c.Payments, Now: c.Now, Meter: c.Meter, Log: c.Log}
}

// Pulse makes the beats by which the relay notices what is missing.
func (c Core) Pulse() *outbox.Pulse {
	return &outbox.Pulse{Hearts: c.Payments, Now: c.Now, Meter: c.Meter, Log: c.Log}
}

// Recoverer sends again what got lost.
func (c Core) Recoverer() *outbox.Recoverer {
	return &outbox.Recoverer{
		Gaps: c.Payments, Rows: c.Payments, Records: c.Payments, IdempotencyTTL: c.Durations.IdempotencyTTL,
		Now: c.Now, Meter: c.Meter, Log: c.Log,
	}
}

// Sweep is the schedule's handler.
func (c Core) Sweep(charges *charge.Service, checkouts *checkout.Service) *Sweep {
	return &Sweep{Sweeper: c.Sweeper(charges, checkouts), Pulse: c.Pulse(), Log: c.Log}
}
