// Package lease keeps two workers off one payment around calls to a PSP.
//
// A lease is two attributes of the payment itself: lease_until and lease_fence.
// It is taken by one conditional write (lease_until has passed), which adds one
// to the fence. Intents under a lease are conditioned on version and fence;
// facts on the version alone, so that a lost lease never loses an answer. Safety
// never rests on leases: they save calls.
//
// A holder that dies lets go when lease_until passes. Release is best effort.
package lease

import (
	"context"
	"errors"
	"time"

	"github.com/kessai/kessai/internal/payment"
)

// ErrHeld says that another worker has the lease.
var ErrHeld = errors.New("lease: held by another worker")

// Store keeps leases on payments.
type Store interface {
	// AcquireLease returns ErrHeld while lease_until is after now.
	AcquireLease(ctx context.Context, id payment.ID, now, until time.Time) (fence int64, err error)
	// ReleaseLease lets go if the fence is still the holder's.
	ReleaseLease(ctx context.Context, id payment.ID, fence int64) error
}

// Meter counts what an operator wants to see.
type Meter interface {
	Count(name string, n int64)
}

// Metrics of leases.
const (
	MetricHeld       = "LeaseHeld"       // a worker found the lease taken
	MetricNearExpiry = "LeaseNearExpiry" // the work took more than four fifths of the lease
)

// Leases hands out leases.
type Leases struct {
	Store Store
	TTL   time.Duration // longer than p99 of the work under a lease
	Now   func() time.Time
	Meter Meter
}

// Lease is one lease that is held.
type Lease struct {
	Fence   int64
	id      payment.ID
	taken   time.Time
	release *Leases
}

// Acquire takes the lease on a payment, or returns ErrHeld, or the store's error:
// then nobody may be holding it until it runs out.
func (l *Leases) Acquire(ctx context.Context, id payment.ID) (*Lease, error) {
	now := l.Now()
	fence, err := l.Store.AcquireLease(ctx, id, now, now.Add(l.TTL))
	if errors.Is(err, ErrHeld) {
		l.Meter.Count(MetricHeld, 1)
	}
	if err != nil {
		return nil, err
	}
	return &Lease{Fence: fence, id: id, taken: now, release: l}, nil
}

// Over reports whether the lease has run out, so that another worker may have it.
func (x *Lease) Over() bool { return !x.release.Now().Before(x.taken.Add(x.release.TTL)) }

// Release lets go. An error means that the lease runs out by itself.
func (x *Lease) Release(ctx context.Context) error {
	if held := x.release.Now().Sub(x.taken); held > x.release.TTL*4/5 {
		x.release.Meter.Count(MetricNearExpiry, 1)
	}
	return x.release.Store.ReleaseLease(ctx, x.id, x.Fence)
}
