package charge_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

func held(t *testing.T) (*World, payment.ID) {
	t.Helper()
	w := New(t)
	p := w.Charged("k", Order{Manual: true, Amount: 10000}, payment.StatusAuthorized)
	w.PSP.Drain()
	return w, p.ID
}

func rejected() error {
	return &psp.Error{Operation: "capture", Outcome: psp.OutcomeRejected, HTTPStatus: 409}
}

func TestOnlyHeldFundsAreCaptured(t *testing.T) {
	for _, c := range []struct {
		name   string
		order  Order
		amount int64
		err    error
	}{
		{"captured at once", Order{}, 0, charge.ErrInvalidStatus},
		{"pending", Order{Token: psptest.TokenPending, Manual: true}, 0, charge.ErrInvalidStatus},
		{"declined", Order{Token: psptest.TokenDeclined, Manual: true}, 0, charge.ErrInvalidStatus},
		{"too much", Order{Manual: true}, 5001, payment.ErrAmountTooLarge},
		{"less than nothing", Order{Manual: true}, -1, payment.ErrAmountTooLarge},
		{"automatic but held", Order{Token: psptest.TokenWebhookReversed}, 0, charge.ErrInvalidStatus},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := New(t)
			r, err := w.Charge("k", c.order)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Capture("c", r.Payment.ID, c.amount); !errors.Is(err, c.err) {
				t.Errorf("got %v, want %v", err, c.err)
			}
			w.WantCalls(psptest.OperationCapture, 0)
		})
	}
}

func TestACaptureWithoutAnAnswerIsInDoubtAndFoundOut(t *testing.T) {
	for name, fault := range map[string]func(w *World){
		"request lost": func(w *World) { w.OnCall(psptest.OperationCapture, Lost) },
		"answer lost":  func(w *World) { w.OnAnswer(psptest.OperationCapture, Lost) },
	} {
		t.Run(name, func(t *testing.T) {
			w, id := held(t)
			fault(w)
			r, err := w.Capture("c", id, 4000)
			if err != nil || r.Payment.Status != payment.StatusAuthorized || !r.Payment.InDoubt() {
				t.Fatalf("got %s in doubt %t, %v, want it held and in doubt", r.Payment.Status, r.Payment.InDoubt(), err)
			}
			for _, amount := range []int64{4000, 10000} {
				if _, err := w.Capture("c2", id, amount); !errors.Is(err, charge.ErrInvalidStatus) {
					t.Errorf("another capture of %d: got %v, want %v while one is open", amount, err, charge.ErrInvalidStatus)
				}
			}
			again, err := w.Capture("c", id, 4000)
			if err != nil || !again.Replayed || again.Payment.Status != payment.StatusAuthorized {
				t.Errorf("replay: got %s, %v, want it as it is", again.Payment.Status, err)
			}
			w.Pass(2 * time.Minute)
			if p := w.Want(id, payment.StatusCaptured); p.AmountCaptured != 4000 || p.InDoubt() {
				t.Errorf("got %d captured in doubt %t, want 4000", p.AmountCaptured, p.InDoubt())
			}
			for _, c := range w.Calls(psptest.OperationCapture) {
				if c.Key != string(id)+"-capture-1" || c.Minor != 4000 {
					t.Errorf("got capture %+v, want the same each time", c)
				}
			}
			w.WantRest(id)
		})
	}
}

func TestACaptureThatThePSPRefusesIsTriedAgainWithAnotherKeyOnly(t *testing.T) {
	w, id := held(t)
	w.OnCall(psptest.OperationCapture, rejected)
	if _, err := w.Capture("c1", id, 0); !errors.Is(err, charge.ErrCaptureRefused) {
		t.Fatalf("got %v, want %v", err, charge.ErrCaptureRefused)
	}
	if p := w.Want(id, payment.StatusAuthorized); p.InDoubt() {
		t.Error("it is in doubt, want it held")
	}
	if _, err := w.Capture("c1", id, 0); !errors.Is(err, charge.ErrCaptureRefused) {
		t.Fatalf("same key: got %v, want %v", err, charge.ErrCaptureRefused)
	}
	w.WantCalls(psptest.OperationCapture, 1)
	r, err := w.Capture("c2", id, 0)
	if err != nil || r.Payment.Status != payment.StatusCaptured {
		t.Fatalf("another key: got %s, %v, want captured", r.Payment.Status, err)
	}
	calls := w.Calls(psptest.OperationCapture)
	if calls[0].Key == calls[1].Key {
		t.Errorf("got psp key %s twice, want another for another attempt", calls[0].Key)
	}
}

func TestARepeatOfARefusedCaptureDoesNotTakeOverTheNextOne(t *testing.T) {
	w, id := held(t)
	w.OnCall(psptest.OperationCapture, rejected)
	if _, err := w.Capture("c1", id, 6000); !errors.Is(err, charge.ErrCaptureRefused) {
		t.Fatal(err)
	}
	w.Clock.Advance(Durations.InProgressTTL) // the first request is long over
	w.OnCall(psptest.OperationCapture, Then(func() {
		if _, err := w.Capture("c1", id, 6000); !errors.Is(err, charge.ErrCaptureRefused) {
			t.Errorf("repeat: got %v, want %v: its own was refused", err, charge.ErrCaptureRefused)
		}
	}))
	r, err := w.Capture("c2", id, 7000)
	if err != nil || r.Payment.AmountCaptured != 7000 {
		t.Fatalf("got %d, %v, want 7000 captured", r.Payment.AmountCaptured, err)
	}
	w.WantCalls(psptest.OperationCapture, 2)
}

func TestARefusalOfARepeatedCaptureIsFinalOnlyWhenTheFirstIsKnownToHaveDoneNothing(t *testing.T) {
	t.Run("the look-up is no proof", func(t *testing.T) {
		w, id := held(t)
		w.PSP.Promise(psp.Capabilities{KeyLifetime: 24 * time.Hour})
		w.OnAnswer(psptest.OperationCapture, Lost)
		if _, err := w.Capture("c", id, 0); err != nil {
			t.Fatal(err)
		}
		w.PSP.Alter(psptest.OperationLookup, func(c *psp.Charge) { c.Status, c.Captured = psp.StatusAuthorized, 0 }) // it lags behind
		w.Lies = true
		w.OnCall(psptest.OperationCapture, rejected) // and it forgot the key: wrong status
		w.Pass(time.Minute)
		if p := w.Want(id, payment.StatusAuthorized); !p.InDoubt() || p.Capture.State == payment.OperationRefused {
			t.Errorf("got capture %s, want it in doubt: the first may have run", p.Capture.State)
		}
		w.PSP.Alter(psptest.OperationLookup, nil)
		w.Pass(5 * time.Minute)
		w.Want(id, payment.StatusCaptured)
	})
	t.Run("the look-up is proof", func(t *testing.T) {
		w, id := held(t)
		w.OnCall(psptest.OperationCapture, Lost)
		if _, err := w.Capture("c", id, 0); err != nil {
			t.Fatal(err)
		}
		w.OnCall(psptest.OperationCapture, rejected)
		w.Clock.Advance(time.Minute)
		if errs := w.Sweep(); len(errs) != 0 {
			t.Errorf("got %v, want a refusal to be no failure of the sweep", errs)
		}
		if p := w.Want(id, payment.StatusAuthorized); p.InDoubt() || p.Capture.State != payment.OperationRefused {
			t.Errorf("got capture %s, want it refused", p.Capture.State)
		}
		if _, err := w.Capture("c", id, 0); !errors.Is(err, charge.ErrCaptureRefused) {
			t.Errorf("replay: got %v, want %v", err, charge.ErrCaptureRefused)
		}
		if r, err := w.Capture("c2", id, 0); err != nil || r.Payment.Status != payment.StatusCaptured {
			t.Errorf("another: got %s, %v, want captured", r.Payment.Status, err)
		}
	})
}

func TestACaptureWhoseAnswerSaysStillHeldIsInDoubt(t *testing.T) {
	w, id := held(t)
	w.PSP.Alter(psptest.OperationCapture, func(c *psp.Charge) { c.Status, c.Captured = psp.StatusAuthorized, 0 })
	r, err := w.Capture("c", id, 0)
	if err != nil || r.Payment.Status != payment.StatusAuthorized || !r.Payment.InDoubt() {
		t.Fatalf("got %s in doubt %t, %v, want it in doubt", r.Payment.Status, r.Payment.InDoubt(), err)
	}
	again, err := w.Capture("c", id, 0) // the first request is over: nobody has to wait for it
	if err != nil || !again.Replayed {
		t.Errorf("replay: got %v, want the payment", err)
	}
	w.Deliver(w.PSP.Drain()...)
	w.Want(id, payment.StatusCaptured)
}

func TestACaptureIsNotSentAgainPastHalfItsKeysLife(t *testing.T) {
	w, id := held(t)
	w.PSP.Before(psptest.OperationCapture, Lost)
	if _, err := w.Capture("c", id, 0); err != nil {
		t.Fatal(err)
	}
	w.Pass(13 * time.Hour)
	sent := len(w.Calls(psptest.OperationCapture))
	w.PSP.Before(psptest.OperationCapture, nil)
	w.Pass(48 * time.Hour)
	if _, err := w.Capture("c", id, 0); err != nil {
		t.Fatal(err)
	}
	w.WantCalls(psptest.OperationCapture, sent)
	w.Want(id, payment.StatusAuthorized)
	if w.Meter.Of(charge.MetricNeedsPerson) == 0 {
		t.Error("nobody was called")
	}
	if r, err := w.Cancel("v", id); err != nil || r.Payment.Status != payment.StatusCanceled { // its way out
		t.Errorf("cancel: got %s, %v, want canceled", r.Payment.Status, err)
	}
}

func TestACaptureThatRacesTheWebhookIsOneCapture(t *testing.T) {
	w, id := held(t)
	w.OnAnswer(psptest.OperationCapture, Then(func() { w.Deliver(w.PSP.Drain()...) }))
	r, err := w.Capture("c", id, 4000)
	if err != nil || r.Payment.Status != payment.StatusCaptured || r.Payment.AmountCaptured != 4000 {
		t.Fatalf("got %s of %d, %v, want 4000 captured", r.Payment.Status, r.Payment.AmountCaptured, err)
	}
}

func TestACaptureRefusedBecauseItIsCapturedAlreadyIsASuccess(t *testing.T) {
	w, id := held(t)
	w.OnCall(psptest.OperationCapture, func() error {
		w.PSP.CaptureLate(string(id)) // by hand, at the PSP
		w.Deliver(w.PSP.Drain()...)
		return rejected()
	})
	r, err := w.Capture("c", id, 0)
	if err != nil || r.Payment.Status != payment.StatusCaptured {
		t.Fatalf("got %s, %v, want captured", r.Payment.Status, err)
	}
}

func TestAThrottledCaptureIsSentAgain(t *testing.T) {
	w, id := held(t)
	w.OnCall(psptest.OperationCapture, func() error {
		return &psp.Error{Operation: "capture", Outcome: psp.OutcomeThrottled, RetryAfter: 10 * time.Second}
	})
	r, err := w.Capture("c", id, 0)
	if err != nil || r.Payment.Status != payment.StatusAuthorized || r.Payment.InDoubt() {
		t.Fatalf("got %s in doubt %t, %v, want it held and not in doubt", r.Payment.Status, r.Payment.InDoubt(), err)
	}
	w.Clock.Advance(9 * time.Second)
	if _, err := w.Capture("c", id, 0); err != nil {
		t.Fatal(err)
	}
	w.WantCalls(psptest.OperationCapture, 1)
	w.Clock.Advance(time.Second)
	r, err = w.Capture("c", id, 0)
	if err != nil || r.Payment.Status != payment.StatusCaptured {
		t.Fatalf("got %s, %v, want captured", r.Payment.Status, err)
	}
}

func TestHeldFundsDoNotExpireWithThePayment(t *testing.T) {
	w, id := held(t)
	w.Pass(72 * time.Hour)
	w.Want(id, payment.StatusAuthorized)
	if n := len(w.Calls(psptest.OperationLookup)); n != 3 {
		t.Errorf("got %d look-ups in three days, want one a day", n)
	}
	r, err := w.Capture("c", id, 0)
	if err != nil || r.Payment.Status != payment.StatusCaptured {
		t.Fatalf("got %s, %v, want captured", r.Payment.Status, err)
	}
}

func TestHeldFundsThatLapseAtThePSPAreCanceled(t *testing.T) {
	for name, lapse := range map[string]func(w *World, id payment.ID){
		"canceled": func(w *World, id payment.ID) { w.PSP.Lapse(string(id)) },
		"failed": func(w *World, id payment.ID) {
			w.PSP.Lapse(string(id))
			w.PSP.Alter(psptest.OperationLookup, func(c *psp.Charge) { c.Status = psp.StatusFailed })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, id := held(t)
			lapse(w, id)
			w.Pass(24 * time.Hour)
			p := w.Want(id, payment.StatusCanceled)
			if p.Failure == nil || p.Failure.Code != payment.FailureAuthorization {
				t.Errorf("got failure %+v, want %s", p.Failure, payment.FailureAuthorization)
			}
		})
	}
}
