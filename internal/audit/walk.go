package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// walk is the work of one call on a run. What it has read of the run stays good: a
// file never changes, and what was met is complete once our side is read.
type walk struct {
	s       *Service
	stopped bool
	entries []Entry
	parsed  bool
	met     map[payment.ID]bool
}

// workers is how many rows of a page are looked at at once: each mostly waits for the
// store or the PSP.
const workers = 8

// page does one page of a run. It returns the run after it and the payments that it
// met on the PSP's side, or the first error.
func (w *walk) page(ctx context.Context, run Run) (next Run, met []payment.ID, err error) {
	switch {
	case run.Phase == PhaseLog:
		next, err = w.log(ctx, run)
	case run.Phase == PhaseHere:
		next, err = w.here(ctx, run)
	case run.Source == SourceFile:
		next, err = w.file(ctx, run)
	default:
		next, met, err = w.list(ctx, run)
	}
	if err == nil {
		next.Stops = 0
	}
	return next, met, err
}

// list does one page of the PSP's own list.
func (w *walk) list(ctx context.Context, run Run) (Run, []payment.ID, error) {
	lister := w.s.Listers[run.PSP]
	if lister == nil {
		return run, nil, ErrUnknownPSP
	}
	charges, next, err := lister.List(ctx, run.From, run.Cursor)
	if err != nil {
		return run, nil, fmt.Errorf("list charges: %w", err)
	}
	var met []payment.ID
	for _, c := range charges {
		if id := payment.ID(c.PaymentID); id.WellFormed() {
			met = append(met, id)
		}
	}
	err = each(charges, func(c psp.Charge) error { return w.s.charge(ctx, run, c) })
	if err != nil {
		return run, nil, err
	}
	run.Charges += int64(len(charges))
	run.Pages++
	run.Cursor = next
	if next == "" {
		run.Phase = PhaseLog
	}
	return run, met, nil
}

// file does one page of a settlement file. Its cursor is the number of good rows
// that are done.
func (w *walk) file(ctx context.Context, run Run) (Run, error) {
	entries, err := w.rows(ctx, run)
	if err != nil {
		return run, err
	}
	done, _ := strconv.Atoi(run.Cursor) // "" is none
	page := entries[min(done, len(entries)):min(done+pageSize, len(entries))]
	if err := each(page, func(e Entry) error { return w.s.entry(ctx, run, e) }); err != nil {
		return run, err
	}
	run.Charges += int64(len(page))
	done += len(page)
	run.Cursor = strconv.Itoa(done)
	if done < len(entries) {
		return run, nil
	}
	run.Cursor, run.Phase = "", PhaseLog
	if run.From.IsZero() { // the file does not say what period it covers
		run.Status = StatusCompleted
	}
	return run, nil
}

// rows are the good rows of the run's file.
func (w *walk) rows(ctx context.Context, run Run) ([]Entry, error) {
	if w.parsed {
		return w.entries, nil
	}
	text, err := w.s.Store.File(ctx, run.ID)
	if err != nil {
		return nil, fmt.Errorf("read file of %s: %w", run.ID, err)
	}
	settlement, err := ParseSettlement(run.PSP, text)
	if err != nil {
		return nil, err
	}
	w.entries, w.parsed = settlement.Entries, true
	return w.entries, nil
}

// here does one page of one merchant's feed, or goes to the next merchant.
func (w *walk) here(ctx context.Context, run Run) (Run, error) {
	if err := w.load(ctx, run); err != nil {
		return run, err
	}
	if run.Merchant == "" || run.Cursor == "" {
		next, err := w.s.Store.NextMerchant(ctx, run.Merchant)
		if err != nil {
			return run, fmt.Errorf("read merchants: %w", err)
		}
		if run.Merchant = next; next == "" {
			run.Status = StatusCompleted
			return run, nil
		}
	}
	page, next, err := w.s.Store.Happened(ctx, run.Merchant, Window{From: run.From, To: run.To, Cursor: run.Cursor, Limit: pageSize})
	if err != nil {
		return run, fmt.Errorf("read feed of %s: %w", run.Merchant, err)
	}
	var mu sync.Mutex
	var seen int64
	err = each(page, func(h Happening) error {
		ours, err := w.happened(ctx, run, h)
		mu.Lock()
		defer mu.Unlock()
		seen += ours
		return err
	})
	run.Cursor = next
	run.Payments += seen
	return run, err
}

// load reads which payments the PSP's side has met.
func (w *walk) load(ctx context.Context, run Run) error {
	if w.met != nil {
		return nil
	}
	met := map[payment.ID]bool{}
	if run.Source == SourceFile {
		entries, err := w.rows(ctx, run)
		if err != nil {
			return err
		}
		for _, e := range entries {
			met[payment.ID(e.PaymentID)] = met[payment.ID(e.PaymentID)] || e.Kind == EntryCapture || e.Kind == EntryChargeFailed
		}
	} else if err := w.s.Store.Met(ctx, run.ID, func(id payment.ID) { met[id] = true }); err != nil {
		return fmt.Errorf("read what %s has met: %w", run.ID, err)
	}
	w.met = met
	return nil
}

// happened looks at what an event of a feed is about. It returns 1 for a captured
// payment of the run's PSP, else 0.
func (w *walk) happened(ctx context.Context, run Run, h Happening) (int64, error) {
	subject, _, ok := outbox.ParseEventID(h.EventID)
	if !ok {
		return 0, nil
	}
	switch h.Type {
	case string(payment.EventCaptured), string(payment.EventLateCaptured):
		return w.captured(ctx, run, payment.ID(subject))
	case "checkout.completed", "checkout.failed":
		return 0, w.s.ended(ctx, run, subject)
	}
	return 0, nil
}

func (w *walk) captured(ctx context.Context, run Run, id payment.ID) (int64, error) {
	p, err := w.s.Store.Payment(ctx, id)
	if errors.Is(err, journal.ErrNotFound) || err == nil && p.PSP != run.PSP {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read payment %s: %w", id, err)
	}
	if !w.met[id] {
		if err := w.s.unmet(ctx, run, p); err != nil {
			return 0, err
		}
	}
	if p.CheckoutID == "" {
		return 1, nil
	}
	return 1, w.s.shop(ctx, run, p.CheckoutID)
}

// each does something with every row of a page, some at once, and joins the errors.
func each[T any](page []T, do func(T) error) error {
	var all sync.WaitGroup
	errs := make([]error, len(page))
	slots := make(chan struct{}, workers)
	for i, row := range page {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(row)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// describe cuts what the PSP or the file wrote to what a finding keeps.
func describe(text string) string {
	if len(text) > maxField {
		text = text[:maxField]
	}
	return strings.ToValidUTF8(text, "")
}
