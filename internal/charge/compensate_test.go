package charge_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

const checkoutID = "chk_01KDYAK348M9S346Q3D2000001"

// owned is a payment that a checkout owns, of which nothing was sent yet.
func owned(t *testing.T, o Order) (*World, payment.ID) {
	t.Helper()
	w := New(t)
	id := payment.ID(payment.IDPrefix + ULID(900))
	method := payment.CaptureAutomatic
	if o.Manual {
		method = payment.CaptureManual
	}
	if o.Token == "" {
		o.Token = psptest.TokenCaptured
	}
	p, row := payment.New(payment.Terms{
		ID: id, MerchantID: Merchant, CheckoutID: checkoutID, Amount: money.Amount{Minor: 5000, Currency: "JPY"}, CaptureMethod: method,
		PaymentMethod: payment.Secret(o.Token), PSP: PSP, ExpiresAt: w.Clock.Now().Add(Durations.PaymentExpiry),
	}, w.Clock.Now())
	if _, err := w.Charges.Journal.Create(w.Context(), p, row, journal.Change{Source: journal.SourceAPI}); err != nil {
		t.Fatal(err)
	}
	checkout(w, "forward", "pending")
	return w, id
}

// checkout puts the payment's checkout where a saga would.
func checkout(w *World, direction, status string) {
	w.Helper()
	key := store.Key{PK: "CHECKOUT#" + checkoutID, SK: "STATE"}
	set := store.Item{"direction": direction, "status": status}
	if err := w.Store.Write(w.Context(), store.Write{Kind: store.Update, Key: key, Set: set}); err != nil {
		w.Fatal(err)
	}
}

func send(w *World, id payment.ID, want payment.Status) payment.Payment {
	w.Helper()
	p, err := w.Charges.Send(w.Context(), id)
	if err != nil || p.Status != want {
		w.Fatalf("send: got %s, %v, want %s", p.Status, err, want)
	}
	return p
}

func compensate(w *World, id payment.ID, attempts int, want charge.Compensation) payment.Payment {
	w.Helper()
	p, got, err := w.Charges.Compensate(w.Context(), id, attempts)
	if err != nil || got != want {
		w.Fatalf("compensate: got %s of a payment %s, %v, want %s", got, p.Status, err, want)
	}
	return p
}

func TestAnOwnedPaymentIsSentOnce(t *testing.T) {
	w, id := owned(t, Order{})
	send(w, id, payment.StatusCaptured)
	send(w, id, payment.StatusCaptured)
	w.WantCalls(psptest.OperationCreate, 1)
	if rows := w.Rows(id); rows[1].Source != journal.SourceSaga {
		t.Errorf("got source %s, want the saga's", rows[1].Source)
	}
}

func TestAnOwnedPaymentThatASweepFindsIsLeftToItsSaga(t *testing.T) {
	w, id := owned(t, Order{})
	w.Pass(Durations.PaymentExpiry - time.Second)
	w.Want(id, payment.StatusCreated)
	w.WantCalls(psptest.OperationCreate, 0)
}

func TestAnOwnedPaymentThatNobodySentInTimeIsCanceled(t *testing.T) {
	for _, by := range []string{"sweep", "saga"} {
		t.Run(by, func(t *testing.T) {
			w, id := owned(t, Order{})
			w.Clock.Advance(Durations.PaymentExpiry)
			if by == "sweep" {
				w.Sweep()
			} else {
				send(w, id, payment.StatusCanceled)
			}
			p := w.Want(id, payment.StatusCanceled)
			if p.Failure == nil || p.Failure.Code != payment.FailureExpired {
				t.Errorf("got failure %+v, want %s", p.Failure, payment.FailureExpired)
			}
			w.WantCalls(psptest.OperationCreate, 0)
			w.WantRest(id)
			send(w, id, payment.StatusCanceled)
			w.WantCalls(psptest.OperationCreate, 0)
		})
	}
}

func TestNothingIsSentOfACheckoutThatIsBeingUndone(t *testing.T) {
	w, id := owned(t, Order{})
	w.Store.Before(Row(payment.EventSent), Then(func() { checkout(w, "backward", "pending") }))
	send(w, id, payment.StatusCreated)
	w.WantCalls(psptest.OperationCreate, 0)
	compensate(w, id, 1, charge.CompensationDone)
	w.Want(id, payment.StatusCanceled)
}

func TestASendThatLosesToACompensationSendsNothing(t *testing.T) {
	w, id := owned(t, Order{})
	w.Store.Before(Row(payment.EventSent), Then(func() {
		checkout(w, "backward", "pending")
		compensate(w, id, 1, charge.CompensationDone)
	}))
	if p, err := w.Charges.Send(w.Context(), id); err != nil || p.Status == payment.StatusCaptured {
		t.Fatalf("got %s, %v, want nothing sent", p.Status, err)
	}
	w.Want(id, payment.StatusCanceled)
	w.WantCalls(psptest.OperationCreate, 0)
}

func TestAStepThatWasCutOffAfterThePSPCapturedFindsItOut(t *testing.T) {
	w, id := owned(t, Order{})
	w.Crash(func() {
		w.OnAnswer(psptest.OperationCreate, w.Die)
		w.Charges.Send(w.Context(), id)
	})
	send(w, id, payment.StatusProcessing) // too early to tell
	w.Clock.Advance(time.Minute)
	send(w, id, payment.StatusCaptured)
	w.WantCalls(psptest.OperationCreate, 1)
}

func TestCompensationOfEveryPayment(t *testing.T) {
	for _, c := range []struct {
		name   string
		order  Order
		before func(w *World, id payment.ID)
		want   payment.Status
	}{
		{"created", Order{}, nil, payment.StatusCanceled},
		{"pending", Order{Token: psptest.TokenPending}, sent, payment.StatusCanceled},
		{"customer acts", Order{Token: psptest.TokenRequiresAction}, sent, payment.StatusCanceled},
		{"held", Order{Manual: true}, sent, payment.StatusCanceled},
		{"captured", Order{}, sent, payment.StatusRefunded},
		{"declined", Order{Token: psptest.TokenDeclined}, sent, payment.StatusFailed},
		{"refunded", Order{}, then2(sent, func(w *World, id payment.ID) { checkout(w, "forward", "completed"); w.Refund("r", id, 0) }), payment.StatusRefunded},
		{"partly refunded", Order{}, then2(sent, func(w *World, id payment.ID) { w.PSP.RefundDirect(string(id), 2000); w.Deliver(w.PSP.Drain()...) }), payment.StatusRefunded},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, id := owned(t, c.order)
			if c.before != nil {
				c.before(w, id)
			}
			checkout(w, "backward", "pending")
			for range 2 {
				compensate(w, id, 1, charge.CompensationDone)
			}
			w.Want(id, c.want)
			if net := w.PSP.Net(string(id)); net != 0 {
				t.Errorf("the psp holds %d, want nothing", net)
			}
		})
	}
}

func sent(w *World, id payment.ID) { w.Charges.Send(w.Context(), id) }

func then2(first, second func(*World, payment.ID)) func(*World, payment.ID) {
	return func(w *World, id payment.ID) {
		first(w, id)
		second(w, id)
	}
}

func TestACompensationWaitsForAChargeOnItsWay(t *testing.T) {
	w, id := owned(t, Order{})
	w.OnCall(psptest.OperationCreate, Then(func() {
		checkout(w, "backward", "pending")
		compensate(w, id, 1, charge.CompensationPending)
	}))
	send(w, id, payment.StatusCaptured) // it was faster
	compensate(w, id, 1, charge.CompensationDone)
	w.Want(id, payment.StatusRefunded)
	w.WantCalls(psptest.OperationRefund, 1)
}

func TestACompensatingRefundIsAskedForOnceWhileItIsOpen(t *testing.T) {
	w, id := owned(t, Order{Token: psptest.TokenRefundPendingFailed})
	send(w, id, payment.StatusCaptured)
	for range 3 {
		compensate(w, id, 5, charge.CompensationPending)
		w.Pass(time.Minute)
	}
	w.WantCalls(psptest.OperationRefund, 1)
	w.PSP.SettleRefund(string(payment.CompensationRefundID(id, 0)), psp.RefundSucceeded)
	w.Deliver(w.PSP.Drain()...)
	compensate(w, id, 5, charge.CompensationDone)
}

func TestACompensatingRefundThatFailedIsFollowedByAsManyAsAreAllowed(t *testing.T) {
	w, id := owned(t, Order{Token: psptest.TokenRefundPendingFailed})
	send(w, id, payment.StatusCaptured)
	for n := range 2 {
		compensate(w, id, n+1, charge.CompensationPending)
		w.PSP.SettleRefund(string(payment.CompensationRefundID(id, n)), psp.RefundFailed)
		w.Deliver(w.PSP.Drain()...)
		compensate(w, id, n+1, charge.CompensationFailed)
		w.WantCalls(psptest.OperationRefund, n+1)
	}
	w.Want(id, payment.StatusCaptured)
}

func TestACompensatingRefundInDoubtIsFoundOut(t *testing.T) {
	for name, fault := range map[string]func(w *World){
		"request lost":     func(w *World) { w.OnCall(psptest.OperationRefund, Lost) },
		"answer lost":      func(w *World) { w.OnAnswer(psptest.OperationRefund, Lost) },
		"its process died": func(w *World) {},
	} {
		t.Run(name, func(t *testing.T) {
			w, id := owned(t, Order{})
			send(w, id, payment.StatusCaptured)
			if name == "its process died" {
				w.Crash(func() {
					w.OnAnswer(psptest.OperationRefund, w.Die)
					w.Charges.Compensate(w.Context(), id, 1)
				})
			} else {
				fault(w)
				compensate(w, id, 1, charge.CompensationPending)
			}
			w.Pass(2 * time.Minute)
			compensate(w, id, 1, charge.CompensationDone)
			if n := len(w.PSP.Charges()[0].Refunds); n != 1 {
				t.Errorf("got %d refunds at the psp, want 1", n)
			}
		})
	}
}

func TestTwoCompensationsAtOnceAreOne(t *testing.T) {
	w, id := owned(t, Order{})
	send(w, id, payment.StatusCaptured)
	w.Store.Before(Row(payment.EventRefundRequested), Then(func() { compensate(w, id, 1, charge.CompensationDone) }))
	compensate(w, id, 1, charge.CompensationDone)
	w.WantCalls(psptest.OperationRefund, 1)
}

func TestADisputedPaymentIsNotCompensated(t *testing.T) {
	w, id := owned(t, Order{})
	send(w, id, payment.StatusCaptured)
	w.PSP.DisputeOpen(string(id))
	w.Deliver(w.PSP.Drain()...)
	if _, _, err := w.Charges.Compensate(w.Context(), id, 1); !errors.Is(err, payment.ErrDisputed) {
		t.Errorf("got %v, want %v", err, payment.ErrDisputed)
	}
	w.WantCalls(psptest.OperationRefund, 0)
}

func TestAPSPThatIsDownLeavesACompensationPending(t *testing.T) {
	w, id := owned(t, Order{Token: psptest.TokenPending})
	send(w, id, payment.StatusProcessing)
	for _, operation := range psptest.Operations() {
		w.PSP.Before(operation, Lost)
	}
	for range 3 {
		compensate(w, id, 1, charge.CompensationPending)
	}
	w.WantCalls(psptest.OperationCancel, 1)
	if rows := w.Types(id); strings.Count(strings.Join(rows, " "), string(payment.EventCancelRequested)) != 1 {
		t.Errorf("got rows %v, want the cancel asked for once", rows)
	}
	for _, operation := range psptest.Operations() {
		w.PSP.Before(operation, nil)
	}
	w.Pass(5 * time.Minute)
	compensate(w, id, 1, charge.CompensationDone)
}

func TestAMerchantsRefundWaitsForTheCheckoutToEnd(t *testing.T) {
	w, id := owned(t, Order{})
	send(w, id, payment.StatusCaptured)
	for _, status := range []string{"pending", "requires_action"} {
		checkout(w, "forward", status)
		for _, amount := range []int64{0, 5001} { // whatever else is wrong with it
			if _, err := w.Refund("r", id, amount); !errors.Is(err, charge.ErrCheckoutPending) {
				t.Errorf("%s, %d: got %v, want %v", status, amount, err, charge.ErrCheckoutPending)
			}
		}
	}
	w.WantCalls(psptest.OperationRefund, 0)
	checkout(w, "forward", "completed")
	w.Refunded("r", id, 0, payment.RefundSucceeded)
}

func TestLateMoneyOfACheckoutIsWaitedFor(t *testing.T) {
	w, id := owned(t, Order{Token: psptest.TokenLateCaptured})
	send(w, id, payment.StatusProcessing)
	checkout(w, "backward", "pending")
	compensate(w, id, 1, charge.CompensationDone)
	w.PSP.CaptureLate(string(id))
	w.OnCall(psptest.OperationRefund, Lost)
	w.Deliver(w.PSP.Drain()...)
	compensate(w, id, 1, charge.CompensationPending)
	w.Pass(2 * time.Minute)
	compensate(w, id, 1, charge.CompensationDone)
	w.Want(id, payment.StatusRefunded)
}

func TestAChargeInDoubtThatThePSPCapturedIsRefundedAtOnce(t *testing.T) {
	w, id := owned(t, Order{Token: psptest.TokenTimeoutCapturedSilent})
	send(w, id, payment.StatusProcessing)
	checkout(w, "backward", "pending")
	w.Clock.Advance(time.Minute)
	compensate(w, id, 1, charge.CompensationDone)
	w.Want(id, payment.StatusRefunded)
}

func TestARefundOfLateMoneyThatNobodySentIsSentByTheCompensation(t *testing.T) {
	w, id := owned(t, Order{Token: psptest.TokenLateCaptured})
	send(w, id, payment.StatusProcessing)
	checkout(w, "backward", "pending")
	compensate(w, id, 1, charge.CompensationDone)
	w.PSP.CaptureLate(string(id))
	w.Crash(func() {
		w.Store.After(Row(payment.EventLateCaptured), w.Die)
		w.Deliver(w.PSP.Drain()...)
	})
	compensate(w, id, 1, charge.CompensationDone)
	w.Want(id, payment.StatusRefunded)
}

func TestACompensationWaitsForARefundThatIsUnderWayAtThePSP(t *testing.T) {
	w, id := owned(t, Order{})
	send(w, id, payment.StatusCaptured)
	w.Lies = true // made at the psp, and pending there
	refund := psp.Event{Charge: w.PSP.Charges()[0], Refund: &psp.Refund{Reference: "rf_9", Amount: 5000, Status: psp.RefundPending}}
	w.Deliver(w.PSP.Push(refund))
	compensate(w, id, 1, charge.CompensationPending)
	w.WantCalls(psptest.OperationRefund, 0)
	refund.Refund.Status = psp.RefundSucceeded
	w.Deliver(w.PSP.Push(refund))
	compensate(w, id, 1, charge.CompensationDone)
}

func TestWhatAFailedRefundAtThePSPLeavesIsRefundedByTheNextAttempt(t *testing.T) {
	w, id := owned(t, Order{Token: psptest.TokenRefundPendingFailed})
	send(w, id, payment.StatusCaptured)
	w.Lies = true // told by events only
	made := psp.Event{Charge: w.PSP.Charges()[0], Refund: &psp.Refund{Reference: "rf_9", Amount: 2000, Status: psp.RefundSucceeded}}
	w.Deliver(w.PSP.Push(made))
	compensate(w, id, 1, charge.CompensationPending) // the other 3000
	made.Refund.Status = psp.RefundFailed
	w.Deliver(w.PSP.Push(made))
	compensate(w, id, 2, charge.CompensationPending)
	w.WantCalls(psptest.OperationRefund, 1) // none while one is under way
	w.PSP.SettleRefund(string(payment.CompensationRefundID(id, 0)), psp.RefundSucceeded)
	w.Deliver(w.PSP.Drain()...)
	compensate(w, id, 1, charge.CompensationFailed) // for a person, who allows another
	compensate(w, id, 2, charge.CompensationPending)
	if calls := w.Calls(psptest.OperationRefund); len(calls) != 2 || calls[1].Minor != 2000 {
		t.Errorf("got refunds %+v, want another of 2000", calls)
	}
}
