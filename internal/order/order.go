package order

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kessai/kessai/internal/command"
	"github.com/kessai/kessai/internal/customer"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/store"
)

// Status is what became of a checkout's order.
type Status string

// Statuses of a record. None is the absence of one; only Confirmed and Canceled
// are ever seen on an Order.
const (
	None      Status = ""
	Confirmed Status = "confirmed"
	Canceled  Status = "canceled"
	Rejected  Status = "rejected"  // refused by a rule of the shop
	Prevented Status = "prevented" // canceled before it was created
)

// Limits of an order.
const (
	maxLines           = 50               // items of a checkout
	maxQuantity        = 9_999 * maxLines // of a line: all fifty items may have named one SKU
	maxSKULength       = 64               // characters
	maxReferenceLength = 64               // characters
)

// Order is what a buyer bought. Create sets ID, Status and CreatedAt.
type Order struct {
	ID         string
	CheckoutID string // "chk_…"
	MerchantID string
	PaymentID  string
	Reference  string // 1 to 64 characters without ":", the merchant's own; "" for none
	Status     Status
	Lines      []Line // 1 to 50
	Amount     money.Amount
	Email      customer.Email // "" for unknown
	CreatedAt  time.Time      // to the millisecond, UTC
}

// Line is pieces of one SKU at one price.
type Line struct {
	SKU        string `json:"sku"`
	Quantity   int64  `json:"quantity"`
	UnitAmount int64  `json:"unit_amount"` // minor units, 0 for free
}

// View is an order as its merchant sees it.
type View struct {
	ID         string        `json:"id"`
	Object     string        `json:"object"` // "order"
	CheckoutID string        `json:"checkout_id"`
	PaymentID  string        `json:"payment_id"`
	Reference  *string       `json:"reference"` // null for none
	Status     Status        `json:"status"`    // confirmed or canceled
	Items      []Line        `json:"items"`
	Amount     int64         `json:"amount"` // minor units
	Currency   string        `json:"currency"`
	Customer   *CustomerView `json:"customer"` // null for unknown
	CreatedAt  time.Time     `json:"created_at"`
}

// CustomerView is the buyer of a View: personal data, for the merchant's eyes.
type CustomerView struct {
	Email string `json:"email"`
}

// View returns the order as its merchant sees it.
func (o Order) View() View {
	v := View{
		ID: o.ID, Object: "order", CheckoutID: o.CheckoutID, PaymentID: o.PaymentID, Status: o.Status,
		Items: slices.Clone(o.Lines), Amount: o.Amount.Minor, Currency: string(o.Amount.Currency), CreatedAt: o.CreatedAt,
	}
	if o.Reference != "" {
		v.Reference = &o.Reference
	}
	if o.Email != "" {
		v.Customer = &CustomerView{Email: o.Email.Reveal()}
	}
	return v
}

// validate returns an error that wraps ErrInvalid and quotes nothing personal.
func (o Order) validate() error {
	if err := validateIDs(o.MerchantID, o.CheckoutID); err != nil {
		return err
	}
	if !command.ValidID(o.PaymentID) {
		return fmt.Errorf("%w: malformed payment id", ErrInvalid)
	}
	if o.Reference != "" && !validReference(o.Reference) {
		return fmt.Errorf("%w: malformed reference", ErrInvalid)
	}
	if o.Email != "" {
		if _, err := customer.ParseEmail(o.Email.Reveal()); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return o.validateAmount()
}

// validateAmount holds the amount to the sum of the lines: an order never says
// other than what its buyer was charged for.
func (o Order) validateAmount() error {
	if len(o.Lines) == 0 || len(o.Lines) > maxLines {
		return fmt.Errorf("%w: %d lines, must be 1 to %d", ErrInvalid, len(o.Lines), maxLines)
	}
	var total int64
	for i, l := range o.Lines {
		if l.SKU == "" || !utf8.ValidString(l.SKU) || utf8.RuneCountInString(l.SKU) > maxSKULength {
			return fmt.Errorf("%w: line %d: malformed sku", ErrInvalid, i)
		}
		if l.Quantity < 1 || l.Quantity > maxQuantity {
			return fmt.Errorf("%w: line %d: quantity %d, must be 1 to %d", ErrInvalid, i, l.Quantity, maxQuantity)
		}
		price, err := money.Multiply(l.UnitAmount, l.Quantity)
		if err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrInvalid, i, err)
		}
		if total, err = money.Add(total, price); err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrInvalid, i, err)
		}
	}
	if total != o.Amount.Minor || total < 1 || total > money.Max {
		return fmt.Errorf("%w: amount %d with lines of %d, must be equal and 1 to %d", ErrInvalid, o.Amount.Minor, total, money.Max)
	}
	if !o.Amount.Currency.Known() {
		return fmt.Errorf("%w: unknown currency", ErrInvalid)
	}
	return nil
}

func validReference(s string) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxReferenceLength && !strings.Contains(s, ":")
}

// validateIDs asks for the checkout's prefix, because the order's id is what follows it.
func validateIDs(merchant, checkout string) error {
	if !command.ValidID(merchant) || !command.ValidID(checkout) ||
		!strings.HasPrefix(checkout, checkoutPrefix) || len(checkout) == len(checkoutPrefix) {
		return fmt.Errorf("%w: malformed merchant or checkout id", ErrInvalid)
	}
	return nil
}

// sameAs reports whether both are the same purchase.
func (o Order) sameAs(p Order) bool {
	return o.PaymentID == p.PaymentID && o.Reference == p.Reference && o.Amount == p.Amount && slices.Equal(o.Lines, p.Lines)
}

func (o Order) item() store.Item {
	lines := make([]any, len(o.Lines))
	for i, l := range o.Lines {
		lines[i] = map[string]any{attrSKU: l.SKU, attrQuantity: l.Quantity, attrUnitAmount: l.UnitAmount}
	}
	return store.Item{
		attrStatus: string(o.Status), attrID: o.ID, attrMerchantID: o.MerchantID, attrCheckoutID: o.CheckoutID,
		attrPaymentID: o.PaymentID, attrReference: o.Reference, attrLines: lines,
		attrAmount: o.Amount.Minor, attrCurrency: string(o.Amount.Currency), attrEmail: o.Email.Reveal(),
		attrCreatedAt: o.CreatedAt.UnixMilli(), attrUpdatedAt: o.CreatedAt.UnixMilli(),
	}
}

func decode(item store.Item) Order {
	text := func(attr string) string {
		s, _ := item[attr].(string)
		return s
	}
	o := Order{
		ID: text(attrID), CheckoutID: text(attrCheckoutID), MerchantID: text(attrMerchantID), PaymentID: text(attrPaymentID),
		Reference: text(attrReference), Status: Status(text(attrStatus)), Email: customer.Email(text(attrEmail)),
		CreatedAt: millis(item, attrCreatedAt),
	}
	o.Amount.Minor, _ = item[attrAmount].(int64)
	o.Amount.Currency = money.Currency(text(attrCurrency))
	lines, _ := item[attrLines].([]any)
	for _, l := range lines {
		m, _ := l.(map[string]any)
		var line Line
		line.SKU, _ = m[attrSKU].(string)
		line.Quantity, _ = m[attrQuantity].(int64)
		line.UnitAmount, _ = m[attrUnitAmount].(int64)
		o.Lines = append(o.Lines, line)
	}
	return o
}
