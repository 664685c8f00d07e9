package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store/payments"
)

const pathPayments = "/v1/payments"

func (h *Handler) paymentRoutes() []route {
	return []route{
		{http.MethodPost, pathPayments, merchant.RoleMerchant, h.createPayment},
		{http.MethodGet, pathPayments, merchant.RoleMerchant, h.listPayments},
		{http.MethodGet, pathPayments + "/{id}", merchant.RoleMerchant, h.getPayment},
		{http.MethodGet, pathPayments + "/{id}/events", merchant.RoleMerchant, h.listEvents},
		{http.MethodPost, pathPayments + "/{id}/capture", merchant.RoleMerchant, h.capturePayment},
		{http.MethodPost, pathPayments + "/{id}/cancel", merchant.RoleMerchant, h.cancelPayment},
	}
}

func locationOf(id payment.ID) string { return pathPayments + "/" + string(id) }

// newPayment is the body of a new payment. Its JSON form is what a fingerprint is
// taken of.
type newPayment struct {
	Amount        int64             `json:"amount"`
	Currency      string            `json:"currency"`
	PaymentMethod string            `json:"payment_method"`
	CaptureMethod string            `json:"capture_method"`
	Reference     string            `json:"reference,omitzero"`
	ReturnURL     string            `json:"return_url,omitzero"`
	PSP           string            `json:"psp,omitzero"` // as given: the default may change between two requests
	Metadata      map[string]string `json:"metadata,omitempty"`
}

func (h *Handler) readNewPayment(c *call) (newPayment, error) {
	f, err := c.readForm()
	if err != nil {
		return newPayment{}, err
	}
	r := newPayment{
		Amount:        f.integer("amount", required, 1, money.Max),
		Currency:      f.text("currency", required, ruleCurrency),
		PaymentMethod: f.text("payment_method", required, rulePaymentMethod),
		CaptureMethod: f.word("capture_method", string(payment.CaptureAutomatic), string(payment.CaptureManual)),
		Reference:     f.text("reference", optional, ruleReference),
		ReturnURL:     f.text("return_url", optional, ruleReturnURL),
		PSP:           f.text("psp", optional, rulePSP),
		Metadata:      f.metadata("metadata"),
	}
	if r.PSP != "" && !slices.Contains(h.Settings.PSPs, r.PSP) {
		f.fault("psp", messageUnknownPSP)
	}
	return r, f.done()
}

func (h *Handler) createPayment(ctx context.Context, c *call) (answer, error) {
	r, err := h.readNewPayment(c)
	if err != nil {
		return answer{}, err
	}
	request, err := c.chargeRequest(r)
	if err != nil {
		return answer{}, err
	}
	terms := payment.Terms{
		MerchantID: c.principal.MerchantID, Amount: money.Amount{Minor: r.Amount, Currency: money.Currency(r.Currency)},
		CaptureMethod: payment.CaptureMethod(r.CaptureMethod), PaymentMethod: payment.Secret(r.PaymentMethod),
		Reference: r.Reference, ReturnURL: r.ReturnURL, PSP: r.PSP, Metadata: r.Metadata,
	}
	if terms.PSP == "" {
		terms.PSP = h.Settings.DefaultPSP
	}
	result, err := h.Charges.Create(ctx, charge.CreateRequest{Request: request, Terms: terms})
	c.paymentID = result.Payment.ID
	if err != nil {
		return answer{}, err
	}
	return h.created(result)
}

// chargeRequest is what the flow needs to recognise a repeat.
func (c *call) chargeRequest(body any) (charge.Request, error) {
	print, err := fingerprint(body)
	return charge.Request{Scope: c.scope(), Fingerprint: print}, err
}

// created renders a payment that was asked for, 202 while its outcome is not known.
func (h *Handler) created(r charge.Result) (answer, error) {
	if !decided(r.Payment) {
		return repeat(r)(accepted(r.Payment.View(), locationOf(r.Payment.ID)))
	}
	a, err := reply(http.StatusCreated, r.Payment.View())
	if err != nil {
		return answer{}, err
	}
	return a.at(locationOf(r.Payment.ID)).replayed(r.Replayed), nil
}

// repeat marks an answer if r is of a repeat.
func repeat(r charge.Result) func(answer, error) (answer, error) {
	return func(a answer, err error) (answer, error) {
		if err != nil {
			return answer{}, err
		}
		return a.replayed(r.Replayed), nil
	}
}

// decided reports whether the first answer about a charge is there.
func decided(p payment.Payment) bool {
	return p.Status != payment.StatusCreated && p.Status != payment.StatusProcessing
}

// own reads the payment of the path, which must be the caller's.
func (h *Handler) own(ctx context.Context, c *call) (payment.Payment, error) {
	return h.Charges.Payment(ctx, c.principal.MerchantID, payment.ID(c.params["id"]))
}

func (h *Handler) getPayment(ctx context.Context, c *call) (answer, error) {
	q, err := c.query()
	if err != nil {
		return answer{}, err
	}
	seconds, err := queryInteger(q, "wait", 0, maxWaitSeconds, 0)
	if err != nil {
		return answer{}, err
	}
	var p payment.Payment
	err = await(ctx, time.Duration(seconds)*time.Second, func() (bool, error) {
		p, err = h.own(ctx, c)
		return decided(p), err
	})
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, p.View())
}

func (h *Handler) listPayments(ctx context.Context, c *call) (answer, error) {
	q, err := c.query()
	if err != nil {
		return answer{}, err
	}
	reference, err := queryText(q, "reference", ruleReference)
	if err != nil {
		return answer{}, err
	}
	at, err := readPaging(q, readLimit)
	if err != nil {
		return answer{}, err
	}
	rows, next, err := h.Lists.PaymentsByReference(ctx, c.principal.MerchantID, reference, at.cursor, at.limit)
	if err != nil {
		return answer{}, err
	}
	return page(rows, next, payment.Payment.View)
}

// event is a journal row as its merchant sees it. Its id is that of the event
// which leaves for the bus.
type event struct {
	ID      string         `json:"id"`
	Type    string         `json:"type"`
	Version int64          `json:"version"`
	At      time.Time      `json:"at"`
	Source  journal.Source `json:"source"`
	Data    map[string]any `json:"data"`
}

func (h *Handler) listEvents(ctx context.Context, c *call) (answer, error) {
	q, err := c.query()
	if err != nil {
		return answer{}, err
	}
	at, err := readPaging(q, scanLimit)
	if err != nil {
		return answer{}, err
	}
	p, err := h.own(ctx, c)
	if err != nil {
		return answer{}, err
	}
	rows, next, err := h.Lists.PaymentRows(ctx, p.ID, at.cursor, at.limit)
	if err != nil {
		return answer{}, err
	}
	return page(rows, next, func(row payments.Row) event { return viewRow(string(p.ID), row) })
}

// newCapture is the body of a capture. Amount is 0 for the whole.
type newCapture struct {
	Amount int64 `json:"amount,omitzero"`
}

func (h *Handler) capturePayment(ctx context.Context, c *call) (answer, error) {
	f, err := c.readForm()
	if err != nil {
		return answer{}, err
	}
	r := newCapture{Amount: f.integer("amount", optional, 1, money.Max)}
	if err := f.done(); err != nil {
		return answer{}, err
	}
	request, err := c.chargeRequest(r)
	if err != nil {
		return answer{}, err
	}
	result, err := h.Charges.Capture(ctx, charge.CaptureRequest{Request: request, PaymentID: payment.ID(c.params["id"]), Amount: r.Amount})
	if err != nil {
		return answer{}, err
	}
	return changed(result, capturing(result.Payment))
}

// capturing reports whether a capture was asked for and its outcome is not known.
func capturing(p payment.Payment) bool {
	if p.Status != payment.StatusAuthorized {
		return false
	}
	switch p.Capture.State {
	case payment.OperationSent, payment.OperationUnknown, payment.OperationNotRun: // sent: another call of it is on its way
		return true
	case payment.OperationNone, payment.OperationOwed, payment.OperationAnswered, payment.OperationRefused:
		return false
	}
	return false
}

// newCancel is the body of a cancel.
type newCancel struct {
	Reason string `json:"reason,omitzero"`
}

func (h *Handler) cancelPayment(ctx context.Context, c *call) (answer, error) {
	f, err := c.readForm()
	if err != nil {
		return answer{}, err
	}
	r := newCancel{Reason: f.text("reason", optional, ruleReason)}
	if err := f.done(); err != nil {
		return answer{}, err
	}
	request, err := c.chargeRequest(r)
	if err != nil {
		return answer{}, err
	}
	result, err := h.Charges.Cancel(ctx, charge.CancelRequest{Request: request, PaymentID: payment.ID(c.params["id"]), Reason: r.Reason})
	if err != nil {
		return answer{}, err
	}
	return changed(result, result.Payment.Status.Open())
}

// changed renders a payment after an operation, 202 while that has not ended.
func changed(r charge.Result, open bool) (answer, error) {
	if open {
		return repeat(r)(accepted(r.Payment.View(), locationOf(r.Payment.ID)))
	}
	return repeat(r)(reply(http.StatusOK, r.Payment.View()))
}
