package payment_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kessai/kessai/internal/payment"
)

// dice picks one of n. A property test and the fuzzer throw different ones.
type dice func(n int) int

// chance is true once in n throws.
func (d dice) chance(n int) bool { return d(n) == 0 }

// pick is one of the choices.
func pick[T any](d dice, choices ...T) T { return choices[d(len(choices))] }

// Whatever happens to a payment, in any order, its invariants hold at every step.
func TestInvariantsHoldOnEveryWay(t *testing.T) {
	everyWay(t, 3000, func(t failer, d dice) { walk(t, d, 1+d(60), nil) })
}

// everyWay throws dice for check: rapid's, which find the shortest way to a
// failure, and even ones, which come further. The latter are the same each time.
func everyWay(t *testing.T, seeds uint64, check func(failer, dice)) {
	t.Run("short", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			check(rt, func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "throw") })
		})
	})
	t.Run("far", func(t *testing.T) {
		for seed := range seeds {
			check(seeded{t, seed}, rand.New(rand.NewPCG(seed, 0)).IntN)
		}
	})
}

// seeded names the way on which a test failed.
type seeded struct {
	*testing.T
	seed uint64
}

func (s seeded) Fatalf(format string, args ...any) {
	s.Helper()
	s.T.Fatalf("seed %d: "+format, append([]any{s.seed}, args...)...)
}

// The same, from bytes that the fuzzer finds worth keeping.
func FuzzApply(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		d := dice(func(n int) int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b) % n
		})
		walk(t, d, 200, func() bool { return len(data) == 0 })
	})
}

// failer is what a property test and a test have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// walk applies up to steps events to one payment and checks each.
func walk(t failer, d dice, steps int, ended func() bool) payment.Payment {
	t.Helper()
	create := pick(d, payment.NewSent, payment.New)
	p, r := create(terms(pick(d, payment.CaptureAutomatic, payment.CaptureManual)), start)
	if r.Version != 1 || p.Version != 1 {
		t.Fatalf("got version %d, row %d; want 1", p.Version, r.Version)
	}
	now := start
	for range steps {
		if ended != nil && ended() {
			break
		}
		now = now.Add(pick(d, 0, time.Second, 20*time.Second, 2*time.Minute, 40*time.Minute, 13*time.Hour))
		p = applyChecked(t, p, randomEvent(d, p, now))
		p.DueAt = p.Look(policy)
		checkRest(t, p)
		checkSteps(t, d, p, now)
	}
	return p
}

// randomEvent is mostly an event that could happen to p, mostly a true one.
func randomEvent(d dice, p payment.Payment, now time.Time) payment.Event {
	kind := pick(d, payment.EventTypes()...)
	for range 3 { // as a rule not one that is refused anyway
		if _, verdict := payment.Next(p.Status, kind); verdict != payment.Illegal {
			break
		}
		kind = pick(d, payment.EventTypes()...)
	}
	e := fact(kind)
	e.At, e.Notification = now, pick(d, "", "evt_1")
	e.RedirectURL, e.ClientSecret = canaryRedirect, canaryClient
	e.Captured = whole
	if p.CaptureMethod == payment.CaptureManual {
		e.Captured = pick(d, int64(whole), 4000, 1)
	}
	if p.AmountCaptured > 0 {
		e.Captured = p.AmountCaptured
	}
	if d.chance(8) {
		pick(d, func() { e.PSPReference = "ch_other" }, func() { e.PSPReference = "" }, func() { e.Amount.Minor-- },
			func() { e.Amount.Currency = "EUR" }, func() { e.Captured = pick(d, int64(0), -1, whole+1, 3999) })()
	}
	e.Cause = pick(d, payment.CancelByMerchant, payment.CancelByExpiry, payment.CancelByCheckout, "")
	e.Operation = pick(d, payment.OperationCreate, payment.OperationCapture, payment.OperationVoid)
	e.Sends = operations(p)[e.Operation].Sends - d(2)
	e.RetryAt = now.Add(pick(d, 0, time.Second, time.Hour))
	e.Refund = randomRefund(d, p)
	e.Dispute = payment.Dispute{PSPReference: pick(d, "dp_1", "dp_2"), Amount: whole, Result: pick(d, "", "won", "lost")}
	return e
}

// randomRefund speaks of a refund of p, or of one that is new, or of nonsense.
func randomRefund(d dice, p payment.Payment) payment.RefundEvent {
	e := payment.RefundEvent{
		ID: payment.RefundID(fmt.Sprintf("re_%d", len(p.Refunds))), Amount: pick(d, int64(1), 1000, 2500, whole, 0, -1, whole+1),
		NotRun: d.chance(2), RetryAt: start.Add(time.Hour),
	}
	if len(p.Refunds) > 0 && !d.chance(3) {
		r := p.Refunds[d(len(p.Refunds))]
		e.ID, e.Amount, e.Sends = r.ID, r.Amount, r.Operation.Sends-d(2)
		e.PSPReference = pick(d, "rf_"+string(r.ID), r.PSPReference)
	}
	if d.chance(3) {
		e.ID, e.PSPReference = "", pick(d, "rf_a", "rf_b", "rf_re_0", "rf_re_1", "")
		for _, r := range p.Refunds {
			if r.PSPReference == e.PSPReference {
				e.Amount = r.Amount
			}
		}
	}
	if d.chance(10) {
		e.Amount = pick(d, e.Amount+1, 0, 1<<62)
	}
	return e
}

func operations(p payment.Payment) map[payment.OperationName]payment.Operation {
	return map[payment.OperationName]payment.Operation{
		payment.OperationCreate: p.Create, payment.OperationCapture: p.Capture, payment.OperationVoid: p.Void,
	}
}

// applyChecked applies e to p, checks all that must hold of it, and returns what follows.
func applyChecked(t failer, p payment.Payment, e payment.Event) payment.Payment {
	t.Helper()
	before := deepCopy(p)
	next, r, changed, err := p.Apply(e)
	name := fmt.Sprintf("%s in %s", e.Type, p.Status)
	if !reflect.DeepEqual(p, before) {
		t.Fatalf("%s touched its receiver", name)
	}
	next2, r2, changed2, err2 := p.Apply(e)
	if !reflect.DeepEqual(next, next2) || !reflect.DeepEqual(r, r2) || changed != changed2 || !reflect.DeepEqual(err, err2) {
		t.Fatalf("%s gives two results", name)
	}
	if !changed {
		if !reflect.DeepEqual(next, p) || !reflect.DeepEqual(r, payment.Row{}) {
			t.Fatalf("%s changed nothing, and yet something: %v", name, err)
		}
		if err != nil && !ofTheDomain(err) {
			t.Fatalf("%s: got %v, want one of the domain's refusals", name, err)
		}
		return p
	}
	if err != nil {
		t.Fatalf("%s changed the payment and returned %v", name, err)
	}
	for _, broken := range []string{
		brokenVersion(p, e, next, r), brokenIdentity(p, next), brokenStatus(p, e, next), brokenMoney(p, e, next),
		brokenKeys(p, e, next), brokenRefunds(p, e, next), brokenSecrecy(next, r), brokenRepeat(e, next),
	} {
		if broken != "" {
			t.Fatalf("%s: %s", name, broken)
		}
	}
	return next
}

func ofTheDomain(err error) bool {
	if _, ok := errors.AsType[*payment.TransitionError](err); ok {
		return true
	}
	_, ok := errors.AsType[*payment.MismatchError](err)
	return ok || errors.Is(err, payment.ErrAmountTooLarge) || errors.Is(err, payment.ErrDisputed)
}

// S-VERSION-MONOTONE.
func brokenVersion(p payment.Payment, e payment.Event, next payment.Payment, r payment.Row) string {
	switch {
	case next.Version != p.Version+1, r.Version != next.Version:
		return fmt.Sprintf("version %d became %d, row %d", p.Version, next.Version, r.Version)
	case !next.UpdatedAt.Equal(e.At), !r.At.Equal(e.At), next.Tries != 0:
		return "the change is not dated, or its looks are not counted anew"
	case r.Type == "", r.Data.Status != next.Status, r.Data.AmountCaptured != next.AmountCaptured,
		r.Data.AmountRefunded != next.AmountRefunded(), r.Data.InDoubt != next.InDoubt(), r.Data.Disputed != next.Disputed():
		return fmt.Sprintf("row %+v does not tell of the payment", r)
	}
	return ""
}

// S-AMOUNT-FIXED, and everything else that is given once.
func brokenIdentity(p, next payment.Payment) string {
	switch {
	case next.Amount != yen, next.CaptureMethod != p.CaptureMethod, next.ID != p.ID, next.MerchantID != p.MerchantID,
		next.CheckoutID != p.CheckoutID, next.PaymentMethod != p.PaymentMethod, next.Reference != p.Reference, next.PSP != p.PSP,
		next.ReturnURL != p.ReturnURL, !next.ExpiresAt.Equal(p.ExpiresAt), !next.CreatedAt.Equal(p.CreatedAt), !reflect.DeepEqual(next.Metadata, p.Metadata):
		return "what is fixed has changed"
	case p.PSPReference != "" && next.PSPReference != p.PSPReference:
		return "the PSP's reference has changed"
	case next.LeaseUntil != p.LeaseUntil, next.LeaseFence != p.LeaseFence, !next.DueAt.Equal(p.DueAt):
		return "the lease or the due date has changed, which are not Apply's"
	}
	return ""
}

// S-TERMINAL-STABLE, S-FAILED-MEANS-DECLINED, S-CANCEL-MEANS-NO-CHARGE.
func brokenStatus(p payment.Payment, e payment.Event, next payment.Payment) string {
	moved := next.Status != p.Status
	switch {
	case p.Status.Terminal() && moved && next.Status != payment.StatusRefunded:
		return "a final status became " + string(next.Status)
	case moved && next.Status == payment.StatusFailed && e.Type != payment.EventDeclined:
		return "failed without a decline"
	case moved && next.Status == payment.StatusCaptured && e.Type != payment.EventCaptured:
		return "captured without the PSP's word"
	case moved && next.Status == payment.StatusRefunded && (e.Type != payment.EventRefundSucceeded || next.AmountRefunded() < next.AmountCaptured):
		return "refunded before all went back"
	case moved && next.Status == payment.StatusCanceled && p.Status != payment.StatusCreated &&
		e.Type != payment.EventVoided && (e.Type != payment.EventAbsent || p.CancelCause == ""):
		return "canceled while a charge may live"
	case e.Type == payment.EventSent && (p.CancelCause != "" || !e.At.Before(p.ExpiresAt)):
		return "a charge left after the cancel or the deadline"
	case e.Type == payment.EventVoidSent && p.Status.Open() && p.CancelCause == "":
		return "voided what may still be sent"
	case e.Type == payment.EventAbsent && p.Create.State == payment.OperationAnswered:
		return "absent, though the PSP had told of it"
	case p.CancelCause != "" && next.CancelCause != p.CancelCause:
		return "the cause of the cancel has changed"
	case p.Buried && !next.Buried, !p.HoldsReference && next.HoldsReference:
		return "what had ended lives again"
	case next.HoldsReference == (next.Status.Dead() || next.Status == payment.StatusRefunded):
		return "the reference is held by the dead, or free beside the living"
	}
	return ""
}

// S-CHARGE-ONCE.
func brokenMoney(p payment.Payment, e payment.Event, next payment.Payment) string {
	switch {
	case next.AmountCaptured != p.AmountCaptured && (p.AmountCaptured != 0 || e.Type != payment.EventCaptured || e.Captured != next.AmountCaptured):
		return "the captured amount is not what the PSP said once"
	case next.AmountCaptured < 0, next.AmountCaptured > whole, next.Refundable() < 0, next.Refundable() > next.AmountCaptured:
		return "amounts are out of bounds"
	case (next.Status == payment.StatusCaptured || next.Status == payment.StatusRefunded) && next.AmountCaptured == 0:
		return "captured nothing"
	case next.Status.Open() && next.AmountCaptured != 0:
		return "captured, and still open"
	}
	if next.Status.Dead() && next.AmountCaptured > 0 {
		if _, ok := next.Refund(payment.LateRefundID(next.ID)); !ok {
			return "late money has no refund"
		}
	}
	return ""
}

// S-KEY-STABLE.
func brokenKeys(p payment.Payment, e payment.Event, next payment.Payment) string {
	sending := map[payment.OperationName]payment.EventType{
		payment.OperationCreate: payment.EventSent, payment.OperationCapture: payment.EventCaptureRequested, payment.OperationVoid: payment.EventVoidSent,
	}
	was := operations(p)
	for name, o := range operations(next) {
		if broken := brokenOperation(was[name], o, e.Type == sending[name]); broken != "" {
			return string(name) + ": " + broken
		}
	}
	for i, r := range p.Refunds {
		sends := e.Type == payment.EventRefundSent && e.Refund.ID == r.ID
		if broken := brokenOperation(r.Operation, next.Refunds[i].Operation, sends); broken != "" {
			return string(r.ID) + ": " + broken
		}
	}
	return ""
}

func brokenOperation(was, o payment.Operation, sent bool) string {
	final := was.State == payment.OperationNone || was.State == payment.OperationAnswered || was.State == payment.OperationRefused
	switch {
	case o.Key != was.Key && (!sent || !final || o.Attempt != was.Attempt+1 || o.Sends != 1):
		return fmt.Sprintf("key %q became %q from state %q", was.Key, o.Key, was.State)
	case o.Key == was.Key && !was.FirstSentAt.IsZero() && !o.FirstSentAt.Equal(was.FirstSentAt):
		return "its first sending was rewritten"
	case sent && o.State != payment.OperationSent, sent && o.Key == was.Key && o.Sends != was.Sends+1:
		return "a sending is not noted"
	case !sent && (o.Sends != was.Sends || !o.LastSentAt.Equal(was.LastSentAt) || o.State == payment.OperationSent && was.State != payment.OperationSent):
		return "a sending is noted that was none"
	case o.Amount != was.Amount && o.Key == was.Key:
		return "the amount changed under the same key"
	}
	return ""
}

// S-REFUND-BOUND, and ranks that only rise.
func brokenRefunds(p payment.Payment, e payment.Event, next payment.Payment) string {
	rank := map[payment.RefundStatus]int{payment.RefundPending: 1, payment.RefundSucceeded: 2, payment.RefundFailed: 3}
	if len(next.Refunds) < len(p.Refunds) || len(next.Refunds) > len(p.Refunds)+1 {
		return "refunds were lost, or came in droves"
	}
	ids, references := map[payment.RefundID]bool{}, map[string]bool{}
	for i, r := range next.Refunds {
		if ids[r.ID] || r.ID == "" || (r.PSPReference != "" && references[r.PSPReference]) || r.Amount <= 0 || rank[r.Status] == 0 {
			return fmt.Sprintf("refund %+v is double or none", r)
		}
		ids[r.ID], references[r.PSPReference] = true, true
		if i >= len(p.Refunds) {
			continue
		}
		was := p.Refunds[i]
		if r.ID != was.ID || r.Amount != was.Amount || r.Outside != was.Outside || r.Reason != was.Reason || !r.CreatedAt.Equal(was.CreatedAt) ||
			rank[r.Status] < rank[was.Status] || (was.PSPReference != "" && r.PSPReference != was.PSPReference) {
			return fmt.Sprintf("refund %+v became %+v", was, r)
		}
	}
	if e.Type == payment.EventRefundRequested && (promised(next) > next.AmountCaptured || p.Disputed()) {
		return "a refund was asked for beyond what is left, or while disputed"
	}
	for i, was := range p.Disputes {
		if is := next.Disputes[i]; is.PSPReference != was.PSPReference || (was.Status == payment.DisputeClosed && is != was) {
			return "a dispute was opened again"
		}
	}
	return ""
}

// S-SECRET.
func brokenSecrecy(next payment.Payment, r payment.Row) string {
	if next.Status != payment.StatusRequiresAction && (next.RedirectURL != "" || next.ClientSecret != "") {
		return "secrets outlive requires_action"
	}
	v := next.View()
	if (v.NextAction != nil || v.ClientSecret != nil) != (next.Status == payment.StatusRequiresAction) {
		return "the view's secrets are not those of its status"
	}
	for _, s := range []*string{r.Data.Reference, r.Data.PSPReference} {
		if s != nil && leaks(*s) {
			return "a secret in a row"
		}
	}
	if leaks(r.Data.FailureCode+r.Data.DeclineCode+r.Data.Webhook) || strings.Contains(fmt.Sprintf("%+v", r), canary) {
		return "a secret in a row"
	}
	return ""
}

// What is no sending is old news at once when it is told again.
func brokenRepeat(e payment.Event, next payment.Payment) string {
	if slices.Contains([]payment.EventType{
		payment.EventSent, payment.EventCaptureRequested, payment.EventVoidSent, payment.EventRefundSent, payment.EventCancelRequested,
	}, e.Type) {
		return "" // each is one more sending, or one more request to be remembered
	}
	if _, _, again, err := next.Apply(e); again || err != nil {
		return fmt.Sprintf("told again: changed %v, %v", again, err)
	}
	return ""
}
