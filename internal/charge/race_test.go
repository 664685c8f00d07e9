package charge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/webhook"
)

// permutations are all orders of 0..n-1.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, shorter := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(shorter), at, n-1))
		}
	}
	return all
}

// What the PSP says of one charge by its answer and by its events must end the
// same, whichever comes first.
func TestAnswerAndEventsEndTheSameInEveryOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		order  Order
		status payment.Status
		then   func(w *World, id payment.ID) // what happens at the PSP before its answer is there
	}{
		{"captured", Order{Token: psptest.TokenWebhookReversed}, payment.StatusCaptured, nil},
		{"authorized", Order{Manual: true}, payment.StatusAuthorized, nil},
		{"declined", Order{Token: psptest.TokenDeclined}, payment.StatusFailed, nil},
		{"pending and approved", Order{Token: psptest.TokenPending}, payment.StatusCaptured, func(w *World, id payment.ID) { w.PSP.Approve(string(id)) }},
		{"action and approved", Order{Token: psptest.TokenRequiresAction}, payment.StatusCaptured, func(w *World, id payment.ID) { w.PSP.Approve(string(id)) }},
		{"action and declined", Order{Token: psptest.TokenRequiresAction}, payment.StatusFailed, func(w *World, id payment.ID) { w.PSP.Decline(string(id)) }},
		{"lapsed while it was pending", Order{Token: psptest.TokenPending}, payment.StatusCanceled, func(w *World, id payment.ID) { w.PSP.Lapse(string(id)) }},
	} {
		for before := 0; before <= 2; before++ { // how many events are there before the answer
			for n, order := range permutations(2) {
				t.Run(fmt.Sprintf("%s, %d before the answer, order %d", c.name, before, n), func(t *testing.T) {
					w := New(t)
					id := payment.ID(payment.IDPrefix + ULID(1))
					var events []psptest.Event
					w.OnAnswer(psptest.OperationCreate, Then(func() {
						if c.then != nil {
							c.then(w, id)
						}
						told := w.PSP.Drain()
						for _, at := range order {
							if at < len(told) {
								events = append(events, told[at])
							}
						}
						w.Deliver(events[:min(before, len(events))]...)
					}))
					if _, err := w.Charge("k", c.order); err != nil {
						t.Fatal(err)
					}
					w.Deliver(events[min(before, len(events)):]...)
					w.Deliver(events...) // and all of them once more
					w.Want(id, c.status)
					for _, e := range events {
						w.WantItem(e, webhook.StatusApplied)
					}
				})
			}
		}
	}
}

func TestEveryDeliveryAtOnceWithTheAnswerIsOneCapture(t *testing.T) {
	w := New(t)
	var all sync.WaitGroup
	w.OnAnswer(psptest.OperationCreate, Then(func() {
		for _, e := range w.PSP.Drain() {
			for range 4 {
				all.Go(func() {
					if _, err := w.Ingest.Receive(w.Context(), PSP, w.PSP.Delivery(e, w.Clock.Now())); err != nil {
						t.Error(err)
					}
					if err := w.Applier.Apply(w.Context(), PSP, e.ID); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}))
	p := w.Charged("k", Order{Token: psptest.TokenWebhookTwice}, payment.StatusCaptured)
	all.Wait()
	w.Want(p.ID, payment.StatusCaptured)
}

func TestAStormOfConflictsEndsInTheAnswerOrInTheSweep(t *testing.T) {
	for conflicts := range 10 {
		t.Run(fmt.Sprint(conflicts), func(t *testing.T) {
			w := New(t)
			for range min(conflicts, 8) {
				w.Store.Before(Row(payment.EventCaptured), Refused)
			}
			r, err := w.Charge("k", Order{})
			if (err == nil) != (conflicts < 8) {
				t.Fatalf("got %v after %d conflicts", err, conflicts)
			}
			if err == nil && r.Payment.Status != payment.StatusCaptured {
				t.Fatalf("got %s, want captured", r.Payment.Status)
			}
			w.Pass(time.Minute)
			w.Want(payment.ID(payment.IDPrefix+ULID(1)), payment.StatusCaptured)
			w.WantCalls(psptest.OperationCreate, 1)
		})
	}
}

// A request that keeps losing its races decides anew each time, and sends nothing.
func TestAnIntentThatLosesItsRacesIsDecidedAnew(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Manual: true}, payment.StatusAuthorized)
	for range 3 {
		w.Store.Before(Row(payment.EventCaptureRequested), Refused)
	}
	w.Store.Before(Row(payment.EventCaptureRequested), Then(func() {
		if _, err := w.Cancel("c", p.ID); err != nil {
			t.Fatal(err)
		}
	}))
	if _, err := w.Capture("k", p.ID, 0); !errors.Is(err, charge.ErrInvalidStatus) {
		t.Fatalf("got %v, want %v: it was canceled meanwhile", err, charge.ErrInvalidStatus)
	}
	w.WantCalls(psptest.OperationCapture, 0)
	w.Want(p.ID, payment.StatusCanceled)
}

func TestARequestWaitsLongerAfterEachRaceAndGivesUpInTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		order Order
		row   payment.EventType
		do    func(w *World, id payment.ID) error
	}{
		"charge":  {Order{}, payment.EventCreated, func(w *World, _ payment.ID) error { _, err := w.Charge("new", Order{}); return err }},
		"capture": {Order{Manual: true}, payment.EventCaptureRequested, func(w *World, id payment.ID) error { _, err := w.Capture("c", id, 0); return err }},
		"cancel":  {Order{Manual: true}, payment.EventCancelRequested, func(w *World, id payment.ID) error { _, err := w.Cancel("c", id); return err }},
		"refund":  {Order{}, payment.EventRefundRequested, func(w *World, id payment.ID) error { _, err := w.Refund("r", id, 0); return err }},
		"undo": {Order{Manual: true}, payment.EventCancelRequested, func(w *World, id payment.ID) error {
			_, _, err := w.Charges.Compensate(w.Context(), id, 1)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := New(t)
			id := charged(c.order)(t, w)
			var pauses []int
			w.Charges.Journal.Pause = func(_ context.Context, n int) error {
				pauses = append(pauses, n)
				return nil
			}
			for range 8 {
				w.Store.Before(Row(c.row), Refused)
			}
			if err := c.do(w, id); !errors.Is(err, journal.ErrBusy) {
				t.Fatalf("got %v, want %v", err, journal.ErrBusy)
			}
			if fmt.Sprint(pauses) != "[1 2 3 4 5 6 7]" {
				t.Errorf("got pauses %v, want one between two attempts", pauses)
			}
			pauses = nil
			for range 2 {
				w.Store.Before(Row(c.row), Refused)
			}
			if err := c.do(w, id); err != nil {
				t.Fatalf("after two races: %v", err)
			}
			if fmt.Sprint(pauses) != "[1 2]" {
				t.Errorf("got pauses %v, want two", pauses)
			}
		})
	}
}
