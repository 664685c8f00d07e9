package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/payment"
)

// view is a checkout with all that belongs to it.
type view struct {
	checkout checkout.Checkout
	payment  payment.Payment
	held     inventory.Status
	ordered  bool
}

func (s *Service) view(ctx context.Context, id string) (v view, found bool, err error) {
	v.checkout, err = s.Store.Checkout(ctx, id)
	if errors.Is(err, checkout.ErrNotFound) {
		return view{}, false, nil
	}
	if err != nil {
		return view{}, false, fmt.Errorf("read checkout %s: %w", id, err)
	}
	c := v.checkout
	if v.payment, err = s.Store.Payment(ctx, c.PaymentID); err != nil {
		return view{}, false, fmt.Errorf("read payment of %s: %w", id, err)
	}
	if v.held, err = s.Stock.Held(ctx, c.MerchantID, id); err != nil {
		return view{}, false, fmt.Errorf("read stock of %s: %w", id, err)
	}
	made, err := s.Orders.Get(ctx, c.MerchantID, order.ID(id))
	if err != nil && !errors.Is(err, order.ErrNotFound) {
		return view{}, false, fmt.Errorf("read order of %s: %w", id, err)
	}
	v.ordered = err == nil && made.Status == order.Confirmed
	return v, true, nil
}

// ended holds a checkout that has ended, without money taken, against the shop. One
// with money taken is come to by its payment.
func (s *Service) ended(ctx context.Context, run Run, id string) error {
	c, err := s.Store.Checkout(ctx, id)
	if errors.Is(err, checkout.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read checkout %s: %w", id, err)
	}
	p, err := s.Store.Payment(ctx, c.PaymentID)
	if err != nil {
		return fmt.Errorf("read payment of %s: %w", id, err)
	}
	if p.PSP != run.PSP || p.AmountCaptured > 0 {
		return nil
	}
	return s.shop(ctx, run, id)
}

// shop holds a checkout against its order and its stock, and drives it on if nobody
// does.
func (s *Service) shop(ctx context.Context, run Run, id string) error {
	v, found, err := s.view(ctx, id)
	if err != nil || !found {
		return err
	}
	all := s.compareShop(v)
	if news, err := s.news(ctx, run, all); err != nil || !news {
		return err
	}
	for i := range all {
		d := &all[i]
		d.finding.At, d.finding.NeedsReview = s.Now(), d.remedy == remedyNone
		fresh, err := s.Store.AddFinding(ctx, run.ID, d.finding)
		if err != nil {
			return fmt.Errorf("add finding: %w", err)
		}
		if fresh && d.finding.Kind == StatusDiffers { // an order that nobody paid for
			s.Meter.Count(checkout.MetricOrderWithoutPayment, 1)
		}
		if d.remedy == remedyNone || !run.Repair {
			continue
		}
		if err := s.resume(ctx, run, d.finding); err != nil {
			return err
		}
	}
	return nil
}

// resume drives a checkout on and settles the finding by how that went.
func (s *Service) resume(ctx context.Context, run Run, f Finding) error {
	if err := s.Checkouts.Repair(ctx, f.CheckoutID); err != nil {
		return fmt.Errorf("drive %s on: %w", f.CheckoutID, err)
	}
	v, found, err := s.view(ctx, f.CheckoutID)
	if err != nil {
		return err
	}
	left := found && slices.ContainsFunc(s.compareShop(v), difference{finding: f}.same)
	f.Repair = Resumed
	if left {
		f.Repair, f.NeedsReview = RepairNone, true
	}
	if err := s.Store.SettleFinding(ctx, run.ID, f); err != nil {
		return fmt.Errorf("settle finding: %w", err)
	}
	return nil
}

// compareShop is how a checkout, its payment, its order and its stock differ.
func (s *Service) compareShop(v view) []difference {
	c, p := v.checkout, v.payment
	base := Finding{PaymentID: p.ID, CheckoutID: c.ID, Here: fmt.Sprintf("checkout %s, payment %s", c.Status, p.Status)}
	var all []difference
	add := func(kind Kind, there string, r remedy) {
		f := base
		f.Kind, f.There = kind, there
		all = append(all, difference{f, r})
	}
	stock := "stock " + string(v.held)
	if v.held == inventory.None {
		stock = "no stock"
	}
	switch c.Status {
	case checkout.StatusPending, checkout.StatusRequiresAction:
		if kept(p) && !v.ordered && !c.DueAt.After(s.Now()) {
			add(OrderMissing, "no order", remedyResume) // nobody looks after it
		}
	case checkout.StatusCompleted:
		if !v.ordered {
			add(OrderMissing, "no order", remedyNone)
		}
		if v.held != inventory.Sold {
			add(StockLeaked, stock, remedyNone)
		}
		if p.AmountCaptured == 0 {
			add(StatusDiffers, "an order without a captured payment", remedyNone)
		}
	case checkout.StatusFailed, checkout.StatusNeedsReview:
		if kept(p) && !v.ordered {
			add(OrderMissing, "no order", remedyNone)
		}
		if v.held == inventory.Reserved || v.held == inventory.Sold && !v.ordered {
			add(StockLeaked, stock, remedyNone)
		}
	}
	return all
}

// kept reports that money was taken, and nothing of it is on its way back.
func kept(p payment.Payment) bool { return p.AmountCaptured > 0 && p.Refundable() == p.AmountCaptured }
