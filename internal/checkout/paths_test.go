package checkout_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// Ways through the journal of a checkout.
const (
	wayCompleted = "created stock_reserved charged order_created completed"
	wayDeclined  = "created stock_reserved compensating payment_undone stock_released failed"
	wayNoStock   = "created compensating payment_undone failed"
	wayRejected  = "created stock_reserved charged compensating payment_undone stock_released failed"
)

func words(s string) []string { return strings.Fields(s) }

const rejected = sagatest.RejectPrefix + "tee"

// stocked is a world with ten pieces of what is sold and of what the shop refuses.
func stocked(t *testing.T) *sagatest.World {
	t.Helper()
	w := sagatest.New(t)
	w.Supply(sagatest.Tee, 10)
	w.Supply(rejected, 10)
	return w
}

func TestACheckoutEndsAsItsPaymentAndShopSay(t *testing.T) {
	const minute = time.Minute
	tests := []struct {
		name   string
		basket sagatest.Basket
		after  func(w *sagatest.World, c checkout.Checkout) // what happens outside, nil for nothing
		pass   time.Duration
		status checkout.Status
		code   string
		way    string
	}{
		{"captured at once", sagatest.Basket{}, nil, 0, checkout.StatusCompleted, "", wayCompleted},
		{"nobody to notify", sagatest.Basket{Nameless: true}, nil, 0, checkout.StatusCompleted, "", wayCompleted},
		{"declined", sagatest.Basket{Token: psptest.TokenDeclined}, nil, 0, checkout.StatusFailed, "card_declined", wayDeclined},
		{"out of stock", sagatest.Basket{Quantity: 11}, nil, 0, checkout.StatusFailed, "out_of_stock", wayNoStock},
		{"unknown SKU", sagatest.Basket{SKU: "none"}, nil, 0, checkout.StatusFailed, "out_of_stock", wayNoStock},
		{"order refused", sagatest.Basket{SKU: rejected}, nil, 0, checkout.StatusFailed, "order_rejected", wayRejected},
		{
			"the customer approves",
			sagatest.Basket{Token: psptest.TokenRequiresAction},
			approve, 0, checkout.StatusCompleted, "",
			"created stock_reserved requires_action charged order_created completed",
		},
		{
			"the customer declines",
			sagatest.Basket{Token: psptest.TokenRequiresAction},
			decline, 0, checkout.StatusFailed, "card_declined",
			"created stock_reserved requires_action compensating payment_undone stock_released failed",
		},
		{
			"the customer leaves",
			sagatest.Basket{Token: psptest.TokenRequiresAction},
			nil, 32 * minute, checkout.StatusFailed, "payment_expired",
			"created stock_reserved requires_action compensating payment_undone stock_released failed",
		},
		{"pending, then paid", sagatest.Basket{Token: psptest.TokenPending}, approve, 0, checkout.StatusCompleted, "", wayCompleted},
		{"pending, then refused", sagatest.Basket{Token: psptest.TokenPending}, decline, 0, checkout.StatusFailed, "card_declined", wayDeclined},
		{"pending for ever", sagatest.Basket{Token: psptest.TokenPendingSilent}, nil, 32 * minute, checkout.StatusFailed, "payment_expired", wayDeclined},
		{"charged without an answer", sagatest.Basket{Token: psptest.TokenTimeoutCaptured}, nil, 0, checkout.StatusCompleted, "", wayCompleted},
		{"charged without a word", sagatest.Basket{Token: psptest.TokenTimeoutCapturedSilent}, nil, 2 * minute, checkout.StatusCompleted, "", wayCompleted},
		{"charged, and an error answered", sagatest.Basket{Token: psptest.TokenErrorCaptured}, nil, 0, checkout.StatusCompleted, "", wayCompleted},
		{"an error once", sagatest.Basket{Token: psptest.TokenErrorOnce}, nil, 2 * minute, checkout.StatusCompleted, "", wayCompleted},
		{"throttled once", sagatest.Basket{Token: psptest.TokenRateLimitedOnce}, nil, 2 * minute, checkout.StatusCompleted, "", wayCompleted},
		{"never answered", sagatest.Basket{Token: psptest.TokenTimeoutNothing}, nil, 62 * minute, checkout.StatusFailed, "payment_expired", wayDeclined},
		{"the charge is told of twice", sagatest.Basket{Token: psptest.TokenWebhookTwice}, nil, 0, checkout.StatusCompleted, "", wayCompleted},
		{"told in the wrong order", sagatest.Basket{Token: psptest.TokenWebhookReversed}, nil, 0, checkout.StatusCompleted, "", wayCompleted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := stocked(t)
			c := w.Bought("k", tt.basket)
			if tt.after != nil {
				tt.after(w, c)
			}
			w.Deliver(w.PSP.Drain()...)
			w.Pass(tt.pass)
			w.WantCheckout(c.ID, tt.status, tt.code)
			w.WantEvents(c.ID, words(tt.way)...)
			pieces := max(tt.basket.Quantity, 1)
			sku := tt.basket.SKU
			switch {
			case tt.status == checkout.StatusCompleted:
				w.WantStock(sagatest.Tee, 10-pieces, 0, pieces)
			case sku == "" || sku == rejected:
				w.WantStock(cmp.Or(sku, sagatest.Tee), 10, 0, 0)
			}
			told := 0
			if tt.status == checkout.StatusCompleted && !tt.basket.Nameless {
				told = 1
			}
			if got := w.Mail.Delivered(c.ID); got != told {
				t.Errorf("got %d notifications, want %d", got, told)
			}
			w.Pass(3 * minute)
			if c := w.Checkout(c.ID); !c.DueAt.IsZero() {
				t.Errorf("%s is due at %s, want it at rest", c.Status, c.DueAt)
			}
		})
	}
}

func approve(w *sagatest.World, c checkout.Checkout) { w.PSP.Approve(string(c.PaymentID)) }

func decline(w *sagatest.World, c checkout.Checkout) { w.PSP.Decline(string(c.PaymentID)) }

func TestTheHappyPathEntersFiveStates(t *testing.T) {
	w := stocked(t)
	w.Bought("k", sagatest.Basket{})
	ended := w.Ended()
	if len(ended) != 1 {
		t.Fatalf("got %d executions, want 1", len(ended))
	}
	want := []string{"ReserveStock", "Charge", "CreateOrder", "Complete", "Notify"}
	if got := ended[0].States(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNothingIsChargedThatCannotBeDelivered(t *testing.T) {
	w := stocked(t)
	c := w.Bought("k", sagatest.Basket{Quantity: 11})
	w.WantCheckout(c.ID, checkout.StatusFailed, "out_of_stock")
	w.WantCalls(psptest.OperationCreate, 0)
	w.Want(c.PaymentID, payment.StatusCanceled)
}

func TestAnOrderRefusedAfterTheChargeGivesTheMoneyBackOnce(t *testing.T) {
	w := stocked(t)
	c := w.Bought("k", sagatest.Basket{SKU: rejected})
	p := w.Want(c.PaymentID, payment.StatusRefunded)
	if len(p.Refunds) != 1 || p.Refunds[0].Reason != payment.ReasonCompensation {
		t.Errorf("got refunds %+v, want one of the compensation", p.Refunds)
	}
	w.WantCalls(psptest.OperationRefund, 1)
	w.Pass(10 * time.Minute)
	w.WantCalls(psptest.OperationRefund, 1)
}

func TestACompensatingRefundThatIsPendingKeepsTheCheckoutPending(t *testing.T) {
	refund := func(c checkout.Checkout, n int) string { return string(payment.CompensationRefundID(c.PaymentID, n)) }
	parked := "created stock_reserved charged compensating needs_review"
	w := stocked(t)
	c := w.Bought("k", sagatest.Basket{SKU: rejected, Token: psptest.TokenRefundPendingFailed})
	w.WantCheckout(c.ID, checkout.StatusPending, "order_rejected")
	w.Pass(10 * time.Minute)
	w.WantCheckout(c.ID, checkout.StatusPending, "order_rejected")
	w.WantStock(rejected, 9, 1, 0) // nothing is released before the money is back

	w.PSP.SettleRefund(refund(c, 0), psp.RefundFailed)
	w.Deliver(w.PSP.Drain()...)
	w.WantCheckout(c.ID, checkout.StatusNeedsReview, "order_rejected")
	w.WantEvents(c.ID, words(parked)...)
	if got := w.Meter.Of(checkout.MetricNeedsReview); got != 1 {
		t.Errorf("got %d alarms, want 1", got)
	}
	w.Pass(24 * time.Hour)
	w.WantCalls(psptest.OperationRefund, 1) // a person has the word

	if _, err := w.Resume("r1", c.ID); err != nil {
		t.Fatal(err)
	}
	w.WantCheckout(c.ID, checkout.StatusPending, "order_rejected")
	w.WantCalls(psptest.OperationRefund, 2)
	w.PSP.SettleRefund(refund(c, 1), psp.RefundSucceeded)
	w.Deliver(w.PSP.Drain()...)
	w.WantCheckout(c.ID, checkout.StatusFailed, "order_rejected")
	w.WantEvents(c.ID, words(parked+" resumed payment_undone stock_released failed")...)
	w.Want(c.PaymentID, payment.StatusRefunded)
	w.WantStock(rejected, 10, 0, 0)
}

func TestACompensatingRefundThatIsRefusedNeedsReviewAtOnce(t *testing.T) {
	w := stocked(t)
	w.OnCall(psptest.OperationRefund, func() error {
		return &psp.Error{Operation: "refund", Outcome: psp.OutcomeRejected, HTTPStatus: 402, Code: "refused"}
	})
	c := w.Bought("k", sagatest.Basket{SKU: rejected})
	w.WantCheckout(c.ID, checkout.StatusNeedsReview, "order_rejected")
	if _, err := w.Resume("r1", c.ID); err != nil {
		t.Fatal(err)
	}
	w.WantCheckout(c.ID, checkout.StatusFailed, "order_rejected")
}

func TestADisputeLeavesTheCompensationToAPerson(t *testing.T) {
	w := stocked(t)
	dispute := ""
	c := w.Ordered("k", sagatest.Basket{SKU: rejected})
	w.Around = func(call sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
		if call.Command == string(checkout.CommandUndoCharge) && dispute == "" {
			dispute, _ = w.PSP.DisputeOpen(string(c.PaymentID))
			w.Receive(w.PSP.Drain()...)
			w.Carry()
		}
		return invoke()
	}
	w.Settle()
	w.WantCheckout(c.ID, checkout.StatusNeedsReview, "order_rejected")
	w.PSP.DisputeClose(dispute, "won")
	w.Deliver(w.PSP.Drain()...)
	if _, err := w.Resume("r1", c.ID); err != nil {
		t.Fatal(err)
	}
	w.WantCheckout(c.ID, checkout.StatusFailed, "order_rejected")
	w.Want(c.PaymentID, payment.StatusRefunded)
}

func TestTheMerchantsCancelFailsTheCheckout(t *testing.T) {
	w := stocked(t)
	c := w.Bought("k", sagatest.Basket{Token: psptest.TokenRequiresAction, Reference: "order-42"})
	w.WantCheckout(c.ID, checkout.StatusRequiresAction, "")
	if _, err := w.Cancel("c", c.PaymentID); err != nil {
		t.Fatal(err)
	}
	w.Settle()
	w.WantCheckout(c.ID, checkout.StatusFailed, checkout.FailureCanceled)
	w.WantStock(sagatest.Tee, 10, 0, 0)

	early := w.Ordered("k2", sagatest.Basket{}) // canceled before its first step
	if _, err := w.Cancel("c2", early.PaymentID); err != nil {
		t.Fatal(err)
	}
	w.Settle()
	w.WantCheckout(early.ID, checkout.StatusFailed, checkout.FailureCanceled)
	w.WantCalls(psptest.OperationCreate, 1)
}

func TestACustomerWhoPaysAfterAllGetsTheMoneyBackOnceAndNoOrder(t *testing.T) {
	w := stocked(t)
	c := w.Bought("k", sagatest.Basket{Token: psptest.TokenRequiresAction})
	w.Pass(32 * time.Minute)
	w.WantCheckout(c.ID, checkout.StatusFailed, "payment_expired")
	w.PSP.CaptureLate(string(c.PaymentID))
	events := w.PSP.Drain()
	w.Deliver(events...)
	w.Deliver(events...)
	w.Deliver(w.PSP.Drain()...)
	p := w.Want(c.PaymentID, payment.StatusRefunded)
	if len(p.Refunds) != 1 || p.Refunds[0].Reason != payment.ReasonLateCapture {
		t.Errorf("got refunds %+v, want one of late money", p.Refunds)
	}
	w.WantCheckout(c.ID, checkout.StatusFailed, "payment_expired")
	w.WantCalls(psptest.OperationRefund, 1)
}

func TestMoneyThatComesWhileTheCheckoutIsUndoneIsWaitedFor(t *testing.T) {
	w := stocked(t)
	c := w.Ordered("k", sagatest.Basket{Token: psptest.TokenRequiresAction})
	w.Settle()
	if _, err := w.Cancel("c", c.PaymentID); err != nil {
		t.Fatal(err)
	}
	w.Carry()
	w.OnCall(psptest.OperationRefund, func() error { return flowtest.Lost() })
	w.Around = func(call sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
		if call.Command == string(checkout.CommandUndoCharge) && w.PSP.Net(string(c.PaymentID)) == 0 {
			w.PSP.CaptureLate(string(c.PaymentID))
			w.Receive(w.PSP.Drain()...)
			w.Carry()
		}
		return invoke()
	}
	w.Settle()
	w.WantCheckout(c.ID, checkout.StatusPending, checkout.FailureCanceled) // the refund has no answer yet
	w.Around = nil
	w.Pass(3 * time.Minute)
	w.WantCheckout(c.ID, checkout.StatusFailed, checkout.FailureCanceled)
	w.Want(c.PaymentID, payment.StatusRefunded)
}

func TestASecondCheckoutOfALiveReferenceIsRefused(t *testing.T) {
	w := stocked(t)
	first := w.Bought("k", sagatest.Basket{Token: psptest.TokenRequiresAction, Reference: "order-42"})
	refuse := func(key, holder string) {
		t.Helper()
		_, err := w.Order(key, sagatest.Basket{Reference: "order-42"})
		wantReferenceInUse(t, err, holder)
	}
	refuse("k2", string(first.PaymentID))
	w.PSP.Approve(string(first.PaymentID))
	w.Deliver(w.PSP.Drain()...)
	w.WantCheckout(first.ID, checkout.StatusCompleted, "")
	refuse("k3", string(first.PaymentID))
	w.WantStock(sagatest.Tee, 9, 0, 1)

	failed := w.Bought("k4", sagatest.Basket{Token: psptest.TokenDeclined, Reference: "order-43"})
	w.WantCheckout(failed.ID, checkout.StatusFailed, "card_declined")
	again := w.Bought("k5", sagatest.Basket{Reference: "order-43"})
	w.WantCheckout(again.ID, checkout.StatusCompleted, "")
}

func TestTheLastPieceGoesToOneOfTwo(t *testing.T) {
	w := sagatest.New(t)
	w.Supply(sagatest.Tee, 1)
	first, second := w.Ordered("k1", sagatest.Basket{}), w.Ordered("k2", sagatest.Basket{})
	w.Settle()
	w.WantCheckout(first.ID, checkout.StatusCompleted, "")
	w.WantCheckout(second.ID, checkout.StatusFailed, "out_of_stock")
	w.WantCalls(psptest.OperationCreate, 1)
	w.WantStock(sagatest.Tee, 0, 0, 1)
}

func TestSettingStockLeavesWhatBuyersHold(t *testing.T) {
	w := stocked(t)
	c := w.Bought("k", sagatest.Basket{Token: psptest.TokenRequiresAction, Quantity: 3})
	w.Supply(sagatest.Tee, 50)
	w.WantStock(sagatest.Tee, 50, 3, 0)
	w.PSP.Approve(string(c.PaymentID))
	w.Deliver(w.PSP.Drain()...)
	w.WantStock(sagatest.Tee, 50, 0, 3)
}

func TestAMerchantsRefundWaitsForTheEndOfTheCheckout(t *testing.T) {
	w := stocked(t)
	c := w.Ordered("k", sagatest.Basket{})
	tried := 0
	w.Around = func(call sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
		if call.Function == sagatest.Orders {
			tried++
			_, err := w.Refund("r", c.PaymentID, 0)
			wantCheckoutPending(t, err)
		}
		return invoke()
	}
	w.Settle()
	if tried != 1 {
		t.Fatalf("got %d tries, want 1", tried)
	}
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	w.Refunded("r", c.PaymentID, 0, payment.RefundSucceeded)
}

func TestWhatAParticipantSaysInPassing(t *testing.T) {
	t.Run("stock that somebody gave back fails the checkout", func(t *testing.T) {
		w := stocked(t)
		c := w.Ordered("k", sagatest.Basket{})
		if err := w.Stock.Release(t.Context(), flowtest.Merchant, c.ID); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		w.WantCheckout(c.ID, checkout.StatusFailed, "out_of_stock")
		w.WantCalls(psptest.OperationCreate, 0)
	})
	t.Run("an order that somebody canceled fails the checkout and gives the money back", func(t *testing.T) {
		w := stocked(t)
		c := w.Ordered("k", sagatest.Basket{})
		if err := w.Orders.Cancel(t.Context(), flowtest.Merchant, c.ID); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		w.WantCheckout(c.ID, checkout.StatusFailed, order.CodeRejected)
		w.Want(c.PaymentID, payment.StatusRefunded)
	})
	t.Run("stock that is sold goes on", func(t *testing.T) {
		w := stocked(t)
		c := w.Ordered("k", sagatest.Basket{})
		if err := w.Saga.Charge(t.Context(), c.ID, inventory.Sold); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	})
}
