package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
)

// pages are rows on numbered pages: "", "1", "2", …
type pages struct {
	n     int
	read  []string
	after func(page int) error // asked when a page is done
}

func (p *pages) ResendPage(_ context.Context, _ outbox.Gap, cursor string) (int64, string, error) {
	p.read = append(p.read, cursor)
	at := 0
	if cursor != "" {
		if _, err := fmt.Sscan(cursor, &at); err != nil {
			return 0, "", err
		}
	}
	next := ""
	if at+1 < p.n {
		next = fmt.Sprint(at + 1)
	}
	if p.after != nil {
		if err := p.after(at); err != nil {
			return 1, "", err
		}
	}
	return 1, next, nil
}

// recovering is a recovery over pages, that is due.
func recovering(t *testing.T, p *pages) (*flowtest.World, *outbox.Recoverer) {
	t.Helper()
	w := flowtest.New(t)
	r := &outbox.Recoverer{
		Gaps: w.Table, Rows: p, Records: w.Table, IdempotencyTTL: time.Hour, Now: w.Clock.Now, Meter: w.Meter, Log: slog.New(slog.DiscardHandler),
	}
	open(t, w, r, "first", time.Hour)
	return w, r
}

// open asks for the events of the last while.
func open(t *testing.T, w *flowtest.World, r *outbox.Recoverer, key string, d time.Duration) outbox.Recovery {
	t.Helper()
	q := flowtest.Request("@operator", "/v1/events/resend", key, key)
	work, _, err := r.Resend(t.Context(), outbox.Request{Scope: q.Scope, Fingerprint: q.Fingerprint}, outbox.Gap{From: flowtest.Start.Add(-d), To: flowtest.Start})
	if err != nil {
		t.Fatal(err)
	}
	return work
}

var errDown = errors.New("no answer")

func TestARecoveryGoesOnAfterEveryPage(t *testing.T) {
	broken := map[int]bool{}
	p := &pages{n: 4, after: func(page int) error {
		if !broken[page] {
			broken[page] = true
			return errDown
		}
		return nil
	}}
	_, r := recovering(t, p)
	for range 4 {
		if err := r.Recover(t.Context()); !errors.Is(err, errDown) {
			t.Fatalf("got %v, want the page's error", err)
		}
	}
	if err := r.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"", "", "1", "1", "2", "2", "3", "3"}; !slices.Equal(p.read, want) {
		t.Errorf("got pages %q, want %q", p.read, want)
	}
	if work, err := r.Last(t.Context()); err != nil || !work.Done() || work.Sent != 4 {
		t.Errorf("got %+v, %v, want it done", work, err)
	}
	if err := r.Recover(t.Context()); err != nil || len(p.read) != 8 {
		t.Errorf("got %v after %d pages, want nothing left", err, len(p.read))
	}
}

func TestARecoveryBeginsAnewWhenItIsMadeWider(t *testing.T) {
	p := &pages{n: 3}
	w, r := recovering(t, p)
	p.after = func(page int) error {
		if page == 1 && len(p.read) == 2 {
			open(t, w, r, "narrow", 30*time.Minute) // within: changes nothing of it
		}
		return nil
	}
	if err := r.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"", "1", "1", "2"}; !slices.Equal(p.read, want) {
		t.Errorf("within: got pages %q, want %q", p.read, want)
	}
	p.read = nil
	open(t, w, r, "again", time.Hour)
	p.after = func(page int) error {
		if page == 1 && len(p.read) == 2 {
			open(t, w, r, "wide", 2*time.Hour)
		}
		return nil
	}
	for range 2 {
		if err := r.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"", "1", "", "1", "2"}; !slices.Equal(p.read, want) {
		t.Errorf("wider: got pages %q, want %q", p.read, want)
	}
	if work, err := r.Last(t.Context()); err != nil || !work.Done() || !work.From.Equal(flowtest.Start.Add(-2*time.Hour)) {
		t.Errorf("got %+v, %v, want the whole done", work, err)
	}
}

func TestARecoveryEndsBeforeItsTimeDoes(t *testing.T) {
	p := &pages{n: 3}
	_, r := recovering(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if err := r.Recover(ctx); err != nil || len(p.read) != 0 {
		t.Errorf("got %v after %d pages, want none begun", err, len(p.read))
	}
}

// A page of the real table is a part of it, and all pages are every row of the gap.
func TestEveryRowOfAGapIsSentAgainWhateverPageItIsOn(t *testing.T) {
	l := newLine(t)
	for n := range 1500 {
		l.unsent(n)
		if n == 999 {
			l.Clock.Advance(time.Minute)
		}
	}
	l.Store.TakeChanges()
	gap := outbox.Gap{From: flowtest.Start, To: flowtest.Start.Add(59 * time.Second)}
	pages, sent, cursor := 0, int64(0), ""
	for {
		n, next, err := l.Table.ResendPage(t.Context(), gap, cursor)
		if err != nil {
			t.Fatal(err)
		}
		sent += n
		pages++
		if cursor = next; cursor == "" {
			break
		}
	}
	again := map[string]bool{}
	for _, c := range l.Store.TakeChanges() {
		if e, ok := payments.RowChange(c); ok {
			again[e.ID] = true
		}
	}
	if sent != 1000 || len(again) != 1000 || pages < 3 {
		t.Errorf("got %d sent, %d events, on %d pages, want the 1000 of the gap on several", sent, len(again), pages)
	}
}

func TestHeartbeatsAreMadeOnceAndAllOfThem(t *testing.T) {
	w := flowtest.New(t)
	pulse := func() *outbox.Pulse {
		return &outbox.Pulse{Hearts: w.Table, Now: w.Clock.Now, Meter: w.Meter, Log: slog.New(slog.DiscardHandler)}
	}
	w.Store.Before(func(writes []store.Write) bool { return writes[0].Key.PK == "HEARTBEAT#2" }, flowtest.Silent)
	broken := pulse()
	if err := broken.Start(t.Context()); err == nil {
		t.Fatal("got no error, want the store's")
	}
	for _, p := range []*outbox.Pulse{broken, pulse(), pulse()} {
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Clock.Advance(time.Second)
	}
	for n := range outbox.Heartbeats {
		h, err := w.Table.Heartbeat(t.Context(), n)
		if err != nil || h.Beat != 1 || h.Seen != 0 || !h.SeenAt.Equal(flowtest.Start) {
			t.Errorf("heartbeat %d: got %+v, %v, want the first one's", n, h, err)
		}
	}
	w.Cost.Reset()
	if err := broken.Start(t.Context()); err != nil || w.Cost.Count().Reads != 0 {
		t.Errorf("got %v after %d reads, want nothing done", err, w.Cost.Count().Reads)
	}
}

// What watching the stream costs: nothing for a payment and nothing for a batch, and
// this for each interval of ten minutes.
func TestWatchingTheStreamCostsBeatsAlone(t *testing.T) {
	l := newLine(t)
	watch := l.relay.Watch
	batch := func() (reads, writes int) {
		l.Charged(fmt.Sprint("k", l.Clock.Now()), flowtest.Order{}, payment.StatusCaptured)
		for _, c := range l.Store.TakeChanges() {
			l.change(c)
		}
		l.Cost.Reset()
		l.read()
		return l.Cost.Count().Reads, l.Cost.Count().Writes
	}
	l.relay.Watch = nil
	reads, writes := batch()
	l.relay.Watch = watch
	l.Clock.Advance(time.Second)
	if r, w := batch(); r != reads || w != writes || w == 0 {
		t.Errorf("got %d reads and %d writes of a batch that is watched, want %d and %d", r, w, reads, writes)
	}
	l.PSP.Drain()
	l.pass(outbox.Interval)
	l.Clock.Advance(outbox.Interval)
	l.Cost.Reset()
	l.Sweep()
	l.pump()
	cost := l.Cost.Count()
	t.Logf("%d writes, %d write units an interval", cost.Writes, cost.WriteUnits)
	if cost.Writes != 2*outbox.Heartbeats || cost.WriteUnits != 4*outbox.Heartbeats {
		t.Errorf("got %d writes of %d units, want a beat (3, with its due date) and a mark (1) for each heartbeat", cost.Writes, cost.WriteUnits)
	}
}
