package payment_test

import (
	"fmt"
	"time"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
)

// model is a PSP that keeps its word: a key does one thing once, and a look-up
// tells the truth. It decides by dice what becomes of a charge.
type model struct {
	t      failer
	d      dice
	manual bool
	amount money.Amount // other than the payment's in a PSP that charges wrongly

	status   payment.EventType // of the charge, "" while there is none
	captured int64
	voided   bool
	late     time.Time // when it captures in spite of a void
	refunds  []modelRefund
	disputes int

	keys  map[string]bool // that it has seen
	hooks []payment.Event // webhooks it has to deliver
}

type modelRefund struct {
	id        payment.RefundID // "" when made at the PSP directly
	reference string
	amount    int64
	status    payment.EventType
}

func (m *model) set(status payment.EventType) {
	m.status = status
	m.hooks = append(m.hooks, m.fact())
}

// fact is what it says of the charge.
func (m *model) fact() payment.Event {
	e := fact(m.status)
	e.Amount, e.Captured = m.amount, m.captured
	return e
}

func (m *model) live() bool {
	return m.status == payment.EventPending || m.status == payment.EventActionRequired || m.status == payment.EventAuthorized
}

func (m *model) capture(minor int64) {
	m.captured = minor
	m.set(payment.EventCaptured)
}

// authorize is what an approved charge comes to.
func (m *model) authorize() {
	if m.manual {
		m.set(payment.EventAuthorized)
	} else {
		m.capture(m.amount.Minor)
	}
}

func (m *model) create(key string) {
	if m.status != "" {
		if !m.keys[key] {
			m.t.Fatalf("a second charge under the key %q", key)
		}
		return
	}
	m.keys[key] = true
	pick(m.d, m.authorize, func() { m.set(payment.EventPending) }, func() { m.set(payment.EventActionRequired) },
		func() { m.set(payment.EventDeclined) }, func() { m.set(payment.EventAuthorized) })()
}

// lapse lets go of what is held, which PSPs call by one name or the other.
func (m *model) lapse() { m.set(pick(m.d, payment.EventVoided, payment.EventDeclined)) }

// take captures held funds, or refuses.
func (m *model) take(key string, minor int64, fussy bool) bool {
	if m.keys[key] && m.status == payment.EventCaptured {
		return true
	}
	if m.status != payment.EventAuthorized || fussy {
		return false
	}
	m.keys[key] = true
	m.capture(minor)
	return true
}

// cancel voids what holds nothing yet, or refuses.
func (m *model) cancel(now time.Time, fussy bool) bool {
	switch {
	case m.status == payment.EventVoided:
		return true
	case !m.live(), fussy:
		return false
	}
	m.voided = true
	m.set(payment.EventVoided)
	if m.d.chance(6) {
		m.late = now.Add(3 * time.Second)
	}
	return true
}

func (m *model) refund(id payment.RefundID, minor int64) payment.Event {
	for i := range m.refunds {
		if id != "" && m.refunds[i].id == id {
			return m.refundFact(m.refunds[i], true)
		}
	}
	if left := m.captured - m.returned(true); minor > left || m.keys[string(id)] {
		if left+m.outsideSum() >= minor && !m.keys[string(id)] {
			m.keys[string(id)] = true // refused for good: somebody was faster at the PSP itself
		}
		if !m.keys[string(id)] {
			m.t.Fatalf("a refund of %d beyond what is left of %d", minor, m.captured)
		}
		return refund(payment.EventRefundFailed, id, "", minor)
	}
	r := modelRefund{id: id, reference: fmt.Sprintf("rf_%d", len(m.refunds)), amount: minor}
	r.status = pick(m.d, payment.EventRefundPending, payment.EventRefundSucceeded, payment.EventRefundFailed)
	m.refunds = append(m.refunds, r)
	m.hooks = append(m.hooks, m.refundFact(r, m.d.chance(2)))
	return m.refundFact(r, true)
}

// outsideSum is what others took back at the PSP directly, or are about to.
func (m *model) outsideSum() int64 {
	var sum int64
	for _, r := range m.refunds {
		if r.id == "" && r.status != payment.EventRefundFailed {
			sum += r.amount
		}
	}
	return sum
}

// refundFact is what it says of a refund, with or without our id.
func (m *model) refundFact(r modelRefund, named bool) payment.Event {
	id := r.id
	if !named {
		id = ""
	}
	return refund(r.status, id, r.reference, r.amount)
}

// returned is what went back, with what is about to if pending.
func (m *model) returned(pending bool) int64 {
	var sum int64
	for _, r := range m.refunds {
		if r.status == payment.EventRefundSucceeded || pending && r.status == payment.EventRefundPending {
			sum += r.amount
		}
	}
	return sum
}

// progress is something that happens there without us.
func (m *model) progress(now time.Time) {
	if !m.late.IsZero() && !now.Before(m.late) {
		m.late = time.Time{}
		m.capture(m.amount.Minor)
	}
	held := m.status == payment.EventAuthorized
	switch {
	case held && !m.manual:
		m.capture(m.amount.Minor)
	case held && m.d.chance(4):
		m.lapse()
	case m.live() && !held:
		pick(m.d, m.authorize, func() { m.set(payment.EventDeclined) }, func() { m.set(payment.EventActionRequired) }, func() {})()
	case m.status == payment.EventCaptured:
		pick(m.d, m.outside, m.dispute, func() {}, func() {})()
	}
	m.progressRefunds()
}

func (m *model) progressRefunds() {
	for i := range m.refunds {
		r := &m.refunds[i]
		was := r.status
		switch {
		case r.status == payment.EventRefundPending:
			r.status = pick(m.d, payment.EventRefundSucceeded, payment.EventRefundFailed)
		case r.status == payment.EventRefundSucceeded && m.d.chance(10):
			r.status = payment.EventRefundFailed
		}
		if r.status != was {
			m.hooks = append(m.hooks, m.refundFact(*r, m.d.chance(2)))
		}
	}
}

// outside is a refund that somebody makes at the PSP directly.
func (m *model) outside() {
	if left := m.captured - m.returned(true); left > 0 && m.d.chance(2) {
		m.refund("", min(left, 700))
	}
}

func (m *model) dispute() {
	m.disputes++
	reference := fmt.Sprintf("dp_%d", m.disputes)
	m.hooks = append(m.hooks, dispute(payment.EventDisputeOpened, reference, ""), dispute(payment.EventDisputeClosed, reference, "won"))
}
