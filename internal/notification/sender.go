package notification

import (
	"context"
	"strings"

	"github.com/kessai/kessai/internal/customer"
)

// Sender delivers a notification to its buyer. It may be called again with the
// same ID, also at the same moment, after a success whose news was lost; one that
// can, drops the repeat. Any error is tried again later.
type Sender interface {
	Deliver(ctx context.Context, n Notification) error
}

// StoredOnly is the Sender of a shop that reads its notifications from the API:
// the stored row is all there is.
type StoredOnly struct{}

// Deliver does nothing.
func (StoredOnly) Deliver(context.Context, Notification) error { return nil }

// deliveryError is a Sender's error without the address, which mail servers like
// to quote: its text ends up in logs and in an execution's history.
type deliveryError struct {
	err error
	to  customer.Email
}

func (e *deliveryError) Error() string {
	return "deliver: " + strings.ReplaceAll(e.err.Error(), e.to.Reveal(), e.to.String())
}

func (e *deliveryError) Unwrap() error { return e.err }
