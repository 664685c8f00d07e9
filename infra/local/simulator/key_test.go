package simulator_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func TestSameKeySameBodyGetsTheStoredAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		first := p.create("tok_captured", "automatic")
		c := decode[charge](t, first.body)
		wantStatus(t, "refund", p.call("POST", "/charges/"+c.ID+"/refunds", "", ""), 201)

		again := p.create("tok_captured", "automatic")
		reordered := p.call("POST", "/charges", "key-1", ` {"currency":"JPY", "amount":5000, "return_url":"https://shop.test/return",
			"capture_method":"automatic", "payment_method":"tok_captured", "reference":"pay_1"}`)
		for what, got := range map[string]answer{"again": again, "reordered": reordered} {
			if got.status != 201 || got.body != first.body || got.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s: got %d %s, want the stored %s", what, got.status, got.body, first.body)
			}
		}
		if first.header.Get("Idempotent-Replayed") != "" {
			t.Error("the first answer says that it is a replay")
		}
		if got := len(p.charges()); got != 1 {
			t.Errorf("got %d charges, want 1", got)
		}
		advance(0)
		wantKinds(t, p, "charge.captured", "refund.succeeded")
	})
}

func TestSameKeyOtherBodyIsRefusedWithoutEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		first := p.create("tok_captured", "automatic")
		wantCode(t, "other body", p.create("tok_captured", "manual"), 422, "idempotency_key_reused")
		if got := len(p.charges()); got != 1 {
			t.Errorf("got %d charges, want 1", got)
		}
		if again := p.create("tok_captured", "automatic"); again.body != first.body {
			t.Errorf("afterwards: got %s, want the stored %s", again.body, first.body)
		}
	})
}

func TestKeysAreScopedToTheirPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		one := p.mustCreate("tok_captured", "manual")
		two := decode[charge](t, p.call("POST", "/charges", "key-2", chargeBody("tok_captured", "manual")).body)
		for _, path := range []string{one.ID + "/capture", one.ID + "/refunds", two.ID + "/cancel"} {
			a := p.call("POST", "/charges/"+path, "key-1", "{}")
			if a.status/100 != 2 || a.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("%s: got %d %s, want done", path, a.status, a.body)
			}
		}
	})
}

func TestAnotherKeyMakesAnotherCharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.mustCreate("tok_captured", "automatic")
		wantStatus(t, "second key", p.call("POST", "/charges", "key-2", chargeBody("tok_captured", "automatic")), 201)
		if got := len(p.charges()); got != 2 {
			t.Errorf("got %d charges, want 2: the PSP does not look at references", got)
		}
	})
}

func TestAKeyWhoseFirstCallRunsIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		acknowledge := make(chan struct{})
		p.answer = func(context.Context, delivery) (int, error) { <-acknowledge; return 200, nil }
		first := make(chan answer, 1)
		go func() {
			first <- p.call("POST", "/charges", "key-1", chargeBody("tok_webhook_first", "automatic"))
		}()
		synctest.Wait()
		wantCode(t, "while it runs", p.create("tok_webhook_first", "automatic"), 409, "idempotency_in_progress")
		wantCode(t, "other body", p.create("tok_captured", "automatic"), 422, "idempotency_key_reused")
		close(acknowledge)
		done := <-first
		wantStatus(t, "first", done, 201)
		if again := p.create("tok_webhook_first", "automatic"); again.body != done.body {
			t.Errorf("afterwards: got %s, want %s", again.body, done.body)
		}
	})
}

func TestRefusalsByTheChargeAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		c := p.mustCreate("tok_requires_action", "manual")
		path := "/charges/" + c.ID + "/capture"
		wantCode(t, "too early", p.call("POST", path, "capture-1", "{}"), 409, "charge_not_authorized")
		wantStatus(t, "approve", p.call("POST", "/redirect/"+c.ID, "", `{"outcome":"approve"}`), 200)
		wantCode(t, "same key", p.call("POST", path, "capture-1", "{}"), 409, "charge_not_authorized")
		wantStatus(t, "new key", p.call("POST", path, "capture-2", "{}"), 200)
		wantStatus(t, "replay", p.call("POST", path, "capture-2", ""), 200)
	})
}

func TestInvalidRequestsLeaveTheKeyFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		wantCode(t, "unknown token", p.create("tok_unheard_of", "automatic"), 400, "payment_method_unknown")
		c := p.mustCreate("tok_captured", "manual")
		path := "/charges/" + c.ID + "/capture"
		wantCode(t, "amount 0", p.call("POST", path, "k", `{"amount":0}`), 400, "parameter_invalid")
		wantCode(t, "no object", p.call("POST", path, "k", `null`), 400, "body_invalid")
		wantStatus(t, "then", p.call("POST", path, "k", `{"amount":1}`), 200)
	})
}

func TestCreateNeedsAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		body := chargeBody("tok_captured", "automatic")
		wantCode(t, "none", p.call("POST", "/charges", "", body), 400, "idempotency_key_required")
		wantCode(t, "too long", p.call("POST", "/charges", strings.Repeat("k", 256), body), 400, "idempotency_key_invalid")
		wantCode(t, "not ASCII", p.call("POST", "/charges", "clé", body), 400, "idempotency_key_invalid")
		if got := len(p.charges()); got != 0 {
			t.Errorf("got %d charges, want none", got)
		}
		wantStatus(t, "longest", p.call("POST", "/charges", strings.Repeat("k", 255), body), 201)
	})
}

func TestOneKeySentAtOnceMakesOneCharge(t *testing.T) {
	p := newPSP(t)
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() { wantStatus(t, "create", p.create("tok_captured", "automatic"), 201) })
	}
	calls.Wait()
	if got := len(p.charges()); got != 1 {
		t.Errorf("got %d charges, want 1", got)
	}
}
