package payment_test

import (
	"errors"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"github.com/kessai/kessai/internal/payment"
)

// Refunds are asked for only where money was taken, and only what is left of it.
func TestCheckRefundAgreesWithApply(t *testing.T) {
	all := inStatus(t)
	late := after(t, canceledBySilence(t), fact(payment.EventCaptured))
	all["late"] = late
	all["late and failed"] = after(t, late, refund(payment.EventRefundFailed, payment.LateRefundID(paymentID), "rf_1", whole))
	all["half asked"] = after(t, all[payment.StatusCaptured], ask(ours1, 2500))
	all["disputed"] = after(t, all[payment.StatusCaptured], dispute(payment.EventDisputeOpened, "dp_1", ""))
	left := map[payment.Status]int64{payment.StatusCaptured: whole, "late and failed": whole, "half asked": 2500}
	for name, p := range all {
		for _, minor := range []int64{-1, 0, 1, 2500, 2501, whole, whole + 1} {
			checked := p.CheckRefund(minor)
			_, _, changed, err := p.Apply(ask(ours2, minor))
			if changed != (checked == nil) || !sameRefusal(checked, err) {
				t.Errorf("%s, %d: CheckRefund says %v, Apply %v with changed %v", name, minor, checked, err, changed)
			}
			if want := minor > 0 && minor <= left[name]; changed != want {
				t.Errorf("%s: a refund of %d is accepted: %v, want %v", name, minor, changed, want)
			}
		}
	}
	for name, want := range map[payment.Status]error{
		payment.StatusRefunded: payment.ErrAmountTooLarge, "late": payment.ErrAmountTooLarge, "disputed": payment.ErrDisputed,
	} {
		if err := all[name].CheckRefund(1); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	for _, name := range []payment.Status{payment.StatusCreated, payment.StatusAuthorized, payment.StatusFailed, payment.StatusCanceled} {
		if err := all[name].CheckRefund(1); !isIllegal(err) {
			t.Errorf("%s: got %v, want an illegal transition", name, err)
		}
	}
}

func sameRefusal(a, b error) bool {
	if isIllegal(a) || isIllegal(b) {
		return isIllegal(a) && isIllegal(b)
	}
	return errors.Is(a, b)
}

func TestADisputeBlocksRefundsUntilItIsClosed(t *testing.T) {
	p := after(t, inStatus(t)[payment.StatusCaptured], dispute(payment.EventDisputeOpened, "dp_1", ""),
		dispute(payment.EventDisputeOpened, "dp_2", ""), dispute(payment.EventDisputeClosed, "dp_1", "won"))
	if _, _, _, err := p.Apply(ask(ours1, 1)); !errors.Is(err, payment.ErrDisputed) || !p.Disputed() {
		t.Errorf("got %v, disputed %v; want ErrDisputed", err, p.Disputed())
	}
	p = after(t, p, dispute(payment.EventDisputeClosed, "dp_2", "lost"))
	if p.Disputed() || len(p.Disputes) != 2 {
		t.Errorf("got disputed %v with %d disputes, want not, with 2", p.Disputed(), len(p.Disputes))
	}
	after(t, p, ask(ours1, 1))
}

// One PSP refund per refund id: asking again with the same id adds nothing.
func TestARefundIsAskedForOnce(t *testing.T) {
	captured := inStatus(t)[payment.StatusCaptured]
	asked := after(t, captured, ask(ours1, 4000))
	oldNews(t, asked, ask(ours1, 4000))
	mismatched(t, asked, ask(ours1, 1000), "refund")
	mismatched(t, captured, ask("", 1000), "refund")
	ended := after(t, asked, refund(payment.EventRefundFailed, ours1, "rf_1", 4000))
	oldNews(t, ended, ask(ours1, 4000))
}

// S-KEY-STABLE for refunds: the refund's id is its key on every sending.
func TestRefundKeepsItsKey(t *testing.T) {
	p := after(t, inStatus(t)[payment.StatusCaptured], ask(ours1, 4000))
	first, _ := p.Refund(ours1)
	want := payment.Operation{
		State: payment.OperationSent, Key: string(ours1), FirstSentAt: start.Add(2 * time.Second), LastSentAt: start.Add(2 * time.Second), Sends: 1, Attempt: 1,
	}
	if first.Operation != want || first.Status != payment.RefundPending || first.Reason != "returned" || first.Outside {
		t.Fatalf("got %+v, want a pending refund that is being sent", first)
	}
	oldNews(t, p, refundCall(payment.EventRefundUnanswered, ours1, 0))
	p = after(t, p, refundCall(payment.EventRefundUnanswered, ours1, 1))
	oldNews(t, p, refundCall(payment.EventRefundUnanswered, ours1, 1))
	if r, _ := p.Refund(ours1); r.Operation.State != payment.OperationUnknown {
		t.Errorf("got %q, want unknown", r.Operation.State)
	}
	p = after(t, p, at(time.Hour, refundCall(payment.EventRefundSent, ours1, 0)))
	oldNews(t, p, refundCall(payment.EventRefundUnanswered, ours1, 1))
	throttled := refundCall(payment.EventRefundUnanswered, ours1, 2)
	throttled.Refund.NotRun, throttled.Refund.RetryAt = true, start.Add(2*time.Hour)
	p = after(t, p, throttled)
	if r, _ := p.Refund(ours1); r.Operation.State != payment.OperationNotRun || !r.Operation.RetryAt.Equal(throttled.Refund.RetryAt) {
		t.Errorf("got %+v, want not run until %s", r.Operation, throttled.Refund.RetryAt)
	}
	r, _ := after(t, p, at(3*time.Hour, refundCall(payment.EventRefundSent, ours1, 0))).Refund(ours1)
	want.LastSentAt, want.Sends = start.Add(3*time.Hour), 3
	if r.Operation != want {
		t.Errorf("got %+v, want %+v", r.Operation, want)
	}
}

// Its rank stays when the PSP's id of it comes late.
func TestALateIdOfARefundChangesOnlyThat(t *testing.T) {
	asked := after(t, inStatus(t)[payment.StatusCaptured], ask(ours1, 4000), refund(payment.EventRefundSucceeded, ours1, "", 4000))
	p := after(t, asked, refund(payment.EventRefundPending, ours1, "rf_1", 4000))
	if r, _ := p.Refund(ours1); r.Status != payment.RefundSucceeded || r.PSPReference != "rf_1" || p.AmountRefunded() != 4000 {
		t.Errorf("got %s, reference %q; want succeeded, rf_1", r.Status, r.PSPReference)
	}
}

func TestAnAnsweredRefundIsNotSentAgain(t *testing.T) {
	asked := after(t, inStatus(t)[payment.StatusCaptured], ask(ours1, 4000))
	for _, kind := range []payment.EventType{payment.EventRefundPending, payment.EventRefundSucceeded, payment.EventRefundFailed} {
		p := after(t, asked, refund(kind, ours1, "rf_1", 4000))
		if r, _ := p.Refund(ours1); r.Operation.State != payment.OperationAnswered || r.PSPReference != "rf_1" {
			t.Errorf("%s: got %q, reference %q; want answered, rf_1", kind, r.Operation.State, r.PSPReference)
		}
		oldNews(t, p, refundCall(payment.EventRefundSent, ours1, 0))
		oldNews(t, p, refundCall(payment.EventRefundUnanswered, ours1, 1))
	}
	// Refused outright: the PSP has no refund to name.
	oldNews(t, after(t, asked, refund(payment.EventRefundFailed, ours1, "", 4000)), refundCall(payment.EventRefundSent, ours1, 0))
}

func TestAFailedRefundCanBeAskedForAgain(t *testing.T) {
	refunded := inStatus(t)[payment.StatusRefunded]
	failed := after(t, refunded, refund(payment.EventRefundFailed, ours1, "rf_1", whole))
	if failed.Status != payment.StatusRefunded || failed.AmountRefunded() != 0 || failed.Refundable() != whole {
		t.Fatalf("got %s, %d refunded, %d refundable; want refunded, 0, %d", failed.Status, failed.AmountRefunded(), failed.Refundable(), whole)
	}
	oldNews(t, failed, refund(payment.EventRefundSucceeded, ours1, "rf_1", whole)) // S9
	again := after(t, failed, ask(ours2, whole), refund(payment.EventRefundSucceeded, ours2, "rf_2", whole))
	if again.Status != payment.StatusRefunded || again.AmountRefunded() != whole {
		t.Errorf("got %s with %d refunded, want refunded with %d", again.Status, again.AmountRefunded(), whole)
	}
}

func TestStatusIsRefundedOnlyWhenAllSucceeded(t *testing.T) {
	p := after(t, manual(), capturedOnly(4000), ask(ours1, 1000), ask(ours2, 3000))
	if p.Status != payment.StatusCaptured {
		t.Errorf("all asked: got %s, want captured", p.Status)
	}
	p = after(t, p, refund(payment.EventRefundPending, ours2, "rf_2", 3000), refund(payment.EventRefundSucceeded, ours1, "rf_1", 1000))
	if p.Status != payment.StatusCaptured || p.AmountRefunded() != 1000 {
		t.Errorf("one succeeded: got %s with %d, want captured with 1000", p.Status, p.AmountRefunded())
	}
	if p = after(t, p, refund(payment.EventRefundSucceeded, ours2, "rf_2", 3000)); p.Status != payment.StatusRefunded {
		t.Errorf("both succeeded: got %s, want refunded", p.Status)
	}
}

// S17: what may be ours is not counted as another refund.
func TestARefundWithoutOurIdWaitsWhileOursIsUnanswered(t *testing.T) {
	captured := inStatus(t)[payment.StatusCaptured]
	stranger := refund(payment.EventRefundSucceeded, "", "rf_x", 2000)
	waits := func(name string, p payment.Payment) {
		t.Helper()
		_, _, changed, err := p.Apply(stranger)
		if te, ok := errors.AsType[*payment.TransitionError](err); !ok || !te.Early || changed {
			t.Errorf("%s: got changed %v, %v; want it to wait", name, changed, err)
		}
	}
	asked := after(t, captured, ask(ours1, 2000))
	waits("on its way", asked)
	waits("unknown", after(t, asked, refundCall(payment.EventRefundUnanswered, ours1, 1)))
	waits("owed", after(t, canceledBySilence(t), fact(payment.EventCaptured)))
	waits("succeeded under an id that we do not know", after(t, asked, refund(payment.EventRefundSucceeded, ours1, "", 2000)))
	waits("before the capture", processing())
	waits("dead, before the late money", canceledBySilence(t))

	for name, p := range map[string]payment.Payment{
		"answered": after(t, asked, refund(payment.EventRefundPending, ours1, "rf_1", 2000)),
		"refused":  after(t, asked, refund(payment.EventRefundFailed, ours1, "", 2000)),
		"none":     captured,
	} {
		p := after(t, p, stranger)
		r, ok := p.Refund(payment.OutsideRefundID("simulator", "rf_x"))
		if r.Operation != (payment.Operation{}) {
			t.Errorf("%s: got %+v, want nothing of ours to send", name, r.Operation)
		}
		if !ok || !r.Outside || r.Amount != 2000 || r.PSPReference != "rf_x" || p.AmountRefunded() != 2000 {
			t.Errorf("%s: got %+v, want an outside refund of 2000", name, r)
		}
		oldNews(t, p, stranger)
	}
}

// What was made outside counts, and leaves less to refund.
func TestAnOutsideRefundLeavesLess(t *testing.T) {
	p := after(t, inStatus(t)[payment.StatusCaptured], refund(payment.EventRefundSucceeded, "", "rf_x", 4000))
	if p.Refundable() != 1000 || !errors.Is(p.CheckRefund(1001), payment.ErrAmountTooLarge) {
		t.Errorf("got %d refundable, want 1000", p.Refundable())
	}
	p = after(t, p, refund(payment.EventRefundSucceeded, "", "rf_y", 1000))
	if p.Status != payment.StatusRefunded {
		t.Errorf("got %s, want refunded", p.Status)
	}
}

// Late money adds exactly one refund, with an id that everybody derives alike.
func TestLateMoneyIsOwedBackOnce(t *testing.T) {
	id := payment.LateRefundID(paymentID)
	dead := map[string]payment.Payment{
		"declined": inStatus(t)[payment.StatusFailed],
		"absent":   canceledBySilence(t),
		"voided":   after(t, processing(), cancel(payment.CancelByMerchant), fact(payment.EventVoided)),
		"unsent":   after(t, created(), cancel(payment.CancelByExpiry)),
	}
	for name, p := range dead {
		status := p.Status
		p = after(t, p, at(time.Hour, fact(payment.EventCaptured)))
		want := payment.Refund{
			ID: id, Status: payment.RefundPending, Amount: whole, Reason: payment.ReasonLateCapture,
			Operation: payment.Operation{State: payment.OperationOwed, Key: string(id), Attempt: 1},
			CreatedAt: start.Add(time.Hour), UpdatedAt: start.Add(time.Hour),
		}
		if len(p.Refunds) != 1 || p.Refunds[0] != want || p.Status != status || p.AmountCaptured != whole {
			t.Errorf("%s: got %s, refunds %+v; want it still %s, owing %+v", name, p.Status, p.Refunds, status, want)
		}
		oldNews(t, p, fact(payment.EventCaptured))
		if step := p.Next(p.UpdatedAt); step != (payment.Step{Kind: payment.StepRefund, Refund: id}) {
			t.Errorf("%s: got step %+v, want the refund at once", name, step)
		}
		sent := after(t, p, refundCall(payment.EventRefundSent, id, 0))
		if r, _ := sent.Refund(id); r.Operation.Key != string(id) || r.Operation.Sends != 1 || r.Operation.State != payment.OperationSent {
			t.Errorf("%s: got %+v, want the first sending of the refund's key", name, r.Operation)
		}
		pending := after(t, sent, refund(payment.EventRefundPending, id, "rf_1", whole))
		if pending.Status != status {
			t.Errorf("%s: got %s while the refund is pending, want %s", name, pending.Status, status)
		}
		if done := after(t, pending, refund(payment.EventRefundSucceeded, id, "rf_1", whole)); done.Status != payment.StatusRefunded || done.AmountRefunded() != whole {
			t.Errorf("%s: got %s with %d refunded, want refunded", name, done.Status, done.AmountRefunded())
		}
		failed := after(t, pending, refund(payment.EventRefundFailed, id, "rf_1", whole))
		if failed.Status != status || failed.Refundable() != whole {
			t.Errorf("%s: got %s, %d refundable; want %s and all of it", name, failed.Status, failed.Refundable(), status)
		}
		next := after(t, failed, ask(ours1, whole), refund(payment.EventRefundSucceeded, ours1, "rf_2", whole))
		if next.Status != payment.StatusRefunded {
			t.Errorf("%s: got %s after an operator's refund, want refunded", name, next.Status)
		}
	}
}

func TestDerivedRefundIdsAreStableAndApart(t *testing.T) {
	other := payment.ID("pay_01KE0000000000000000000002")
	ids := map[payment.RefundID]string{}
	for name, id := range map[string]payment.RefundID{
		"late": payment.LateRefundID(paymentID), "late of another": payment.LateRefundID(other),
		"compensation": payment.CompensationRefundID(paymentID, 0), "compensation, second": payment.CompensationRefundID(paymentID, 1),
		"compensation of another": payment.CompensationRefundID(other, 0),
		"outside":                 payment.OutsideRefundID("simulator", "rf_1"), "outside, another": payment.OutsideRefundID("simulator", "rf_2"),
		"outside of another PSP": payment.OutsideRefundID("stripe", "rf_1"), "outside, split elsewhere": payment.OutsideRefundID("simulatorrf_", "1"),
	} {
		if same, taken := ids[id]; taken {
			t.Errorf("%s and %s have the same id %s", name, same, id)
		}
		ids[id] = name
		if _, err := ulid.ParseStrict(string(id[len(payment.RefundIDPrefix):])); err != nil || id[:3] != payment.RefundIDPrefix {
			t.Errorf("%s: got %s, want re_ and a ULID: %v", name, id, err)
		}
	}
	// Stored payments hold these ids: they must never come out otherwise.
	if got, want := payment.LateRefundID(paymentID), payment.RefundID("re_30WW0NKWRVEAYH3JHYPAX03EF4"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// S-REFUND-BOUND: whatever is asked, answered or made outside, in any order, what
// we ask never brings pending and succeeded refunds above what was captured.
func TestRefundsNeverExceedTheCapture(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := after(t, manual(), capturedOnly(rapid.Int64Range(1, whole).Draw(rt, "captured")))
		var outside int64
		for n := range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0, 1:
				id := payment.RefundID(ulid.MustNew(uint64(n), nil).String())
				minor := rapid.Int64Range(-10, whole+10).Draw(rt, "asked")
				if next, _, changed, _ := p.Apply(ask(id, minor)); changed {
					p = next
					if sum := promised(p); sum > p.AmountCaptured {
						rt.Fatalf("asked for %d: %d promised of %d captured", minor, sum, p.AmountCaptured)
					}
				}
			case 2:
				if len(p.Refunds) == 0 {
					continue
				}
				r := rapid.SampledFrom(p.Refunds).Draw(rt, "refund")
				kind := rapid.SampledFrom([]payment.EventType{
					payment.EventRefundPending, payment.EventRefundSucceeded, payment.EventRefundFailed,
				}).Draw(rt, "answer")
				e := refund(kind, r.ID, "rf_"+string(r.ID), r.Amount)
				if r.Outside {
					e.Refund.ID, e.Refund.PSPReference = "", r.PSPReference
				}
				next, _, _, err := p.Apply(e)
				if err != nil {
					rt.Fatalf("%s of %s: %v, want what a PSP tells to be recorded", kind, r.ID, err)
				}
				p = next
			case 3:
				e := refund(payment.EventRefundSucceeded, "", "rf_outside_"+ulid.MustNew(uint64(n), nil).String(), rapid.Int64Range(1, whole).Draw(rt, "outside"))
				if next, _, changed, _ := p.Apply(e); changed {
					p, outside = next, outside+e.Refund.Amount
				}
			}
			if p.Refundable() < 0 || p.Refundable() > p.AmountCaptured {
				rt.Fatalf("got %d refundable of %d captured", p.Refundable(), p.AmountCaptured)
			}
		}
		if outside == 0 && p.AmountRefunded() > p.AmountCaptured {
			rt.Fatalf("got %d refunded of %d captured, none of it outside", p.AmountRefunded(), p.AmountCaptured)
		}
	})
}

// promised is what went back or is about to.
func promised(p payment.Payment) int64 {
	var sum int64
	for _, r := range p.Refunds {
		if r.Status != payment.RefundFailed {
			sum += r.Amount
		}
	}
	return sum
}
