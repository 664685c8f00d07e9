package payment

import (
	"fmt"
	"log/slog"
	"time"
)

// View is the payment as its merchant sees it. It is the only form in which a
// payment leaves the domain. Only action can put a secret into it, and only View
// of a payment in StatusRequiresAction calls action.
type View struct {
	ID             ID                `json:"id"`
	Object         string            `json:"object"`
	Status         Status            `json:"status"`
	Version        int64             `json:"version"`
	Amount         int64             `json:"amount"`
	Currency       string            `json:"currency"`
	AmountCaptured int64             `json:"amount_captured"`
	AmountRefunded int64             `json:"amount_refunded"`
	CaptureMethod  CaptureMethod     `json:"capture_method"`
	Reference      *string           `json:"reference"`
	PSP            string            `json:"psp"`
	PSPReference   *string           `json:"psp_reference"`
	Failure        *FailureView      `json:"failure"`
	NextAction     *NextAction       `json:"next_action"`
	ClientSecret   *string           `json:"client_secret"`
	InDoubt        bool              `json:"in_doubt"`
	Disputed       bool              `json:"disputed"`
	Disputes       []DisputeView     `json:"disputes"`
	Refunds        []RefundView      `json:"refunds"`
	Metadata       map[string]string `json:"metadata"`
	CreatedAt      time.Time         `json:"created_at"`
	UpdatedAt      time.Time         `json:"updated_at"`
}

// NextAction is what the customer must do.
type NextAction struct {
	Type        string `json:"type"` // redirect
	RedirectURL string `json:"redirect_url"`
}

// FailureView is why no money was taken.
type FailureView struct {
	Code        string  `json:"code"`
	DeclineCode *string `json:"decline_code"`
	Retryable   bool    `json:"retryable"`
}

// RefundView is a refund as its merchant sees it.
type RefundView struct {
	ID           RefundID     `json:"id"`
	Object       string       `json:"object"`
	PaymentID    ID           `json:"payment_id"`
	Status       RefundStatus `json:"status"`
	Amount       int64        `json:"amount"`
	Currency     string       `json:"currency"`
	Reason       *string      `json:"reason"`
	PSPReference *string      `json:"psp_reference"`
	CreatedAt    time.Time    `json:"created_at"`
	UpdatedAt    time.Time    `json:"updated_at"`
}

// DisputeView is a dispute as the merchant of its payment sees it.
type DisputeView struct {
	ID     string        `json:"id"`
	Status DisputeStatus `json:"status"`
	Amount int64         `json:"amount"`
	Result *string       `json:"result"`
}

// View is p for its merchant. Secrets are in it only while the customer must act.
func (p Payment) View() View {
	switch p.Status {
	case StatusRequiresAction:
		v := p.PublicView()
		v.NextAction, v.ClientSecret = p.action()
		return v
	case StatusCreated, StatusProcessing, StatusAuthorized, StatusCaptured,
		StatusFailed, StatusCanceled, StatusRefunded:
		return p.PublicView()
	}
	return p.PublicView()
}

// PublicView is p without any secret in any status, for operators and logs.
func (p Payment) PublicView() View {
	v := View{
		ID: p.ID, Object: "payment", Status: p.Status, Version: p.Version,
		Amount: p.Amount.Minor, Currency: string(p.Amount.Currency),
		AmountCaptured: p.AmountCaptured, AmountRefunded: p.AmountRefunded(),
		CaptureMethod: p.CaptureMethod, Reference: optional(p.Reference), PSP: p.PSP,
		PSPReference: optional(p.PSPReference), InDoubt: p.InDoubt(), Disputed: p.Disputed(),
		Disputes: make([]DisputeView, 0, len(p.Disputes)), Refunds: make([]RefundView, 0, len(p.Refunds)),
		Metadata: map[string]string{}, CreatedAt: p.CreatedAt.UTC(), UpdatedAt: p.UpdatedAt.UTC(),
	}
	if f := p.Failure; f != nil {
		v.Failure = &FailureView{Code: f.Code, DeclineCode: optional(f.DeclineCode), Retryable: f.Retryable}
	}
	for _, r := range p.Refunds {
		v.Refunds = append(v.Refunds, p.RefundView(r))
	}
	for _, d := range p.Disputes {
		v.Disputes = append(v.Disputes, DisputeView{ID: d.PSPReference, Status: d.Status, Amount: d.Amount, Result: optional(d.Result)})
	}
	for key, value := range p.Metadata {
		v.Metadata[key] = value
	}
	return v
}

// RefundView is r, one of p's refunds, for its merchant.
func (p Payment) RefundView(r Refund) RefundView {
	return RefundView{
		ID: r.ID, Object: "refund", PaymentID: p.ID, Status: r.Status, Amount: r.Amount, Currency: string(p.Amount.Currency),
		Reason: optional(r.Reason), PSPReference: optional(r.PSPReference), CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
}

// action is what the customer needs to act, and the only reader of p's secrets
// beside the store.
func (p Payment) action() (*NextAction, *string) {
	var next *NextAction
	if p.RedirectURL != "" {
		next = &NextAction{Type: "redirect", RedirectURL: p.RedirectURL.Reveal()}
	}
	return next, optional(p.ClientSecret.Reveal())
}

// LogValue is p for a log line: no secret, no token, nothing of the customer's.
func (p Payment) LogValue() slog.Value { return p.PublicView().LogValue() }

// LogValue is v for a log line, without what only the merchant may see.
func (v View) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", string(v.ID)), slog.String("status", string(v.Status)), slog.Int64("version", v.Version),
		slog.Int64("amount", v.Amount), slog.String("currency", v.Currency), slog.Bool("in_doubt", v.InDoubt))
}

// LogValue is a for a log line, without the address.
func (a NextAction) LogValue() slog.Value { return slog.StringValue(a.Type) }

// Format prints a without the address; only its JSON has it.
func (a NextAction) Format(f fmt.State, verb rune) {
	type plain NextAction
	a.RedirectURL = redacted
	// The state belongs to fmt, which keeps no error of writing to it.
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), plain(a))
}
