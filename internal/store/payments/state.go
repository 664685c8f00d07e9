package payments

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
)

// Attributes that conditions name.
const (
	attrVersion    = "version"
	attrStatus     = "status"
	attrLeaseUntil = "lease_until"
	attrLeaseFence = "lease_fence"
	attrTries      = "tries"
	attrPaymentID  = "payment_id"
	attrDirection  = "direction"
)

// Prefixes of the attributes that hold one refund or dispute each, so that
// writing one leaves the others alone.
const (
	prefixRefund  = "refund#"
	prefixDispute = "dispute#"
)

// encodePayment is p as attributes of its STATE item, without its lease.
func encodePayment(p payment.Payment) store.Item {
	f := fields{}
	f.str("id", string(p.ID))
	f.str("merchant_id", p.MerchantID)
	f.str("checkout_id", p.CheckoutID)
	f.num(attrVersion, p.Version)
	f.str(attrStatus, string(p.Status))
	f.num("amount", p.Amount.Minor)
	f.str("currency", string(p.Amount.Currency))
	f.str("capture_method", string(p.CaptureMethod))
	f.str("payment_method", p.PaymentMethod.Reveal())
	f.str("reference", p.Reference)
	f.str("return_url", p.ReturnURL)
	f.str("psp", p.PSP)
	if len(p.Metadata) > 0 {
		m := make(map[string]any, len(p.Metadata))
		for key, value := range p.Metadata {
			m[key] = value
		}
		f["metadata"] = m
	}
	f.time("created_at", p.CreatedAt)
	f.time("updated_at", p.UpdatedAt)
	f.time("deadline_at", p.ExpiresAt)
	f.flag("holds_reference", p.HoldsReference)
	f.str("psp_reference", p.PSPReference)
	f.num("amount_captured", p.AmountCaptured)
	if p.Failure != nil {
		f["failure"] = encodeFailure(*p.Failure)
	}
	f.str("redirect_url", p.RedirectURL.Reveal())
	f.str("client_secret", p.ClientSecret.Reveal())
	f.operation("create", p.Create)
	f.operation("capture", p.Capture)
	f.operation("void", p.Void)
	f.str("cancel_cause", string(p.CancelCause))
	f.flag("mismatched", p.Mismatched)
	f.flag("buried", p.Buried)
	f.flag("late_hold", p.LateHold)
	for _, r := range p.Refunds {
		f[prefixRefund+string(r.ID)] = encodeRefund(r)
	}
	for _, d := range p.Disputes {
		sub := fields{}
		sub.num("amount", d.Amount)
		sub.str("status", string(d.Status))
		sub.str("result", d.Result)
		sub.time("updated_at", d.UpdatedAt)
		f[prefixDispute+d.PSPReference] = map[string]any(sub)
	}
	f.num(attrTries, int64(p.Tries))
	f.duePayment(p)
	return store.Item(f)
}

func (f fields) operation(name string, o payment.Operation) {
	if o == (payment.Operation{}) {
		return
	}
	f[name] = encodeOperation(o)
}

func encodeOperation(o payment.Operation) map[string]any {
	sub := fields{}
	sub.str("state", string(o.State))
	sub.str("key", o.Key)
	sub.num("amount", o.Amount)
	sub.time("first_sent_at", o.FirstSentAt)
	sub.time("last_sent_at", o.LastSentAt)
	sub.time("retry_at", o.RetryAt)
	sub.num("sends", int64(o.Sends))
	sub.num("attempt", int64(o.Attempt))
	return sub
}

func encodeRefund(r payment.Refund) map[string]any {
	sub := fields{}
	sub.str("status", string(r.Status))
	sub.num("amount", r.Amount)
	sub.str("reason", r.Reason)
	sub.str("psp_reference", r.PSPReference)
	sub.flag("outside", r.Outside)
	sub.operation("operation", r.Operation)
	sub.time("created_at", r.CreatedAt)
	sub.time("updated_at", r.UpdatedAt)
	return sub
}

func decodePayment(item store.Item) payment.Payment {
	r := reader(item)
	p := payment.Payment{
		ID: payment.ID(r.str("id")), MerchantID: r.str("merchant_id"), CheckoutID: r.str("checkout_id"),
		Version: r.num(attrVersion), Status: payment.Status(r.str(attrStatus)),
		Amount:        money.Amount{Minor: r.num("amount"), Currency: money.Currency(r.str("currency"))},
		CaptureMethod: payment.CaptureMethod(r.str("capture_method")), PaymentMethod: payment.Secret(r.str("payment_method")),
		Reference: r.str("reference"), ReturnURL: r.str("return_url"), PSP: r.str("psp"), Metadata: r.strings("metadata"),
		CreatedAt: r.time("created_at"), UpdatedAt: r.time("updated_at"), ExpiresAt: r.time("deadline_at"),
		HoldsReference: r.flag("holds_reference"), PSPReference: r.str("psp_reference"), AmountCaptured: r.num("amount_captured"),
		RedirectURL: payment.Secret(r.str("redirect_url")), ClientSecret: payment.Secret(r.str("client_secret")),
		Create: decodeOperation(r.sub("create")), Capture: decodeOperation(r.sub("capture")), Void: decodeOperation(r.sub("void")),
		CancelCause: payment.CancelCause(r.str("cancel_cause")), Mismatched: r.flag("mismatched"), Buried: r.flag("buried"), LateHold: r.flag("late_hold"),
		Failure: decodeFailure(r.sub("failure")),
		DueAt:   r.nextLook(), Tries: int(r.num(attrTries)),
		LeaseUntil: r.time(attrLeaseUntil), LeaseFence: r.num(attrLeaseFence),
	}
	for name := range item {
		if id, ok := strings.CutPrefix(name, prefixRefund); ok {
			p.Refunds = append(p.Refunds, decodeRefund(payment.RefundID(id), r.sub(name)))
		}
		if reference, ok := strings.CutPrefix(name, prefixDispute); ok {
			d := r.sub(name)
			p.Disputes = append(p.Disputes, payment.Dispute{
				PSPReference: reference, Amount: d.num("amount"), Status: payment.DisputeStatus(d.str("status")),
				Result: d.str("result"), UpdatedAt: d.time("updated_at"),
			})
		}
	}
	slices.SortFunc(p.Refunds, func(a, b payment.Refund) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(string(a.ID), string(b.ID)))
	})
	slices.SortFunc(p.Disputes, func(a, b payment.Dispute) int { return strings.Compare(a.PSPReference, b.PSPReference) })
	return p
}

func decodeOperation(r reader) payment.Operation {
	return payment.Operation{
		State: payment.OperationState(r.str("state")), Key: r.str("key"), Amount: r.num("amount"),
		FirstSentAt: r.time("first_sent_at"), LastSentAt: r.time("last_sent_at"), RetryAt: r.time("retry_at"),
		Sends: int(r.num("sends")), Attempt: int(r.num("attempt")),
	}
}

func decodeRefund(id payment.RefundID, r reader) payment.Refund {
	return payment.Refund{
		ID: id, Status: payment.RefundStatus(r.str("status")), Amount: r.num("amount"), Reason: r.str("reason"),
		PSPReference: r.str("psp_reference"), Outside: r.flag("outside"), Operation: decodeOperation(r.sub("operation")),
		CreatedAt: r.time("created_at"), UpdatedAt: r.time("updated_at"),
	}
}
