package payment

import (
	"maps"
	"time"

	"github.com/kessai/kessai/internal/money"
)

// Terms are what a merchant asks for. They were validated at the edge.
type Terms struct {
	ID            ID
	MerchantID    string
	CheckoutID    string
	Amount        money.Amount
	CaptureMethod CaptureMethod
	PaymentMethod Secret
	Reference     string
	ReturnURL     string
	PSP           string
	Metadata      map[string]string
	ExpiresAt     time.Time
}

// New is version 1 of a payment of which nothing was sent yet.
func New(t Terms, at time.Time) (Payment, Row) {
	p := Payment{
		ID: t.ID, MerchantID: t.MerchantID, CheckoutID: t.CheckoutID, Version: 1, Status: StatusCreated,
		Amount: t.Amount, CaptureMethod: t.CaptureMethod, PaymentMethod: t.PaymentMethod,
		Reference: t.Reference, ReturnURL: t.ReturnURL, PSP: t.PSP, Metadata: maps.Clone(t.Metadata),
		CreatedAt: at, UpdatedAt: at, ExpiresAt: t.ExpiresAt, HoldsReference: t.Reference != "",
	}
	return p, p.row(EventCreated, Event{At: at})
}

// NewSent is version 1 of a payment whose charge is sent right after the commit:
// creation and the first intent in one version.
func NewSent(t Terms, at time.Time) (Payment, Row) {
	p, _ := New(t, at)
	p.Status = StatusProcessing
	p.Create = Operation{Key: string(p.ID), Attempt: 1}.sent(at)
	return p, p.row(EventCreated, Event{At: at, Operation: OperationCreate})
}
