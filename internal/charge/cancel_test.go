package charge_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestCancelOfEveryPayment(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(t *testing.T, w *World) payment.ID
		want  payment.Status // right after
		err   error
		looks int
		voids int
	}{
		{"pending", charged(Order{Token: psptest.TokenPending}), payment.StatusCanceled, nil, 0, 1},
		{"requires_action", charged(Order{Token: psptest.TokenRequiresAction}), payment.StatusCanceled, nil, 0, 1},
		{"authorized", charged(Order{Manual: true}), payment.StatusCanceled, nil, 0, 1},
		{"captured", charged(Order{}), payment.StatusCaptured, charge.ErrCaptured, 0, 0},
		{"failed", charged(Order{Token: psptest.TokenDeclined}), payment.StatusFailed, charge.ErrInvalidStatus, 0, 0},
		{
			"canceled", then(charged(Order{Token: psptest.TokenPending}), func(w *World, id payment.ID) { w.Cancel("first", id) }),
			payment.StatusCanceled, charge.ErrInvalidStatus, 0, 1,
		},
		{"refunded", then(charged(Order{}), func(w *World, id payment.ID) { w.Refund("r", id, 0) }), payment.StatusRefunded, charge.ErrInvalidStatus, 0, 0},
		{"in doubt, captured at the psp", charged(Order{Token: psptest.TokenTimeoutCaptured}), payment.StatusCaptured, charge.ErrCaptured, 1, 0},
		{"in doubt, nothing at the psp", charged(Order{Token: psptest.TokenTimeoutNothing}), payment.StatusProcessing, nil, 1, 0},
		{"in doubt, nothing for long", then(charged(Order{Token: psptest.TokenTimeoutNothing}), later(Arrival)), payment.StatusCanceled, nil, 2, 0},
		{"in doubt, held at the psp", charged(Order{Token: psptest.TokenErrorCaptured, Manual: true}), payment.StatusCanceled, nil, 1, 1},
		{"in doubt, declined at the psp", lostAnswer(Order{Token: psptest.TokenDeclined}), payment.StatusFailed, charge.ErrInvalidStatus, 1, 0},
		{"throttled", charged(Order{Token: psptest.TokenRateLimitedOnce}), payment.StatusCanceled, nil, 1, 0},
		{"capture in doubt, captured at the psp", then(charged(Order{Manual: true}), lost(psptest.OperationCapture, captureAll)), payment.StatusCaptured, charge.ErrCaptured, 1, 0},
		{"capture in doubt, not arrived", then(charged(Order{Manual: true}), unsent(psptest.OperationCapture, captureAll)), payment.StatusAuthorized, nil, 1, 0},
		{"capture in doubt for long", then(then(charged(Order{Manual: true}), unsent(psptest.OperationCapture, captureAll)), later(Arrival)), payment.StatusCanceled, nil, 2, 1},
		{"capture refused", then(charged(Order{Manual: true}), refusedOnce(psptest.OperationCapture, captureAll)), payment.StatusCanceled, nil, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := New(t)
			id := c.begin(t, w)
			r, err := w.Cancel("c", id)
			if !errors.Is(err, c.err) || (err == nil && r.Payment.Status != c.want) {
				t.Fatalf("got %s, %v, want %s, %v", r.Payment.Status, err, c.want, c.err)
			}
			p := w.Want(id, c.want)
			if err == nil && p.CancelCause != payment.CancelByMerchant {
				t.Errorf("got cause %q, want the merchant's", p.CancelCause)
			}
			w.WantCalls(psptest.OperationLookup, c.looks)
			w.WantCalls(psptest.OperationCancel, c.voids)
			if p.Status != payment.StatusCanceled {
				return
			}
			if p.Failure != nil {
				t.Errorf("got failure %+v, want none: it was wanted", p.Failure)
			}
			again, err := w.Cancel("c", id)
			if c.err == nil && (err != nil || !again.Replayed || again.Payment.Status != payment.StatusCanceled) {
				t.Errorf("again: got %s replayed %t, %v, want the canceled payment", again.Payment.Status, again.Replayed, err)
			}
			w.WantCalls(psptest.OperationCancel, c.voids)
		})
	}
}

// Beginnings of tests.

func charged(o Order) func(*testing.T, *World) payment.ID {
	return func(t *testing.T, w *World) payment.ID {
		t.Helper()
		r, err := w.Charge("begin", o)
		if err != nil {
			t.Fatal(err)
		}
		return r.Payment.ID
	}
}

func lostAnswer(o Order) func(*testing.T, *World) payment.ID {
	return func(t *testing.T, w *World) payment.ID {
		w.OnAnswer(psptest.OperationCreate, Lost)
		return charged(o)(t, w)
	}
}

func then(begin func(*testing.T, *World) payment.ID, next func(*World, payment.ID)) func(*testing.T, *World) payment.ID {
	return func(t *testing.T, w *World) payment.ID {
		id := begin(t, w)
		next(w, id)
		return id
	}
}

func later(d time.Duration) func(*World, payment.ID) {
	return func(w *World, _ payment.ID) { w.Clock.Advance(d) }
}

func captureAll(w *World, id payment.ID) { w.Capture("capture", id, 0) }

// lost does something whose answer is lost, unsent something whose request is.
func lost(operation psptest.Operation, do func(*World, payment.ID)) func(*World, payment.ID) {
	return func(w *World, id payment.ID) {
		w.OnAnswer(operation, Lost)
		do(w, id)
	}
}

func unsent(operation psptest.Operation, do func(*World, payment.ID)) func(*World, payment.ID) {
	return func(w *World, id payment.ID) {
		w.OnCall(operation, Lost)
		do(w, id)
	}
}

func refusedOnce(operation psptest.Operation, do func(*World, payment.ID)) func(*World, payment.ID) {
	return func(w *World, id payment.ID) {
		w.OnCall(operation, func() error { return &psp.Error{Operation: string(operation), Outcome: psp.OutcomeRejected} })
		do(w, id)
	}
}

func TestACancelWhileTheChargeIsOnItsWayTakesEffectWithTheAnswer(t *testing.T) {
	for _, c := range []struct {
		order Order
		want  payment.Status
	}{
		{Order{}, payment.StatusCaptured}, // it was faster; refund it
		{Order{Manual: true}, payment.StatusCanceled},
		{Order{Token: psptest.TokenPending}, payment.StatusCanceled},
		{Order{Token: psptest.TokenRequiresAction}, payment.StatusCanceled},
		{Order{Token: psptest.TokenDeclined}, payment.StatusFailed},
	} {
		t.Run(c.order.Token, func(t *testing.T) {
			w := New(t)
			id := payment.ID(payment.IDPrefix + ULID(1))
			w.OnCall(psptest.OperationCreate, Then(func() {
				r, err := w.Cancel("c", id)
				if err != nil || r.Payment.Status != payment.StatusProcessing {
					t.Errorf("cancel: got %s, %v, want it to wait", r.Payment.Status, err)
				}
			}))
			p := w.Charged("k", c.order, c.want)
			w.Want(p.ID, c.want)
			if v := p.View(); v.NextAction != nil {
				t.Error("the answer shows a redirect of a canceled payment")
			}
			w.PSP.Approve(string(id)) // nothing is left to approve
			w.Deliver(w.PSP.Drain()...)
			w.Pass(23 * time.Hour)
			w.Want(p.ID, c.want)
			if r, err := w.Cancel("c", id); err != nil || !r.Replayed || r.Payment.Status != c.want {
				t.Errorf("replay: got %s, %v, want %s", r.Payment.Status, err, c.want)
			}
		})
	}
}

func TestAfterACancelNoChargeLeavesAnyMore(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenTimeoutNothing}, payment.StatusProcessing)
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(Durations.InProgressTTL)
	if _, err := w.Charge("k", Order{Token: psptest.TokenTimeoutNothing}); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Hour)
	w.WantCalls(psptest.OperationCreate, 1)
	w.Want(p.ID, payment.StatusCanceled)
}

func TestACancelInDoubtWithoutAnAnswerIsCommittedAllTheSame(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenTimeoutNothing}, payment.StatusProcessing)
	w.OnCall(psptest.OperationLookup, Lost)
	r, err := w.Cancel("c", p.ID)
	if err != nil || r.Payment.Status != payment.StatusProcessing || r.Payment.CancelCause == "" {
		t.Fatalf("got %s cause %q, %v, want it to wait", r.Payment.Status, r.Payment.CancelCause, err)
	}
	w.Pass(time.Minute)
	w.Want(p.ID, payment.StatusCanceled)
}

func TestTwoCancelsAreOneVoid(t *testing.T) {
	t.Run("one after the other", func(t *testing.T) {
		w := New(t)
		p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
		w.OnCall(psptest.OperationCancel, Then(func() {
			r, err := w.Cancel("c2", p.ID)
			if err != nil || !r.Payment.Status.Open() {
				t.Errorf("second: got %s, %v, want it to wait", r.Payment.Status, err)
			}
		}))
		r, err := w.Cancel("c1", p.ID)
		if err != nil || r.Payment.Status != payment.StatusCanceled {
			t.Fatalf("first: got %s, %v, want canceled", r.Payment.Status, err)
		}
		w.WantCalls(psptest.OperationCancel, 1)
		again, err := w.Cancel("c2", p.ID)
		if err != nil || !again.Replayed || again.Payment.Status != payment.StatusCanceled {
			t.Errorf("replay: got %s, %v, want canceled", again.Payment.Status, err)
		}
	})
	t.Run("at once", func(t *testing.T) {
		w := New(t)
		p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
		w.Store.Before(Row(payment.EventCancelRequested), Then(func() { w.Cancel("c2", p.ID) }))
		if _, err := w.Cancel("c1", p.ID); !errors.Is(err, charge.ErrInvalidStatus) {
			t.Fatalf("got %v, want %v: it is canceled", err, charge.ErrInvalidStatus)
		}
		w.WantCalls(psptest.OperationCancel, 1)
	})
}

func TestACancelsKeyWithAnotherBodyIsRefused(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	request := Request(Merchant, "/v1/payments/"+string(p.ID)+"/cancel", "c", "another")
	if _, err := w.Charges.Cancel(w.Context(), charge.CancelRequest{Request: request, PaymentID: p.ID}); !errors.Is(err, idempotency.ErrKeyReused) {
		t.Errorf("got %v, want %v", err, idempotency.ErrKeyReused)
	}
}

func TestACancelWhoseProcessDiesIsFinished(t *testing.T) {
	for name, dies := range map[string]func(w *World){
		"before the void is decided": func(w *World) { w.Store.After(Row(payment.EventCancelRequested), w.Die) },
		"before the void":            func(w *World) { w.OnCall(psptest.OperationCancel, w.Die) },
		"before its answer":          func(w *World) { w.OnAnswer(psptest.OperationCancel, w.Die) },
		"before it is recorded":      func(w *World) { w.Store.Before(Row(payment.EventVoided), w.Die) },
	} {
		t.Run(name, func(t *testing.T) {
			w := New(t)
			p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
			w.Crash(func() {
				dies(w)
				w.Cancel("c", p.ID)
			})
			w.Pass(2 * time.Minute)
			r, err := w.Cancel("c", p.ID)
			if err != nil || !r.Replayed || r.Payment.Status != payment.StatusCanceled {
				t.Fatalf("got %s replayed %t, %v, want canceled", r.Payment.Status, r.Replayed, err)
			}
			if c := w.PSP.Charges()[0]; c.Status != psp.StatusCanceled {
				t.Errorf("the psp's charge is %s, want it voided", c.Status)
			}
		})
	}
}

func TestAVoidThatThePSPRefusesIsLookedInto(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	w.PSP.Before(psptest.OperationCancel, func() error { return &psp.Error{Operation: "cancel", Outcome: psp.OutcomeRejected} })
	r, err := w.Cancel("c", p.ID)
	if err != nil || !r.Payment.Status.Open() {
		t.Fatalf("got %s, %v, want it open", r.Payment.Status, err)
	}
	w.Pass(6 * time.Hour)
	w.Want(p.ID, payment.StatusProcessing)
	voids := w.Calls(psptest.OperationCancel)
	if len(voids) < 3 || len(voids) > 15 {
		t.Errorf("got %d voids in six hours, want ever fewer", len(voids))
	}
	seen := map[string]bool{}
	for _, c := range voids {
		if seen[c.Key] {
			t.Errorf("void key %s came again after its refusal", c.Key)
		}
		seen[c.Key] = true
	}
	w.PSP.Before(psptest.OperationCancel, nil)
	w.Pass(6 * time.Hour)
	w.Want(p.ID, payment.StatusCanceled)
}

func TestACanceledPaymentWhoseVoidIsOpenIsNotCaptured(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Manual: true}, payment.StatusAuthorized)
	w.OnCall(psptest.OperationCancel, Lost)
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Capture("cap", p.ID, 0); !errors.Is(err, charge.ErrInvalidStatus) {
		t.Fatalf("got %v, want %v", err, charge.ErrInvalidStatus)
	}
	w.Pass(2 * time.Minute)
	w.Want(p.ID, payment.StatusCanceled)
	w.WantCalls(psptest.OperationCapture, 0)
}
