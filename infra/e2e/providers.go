package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

var otherPSPs = []claim{
	{"Stripe's signature is checked", stripeSigned},
	{"Stripe's news of a payment made elsewhere is quarantined", stripeForeign},
	{"Adyen is answered [accepted]", adyenAccepted},
	{"one bad item refuses Adyen's whole delivery", adyenBadItem},
	{"Adyen's news of a payment made elsewhere is quarantined", adyenForeign},
}

func stripeEvent(id, kind, paymentID string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"object":"event","type":%q,"created":1767322445,"livemode":false,"data":{"object":`+
		`{"id":"pi_1","object":"payment_intent","amount":5000,"amount_received":5000,"currency":"jpy","status":"succeeded","metadata":{"payment_id":%q}}}}`,
		id, kind, paymentID)
}

func (s *stage) stripe(t *testing.T, body []byte, signature string) answer {
	t.Helper()
	return s.knock(t, "stripe", body, map[string]string{"Stripe-Signature": signature})
}

func stripeSigned(t *testing.T, s *stage) {
	body, now := stripeEvent(s.unique("evt"), "payment_intent.succeeded", "x"), time.Now()
	good := stripeSignature(s.StripeSecret, now, body)
	s.knock(t, "stripe", body, nil).want(t, http.StatusUnauthorized)
	stamp, hash, _ := strings.Cut(good, ",v1=")
	for name, signature := range map[string]string{
		"another secret": stripeSignature("whsec_other_secret", now, body), "an empty secret": stripeSignature("", now, body),
		"stale":  stripeSignature(s.StripeSecret, now.Add(-s.Tolerance-s.Tolerance/5), body),
		"future": stripeSignature(s.StripeSecret, now.Add(s.Tolerance+s.Tolerance/5), body),
		"v0":     strings.Replace(good, "v1=", "v0=", 1), "no time": "v1=" + hash, "no hash": stamp, "nonsense": "x",
	} {
		if a := s.stripe(t, body, signature); a.status != http.StatusUnauthorized {
			t.Errorf("%s: got %s, want 401", name, a)
		}
	}
	s.stripe(t, append(body, ' '), good).want(t, http.StatusUnauthorized)
	s.stripe(t, body, stamp+",v1="+strings.Repeat("0", 64)+",v0=abc,v1="+hash).want(t, http.StatusOK)
	s.stripe(t, body, good).want(t, http.StatusOK)
}

func stripeForeign(t *testing.T, s *stage) {
	p, id := s.waiting(t, nil), s.unique("evt")
	body := stripeEvent(id, "payment_intent.succeeded", p.ID)
	s.stripe(t, body, stripeSignature(s.StripeSecret, time.Now(), body)).want(t, http.StatusOK)
	if n := s.settles(t, id, "quarantined"); n.PSP != "stripe" {
		t.Errorf("got %+v, want it from stripe", n)
	}
	if got := s.read(t, p.ID); got.AmountCaptured != 0 || got.Status == "captured" {
		t.Errorf("got %+v, want nothing captured", got)
	}
}

func (s *stage) item(paymentID string) adyenItem {
	return adyenItem{
		pspReference: strings.ToUpper(strings.ReplaceAll(s.unique("A"), "-", "")), account: s.AdyenAccount, merchantReference: paymentID,
		eventCode: "AUTHORISATION", value: 5000, currency: "JPY", success: true,
	}
}

func (s *stage) adyen(t *testing.T, items ...object) answer {
	t.Helper()
	return client{s, s.Webhook, ""}.send(t, request{
		method: http.MethodPost, path: "/adyen", body: object{"live": "false", "notificationItems": items},
	})
}

func adyenAccepted(t *testing.T, s *stage) {
	one, two := s.item(s.unique("order")), s.item(s.unique("order"))
	for range 2 { // new, and seen before
		a := s.adyen(t, one.signed(t, s.AdyenKey), two.signed(t, s.AdyenKey)).want(t, http.StatusOK)
		if got := strings.TrimSpace(string(a.body)); got != "[accepted]" {
			t.Errorf("got body %q, want [accepted]", got)
		}
	}
	for _, i := range []adyenItem{one, two} {
		s.eventually(t, "the item is stored", func() (bool, any) {
			for _, status := range []string{"received", "quarantined", "ignored", "applied"} {
				if n, found := s.inbox(t, status, i.pspReference); found {
					return n.PSP == "adyen", n
				}
			}
			return false, i.pspReference
		})
	}
}

func adyenBadItem(t *testing.T, s *stage) {
	good := s.item(s.unique("order"))
	signed := good.signed(t, s.AdyenKey)
	bad := s.item(s.unique("order"))
	foreign := bad
	foreign.account = "SomebodyElse"
	altered := bad.signed(t, s.AdyenKey)
	altered["NotificationRequestItem"].(object)["amount"] = object{"value": 1, "currency": "JPY"}
	unsigned := bad.signed(t, s.AdyenKey)
	delete(unsigned["NotificationRequestItem"].(object), "additionalData")
	for name, second := range map[string]object{
		"another key": bad.signed(t, strings.Repeat("00", 32)), "another account": foreign.signed(t, s.AdyenKey),
		"altered": altered, "unsigned": unsigned,
	} {
		for _, items := range [][]object{{signed, second}, {second, signed}} {
			if a := s.adyen(t, items...); a.status != http.StatusUnauthorized {
				t.Errorf("%s: got %s, want 401", name, a)
			}
		}
	}
	for _, status := range []string{"received", "quarantined", "ignored", "applied"} {
		if n, found := s.inbox(t, status, good.pspReference); found {
			t.Errorf("the good item of a refused delivery is stored: %+v", n)
		}
	}
}

func adyenForeign(t *testing.T, s *stage) {
	p := s.waiting(t, nil)
	i := s.item(p.ID)
	s.adyen(t, i.signed(t, s.AdyenKey)).want(t, http.StatusOK)
	n := s.settles(t, i.pspReference, "quarantined")
	if !strings.Contains(n.EventID, i.pspReference) || n.PSP != "adyen" {
		t.Errorf("got %+v, want an event id with %s", n, i.pspReference)
	}
	if got := s.read(t, p.ID); got.AmountCaptured != 0 || got.Status == "captured" {
		t.Errorf("got %+v, want nothing captured", got)
	}
}
