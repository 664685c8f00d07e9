package flowtest_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.uber.org/goleak"

	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/payment"
)

// refundCall asks for a refund of an amount, or reads what was refunded (0).
type refundCall struct{ amount int64 }

// refundAnswer is what came of it.
type refundAnswer struct {
	refused  bool
	refunded int64 // what a read saw
}

// bounded is a captured payment to one who sees only its refunds: a number that
// rises to what was captured and never beyond.
func bounded(captured int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			sum, call, answer := state.(int64), input.(refundCall), output.(refundAnswer)
			fits := sum+call.amount <= captured
			switch {
			case call.amount == 0:
				return answer.refunded == sum, sum
			case answer.refused:
				return !fits, sum
			}
			return fits, sum + call.amount
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

// Whatever happens at the same moment, refunds and reads of one payment look as
// if they had come one after the other (S-REFUND-BOUND, under real concurrency).
func TestConcurrentRefundsOfOnePaymentAreLinearizable(t *testing.T) {
	defer goleak.VerifyNone(t)
	const captured, workers, calls = 10_000, 6, 5
	for round := range 8 {
		w := flowtest.New(t)
		p := w.Charged("charge", flowtest.Order{Amount: captured}, payment.StatusCaptured)
		var mu sync.Mutex
		var history []porcupine.Operation
		start := time.Now()
		var all sync.WaitGroup
		for worker := range workers {
			all.Go(func() {
				for n := range calls {
					call := refundCall{amount: int64((worker+n+round)%4) * 700}
					began := time.Since(start).Nanoseconds()
					answer, err := doRefund(w, p.ID, fmt.Sprintf("%d-%d", worker, n), call)
					ended := time.Since(start).Nanoseconds()
					if err != nil {
						t.Errorf("refund of %d: %v", call.amount, err)
						return
					}
					mu.Lock()
					history = append(history, porcupine.Operation{ClientId: worker, Input: call, Call: began, Output: answer, Return: ended})
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if !porcupine.CheckOperations(bounded(captured), history) {
			t.Fatalf("round %d: the history of %d operations has no order:\n%+v", round, len(history), history)
		}
	}
}

// A history that exceeds what was captured has no order: the check can fail.
func TestAnOverdrawnHistoryIsNotLinearizable(t *testing.T) {
	history := []porcupine.Operation{
		{ClientId: 0, Input: refundCall{600}, Call: 0, Output: refundAnswer{}, Return: 10},
		{ClientId: 1, Input: refundCall{600}, Call: 5, Output: refundAnswer{}, Return: 15},
	}
	if porcupine.CheckOperations(bounded(1000), history) {
		t.Error("two refunds of 600 out of 1000 pass, want them to have no order")
	}
}

func doRefund(w *flowtest.World, id payment.ID, key string, call refundCall) (refundAnswer, error) {
	if call.amount == 0 {
		p, err := w.Charges.Payment(w.Context(), flowtest.Merchant, id)
		if err != nil {
			return refundAnswer{}, err
		}
		return refundAnswer{refunded: p.AmountCaptured - p.Refundable()}, nil
	}
	_, err := w.Refund(key, id, call.amount)
	if errors.Is(err, payment.ErrAmountTooLarge) {
		return refundAnswer{refused: true}, nil
	}
	return refundAnswer{}, err
}
