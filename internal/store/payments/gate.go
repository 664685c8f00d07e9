package payments

import (
	"context"
	"errors"
	"fmt"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/store"
)

// CheckoutOver reports whether a checkout's saga has ended, read consistently. It
// explains a refusal; what must not happen before the end is held back by a
// journal.Gate in the transaction itself.
func (t *Table) CheckoutOver(ctx context.Context, id string) (bool, error) {
	c, err := t.Checkout(ctx, id)
	if errors.Is(err, checkout.ErrNotFound) { // it is written together with its payment
		return false, fmt.Errorf("%w: checkout %s of a payment", store.ErrUnavailable, id)
	}
	if err != nil {
		return false, fmt.Errorf("read checkout %s: %w", id, err)
	}
	return c.Status.Over(), nil
}
