package checkout

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/customer"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
)

// IDPrefix begins a checkout's id; a ULID follows.
const IDPrefix = "chk_"

// WellFormed reports whether id can be a checkout's at all. One that cannot is
// not worth a read.
func WellFormed(id string) bool {
	ulid, ok := strings.CutPrefix(id, IDPrefix)
	return ok && payment.ID(payment.IDPrefix+ulid).WellFormed()
}

// Status is where a checkout stands, as the merchant sees it.
type Status string

// Statuses of a checkout.
const (
	StatusPending        Status = "pending"
	StatusRequiresAction Status = "requires_action" // the customer must act
	StatusCompleted      Status = "completed"
	StatusFailed         Status = "failed"       // nothing is taken, all is released
	StatusNeedsReview    Status = "needs_review" // a person must act
)

// Over reports whether nothing but a person moves the checkout any more.
func (s Status) Over() bool {
	switch s {
	case StatusCompleted, StatusFailed, StatusNeedsReview:
		return true
	case StatusPending, StatusRequiresAction:
		return false
	}
	return false
}

// Direction says whether effects are made or undone. It never turns back.
type Direction string

// Directions.
const (
	Forward  Direction = "forward"
	Backward Direction = "backward"
)

// Failure codes beside those of payments.
const (
	FailureOutOfStock = "out_of_stock"
	FailureCanceled   = "payment_canceled"
	FailureRefunded   = "payment_refunded" // the money went back before the order existed
)

// Item is pieces of one SKU at one price.
type Item struct {
	SKU        string `json:"sku"`
	Quantity   int64  `json:"quantity"`
	UnitAmount int64  `json:"unit_amount"` // minor units
}

// Checkout is the state of one saga. It is a value: apply returns a changed copy.
type Checkout struct {
	ID         string
	MerchantID string
	Version    int64
	Status     Status
	Direction  Direction
	Items      []Item // equal SKUs merged
	Amount     money.Amount
	Reference  string
	Email      customer.Email
	PaymentID  payment.ID
	Reserved   bool // the stock participant said so
	Charged    bool // the payment was seen captured
	Undone     bool // backward: the payment holds no money any more
	Resumes    int  // how often an operator drove it on
	OrderID    string
	Failure    *payment.Failure
	Executions int64 // how many were started
	CreatedAt  time.Time
	UpdatedAt  time.Time
	// DueAt is when the sweep looks at it, zero when it is over; Tries counts the
	// executions that the sweep started since the last change.
	DueAt time.Time
	Tries int
}

// LogValue is c for a log line: nothing of the customer's.
func (c Checkout) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", c.ID), slog.String("status", string(c.Status)),
		slog.String("direction", string(c.Direction)), slog.Int64("version", c.Version))
}

// EventType names something that happened to a checkout; it is the type of its
// journal row.
type EventType string

// Events of a checkout.
const (
	EventCreated        EventType = "checkout.created"
	EventStockReserved  EventType = "checkout.stock_reserved"
	EventRequiresAction EventType = "checkout.requires_action"
	EventCharged        EventType = "checkout.charged"
	EventOrderCreated   EventType = "checkout.order_created"
	EventCompleted      EventType = "checkout.completed"
	EventCompensating   EventType = "checkout.compensating"
	EventPaymentUndone  EventType = "checkout.payment_undone"
	EventStockReleased  EventType = "checkout.stock_released"
	EventFailed         EventType = "checkout.failed"
	EventNeedsReview    EventType = "checkout.needs_review"
	EventResumed        EventType = "checkout.resumed"
)

// Event is something that happened to a checkout.
type Event struct {
	Type    EventType
	OrderID string           // of EventOrderCreated
	Failure *payment.Failure // of EventCompensating
	Reason  string           // of EventNeedsReview, our words
}

// Row is one journal row of a checkout.
type Row struct {
	Version int64
	Type    EventType
	At      time.Time
	Data    RowData
}

// RowData is the checkout after the event. Its JSON form is public.
type RowData struct {
	Status      Status     `json:"status"`
	Direction   Direction  `json:"direction"`
	Amount      int64      `json:"amount"`
	Currency    string     `json:"currency"`
	PaymentID   payment.ID `json:"payment_id"`
	Reference   string     `json:"reference,omitempty"`
	OrderID     string     `json:"order_id,omitempty"`
	FailureCode string     `json:"failure_code,omitempty"`
	Reason      string     `json:"reason,omitempty"`
}

// IllegalError reports an event that cannot happen to the checkout as it is.
type IllegalError struct {
	Status    Status
	Direction Direction
	Event     EventType
}

func (e *IllegalError) Error() string {
	return fmt.Sprintf("checkout: %s is illegal while %s %s", e.Event, e.Status, e.Direction)
}

// rule says when an event may happen: in which direction ("" in both) and
// statuses, and after what.
type rule struct {
	direction Direction
	statuses  []Status
	after     func(c Checkout) bool // nil: after anything
}

var (
	open    = []Status{StatusPending, StatusRequiresAction}
	pending = []Status{StatusPending}
)

// rules are the order of the saga and of its compensations. An event that is
// absent is illegal.
var rules = map[EventType]rule{
	EventStockReserved:  {Forward, pending, nil},
	EventRequiresAction: {Forward, pending, func(c Checkout) bool { return c.Reserved }},
	EventCharged:        {Forward, open, func(c Checkout) bool { return c.Reserved }},
	EventOrderCreated:   {Forward, pending, func(c Checkout) bool { return c.Charged }},
	EventCompleted:      {Forward, pending, func(c Checkout) bool { return c.OrderID != "" }},
	// The pivot: once the order exists nothing is undone.
	EventCompensating:  {Forward, open, func(c Checkout) bool { return c.OrderID == "" }},
	EventPaymentUndone: {Backward, pending, nil},
	EventStockReleased: {Backward, pending, func(c Checkout) bool { return c.Undone }},
	EventFailed:        {Backward, pending, func(c Checkout) bool { return c.Undone && !c.Reserved }},
	EventNeedsReview:   {"", open, nil},
	EventResumed:       {"", []Status{StatusNeedsReview}, nil},
}

func (r rule) allows(c Checkout) bool {
	return (r.direction == "" || r.direction == c.Direction) && slices.Contains(r.statuses, c.Status) &&
		(r.after == nil || r.after(c))
}

// apply returns c after e at a time. An event that is there already returns
// changed false.
func (c Checkout) apply(e Event, at time.Time) (next Checkout, row Row, changed bool, err error) {
	if c.happened(e.Type) {
		return c, Row{}, false, nil
	}
	if rule, ruled := rules[e.Type]; !ruled || !rule.allows(c) {
		return c, Row{}, false, &IllegalError{c.Status, c.Direction, e.Type}
	}
	next = c
	next.Items = slices.Clone(c.Items)
	next.change(e)
	next.Version++
	next.UpdatedAt, next.Tries = at, 0
	return next, next.row(e, at), true, nil
}

// happened reports whether e is what the state already says.
func (c Checkout) happened(e EventType) bool {
	switch e {
	case EventStockReserved:
		return c.Reserved
	case EventRequiresAction:
		// The customer who acted is not asked again by an execution that is late.
		return c.Status == StatusRequiresAction || c.Charged
	case EventCharged:
		return c.Charged
	case EventOrderCreated:
		return c.OrderID != "" && c.Direction == Forward
	case EventCompleted:
		return c.Status == StatusCompleted
	case EventCompensating:
		return c.Direction == Backward
	case EventStockReleased:
		return c.Direction == Backward && !c.Reserved
	case EventFailed:
		return c.Status == StatusFailed
	case EventNeedsReview:
		return c.Status == StatusNeedsReview
	case EventPaymentUndone:
		return c.Undone
	case EventCreated, EventResumed:
		return false
	}
	return false
}

func (c *Checkout) change(e Event) {
	switch e.Type {
	case EventStockReserved:
		c.Reserved = true
	case EventRequiresAction:
		c.Status = StatusRequiresAction
	case EventCharged:
		c.Charged, c.Status = true, StatusPending
	case EventPaymentUndone:
		c.Undone = true
	case EventResumed:
		c.Resumes++
		c.Status = StatusPending
	case EventOrderCreated:
		c.OrderID = e.OrderID
	case EventCompleted:
		c.Status = StatusCompleted
	case EventCompensating:
		c.Direction, c.Status, c.Failure = Backward, StatusPending, e.Failure
	case EventStockReleased:
		c.Reserved = false
	case EventFailed:
		c.Status = StatusFailed
	case EventNeedsReview:
		c.Status = StatusNeedsReview
	case EventCreated:
	}
}

func (c Checkout) row(e Event, at time.Time) Row {
	d := RowData{
		Status: c.Status, Direction: c.Direction, Amount: c.Amount.Minor, Currency: string(c.Amount.Currency),
		PaymentID: c.PaymentID, Reference: c.Reference, OrderID: c.OrderID, Reason: e.Reason,
	}
	if c.Failure != nil {
		d.FailureCode = c.Failure.Code
	}
	return Row{Version: c.Version, Type: e.Type, At: at, Data: d}
}

// View is the checkout as its merchant sees it.
type View struct {
	ID        string               `json:"id"`
	Object    string               `json:"object"`
	Status    Status               `json:"status"`
	Amount    int64                `json:"amount"`
	Currency  string               `json:"currency"`
	Payment   payment.View         `json:"payment"`
	OrderID   *string              `json:"order_id"`
	Failure   *payment.FailureView `json:"failure"`
	CreatedAt time.Time            `json:"created_at"`
	UpdatedAt time.Time            `json:"updated_at"`
}

// View is c with its payment's own view.
func (c Checkout) View(p payment.View) View {
	v := View{
		ID: c.ID, Object: "checkout", Status: c.Status, Amount: c.Amount.Minor, Currency: string(c.Amount.Currency),
		Payment: p, CreatedAt: c.CreatedAt.UTC(), UpdatedAt: c.UpdatedAt.UTC(),
	}
	if c.OrderID != "" {
		v.OrderID = &c.OrderID
	}
	if f := c.Failure; f != nil {
		v.Failure = &payment.FailureView{Code: f.Code, Retryable: f.Retryable}
		if f.DeclineCode != "" {
			v.Failure.DeclineCode = &f.DeclineCode
		}
	}
	return v
}
