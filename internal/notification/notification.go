package notification

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/kessai/kessai/internal/command"
	"github.com/kessai/kessai/internal/customer"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/store"
)

// Kind is what a buyer is told.
type Kind string

// OrderConfirmation tells that the order exists and is paid.
const OrderConfirmation Kind = "order_confirmation"

// known reports whether k is one of the kinds.
func (k Kind) known() bool { return k == OrderConfirmation }

// Status is how far a notification is.
type Status string

// Statuses of a notification.
const (
	Pending Status = "pending"
	Sent    Status = "sent"
	Failed  Status = "failed"
)

const maxReferenceLength = 64 // characters, as of a payment's reference

// Notification is one thing to tell one buyer. Send sets ID, Status and CreatedAt.
type Notification struct {
	ID         string // the same for every attempt: what a Sender drops repeats by
	MerchantID string
	CheckoutID string
	Kind       Kind
	To         customer.Email
	OrderID    string
	Reference  string // the merchant's own, "" for none
	Amount     money.Amount
	Status     Status
	CreatedAt  time.Time // to the millisecond, UTC
}

// View is a notification as its merchant sees it. Recipient is personal data.
type View struct {
	ID         string    `json:"id"`
	Object     string    `json:"object"` // "notification"
	Type       Kind      `json:"type"`
	Status     Status    `json:"status"`
	CheckoutID string    `json:"checkout_id"`
	OrderID    string    `json:"order_id"`
	Recipient  string    `json:"recipient"`
	CreatedAt  time.Time `json:"created_at"`
}

// View returns the notification as its merchant sees it.
func (n Notification) View() View {
	return View{
		ID: n.ID, Object: "notification", Type: n.Kind, Status: n.Status, CheckoutID: n.CheckoutID,
		OrderID: n.OrderID, Recipient: n.To.Reveal(), CreatedAt: n.CreatedAt,
	}
}

// validate returns an error that wraps ErrInvalid and quotes nothing personal.
func (n Notification) validate() error {
	for name, id := range map[string]string{"merchant": n.MerchantID, "checkout": n.CheckoutID, "order": n.OrderID} {
		if !command.ValidID(id) {
			return fmt.Errorf("%w: malformed %s id", ErrInvalid, name)
		}
	}
	if !n.Kind.known() {
		return fmt.Errorf("%w: unknown kind", ErrInvalid)
	}
	if _, err := customer.ParseEmail(n.To.Reveal()); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if !utf8.ValidString(n.Reference) || utf8.RuneCountInString(n.Reference) > maxReferenceLength {
		return fmt.Errorf("%w: malformed reference", ErrInvalid)
	}
	if n.Amount.Minor < 1 || n.Amount.Minor > money.Max || !n.Amount.Currency.Known() {
		return fmt.Errorf("%w: amount %d, must be 1 to %d of a known currency", ErrInvalid, n.Amount.Minor, money.Max)
	}
	return nil
}

// sameAs reports whether both tell the same.
func (n Notification) sameAs(m Notification) bool {
	return n.To == m.To && n.OrderID == m.OrderID && n.Reference == m.Reference && n.Amount == m.Amount
}

// row is a notification as the table holds it.
type row struct {
	Notification
	attempts int64
	dueAt    int64 // Unix milliseconds, 0 when it is at rest
}

func (r row) key() store.Key { return key(r.MerchantID, r.CheckoutID, r.Kind) }

func (r row) item() store.Item {
	return store.Item{
		attrID: r.ID, attrMerchantID: r.MerchantID, attrCheckoutID: r.CheckoutID, attrKind: string(r.Kind),
		attrTo: r.To.Reveal(), attrOrderID: r.OrderID, attrReference: r.Reference,
		attrAmount: r.Amount.Minor, attrCurrency: string(r.Amount.Currency),
		attrStatus: string(r.Status), attrAttempts: r.attempts, attrCreatedAt: r.CreatedAt.UnixMilli(),
		store.AttrDueShard: dueShardOf(r.ID), store.AttrDueAt: r.dueAt,
	}
}

func decode(item store.Item) row {
	text := func(attr string) string {
		s, _ := item[attr].(string)
		return s
	}
	number := func(attr string) int64 {
		n, _ := item[attr].(int64)
		return n
	}
	return row{
		Notification: Notification{
			ID: text(attrID), MerchantID: text(attrMerchantID), CheckoutID: text(attrCheckoutID),
			Kind: Kind(text(attrKind)), To: customer.Email(text(attrTo)),
			OrderID: text(attrOrderID), Reference: text(attrReference),
			Amount:    money.Amount{Minor: number(attrAmount), Currency: money.Currency(text(attrCurrency))},
			Status:    Status(text(attrStatus)),
			CreatedAt: time.UnixMilli(number(attrCreatedAt)).UTC(),
		},
		attempts: number(attrAttempts),
		dueAt:    number(store.AttrDueAt),
	}
}
