package checkout_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/command"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

func created(id string) checkout.OrderAnswer {
	return checkout.OrderAnswer{Outcome: order.OutcomeCreated, OrderID: &id}
}

func TestNoStepHappensOutOfTurn(t *testing.T) {
	w := stocked(t)
	w.Rough = true
	c := w.Ordered("k", sagatest.Basket{Token: psptest.TokenRequiresAction})
	invalid := func(step string, err error) {
		t.Helper()
		if !errors.Is(err, checkout.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", step, err)
		}
	}
	illegal := func(step string, err error) {
		t.Helper()
		if _, ok := errors.AsType[*checkout.IllegalError](err); !ok {
			t.Errorf("%s: got %v, want an IllegalError", step, err)
		}
	}
	invalid("undo while going forward", w.Saga.UndoCharge(t.Context(), c.ID))
	invalid("close while going forward", w.Saga.Close(t.Context(), c.ID))
	invalid("a reservation that is none", w.Saga.Charge(t.Context(), c.ID, inventory.None))
	invalid("a reservation of another word", w.Saga.Charge(t.Context(), c.ID, "perhaps"))
	invalid("an order without an id", w.Saga.Complete(t.Context(), c.ID, created("")))
	invalid("an order of another word", w.Saga.Complete(t.Context(), c.ID, checkout.OrderAnswer{Outcome: "perhaps"}))
	illegal("an order without payment", w.Saga.Complete(t.Context(), c.ID, created("ord_1")))
	if got := w.Meter.Of(checkout.MetricOrderWithoutPayment); got != 1 || !strings.Contains(w.Logs.Text(), "order without payment") {
		t.Errorf("got %d alarms, want 1 and a line", got)
	}
	w.WantEvents(c.ID, "created")
	w.Settle()
	w.PSP.Decline(string(c.PaymentID))
	w.Around = func(call sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
		if call.Command == string(checkout.CommandUndoCharge) {
			illegal("close before the payment is undone", w.Saga.Close(t.Context(), c.ID))
		}
		return invoke()
	}
	w.Deliver(w.PSP.Drain()...)
	w.WantCheckout(c.ID, checkout.StatusFailed, "card_declined")
}

func TestACheckoutThatIsOverStaysAsItIs(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			w := stocked(t)
			c := s.play(w, 0)
			before := w.Checkout(c.ID)
			w.Again(c.ID)
			w.Again(c.ID)
			if got := w.Checkout(c.ID); !reflect.DeepEqual(got, before) {
				t.Errorf("got %+v, want %+v", got, before)
			}
			s.ends(w, c)
		})
	}
}

func TestWhileAPersonHasTheWordNothingGoesOn(t *testing.T) {
	w := stocked(t)
	c := w.Ordered("k", sagatest.Basket{SKU: rejected})
	w.OnCall(psptest.OperationRefund, refused)
	w.Settle()
	w.WantCheckout(c.ID, checkout.StatusNeedsReview, "order_rejected")
	w.Again(c.ID)
	w.WantCheckout(c.ID, checkout.StatusNeedsReview, "order_rejected")
	for step, err := range map[string]error{
		"undo": w.Saga.UndoCharge(t.Context(), c.ID), "close": w.Saga.Close(t.Context(), c.ID),
		"charge": w.Saga.Charge(t.Context(), c.ID, inventory.Reserved),
	} {
		if _, ok := errors.AsType[*checkout.WaitingError](err); !ok {
			t.Errorf("%s: got %v, want a WaitingError", step, err)
		}
	}
	w.WantCalls(psptest.OperationRefund, 1)
	w.WantEvents(c.ID, words("created stock_reserved charged compensating needs_review")...)
}

// refused is a provider that will not make the refund.
func refused() error {
	return &psp.Error{Operation: "refund", Outcome: psp.OutcomeRejected, HTTPStatus: 402, Code: "refused"}
}

// TestALateExecutionDoesNotParkWhatSomebodyResumed: the first execution hears that
// the refund failed, and is slow; meanwhile an operator resumes, and another refund
// succeeds.
func TestALateExecutionDoesNotParkWhatSomebodyResumed(t *testing.T) {
	w := stocked(t)
	c := w.Ordered("k", sagatest.Basket{SKU: rejected})
	slow := false
	w.AtPorts(func() {
		p := w.Payment(c.PaymentID)
		failed := len(p.Refunds) == 1 && p.Refunds[0].Status == payment.RefundFailed
		if slow || !failed || w.Checkout(c.ID).Status != checkout.StatusPending {
			return
		}
		slow = true
		w.Again(c.ID) // it parks the checkout
		if _, err := w.Checkouts.Resume(t.Context(), sagatest.OperatorRequest("r", c.ID), c.ID); err != nil {
			t.Error(err)
		}
	})
	w.OnCall(psptest.OperationRefund, refused)
	w.Settle()
	if !slow {
		t.Fatal("it was not slow")
	}
	w.WantCheckout(c.ID, checkout.StatusFailed, "order_rejected")
	w.WantEvents(c.ID, words("created stock_reserved charged compensating needs_review resumed payment_undone stock_released failed")...)
}

// TestALateExecutionDoesNotAskTheCustomerAgain: it has read that the customer must
// act, and is slow; meanwhile the customer paid, and another execution saw it.
func TestALateExecutionDoesNotAskTheCustomerAgain(t *testing.T) {
	w := stocked(t)
	c := w.Ordered("k", sagatest.Basket{Token: psptest.TokenRequiresAction})
	w.Rough = true
	slow := false
	w.AtPorts(func() {
		if slow || w.Payment(c.PaymentID).Status != payment.StatusRequiresAction {
			return
		}
		slow = true
		w.PSP.Approve(string(c.PaymentID))
		w.Receive(w.PSP.Drain()...)
		w.Carry()
		w.Around = func(call sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
			if call.Function == sagatest.Orders { // it has recorded the charge, and dies
				return nil, errFatal
			}
			return invoke()
		}
		w.RunNext()
		w.Around = nil
	})
	w.Settle()
	if !slow {
		t.Fatal("it was not slow")
	}
	w.Pass(2 * time.Minute)
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	w.WantEvents(c.ID, words(wayCompleted)...)
}

// TestTheCustomerIsAskedThoughTheAnswerWasLost: that the customer must act came by
// webhook only.
func TestTheCustomerIsAskedThoughTheAnswerWasLost(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		w := stocked(t)
		w.OnAnswer(psptest.OperationCreate, func() error { return errTimeout })
		c := w.Bought("k", sagatest.Basket{Token: psptest.TokenRequiresAction})
		w.WantCheckout(c.ID, checkout.StatusPending, "")
		w.Deaf = deaf
		w.Deliver(w.PSP.Drain()...)
		if deaf {
			w.WantCheckout(c.ID, checkout.StatusPending, "")
			w.Pass(2 * time.Minute)
		}
		w.WantCheckout(c.ID, checkout.StatusRequiresAction, "")
		w.PSP.Approve(string(c.PaymentID))
		w.Deliver(w.PSP.Drain()...)
		w.Pass(2 * time.Minute)
		w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	}
}

var errTimeout = errors.New("no answer in time")

func TestTheHandlerNamesItsErrors(t *testing.T) {
	w := stocked(t)
	handler := checkout.Handler{Saga: w.Saga}
	declined := w.Ordered("k1", sagatest.Basket{Token: psptest.TokenDeclined})
	waiting := w.Ordered("k2", sagatest.Basket{Token: psptest.TokenRequiresAction})
	charged := w.Ordered("k3", sagatest.Basket{})
	for _, c := range []checkout.Checkout{declined, waiting, charged} {
		if _, err := w.Stock.Reserve(t.Context(), inventory.Reservation{
			MerchantID: c.MerchantID, CheckoutID: c.ID, Lines: []inventory.Line{{SKU: sagatest.Tee, Quantity: 1}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ payload, want string }{
		{`{"command":"charge","checkout_id":"` + declined.ID + `","reservation":"reserved"}`, "BackwardError"},
		{`{"command":"charge","checkout_id":"` + waiting.ID + `","reservation":"reserved"}`, "WaitingError"},
		{`{"command":"charge","checkout_id":"` + charged.ID + `","reservation":"reserved"}`, ""},
		{`{"command":"charge","checkout_id":"chk_01KDYAK348M9S346Q3D2ZZZZZZ","reservation":"reserved"}`, "InvalidCommandError"},
		{`{"command":"charge","checkout_id":"` + charged.ID + `","reservation":""}`, "InvalidCommandError"},
		{`{"command":"complete","checkout_id":"` + charged.ID + `"}`, "InvalidCommandError"},
		{`{"command":"undo_charge","checkout_id":"` + charged.ID + `"}`, "InvalidCommandError"},
		{`{"command":"refund","checkout_id":"` + charged.ID + `"}`, "InvalidCommandError"},
		{`{"command":"charge","checkout":"` + charged.ID + `"}`, "InvalidCommandError"},
		{`{`, "InvalidCommandError"},
	}
	for _, tt := range tests {
		answer, err := handler.Invoke(t.Context(), []byte(tt.payload))
		got := ""
		if err != nil {
			got = reflect.TypeOf(err).Elem().Name()
		}
		if got != tt.want {
			t.Errorf("%s: got %v, want %q", tt.payload, err, tt.want)
		}
		var a checkout.Answer
		if err == nil && (json.Unmarshal(answer, &a) != nil || a.CheckoutID == "") {
			t.Errorf("%s: got answer %s, want the checkout's id", tt.payload, answer)
		}
	}
	if got, want := w.Meter.Of(checkout.MetricStepFailed), int64(7); got != want {
		t.Errorf("got %d counted as failed, want %d: those without an answer", got, want)
	}
	w.Settle()
}

func TestAStoreThatGivesNoAnswerIsUnavailable(t *testing.T) {
	w := stocked(t)
	w.Rough = true
	c := w.Ordered("k", sagatest.Basket{})
	w.Store.BeforeGet(func(k store.Key) bool { return k.PK == "CHECKOUT#"+c.ID }, func() error { return errTimeout })
	payload := fmt.Sprintf(`{"command":"charge","checkout_id":%q,"reservation":"reserved"}`, c.ID)
	_, err := checkout.Handler{Saga: w.Saga}.Invoke(t.Context(), []byte(payload))
	if _, ok := errors.AsType[*command.UnavailableError](err); !ok {
		t.Errorf("got %v, want an UnavailableError", err)
	}
	w.Settle()
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
}

func TestAStepThatLosesARaceDecidesAnew(t *testing.T) {
	ofCheckout := func(writes []store.Write) bool { return strings.HasPrefix(writes[0].Key.PK, "CHECKOUT#") }
	t.Run("another execution was faster", func(t *testing.T) {
		w := stocked(t)
		c := w.Ordered("k", sagatest.Basket{})
		w.Store.Before(ofCheckout, func() error { w.Again(c.ID); return nil })
		if err := w.Saga.Charge(t.Context(), c.ID, inventory.Reserved); err != nil {
			t.Errorf("got %v, want to agree with the winner", err)
		}
		w.Settle()
		w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	})
	t.Run("another execution has turned back before the charge left", func(t *testing.T) {
		w := stocked(t)
		c := w.Ordered("k", sagatest.Basket{})
		sends := flowtest.Row(payment.EventSent)
		w.Store.Before(sends, func() error {
			_ = w.Saga.Charge(t.Context(), c.ID, inventory.OutOfStock)
			return nil
		})
		err := w.Saga.Charge(t.Context(), c.ID, inventory.Reserved)
		if _, ok := errors.AsType[*checkout.BackwardError](err); !ok {
			t.Errorf("got %v, want a BackwardError", err)
		}
		w.Settle()
		w.WantCheckout(c.ID, checkout.StatusFailed, "out_of_stock")
	})
	t.Run("it loses every race", func(t *testing.T) {
		w := stocked(t)
		c := w.Ordered("k", sagatest.Basket{})
		for range 8 {
			w.Store.Before(ofCheckout, flowtest.Refused)
		}
		if err := w.Saga.Charge(t.Context(), c.ID, inventory.Reserved); !errors.Is(err, journal.ErrBusy) {
			t.Errorf("got %v, want ErrBusy", err)
		}
		w.Settle()
		w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	})
}
