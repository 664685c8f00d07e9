package inventory

import (
	"context"
	"errors"
	"fmt"

	"github.com/kessai/kessai/internal/command"
	"github.com/kessai/kessai/internal/store"
)

// Stock is the pieces of one SKU, none of the numbers ever negative.
type Stock struct {
	SKU       string `json:"sku"`
	Available int64  `json:"available"` // free to be reserved
	Reserved  int64  `json:"reserved"`  // held for checkouts
	Sold      int64  `json:"sold"`
}

// Set makes the number of available pieces what the merchant counted, 0 to
// 1,000,000,000. What buyers hold and have bought stays as it is, and what they
// hold comes on top when it is released. It returns ErrInvalid for a malformed
// merchant, SKU or number. Safe to repeat.
func (p *Participant) Set(ctx context.Context, merchant, sku string, available int64) error {
	if err := validateSKU(merchant, sku); err != nil {
		return err
	}
	if available < 0 || available > maxAvailable {
		return fmt.Errorf("%w: available %d, must be 0 to %d", ErrInvalid, available, maxAvailable)
	}
	// No condition: the merchant's count is right whatever the row said, and the
	// other two numbers are not touched.
	err := p.table.Write(ctx, store.Write{
		Kind: store.Update,
		Key:  stockKey(merchant, sku),
		Set:  store.Item{attrAvailable: available},
	})
	if err != nil {
		return fmt.Errorf("inventory: set stock: %w", err)
	}
	return nil
}

// Get returns the stock of one SKU, read consistently. It returns ErrNotFound for
// a SKU that the merchant never set, and for another merchant's.
func (p *Participant) Get(ctx context.Context, merchant, sku string) (Stock, error) {
	if validateSKU(merchant, sku) != nil {
		return Stock{}, ErrNotFound
	}
	item, err := p.table.Get(ctx, stockKey(merchant, sku))
	if errors.Is(err, store.ErrNotFound) {
		return Stock{}, ErrNotFound
	}
	if err != nil {
		return Stock{}, fmt.Errorf("inventory: get stock: %w", err)
	}
	return decodeStock(sku, item), nil
}

// decodeStock reads a row; a number that was never written is 0.
func decodeStock(sku string, item store.Item) Stock {
	s := Stock{SKU: sku}
	s.Available, _ = item[attrAvailable].(int64)
	s.Reserved, _ = item[attrReserved].(int64)
	s.Sold, _ = item[attrSold].(int64)
	return s
}

func validateSKU(merchant, sku string) error {
	if !command.ValidID(merchant) {
		return fmt.Errorf("%w: malformed merchant id", ErrInvalid)
	}
	if !ValidSKU(sku) {
		return fmt.Errorf("%w: malformed sku", ErrInvalid)
	}
	return nil
}
