package explore

import (
	"context"
	"testing"

	"github.com/kessai/kessai/internal/psp/psptest"
)

// limited is how Lambda refuses an invocation: the function has not run.
type limited struct{}

func (limited) Error() string { return "rate exceeded" }
func (limited) Name() string  { return "Lambda.TooManyRequestsException" }

// refusing refuses those invocations of every function that refuse says, counted
// from 1 in the order in which they are made.
func refusing(w *world, refuse func(n int) bool) {
	n := 0
	for name, run := range w.shop.machine.functions {
		w.shop.machine.functions[name] = func(ctx context.Context, payload []byte) ([]byte, error) {
			if n++; refuse(n) {
				return nil, limited{}
			}
			return run(ctx, payload)
		}
	}
}

// bought is a world in which a checkout was asked for, and its execution has not run.
func bought(t *testing.T) *world {
	t.Helper()
	s, err := scenarioOf("checkout")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(s, map[string]int{})
	buy("api", "k", psptest.TokenCaptured, "order-42").body(w)
	if len(w.shop.waiting) != 1 {
		t.Fatalf("got %d executions, want one", len(w.shop.waiting))
	}
	w.happened()
	return w
}

// runAlone lets the execution run that waits, and reports what the world is then.
func (w *world) runAlone() uint64 {
	w.runExecutions()
	return w.digest()
}

// F15: an invocation that the concurrency limit refuses has no effect. It is repeated,
// and the execution comes to the same end.
func TestF15_AnInvocationRefusedByTheConcurrencyLimitIsRepeated(t *testing.T) {
	want, calls := uint64(0), 0
	{
		w := bought(t)
		refusing(w, func(n int) bool { calls = n; return false })
		want = w.runAlone()
	}
	if calls < 4 {
		t.Fatalf("got %d invocations, want those of a whole checkout", calls)
	}
	w := bought(t)
	refusals := 0
	refusing(w, func(n int) bool {
		refusals = (n + 1) / 2
		return n%2 == 1
	})
	if got := w.runAlone(); got != want || refusals != calls {
		t.Errorf("got another end after %d refusals of %d invocations, want the same", refusals, calls)
	}
}

// F15: where the limit refuses for longer than an execution repeats, the execution
// ends where it is, and the sweep brings the checkout to its end.
func TestF15_AnExecutionThatTheConcurrencyLimitEndsIsFinishedByTheSweep(t *testing.T) {
	for first := 1; ; first++ {
		w := bought(t)
		refused, still := 0, true
		var at uint64
		refusing(w, func(n int) bool {
			if !still || n < first {
				return false
			}
			if refused++; refused == 1 {
				at = w.digest()
			}
			return true
		})
		if ended := w.runAlone(); refused == 0 {
			if first < 4 {
				t.Errorf("got %d invocations, want those of a whole checkout", first-1)
			}
			return
		} else if ended != at {
			t.Errorf("invocation %d on: got something done by what was refused", first)
		}
		still = false
		w.finish(byReconciler)
		for _, v := range w.violations {
			t.Errorf("invocation %d on: %s: %s", first, v.Invariant, v.Detail)
		}
	}
}
