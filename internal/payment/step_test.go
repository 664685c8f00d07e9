package payment_test

import (
	"testing"
	"time"

	"github.com/kessai/kessai/internal/payment"
)

var (
	rest   = payment.Step{}
	lookUp = payment.Step{Kind: payment.StepLookUp}
	send   = payment.Step{Kind: payment.StepSend}
	void   = payment.Step{Kind: payment.StepVoid}
	take   = payment.Step{Kind: payment.StepCapture}
	person = payment.Step{Kind: payment.StepPerson}
	giveUp = payment.Step{Kind: payment.StepRecord, Event: payment.EventCancelRequested}
	absent = payment.Step{Kind: payment.StepRecord, Event: payment.EventAbsent}

	missing = payment.Seen{}
	live    = payment.Seen{Found: true, Reference: chargeRef, Live: true}
	ended   = payment.Seen{Found: true, Reference: chargeRef}
)

func giveBack(id payment.RefundID) payment.Step {
	return payment.Step{Kind: payment.StepRefund, Refund: id}
}

// due is p as it is when its look has come.
func due(p payment.Payment) payment.Payment {
	p.DueAt = p.Look(policy)
	return p
}

func TestNextBeforeALookUp(t *testing.T) {
	all := inStatus(t)
	held := all[payment.StatusAuthorized]
	canceling := after(t, processing(), fact(payment.EventPending), cancel(payment.CancelByMerchant))
	late := after(t, canceledBySilence(t), fact(payment.EventCaptured))
	tests := []struct {
		name string
		p    payment.Payment
		now  time.Duration
		want payment.Step
	}{
		{"created, in time", created(), 30*time.Minute - 1, rest},
		{"created, its deadline has come", created(), 30 * time.Minute, giveUp},
		{"on its way", processing(), time.Minute - 1, rest},
		{"on its way for long", processing(), time.Minute, lookUp},
		{"canceling what may be on its way", after(t, processing(), cancel(payment.CancelByMerchant)), arrival - 1, rest},
		{"canceling what has arrived or never will", after(t, processing(), cancel(payment.CancelByMerchant)), arrival, lookUp},
		{"canceling what the PSP has", canceling, now2, void},
		{"canceling what is held", after(t, held, cancel(payment.CancelByMerchant)), now2, void},
		{"canceling other money: its reference first", after(t, processing(), intent(payment.EventMismatched), cancel(payment.CancelByMerchant)), now2, lookUp},
		{"canceling, void on its way", after(t, canceling, intent(payment.EventVoidSent)), now2, rest},
		{"canceling, void refused", after(t, canceling, intent(payment.EventVoidSent), missed(payment.EventVoidRefused, payment.OperationVoid, 1)), now2, lookUp},
		{"canceling while a capture is on its way", after(t, held, capture(whole), cancel(payment.CancelByMerchant)), now2, rest},
		{"held", held, time.Hour, rest},
		{"held for a day", held, 25 * time.Hour, lookUp},
		{"captured", all[payment.StatusCaptured], 1000 * time.Hour, rest},
		{"late money", late, 0, giveBack(payment.LateRefundID(paymentID))},
		{"late money on its way back", after(t, late, refundCall(payment.EventRefundSent, payment.LateRefundID(paymentID), 0)), now2, rest},
		{"canceled, watched", canceledBySilence(t), time.Hour, lookUp},
		{"declined", all[payment.StatusFailed], 1000 * time.Hour, rest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := due(tt.p).Next(start.Add(tt.now)); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	if got := processing().Next(start.Add(1000 * time.Hour)); got != rest {
		t.Errorf("got %+v for a payment at rest, want nothing", got)
	}
}

func TestNextAfterALookUpOfTheCharge(t *testing.T) {
	all := inStatus(t)
	held := all[payment.StatusAuthorized]
	unknown := after(t, processing(), missed(payment.EventUnanswered, payment.OperationCreate, 1))
	throttled := after(t, processing(), missed(payment.EventNotRun, payment.OperationCreate, 1))
	twice := after(t, unknown, at(time.Minute, intent(payment.EventSent)), missed(payment.EventNotRun, payment.OperationCreate, 2))
	pending := after(t, processing(), fact(payment.EventPending))
	mismatch := after(t, processing(), intent(payment.EventMismatched))
	canceling := func(p payment.Payment) payment.Payment { return after(t, p, cancel(payment.CancelByMerchant)) }
	asked := after(t, held, capture(whole))
	far := func(p payment.Payment) payment.Payment { p.ExpiresAt = start.Add(1000 * time.Hour); return p }
	half := policy.KeyLifetime / 2
	tests := []struct {
		name string
		p    payment.Payment
		now  time.Duration
		seen payment.Seen
		want payment.Step
	}{
		{"not found, may be on its way", unknown, arrival - 1, missing, rest},
		{"not found, sender died", processing(), arrival, missing, send},
		{"not found, no answer", unknown, arrival, missing, send},
		{"not found, did not run", throttled, now2, missing, send},
		{"not found, key at half its life", far(unknown), half, missing, person},
		{"not found, key just below that", far(unknown), half - 1, missing, send},
		{"not found, did not run, key too old", far(throttled), half, missing, person},
		{"not found at the deadline", unknown, 30 * time.Minute, missing, giveUp},
		{"not found at the deadline, still on its way", after(t, processing(), at(30*time.Minute-1, intent(payment.EventSent))), 30 * time.Minute, missing, rest},
		{"not found, canceling, on its way", canceling(unknown), arrival - 1, missing, rest},
		{"not found, canceling", canceling(unknown), arrival, missing, absent},
		{"not found, canceling what never ran", canceling(throttled), now2, missing, absent},
		{"not found, canceling, only the last did not run", canceling(twice), time.Minute + arrival - 1, missing, rest},
		{"not found, canceling, nothing on its way any more", canceling(twice), time.Minute + arrival, missing, absent},
		{"not found, canceling, long after", canceling(far(unknown)), 100 * time.Hour, missing, absent},
		{"not found, though the PSP had told of it", pending, time.Hour, missing, person},
		{"not found, though the customer must act", all[payment.StatusRequiresAction], time.Hour, missing, person},
		{"not found, though it was held", held, time.Hour, missing, person},

		{"pending", pending, time.Minute, live, rest},
		{"pending at the deadline", pending, 30 * time.Minute, live, giveUp},
		{"the customer never acted", all[payment.StatusRequiresAction], 30 * time.Minute, live, giveUp},
		{"canceling what is pending", canceling(pending), time.Minute, live, void},
		{"other money", mismatch, time.Minute, live, person},
		{"other money at the deadline", mismatch, 30 * time.Minute, live, giveUp},
		{"canceling other money", canceling(mismatch), time.Minute, live, void},
		{"other money was taken", mismatch, time.Minute, ended, person},
		{"other money was taken, at the deadline", mismatch, 30 * time.Minute, ended, person},
		{"canceling, other money was taken", canceling(mismatch), time.Minute, ended, person},
		{"not found, though it had other money", canceling(mismatch), time.Hour, missing, person},

		{"held", held, 48 * time.Hour, live, rest},
		{"held, and other money was taken", held, 48 * time.Hour, ended, person},
		{"capture on its way, and other money was taken", asked, time.Hour, ended, person},
		{"capture on its way", asked, now2 + arrival - 1, live, rest},
		{"capture lost", asked, now2 + arrival, live, take},
		{"capture did not run", after(t, asked, missed(payment.EventNotRun, payment.OperationCapture, 1)), now2, live, take},
		{"capture lost, key too old", asked, now2 + half, live, person},
		{"capture refused", after(t, asked, missed(payment.EventCaptureRefused, payment.OperationCapture, 1)), time.Hour, live, rest},
		{"canceling what is held", canceling(held), now2, live, void},
		{"canceling, capture on its way", canceling(asked), now2 + arrival - 1, live, rest},
		{"canceling, capture lost", canceling(asked), now2 + arrival, live, void},
		{"canceling, capture lost, key too old", canceling(asked), now2 + half, live, void},
		{"canceling, capture did not run", canceling(after(t, asked, missed(payment.EventNotRun, payment.OperationCapture, 1))), now2, live, void},

		{"dead, and lives at the PSP", canceledBySilence(t), time.Hour, live, void},
		{"declined, and lives at the PSP", all[payment.StatusFailed], time.Hour, live, void},
		{"dead there too", canceledBySilence(t), time.Hour, ended, rest},
		{"dead, and unknown there", canceledBySilence(t), time.Hour, missing, rest},
		{"captured", all[payment.StatusCaptured], time.Hour, ended, rest},
		{"refunded", all[payment.StatusRefunded], time.Hour, ended, rest},
		{"created", created(), time.Hour, missing, rest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := due(tt.p).NextAfterLookUp(start.Add(tt.now), policy, tt.seen); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// A PSP whose look-up proves nothing: the same key is the only question, as long
// as it may be asked; after that a person. Silence never ends the payment.
func TestNotFoundThatProvesNothing(t *testing.T) {
	weak := policy
	weak.AuthoritativeLookup = false
	unknown := after(t, processing(), missed(payment.EventUnanswered, payment.OperationCreate, 1))
	throttled := after(t, processing(), missed(payment.EventNotRun, payment.OperationCreate, 1))
	asked := after(t, inStatus(t)[payment.StatusCaptured], ask(ours1, 1), refundCall(payment.EventRefundUnanswered, ours1, 1))
	tests := []struct {
		name string
		p    payment.Payment
		now  time.Duration
		seen payment.Seen
		want payment.Step
	}{
		{"may be on its way", unknown, arrival - 1, missing, rest},
		{"has arrived or never will", unknown, arrival, missing, send},
		{"at the deadline", unknown, 30 * time.Minute, missing, giveUp},
		{"canceling, on its way", after(t, unknown, cancel(payment.CancelByExpiry)), arrival - 1, missing, rest},
		{"canceling", after(t, unknown, cancel(payment.CancelByExpiry)), time.Hour, missing, person},
		{"canceling, only the last did not run", after(t, unknown, intent(payment.EventSent), missed(payment.EventNotRun, payment.OperationCreate, 2),
			cancel(payment.CancelByExpiry)), time.Hour, missing, person},
		{"canceling what never ran", after(t, throttled, cancel(payment.CancelByExpiry)), now2, missing, absent},
		{"refund on its way", asked, now2 + arrival - 1, ended, rest},
		{"refund lost", asked, now2 + arrival, ended, giveBack(ours1)},
		{"refund lost, key too old", asked, now2 + policy.KeyLifetime/2, ended, payment.Step{Kind: payment.StepPerson, Refund: ours1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := due(tt.p).NextAfterLookUp(start.Add(tt.now), weak, tt.seen); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestNextAfterALookUpOfRefunds(t *testing.T) {
	captured := inStatus(t)[payment.StatusCaptured]
	asked := after(t, captured, ask(ours1, 1))
	late := after(t, canceledBySilence(t), fact(payment.EventCaptured))
	lateID := payment.LateRefundID(paymentID)
	half := now2 + policy.KeyLifetime/2
	knows := func(ids ...payment.RefundID) payment.Seen {
		s := payment.Seen{Found: true, Reference: chargeRef, Refunds: map[payment.RefundID]bool{}}
		for _, id := range ids {
			s.Refunds[id] = true
		}
		return s
	}
	tests := []struct {
		name string
		p    payment.Payment
		now  time.Duration
		seen payment.Seen
		want payment.Step
	}{
		{"on its way", asked, now2 + arrival - 1, knows(), rest},
		{"lost", asked, now2 + arrival, knows(), giveBack(ours1)},
		{"no answer", after(t, asked, refundCall(payment.EventRefundUnanswered, ours1, 1)), now2 + arrival, knows(), giveBack(ours1)},
		{"did not run", after(t, asked, refundThrottled(3*time.Second)), 3 * time.Second, knows(), giveBack(ours1)},
		{"the PSP has it", asked, time.Hour, knows(ours1), rest},
		{"S8: lost, key too old", asked, half, knows(), payment.Step{Kind: payment.StepPerson, Refund: ours1}},
		{"did not run, key too old", after(t, asked, refundThrottled(3*time.Second)), half, knows(), payment.Step{Kind: payment.StepPerson, Refund: ours1}},
		{"pending at the PSP", after(t, asked, refund(payment.EventRefundPending, ours1, "rf_1", 1)), time.Hour, knows(ours1), rest},
		{"the second is lost", after(t, asked, ask(ours2, 1)), time.Hour, knows(ours1), giveBack(ours2)},
		{"ended", after(t, asked, refund(payment.EventRefundFailed, ours1, "", 1)), time.Hour, knows(), rest},
		{"made outside", after(t, captured, refund(payment.EventRefundPending, "", "rf_9", 1)), time.Hour, knows(), rest},
		{"owed", late, 100 * time.Hour, knows(), giveBack(lateID)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := due(tt.p).NextAfterLookUp(start.Add(tt.now), policy, tt.seen); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
