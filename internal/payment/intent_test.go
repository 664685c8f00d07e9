package payment_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/payment"
)

// S-CANCEL-MEANS-NO-CHARGE: after a cancel was requested, or past the deadline,
// no charge leaves any more.
func TestNoChargeIsSentAfterCancelOrDeadline(t *testing.T) {
	for _, cause := range []payment.CancelCause{payment.CancelByMerchant, payment.CancelByExpiry, payment.CancelByCheckout} {
		p := after(t, processing(), cancel(cause))
		if p.CancelCause != cause || p.Status != payment.StatusProcessing {
			t.Errorf("got cause %q in %s, want %q in processing", p.CancelCause, p.Status, cause)
		}
		refused(t, p, intent(payment.EventSent))
		refused(t, after(t, created(), cancel(cause)), intent(payment.EventSent))
	}
	for _, p := range []payment.Payment{created(), processing()} {
		refused(t, p, at(30*time.Minute, intent(payment.EventSent)))
		refused(t, p, at(31*time.Minute, intent(payment.EventSent)))
		after(t, p, at(30*time.Minute-1, intent(payment.EventSent)))
	}
}

// A cancel without a cause would stop nothing.
func TestCancelNeedsACause(t *testing.T) {
	for _, status := range []payment.Status{
		payment.StatusCreated, payment.StatusProcessing, payment.StatusRequiresAction, payment.StatusAuthorized,
	} {
		refused(t, inStatus(t)[status], cancel(""))
	}
}

func TestNoCaptureIsSentAfterCancel(t *testing.T) {
	held := inStatus(t)[payment.StatusAuthorized]
	refused(t, after(t, held, cancel(payment.CancelByMerchant)), capture(whole))
	asked := after(t, held, capture(whole), cancel(payment.CancelByMerchant))
	refused(t, asked, capture(whole))
}

// Silence alone never ends a payment, and silence never outweighs the PSP's word.
func TestAbsentNeedsACancelAndNoWordFromThePSP(t *testing.T) {
	refused(t, processing(), intent(payment.EventAbsent))
	refused(t, after(t, processing(), missed(payment.EventNotRun, payment.OperationCreate, 1)), intent(payment.EventAbsent))
	canceling := after(t, processing(), cancel(payment.CancelByMerchant))
	if got := after(t, canceling, intent(payment.EventAbsent)); got.Status != payment.StatusCanceled || got.Buried {
		t.Errorf("got %s, buried %v; want canceled, and not by the PSP's word", got.Status, got.Buried)
	}
	// A look-up that found nothing, recorded after the webhook that tells of the charge.
	refused(t, after(t, canceling, fact(payment.EventPending)), intent(payment.EventAbsent))
}

// A void without a cancel before it would leave the charge free to be sent again.
func TestVoidNeedsACancel(t *testing.T) {
	all := inStatus(t)
	for _, status := range []payment.Status{payment.StatusProcessing, payment.StatusRequiresAction, payment.StatusAuthorized} {
		refused(t, all[status], intent(payment.EventVoidSent))
		after(t, all[status], cancel(payment.CancelByMerchant), intent(payment.EventVoidSent))
	}
	for _, status := range []payment.Status{payment.StatusFailed, payment.StatusCanceled} {
		after(t, all[status], intent(payment.EventVoidSent)) // what was found alive
	}
}

func TestCancelOfACreatedPaymentEndsIt(t *testing.T) {
	p := after(t, created(), cancel(payment.CancelByMerchant))
	if p.Status != payment.StatusCanceled || p.HoldsReference {
		t.Errorf("got %s, holds reference %v; want canceled, reference free", p.Status, p.HoldsReference)
	}
	if !p.Look(policy).IsZero() {
		t.Errorf("got a look at %s, want rest: nothing was sent", p.Look(policy))
	}
}

// S-KEY-STABLE for the charge: one key for ever, each sending counted, the first
// never forgotten.
func TestChargeKeepsItsKey(t *testing.T) {
	p := processing()
	for n := 2; n <= 4; n++ {
		p = after(t, p, missed(payment.EventUnanswered, payment.OperationCreate, n-1))
		if p.Create.State != payment.OperationUnknown {
			t.Fatalf("got %q, want unknown", p.Create.State)
		}
		sent := at(time.Duration(n)*time.Minute, intent(payment.EventSent))
		p = after(t, p, sent)
		want := payment.Operation{
			State: payment.OperationSent, Key: string(paymentID), FirstSentAt: start, LastSentAt: sent.At, Sends: n, Attempt: 1,
		}
		if p.Create != want {
			t.Errorf("got %+v, want %+v", p.Create, want)
		}
	}
	fromCreated := after(t, created(), intent(payment.EventSent)).Create
	if fromCreated.Key != string(paymentID) || fromCreated.Sends != 1 || !fromCreated.FirstSentAt.Equal(start.Add(2*time.Second)) {
		t.Errorf("got %+v, want the first sending of the payment's key", fromCreated)
	}
}

// S-KEY-STABLE for captures and voids: the same key until the PSP gave a final
// answer to it, the next one after that.
func TestKeyChangesOnlyAfterAFinalAnswer(t *testing.T) {
	held := inStatus(t)[payment.StatusAuthorized]
	canceling := after(t, held, cancel(payment.CancelByMerchant))
	tests := []struct {
		name      string
		from      payment.Payment
		send      payment.Event
		operation payment.OperationName
		refusal   payment.EventType
		of        func(payment.Payment) payment.Operation
	}{
		{
			"capture", held, capture(4000), payment.OperationCapture, payment.EventCaptureRefused,
			func(p payment.Payment) payment.Operation { return p.Capture },
		},
		{
			"void", canceling, intent(payment.EventVoidSent), payment.OperationVoid, payment.EventVoidRefused,
			func(p payment.Payment) payment.Operation { return p.Void },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prefix := map[string]string{"capture": "-capture-", "void": "-cancel-"}[tt.name]
			p := after(t, tt.from, at(time.Minute, tt.send))
			first := tt.of(p)
			if first.Key != string(paymentID)+prefix+"1" || first.Sends != 1 || first.Attempt != 1 {
				t.Fatalf("got %+v, want the first sending of key 1", first)
			}
			for n, lost := range []payment.EventType{payment.EventUnanswered, payment.EventNotRun} {
				p = after(t, p, missed(lost, tt.operation, n+1), at(time.Hour, tt.send))
				o := tt.of(p)
				if o.Key != first.Key || o.Attempt != 1 || o.Sends != n+2 || !o.FirstSentAt.Equal(first.FirstSentAt) || !o.LastSentAt.Equal(start.Add(time.Hour)) {
					t.Errorf("after %s: got %+v, want sending %d of the same key, first sent as before", lost, o, n+2)
				}
			}
			p = after(t, p, missed(tt.refusal, tt.operation, 3))
			if got := tt.of(p).State; got != payment.OperationRefused {
				t.Fatalf("got %q, want refused", got)
			}
			o := tt.of(after(t, p, at(2*time.Hour, tt.send)))
			if o.Key != string(paymentID)+prefix+"2" || o.Attempt != 2 || o.Sends != 1 || !o.FirstSentAt.Equal(start.Add(2*time.Hour)) {
				t.Errorf("after a refusal: got %+v, want the first sending of key 2", o)
			}
		})
	}
}

func TestAnOpenCaptureIsSentAgainOnlyUnchanged(t *testing.T) {
	asked := after(t, inStatus(t)[payment.StatusAuthorized], capture(4000))
	refused(t, asked, capture(3000))
	again := after(t, asked, missed(payment.EventCaptureRefused, payment.OperationCapture, 1), capture(3000))
	if again.Capture.Amount != 3000 || again.Capture.Attempt != 2 {
		t.Errorf("got %+v, want a new capture of 3000", again.Capture)
	}
}

func TestCaptureIsBounded(t *testing.T) {
	held := inStatus(t)[payment.StatusAuthorized]
	for _, minor := range []int64{-1, 0, whole + 1} {
		next, _, changed, err := held.Apply(capture(minor))
		if !errors.Is(err, payment.ErrAmountTooLarge) || changed || next.Version != held.Version {
			t.Errorf("capture of %d: got changed %v, %v; want ErrAmountTooLarge", minor, changed, err)
		}
	}
	for _, minor := range []int64{1, whole} {
		if got := after(t, held, capture(minor)).Capture.Amount; got != minor {
			t.Errorf("got a capture of %d, want %d", got, minor)
		}
	}
}

// The PSP captures an automatic payment itself; of a capture of ours its answer
// could not be believed.
func TestAnAutomaticPaymentIsNotCapturedByUs(t *testing.T) {
	held := after(t, processing(), fact(payment.EventAuthorized))
	refused(t, held, capture(whole))
	refused(t, held, capture(1))
	if err := held.CheckCapture(0); !isIllegal(err) {
		t.Errorf("got %v, want an illegal transition", err)
	}
}

// CheckCapture says before what Apply says then.
func TestCheckCaptureAgreesWithApply(t *testing.T) {
	held := inStatus(t)[payment.StatusAuthorized]
	for _, minor := range []int64{-1, 1, whole, whole + 1} {
		_, _, _, err := held.Apply(capture(minor))
		if checked := held.CheckCapture(minor); !errors.Is(checked, err) {
			t.Errorf("capture of %d: CheckCapture says %v, Apply %v", minor, checked, err)
		}
	}
	if err := held.CheckCapture(0); err != nil {
		t.Errorf("capture of the whole: got %v, want none", err)
	}
	for status, p := range inStatus(t) {
		if err := p.CheckCapture(0); status != payment.StatusAuthorized && !isIllegal(err) {
			t.Errorf("%s: got %v, want an illegal transition", status, err)
		}
	}
	for name, p := range map[string]payment.Payment{
		"canceling": after(t, held, cancel(payment.CancelByMerchant)), "on its way": after(t, held, capture(1)),
	} {
		if err := p.CheckCapture(0); !isIllegal(err) {
			t.Errorf("%s: got %v, want an illegal transition", name, err)
		}
	}
}

func isIllegal(err error) bool {
	te, ok := errors.AsType[*payment.TransitionError](err)
	return ok && !te.Early
}

// An answer that brings no state counts only for the sending it belongs to.
func TestAnswerToAnOlderSendingIsOldNews(t *testing.T) {
	held := inStatus(t)[payment.StatusAuthorized]
	twice := map[payment.OperationName]payment.Payment{
		payment.OperationCreate:  after(t, processing(), intent(payment.EventSent)),
		payment.OperationCapture: after(t, held, capture(whole), capture(whole)),
		payment.OperationVoid:    after(t, held, cancel(payment.CancelByMerchant), intent(payment.EventVoidSent), intent(payment.EventVoidSent)),
	}
	kinds := map[payment.OperationName][]payment.EventType{
		payment.OperationCreate:  {payment.EventUnanswered, payment.EventNotRun},
		payment.OperationCapture: {payment.EventUnanswered, payment.EventNotRun, payment.EventCaptureRefused},
		payment.OperationVoid:    {payment.EventUnanswered, payment.EventNotRun, payment.EventVoidRefused},
	}
	for name, p := range twice {
		for _, kind := range kinds[name] {
			oldNews(t, p, missed(kind, name, 1))
			oldNews(t, p, missed(kind, name, 3))
			answered := after(t, p, missed(kind, name, 2))
			oldNews(t, answered, missed(kind, name, 2))
		}
	}
	oldNews(t, processing(), missed(payment.EventUnanswered, payment.OperationVoid, 0))
	oldNews(t, processing(), missed(payment.EventUnanswered, "", 1))
	answered := after(t, processing(), fact(payment.EventPending))
	oldNews(t, answered, missed(payment.EventUnanswered, payment.OperationCreate, 1))
}

// A refusal is one of its own operation.
func TestARefusalIsOfItsOwnOperation(t *testing.T) {
	oldNews(t, processing(), missed(payment.EventVoidRefused, payment.OperationCreate, 1))
	held := after(t, inStatus(t)[payment.StatusAuthorized], capture(whole))
	oldNews(t, held, missed(payment.EventVoidRefused, payment.OperationCapture, 1))
	voiding := after(t, inStatus(t)[payment.StatusAuthorized], cancel(payment.CancelByMerchant), intent(payment.EventVoidSent))
	oldNews(t, voiding, missed(payment.EventCaptureRefused, payment.OperationVoid, 1))
}

func TestNotRunSaysWhenToTryAgain(t *testing.T) {
	throttled := missed(payment.EventNotRun, payment.OperationCreate, 1)
	throttled.RetryAt = start.Add(3 * time.Second)
	p := after(t, processing(), throttled)
	if p.Create.State != payment.OperationNotRun || !p.Create.RetryAt.Equal(throttled.RetryAt) {
		t.Errorf("got %+v, want not run until %s", p.Create, throttled.RetryAt)
	}
	if again := after(t, p, intent(payment.EventSent)); !again.Create.RetryAt.IsZero() {
		t.Errorf("got retry at %s, want none once it is sent", again.Create.RetryAt)
	}
}

// Sendable and its kin are the check before a sending that did not come from a Step.
func TestSendableWithinHalfTheKeysLife(t *testing.T) {
	long := terms(payment.CaptureManual)
	long.ExpiresAt = start.Add(100 * time.Hour)
	p, _ := payment.NewSent(long, start)
	held := after(t, p, fact(payment.EventAuthorized), capture(whole))
	paid := after(t, p, capturedOnly(whole), ask(ours1, 1))
	half := start.Add(2*time.Second + policy.KeyLifetime/2)
	r, _ := paid.Refund(ours1)
	for _, tt := range []struct {
		name string
		got  func(time.Time) bool
		end  time.Time
	}{
		{"charge", func(now time.Time) bool { return p.Sendable(now, policy) }, start.Add(policy.KeyLifetime / 2)},
		{"charge before its deadline", func(now time.Time) bool { return processing().Sendable(now, policy) }, expiry},
		{"first sending", func(now time.Time) bool { return created().Sendable(now, policy) }, expiry},
		{"capture", func(now time.Time) bool { return held.CaptureSendable(now, policy) }, half},
		{"refund", func(now time.Time) bool { return r.Sendable(now, policy) }, half},
	} {
		if !tt.got(tt.end.Add(-1)) || tt.got(tt.end) {
			t.Errorf("%s: sendable %v just before %s, %v then; want true, false", tt.name, tt.got(tt.end.Add(-1)), tt.end, tt.got(tt.end))
		}
	}
	if after(t, p, cancel(payment.CancelByMerchant)).Sendable(start, policy) {
		t.Error("a charge is sendable after a cancel, want not")
	}
	if after(t, held, cancel(payment.CancelByMerchant)).CaptureSendable(start, policy) {
		t.Error("a capture is sendable after a cancel, want not")
	}
	if after(t, p, fact(payment.EventAuthorized)).CaptureSendable(start, policy) {
		t.Error("a capture that nobody asked for is sendable, want not")
	}
}

// The PSP may hold funds again of a charge that it said was void: voided once more,
// its answer is one, and no doubt is left.
func TestTheAnswerToAVoidOfWhatIsDeadIsNews(t *testing.T) {
	dead := inStatus(t)[payment.StatusCanceled]
	dead = after(t, dead, fact(payment.EventVoided))
	p := after(t, dead, intent(payment.EventVoidSent))
	if p.Void.State != payment.OperationSent {
		t.Fatalf("got %s, want the void on its way", p.Void.State)
	}
	next, row, changed, err := p.Apply(fact(payment.EventVoided))
	if err != nil || !changed || row.Type != payment.EventVoided || next.Void.State != payment.OperationAnswered {
		t.Errorf("got %+v, changed %v, %v; want the void answered", row, changed, err)
	}
	if _, _, again, err := next.Apply(fact(payment.EventVoided)); again || err != nil {
		t.Errorf("got changed %v, %v; want the same told again to be no news", again, err)
	}
}
