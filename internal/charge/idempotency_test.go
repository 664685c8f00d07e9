package charge_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

// operation is one kind of request with an effect at the PSP, on a payment that is
// ready for it.
type operation struct {
	name  string
	ready Order
	sends psptest.Operation
	do    func(w *World, id payment.ID) (charge.Result, error)
	other func(w *World, id payment.ID) (charge.Result, error) // the same key, another body
	done  func(r charge.Result) bool
}

var operations = []operation{
	{
		name: "create", sends: psptest.OperationCreate,
		do:    func(w *World, _ payment.ID) (charge.Result, error) { return w.Charge("k", Order{}) },
		other: func(w *World, _ payment.ID) (charge.Result, error) { return w.Charge("k", Order{Amount: 1}) },
		done:  func(r charge.Result) bool { return r.Payment.Status == payment.StatusCaptured },
	},
	{
		name: "capture", ready: Order{Manual: true}, sends: psptest.OperationCapture,
		do:    func(w *World, id payment.ID) (charge.Result, error) { return w.Capture("k", id, 3000) },
		other: func(w *World, id payment.ID) (charge.Result, error) { return w.Capture("k", id, 1) },
		done:  func(r charge.Result) bool { return r.Payment.Status == payment.StatusCaptured },
	},
	{
		name: "refund", ready: Order{}, sends: psptest.OperationRefund,
		do:    func(w *World, id payment.ID) (charge.Result, error) { return w.Refund("k", id, 3000) },
		other: func(w *World, id payment.ID) (charge.Result, error) { return w.Refund("k", id, 1) },
		done:  func(r charge.Result) bool { return r.Refund().Status == payment.RefundSucceeded },
	},
}

// begin is a world with a payment that is ready for the operation.
func (o operation) begin(t *testing.T) (*World, payment.ID) {
	w := New(t)
	if o.sends == psptest.OperationCreate {
		return w, ""
	}
	r, err := w.Charge("ready", o.ready)
	if err != nil {
		t.Fatal(err)
	}
	w.PSP.Drain()
	return w, r.Payment.ID
}

func each(t *testing.T, test func(t *testing.T, o operation)) {
	for _, o := range operations {
		t.Run(o.name, func(t *testing.T) { test(t, o) })
	}
}

// wantDone ends the test unless the request did its work, and said that it is a
// repeat if it is one.
func wantDone(t *testing.T, o operation, r charge.Result, err error, replayed bool) {
	t.Helper()
	if err != nil || !o.done(r) || r.Replayed != replayed {
		t.Fatalf("got %s replayed %t, %v, want %s done, replayed %t", r.Payment.Status, r.Replayed, err, o.name, replayed)
	}
}

func TestARepeatAfterTheEndIsTheSameResource(t *testing.T) {
	each(t, func(t *testing.T, o operation) {
		w, id := o.begin(t)
		first, err := o.do(w, id)
		wantDone(t, o, first, err, false)
		again, err := o.do(w, id)
		wantDone(t, o, again, err, true)
		if again.Payment.ID != first.Payment.ID || again.RefundID != first.RefundID || again.Payment.Version != first.Payment.Version {
			t.Errorf("got %s %s version %d, want %s %s version %d", again.Payment.ID, again.RefundID, again.Payment.Version,
				first.Payment.ID, first.RefundID, first.Payment.Version)
		}
		w.WantCalls(o.sends, 1)
	})
}

func TestAnotherBodyIsRefusedAlsoInFlight(t *testing.T) {
	each(t, func(t *testing.T, o operation) {
		w, id := o.begin(t)
		refused := func(w *World, id payment.ID) {
			t.Helper()
			if _, err := o.other(w, id); !errors.Is(err, idempotency.ErrKeyReused) {
				t.Errorf("got %v, want %v", err, idempotency.ErrKeyReused)
			}
		}
		w.OnCall(o.sends, Then(func() { refused(w, id) }))
		r, err := o.do(w, id)
		wantDone(t, o, r, err, false)
		refused(w, id)
		w.WantCalls(o.sends, 1)
	})
}

func TestARepeatInFlightIsToldToWait(t *testing.T) {
	each(t, func(t *testing.T, o operation) {
		w, id := o.begin(t)
		w.OnCall(o.sends, Then(func() {
			w.Clock.Advance(Durations.InProgressTTL - time.Second)
			_, err := o.do(w, id)
			if e, ok := errors.AsType[*charge.InProgressError](err); !ok || e.RetryAfter != time.Second {
				t.Errorf("got %v, want in progress for a second", err)
			}
		}))
		r, err := o.do(w, id)
		wantDone(t, o, r, err, false)
		w.WantCalls(o.sends, 1)
	})
}

func TestARequestThatDiedIsTakenOverWithTheSameKey(t *testing.T) {
	deaths := map[string]func(w *World, o operation){
		"before the call":   func(w *World, o operation) { w.OnCall(o.sends, w.Die) },
		"before its answer": func(w *World, o operation) { w.OnAnswer(o.sends, w.Die) },
		"before the record": func(w *World, o operation) {
			w.Store.Before(Row(payment.EventCaptured, payment.EventRefundSucceeded), w.Die)
		},
	}
	for when, dies := range deaths {
		t.Run(when, func(t *testing.T) {
			each(t, func(t *testing.T, o operation) {
				w, id := o.begin(t)
				w.Crash(func() {
					dies(w, o)
					o.do(w, id)
				})
				w.Clock.Advance(Durations.InProgressTTL - time.Millisecond)
				if _, err := o.do(w, id); !InProgress(err) {
					t.Fatalf("got %v, want in progress until the time is over", err)
				}
				w.Clock.Advance(time.Millisecond)
				r, err := o.do(w, id)
				wantDone(t, o, r, err, true)
				w.WantCalls(o.sends, 2)
				if calls := w.Calls(o.sends); calls[0].Key != calls[1].Key {
					t.Errorf("got keys %s and %s, want one", calls[0].Key, calls[1].Key)
				}
			})
		})
	}
}

func TestARequestThatDiedIsFinishedByTheSweep(t *testing.T) {
	each(t, func(t *testing.T, o operation) {
		w, id := o.begin(t)
		w.Crash(func() {
			w.OnCall(o.sends, w.Die)
			o.do(w, id)
		})
		w.Pass(2 * time.Minute)
		r, err := o.do(w, id)
		wantDone(t, o, r, err, true)
		w.WantCalls(o.sends, 2)
	})
}

func TestOneOfTwoSimultaneousTakeoversWins(t *testing.T) {
	sent := Row(payment.EventSent, payment.EventCaptureRequested, payment.EventRefundSent)
	each(t, func(t *testing.T, o operation) {
		w, id := o.begin(t)
		w.Crash(func() {
			w.OnCall(o.sends, w.Die)
			o.do(w, id)
		})
		w.Clock.Advance(Durations.InProgressTTL)
		w.Store.Before(sent, Then(func() { // the second is about to take over when the first does
			w.OnCall(o.sends, Then(func() {
				if _, err := o.do(w, id); !InProgress(err) { // a third sees the first at work
					t.Errorf("third: got %v, want in progress", err)
				}
			}))
			r, err := o.do(w, id)
			wantDone(t, o, r, err, true)
		}))
		r, err := o.do(w, id)
		wantDone(t, o, r, err, true)
		w.WantCalls(o.sends, 2)
	})
}

func TestALosingTakeoverWaitsForTheWinner(t *testing.T) {
	sent := Row(payment.EventSent, payment.EventCaptureRequested, payment.EventRefundSent)
	each(t, func(t *testing.T, o operation) {
		w, id := o.begin(t)
		w.Crash(func() {
			w.OnCall(o.sends, w.Die)
			o.do(w, id)
		})
		w.Clock.Advance(Durations.InProgressTTL)
		w.Store.Before(sent, Then(func() {
			w.Crash(func() { // the winner is still on the line when the loser decides anew
				w.OnCall(o.sends, w.Die)
				o.do(w, id)
			})
		}))
		if _, err := o.do(w, id); !InProgress(err) {
			t.Fatalf("got %v, want in progress: the time began anew", err)
		}
		w.WantCalls(o.sends, 2)
	})
}

func TestAKeyExpiresOnlyWhenItsResourceIsAtRest(t *testing.T) {
	each(t, func(t *testing.T, o operation) {
		w, id := o.begin(t)
		first, err := o.do(w, id)
		wantDone(t, o, first, err, false)
		w.WantRest(first.Payment.ID)
		w.Clock.Advance(Durations.IdempotencyTTL - time.Millisecond)
		again, err := o.do(w, id)
		wantDone(t, o, again, err, true)
		w.Clock.Advance(time.Millisecond)
		switch o.name {
		case "create":
			fresh, err := o.other(w, id)
			if err != nil || fresh.Replayed || fresh.Payment.ID == first.Payment.ID {
				t.Errorf("got %s replayed %t, %v, want a payment of its own", fresh.Payment.ID, fresh.Replayed, err)
			}
		case "capture":
			if _, err := o.do(w, id); !errors.Is(err, charge.ErrInvalidStatus) {
				t.Errorf("got %v, want %v: it is captured", err, charge.ErrInvalidStatus)
			}
		case "refund":
			fresh, err := o.other(w, id)
			if err != nil || fresh.Replayed || fresh.RefundID == first.RefundID {
				t.Errorf("got %s replayed %t, %v, want a refund of its own", fresh.RefundID, fresh.Replayed, err)
			}
		}
	})
}

func TestAKeyDoesNotExpireWhileItsPaymentIsOpen(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Manual: true}, payment.StatusAuthorized)
	w.Clock.Advance(10 * Durations.IdempotencyTTL)
	r, err := w.Charge("k", Order{Manual: true})
	if err != nil || !r.Replayed || r.Payment.ID != p.ID {
		t.Fatalf("got %s replayed %t, %v, want a replay of %s", r.Payment.ID, r.Replayed, err, p.ID)
	}
	if _, err := w.Charge("k", Order{}); !errors.Is(err, idempotency.ErrKeyReused) {
		t.Fatalf("other body: got %v, want %v", err, idempotency.ErrKeyReused)
	}
}

func TestOneOfTwoRequestsWithAnExpiredKeyWins(t *testing.T) {
	w := New(t)
	old := w.Charged("k", Order{}, payment.StatusCaptured)
	w.Clock.Advance(Durations.IdempotencyTTL)
	var winner payment.Payment
	expired := func() error {
		winner = w.Charged("k", Order{}, payment.StatusCaptured)
		return nil
	}
	// The first attempt of the loser finds the old record; the second is overtaken.
	w.Store.Before(Row(payment.EventCreated), Then(func() { w.Store.Before(Row(payment.EventCreated), expired) }))
	r, err := w.Charge("k", Order{})
	if err != nil || !r.Replayed || r.Payment.ID != winner.ID || winner.ID == old.ID {
		t.Fatalf("got %s replayed %t, %v, want a replay of the winner %s", r.Payment.ID, r.Replayed, err, winner.ID)
	}
	w.WantCalls(psptest.OperationCreate, 2)
}

func TestARefusedRequestLeavesItsKeyFree(t *testing.T) {
	w := New(t)
	p := w.Charged("ready", Order{Manual: true}, payment.StatusAuthorized)
	if _, err := w.Capture("k", p.ID, 5001); !errors.Is(err, payment.ErrAmountTooLarge) {
		t.Fatalf("got %v, want %v", err, payment.ErrAmountTooLarge)
	}
	r, err := w.Capture("k", p.ID, 5000)
	if err != nil || r.Replayed || r.Payment.Status != payment.StatusCaptured {
		t.Fatalf("got %s replayed %t, %v, want a first use", r.Payment.Status, r.Replayed, err)
	}
	if _, err := w.Refund("k", p.ID, 5001); !errors.Is(err, payment.ErrAmountTooLarge) {
		t.Fatalf("got %v, want %v", err, payment.ErrAmountTooLarge)
	}
	w.Refunded("k", p.ID, 5000, payment.RefundSucceeded)
}

func TestAReplayShowsTheResourceAsItIsNow(t *testing.T) {
	w := New(t)
	order := Order{Token: psptest.TokenPending}
	p := w.Charged("k", order, payment.StatusProcessing)
	w.PSP.Approve(string(p.ID))
	w.Deliver(w.PSP.Drain()...)
	refund := w.Refunded("r", p.ID, 1000, payment.RefundSucceeded)
	r, err := w.Charge("k", order)
	if err != nil || r.Payment.Status != payment.StatusCaptured || r.Payment.AmountRefunded() != 1000 {
		t.Errorf("got %s refunded %d, %v, want captured and 1000", r.Payment.Status, r.Payment.AmountRefunded(), err)
	}
	w.PSP.Drain()
	w.PSP.SettleRefund(string(refund.ID), "failed")
	w.Deliver(w.PSP.Drain()...)
	rr, err := w.Refund("r", p.ID, 1000)
	if err != nil || rr.Refund().Status != payment.RefundFailed {
		t.Errorf("got %s, %v, want it failed meanwhile", rr.Refund().Status, err)
	}
}

func TestARecordThatTheTableDeletedIsNoObstacle(t *testing.T) {
	w := New(t)
	w.Charged("k", Order{}, payment.StatusCaptured)
	w.Clock.Advance(Durations.IdempotencyTTL)
	// Between finding it expired and taking its place, the table deletes it.
	w.Store.Before(Row(payment.EventCreated), Then(func() {
		w.Store.Before(Row(payment.EventCreated), Then(func() { w.Store.Delete(w.Context(), "RECORD") }))
	}))
	r, err := w.Charge("k", Order{})
	if err != nil || r.Replayed || r.Payment.Status != payment.StatusCaptured {
		t.Fatalf("got %s replayed %t, %v, want a new payment", r.Payment.Status, r.Replayed, err)
	}
}

func TestAConflictOfTheRecordAloneIsDecidedAnew(t *testing.T) {
	w := New(t)
	p := w.Charged("ready", Order{Manual: true}, payment.StatusAuthorized)
	record := store.Item{"resource_id": string(p.ID), "fingerprint": "x"}
	w.Store.Before(Row(payment.EventCaptureRequested), func() error { return Refusing(2, record) })
	r, err := w.Capture("k", p.ID, 0)
	if err != nil || r.Replayed || r.Payment.Status != payment.StatusCaptured {
		t.Fatalf("got %s replayed %t, %v, want a first use", r.Payment.Status, r.Replayed, err)
	}
}

// A request that died, and whose key is too old at the PSP to be sent again, is
// shown as it is.
func TestATakeoverPastHalfItsKeysLifeSendsNothing(t *testing.T) {
	each(t, func(t *testing.T, o operation) {
		if o.sends == psptest.OperationCreate {
			return // its deadline is long over then
		}
		w, id := o.begin(t)
		w.Crash(func() {
			w.OnCall(o.sends, w.Die)
			o.do(w, id)
		})
		w.Clock.Advance(12*time.Hour - time.Second)
		w.Crash(func() { // while it is young it is taken over
			w.OnCall(o.sends, w.Die)
			o.do(w, id)
		})
		w.Clock.Advance(time.Minute)
		r, err := o.do(w, id)
		if err != nil || !r.Replayed || o.done(r) {
			t.Fatalf("got %s replayed %t, %v, want it as it is", r.Payment.Status, r.Replayed, err)
		}
		w.WantCalls(o.sends, 2)
	})
}
