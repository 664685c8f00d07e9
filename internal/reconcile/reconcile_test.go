package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/internal/reconcile"
)

// index is an index in memory.
type index struct {
	mu     sync.Mutex
	shards [][]reconcile.Due
	broken map[int]error
	asked  []time.Time
	reads  int
}

func (x *index) Shards() int { return len(x.shards) }

func (x *index) DuePage(_ context.Context, shard int, at time.Time, limit int, cursor string) ([]reconcile.Due, string, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reads++
	x.asked = append(x.asked, at)
	if err := x.broken[shard]; err != nil {
		return nil, "", err
	}
	from := 0
	if cursor != "" {
		fmt.Sscan(cursor, &from)
	}
	all := x.shards[shard]
	to := min(from+limit, len(all))
	if to == len(all) {
		return all[from:to], "", nil
	}
	return all[from:to], fmt.Sprint(to), nil
}

// fill is an index of that many payments in each shard.
func fill(shards, each int) *index {
	x := &index{shards: make([][]reconcile.Due, shards), broken: map[int]error{}}
	for shard := range shards {
		for n := range each {
			x.shards[shard] = append(x.shards[shard], reconcile.Due{Kind: reconcile.KindPayment, ID: fmt.Sprintf("%d-%d", shard, n)})
		}
	}
	return x
}

// counts keeps metrics.
type counts struct {
	mu    sync.Mutex
	names map[string]int64
}

func (c *counts) Count(name string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names[name] += n
}

// seen keeps what was repaired.
type seen struct {
	mu  sync.Mutex
	ids []string
}

func (s *seen) add(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, id)
}

func sweeper(x *index, repair reconcile.Repair) (*reconcile.Sweeper, *counts) {
	meter := &counts{names: map[string]int64{}}
	return &reconcile.Sweeper{
		Index: x, Repairs: map[reconcile.Kind]reconcile.Repair{reconcile.KindPayment: repair},
		Now: time.Now, Meter: meter, Log: slog.New(slog.DiscardHandler),
	}, meter
}

func TestASweepSeesEverythingInEveryShardOnce(t *testing.T) {
	x := fill(8, 130)
	var done seen
	s, meter := sweeper(x, func(_ context.Context, id string) error { done.add(id); return nil })
	report, err := s.Sweep(t.Context())
	if err != nil || report.Swept != 8*130 || report.Failed != 0 || report.Unfinished {
		t.Fatalf("got %+v, %v, want all of it", report, err)
	}
	slices.Sort(done.ids)
	if unique := slices.Compact(slices.Clone(done.ids)); len(unique) != 8*130 || len(done.ids) != 8*130 {
		t.Errorf("got %d repairs of %d things", len(done.ids), len(unique))
	}
	if meter.names[reconcile.MetricSwept] != 8*130 {
		t.Errorf("got metrics %v", meter.names)
	}
	for _, at := range x.asked {
		if !at.Equal(x.asked[0]) {
			t.Fatal("pages were read as of different times: what is put off meanwhile would come again")
		}
	}
}

func TestWhatFailsOrPanicsDoesNotStopTheRest(t *testing.T) {
	x := fill(2, 60)
	var done seen
	s, meter := sweeper(x, func(_ context.Context, id string) error {
		done.add(id)
		switch id {
		case "0-0":
			return errors.New("broken")
		case "0-1":
			panic("poison")
		}
		return nil
	})
	report, err := s.Sweep(t.Context())
	if err != nil || report.Swept != 120 || report.Failed != 2 {
		t.Errorf("got %+v, %v, want 120 swept and two failed", report, err)
	}
	if meter.names[reconcile.MetricFailed] != 2 {
		t.Errorf("got metrics %v, want two failures", meter.names)
	}
}

func TestAShardWithoutAnAnswerDoesNotStopTheOthers(t *testing.T) {
	x := fill(3, 2)
	x.broken[0], x.broken[2] = errors.New("first"), errors.New("third")
	s, _ := sweeper(x, func(context.Context, string) error { return nil })
	report, err := s.Sweep(t.Context())
	if report.Swept != 2 {
		t.Errorf("got %+v, want the second shard swept", report)
	}
	if !errors.Is(err, x.broken[0]) || !errors.Is(err, x.broken[2]) || !strings.Contains(err.Error(), "shard 2") {
		t.Errorf("got %v, want both shards named", err)
	}
}

func TestAKindOfNewerCodeIsLeftAlone(t *testing.T) {
	x := fill(1, 1)
	x.shards[0] = append(x.shards[0], reconcile.Due{Kind: "gift", ID: "1"})
	s, _ := sweeper(x, func(context.Context, string) error { return nil })
	report, err := s.Sweep(t.Context())
	if err != nil || report.Swept != 1 || report.Failed != 0 {
		t.Errorf("got %+v, %v, want one swept", report, err)
	}
}

func TestEightRepairsOfAShardRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := fill(2, 24)
		started := time.Now()
		s, _ := sweeper(x, func(context.Context, string) error { time.Sleep(time.Second); return nil })
		if _, err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(started); took != 3*time.Second {
			t.Errorf("24 repairs of a second in each shard took %s, want 3s", took)
		}
	})
}

func TestWhatHangsTakesOneWorkerForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := fill(1, 200) // several pages
		var quick, slow time.Duration
		var done seen
		started := time.Now()
		s, _ := sweeper(x, func(ctx context.Context, id string) error {
			if id == "0-0" {
				<-ctx.Done()
				slow = time.Since(started)
				return ctx.Err()
			}
			done.add(id)
			if id == "0-199" {
				quick = time.Since(started)
			}
			return nil
		})
		report, err := s.Sweep(t.Context())
		if err != nil || report.Failed != 1 || len(done.ids) != 199 {
			t.Errorf("got %+v, %d done, %v, want all but one", report, len(done.ids), err)
		}
		if quick != 0 || slow != 30*time.Second {
			t.Errorf("the last was reached after %s, the one that hangs was cut off after %s, want at once and 30s", quick, slow)
		}
	})
}

func TestASweepEndsBeforeItsTimeDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := fill(1, 10_000)
		started := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 55*time.Second)
		defer cancel()
		var mu sync.Mutex
		var last time.Duration
		s, _ := sweeper(x, func(context.Context, string) error {
			mu.Lock()
			last = time.Since(started)
			mu.Unlock()
			time.Sleep(time.Second)
			return nil
		})
		report, err := s.Sweep(ctx)
		if err != nil || !report.Unfinished {
			t.Fatalf("got %+v, %v, want it unfinished", report, err)
		}
		if last >= 39*time.Second || last < 37*time.Second {
			t.Errorf("the last repair began after %s, want none in the last 16s", last)
		}
		if took := time.Since(started); took > 40*time.Second {
			t.Errorf("it took %s, want it to end when its repairs do", took)
		}
	})
}

func TestWhatIsUnderWayAtTheEndIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := fill(1, 1)
		started := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var cut time.Duration
		s, _ := sweeper(x, func(ctx context.Context, _ string) error {
			<-ctx.Done()
			cut = time.Since(started)
			return ctx.Err()
		})
		if _, err := s.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		if cut != 29*time.Second || ctx.Err() != nil {
			t.Errorf("it was cut off after %s, want a second before the end", cut)
		}
	})
}

func TestASweepWithoutTimeBeginsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := fill(1, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 16*time.Second)
		defer cancel()
		s, _ := sweeper(x, func(context.Context, string) error { t.Error("a repair began"); return nil })
		report, err := s.Sweep(ctx)
		if err != nil || !report.Unfinished || x.reads != 0 {
			t.Errorf("got %+v after %d reads, %v, want nothing begun", report, x.reads, err)
		}
	})
}
