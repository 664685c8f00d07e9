package e2e

import (
	"net/http"
	"strings"
	"testing"
)

var journals = []claim{
	{"the last row has the payment's version", lastRow},
	{"rows name what happened", rowNames},
	{"old news adds no row", oldNews},
	{"sources tell who brought it", rowSources},
}

func lastRow(t *testing.T, s *stage) {
	captured := s.held(t, nil)
	s.alpha.post(t, captureOf(captured), object{}).want(t, http.StatusOK)
	s.alpha.post(t, refundsOf(captured), object{"amount": 1}).want(t, http.StatusCreated)
	canceled := s.held(t, nil)
	s.cancel(t, canceled)
	for _, p := range []payment{captured, canceled, s.pay(t, object{"payment_method": "tok_declined"}, "failed"), s.waiting(t, nil)} {
		s.eventually(t, "journal and payment agree", func() (bool, any) {
			before := s.read(t, p.ID).Version
			rows := s.journal(t, p.ID)
			after := s.read(t, p.ID).Version // a webhook may come in between
			if before == after && int64(len(rows)) != after {
				t.Fatalf("got %d rows of %s, want %d", len(rows), p.ID, after)
			}
			return before == after, after
		})
	}
}

func rowNames(t *testing.T, s *stage) {
	p := s.held(t, nil)
	s.alpha.post(t, captureOf(p), object{}).want(t, http.StatusOK)
	s.alpha.post(t, refundsOf(p), object{}).want(t, http.StatusCreated)
	s.ends(t, p.ID, "refunded")
	rows := s.journal(t, p.ID)
	for _, r := range rows {
		if !strings.HasPrefix(r.Type, "payment.") && !strings.HasPrefix(r.Type, "refund.") {
			t.Errorf("got type %q, want payment.<word> or refund.<word>", r.Type)
		}
	}
	for _, kind := range []string{"payment.authorized", "payment.captured", "refund.succeeded"} {
		if n := ofType(rows, kind); n != 1 {
			t.Errorf("got %d rows of %s, want one", n, kind)
		}
	}
}

func oldNews(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	c := s.charge(t, p.ID)
	var told []event
	for _, kind := range []string{"charge.captured", "charge.authorized", "charge.pending", "charge.requires_action", "charge.failed", "charge.canceled"} {
		about := c
		about.Status = strings.TrimPrefix(kind, "charge.")
		if kind != "charge.captured" {
			about.Captured = 0
		}
		e := s.event(kind, about)
		s.tell(t, e)
		told = append(told, e)
	}
	for _, e := range told {
		s.eventually(t, "notification "+e.kind+" is dealt with", func() (bool, any) {
			_, waits := s.inbox(t, "received", e.id)
			return !waits, "received"
		})
	}
	got := s.read(t, p.ID)
	if got.Status != "captured" || got.Version != p.Version {
		t.Errorf("got %s version %d after old news, want captured version %d", got.Status, got.Version, p.Version)
	}
	if rows := s.journal(t, p.ID); int64(len(rows)) != p.Version {
		t.Errorf("got %d rows, want %d", len(rows), p.Version)
	}
}

func rowSources(t *testing.T, s *stage) {
	p := s.waiting(t, nil)
	s.choose(t, p, "approve")
	s.ends(t, p.ID, "captured")
	rows := s.journal(t, p.ID)
	if rows[0].Source != "api" {
		t.Errorf("got source %q of the first row, want api", rows[0].Source)
	}
	for _, r := range rows {
		if r.Type == "payment.captured" && r.Source == "api" {
			t.Errorf("got source api of a capture that no call made")
		}
	}
}
