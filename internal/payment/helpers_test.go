package payment_test

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
)

// One payment of 5000 yen, and what may never be seen of it.
const (
	paymentID = payment.ID("pay_01KE0000000000000000000001")
	chargeRef = "ch_1"
	whole     = 5000

	canaryToken    = payment.Secret("tok_canary")
	canaryRedirect = payment.Secret("https://psp.example/canary_redirect")
	canaryClient   = payment.Secret("canary_client_secret")
)

var (
	start  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	expiry = start.Add(30 * time.Minute)
	yen    = money.Amount{Minor: whole, Currency: "JPY"}
	policy = payment.Policy{
		PSPTimeout: 10 * time.Second, ReconcileAfter: time.Minute, KeyLifetime: 24 * time.Hour, AuthoritativeLookup: true,
	}
)

// arrival is how long a request of policy may be on its way.
const arrival = 15 * time.Second

func terms(method payment.CaptureMethod) payment.Terms {
	return payment.Terms{
		ID: paymentID, MerchantID: "m_1", CheckoutID: "chk_1", Amount: yen, CaptureMethod: method,
		PaymentMethod: canaryToken, Reference: "order-42", ReturnURL: "https://shop.example/return",
		PSP: "simulator", Metadata: map[string]string{"k": "v"}, ExpiresAt: expiry,
	}
}

// created is an automatic payment of which nothing was sent.
func created() payment.Payment {
	p, _ := payment.New(terms(payment.CaptureAutomatic), start)
	return p
}

// processing is an automatic payment whose charge was sent.
func processing() payment.Payment {
	p, _ := payment.NewSent(terms(payment.CaptureAutomatic), start)
	return p
}

// manual is a manual payment whose charge was sent.
func manual() payment.Payment {
	p, _ := payment.NewSent(terms(payment.CaptureManual), start)
	return p
}

// at is e, recorded that long after the start.
func at(after time.Duration, e payment.Event) payment.Event {
	e.At = start.Add(after)
	return e
}

// fact is what the PSP says of the charge, one second after the start.
func fact(kind payment.EventType) payment.Event {
	e := payment.Event{Type: kind, At: start.Add(time.Second), PSPReference: chargeRef, Amount: yen}
	if kind == payment.EventActionRequired {
		e.RedirectURL, e.ClientSecret = canaryRedirect, canaryClient
	}
	if kind == payment.EventCaptured {
		e.Captured = whole
	}
	if kind == payment.EventDeclined {
		e.Failure = &payment.Failure{Code: payment.FailureDeclined, DeclineCode: "insufficient_funds", Retryable: true}
	}
	return e
}

func capturedOnly(minor int64) payment.Event {
	e := fact(payment.EventCaptured)
	e.Captured = minor
	return e
}

func intent(kind payment.EventType) payment.Event {
	return payment.Event{Type: kind, At: start.Add(2 * time.Second)}
}

func cancel(cause payment.CancelCause) payment.Event {
	e := intent(payment.EventCancelRequested)
	e.Cause = cause
	return e
}

func capture(minor int64) payment.Event {
	e := intent(payment.EventCaptureRequested)
	e.Captured = minor
	return e
}

// missed is a call of the sends-th sending of the first key that brought no state.
func missed(kind payment.EventType, operation payment.OperationName, sends int) payment.Event {
	return missedOf(kind, operation, payment.Operation{Attempt: 1, Sends: sends})
}

// missedOf is a call of o's last sending that brought no state.
func missedOf(kind payment.EventType, operation payment.OperationName, o payment.Operation) payment.Event {
	e := intent(kind)
	e.Operation, e.Attempt, e.Sends = operation, o.Attempt, o.Sends
	return e
}

// Refunds: ours are re_1, re_2, …; the PSP calls them rf_1, rf_2, …
const (
	ours1 = payment.RefundID("re_01KE0000000000000000000001")
	ours2 = payment.RefundID("re_01KE0000000000000000000002")
)

func ask(id payment.RefundID, minor int64) payment.Event {
	e := intent(payment.EventRefundRequested)
	e.Refund = payment.RefundEvent{ID: id, Amount: minor, Reason: "returned"}
	return e
}

// refund is what the PSP says of a refund: ours when id is not "".
func refund(kind payment.EventType, id payment.RefundID, reference string, minor int64) payment.Event {
	return payment.Event{
		Type: kind, At: start.Add(3 * time.Second), PSPReference: chargeRef,
		Refund: payment.RefundEvent{ID: id, PSPReference: reference, Amount: minor},
	}
}

// refundCall is a sending of a refund, or that it brought no answer.
func refundCall(kind payment.EventType, id payment.RefundID, sends int) payment.Event {
	e := intent(kind)
	e.Refund = payment.RefundEvent{ID: id, Sends: sends}
	return e
}

func dispute(kind payment.EventType, reference, result string) payment.Event {
	return payment.Event{
		Type: kind, At: start.Add(4 * time.Second), PSPReference: chargeRef,
		Dispute: payment.Dispute{PSPReference: reference, Amount: whole, Result: result},
	}
}

// after is p after events that must each be news.
func after(t testing.TB, p payment.Payment, events ...payment.Event) payment.Payment {
	t.Helper()
	for _, e := range events {
		next, _, changed, err := p.Apply(e)
		if err != nil || !changed {
			t.Fatalf("%s in %s: changed %v, %v; want a change", e.Type, p.Status, changed, err)
		}
		p = next
	}
	return p
}

// row is the journal row of e on p, which must be news.
func row(t testing.TB, p payment.Payment, e payment.Event) payment.Row {
	t.Helper()
	_, r, changed, err := p.Apply(e)
	if err != nil || !changed {
		t.Fatalf("%s in %s: changed %v, %v; want a change", e.Type, p.Status, changed, err)
	}
	return r
}

// oldNews fails unless e changes nothing of p, without an error.
func oldNews(t testing.TB, p payment.Payment, e payment.Event) {
	t.Helper()
	next, r, changed, err := p.Apply(e)
	if err != nil || changed || !reflect.DeepEqual(next, p) || !reflect.DeepEqual(r, payment.Row{}) {
		t.Errorf("%s in %s: changed %v, %v; want old news", e.Type, p.Status, changed, err)
	}
}

// refused fails unless e is refused as illegal and changes nothing of p.
func refused(t testing.TB, p payment.Payment, e payment.Event) {
	t.Helper()
	next, r, changed, err := p.Apply(e)
	te, ok := errors.AsType[*payment.TransitionError](err)
	if !ok || te.Early || te.Event != e.Type || te.From != p.Status {
		t.Errorf("%s in %s: got %v, want an illegal transition from there", e.Type, p.Status, err)
	}
	if changed || !reflect.DeepEqual(next, p) || !reflect.DeepEqual(r, payment.Row{}) {
		t.Errorf("%s in %s was refused and changed something", e.Type, p.Status)
	}
}

// mismatched fails unless e is refused because it disagrees about field, and
// changes nothing of p.
func mismatched(t testing.TB, p payment.Payment, e payment.Event, field string) {
	t.Helper()
	next, r, changed, err := p.Apply(e)
	me, ok := errors.AsType[*payment.MismatchError](err)
	if !ok || me.Field != field || me.Event != e.Type {
		t.Errorf("%s in %s: got %v, want a mismatch of the %s", e.Type, p.Status, err, field)
	}
	if changed || !reflect.DeepEqual(next, p) || !reflect.DeepEqual(r, payment.Row{}) {
		t.Errorf("%s in %s was refused and changed something", e.Type, p.Status)
	}
}

// inStatus is a payment in each status, reached by events.
func inStatus(t testing.TB) map[payment.Status]payment.Payment {
	t.Helper()
	captured := after(t, processing(), fact(payment.EventCaptured))
	all := map[payment.Status]payment.Payment{
		payment.StatusCreated:        created(),
		payment.StatusProcessing:     processing(),
		payment.StatusRequiresAction: after(t, processing(), fact(payment.EventActionRequired)),
		payment.StatusAuthorized:     after(t, manual(), fact(payment.EventAuthorized)),
		payment.StatusCaptured:       captured,
		payment.StatusFailed:         after(t, processing(), fact(payment.EventDeclined)),
		payment.StatusCanceled:       canceledBySilence(t),
		payment.StatusRefunded: after(t, captured, ask(ours1, whole),
			refund(payment.EventRefundSucceeded, ours1, "rf_1", whole)),
	}
	for _, s := range payment.Statuses() {
		if all[s].Status != s {
			t.Fatalf("got a payment in %q, want one in %s", all[s].Status, s)
		}
	}
	return all
}

// canceledBySilence is a payment that ended because the PSP knew of no charge.
func canceledBySilence(t testing.TB) payment.Payment {
	t.Helper()
	return after(t, processing(), cancel(payment.CancelByExpiry), intent(payment.EventAbsent))
}

// deepCopy shares nothing with p, so that it shows whether somebody touched p.
func deepCopy(p payment.Payment) payment.Payment {
	p.Metadata = maps.Clone(p.Metadata)
	p.Refunds = slices.Clone(p.Refunds)
	p.Disputes = slices.Clone(p.Disputes)
	if p.Failure != nil {
		f := *p.Failure
		p.Failure = &f
	}
	return p
}
