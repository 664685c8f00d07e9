package reconcile_test

import (
	"context"
	"sync"
	"testing"
	"time"

	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/webhook"
)

func TestASweepFinishesPaymentsAndNotifications(t *testing.T) {
	w := New(t)
	var doubts []payment.ID
	for n := range 30 {
		doubts = append(doubts, w.Charged(ULID(int64(n+1)), Order{Token: psptest.TokenTimeoutCapturedSilent}, payment.StatusProcessing).ID)
	}
	p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
	w.PSP.Approve(string(p.ID))
	events := w.PSP.Drain()
	w.Receive(events...) // and the stream loses them
	w.Clock.Advance(time.Minute)
	report, err := w.Sweeper.Sweep(w.Context())
	// The payment that a notification settles may be at rest before its own shard is read.
	least := int64(30 + len(events))
	if err != nil || report.Failed != 0 || report.Swept < least || report.Swept > least+1 {
		t.Fatalf("got %+v, %v, want %d swept, or one more", report, err, least)
	}
	for _, id := range append(doubts, p.ID) {
		w.Want(id, payment.StatusCaptured)
	}
	for _, e := range events {
		w.WantItem(e, webhook.StatusApplied)
	}
	w.Clock.Advance(time.Hour)
	if again, err := w.Sweeper.Sweep(w.Context()); err != nil || again.Swept != 0 {
		t.Errorf("second: got %+v, %v, want nothing left", again, err)
	}
}

func TestTwoSweepsAtOnceDoEverythingOnce(t *testing.T) {
	w := New(t)
	var ids []payment.ID
	for n := range 20 {
		p := w.Charged(ULID(int64(n+1)), Order{Token: psptest.TokenLateCaptured}, payment.StatusProcessing)
		if _, err := w.Cancel("c", p.ID); err != nil {
			t.Fatal(err)
		}
		w.PSP.CaptureLate(string(p.ID))
		ids = append(ids, p.ID)
	}
	w.Clock.Advance(time.Minute)
	var sweeps sync.WaitGroup
	for range 3 {
		sweeps.Go(func() {
			if _, err := w.Sweeper.Sweep(w.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	sweeps.Wait()
	w.Pass(2 * time.Minute)
	for _, id := range ids {
		w.Want(id, payment.StatusRefunded)
	}
	w.WantCalls(psptest.OperationRefund, 20)
}

// poisoned is a provider whose answer about one payment its adapter does not survive.
type poisoned struct {
	*psptest.Fake
	id string
}

func (p poisoned) Lookup(ctx context.Context, r psp.LookupRequest) (psp.Charge, error) {
	if r.PaymentID == p.id {
		panic("poison")
	}
	return p.Fake.Lookup(ctx, r)
}

func TestAPoisonPaymentDoesNotStarveTheOthers(t *testing.T) {
	w := New(t)
	poison := w.Charged("poison", Order{Token: psptest.TokenTimeoutCapturedSilent}, payment.StatusProcessing)
	w.Charges.Providers[PSP] = poisoned{w.PSP, string(poison.ID)}
	var others []payment.ID
	for n := range 20 {
		others = append(others, w.Charged(ULID(int64(n+1)), Order{Token: psptest.TokenTimeoutCapturedSilent}, payment.StatusProcessing).ID)
	}
	w.Clock.Advance(time.Minute)
	report, err := w.Sweeper.Sweep(w.Context())
	if err != nil || report.Failed != 1 {
		t.Fatalf("got %+v, %v, want one failed", report, err)
	}
	for _, id := range others {
		w.Want(id, payment.StatusCaptured)
	}
	w.Want(poison.ID, payment.StatusProcessing)
}

func TestAnItemWhoseReadingFailsIsSweptAgain(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenTimeoutCapturedSilent}, payment.StatusProcessing)
	w.Clock.Advance(time.Minute)
	w.Store.BeforeGet(func(k store.Key) bool { return k.SK == "STATE" }, Silent)
	report, err := w.Sweeper.Sweep(w.Context())
	if err != nil || report.Failed != 1 {
		t.Fatalf("got %+v, %v, want one failed", report, err)
	}
	w.Clock.Advance(time.Minute)
	if _, err := w.Sweeper.Sweep(w.Context()); err != nil {
		t.Fatal(err)
	}
	w.Want(p.ID, payment.StatusCaptured)
}

func TestANotificationIsFoundWhateverItsIDHolds(t *testing.T) {
	w := New(t)
	it := webhook.Item{PSP: PSP, EventID: "a#b/c", Type: "charge.captured", Status: webhook.StatusReceived, ReceivedAt: Start, WaitUntil: Start, DueAt: Start}
	if _, err := w.Table.Receive(w.Context(), it); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(time.Minute)
	if _, err := w.Sweeper.Sweep(w.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Table.Item(w.Context(), PSP, it.EventID); err != nil || got.Status != webhook.StatusQuarantined {
		t.Errorf("got %s, %v, want it looked at: the psp knows no such event", got.Status, err)
	}
}

func TestASecondPassChangesNothing(t *testing.T) {
	w := New(t)
	var all []payment.ID
	for n, token := range []string{
		psptest.TokenCaptured, psptest.TokenDeclined, psptest.TokenTimeoutCapturedSilent, psptest.TokenErrorOnce, psptest.TokenTimeoutNothing,
		psptest.TokenPendingSilent, psptest.TokenRequiresAction, psptest.TokenRateLimitedOnce, psptest.TokenErrorCaptured,
	} {
		r, err := w.Charge(ULID(int64(n+1)), Order{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Payment.ID)
	}
	w.Pass(26 * time.Hour)
	versions := map[payment.ID]int64{}
	calls := len(w.PSP.Calls())
	for _, id := range all {
		p := w.Payment(id)
		if !p.Status.Terminal() || !p.DueAt.IsZero() {
			t.Errorf("%s is %s, due at %s, want it ended and at rest", p.PaymentMethod.Reveal(), p.Status, p.DueAt)
		}
		versions[id] = p.Version
	}
	w.Pass(26 * time.Hour)
	for _, id := range all {
		if got := w.Payment(id).Version; got != versions[id] {
			t.Errorf("%s moved from version %d to %d", id, versions[id], got)
		}
	}
	if n := len(w.PSP.Calls()); n != calls {
		t.Errorf("the psp was called %d times more", n-calls)
	}
}
