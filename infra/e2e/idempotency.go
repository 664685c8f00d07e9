package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

var idempotency = []claim{
	{"every POST needs a key", everyPostNeedsAKey},
	{"a key is 1 to 255 printable ASCII characters", keyForm},
	{"a quoted key is its content", quotedKey},
	{"keys differ by case", keysDifferByCase},
	{"the same key with the same body is the same payment", sameKeySameBody},
	{"key order, white space and escapes in the body don't matter", sameBodyOtherText},
	{"a replay renders the payment as it is now", replayRendersNow},
	{"a replay while processing is 202", replayWhileProcessing},
	{"a replayed decline is the same decline", replayedDecline},
	{"the same key with another body is refused and does nothing", otherBody},
	{"a body that is not valid is refused before the key is looked at", invalidBeforeReused},
	{"a repeat in flight waits, with another body it is refused", inFlight},
	{"a refused request leaves its key free", refusedLeavesKeyFree},
	{"the key of one merchant is nothing to another", keyPerMerchant},
	{"the key of a payment is free for its refund", keyPerRoute},
	{"replays of captures, cancels and refunds render what there is now", replaysOfOperations},
}

func everyPostNeedsAKey(t *testing.T, s *stage) {
	held, paid := s.held(t, nil), s.paid(t, nil)
	for _, post := range []struct {
		caller client
		path   string
		body   any
	}{
		{s.alpha, "/v1/payments", s.basket(nil)},
		{s.alpha, "/v1/payments/" + held.ID + "/capture", object{}},
		{s.alpha, "/v1/payments/" + held.ID + "/cancel", object{}},
		{s.alpha, "/v1/payments/" + paid.ID + "/refunds", object{}},
		{s.alpha, "/v1/checkouts", s.cart(nil)},
		{s.operator, "/v1/webhooks/" + s.anyNotification(t).ID + "/replay", object{}},
	} {
		post.caller.send(t, request{method: http.MethodPost, path: post.path, body: post.body}).
			problem(t, http.StatusBadRequest, "idempotency_key_required")
		post.caller.postKey(t, post.path, "", post.body).problem(t, http.StatusBadRequest, "idempotency_key_required")
		post.caller.postKey(t, post.path, strings.Repeat("k", 256), post.body).
			problem(t, http.StatusBadRequest, "idempotency_key_invalid")
	}
	if p := s.read(t, held.ID); p.Status != "authorized" {
		t.Errorf("got %s after requests without a key, want authorized", p.Status)
	}
	if p := s.read(t, paid.ID); len(p.Refunds) != 0 {
		t.Errorf("got %d refunds after requests without a key, want none", len(p.Refunds))
	}
}

func keyForm(t *testing.T, s *stage) {
	longest := s.unique("key")
	longest += strings.Repeat("~", 255-len(longest))
	for _, valid := range []string{longest, s.unique("key with spaces !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")} {
		a := s.alpha.postKey(t, "/v1/payments", valid, s.basket(nil)).want(t, http.StatusCreated)
		if a.replayed(t) {
			t.Errorf("key %q: a replay, want a first use", valid)
		}
	}
	basket := s.basket(nil)
	for _, invalid := range []string{longest + "x", "tab\tin it", "k\u00e9y", "\u30ad\u30fc"} {
		s.alpha.postKey(t, "/v1/payments", invalid, basket).problem(t, http.StatusBadRequest, "idempotency_key_invalid")
	}
	s.hasNoPayment(t, basket)
}

// hasNoPayment checks that a refused request left nothing.
func (s *stage) hasNoPayment(t *testing.T, basket object) {
	t.Helper()
	if n := len(s.byReference(t, basket["reference"].(string))); n != 0 {
		t.Errorf("got %d payments for %s, want none", n, basket["reference"])
	}
}

func (s *stage) byReference(t *testing.T, reference string) []payment {
	t.Helper()
	return wholeList[payment](t, s.alpha, "/v1/payments?reference="+reference)
}

func quotedKey(t *testing.T, s *stage) {
	key, basket := s.unique("key"), s.basket(nil)
	first := s.alpha.postKey(t, "/v1/payments", `"`+key+`"`, basket).want(t, http.StatusCreated).payment(t)
	again := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated)
	if p := again.payment(t); p.ID != first.ID || !again.replayed(t) {
		t.Errorf("got payment %s (replayed: %t), want a replay of %s", p.ID, again.replayed(t), first.ID)
	}
	s.alpha.postKey(t, "/v1/payments", `""`, basket).problem(t, http.StatusBadRequest, "idempotency_key_required")
}

func keysDifferByCase(t *testing.T, s *stage) {
	key := s.unique("key")
	first := s.alpha.postKey(t, "/v1/payments", key, s.basket(nil)).want(t, http.StatusCreated).payment(t)
	second := s.alpha.postKey(t, "/v1/payments", strings.ToUpper(key), s.basket(nil)).want(t, http.StatusCreated).payment(t)
	if first.ID == second.ID {
		t.Errorf("got one payment %s for two keys", first.ID)
	}
}

func sameKeySameBody(t *testing.T, s *stage) {
	key, basket := s.unique("key"), s.basket(nil)
	first := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated)
	p := first.payment(t)
	first.location(t, "/v1/payments/"+p.ID)
	if first.replayed(t) {
		t.Error("the first use says that it is a replay")
	}
	for range 3 {
		again := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated)
		if got := again.payment(t); got.ID != p.ID || !again.replayed(t) {
			t.Errorf("got payment %s (replayed: %t), want a replay of %s", got.ID, again.replayed(t), p.ID)
		}
		again.location(t, "/v1/payments/"+p.ID)
	}
	if n := len(s.creates(t, p.ID)); n != 1 {
		t.Errorf("the PSP was called %d times, want once", n)
	}
}

func sameBodyOtherText(t *testing.T, s *stage) {
	key, reference := s.unique("key"), s.unique("order")
	first := s.alpha.postKey(t, "/v1/payments", key, raw(fmt.Sprintf(
		`{"amount":5000,"currency":"JPY","payment_method":"tok_captured","reference":%q,"metadata":{"a":"é","b":"2"}}`, reference))).
		want(t, http.StatusCreated).payment(t)
	again := s.alpha.postKey(t, "/v1/payments", key, raw(fmt.Sprintf(
		"\r\n{ \"metadata\" : {\"b\":\"2\",\"a\":\"\\u00e9\"},\t\"reference\":%q, \"payment_method\":\"tok_c\\u0061ptured\",\n\"currency\":\"JPY\", \"amount\": 5000 }\n", reference))).
		want(t, http.StatusCreated)
	if p := again.payment(t); p.ID != first.ID || !again.replayed(t) {
		t.Errorf("got payment %s, want a replay of %s", p.ID, first.ID)
	}
}

func replayRendersNow(t *testing.T, s *stage) {
	key, basket := s.unique("key"), s.basket(object{"payment_method": "tok_requires_action"})
	p := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated).payment(t)
	again := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated)
	if got := again.payment(t); got.Status != "requires_action" || *got.NextAction != *p.NextAction || !again.replayed(t) {
		t.Errorf("got %s, want the redirect of the first answer", again)
	}
	s.choose(t, p, "approve")
	s.ends(t, p.ID, "captured")
	again = s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated)
	if got := again.payment(t); got.ID != p.ID || got.Status != "captured" || !again.replayed(t) {
		t.Errorf("got %s, want %s captured", again, p.ID)
	}
	s.alpha.post(t, "/v1/payments/"+p.ID+"/refunds", object{}).want(t, http.StatusCreated)
	s.ends(t, p.ID, "refunded")
	again = s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated)
	if got := again.payment(t); got.ID != p.ID || got.Status != "refunded" {
		t.Errorf("got %s, want %s refunded", again, p.ID)
	}
}

func replayWhileProcessing(t *testing.T, s *stage) {
	key, basket := s.unique("key"), s.basket(object{"payment_method": "tok_late_captured"})
	p := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusAccepted).payment(t)
	again := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusAccepted)
	if got := again.payment(t); got.ID != p.ID || got.Status != "processing" || !again.replayed(t) {
		t.Errorf("got %s (replayed: %t), want %s processing", again, again.replayed(t), p.ID)
	}
	again.location(t, "/v1/payments/"+p.ID)
	if again.header.Get("Retry-After") == "" {
		t.Errorf("%s: a 202 without Retry-After", again)
	}
}

func replayedDecline(t *testing.T, s *stage) {
	key, basket := s.unique("key"), s.basket(object{"payment_method": "tok_insufficient_funds"})
	p := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated).payment(t)
	again := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated)
	if got := again.payment(t); got.ID != p.ID || got.Status != "failed" || !again.replayed(t) {
		t.Errorf("got %s, want a replay of the decline %s", again, p.ID)
	}
	if n := len(s.creates(t, p.ID)); n != 1 {
		t.Errorf("the PSP was called %d times, want once", n)
	}
}

func otherBody(t *testing.T, s *stage) {
	key, basket := s.unique("key"), s.basket(object{"amount": 1000})
	p := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated).payment(t)
	for _, change := range []object{
		{"amount": 2000},
		{"currency": "EUR"},
		{"payment_method": "tok_declined"},
		{"reference": s.unique("order")},
		{"reference": absent},
		{"metadata": object{"k": "v"}},
		{"capture_method": "manual"},
		{"return_url": "https://shop.example/"},
	} {
		s.alpha.postKey(t, "/v1/payments", key, basket.with(change)).problem(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	}
	again := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated)
	if got := again.payment(t); got.ID != p.ID || got.Version != p.Version {
		t.Errorf("got %s version %d, want %s version %d", got.ID, got.Version, p.ID, p.Version)
	}
	if n := len(s.charges(t, p.ID)); n != 1 {
		t.Errorf("got %d charges, want one", n)
	}
}

func invalidBeforeReused(t *testing.T, s *stage) {
	key, basket := s.unique("key"), s.basket(nil)
	s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated)
	s.alpha.postKey(t, "/v1/payments", key, basket.with(object{"amount": 0})).problem(t, http.StatusBadRequest)
	s.alpha.postKey(t, "/v1/payments", key, raw(`{"amount":`)).problem(t, http.StatusBadRequest)
}

func inFlight(t *testing.T, s *stage) {
	key, basket := s.unique("key"), s.basket(object{"payment_method": "tok_timeout_captured_silent"})
	first := make(chan answer, 1)
	go func() {
		a, _ := s.alpha.try(post("/v1/payments", key, basket))
		first <- a
	}()
	// Once the payment is there its first request is in flight until the PSP's time is up.
	var p payment
	s.eventually(t, "the payment of a request in flight", func() (bool, any) {
		all := s.byReference(t, basket["reference"].(string))
		if len(all) == 1 {
			p = all[0]
		}
		return len(all) == 1, all
	})
	if p.Status != "processing" {
		t.Errorf("got %s in flight, want processing", p.Status)
	}
	repeat := s.alpha.postKey(t, "/v1/payments", key, basket)
	other := s.alpha.postKey(t, "/v1/payments", key, basket.with(object{"amount": 1}))
	a := <-first
	a.want(t, http.StatusAccepted, http.StatusCreated)
	if repeat.status == http.StatusConflict {
		repeat.problem(t, http.StatusConflict, "idempotency_in_progress")
	} else if got := repeat.want(t, http.StatusAccepted, http.StatusCreated).payment(t); got.Status == "processing" && !got.InDoubt {
		// In doubt, or ended, the first request had its answer before the repeat came: a machine under load.
		t.Errorf("got %s, want 409 idempotency_in_progress", repeat)
	}
	other.problem(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	s.ends(t, p.ID, "captured")
	again := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated)
	if got := again.payment(t); got.ID != p.ID || got.Status != "captured" || !again.replayed(t) {
		t.Errorf("got %s, want a replay of %s captured", again, p.ID)
	}
	if got := keys(s.creates(t, p.ID)); len(got) != 1 {
		t.Errorf("got PSP keys %q, want one", got)
	}
	s.charge(t, p.ID)
}

func refusedLeavesKeyFree(t *testing.T, s *stage) {
	key, basket := s.unique("key"), s.basket(nil)
	s.alpha.postKey(t, "/v1/payments", key, basket.with(object{"amount": 0})).problem(t, http.StatusBadRequest)
	client{s, s.API, "sk_test_nobody"}.postKey(t, "/v1/payments", key, basket).want(t, http.StatusUnauthorized)
	if a := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated); a.replayed(t) {
		t.Error("a first use after refusals says that it is a replay")
	}

	second := s.unique("key")
	s.alpha.postKey(t, "/v1/payments", second, basket).problem(t, http.StatusConflict, "reference_in_use")
	if a := s.alpha.postKey(t, "/v1/payments", second, s.basket(nil)).want(t, http.StatusCreated); a.replayed(t) {
		t.Error("a first use after a conflict says that it is a replay")
	}

	p, third := s.paid(t, nil), s.unique("key")
	refunds := "/v1/payments/" + p.ID + "/refunds"
	s.alpha.postKey(t, refunds, third, object{"amount": 5001}).problem(t, http.StatusUnprocessableEntity, "amount_too_large")
	s.alpha.postKey(t, refunds, third, object{"amount": 5000}).want(t, http.StatusCreated)

	fourth := s.unique("key")
	unknown := "/v1/payments/" + strings.Repeat("x", 3) + "/refunds"
	s.alpha.postKey(t, unknown, fourth, object{}).problem(t, http.StatusNotFound)
	s.alpha.postKey(t, unknown, fourth, object{"amount": 1}).problem(t, http.StatusNotFound)
}

func keyPerMerchant(t *testing.T, s *stage) {
	key, basket := s.unique("key"), s.basket(nil)
	first := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated).payment(t)
	a := s.beta.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated)
	if p := a.payment(t); p.ID == first.ID || a.replayed(t) {
		t.Errorf("the second merchant got payment %s of the first", p.ID)
	}
}

func keyPerRoute(t *testing.T, s *stage) {
	key := s.unique("key")
	p := s.alpha.postKey(t, "/v1/payments", key, s.basket(nil)).want(t, http.StatusCreated).payment(t)
	a := s.alpha.postKey(t, "/v1/payments/"+p.ID+"/refunds", key, object{"amount": 1}).want(t, http.StatusCreated)
	if a.replayed(t) {
		t.Error("the refund says that it is a replay of the payment")
	}
	other := s.paid(t, nil)
	a = s.alpha.postKey(t, "/v1/payments/"+other.ID+"/refunds", key, object{"amount": 2}).want(t, http.StatusCreated)
	if a.replayed(t) {
		t.Error("the refund says that it is a replay of another payment's")
	}
	if p := s.read(t, other.ID); len(p.Refunds) != 1 || p.Refunds[0].Amount != 2 {
		t.Errorf("got refunds %+v, want one of 2", p.Refunds)
	}
}

func replaysOfOperations(t *testing.T, s *stage) {
	key, p := s.unique("key"), s.held(t, nil)
	capture := "/v1/payments/" + p.ID + "/capture"
	s.alpha.postKey(t, capture, key, object{"amount": 4000}).want(t, http.StatusOK)
	s.alpha.postKey(t, capture, key, object{"amount": 3000}).problem(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	again := s.alpha.postKey(t, capture, key, object{"amount": 4000}).want(t, http.StatusOK)
	if got := again.payment(t); got.Status != "captured" || got.AmountCaptured != 4000 || !again.replayed(t) {
		t.Errorf("got %s, want a replay of the capture", again)
	}
	refunds := "/v1/payments/" + p.ID + "/refunds"
	first := s.alpha.postKey(t, refunds, key, object{"amount": 4000}).want(t, http.StatusCreated).refund(t)
	s.ends(t, p.ID, "refunded")
	again = s.alpha.postKey(t, refunds, key, object{"amount": 4000}).want(t, http.StatusCreated)
	if got := again.refund(t); got.ID != first.ID || got.Status != "succeeded" || !again.replayed(t) {
		t.Errorf("got %s, want a replay of refund %s", again, first.ID)
	}
	s.alpha.postKey(t, refunds, key, object{"amount": 1}).problem(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	again = s.alpha.postKey(t, capture, key, object{"amount": 4000}).want(t, http.StatusOK)
	if got := again.payment(t); got.Status != "refunded" || !again.replayed(t) {
		t.Errorf("got %s, want the payment as it is now", again)
	}

	held := s.held(t, nil)
	cancel := "/v1/payments/" + held.ID + "/cancel"
	s.alpha.postKey(t, cancel, key, object{"reason": "changed their mind"}).want(t, http.StatusOK, http.StatusAccepted)
	s.ends(t, held.ID, "canceled")
	again = s.alpha.postKey(t, cancel, key, object{"reason": "changed their mind"}).want(t, http.StatusOK)
	if got := again.payment(t); got.Status != "canceled" || !again.replayed(t) {
		t.Errorf("got %s, want a replay of the cancel", again)
	}
	s.alpha.postKey(t, cancel, key, object{}).problem(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	if n := len(s.posts(t, "/charges/"+*held.PSPReference+"/cancel")); n != 1 {
		t.Errorf("the PSP was asked %d times to void, want once", n)
	}
}
