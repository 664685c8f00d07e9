package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/webhook"
)

// logged are the parts of the webhook log in the order in which they are read: an
// item that leaves the first one meanwhile is met again in one of the others.
var logged = []webhook.Status{webhook.StatusReceived, webhook.StatusQuarantined, webhook.StatusIgnored, webhook.StatusApplied}

// log does one page of the webhook log. Its cursor is the status that is read and
// the place in its list.
func (w *walk) log(ctx context.Context, run Run) (Run, error) {
	part, inner, _ := strings.Cut(run.Cursor, " ")
	status := webhook.Status(part)
	if part == "" {
		status = logged[0]
	}
	if w.s.Webhooks[run.PSP] == nil {
		run.Cursor, run.Phase = "", PhaseHere
		return run, nil
	}
	page, next, err := w.s.Store.Log(ctx, run.PSP, status, Window{From: run.From, To: run.To, Cursor: inner, Limit: pageSize})
	if err != nil {
		return run, fmt.Errorf("read webhooks: %w", err)
	}
	var compared atomic.Int64
	err = each(page, func(it webhook.Item) error {
		told, err := w.s.notified(ctx, run, it)
		if told {
			compared.Add(1)
		}
		return err
	})
	if err != nil {
		return run, err
	}
	run.Webhooks += compared.Load()
	run.Cursor = string(status) + " " + next
	if next == "" {
		at := slices.Index(logged, status) + 1
		if at == len(logged) {
			run.Cursor, run.Phase = "", PhaseHere
			return run, nil
		}
		run.Cursor = string(logged[at]) + " "
	}
	return run, nil
}

// notified holds an item of the webhook log against its payment. It reports whether
// the item tells of anything that can be compared.
func (s *Service) notified(ctx context.Context, run Run, it webhook.Item) (told bool, err error) {
	if it.Status == webhook.StatusReceived && !s.late(it) {
		return false, nil // the stream or the sweep comes to it
	}
	event, told := s.read(it)
	if !told {
		return false, nil
	}
	p, found, err := s.payment(ctx, event.Charge.PaymentID)
	if err != nil {
		return false, err
	}
	if !found && it.Status == webhook.StatusReceived && s.Now().Before(it.WaitUntil) {
		return true, nil // it waits for its payment
	}
	all := s.untold(it, event, p, found)
	compare := comparison{of: func(p payment.Payment) []difference { return s.untold(it, event, p, found) }}
	switch {
	case len(all) == 0:
		return true, nil
	case all[0].finding.Kind == MissingHere:
		return true, s.stray(ctx, run, event, p, compare)
	case it.Status == webhook.StatusReceived && run.Repair:
		return true, s.deliver(ctx, run, it, all, compare)
	}
	return true, s.settle(ctx, run, p, compare)
}

// read is what an item says; told is false when it says nothing that matters here.
func (s *Service) read(it webhook.Item) (e psp.Event, told bool) {
	e, err := it.Read(s.Webhooks[it.PSP])
	return e, err == nil
}

// late reports a received item that nobody came to: the sweep should have, at least
// once since it was due.
func (s *Service) late(it webhook.Item) bool {
	return !s.Now().Before(it.DueAt.Add(s.ReconcileAfter))
}

// deliver applies an item that nobody came to, as the sweep does, and settles its
// findings by how that went.
func (s *Service) deliver(ctx context.Context, run Run, it webhook.Item, all []difference, compare comparison) error {
	if news, err := s.news(ctx, run, all); err != nil || !news {
		return err
	}
	for i := range all {
		all[i].finding.At = s.Now()
		if _, err := s.Store.AddFinding(ctx, run.ID, all[i].finding); err != nil {
			return fmt.Errorf("add finding: %w", err)
		}
	}
	if err := s.Applier.Apply(ctx, it.PSP, it.EventID); err != nil {
		return fmt.Errorf("apply %s: %w", it.ID(), err)
	}
	after, _, err := s.payment(ctx, string(all[0].finding.PaymentID))
	if err != nil {
		return err
	}
	return s.conclude(ctx, run, all, repaired{DrivenOn, compare.of(after)})
}

// stray writes down that the PSP told of a charge that no payment of its own owns, if
// it still says so when it is asked.
func (s *Service) stray(ctx context.Context, run Run, event psp.Event, p payment.Payment, compare comparison) error {
	if len(event.Charge.Reference) > maxField {
		return nil // no PSP has such a charge
	}
	if s.Providers[run.PSP] != nil {
		c, err := s.lookUp(ctx, run.PSP, psp.LookupRequest{Reference: event.Charge.Reference})
		if errors.Is(err, psp.ErrNotFound) || err == nil && !atStake(c) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return s.settle(ctx, run, p, compare)
}

// untold is how what a notification told and what a payment shows differ. A fact that
// the journal would still record, or refuses, is one that the payment does not show.
func (s *Service) untold(it webhook.Item, event psp.Event, p payment.Payment, found bool) []difference {
	there := describe(fmt.Sprintf("%s webhook, %s: %s", it.Type, it.Status, heard(event)))
	var other []difference
	switch {
	case !found:
		other = foreign(event.Charge, "no such payment")
	case p.PSP != it.PSP:
		other = foreign(event.Charge, "a payment at "+p.PSP)
	case p.PSPReference != "" && event.Charge.Reference != "" && p.PSPReference != event.Charge.Reference:
		other = foreign(event.Charge, "a payment with charge "+p.PSPReference)
	default:
		kind, remedy, differs := s.unshown(event, p)
		if !differs {
			return nil
		}
		f := Finding{
			Kind: kind, PaymentID: p.ID, CheckoutID: p.CheckoutID, Reference: describe(event.Charge.Reference), Webhook: it.ID(), There: there, Here: recorded(p),
		}
		if event.Refund != nil {
			f.Refund = describe(event.Refund.Reference)
		}
		return []difference{{f, remedy}}
	}
	for i := range other {
		other[i].finding.Webhook, other[i].finding.There = it.ID(), there
	}
	return other
}

// heard is what a notification says, in words.
func heard(e psp.Event) string {
	switch {
	case e.Refund != nil:
		return "refund " + sayRefund(string(e.Refund.Status), e.Refund.Amount, e.Charge.Amount.Currency)
	case e.Dispute != nil:
		return "dispute " + sayRefund(string(e.Dispute.Status), e.Dispute.Amount, e.Charge.Amount.Currency)
	}
	return told(e.Charge)
}

// unshown reports whether a payment does not show an outcome that it was told of, what
// kind of difference that is and what may put it right. What else a notification
// tells of, such as that the customer must act, is no outcome.
func (s *Service) unshown(event psp.Event, p payment.Payment) (kind Kind, r remedy, differs bool) {
	kind = StatusDiffers
	switch event.Status {
	case psp.StatusPending, psp.StatusRequiresAction:
		return "", remedyNone, false
	case psp.StatusFailed, psp.StatusCanceled:
		if p.Status.Dead() || p.AmountCaptured > 0 { // that nothing is held does not matter any more
			return "", remedyNone, false
		}
	case psp.StatusAuthorized, psp.StatusCaptured:
	}
	if event.Refund != nil {
		kind = RefundUnmatched
	}
	fact := charge.EventFact(event)
	fact.At = s.Now()
	_, _, changed, err := p.Apply(fact)
	mismatch, disagrees := errors.AsType[*payment.MismatchError](err)
	if disagrees && kind == StatusDiffers {
		kind = AmountDiffers
	}
	if disagrees && mismatch.Field != "psp_reference" {
		return kind, remedyNone, true
	}
	return kind, remedyAsk, changed || err != nil
}
