package simulator_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestTokensDoWhatTheyPromise(t *testing.T) {
	const (
		authorized = "charge.authorized"
		captured   = "charge.captured"
		pending    = "charge.pending"
	)
	for _, test := range []struct {
		token, method string
		answer        int      // 0 for none
		now           string   // what a look-up finds at once, "" for no charge
		finally       string   // and later
		webhooks      []string // in order of arrival
	}{
		{"tok_captured", "automatic", 201, "captured", "captured", []string{captured}},
		{"tok_captured", "manual", 201, "authorized", "authorized", []string{authorized}},
		{"tok_declined", "automatic", 201, "failed", "failed", []string{"charge.failed"}},
		{"tok_declined", "manual", 201, "failed", "failed", []string{"charge.failed"}},
		{"tok_insufficient_funds", "automatic", 201, "failed", "failed", []string{"charge.failed"}},
		{"tok_requires_action", "automatic", 201, "requires_action", "requires_action", []string{"charge.requires_action"}},
		{"tok_pending", "automatic", 201, "pending", "captured", []string{pending, captured}},
		{"tok_pending", "manual", 201, "pending", "authorized", []string{pending, authorized}},
		{"tok_pending_silent", "automatic", 201, "pending", "captured", nil},
		{"tok_timeout_captured", "automatic", 0, "captured", "captured", []string{captured}},
		{"tok_timeout_captured", "manual", 0, "authorized", "authorized", []string{authorized}},
		{"tok_timeout_captured_silent", "automatic", 0, "captured", "captured", nil},
		{"tok_timeout_nothing", "automatic", 0, "", "", nil},
		{"tok_error_captured", "automatic", 500, "captured", "captured", []string{captured}},
		{"tok_error_once", "automatic", 503, "", "", nil},
		{"tok_rate_limited_once", "automatic", 429, "", "", nil},
		{"tok_webhook_first", "automatic", 201, "captured", "captured", []string{captured}},
		{"tok_webhook_first", "manual", 201, "authorized", "authorized", []string{authorized}},
		{"tok_webhook_twice", "automatic", 201, "captured", "captured", []string{captured, captured, captured}},
		{"tok_webhook_reversed", "automatic", 201, "captured", "captured", []string{captured, authorized}},
		{"tok_webhook_reversed", "manual", 201, "authorized", "authorized", []string{authorized}},
		{"tok_late_captured", "automatic", 201, "pending", "pending", []string{pending}},
		{"tok_refund_pending_failed", "automatic", 201, "captured", "captured", []string{captured}},
	} {
		t.Run(test.token+"/"+test.method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPSP(t)
				a := p.create(test.token, test.method)
				wantStatus(t, "create", a, test.answer)
				if a.status == http.StatusCreated {
					if got := decode[charge](t, a.body).Status; got != test.now {
						t.Errorf("answer: got %s, want %s", got, test.now)
					}
				}
				checkCharge(t, p, "at once", test.now)
				advance(time.Minute)
				checkCharge(t, p, "finally", test.finally)
				wantKinds(t, p, test.webhooks...)
			})
		})
	}
}

// checkCharge looks the charge up and compares status and money.
func checkCharge(t *testing.T, p *psp, when, want string) {
	t.Helper()
	found := p.charges()
	if want == "" {
		if len(found) != 0 {
			t.Errorf("%s: got %+v, want no charge", when, found)
		}
		return
	}
	if len(found) != 1 {
		t.Fatalf("%s: got %d charges, want 1", when, len(found))
	}
	captured := int64(0)
	if want == "captured" {
		captured = 5000
	}
	if c := found[0]; c.Status != want || c.Captured != captured || c.Amount != 5000 || c.Currency != "JPY" || text(c.Reference) != "pay_1" {
		t.Errorf("%s: got %+v, want %s with %d captured", when, c, want, captured)
	}
}

func TestDeclinesSayWhy(t *testing.T) {
	for token, code := range map[string]string{"tok_declined": "generic_decline", "tok_insufficient_funds": "insufficient_funds"} {
		synctest.Test(t, func(t *testing.T) {
			if c := newPSP(t).mustCreate(token, "automatic"); text(c.DeclineCode) != code {
				t.Errorf("%s: got %s, want %s", token, text(c.DeclineCode), code)
			}
		})
	}
}

func TestPendingIsCapturedAfterOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.mustCreate("tok_pending", "automatic")
		advance(999 * time.Millisecond)
		checkCharge(t, p, "just before", "pending")
		advance(time.Millisecond)
		checkCharge(t, p, "then", "captured")
	})
}

func TestPendingThatIsCanceledStaysCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		c := p.mustCreate("tok_pending", "automatic")
		wantStatus(t, "cancel", p.call("POST", "/charges/"+c.ID+"/cancel", "", ""), 200)
		advance(time.Minute)
		checkCharge(t, p, "finally", "canceled")
		wantKinds(t, p, "charge.pending", "charge.canceled")
	})
}

func TestLateCaptureComesThreeSecondsAfterTheCancel(t *testing.T) {
	for method, want := range map[string]string{"automatic": "captured", "manual": "authorized"} {
		synctest.Test(t, func(t *testing.T) {
			p := newPSP(t)
			c := p.mustCreate("tok_late_captured", method)
			advance(10 * time.Second)
			a := p.call("POST", "/charges/"+c.ID+"/cancel", "cancel-1", "{}")
			if got := decode[charge](t, a.body).Status; a.status != 200 || got != "canceled" {
				t.Fatalf("cancel: got %d %s, want 200 canceled", a.status, got)
			}
			advance(2 * time.Second)
			wantStatus(t, "second cancel", p.call("POST", "/charges/"+c.ID+"/cancel", "cancel-2", "{}"), 200)
			advance(999 * time.Millisecond)
			checkCharge(t, p, "just before", "canceled")
			advance(time.Millisecond)
			checkCharge(t, p, "then", want)
			wantKinds(t, p, "charge.pending", "charge.canceled", "charge."+want)

			// What came late can be dealt with like any other money, and does not come again.
			if want == "captured" {
				wantCode(t, "cancel", p.call("POST", "/charges/"+c.ID+"/cancel", "cancel-3", "{}"), 409, "charge_captured")
				wantStatus(t, "refund", p.call("POST", "/charges/"+c.ID+"/refunds", "", "{}"), 201)
				return
			}
			wantStatus(t, "void", p.call("POST", "/charges/"+c.ID+"/cancel", "cancel-3", "{}"), 200)
			advance(time.Minute)
			checkCharge(t, p, "after the void", "canceled")
		})
	}
}

func TestNoAnswerIsTheSameOnEveryCall(t *testing.T) {
	for token, charges := range map[string]int{"tok_timeout_captured": 1, "tok_timeout_captured_silent": 1, "tok_timeout_nothing": 0} {
		synctest.Test(t, func(t *testing.T) {
			p := newPSP(t)
			for range 3 {
				wantStatus(t, token, p.create(token, "automatic"), 0)
			}
			if got := len(p.charges()); got != charges {
				t.Errorf("%s: got %d charges, want %d", token, got, charges)
			}
			other := p.call("POST", "/charges", "key-1", chargeBody("tok_captured", "automatic"))
			wantCode(t, "other body", other, 422, "idempotency_key_reused")
		})
	}
}

func TestNoAnswerIsGivenUpInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		began := time.Now()
		wantStatus(t, "create", p.call("POST", "/charges", "key-1", chargeBody("tok_timeout_nothing", "automatic")), 0)
		if got := time.Since(began); got != time.Minute {
			t.Errorf("held for %s, want one minute", got)
		}
	})
}

func TestNoAnswerHangsForEveryCallAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		ctx, cancel := context.WithCancel(t.Context())
		answers := make(chan answer, 2)
		for range 2 {
			go func() {
				answers <- p.callFor(ctx, "POST", "/charges", "key-1", chargeBody("tok_timeout_captured", "automatic"))
			}()
			synctest.Wait()
		}
		if len(answers) != 0 {
			t.Error("a call was answered while the client waits")
		}
		if got := len(p.charges()); got != 1 {
			t.Errorf("got %d charges, want 1", got)
		}
		cancel()
		for range 2 {
			wantStatus(t, "create", <-answers, 0)
		}
	})
}

func TestServerErrorIsStoredWhileALookUpTellsTheTruth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		for range 3 {
			wantCode(t, "create", p.create("tok_error_captured", "automatic"), 500, "internal_error")
		}
		checkCharge(t, p, "look-up", "captured")
		advance(time.Minute)
		wantKinds(t, p, "charge.captured")
	})
}

func TestOnceIsOncePerKeyAndReference(t *testing.T) {
	for token, status := range map[string]int{"tok_error_once": 503, "tok_rate_limited_once": 429} {
		synctest.Test(t, func(t *testing.T) {
			p := newPSP(t)
			first := p.create(token, "automatic")
			wantStatus(t, "first", first, status)
			if got := first.header.Get("Retry-After"); (status == 429) != (got == "1") {
				t.Errorf("%s: got Retry-After %q", token, got)
			}
			second := p.create(token, "automatic")
			wantStatus(t, "same key", second, 201)
			if second.header.Get("Idempotent-Replayed") != "" {
				t.Error("the refusal was stored under the key")
			}
			wantStatus(t, "same reference, new key", p.call("POST", "/charges", "key-2", chargeBody(token, "automatic")), 201)

			anonymous := `{"amount":1,"currency":"JPY","payment_method":"` + token + `"}`
			wantStatus(t, "new key, no reference", p.call("POST", "/charges", "key-3", anonymous), status)
			wantStatus(t, "another key, no reference", p.call("POST", "/charges", "key-4", anonymous), status)
			wantStatus(t, "and again", p.call("POST", "/charges", "key-3", anonymous), 201)
		})
	}
}

func TestRefundsArePendingThenFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		c := p.mustCreate("tok_refund_pending_failed", "automatic")
		a := p.call("POST", "/charges/"+c.ID+"/refunds", "refund-1", `{"amount":5000,"reference":"re_1"}`)
		if r := decode[refund](t, a.body); a.status != 201 || r.Status != "pending" || text(r.Reference) != "re_1" || r.Charge != c.ID {
			t.Fatalf("refund: got %d %+v, want 201 pending re_1", a.status, r)
		}
		tooMuch := p.call("POST", "/charges/"+c.ID+"/refunds", "refund-2", `{"amount":1}`)
		wantCode(t, "refund beside a pending one", tooMuch, 422, "amount_too_large")
		advance(999 * time.Millisecond)
		if got := p.charge(); got.Refunds[0].Status != "pending" || got.Refunded != 0 {
			t.Errorf("just before: got %+v, want pending", got)
		}
		advance(time.Millisecond)
		if got := p.charge(); got.Refunds[0].Status != "failed" || got.Refunded != 0 || got.Status != "captured" {
			t.Errorf("then: got %+v, want failed, charge captured", got)
		}
		wantKinds(t, p, "charge.captured", "refund.failed")
		wantStatus(t, "refund again", p.call("POST", "/charges/"+c.ID+"/refunds", "refund-3", `{"amount":5000}`), 201)
	})
}

func TestWebhookFirstIsDeliveredBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.answer = func(ctx context.Context, _ delivery) (int, error) {
			if len(p.deliveries()) == 1 { // the first attempt fails: delivered means acknowledged
				return 503, nil
			}
			<-time.NewTimer(time.Second).C
			return 200, nil
		}
		began := time.Now()
		a := p.call("POST", "/charges", "key-1", chargeBody("tok_webhook_first", "automatic"))
		if got := time.Since(began); a.status != 201 || got != 1200*time.Millisecond {
			t.Errorf("got %d after %s, want 201 after the second attempt was acknowledged", a.status, got)
		}
	})
}

func TestWebhookFirstDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.answer = func(context.Context, delivery) (int, error) { return 503, nil }
		began := time.Now()
		a := p.call("POST", "/charges", "key-1", chargeBody("tok_webhook_first", "automatic"))
		if got := time.Since(began); a.status != 201 || got != 5*time.Second {
			t.Errorf("got %d after %s, want 201 after 5s", a.status, got)
		}
	})
}

func TestWebhookFirstIsNotWaitedForWithoutAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.answer = func(context.Context, delivery) (int, error) { return 503, nil }
		began := time.Now()
		first := p.create("tok_webhook_first", "automatic")
		if got := time.Since(began); got != 100*time.Millisecond {
			t.Errorf("waited %s, want until the client went away", got)
		}
		if again := p.create("tok_webhook_first", "automatic"); again.status != 201 || again.body != first.body {
			t.Errorf("same key: got %d %s, want the stored answer", again.status, again.body)
		}
	})
}

func TestWebhookTwiceIsThreeTimesForEveryEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		var open, most int
		p.answer = func(context.Context, delivery) (int, error) {
			p.mu.Lock()
			open++
			most = max(most, open)
			p.mu.Unlock()
			<-time.NewTimer(100 * time.Millisecond).C
			p.mu.Lock()
			open--
			p.mu.Unlock()
			return 200, nil
		}
		c := p.mustCreate("tok_webhook_twice", "automatic")
		wantStatus(t, "refund", p.call("POST", "/charges/"+c.ID+"/refunds", "", `{"amount":1}`), 201)
		advance(time.Minute)
		wantKinds(t, p, "charge.captured", "charge.captured", "charge.captured", "refund.succeeded", "refund.succeeded", "refund.succeeded")
		got := p.deliveries()
		if most != 2 || !got[0].at.Equal(got[1].at) || !got[2].at.After(got[1].at) {
			t.Errorf("got %d at once, want two at the same moment and one after", most)
		}
		for _, d := range got[:3] {
			if d.id != got[0].id || !slices.Equal(d.body, got[0].body) {
				t.Errorf("got another event %s, want the same three times", d.id)
			}
		}
	})
}

func TestReversedWebhooksOvertakeTheAuthorization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		c := p.mustCreate("tok_webhook_reversed", "manual")
		advance(2 * time.Second)
		wantKinds(t, p)
		wantStatus(t, "capture", p.call("POST", "/charges/"+c.ID+"/capture", "", ""), 200)
		synctest.Wait()
		wantKinds(t, p, "charge.captured", "charge.authorized")
		authorized := decode[struct{ Data struct{ Charge charge } }](t, string(p.deliveries()[1].body)).Data.Charge
		if authorized.Status != "authorized" || authorized.Captured != 0 {
			t.Errorf("authorized event: got %+v, want the charge as it was then", authorized)
		}
		advance(time.Minute)
		wantKinds(t, p, "charge.captured", "charge.authorized")
	})
}
