package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

var payments = []claim{
	{"a payment shows what was asked for and what came of it", paymentShows},
	{"defaults: automatic capture, the simulator, nothing else", paymentDefaults},
	{"every limit is within reach", paymentLimits},
	{"amounts reach the PSP in minor units of every currency", minorUnits},
	{"without references there is no conflict", noReferenceNoConflict},
	{"a live or captured payment holds its reference", referenceHeld},
	{"a dead or refunded payment frees its reference", referenceFreed},
	{"a reference is nothing to another merchant", referencePerMerchant},
	{"a read waits for an outcome", readWaits},
}

func paymentShows(t *testing.T, s *stage) {
	basket := s.basket(object{
		"amount": 1234, "currency": "EUR", "capture_method": "automatic", "return_url": "https://shop.example/return?a=b#c",
		"psp": "simulator", "metadata": object{"k": "v", "é": "日本"},
	})
	a := s.alpha.post(t, "/v1/payments", basket).want(t, http.StatusCreated)
	if got := a.header.Get("Content-Type"); !strings.HasPrefix(got, "application/json") {
		t.Errorf("got Content-Type %q, want application/json", got)
	}
	p := a.payment(t)
	a.location(t, "/v1/payments/"+p.ID)
	c := s.charge(t, p.ID)
	if p.Status != "captured" || p.Amount != 1234 || p.AmountCaptured != 1234 || p.AmountRefunded != 0 || p.Currency != "EUR" ||
		p.CaptureMethod != "automatic" || p.Reference == nil || *p.Reference != basket["reference"] || p.PSP != "simulator" ||
		p.PSPReference == nil || *p.PSPReference != c.ID || p.Failure != nil || p.InDoubt || p.Disputed || len(p.Refunds) != 0 ||
		len(p.Metadata) != 2 || p.Metadata["k"] != "v" || p.Metadata["é"] != "日本" || p.UpdatedAt.Before(p.CreatedAt) {
		t.Errorf("got %s, of charge %+v", a, c)
	}
	if got := s.read(t, p.ID); got.ID != p.ID || got.Status != "captured" {
		t.Errorf("got %+v when read, want %s captured", got, p.ID)
	}
}

func paymentDefaults(t *testing.T, s *stage) {
	a := s.alpha.post(t, "/v1/payments", object{"amount": 5000, "currency": "JPY", "payment_method": "tok_captured"}).want(t, http.StatusCreated)
	p := a.payment(t)
	if p.CaptureMethod != "automatic" || p.PSP != "simulator" || p.Reference != nil || len(p.Metadata) != 0 || p.ClientSecret != nil {
		t.Errorf("got %s", a)
	}
}

func paymentLimits(t *testing.T, s *stage) {
	many := object{}
	for i := range 20 {
		many[fmt.Sprintf("%02d%s", i, strings.Repeat("é", 38))] = strings.Repeat("日", 500)
	}
	for _, members := range []object{
		{"amount": 1},
		{"amount": 999999999999},
		{"reference": s.unique("") + strings.Repeat("é", 64-len(s.unique("")))},
		{"metadata": many},
		{"metadata": object{}},
		{"metadata": object{"k": ""}},
		{"return_url": "http://localhost/back"},
		{"return_url": "http://localhost:8080/back"},
		{"reference": "x" + s.unique("")[1:]},
		{"capture_method": "manual"},
	} {
		s.alpha.post(t, "/v1/payments", s.basket(members)).want(t, http.StatusCreated).payment(t)
	}
}

func minorUnits(t *testing.T, s *stage) {
	for _, money := range []struct {
		amount   int64
		currency string
	}{{500, "JPY"}, {18600, "KWD"}, {1999, "USD"}, {1, "BHD"}} {
		p := s.paid(t, object{"amount": money.amount, "currency": money.currency})
		if c := s.charge(t, p.ID); c.Amount != money.amount || c.Currency != money.currency || c.Captured != money.amount {
			t.Errorf("the PSP saw %d %s, want %d %s", c.Amount, c.Currency, money.amount, money.currency)
		}
	}
}

func noReferenceNoConflict(t *testing.T, s *stage) {
	first, second := s.paid(t, object{"reference": absent}), s.paid(t, object{"reference": absent})
	if first.ID == second.ID {
		t.Errorf("got one payment %s for two requests", first.ID)
	}
}

func referenceHeld(t *testing.T, s *stage) {
	partlyRefunded := s.paid(t, nil)
	s.alpha.post(t, "/v1/payments/"+partlyRefunded.ID+"/refunds", object{"amount": 1}).want(t, http.StatusCreated)
	for name, p := range map[string]payment{
		"captured": s.paid(t, nil), "authorized": s.held(t, nil), "requires_action": s.waiting(t, nil),
		"processing": s.pay(t, object{"payment_method": "tok_late_captured"}, "processing"), "partly refunded": partlyRefunded,
	} {
		got := s.alpha.post(t, "/v1/payments", s.basket(object{"reference": *p.Reference})).problem(t, http.StatusConflict, "reference_in_use")
		if got.PaymentID != p.ID {
			t.Errorf("%s: got payment_id %q, want %s", name, got.PaymentID, p.ID)
		}
		if n := len(s.byReference(t, *p.Reference)); n != 1 {
			t.Errorf("%s: got %d payments, want one", name, n)
		}
	}
}

func referenceFreed(t *testing.T, s *stage) {
	reference := s.unique("order")
	failed := s.pay(t, object{"reference": reference, "payment_method": "tok_declined"}, "failed")
	held := s.held(t, object{"reference": reference})
	s.alpha.post(t, "/v1/payments/"+held.ID+"/cancel", object{}).want(t, http.StatusOK)
	paid := s.paid(t, object{"reference": reference})
	s.alpha.post(t, "/v1/payments/"+paid.ID+"/refunds", object{}).want(t, http.StatusCreated)
	s.ends(t, paid.ID, "refunded")
	last := s.paid(t, object{"reference": reference})

	var got []string
	for _, p := range s.byReference(t, reference) {
		got = append(got, p.ID)
	}
	if want := []string{last.ID, paid.ID, held.ID, failed.ID}; !slices.Equal(got, want) {
		t.Errorf("got payments %v, want newest first %v", got, want)
	}
}

func referencePerMerchant(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	s.beta.post(t, "/v1/payments", s.basket(object{"reference": *p.Reference})).want(t, http.StatusCreated)
	if all := s.byReference(t, *p.Reference); len(all) != 1 || all[0].ID != p.ID {
		t.Errorf("got %+v, want only %s", all, p.ID)
	}
}

func readWaits(t *testing.T, s *stage) {
	p := s.pay(t, object{"payment_method": "tok_pending"}, "processing")
	if got := s.alpha.get(t, "/v1/payments/"+p.ID+"?wait=20").want(t, http.StatusOK).payment(t); got.Status != "captured" {
		t.Errorf("got %s after the wait, want captured", got.Status)
	}
	if got := s.alpha.get(t, "/v1/payments/"+p.ID+"?wait=20").want(t, http.StatusOK).payment(t); got.Status != "captured" {
		t.Errorf("got %s, want captured", got.Status)
	}
	if waiting := s.waiting(t, nil); s.alpha.get(t, "/v1/payments/"+waiting.ID+"?wait=1").want(t, http.StatusOK).payment(t).Status != "requires_action" {
		t.Error("got another status, want requires_action")
	}
	for _, wrong := range []string{"soon", "-1", "1.5", ""} {
		s.alpha.get(t, "/v1/payments/"+p.ID+"?wait="+wrong).problem(t, http.StatusBadRequest)
	}
}
