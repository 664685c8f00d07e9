package e2e

import (
	"net/http"
	"testing"
)

var lateMoney = []claim{
	{"money that comes after a cancel goes back once", lateAfterCancel},
	{"money that comes after expiry goes back once", lateAfterExpiry},
	{"the refund of late money frees no reference of another payment", lateKeepsReference},
	{"a late success told three times is one refund", lateTold},
	{"a success of a declined payment is late money, once", lateAfterDecline},
}

// wentBack checks that late money of a payment was taken and given back once.
func (s *stage) wentBack(t *testing.T, id string) {
	t.Helper()
	p := s.ends(t, id, "refunded")
	if len(p.Refunds) != 1 || p.Refunds[0].Reason == nil || *p.Refunds[0].Reason != "late_capture" ||
		p.Refunds[0].Status != "succeeded" || p.AmountRefunded != p.Amount || p.AmountCaptured != p.Amount {
		t.Errorf("got %+v, want one refund of all of it with reason late_capture", p)
	}
	if c := s.charge(t, id); c.Refunded != c.Captured || len(c.Refunds) != 1 {
		t.Errorf("got charge %+v, want one refund of all of it", c)
	}
	rows := s.journal(t, id)
	if n, captured := ofType(rows, "payment.late_captured"), ofType(rows, "payment.captured"); n != 1 || captured != 0 {
		t.Errorf("got %d payment.late_captured and %d payment.captured, want one and none", n, captured)
	}
}

func lateAfterCancel(t *testing.T, s *stage) {
	p := s.pay(t, object{"payment_method": "tok_late_captured"}, "processing")
	s.cancel(t, p)
	s.wentBack(t, p.ID)
}

func lateAfterExpiry(t *testing.T, s *stage) {
	s.shortExpiry(t)
	p := s.pay(t, object{"payment_method": "tok_late_captured"}, "processing")
	s.becomes(t, p.ID, "canceled", func(p payment) bool { return p.Status == "canceled" || p.Status == "refunded" })
	s.wentBack(t, p.ID)
}

func lateKeepsReference(t *testing.T, s *stage) {
	dead := s.pay(t, object{"payment_method": "tok_late_captured"}, "processing")
	s.cancel(t, dead)
	live := s.paid(t, object{"reference": *dead.Reference})
	s.wentBack(t, dead.ID)
	got := s.alpha.post(t, "/v1/payments", s.basket(object{"reference": *dead.Reference})).
		problem(t, http.StatusConflict, "reference_in_use")
	if got.PaymentID != live.ID {
		t.Errorf("got payment_id %s, want %s", got.PaymentID, live.ID)
	}
}

func lateTold(t *testing.T, s *stage) {
	p := s.pay(t, object{"payment_method": "tok_late_captured"}, "processing")
	s.cancel(t, p)
	c := s.charge(t, p.ID)
	s.eventually(t, "the PSP captures all the same", func() (bool, any) {
		c = s.charge(t, p.ID)
		return c.Status == "captured", c
	})
	for range 3 {
		s.tell(t, s.event("charge.captured", c))
	}
	s.wentBack(t, p.ID)
}

func lateAfterDecline(t *testing.T, s *stage) {
	p := s.pay(t, object{"payment_method": "tok_declined"}, "failed")
	c := s.charge(t, p.ID)
	c.Status, c.Captured, c.DeclineCode = "captured", c.Amount, nil
	for range 3 {
		e := s.event("charge.captured", c)
		s.tell(t, e)
		s.settles(t, e.id, "applied")
	}
	rows := s.journal(t, p.ID)
	if n, captured := ofType(rows, "payment.late_captured"), ofType(rows, "payment.captured"); n != 1 || captured != 0 {
		t.Errorf("got %d payment.late_captured and %d payment.captured, want one and none", n, captured)
	}
	got := s.read(t, p.ID)
	if len(got.Refunds) != 1 || *got.Refunds[0].Reason != "late_capture" || got.Status == "captured" {
		t.Errorf("got %+v, want one refund with reason late_capture", got)
	}
	s.paid(t, object{"reference": *p.Reference}) // the reference stays free
}
