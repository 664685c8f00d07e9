package charge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

func TestTheFirstAnswerSaysWhatThePSPSaid(t *testing.T) {
	for _, c := range []struct {
		token   string
		manual  bool
		status  payment.Status
		inDoubt bool
	}{
		{token: psptest.TokenCaptured, status: payment.StatusCaptured},
		{token: psptest.TokenCaptured, manual: true, status: payment.StatusAuthorized},
		{token: psptest.TokenDeclined, status: payment.StatusFailed},
		{token: psptest.TokenInsufficientFunds, status: payment.StatusFailed},
		{token: psptest.TokenRequiresAction, status: payment.StatusRequiresAction},
		{token: psptest.TokenPending, status: payment.StatusProcessing},
		{token: psptest.TokenTimeoutCaptured, status: payment.StatusProcessing, inDoubt: true},
		{token: psptest.TokenTimeoutNothing, status: payment.StatusProcessing, inDoubt: true},
		{token: psptest.TokenErrorCaptured, status: payment.StatusProcessing, inDoubt: true},
		{token: psptest.TokenErrorOnce, status: payment.StatusProcessing, inDoubt: true},
		{token: psptest.TokenRateLimitedOnce, status: payment.StatusProcessing},
		{token: "tok_unheard_of", status: payment.StatusFailed},
	} {
		t.Run(fmt.Sprintf("%s manual %t", c.token, c.manual), func(t *testing.T) {
			w := New(t)
			p := w.Charged("k", Order{Token: c.token, Manual: c.manual}, c.status)
			if p.InDoubt() != c.inDoubt {
				t.Errorf("got in doubt %t, want %t", p.InDoubt(), c.inDoubt)
			}
			w.WantCalls(psptest.OperationCreate, 1)
			if key := w.Calls(psptest.OperationCreate)[0].Key; key != string(p.ID) {
				t.Errorf("got psp key %s, want the payment's id", key)
			}
			if stored := w.Payment(p.ID); stored.Version != p.Version {
				t.Errorf("the answer has version %d, want the stored %d", p.Version, stored.Version)
			}
		})
	}
}

func TestWhatThePSPRefusesOutrightHasFailed(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: "tok_unheard_of", Reference: "order-42"}, payment.StatusFailed)
	if f := p.Failure; f == nil || f.Code != payment.FailureRejected || f.DeclineCode != "payment_method_unknown" {
		t.Errorf("got failure %+v, want %s", p.Failure, payment.FailureRejected)
	}
	w.Charged("k2", Order{Reference: "order-42"}, payment.StatusCaptured)
}

// A repeat that is refused says nothing of the first sending, unless a look-up has
// shown that it never took effect.
func TestARefusalOfARepeatIsFinalOnlyWhenTheFirstIsKnownToHaveDoneNothing(t *testing.T) {
	refused := func() error { return &psp.Error{Outcome: psp.OutcomeRejected, Code: "too_old"} }
	t.Run("the look-up is no proof", func(t *testing.T) {
		w := New(t)
		w.PSP.Promise(psp.Capabilities{KeyLifetime: 24 * time.Hour})
		p := w.Charged("k", Order{Token: psptest.TokenTimeoutNothing}, payment.StatusProcessing)
		w.OnCall(psptest.OperationCreate, refused)
		w.Pass(time.Minute)
		if p := w.Want(p.ID, payment.StatusProcessing); !p.InDoubt() {
			t.Error("got it settled, want it in doubt: the first sending may have run")
		}
	})
	t.Run("nobody looked", func(t *testing.T) {
		w := New(t)
		w.Crash(func() {
			w.OnCall(psptest.OperationCreate, w.Die)
			w.Charge("k", Order{})
		})
		w.Clock.Advance(Durations.InProgressTTL)
		w.OnCall(psptest.OperationCreate, refused)
		r, err := w.Charge("k", Order{})
		if err != nil || r.Payment.Status != payment.StatusProcessing || !r.Payment.InDoubt() {
			t.Errorf("got %s, %v, want it in doubt", r.Payment.Status, err)
		}
	})
	t.Run("throttled a moment ago", func(t *testing.T) {
		w := New(t)
		p := w.Charged("k", Order{Token: psptest.TokenRateLimitedOnce}, payment.StatusProcessing)
		w.Clock.Advance(time.Second) // an earlier one may still be on its way
		w.OnCall(psptest.OperationCreate, refused)
		w.Sweep()
		w.Want(p.ID, payment.StatusProcessing)
	})
	t.Run("the look-up is proof", func(t *testing.T) {
		w := New(t)
		p := w.Charged("k", Order{Token: psptest.TokenTimeoutNothing}, payment.StatusProcessing)
		w.OnCall(psptest.OperationCreate, refused)
		w.Pass(time.Minute)
		got := w.Want(p.ID, payment.StatusFailed)
		if got.Failure == nil || got.Failure.Code != payment.FailureRejected {
			t.Errorf("got failure %+v, want %s", got.Failure, payment.FailureRejected)
		}
	})
}

func TestAnUnknownPSPIsRefusedBeforeAnyEffect(t *testing.T) {
	w := New(t)
	if _, err := w.Charge("k", Order{PSP: "nobody"}); !errors.Is(err, charge.ErrUnknownPSP) {
		t.Fatalf("got %v, want %v", err, charge.ErrUnknownPSP)
	}
	if items := w.Store.Items(w.Context()); len(items) != 0 {
		t.Errorf("got %d items, want none", len(items))
	}
	w.Charged("k", Order{}, payment.StatusCaptured)
}

func TestAReferenceIsHeldWhileItsPaymentLivesOrIsCaptured(t *testing.T) {
	for _, c := range []struct {
		token string
		held  bool
		then  func(w *World, id payment.ID)
	}{
		{psptest.TokenCaptured, true, nil},
		{psptest.TokenPending, true, nil},
		{psptest.TokenTimeoutNothing, true, nil},
		{psptest.TokenDeclined, false, nil},
		{psptest.TokenPending, false, func(w *World, id payment.ID) { w.Cancel("c", id) }},
		{psptest.TokenCaptured, false, func(w *World, id payment.ID) { w.Refund("r", id, 0) }},
		{psptest.TokenCaptured, true, func(w *World, id payment.ID) { w.Refund("r", id, 4999) }},
	} {
		t.Run(c.token, func(t *testing.T) {
			w := New(t)
			first, err := w.Charge("k1", Order{Token: c.token, Reference: "order-42"})
			if err != nil {
				t.Fatal(err)
			}
			if c.then != nil {
				c.then(w, first.Payment.ID)
			}
			second, err := w.Charge("k2", Order{Reference: "order-42"})
			used, inUse := errors.AsType[*charge.ReferenceInUseError](err)
			if inUse != c.held {
				t.Fatalf("got %v, want the reference held %t", err, c.held)
			}
			if c.held && used.PaymentID != first.Payment.ID {
				t.Errorf("got held by %s, want %s", used.PaymentID, first.Payment.ID)
			}
			if !c.held && second.Payment.Status != payment.StatusCaptured {
				t.Errorf("got %s, want captured", second.Payment.Status)
			}
			// Another merchant's reference is another reference, and so is its key.
			other, err := w.Charge("k1", Order{Reference: "order-42", Merchant: OtherMerchant})
			if err != nil || other.Replayed {
				t.Errorf("other merchant: got replayed %t, %v, want a payment of its own", other.Replayed, err)
			}
		})
	}
}

func TestARequestThatFoundTheReferenceInUseLeavesItsKeyFree(t *testing.T) {
	w := New(t)
	p := w.Charged("k1", Order{Reference: "order-42"}, payment.StatusCaptured)
	if _, err := w.Charge("k2", Order{Reference: "order-42"}); err == nil {
		t.Fatal("got no error, want the reference in use")
	}
	w.Refunded("r", p.ID, 0, payment.RefundSucceeded)
	r, err := w.Charge("k2", Order{Reference: "order-42"})
	if err != nil || r.Replayed || r.Payment.Status != payment.StatusCaptured {
		t.Fatalf("got %s replayed %t, %v, want a payment", r.Payment.Status, r.Replayed, err)
	}
}

func TestACommitThatDidNotHappenLeavesNothing(t *testing.T) {
	w := New(t)
	w.Store.Before(Row(payment.EventCreated), Silent)
	if _, err := w.Charge("k", Order{}); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v, want %v", err, store.ErrUnavailable)
	}
	w.WantCalls(psptest.OperationCreate, 0)
	r, err := w.Charge("k", Order{})
	if err != nil || r.Replayed || r.Payment.Status != payment.StatusCaptured {
		t.Fatalf("got %s replayed %t, %v, want a first use", r.Payment.Status, r.Replayed, err)
	}
}

func TestACommitWhoseAnswerIsLostIsSettledByTheKeyOrTheSweep(t *testing.T) {
	for _, by := range []string{"key", "sweep"} {
		t.Run(by, func(t *testing.T) {
			w := New(t)
			w.Store.After(Row(payment.EventCreated), Silent)
			if _, err := w.Charge("k", Order{}); !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("got %v, want %v", err, store.ErrUnavailable)
			}
			w.WantCalls(psptest.OperationCreate, 0) // nothing is sent on what may not be stored
			if _, err := w.Charge("k", Order{}); !InProgress(err) {
				t.Fatalf("at once: got %v, want in progress", err)
			}
			switch by {
			case "key":
				w.Clock.Advance(Durations.InProgressTTL)
				if _, err := w.Charge("k", Order{}); err != nil {
					t.Fatal(err)
				}
			case "sweep":
				w.Pass(time.Minute)
			}
			w.Want(payment.ID(payment.IDPrefix+ULID(1)), payment.StatusCaptured)
			w.WantCalls(psptest.OperationCreate, 1)
		})
	}
}

func TestAnAnswerThatCannotBeRecordedIsFoundAgain(t *testing.T) {
	for name, fault := range map[string]func() error{"conflicts": Refused, "silence": Silent} {
		t.Run(name, func(t *testing.T) {
			w := New(t)
			for range 8 {
				w.Store.Before(Row(payment.EventCaptured), fault)
			}
			_, err := w.Charge("k", Order{})
			if err == nil || (name == "conflicts") != errors.Is(err, journal.ErrBusy) {
				t.Fatalf("got %v, want no answer", err)
			}
			id := payment.ID(payment.IDPrefix + ULID(1))
			w.Want(id, payment.StatusProcessing)
			w.Pass(time.Minute)
			w.Want(id, payment.StatusCaptured)
			w.WantCalls(psptest.OperationCreate, 1)
		})
	}
}

func TestAnAnswerWhoseRecordingLostItsAnswerIsRecordedOnce(t *testing.T) {
	w := New(t)
	w.Store.After(Row(payment.EventCaptured), Silent)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	if p.Version != 2 {
		t.Errorf("got version %d, want 2", p.Version)
	}
}

func TestAThrottledChargeIsSentAgainWhenThePSPSaidSo(t *testing.T) {
	for _, by := range []string{"key", "sweep"} {
		t.Run(by, func(t *testing.T) {
			w := New(t)
			order := Order{Token: psptest.TokenRateLimitedOnce}
			p := w.Charged("k", order, payment.StatusProcessing)
			replay, err := w.Charge("k", order)
			if err != nil || !replay.Replayed || replay.Payment.Status != payment.StatusProcessing {
				t.Fatalf("too early: got %s replayed %t, %v, want it as it is", replay.Payment.Status, replay.Replayed, err)
			}
			w.WantCalls(psptest.OperationCreate, 1)
			w.Clock.Advance(time.Second)
			switch by {
			case "key":
				if r, err := w.Charge("k", order); err != nil || r.Payment.Status != payment.StatusCaptured {
					t.Fatalf("got %s, %v, want captured", r.Payment.Status, err)
				}
			case "sweep":
				w.Sweep()
			}
			w.Want(p.ID, payment.StatusCaptured)
			w.WantCalls(psptest.OperationCreate, 2)
		})
	}
}

func TestAPaymentIsItsMerchantsOnly(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	long := payment.ID(strings.Repeat("x", 4000))
	for _, id := range []payment.ID{p.ID, "pay_01KDYAK348M9S346Q3D2999999", "pay_x", "", "\xff", long} {
		if _, err := w.Charges.Payment(w.Context(), OtherMerchant, id); !errors.Is(err, charge.ErrNotFound) {
			t.Errorf("%q: got %v, want %v", id, err, charge.ErrNotFound)
		}
	}
	request := Request(OtherMerchant, "/v1/payments/"+string(p.ID)+"/refunds", "r", "")
	if _, err := w.Charges.Refund(w.Context(), charge.RefundRequest{Request: request, PaymentID: p.ID}); !errors.Is(err, charge.ErrNotFound) {
		t.Errorf("refund: got %v, want %v", err, charge.ErrNotFound)
	}
	if _, err := w.Charges.Cancel(w.Context(), charge.CancelRequest{Request: request, PaymentID: p.ID}); !errors.Is(err, charge.ErrNotFound) {
		t.Errorf("cancel: got %v, want %v", err, charge.ErrNotFound)
	}
	if _, err := w.Charges.Capture(w.Context(), charge.CaptureRequest{Request: request, PaymentID: p.ID}); !errors.Is(err, charge.ErrNotFound) {
		t.Errorf("capture: got %v, want %v", err, charge.ErrNotFound)
	}
}
