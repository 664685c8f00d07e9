package simulator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestResetForgetsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.control("webhooks/pause", "")
		p.mustCreate("tok_captured", "automatic")
		c := decode[charge](t, p.call("POST", "/charges", "key-2", chargeBody("tok_late_captured", "automatic")).body)
		wantStatus(t, "cancel", p.call("POST", "/charges/"+c.ID+"/cancel", "", ""), 200)
		wantStatus(t, "pending", p.call("POST", "/charges", "key-3", chargeBody("tok_pending", "automatic")), 201)
		wantStatus(t, "once", p.call("POST", "/charges", "key-4", chargeBody("tok_error_once", "automatic")), 503)
		p.control("webhooks", `{"event":{"id":"evt_1"},"delay_ms":10}`)
		p.control("faults", `{"operation":"charge","times":9}`)

		p.control("reset", "")
		for _, list := range []string{"/_control/charges", "/_control/calls", "/charges"} {
			if got := p.call("GET", list, "", "").body; got != `{"object":"list","data":[],"next_cursor":null}` {
				t.Errorf("%s: got %s, want nothing", list, got)
			}
		}
		advance(time.Minute)
		wantKinds(t, p)
		wantStatus(t, "once", p.call("POST", "/charges", "key-4", chargeBody("tok_error_once", "automatic")), 503)
		again := p.create("tok_declined", "automatic")
		wantStatus(t, "the key is free", again, 201)
		synctest.Wait()
		wantKinds(t, p, "charge.failed")
	})
}

func TestResetStopsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.answer = func(context.Context, delivery) (int, error) { return 503, nil }
		p.mustCreate("tok_webhook_twice", "automatic")
		synctest.Wait()
		before := len(p.deliveries())
		p.control("reset", "")
		advance(time.Hour)
		if got := len(p.deliveries()); got != before {
			t.Errorf("got %d webhooks after the reset, want none", got-before)
		}
	})
}

func TestResetEndsAWaitForAWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.answer = func(context.Context, delivery) (int, error) { return 503, nil }
		done := make(chan answer, 1)
		go func() {
			done <- p.call("POST", "/charges", "key-1", chargeBody("tok_webhook_first", "automatic"))
		}()
		synctest.Wait()
		p.control("reset", "")
		synctest.Wait()
		if len(done) != 1 {
			t.Error("the call still waits")
		}
	})
}

func TestResetLeavesAHangingCallHanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		done := make(chan answer, 1)
		go func() {
			done <- p.call("POST", "/charges", "key-1", chargeBody("tok_timeout_captured", "automatic"))
		}()
		advance(time.Second)
		p.control("reset", "")
		advance(time.Second)
		if len(done) != 0 {
			t.Error("the reset cut the call off: its client would send it again")
		}
		p.Close()
		wantStatus(t, "after the close", <-done, 0)
	})
}

func TestClosedServerAnswersNothingElse(t *testing.T) {
	p := newPSP(t)
	p.Close()
	p.Close()
	p.Reset()
	wantCode(t, "create", p.create("tok_captured", "automatic"), 503, "closed")
	wantCode(t, "control", p.call("POST", "/_control/reset", "", ""), 503, "closed")
}
