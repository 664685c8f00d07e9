package outbox_test

import (
	"maps"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

// A stream that nobody reads for longer than it remembers loses rows of payments,
// checkouts and reconciliations. Each is found and sent again, under its id, and what
// is known by then goes nowhere twice.
func TestEventsThatNeverGotOutAreSentAgain(t *testing.T) {
	l := newLine(t)
	l.Charged("before", flowtest.Order{}, payment.StatusCaptured)
	l.pass(2 * time.Hour)
	l.wantHeard()

	l.down = true
	l.Charged("lost", flowtest.Order{}, payment.StatusCaptured)
	l.Charged("declined", flowtest.Order{Token: psptest.TokenDeclined}, payment.StatusFailed)
	half := l.Charged("half", flowtest.Order{Token: psptest.TokenPending}, payment.StatusProcessing)
	l.unsent(1)
	bought := l.Ordered("checkout", sagatest.Basket{})
	l.pass(outbox.Interval)
	l.PSP.Approve(string(half.ID))
	l.Receive(l.PSP.Drain()...)
	summary := store.Item{"type": "reconciliation.completed", "version": int64(1), "at": l.Clock.Now().UnixMilli(), "source": "reconciler", "data": map[string]any{"status": "completed"}}
	l.put(store.Key{PK: "RECONCILIATION#rec_1", SK: "EVENT#0000000001"}, summary)
	l.pass(26 * time.Hour)
	l.Want(half.ID, payment.StatusCaptured)
	if l.unheard() < 10 || l.Meter.Of(outbox.MetricBehind) == 0 {
		t.Fatalf("got %d rows lost and %d alarms, want some", l.unheard(), l.Meter.Of(outbox.MetricBehind))
	}
	l.wantNoGap()

	l.down = false
	l.pass(outbox.Interval)
	if got := l.Meter.Of(outbox.MetricGap); got != 1 {
		t.Errorf("got %d gaps, want one of all heartbeats", got)
	}
	l.pass(time.Hour)
	l.wantHeard()
	l.WantCheckout(bought.ID, checkout.StatusCompleted, "")
	if r := l.recovery(); !r.Done() || r.Sent < 10 || l.Meter.Of(outbox.MetricResent) != r.Sent {
		t.Errorf("got %+v, want it done", r)
	}
	heard := maps.Clone(l.bus.heard)
	for id, n := range heard {
		if n > 2 {
			t.Errorf("%s was sent %d times", id, n)
		}
	}
	l.pass(4 * time.Hour)
	if !maps.Equal(l.bus.heard, heard) || l.recovery().Version != 0 && l.Meter.Of(outbox.MetricGap) != 1 {
		t.Error("a second round sent something")
	}
}

func (l *line) put(key store.Key, item store.Item) {
	l.Helper()
	if err := l.Store.Write(l.Context(), store.Write{Kind: store.Put, Key: key, Item: item}); err != nil {
		l.Fatal(err)
	}
}

// A batch that leaves the stream takes its beat with it: the next one tells.
func TestABatchLostInTheMiddleIsSentAgain(t *testing.T) {
	l := newLine(t)
	l.pass(3 * time.Hour)
	early := l.Charged("early", flowtest.Order{}, payment.StatusCaptured)
	l.pass(3 * time.Hour)
	l.down = true
	l.Charged("lost", flowtest.Order{}, payment.StatusCaptured)
	l.pass(outbox.Interval)
	l.held, l.down = nil, false
	l.Charged("later", flowtest.Order{}, payment.StatusCaptured)
	l.pass(time.Hour)
	l.wantHeard()
	if got := l.Meter.Of(outbox.MetricGap); got != 1 {
		t.Errorf("got %d gaps, want 1", got)
	}
	if got := l.bus.heard[outbox.EventID(string(early.ID), 1)]; got != 1 {
		t.Errorf("got an event of three hours before %d times, want once: the gap is known to its beats", got)
	}
}

// While the bus refuses, rows are given up one after the other, and the beats of
// other parts of the stream arrive as if nothing were wrong.
func TestWhatABusRefusedForTwoDaysIsSentAgain(t *testing.T) {
	l := newLine(t)
	l.bus.refuses = errRefused
	for n := range 8 {
		l.unsent(n)
		l.pass(6 * time.Hour)
	}
	if n := l.unheard(); n != 8 {
		t.Fatalf("got %d lost, want 8", n)
	}
	l.bus.refuses = nil
	l.pass(outbox.Interval)
	if n := l.unheard(); n < 5 {
		t.Fatalf("got %d left, want most of them given up", n)
	}
	l.pass(time.Hour)
	l.wantHeard()
	if got := l.Meter.Of(outbox.MetricGap); got != 1 {
		t.Errorf("got %d gaps, want one that grew", got)
	}
	if r := l.recovery(); !r.Done() || l.Meter.Of(outbox.MetricBehind) != 0 {
		t.Errorf("got %+v, want it done", r)
	}
}

func TestABusThatRefusesForAMomentOpensNoGap(t *testing.T) {
	l := newLine(t)
	l.bus.refuses = errRefused
	l.Charged("k", flowtest.Order{}, payment.StatusCaptured)
	l.pump()
	l.Clock.Advance(50 * time.Second)
	l.read()
	l.bus.refuses = nil
	l.read()
	l.wantHeard()
	l.pass(2 * time.Hour)
	l.wantNoGap()
}

// What can never be carried out is brought back a few times and then left alone.
func TestARowThatAlwaysFailsIsNotSentForEver(t *testing.T) {
	l := newLine(t)
	l.bus.refuses = errRefused
	l.unsent(1)
	for range 20 {
		l.pass(30 * time.Minute)
		l.held = nil // the stream gives it up
		l.pass(time.Hour)
	}
	if got := l.recovery().Done(); !got || l.Meter.Of(outbox.MetricResent) > 3 {
		t.Errorf("got it sent again %d times, want at most 3", l.Meter.Of(outbox.MetricResent))
	}
}

func TestOldBeatsThatComeAgainOpenNoGap(t *testing.T) {
	l := newLine(t)
	l.down = true
	l.pass(3 * outbox.Interval)
	old := append(l.held[:0:0], l.held...)
	l.down = false
	l.pass(3 * outbox.Interval)
	before, err := l.Table.Heartbeat(t.Context(), 3)
	if err != nil || before.Seen != before.Beat {
		t.Fatalf("got %+v, %v, want its last beat seen", before, err)
	}
	for range 3 {
		l.hand(old)
		l.hand(old[len(old)/2:])
	}
	if after, err := l.Table.Heartbeat(t.Context(), 3); err != nil || after != before {
		t.Errorf("got %+v, %v, want %+v", after, err, before)
	}
	l.pass(time.Hour)
	l.wantNoGap()
}

func TestASweepThatPausesOpensNoGap(t *testing.T) {
	l := newLine(t)
	l.pass(time.Hour)
	l.Clock.Advance(3 * 24 * time.Hour)
	l.Charged("k", flowtest.Order{}, payment.StatusCaptured)
	l.pump()
	l.pass(2 * time.Hour)
	l.wantNoGap()
	if n := l.Meter.Of(outbox.MetricBehind); n != 0 {
		t.Errorf("got %d alarms, want none", n)
	}
	l.wantHeard()
}

// Whoever reads the stream for the first time long after the heartbeats were made
// has missed what came since.
func TestWhatWasLostBeforeTheFirstBeatThatCameIsSentAgain(t *testing.T) {
	l := newLine(t)
	for n := range outbox.Heartbeats { // as if no beat had ever come
		h, err := l.Table.Heartbeat(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		key := store.Key{PK: "HEARTBEAT#" + string(rune('0'+n)), SK: "BEAT"}
		if err := l.Store.Write(t.Context(), store.Write{Kind: store.Update, Key: key, Set: store.Item{"seen": int64(0), "seen_at": h.BeatAt.UnixMilli()}}); err != nil {
			t.Fatal(err)
		}
	}
	l.Charged("lost", flowtest.Order{}, payment.StatusCaptured)
	l.Store.TakeChanges()
	l.pass(outbox.Interval)
	l.pass(time.Hour)
	l.wantHeard()
}
