package journal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

var yen = money.Amount{Minor: 5000, Currency: "JPY"}

func fact(kind payment.EventType) payment.Event {
	e := payment.Event{Type: kind, PSPReference: "ch_000001", Amount: yen}
	if kind == payment.EventCaptured {
		e.Captured = yen.Minor
	}
	return e
}

// open is a payment whose charge is pending at the PSP.
func open(t *testing.T) (*World, payment.Payment) {
	t.Helper()
	w := New(t)
	w.Lies = true // what the journal is told here, the psp did not do
	return w, w.Charged("k", Order{Token: psptest.TokenPendingSilent, Reference: "order-42"}, payment.StatusProcessing)
}

func TestRecordAppliesFactsInTheirOrder(t *testing.T) {
	w, p := open(t)
	got, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceWebhook, fact(payment.EventAuthorized), fact(payment.EventCaptured))
	if err != nil || got.Status != payment.StatusCaptured || got.Version != p.Version+2 {
		t.Fatalf("got %s version %d, %v, want captured in version %d", got.Status, got.Version, err, p.Version+2)
	}
	rows := w.Rows(p.ID)
	if last := rows[len(rows)-1]; last.Source != journal.SourceWebhook || !last.At.Equal(w.Clock.Now()) || last.Type != string(payment.EventCaptured) {
		t.Errorf("got row %+v", last)
	}
}

func TestOldNewsWritesNothing(t *testing.T) {
	w, p := open(t)
	if _, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceWebhook, fact(payment.EventCaptured)); err != nil {
		t.Fatal(err)
	}
	w.Cost.Reset()
	for _, kind := range []payment.EventType{payment.EventCaptured, payment.EventPending, payment.EventAuthorized, payment.EventDeclined, payment.EventVoided} {
		got, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceWebhook, fact(kind))
		if err != nil || got.Version != p.Version+1 || got.Status != payment.StatusCaptured {
			t.Errorf("%s: got %s version %d, %v", kind, got.Status, got.Version, err)
		}
	}
	if n := w.Cost.Count().Writes; n != 0 {
		t.Errorf("got %d writes, want none", n)
	}
}

func TestALoserOfTheRaceAgreesWithTheWinner(t *testing.T) {
	w, p := open(t)
	w.Store.Before(Row(payment.EventCaptured), Then(func() {
		if _, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceWebhook, fact(payment.EventCaptured)); err != nil {
			t.Fatal(err)
		}
	}))
	got, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceAPI, fact(payment.EventCaptured))
	if err != nil || got.Status != payment.StatusCaptured || got.Version != p.Version+1 {
		t.Fatalf("got %s version %d, %v, want the winner's", got.Status, got.Version, err)
	}
	if n := w.Meter.Of(journal.MetricConflict); n != 1 {
		t.Errorf("got %d conflicts, want 1", n)
	}
}

func TestAFactThatTheWinnerMadeImpossibleIsRefused(t *testing.T) {
	w, p := open(t)
	other := fact(payment.EventCaptured)
	other.PSPReference = "ch_1"
	w.Store.Before(Row(payment.EventAuthorized), Then(func() {
		if _, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceWebhook, fact(payment.EventCaptured)); err != nil {
			t.Fatal(err)
		}
	}))
	got, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceAPI, fact(payment.EventAuthorized), other)
	if _, disagrees := errors.AsType[*payment.MismatchError](err); !disagrees || got.Status != payment.StatusCaptured {
		t.Fatalf("got %s, %v, want a mismatch on the captured payment", got.Status, err)
	}
}

func TestTheDomainsRefusalsAreFinal(t *testing.T) {
	w, p := open(t)
	reads := 0
	count := func(key store.Key) bool {
		if key.SK == "STATE" {
			reads++
		}
		return false
	}
	w.Store.BeforeGet(count, Silent)
	mismatch := fact(payment.EventCaptured)
	mismatch.Captured = 1
	for name, e := range map[string]payment.Event{
		"mismatch": mismatch, "early": {Type: payment.EventRefundSucceeded}, "illegal": {Type: payment.EventRefundUnanswered},
	} {
		reads = 0
		if got, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceAPI, e); err == nil || got.ID != p.ID {
			t.Errorf("%s: got %s, %v, want the payment and a refusal", name, got.ID, err)
		}
		if reads != 1 {
			t.Errorf("%s: read %d times, want once", name, reads)
		}
	}
	w.Store.Forget()
}

func TestRecordGivesUpAfterEightRacesAndLosesNothing(t *testing.T) {
	w, p := open(t)
	for range 8 {
		w.Store.Before(Row(payment.EventCaptured), Refused)
	}
	if _, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceAPI, fact(payment.EventCaptured)); !errors.Is(err, journal.ErrBusy) {
		t.Fatalf("got %v, want %v", err, journal.ErrBusy)
	}
	if n := w.Meter.Of(journal.MetricConflict); n != 8 {
		t.Errorf("got %d conflicts, want 8", n)
	}
	if got, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceAPI, fact(payment.EventCaptured)); err != nil || got.Status != payment.StatusCaptured {
		t.Errorf("again: got %s, %v, want captured", got.Status, err)
	}
}

func TestRecordWaitsLongerAfterEachRace(t *testing.T) {
	w, p := open(t)
	var pauses []int
	w.Charges.Journal.Pause = func(_ context.Context, n int) error {
		pauses = append(pauses, n)
		return nil
	}
	for range 3 {
		w.Store.Before(Row(payment.EventCaptured), Refused)
	}
	if _, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceAPI, fact(payment.EventCaptured)); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(pauses) != "[1 2 3]" {
		t.Errorf("got pauses %v, want one after each race", pauses)
	}
}

func TestRecordEndsWithItsContext(t *testing.T) {
	w, p := open(t)
	ctx, cancel := context.WithCancel(w.Context())
	w.Store.Before(Row(payment.EventCaptured), func() error {
		cancel()
		return Refused()
	})
	if _, err := w.Charges.Journal.Record(ctx, p.ID, journal.SourceAPI, fact(payment.EventCaptured)); !errors.Is(err, journal.ErrBusy) {
		t.Errorf("got %v, want %v", err, journal.ErrBusy)
	}
}

func TestAnUnknownOutcomeIsReadAgain(t *testing.T) {
	for name, c := range map[string]struct {
		landed bool
	}{"it landed": {true}, "it did not": {false}} {
		t.Run(name, func(t *testing.T) {
			w, p := open(t)
			if c.landed {
				w.Store.After(Row(payment.EventCaptured), Silent)
			} else {
				w.Store.Before(Row(payment.EventCaptured), Silent)
			}
			got, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceAPI, fact(payment.EventCaptured))
			if err != nil || got.Status != payment.StatusCaptured || got.Version != p.Version+1 {
				t.Errorf("got %s version %d, %v, want captured once", got.Status, got.Version, err)
			}
		})
	}
}

func TestAReloadWithoutAnAnswerKeepsThePaymentThatWasSeen(t *testing.T) {
	w, p := open(t)
	w.Store.Before(Row(payment.EventCaptured), func() error {
		w.Store.BeforeGet(func(k store.Key) bool { return k.SK == "STATE" }, Silent)
		return Refused()
	})
	got, err := w.Charges.Journal.RecordOn(w.Context(), p, journal.SourceAPI, fact(payment.EventCaptured))
	if !errors.Is(err, store.ErrUnavailable) || got.ID != p.ID || got.Version != p.Version {
		t.Errorf("got %q version %d, %v, want the payment as it was seen", got.ID, got.Version, err)
	}
}

func TestRecordOfAPaymentThatIsNotThere(t *testing.T) {
	w := New(t)
	if _, err := w.Charges.Journal.Record(w.Context(), "pay_01KDYAK348M9S346Q3D2999999", journal.SourceAPI, fact(payment.EventCaptured)); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("got %v, want %v", err, journal.ErrNotFound)
	}
}

func TestAChangeIsOneAttempt(t *testing.T) {
	w, p := open(t)
	cancel := payment.Event{Type: payment.EventCancelRequested, Cause: payment.CancelByMerchant}
	change := journal.Change{Source: journal.SourceAPI}
	w.Store.Before(Row(payment.EventCancelRequested), Refused)
	got, err := w.Charges.Journal.Change(w.Context(), p, cancel, change)
	if conflict, lost := errors.AsType[*journal.Conflict](err); !lost || !conflict.Version || got.Version != p.Version {
		t.Fatalf("lost: got version %d, %v, want a conflict", got.Version, err)
	}
	got, err = w.Charges.Journal.Change(w.Context(), p, cancel, change)
	if err != nil || got.CancelCause != payment.CancelByMerchant || got.Version != p.Version+1 {
		t.Fatalf("got cause %q version %d, %v", got.CancelCause, got.Version, err)
	}
	if _, err = w.Charges.Journal.Change(w.Context(), p, cancel, change); err == nil {
		t.Fatal("on an old reading: got no error")
	}
	if _, err := w.Charges.Journal.Change(w.Context(), got, payment.Event{Type: payment.EventSent}, change); err == nil {
		t.Fatal("refused by the domain: got no error")
	}
	if _, err := w.Charges.Journal.Change(w.Context(), got, fact(payment.EventPending), change); !errors.Is(err, journal.ErrOldNews) {
		t.Errorf("old news: got %v, want %v", err, journal.ErrOldNews)
	}
}

func TestAChangeCommitsItsClaimWithIt(t *testing.T) {
	w, p := open(t)
	record := idempotency.Record{MerchantID: Merchant, Hash: "h", ResourceID: string(p.ID), CreatedAt: w.Clock.Now(), InProgressUntil: w.Clock.Now()}
	cancel := payment.Event{Type: payment.EventCancelRequested, Cause: payment.CancelByMerchant}
	change := journal.Change{Source: journal.SourceAPI, Claim: &idempotency.Claim{Record: record}}
	w.Store.Before(Row(payment.EventCancelRequested), Refused)
	if _, err := w.Charges.Journal.Change(w.Context(), p, cancel, change); err == nil {
		t.Fatal("got no error")
	}
	if _, err := w.Table.Record(w.Context(), Merchant, "h"); !errors.Is(err, idempotency.ErrNoRecord) {
		t.Fatalf("got %v, want %v", err, idempotency.ErrNoRecord)
	}
	if _, err := w.Charges.Journal.Change(w.Context(), p, cancel, change); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Table.Record(w.Context(), Merchant, "h"); err != nil || got.ResourceID != string(p.ID) {
		t.Errorf("got %+v, %v, want the record", got, err)
	}
}

func TestEveryChangeSaysWhenToLookAgain(t *testing.T) {
	w, p := open(t)
	if want := Start.Add(Durations.ReconcileAfter); !p.DueAt.Equal(want) {
		t.Errorf("pending: got due at %s, want %s", p.DueAt, want)
	}
	w.Clock.Advance(time.Second)
	got, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceAPI, fact(payment.EventCaptured))
	if err != nil || !got.DueAt.IsZero() {
		t.Errorf("captured: got due at %s, %v, want it at rest", got.DueAt, err)
	}
}

func TestWhatAnOperatorWantsToSeeIsCounted(t *testing.T) {
	w, p := open(t)
	record := func(e payment.Event) {
		t.Helper()
		if _, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceWebhook, e); err != nil {
			t.Fatal(err)
		}
	}
	count := func(name string, want int64) {
		t.Helper()
		if n := w.Meter.Of(name); n != want {
			t.Errorf("%s: got %d, want %d", name, n, want)
		}
	}
	record(payment.Event{Type: payment.EventMismatched})
	count(journal.MetricMismatch, 1)
	w.Clock.Advance(Durations.PaymentExpiry)
	record(fact(payment.EventDeclined))
	count(journal.MetricLateFinal, 0) // at the deadline is not after it
	record(fact(payment.EventCaptured))
	record(fact(payment.EventCaptured)) // old news counts nothing
	count(journal.MetricLateCapture, 1)
	refund := payment.RefundEvent{ID: payment.LateRefundID(p.ID), PSPReference: "rf_1", Amount: yen.Minor}
	record(payment.Event{Type: payment.EventRefundFailed, PSPReference: "ch_000001", Refund: refund})
	count(journal.MetricRefundFailed, 1)
	record(payment.Event{Type: payment.EventDisputeOpened, PSPReference: "ch_000001", Dispute: payment.Dispute{PSPReference: "dp_1"}})
	count(journal.MetricDisputed, 1)

	w, p = open(t)
	w.Clock.Advance(Durations.PaymentExpiry + time.Millisecond)
	record(fact(payment.EventCaptured))
	count(journal.MetricLateFinal, 1)
}

func TestARefundThatFailsForGoodIsAnErrorInTheLogOnce(t *testing.T) {
	w, p := open(t)
	refund := payment.RefundEvent{ID: payment.LateRefundID(p.ID), PSPReference: "rf_1", Amount: yen.Minor}
	failed := payment.Event{Type: payment.EventRefundFailed, PSPReference: "ch_000001", Refund: refund}
	facts := []payment.Event{fact(payment.EventDeclined), fact(payment.EventCaptured), failed, failed}
	if _, err := w.Charges.Journal.Record(w.Context(), p.ID, journal.SourceWebhook, facts...); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(w.Logs.Text()) {
		if strings.Contains(line, `"msg":"refund failed"`) {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 {
		t.Fatalf("got lines %q, want one", lines)
	}
	for _, part := range []string{`"level":"ERROR"`, `"payment_id":"` + string(p.ID) + `"`, `"refund_id":"` + string(refund.ID) + `"`, `"stranded":true`} {
		if !strings.Contains(lines[0], part) {
			t.Errorf("got line %s, want %s in it", lines[0], part)
		}
	}
}
