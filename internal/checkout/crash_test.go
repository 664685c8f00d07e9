package checkout_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// errLost is an invocation whose function ended without an answer: the state
// machine repeats it.
var errLost error = messages.InvokeResponse_Error{Type: "Runtime.ExitError", Message: "lost"}

// errFatal is one that the state machine does not know: the execution ends.
var errFatal = errors.New("the execution dies")

// place is a moment in a story: a port of the n-th invocation of a function, from
// 1, or 0 for the moment before it does anything.
type place struct {
	call int64
	port int
	name string
}

// places are all moments of a story in an undisturbed run, the one after the
// invocation's last port included.
func (s story) places(t *testing.T) []place {
	t.Helper()
	var all []place
	t.Run("undisturbed", func(t *testing.T) {
		w := stocked(t)
		port, current := 0, sagatest.Call{}
		w.AtPorts(func() {
			if current.N > 0 {
				port++
				all = append(all, place{current.N, port, current.String()})
			}
		})
		w.Around = func(c sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
			port, current = 0, c
			all = append(all, place{c.N, 0, c.String()})
			answer, err := invoke()
			all = append(all, place{c.N, port + 1, c.String()})
			current = sagatest.Call{}
			return answer, err
		}
		s.ends(w, s.play(w, 0))
	})
	return all
}

// disturb runs do once at a place, and reports whether it came to it. After an
// invocation's last port is before its answer.
func disturb(w *sagatest.World, at place, do func()) (done *bool) {
	done = new(bool)
	port, inside := 0, false
	once := func() {
		if !*done {
			*done = true
			do()
		}
	}
	w.AtPorts(func() {
		if inside && !*done {
			if port++; port == at.port {
				once()
			}
		}
	})
	w.Around = func(c sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
		if c.N != at.call || *done {
			return invoke()
		}
		if at.port == 0 {
			once()
		}
		inside = true
		defer func() { inside = false }()
		answer, err := invoke()
		once()
		return answer, err
	}
	return done
}

// sweeps is long enough for what a lost answer of the PSP needs: a look-up, the
// wake-up of the checkout, and another look at it.
const sweeps = 5 * time.Minute

func TestACrashAnywhereIsMadeGoodByTheSweep(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			for _, at := range s.places(t) {
				for _, lost := range []error{errLost, errFatal} {
					t.Run(fmt.Sprintf("%s port %d %v", at.name, at.port, lost), func(t *testing.T) {
						w := stocked(t)
						w.Rough = true
						died := crash(w, at, lost)
						s.ends(w, s.play(w, sweeps))
						if !*died {
							t.Error("nothing died")
						}
					})
				}
			}
		})
	}
}

// crash lets the function die at a place; its caller is told what was lost. It
// reports whether it came to it.
func crash(w *sagatest.World, at place, lost error) (died *bool) {
	port, inside := 0, false
	died = new(bool)
	w.AtPorts(func() {
		if !inside {
			return
		}
		if port++; port == at.port {
			_ = w.Die() // panics
		}
	})
	w.Around = func(c sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
		if c.N != at.call || *died {
			return invoke()
		}
		*died = true
		w.Crash(func() {
			if at.port > 0 {
				inside = true
				defer func() { inside = false }()
				_, _ = invoke()
			}
			_ = w.Die() // before it began, or with its answer on its lips
		})
		return nil, lost
	}
	return died
}

func TestAnotherExecutionMayRunAnywhere(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			for _, at := range s.places(t) {
				t.Run(fmt.Sprintf("%s port %d", at.name, at.port), func(t *testing.T) {
					w := stocked(t)
					made := ""
					came := disturb(w, at, func() { w.Again(made) })
					c := w.Ordered("k", s.basket)
					made = c.ID
					w.Settle()
					if s.then != nil {
						s.then(w, c)
					}
					w.Deliver(w.PSP.Drain()...)
					w.Pass(s.pass + sweeps)
					s.ends(w, c)
					if !*came {
						t.Error("nobody came between")
					}
					if n := w.Mail.Delivered(c.ID); n > 1 {
						t.Errorf("the buyer was told %d times", n)
					}
				})
			}
		})
	}
}

func TestWhoeverStartsAnExecutionMayDie(t *testing.T) {
	for _, s := range stories {
		for failing := 1; failing <= 3; failing++ {
			t.Run(fmt.Sprintf("%s, start %d", s.name, failing), func(t *testing.T) {
				w := stocked(t)
				w.Rough = true
				starts := 0
				w.OnStart = func(string) error {
					if starts++; starts == failing {
						return flowtest.ErrSilent
					}
					return nil
				}
				s.ends(w, s.play(w, sweeps))
			})
		}
		t.Run(s.name+", the relay is dead", func(t *testing.T) {
			w := stocked(t)
			w.Deaf = true
			s.ends(w, s.play(w, sweeps))
		})
		t.Run(s.name+", no execution survives its start", func(t *testing.T) {
			w := stocked(t)
			starts := 0
			w.OnStart = func(string) error { starts++; return nil }
			w.Around = func(_ sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
				if starts == 1 {
					return nil, errFatal
				}
				return invoke()
			}
			w.Rough = true
			s.ends(w, s.play(w, sweeps))
		})
	}
}

func TestAFailureThatLastsEndsWithAPerson(t *testing.T) {
	w := stocked(t)
	w.Rough = true
	c := w.Ordered("k", sagatest.Basket{})
	w.Around = func(call sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
		if call.Function == sagatest.Orders {
			return nil, errLost
		}
		return invoke()
	}
	w.Settle()
	w.WantCheckout(c.ID, "pending", "")
	w.Pass(24 * time.Hour)
	w.WantCheckout(c.ID, "needs_review", "")
	if n := len(w.Ended()); n != 11 {
		t.Errorf("got %d executions, want the first and ten of the sweep", n)
	}
	w.WantCalls(psptest.OperationRefund, 0) // nothing is undone because of an error
	for _, said := range []checkout.OrderAnswer{created("ord_1"), {Outcome: order.OutcomeRejected}, {Outcome: order.OutcomeCanceled}} {
		err := w.Saga.Complete(t.Context(), c.ID, said) // an execution that is late
		if _, waits := errors.AsType[*checkout.WaitingError](err); !waits {
			t.Errorf("order %s while a person has the word: got %v, want a WaitingError", said.Outcome, err)
		}
	}
	w.WantCheckout(c.ID, "needs_review", "")
	w.Around = nil
	if _, err := w.Resume("r", c.ID); err != nil {
		t.Fatal(err)
	}
	w.WantCheckout(c.ID, "completed", "")
}
