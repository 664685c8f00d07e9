package checkout_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// turns lets one of several processes go on at a time, from one port to the next.
type turns struct {
	mu      sync.Mutex
	waiting []chan struct{}
}

// wait is called at a port: it ends when the process has its turn.
func (t *turns) wait() {
	turn := make(chan struct{})
	t.mu.Lock()
	t.waiting = append(t.waiting, turn)
	t.mu.Unlock()
	<-turn
}

// next lets one process go on that pick chooses, and reports whether any waited.
func (t *turns) next(pick func(n int) int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.waiting)
	if n == 0 {
		return false
	}
	i := pick(n)
	close(t.waiting[i])
	t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
	return true
}

// TestExecutionsMayInterleaveInAnyWay runs three executions of one checkout, and a
// sweep, with a switch at every port, in many orders.
func TestExecutionsMayInterleaveInAnyWay(t *testing.T) {
	const orders = 40
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			for seed := range uint64(orders) {
				synctest.Test(t, func(t *testing.T) { interleaved(t, s, seed) })
			}
		})
	}
}

func interleaved(t *testing.T, s story, seed uint64) {
	w := stocked(t)
	w.Rough = true // an execution may lose more races than it may
	c := w.Ordered("k", s.basket)
	random := rand.New(rand.NewPCG(seed, 1))
	turn, controlled := &turns{}, true
	w.AtPorts(func() {
		if controlled {
			turn.wait()
		}
	})
	w.Around = func(_ sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
		if controlled {
			turn.wait()
		}
		return invoke()
	}
	processes := []func(){
		func() { w.RunNext() },
		func() { w.Again(c.ID) },
		func() { w.Again(c.ID) },
		func() { _ = w.Checkouts.Repair(w.Context(), c.ID) },
	}
	var running atomic.Int32
	for _, process := range processes {
		running.Add(1)
		go func() {
			defer running.Add(-1)
			process()
		}()
	}
	for synctest.Wait(); running.Load() > 0; synctest.Wait() {
		if !turn.next(random.IntN) {
			time.Sleep(time.Millisecond) // the others pause after a lost race
		}
	}
	controlled = false
	w.Settle()
	if s.then != nil {
		s.then(w, c)
	}
	w.Deliver(w.PSP.Drain()...)
	w.Pass(s.pass + sweeps)
	s.ends(w, c)
}

func TestSixtyFourBuyersOfTenPieces(t *testing.T) {
	const buyers, pieces = 64, 10
	w := sagatest.New(t)
	w.Supply(sagatest.Tee, pieces)
	var made []checkout.Checkout
	for i := range buyers {
		made = append(made, w.Ordered(fmt.Sprint(i), sagatest.Basket{}))
	}
	var all sync.WaitGroup
	for range buyers {
		all.Go(func() { w.RunNext() })
	}
	all.Wait()
	w.Settle()
	ends := map[checkout.Status]int{}
	for _, c := range made {
		ends[w.Checkout(c.ID).Status]++
	}
	if ends[checkout.StatusCompleted] != pieces || ends[checkout.StatusFailed] != buyers-pieces {
		t.Errorf("got %v, want %d completed and the others failed", ends, pieces)
	}
	w.WantStock(sagatest.Tee, 0, 0, pieces)
	w.WantCalls(psptest.OperationCreate, pieces)
}
