package payment_test

import (
	"testing"

	"github.com/kessai/kessai/internal/payment"
)

// What came of a sending under an earlier key says nothing of the last key's.
func TestAnAnswerToAnEarlierKeyIsOldNews(t *testing.T) {
	held := inStatus(t)[payment.StatusAuthorized]
	canceling := after(t, held, cancel(payment.CancelByMerchant))
	tests := []struct {
		name     payment.OperationName
		from     payment.Payment
		send     payment.Event
		refusal  payment.EventType
		of       func(payment.Payment) payment.Operation
		answered []payment.EventType
	}{
		{
			payment.OperationCapture, held, capture(4000), payment.EventCaptureRefused,
			func(p payment.Payment) payment.Operation { return p.Capture },
			[]payment.EventType{payment.EventUnanswered, payment.EventNotRun, payment.EventCaptureRefused},
		},
		{
			payment.OperationVoid, canceling, intent(payment.EventVoidSent), payment.EventVoidRefused,
			func(p payment.Payment) payment.Operation { return p.Void },
			[]payment.EventType{payment.EventUnanswered, payment.EventNotRun, payment.EventVoidRefused},
		},
	}
	for _, tt := range tests {
		first := after(t, tt.from, tt.send)
		second := after(t, first, missedOf(tt.refusal, tt.name, tt.of(first)), tt.send)
		for _, kind := range tt.answered {
			oldNews(t, second, missedOf(kind, tt.name, tt.of(first)))
			if o := tt.of(after(t, second, missedOf(kind, tt.name, tt.of(second)))); o.State == payment.OperationSent {
				t.Errorf("%s of the second %s: got %+v, want it noted", kind, tt.name, o)
			}
		}
	}
}

// A request for a charge that is refused ends the payment only while nothing later
// is known: not a sending, and not a word of the PSP on the charge.
func TestARefusalOfAnEarlierSendingOfTheChargeIsOldNews(t *testing.T) {
	refusal := func(p payment.Payment) payment.Event {
		e := fact(payment.EventDeclined)
		e.PSPReference, e.Attempt, e.Sends = "", p.Create.Attempt, p.Create.Sends
		return e
	}
	first := processing()
	after(t, first, refusal(first))
	second := after(t, first, intent(payment.EventSent))
	oldNews(t, second, refusal(first))
	after(t, second, refusal(second))
	oldNews(t, after(t, second, fact(payment.EventPending)), refusal(first))
	oldNews(t, after(t, second, fact(payment.EventActionRequired)), refusal(first))
	oldNews(t, canceledBySilence(t), refusal(first))
	after(t, after(t, second, fact(payment.EventPending)), fact(payment.EventDeclined)) // the PSP's own word
}

// A refund that the PSP has made does not fail because an earlier sending of it was
// refused: the same money would be refunded twice.
func TestARefusalOfAnEarlierSendingOfARefundIsOldNews(t *testing.T) {
	refusal := func(sends int) payment.Event {
		e := refund(payment.EventRefundFailed, ours1, "", 2000)
		e.Refund.Sends = sends
		return e
	}
	first := after(t, inStatus(t)[payment.StatusCaptured], ask(ours1, 2000))
	after(t, first, refusal(1))
	second := after(t, first, refundCall(payment.EventRefundSent, ours1, 0))
	oldNews(t, second, refusal(1))
	after(t, second, refusal(2))
	made := after(t, second, refund(payment.EventRefundSucceeded, ours1, "rf_1", 2000))
	oldNews(t, made, refusal(1))
	oldNews(t, made, refusal(2))
	after(t, made, refund(payment.EventRefundFailed, ours1, "rf_1", 2000)) // the PSP's own word
}
