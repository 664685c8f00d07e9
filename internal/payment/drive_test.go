package payment_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
)

// world is one payment, its PSP, and a worker who only does what Next and
// NextAfterLookUp say. While faults are left, calls get lost, late, refused or
// throttled, and workers die.
type world struct {
	t       failer
	d       dice
	pol     payment.Policy
	p       payment.Payment
	psp     *model
	now     time.Time
	faults  int
	wire    []request // calls that have not arrived yet
	persons int
}

type request struct {
	arrives time.Time
	run     func() payment.Event
}

func newWorld(t failer, d dice, pol payment.Policy, amount money.Amount) *world {
	method := pick(d, payment.CaptureAutomatic, payment.CaptureManual)
	w := &world{t: t, d: d, pol: pol, now: start, faults: d(7)}
	w.psp = &model{t: t, d: d, manual: method == payment.CaptureManual, amount: amount, keys: map[string]bool{}}
	if d.chance(3) {
		w.p, _ = payment.New(terms(method), start)
		w.p.DueAt = w.p.Look(pol)
		return w
	}
	w.p, _ = payment.NewSent(terms(method), start)
	w.p.DueAt = w.p.Look(pol)
	w.callCreate()
	return w
}

// apply records an event that is true, with every invariant checked.
func (w *world) apply(e payment.Event) error {
	e.At = w.now
	_, _, changed, err := w.p.Apply(e)
	w.p = applyChecked(w.t, w.p, e)
	if changed {
		w.p.DueAt = w.p.Look(w.pol)
		checkRest(w.t, w.p)
	}
	return err
}

// hear records what the PSP says. It returns false for what comes too early.
func (w *world) hear(e payment.Event) bool {
	err := w.apply(e)
	if _, disagrees := errors.AsType[*payment.MismatchError](err); disagrees && w.psp.amount != w.p.Amount {
		return w.apply(payment.Event{Type: payment.EventMismatched}) == nil
	}
	if te, ok := errors.AsType[*payment.TransitionError](err); ok && te.Early {
		return false
	}
	if err != nil {
		w.t.Fatalf("%s in %s: %v, want what the PSP says to be recorded", e.Type, w.p.Status, err)
	}
	return true
}

// call puts one call to the PSP through its fate. The intent is recorded.
func (w *world) call(unanswered payment.Event, run func() payment.Event) {
	notRun := unanswered
	notRun.RetryAt, notRun.Refund.RetryAt, notRun.Refund.NotRun = w.now.Add(time.Second), w.now.Add(time.Second), true
	if notRun.Type == payment.EventUnanswered {
		notRun.Type = payment.EventNotRun
	}
	late := func(by time.Duration) func() {
		return func() {
			w.wire = append(w.wire, request{w.now.Add(by), run})
			w.hear(unanswered)
		}
	}
	answered := func() { w.hear(run()) }
	if w.faults == 0 {
		answered()
		return
	}
	w.faults--
	pick(w.d, answered, func() { run(); w.hear(unanswered) }, func() { w.hear(unanswered) }, late(10*time.Second),
		late(pick(w.d, 5*time.Minute, 5*time.Hour)), func() { w.hear(notRun) }, func() { run() }, func() {})()
}

func (w *world) callCreate() {
	key := w.p.Create.Key
	w.call(missedOf(payment.EventUnanswered, payment.OperationCreate, w.p.Create), func() payment.Event {
		w.psp.create(key)
		return w.psp.fact()
	})
}

func (w *world) callCapture() {
	o, fussy := w.p.Capture, w.faults > 0 && w.d.chance(4)
	w.call(missedOf(payment.EventUnanswered, payment.OperationCapture, o), func() payment.Event {
		if !w.psp.take(o.Key, o.Amount, fussy) {
			return missedOf(payment.EventCaptureRefused, payment.OperationCapture, o)
		}
		return w.psp.fact()
	})
}

func (w *world) callVoid() {
	o, fussy := w.p.Void, w.faults > 0 && w.d.chance(4)
	w.call(missedOf(payment.EventUnanswered, payment.OperationVoid, o), func() payment.Event {
		if !w.psp.cancel(w.now, fussy) {
			return missedOf(payment.EventVoidRefused, payment.OperationVoid, o)
		}
		return w.psp.fact()
	})
}

func (w *world) callRefund(id payment.RefundID) {
	r, _ := w.p.Refund(id)
	w.call(refundCall(payment.EventRefundUnanswered, id, r.Operation.Sends), func() payment.Event {
		return w.psp.refund(id, r.Amount)
	})
}

// lookUp asks where the charge stands. It returns false without an answer.
func (w *world) lookUp() (payment.Seen, bool) {
	if w.faults > 0 && w.d.chance(3) {
		w.faults--
		return payment.Seen{}, false
	}
	if w.psp.status == "" {
		return payment.Seen{}, true
	}
	seen := payment.Seen{Found: true, Reference: chargeRef, Live: w.psp.live(), Refunds: map[payment.RefundID]bool{}}
	e := w.psp.fact()
	if w.p.Status == payment.StatusAuthorized && e.Type == payment.EventDeclined {
		e.Type = payment.EventVoided // what was held has lapsed
	}
	w.hear(e)
	for _, r := range w.psp.refunds {
		seen.Refunds[r.id] = true
		w.hear(w.psp.refundFact(r, true))
	}
	return seen, true
}

// drive does what is owed now, as far as it goes, and says when to look again.
func (w *world) drive() {
	for range 8 {
		step := w.p.Next(w.now)
		if step.Kind == payment.StepLookUp {
			seen, answered := w.lookUp()
			if !answered {
				break
			}
			step = w.p.NextAfterLookUp(w.now, w.pol, seen)
		}
		if !w.do(step) {
			break
		}
	}
	if !w.p.DueAt.IsZero() && !w.p.DueAt.After(w.now) {
		w.p.DueAt, w.p.Tries = w.p.Postponed(w.pol, w.now)
	}
}

func (w *world) do(step payment.Step) bool {
	e := payment.Event{Type: step.Event, Cause: payment.CancelByExpiry}
	call := func() {}
	switch step.Kind {
	case payment.StepRest, payment.StepLookUp:
		return false
	case payment.StepPerson:
		w.persons++
		return false
	case payment.StepRecord:
	case payment.StepSend:
		e.Type, call = payment.EventSent, w.callCreate
	case payment.StepVoid:
		e.Type, e.PSPReference, call = payment.EventVoidSent, chargeRef, w.callVoid
	case payment.StepCapture:
		e.Type, e.Captured, call = payment.EventCaptureRequested, w.p.Capture.Amount, w.callCapture
	case payment.StepRefund:
		e.Type, e.Refund.ID, call = payment.EventRefundSent, step.Refund, func() { w.callRefund(step.Refund) }
	}
	if err := w.apply(e); err != nil {
		w.t.Fatalf("step %+v in %s: %v, want its intent to be accepted", step, w.p.Status, err)
	}
	call()
	return true
}

// advance lets time pass; what was on its way arrives.
func (w *world) advance(by time.Duration) {
	w.now = w.now.Add(by)
	var left []request
	for _, r := range w.wire {
		if r.arrives.After(w.now) {
			left = append(left, r)
		} else {
			r.run() // its answer reaches nobody
		}
	}
	w.wire = left
}

// deliver brings one webhook, or brings it again, or loses it.
func (w *world) deliver() {
	hooks := w.psp.hooks
	if len(hooks) == 0 {
		return
	}
	i := w.d(len(hooks))
	e := hooks[i]
	early := !w.hear(e)
	if !early && !w.d.chance(3) { // else it comes again
		w.psp.hooks = slices.Delete(hooks, i, i+1)
	}
}

// act is one thing that somebody does while the faults last.
func (w *world) act() {
	pick(w.d,
		func() { w.advance(pick(w.d, time.Second, arrival, time.Minute, 5*time.Minute, 31*time.Minute)) },
		w.drive, w.drive, w.deliver, w.deliver,
		func() { w.psp.progress(w.now) },
		func() {
			if w.p.Status.Open() {
				w.apply(cancel(payment.CancelByMerchant))
			}
		},
		func() {
			if w.p.CheckCapture(4000) == nil {
				w.apply(capture(4000))
				w.callCapture()
			}
		},
		func() {
			if w.p.CheckRefund(1500) == nil {
				id := payment.RefundID("re_" + string(rune('a'+len(w.p.Refunds))))
				w.apply(ask(id, 1500))
				w.callRefund(id)
			}
		},
		func() { // a repeat of the request takes over
			young := w.p.Create.State == payment.OperationSent || w.p.Create.State == payment.OperationNotRun
			if (w.p.Status == payment.StatusCreated || w.p.Status == payment.StatusProcessing && young) && w.p.Sendable(w.now, w.pol) {
				w.apply(intent(payment.EventSent))
				w.callCreate()
			}
		},
	)()
}

const (
	lapses     = 7 * 24 * time.Hour // when a PSP lets go of what it holds
	maxPersons = 20                 // alarms after which nothing else is to come: looks have become daily
)

// settle lets the worker finish once the faults have stopped. Webhooks of the
// charge may be lost for good, those of refunds and disputes come in the end.
func (w *world) settle() {
	w.faults = 0
	w.psp.hooks = slices.DeleteFunc(w.psp.hooks, func(e payment.Event) bool {
		return e.Refund.Amount == 0 && e.Dispute.PSPReference == "" && w.d.chance(2)
	})
	for range 300 {
		if w.now.Sub(start) > lapses && w.psp.status == payment.EventAuthorized {
			w.psp.lapse()
		}
		if !w.psp.late.IsZero() && !w.now.Before(w.psp.late) {
			w.psp.late = time.Time{}
			w.psp.capture(w.psp.amount.Minor)
		}
		if w.psp.status == payment.EventAuthorized && !w.psp.manual {
			w.psp.capture(w.psp.amount.Minor)
		}
		w.psp.progressRefunds()
		w.psp.hooks = slices.DeleteFunc(w.psp.hooks, w.hear)
		w.drive()
		next := w.p.DueAt
		for _, at := range append([]time.Time{w.psp.late}, arrivals(w.wire)...) {
			if !at.IsZero() && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
		quarantined := len(w.psp.hooks) == 0 || w.psp.amount != w.p.Amount // what is of other money waits for ever
		if next.IsZero() && quarantined || w.persons > maxPersons {
			return
		}
		w.advance(max(0, next.Sub(w.now)))
	}
	w.t.Fatalf("%s is not at rest after 300 looks, due at %s, now %s", w.p.Status, w.p.DueAt, w.now)
}

func arrivals(wire []request) []time.Time {
	var all []time.Time
	for _, r := range wire {
		all = append(all, r.arrives)
	}
	return all
}

// L-TERMINATES, L-NO-LOST-MONEY, L-REFUND-DONE, L-RECON-CONVERGES: whatever
// happened, once the faults stop the worker brings every payment to rest by
// itself, and then both sides agree about the money.
func TestEveryPaymentComesToRest(t *testing.T) {
	everyWay(t, 1000, func(t failer, d dice) {
		w := run(t, d, policy, yen)
		if !w.p.Status.Terminal() || w.persons > 0 {
			t.Fatalf("got %s, a person asked for %d times; want a final status without one", w.p.Status, w.persons)
		}
		agree(t, w)
	})
}

// The same at a PSP whose "not found" proves nothing: only a charge that may
// exist, is to be canceled and cannot be found is left to a person.
func TestEveryPaymentComesToRestWithoutProof(t *testing.T) {
	everyWay(t, 1000, func(t failer, d dice) {
		w := run(t, d, weakPolicy(), yen)
		if w.p.Status.Terminal() {
			agree(t, w)
		} else if w.persons == 0 || w.p.CancelCause == "" || w.psp.status != "" {
			t.Fatalf("got %s with cancel %q while the PSP has %q; want a final status", w.p.Status, w.p.CancelCause, w.psp.status)
		}
	})
}

// S10: a PSP that charges other money is never believed; what it has not taken
// comes to its end, what it has taken is left to a person, in doubt.
func TestAPaymentOfOtherMoneyEndsOrIsLeftToAPerson(t *testing.T) {
	everyWay(t, 1000, func(t failer, d dice) {
		w := run(t, d, policy, money.Amount{Minor: whole + 1, Currency: yen.Currency})
		if w.p.AmountCaptured != 0 || w.p.Status == payment.StatusCaptured || w.p.Status == payment.StatusAuthorized {
			t.Fatalf("got %s with %d captured, want other money not believed", w.p.Status, w.p.AmountCaptured)
		}
		taken := w.psp.captured > 0 && w.p.Status.Open()
		if taken && (!w.p.InDoubt() || w.persons == 0 || !w.p.HoldsReference) {
			t.Fatalf("got in doubt %v, %d persons; want an alarm and the reference held", w.p.InDoubt(), w.persons)
		}
		if !taken && !w.p.Status.Dead() {
			t.Fatalf("got %s while the PSP says %q, want its end", w.p.Status, w.psp.status)
		}
	})
}

func run(t failer, d dice, pol payment.Policy, amount money.Amount) *world {
	w := newWorld(t, d, pol, amount)
	for range d(20) {
		w.act()
	}
	w.persons = 0
	w.settle()
	return w
}

// agree checks that a payment at rest says of the money what the PSP says.
func agree(t failer, w *world) {
	t.Helper()
	p, psp := w.p, w.psp
	if step := p.Next(w.now.Add(1000 * time.Hour)); step != rest {
		t.Fatalf("%s at rest has a step %+v", p.Status, step)
	}
	if p.AmountCaptured != psp.captured || p.AmountRefunded() != psp.returned(false) || len(p.Refunds) < len(psp.refunds) {
		t.Fatalf("%s: captured %d, refunded %d; the PSP says %d and %d", p.Status, p.AmountCaptured, p.AmountRefunded(), psp.captured, psp.returned(false))
	}
	if psp.live() {
		t.Fatalf("%s at rest while the PSP says %q", p.Status, psp.status)
	}
	if p.Status == payment.StatusCaptured && (psp.captured == 0 || psp.returned(false) >= psp.captured) {
		t.Fatalf("captured, while the PSP has taken %d and returned %d", psp.captured, psp.returned(false))
	}
	if p.Status.Dead() && psp.captured > psp.returned(false) {
		late, _ := p.Refund(payment.LateRefundID(p.ID))
		if late.Status != payment.RefundFailed {
			t.Fatalf("%s, while the PSP keeps %d and the refund is %q", p.Status, psp.captured-psp.returned(false), late.Status)
		}
	}
	if p.Disputed() {
		t.Fatalf("still disputed, want every dispute closed")
	}
}
