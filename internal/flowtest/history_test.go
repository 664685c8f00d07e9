package flowtest_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/webhook"
)

// history is one random life of a few payments: what merchants, customers and the
// PSP do, with calls and writes that get lost or refused, and processes that die.
type history struct {
	*World
	dice     *rand.Rand
	first    int // which tokens its orders have
	payments []payment.ID
	told     []psptest.Event // events that were delivered once
	unheard  []psptest.Event // of those, the ones that were not acknowledged
	declined map[string]bool // by the PSP, at some time
	log      []string
}

func (h *history) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func pick[T any](h *history, of ...T) T { return of[h.dice.IntN(len(of))] }

// do runs what a process does; it may die on the way.
func (h *history) do(what string, process func() error) {
	result := "died"
	h.Survives(func() { result = fmt.Sprint(process()) })
	h.note("%s: %s", what, result)
}

var tokens = []string{
	psptest.TokenCaptured, psptest.TokenDeclined, psptest.TokenRequiresAction, psptest.TokenPending, psptest.TokenPendingSilent,
	psptest.TokenTimeoutCaptured, psptest.TokenTimeoutCapturedSilent, psptest.TokenTimeoutNothing, psptest.TokenErrorCaptured,
	psptest.TokenErrorOnce, psptest.TokenRateLimitedOnce, psptest.TokenWebhookTwice, psptest.TokenWebhookReversed,
	psptest.TokenLateCaptured, psptest.TokenRefundPendingFailed,
}

func (h *history) charge() {
	n := h.dice.IntN(4)
	// A key belongs to one order, so that its repeats are repeats.
	order := Order{Token: tokens[(h.first+n*4)%len(tokens)], Manual: (h.first+n)%3 == 1, Reference: fmt.Sprintf("order-%d", n%3)}
	h.do(fmt.Sprintf("charge %d %s manual %t", n, order.Token, order.Manual), func() error {
		r, err := h.Charge(fmt.Sprint("k", n), order)
		if err == nil && !slices.Contains(h.payments, r.Payment.ID) {
			h.payments = append(h.payments, r.Payment.ID)
		}
		return err
	})
}

func (h *history) merchant(id payment.ID) {
	key := fmt.Sprint("m", h.dice.IntN(3))
	switch h.dice.IntN(3) {
	case 0:
		amount := pick(h, int64(0), 2000)
		h.do(fmt.Sprintf("capture %s %s %d", id[len(id)-2:], key, amount), func() error { _, err := h.Capture(key, id, amount); return err })
	case 1:
		h.do(fmt.Sprintf("cancel %s %s", id[len(id)-2:], key), func() error { _, err := h.Cancel(key, id); return err })
	case 2:
		amount := pick(h, int64(0), 1000, 3000)
		h.do(fmt.Sprintf("refund %s %s %d", id[len(id)-2:], key, amount), func() error { _, err := h.Refund(key, id, amount); return err })
	}
}

func (h *history) provider(id payment.ID) {
	name := string(id)
	what := pick(h, "approve", "decline", "late", "lapse", "settle")
	switch { // what only an event tells is done where there are events
	case !h.silent(id):
		what = pick(h, what, "direct", "dispute")
	case h.declined[name]:
		what = "approve"
	}
	done := false
	switch what {
	case "approve":
		done = h.PSP.Approve(name)
	case "decline":
		done = h.PSP.Decline(name)
	case "late":
		done = h.PSP.CaptureLate(name)
	case "lapse":
		done = h.PSP.Lapse(name)
	case "direct":
		done = h.PSP.RefundDirect(name, 500)
	case "dispute":
		var reference string
		if reference, done = h.PSP.DisputeOpen(name); done {
			h.PSP.DisputeClose(reference, "won")
		}
	case "settle":
		done = h.settleRefunds(name, pick(h, psp.RefundSucceeded, psp.RefundFailed))
	}
	h.note("psp %s %s: %t", what, name[len(name)-2:], done)
}

func (h *history) silent(id payment.ID) bool {
	return strings.HasSuffix(h.Payment(id).PaymentMethod.Reveal(), "_silent")
}

func (h *history) settleRefunds(paymentID string, to psp.RefundStatus) bool {
	for _, c := range h.PSP.Charges() {
		for _, r := range c.Refunds {
			if c.PaymentID == paymentID && r.Status == psp.RefundPending {
				return h.PSP.SettleRefund(r.RefundID, to)
			}
		}
	}
	return false
}

func (h *history) deliver() {
	pending := h.PSP.Pending()
	switch {
	case len(h.told) > 0 && h.dice.IntN(4) == 0:
		h.post(pick(h, h.told...))
	case len(pending) > 0:
		e := h.PSP.Take(h.dice.IntN(len(pending)))
		if h.dice.IntN(5) == 0 && h.mayBeLost(e) {
			h.note("lost %s %s", e.ID, e.Type)
			return
		}
		h.told = append(h.told, e)
		h.post(e)
	}
}

// post delivers an event. One that is not acknowledged the PSP sends again, in the
// end; one that is not applied the sweep finds.
func (h *history) post(e psptest.Event) {
	h.unheard = append(h.unheard, e)
	h.do("deliver "+e.ID+" "+e.Type, func() error {
		if _, err := h.Ingest.Receive(h.Context(), PSP, h.PSP.Delivery(e, h.Clock.Now())); err != nil {
			return err
		}
		h.unheard = slices.DeleteFunc(h.unheard, func(x psptest.Event) bool { return x.ID == e.ID })
		return h.Applier.Apply(h.Context(), PSP, e.ID)
	})
}

// mayBeLost reports whether a look-up tells what the event does. What the PSP does
// to a payment that it has ended itself, or that is captured, only its events tell.
func (h *history) mayBeLost(e psptest.Event) bool {
	if r := e.Event.Refund; r != nil {
		return r.RefundID != ""
	}
	return e.Event.Dispute == nil && !h.declined[e.Event.Charge.PaymentID]
}

// fault is something that will go wrong soon.
func (h *history) fault() {
	operation := pick(h, psptest.Operations()...)
	any := func([]store.Write) bool { return true }
	what := h.dice.IntN(9)
	switch what {
	case 0:
		h.OnCall(operation, Lost)
	case 1:
		h.OnAnswer(operation, Lost)
	case 2:
		h.OnCall(operation, h.Die)
	case 3:
		h.OnAnswer(operation, h.Die)
	case 4:
		h.Store.Before(any, h.Die)
	case 5:
		h.Store.After(any, h.Die)
	case 6:
		h.Store.Before(any, Silent)
	case 7:
		h.Store.After(any, Silent)
	case 8:
		if operation != psptest.OperationLookup {
			h.Line.Hold(operation)
		}
	}
	h.note("fault %d of %s", what, operation)
}

func (h *history) step() {
	for _, c := range h.PSP.Charges() {
		h.declined[c.PaymentID] = h.declined[c.PaymentID] || c.Status == psp.StatusFailed
	}
	switch n := h.dice.IntN(20); {
	case n < 4 || len(h.payments) == 0:
		h.charge()
	case n < 8:
		h.merchant(pick(h, h.payments...))
	case n < 10:
		h.provider(pick(h, h.payments...))
	case n < 13:
		h.deliver()
	case n < 16:
		h.fault()
	case n < 18:
		d := time.Duration(h.dice.IntN(20*60)) * time.Second
		h.Clock.Advance(d)
		h.note("wait %s", d)
	case n < 19:
		h.do("arrive", func() error { h.Line.Arrive(); return nil })
	default:
		h.do("sweep", func() error { return fmt.Errorf("%v", h.Sweep()) })
	}
}

// settle lets everything end: nothing goes wrong any more, the PSP decides what is
// pending there, and two days pass.
func (h *history) settle() {
	h.Quiet()
	h.Line.Arrive()
	left := append(slices.Clone(h.unheard), h.PSP.Drain()...)
	for _, e := range left {
		h.post(e)
	}
	for range 2 {
		for _, id := range h.payments {
			for h.settleRefunds(string(id), psp.RefundSucceeded) {
			}
		}
		h.Pass(50 * time.Minute)
	}
	h.replay()
	for range 46 {
		h.Clock.Advance(time.Hour)
		h.Sweep()
	}
	h.Pass(5 * time.Minute)
}

// replay is the operator's: what was quarantined is driven on once more.
func (h *history) replay() {
	items, _, err := h.Table.Webhooks(h.Context(), webhook.StatusQuarantined, "", 100)
	if err != nil {
		h.Fatal(err)
	}
	for n, it := range items {
		it.WaitUntil, it.DueAt = h.Clock.Now().Add(time.Hour), h.Clock.Now()
		record := idempotency.Record{MerchantID: "operator", Hash: fmt.Sprint(n), ResourceID: it.ID(), CreatedAt: h.Clock.Now(), InProgressUntil: h.Clock.Now()}
		if err := h.Table.Reopen(h.Context(), it, idempotency.Claim{Record: record}); err != nil {
			h.Fatal(err)
		}
	}
	h.Sweep()
}

func (h *history) check() {
	h.Helper()
	for _, id := range h.payments {
		p := h.Payment(id)
		if !p.Status.Terminal() && p.Status != payment.StatusAuthorized {
			h.Errorf("%s is %s after all, want an end", id, p.Status)
		}
		if !p.DueAt.IsZero() && p.Status != payment.StatusAuthorized {
			h.Errorf("%s, %s, is due at %s, want it at rest", id, p.Status, p.DueAt)
		}
		net := h.PSP.Net(string(id))
		if want := p.AmountCaptured - p.AmountRefunded(); net != want && !p.InDoubt() {
			h.Errorf("%s, %s: the psp holds %d, want %d", id, p.Status, net, want)
		}
		for _, c := range h.PSP.Charges() {
			live := c.Status == psp.StatusPending || c.Status == psp.StatusRequiresAction || c.Status == psp.StatusAuthorized
			if c.PaymentID == string(id) && p.Status.Dead() && live {
				h.Errorf("%s is %s and its charge %s at the psp", id, p.Status, c.Status)
			}
		}
		for _, r := range p.Refunds {
			if r.Status == payment.RefundPending {
				h.Errorf("%s: refund %s is pending after all", id, r.ID)
			}
		}
	}
}

func (h *history) tell() {
	for _, line := range h.log {
		h.Log(line)
	}
	for _, id := range h.payments {
		h.Log(id, h.Types(id))
	}
}

// How many histories a test run lives through, and from which on: as many as a
// second is long enough for.
var (
	histories = flag.Int("histories", 150, "random histories to live through")
	first     = flag.Int("first", 0, "the first of them")
)

func TestEveryHistoryEndsWell(t *testing.T) {
	for seed := *first; seed < *first+*histories; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := &history{World: New(t), dice: rand.New(rand.NewPCG(uint64(seed), 7)), first: seed, declined: map[string]bool{}}
			for range 40 {
				h.step()
			}
			h.settle()
			h.check()
			h.Check()
			if t.Failed() {
				h.tell()
			}
		})
	}
}
