package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// payment reads the payment that the PSP's side names; found is false when there is none.
func (s *Service) payment(ctx context.Context, name string) (p payment.Payment, found bool, err error) {
	id := payment.ID(name)
	if !id.WellFormed() {
		return payment.Payment{}, false, nil
	}
	p, err = s.Store.Payment(ctx, id)
	if errors.Is(err, journal.ErrNotFound) {
		return payment.Payment{}, false, nil
	}
	if err != nil {
		return payment.Payment{}, false, fmt.Errorf("read payment %s: %w", id, err)
	}
	return p, true, nil
}

// against is how a charge and what is here of its payment differ.
func against(c psp.Charge, p payment.Payment, found bool, name string) []difference {
	if !found {
		return foreign(c, "no such payment")
	}
	return compare(c, p, name)
}

// charge holds a charge of the PSP's list against its payment.
func (s *Service) charge(ctx context.Context, run Run, c psp.Charge) error {
	p, found, err := s.payment(ctx, c.PaymentID)
	if err != nil {
		return err
	}
	differences := against(c, p, found, run.PSP)
	if news, err := s.news(ctx, run, differences); err != nil || !news {
		return err
	}
	ask := s.asking(run.PSP, psp.LookupRequest{Reference: c.Reference}, &c)
	// The list is older than the payment as it was read.
	if err := ask(ctx); err != nil {
		return err
	}
	if p, found, err = s.payment(ctx, c.PaymentID); err != nil {
		return err
	}
	return s.settle(ctx, run, p, comparison{func(p payment.Payment) []difference { return against(c, p, found, run.PSP) }, ask})
}

// asking asks the PSP for a charge, which stays as it was known if the PSP has none.
func (s *Service) asking(name string, r psp.LookupRequest, known *psp.Charge) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := s.lookUp(ctx, name, r)
		if errors.Is(err, psp.ErrNotFound) {
			return nil
		}
		if err == nil {
			*known = c
		}
		return err
	}
}

// unmet holds a payment that was captured here, and that the PSP's side does not
// tell of, against the PSP's answer when it is asked.
func (s *Service) unmet(ctx context.Context, run Run, p payment.Payment) error {
	missing := func(there string) comparison {
		return comparison{of: func(p payment.Payment) []difference {
			return []difference{{finding: Finding{
				Kind: MissingAtPSP, PaymentID: p.ID, CheckoutID: p.CheckoutID, Reference: p.PSPReference, There: describe(there), Here: recorded(p),
			}}}
		}}
	}
	if s.Providers[run.PSP] == nil {
		return s.settle(ctx, run, p, missing("nothing"))
	}
	request := psp.LookupRequest{Reference: p.PSPReference, PaymentID: string(p.ID)}
	c, err := s.lookUp(ctx, run.PSP, request)
	switch {
	case errors.Is(err, psp.ErrNotFound):
		return s.settle(ctx, run, p, missing("nothing"))
	case err != nil:
		return err
	case c.PaymentID != string(p.ID):
		return s.settle(ctx, run, p, missing("the charge of another payment, "+c.PaymentID))
	case run.Source == SourceFile: // it is there, and not in the file
		return s.settle(ctx, run, p, missing(told(c)+", not in the file"))
	}
	fresh, found, err := s.payment(ctx, string(p.ID))
	if err != nil {
		return err
	}
	compare := func(p payment.Payment) []difference { return against(c, p, found, run.PSP) }
	return s.settle(ctx, run, fresh, comparison{compare, s.asking(run.PSP, request, &c)})
}

// entry holds a row of a settlement file against its payment.
func (s *Service) entry(ctx context.Context, run Run, e Entry) error {
	p, found, err := s.payment(ctx, e.PaymentID)
	if err != nil {
		return err
	}
	if !found {
		if e.Kind == EntryChargeFailed || e.Kind == EntryRefundFailed {
			return nil // no money is missed
		}
		f := Finding{
			Kind: MissingHere, Reference: e.Reference, Refund: e.Refund, Line: e.Line, There: fmt.Sprintf("%s, %s", e.Kind, e.Amount), Here: "no such payment",
		}
		if e.PaymentID != "" {
			f.There = describe(f.There + ", of " + e.PaymentID)
		}
		return s.settle(ctx, run, p, comparison{of: func(payment.Payment) []difference { return []difference{{finding: f}} }})
	}
	return s.settle(ctx, run, p, comparison{of: func(p payment.Payment) []difference { return compareEntry(e, p, run.PSP) }})
}

// lookUp asks the PSP. Its error is psp.ErrNotFound, or means that there was no answer.
func (s *Service) lookUp(ctx context.Context, name string, r psp.LookupRequest) (psp.Charge, error) {
	provider := s.Providers[name]
	if provider == nil {
		return psp.Charge{}, ErrUnknownPSP
	}
	c, err := provider.Lookup(ctx, r)
	if err != nil && !errors.Is(err, psp.ErrNotFound) {
		return psp.Charge{}, fmt.Errorf("look up %s%s: %w", r.Reference, r.PaymentID, err)
	}
	return c, err
}

// news reports whether any of the differences has not been dealt with by this run.
func (s *Service) news(ctx context.Context, run Run, all []difference) (bool, error) {
	for _, d := range all {
		settled, err := s.Store.Settled(ctx, run.ID, d.finding)
		if err != nil || !settled {
			return err == nil, err
		}
	}
	return false, nil
}

// comparison is how the PSP's side and a payment differ.
type comparison struct {
	of func(payment.Payment) []difference
	// anew reads the PSP's side again, which a repair may have moved as well; nil when
	// that side says for ever what it said.
	anew func(context.Context) error
}

// settle writes the differences of a payment down and puts right what can be.
func (s *Service) settle(ctx context.Context, run Run, p payment.Payment, compare comparison) error {
	all := compare.of(p)
	if news, err := s.news(ctx, run, all); err != nil || !news {
		return err
	}
	ask := false
	for i := range all {
		d := &all[i]
		d.finding.At = s.Now()
		if s.Providers[run.PSP] == nil && d.remedy == remedyAsk {
			d.remedy = remedyNone
		}
		d.finding.NeedsReview = d.remedy == remedyNone
		ask = ask || d.remedy == remedyAsk
		if _, err := s.Store.AddFinding(ctx, run.ID, d.finding); err != nil {
			return fmt.Errorf("add finding: %w", err)
		}
	}
	if !ask || !run.Repair {
		return nil
	}
	reference := all[0].finding.Reference
	if all[0].finding.Webhook != "" { // what a notification says is not even believed that far
		reference = ""
	}
	repair, err := s.ask(ctx, p, reference)
	if err != nil {
		return err
	}
	if compare.anew != nil {
		if err := compare.anew(ctx); err != nil {
			return err
		}
	}
	after, _, err := s.payment(ctx, string(p.ID))
	if err != nil {
		return err
	}
	asked := slices.DeleteFunc(all, func(d difference) bool { return d.remedy != remedyAsk })
	return s.conclude(ctx, run, asked, repaired{repair, compare.of(after)})
}

// repaired is what a repair was, and the differences that are left after it.
type repaired struct {
	by   Repair
	left []difference
}

// conclude notes how findings ended: a repair counts when the difference is gone.
func (s *Service) conclude(ctx context.Context, run Run, all []difference, r repaired) error {
	for _, d := range all {
		d.finding.Repair = r.by
		if r.by == RepairNone || slices.ContainsFunc(r.left, d.same) {
			d.finding.Repair, d.finding.NeedsReview = RepairNone, true
		}
		if err := s.Store.SettleFinding(ctx, run.ID, d.finding); err != nil {
			return fmt.Errorf("settle finding: %w", err)
		}
	}
	return nil
}

// ask asks the PSP about a payment, records what it says, and drives the payment on
// if that was nothing new. An answer about other money, or another charge, is not recorded.
func (s *Service) ask(ctx context.Context, p payment.Payment, reference string) (Repair, error) {
	if p.PSPReference != "" {
		reference = p.PSPReference
	}
	c, err := s.lookUp(ctx, p.PSP, psp.LookupRequest{Reference: reference, PaymentID: string(p.ID)})
	if err != nil && !errors.Is(err, psp.ErrNotFound) {
		return RepairNone, err
	}
	if err == nil && c.PaymentID == string(p.ID) && c.Amount == p.Amount {
		next, err := s.Charges.Learn(ctx, p, journal.SourceReconciler, c)
		if err != nil && !refused(err) {
			return RepairNone, fmt.Errorf("record what %s says of %s: %w", p.PSP, p.ID, err)
		}
		if next.Version > p.Version {
			return Recorded, nil
		}
	}
	next, err := s.Charges.Drive(ctx, p.ID, journal.SourceReconciler)
	if err != nil {
		return RepairNone, fmt.Errorf("drive %s on: %w", p.ID, err)
	}
	if next.Version > p.Version {
		return DrivenOn, nil
	}
	return RepairNone, nil
}

// refused reports an error by which the domain says that a fact does not fit.
func refused(err error) bool {
	if _, ok := errors.AsType[*payment.TransitionError](err); ok {
		return true
	}
	_, ok := errors.AsType[*payment.MismatchError](err)
	return ok
}
