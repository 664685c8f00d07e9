package charge_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestAPaymentInDoubtIsFoundOutByTheSweep(t *testing.T) {
	for _, c := range []struct {
		token  string
		status payment.Status
		sends  int
	}{
		{psptest.TokenTimeoutCapturedSilent, payment.StatusCaptured, 1},
		{psptest.TokenErrorCaptured, payment.StatusCaptured, 1},
		{psptest.TokenErrorOnce, payment.StatusCaptured, 2},
		{psptest.TokenRateLimitedOnce, payment.StatusCaptured, 2},
	} {
		t.Run(c.token, func(t *testing.T) {
			w := New(t)
			p := w.Charged("k", Order{Token: c.token}, payment.StatusProcessing)
			w.Pass(time.Minute)
			got := w.Want(p.ID, c.status)
			if got.InDoubt() {
				t.Error("it is still in doubt")
			}
			w.WantRest(p.ID)
			w.WantCalls(psptest.OperationCreate, c.sends)
			replay, err := w.Charge("k", Order{Token: c.token})
			if err != nil || !replay.Replayed || replay.Payment.Status != c.status {
				t.Errorf("replay: got %s, %v, want %s", replay.Payment.Status, err, c.status)
			}
		})
	}
}

func TestWhatThePSPNeverGotIsSentAgainUntilTheDeadlineAndThenCanceled(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenTimeoutNothing, Reference: "order-42"}, payment.StatusProcessing)
	w.Pass(Durations.PaymentExpiry - time.Second)
	w.Want(p.ID, payment.StatusProcessing)
	sends := len(w.Calls(psptest.OperationCreate))
	if sends < 3 {
		t.Errorf("got %d sendings, want some", sends)
	}
	w.Pass(2 * time.Minute)
	got := w.Want(p.ID, payment.StatusCanceled)
	if got.Failure == nil || got.Failure.Code != payment.FailureExpired {
		t.Errorf("got failure %+v, want %s", got.Failure, payment.FailureExpired)
	}
	w.WantCalls(psptest.OperationCreate, sends) // none past the deadline
	w.Charged("k2", Order{Reference: "order-42"}, payment.StatusCaptured)
}

func TestNotFoundTooEarlyIsNoProof(t *testing.T) {
	w := New(t)
	w.Line.Hold(psptest.OperationCreate)
	p := w.Charged("k", Order{}, payment.StatusProcessing)
	w.Clock.Advance(Arrival - time.Millisecond)
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	w.Want(p.ID, payment.StatusProcessing)
	w.Sweep()
	w.Want(p.ID, payment.StatusProcessing)
	w.Line.Arrive()
	w.Clock.Advance(time.Millisecond)
	w.Sweep()
	w.Want(p.ID, payment.StatusCaptured)
}

func TestNotFoundLateEnoughIsProof(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenTimeoutNothing}, payment.StatusProcessing)
	w.Clock.Advance(Arrival)
	r, err := w.Cancel("c", p.ID)
	if err != nil || r.Payment.Status != payment.StatusCanceled {
		t.Fatalf("got %s, %v, want canceled", r.Payment.Status, err)
	}
}

// The question counts, not the answer: a charge may arrive between the two.
func TestASilenceAskedForTooEarlyIsNoProofWhenItsAnswerComesLate(t *testing.T) {
	w := New(t)
	w.Line.Hold(psptest.OperationCreate)
	p := w.Charged("k", Order{}, payment.StatusProcessing)
	w.OnCall(psptest.OperationLookup, Then(func() { w.Clock.Advance(time.Second) })) // the cancel's own question
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(Arrival - 2*time.Second) // the sweep asks a second before it counts
	due := w.Payment(p.ID)
	if err := w.Table.Postpone(w.Context(), p.ID, due.Version, w.Clock.Now(), 0); err != nil {
		t.Fatal(err)
	}
	w.OnAnswer(psptest.OperationLookup, Then(func() { // nothing there; then the charge arrives, then the answer
		w.Line.Arrive()
		w.Clock.Advance(2 * time.Second)
	}))
	w.Sweep()
	w.Want(p.ID, payment.StatusProcessing)
	w.Pass(time.Minute)
	w.Want(p.ID, payment.StatusCaptured)
}

func TestNotFoundIsNoProofAtAPSPThatDoesNotSaySo(t *testing.T) {
	w := New(t)
	w.PSP.Promise(psp.Capabilities{KeyLifetime: 24 * time.Hour})
	p := w.Charged("k", Order{Token: psptest.TokenTimeoutNothing}, payment.StatusProcessing)
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	w.Pass(25 * time.Hour)
	w.Want(p.ID, payment.StatusProcessing)
	if w.Meter.Of(charge.MetricNeedsPerson) == 0 {
		t.Error("nobody was called")
	}
	w.Deliver(w.PSP.Push(psp.Event{Status: psp.StatusCanceled, Charge: psp.Charge{
		PaymentID: string(p.ID), Reference: "ch_9", Status: psp.StatusCanceled, Amount: p.Amount,
	}}))
	w.Want(p.ID, payment.StatusCanceled)
}

func TestAPSPThatIsDownForHoursIsAskedLessAndLessAndNothingFails(t *testing.T) {
	w := New(t)
	doubt := w.Charged("k1", Order{Token: psptest.TokenTimeoutCapturedSilent}, payment.StatusProcessing)
	pending := w.Charged("k2", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	held := w.Charged("k3", Order{Manual: true}, payment.StatusAuthorized)
	taken := w.Charged("k4", Order{}, payment.StatusCaptured)
	w.PSP.Approve(string(pending.ID))
	for _, operation := range psptest.Operations() {
		w.PSP.Before(operation, Lost)
	}
	if r, err := w.Capture("c", held.ID, 0); err != nil || !r.Payment.InDoubt() {
		t.Fatalf("capture: got %s, %v, want it in doubt", r.Payment.Status, err)
	}
	w.Refunded("r", taken.ID, 0, payment.RefundPending)
	fresh := w.Charged("k5", Order{}, payment.StatusProcessing)
	w.Pass(6 * time.Hour)
	if n := len(w.Calls(psptest.OperationLookup)); n > 80 {
		t.Errorf("got %d look-ups of five payments in six hours, want them ever rarer", n)
	}
	for _, id := range []payment.ID{doubt.ID, pending.ID, fresh.ID} {
		w.Want(id, payment.StatusProcessing)
	}
	for _, operation := range psptest.Operations() {
		w.PSP.Before(operation, nil)
	}
	w.Pass(8 * time.Hour)
	w.Want(doubt.ID, payment.StatusCaptured)
	w.Want(pending.ID, payment.StatusCaptured)
	w.Want(held.ID, payment.StatusCaptured)
	w.Want(taken.ID, payment.StatusRefunded)
	w.Want(fresh.ID, payment.StatusCanceled) // never sent again past its deadline
}

func TestAPSPThatThrottlesForHoursIsNotAskedEveryMinute(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	w.PSP.Before(psptest.OperationRefund, func() error {
		return &psp.Error{Operation: "refund", Outcome: psp.OutcomeThrottled, HTTPStatus: 429}
	})
	refund := w.Refunded("r", p.ID, 0, payment.RefundPending)
	w.Pass(6 * time.Hour)
	if n := len(w.Calls(psptest.OperationRefund)); n > 20 {
		t.Errorf("got %d sendings in six hours, want them ever rarer", n)
	}
	if got, _ := w.Payment(p.ID).Refund(refund.ID); got.Status != payment.RefundPending {
		t.Errorf("got %s, want pending", got.Status)
	}
	w.PSP.Before(psptest.OperationRefund, nil)
	w.Pass(6 * time.Hour)
	w.Want(p.ID, payment.StatusRefunded)
}

func TestAPSPThatIsNoLongerConfiguredStopsNobody(t *testing.T) {
	w := New(t)
	gone := w.Charged("k1", Order{PSP: OtherPSP, Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	taken := w.Charged("k2", Order{PSP: OtherPSP}, payment.StatusCaptured)
	held := w.Charged("k3", Order{PSP: OtherPSP, Manual: true}, payment.StatusAuthorized)
	other := w.Charged("k4", Order{Token: psptest.TokenTimeoutCapturedSilent}, payment.StatusProcessing)
	provider := w.Charges.Providers[OtherPSP]
	delete(w.Charges.Providers, OtherPSP)
	w.Refunded("r", taken.ID, 0, payment.RefundPending)
	if r, err := w.Capture("c", held.ID, 0); err != nil || r.Payment.Status != payment.StatusAuthorized {
		t.Fatalf("capture: got %s, %v, want it authorized", r.Payment.Status, err)
	}
	if r, err := w.Cancel("v", gone.ID); err != nil || !r.Payment.Status.Open() {
		t.Fatalf("cancel: got %s, %v, want it open", r.Payment.Status, err)
	}
	w.Pass(time.Hour)
	w.Want(other.ID, payment.StatusCaptured)
	w.Want(gone.ID, payment.StatusProcessing)
	w.Charges.Providers[OtherPSP] = provider
	w.Pass(4 * time.Hour)
	w.Want(gone.ID, payment.StatusCanceled)
	w.Want(taken.ID, payment.StatusRefunded)
	w.Want(held.ID, payment.StatusCaptured)
}

// A function's time may be over sooner than a call's: then the call is cut off in
// time for what was heard, or not heard, to be written down.
func TestACallLeavesTimeToWriteItsOutcomeDown(t *testing.T) {
	for remaining, want := range map[time.Duration]time.Duration{
		29 * time.Second: Durations.PSPTimeout, 12 * time.Second: 9 * time.Second, 4 * time.Second: 3 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := New(t)
			w.Charges.Providers[PSP] = silent{w.PSP}
			ctx, cancel := context.WithTimeout(w.Context(), remaining)
			defer cancel()
			began := time.Now()
			r, err := w.ChargeWith(ctx, "k", Order{})
			if took := time.Since(began); took != want {
				t.Errorf("with %s left the call took %s, want %s", remaining, took, want)
			}
			if err != nil || !r.Payment.InDoubt() || ctx.Err() != nil {
				t.Errorf("with %s left: got %s, %v, %v, want it in doubt and in time", remaining, r.Payment.Status, err, ctx.Err())
			}
		})
	}
}

// silent is a provider that never answers.
type silent struct{ *psptest.Fake }

func (silent) Create(ctx context.Context, _ psp.CreateRequest) (psp.Charge, error) {
	<-ctx.Done()
	return psp.Charge{}, ctx.Err()
}
