package payment_test

import (
	"reflect"
	"testing"

	"github.com/kessai/kessai/internal/payment"
)

// full is a payment with something in every slice, map and pointer.
func full(t testing.TB) payment.Payment {
	p := after(t, processing(), fact(payment.EventDeclined), fact(payment.EventCaptured), dispute(payment.EventDisputeOpened, "dp_1", ""))
	if len(p.Refunds) == 0 || len(p.Disputes) == 0 || len(p.Metadata) == 0 || p.Failure == nil {
		t.Fatalf("got %+v, want nothing empty", p)
	}
	return p
}

// scribble changes all that p points to.
func scribble(p payment.Payment) {
	p.Metadata["k"] = "scribbled"
	p.Metadata["other"] = "scribbled"
	for i := range p.Refunds {
		p.Refunds[i].Amount, p.Refunds[i].Status = -1, "scribbled"
	}
	for i := range p.Disputes {
		p.Disputes[i].Status = "scribbled"
	}
	p.Failure.Code = "scribbled"
}

// Apply returns a copy: neither value can be changed through the other.
func TestApplySharesNothingWithItsReceiver(t *testing.T) {
	late := payment.LateRefundID(paymentID)
	for _, e := range []payment.Event{
		refund(payment.EventRefundSucceeded, late, "rf_1", whole), refund(payment.EventRefundPending, late, "rf_1", whole),
		refundCall(payment.EventRefundSent, late, 0), dispute(payment.EventDisputeClosed, "dp_1", "won"),
		dispute(payment.EventDisputeOpened, "dp_2", ""), intent(payment.EventMismatched), intent(payment.EventVoidSent),
	} {
		p := full(t)
		want := deepCopy(p)
		next := after(t, p, e)
		wantNext := deepCopy(next)
		if !reflect.DeepEqual(p, want) {
			t.Errorf("%s touched its receiver", e.Type)
		}
		scribble(next)
		if !reflect.DeepEqual(p, want) {
			t.Errorf("%s: a change of the result reached the receiver", e.Type)
		}
		next = after(t, p, e)
		scribble(p)
		if !reflect.DeepEqual(next, wantNext) {
			t.Errorf("%s: a change of the receiver reached the result", e.Type)
		}
	}
}

// Appending to one of two payments that came from the same one leaves the other.
func TestTwoFuturesOfOnePaymentAreApart(t *testing.T) {
	captured := after(t, inStatus(t)[payment.StatusCaptured], ask("re_a", 1), ask("re_b", 1), ask("re_c", 1))
	one, two := after(t, captured, ask(ours1, 10)), after(t, captured, ask(ours2, 20))
	if r := one.Refunds[3]; r.ID != ours1 || r.Amount != 10 {
		t.Errorf("got %+v in the first, want its own refund", r)
	}
	if r := two.Refunds[3]; r.ID != ours2 || r.Amount != 20 {
		t.Errorf("got %+v in the second, want its own refund", r)
	}
}

// What a caller passes in stays the caller's.
func TestPaymentSharesNothingWithItsMakers(t *testing.T) {
	given := terms(payment.CaptureAutomatic)
	one, _ := payment.New(given, start)
	two, _ := payment.NewSent(given, start)
	given.Metadata["k"] = "scribbled"
	declined := fact(payment.EventDeclined)
	failed := after(t, two, declined)
	declined.Failure.Code = "scribbled"
	if one.Metadata["k"] != "v" || two.Metadata["k"] != "v" || failed.Failure.Code != payment.FailureDeclined {
		t.Errorf("got metadata %v and %v, failure %+v; want them as they were given", one.Metadata, two.Metadata, failed.Failure)
	}
	v := failed.View()
	v.Metadata["k"], v.Failure.Code = "scribbled", "scribbled"
	if failed.Metadata["k"] != "v" || failed.Failure.Code != payment.FailureDeclined {
		t.Error("a change of the view reached the payment")
	}
}
