package simulator_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestFaultsTakeTheNextCallsWithoutEffect(t *testing.T) {
	for _, operation := range []string{"charge", "capture", "cancel", "refund", "lookup"} {
		t.Run(operation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPSP(t)
				held := p.mustCreate("tok_captured", "manual").ID
				taken := decode[charge](t, p.call("POST", "/charges", "key-0", chargeBody("tok_captured", "automatic")).body).ID
				attempt := func() answer {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					switch operation {
					case "charge":
						return p.callFor(ctx, "POST", "/charges", "key-2", chargeBody("tok_captured", "automatic"))
					case "capture", "cancel":
						return p.callFor(ctx, "POST", "/charges/"+held+"/"+operation, "key-2", "{}")
					case "refund":
						return p.callFor(ctx, "POST", "/charges/"+taken+"/refunds", "key-2", "{}")
					}
					return p.callFor(ctx, "GET", "/charges/"+taken, "", "")
				}
				before := p.call("GET", "/_control/charges", "", "").body
				for _, status := range []int{500, 0, 429, 400} {
					p.control("faults", fmt.Sprintf(`{"operation":%q,"times":2,"status":%d}`, operation, status))
					for range 2 {
						a := attempt()
						wantStatus(t, "faulted", a, status)
						if (status == 429) != (a.header.Get("Retry-After") == "1") {
							t.Errorf("got Retry-After %q with %d", a.header.Get("Retry-After"), status)
						}
					}
				}
				advance(time.Minute)
				if got := p.call("GET", "/_control/charges", "", "").body; got != before {
					t.Errorf("a faulted call had an effect: got %s, want %s", got, before)
				}
				if a := attempt(); a.status/100 != 2 || a.header.Get("Idempotent-Replayed") != "" {
					t.Errorf("afterwards: got %d %s, want done", a.status, a.body)
				}
			})
		})
	}
}

func TestFaultReplacesTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.control("faults", `{"operation":"lookup","times":100,"status":503}`)
		p.control("faults", `{"operation":"charge"}`)
		wantStatus(t, "look-up", p.call("GET", "/charges", "", ""), 503)
		p.control("faults", `{"operation":"lookup","times":1,"status":500}`)
		wantStatus(t, "look-up", p.call("GET", "/charges", "", ""), 500)
		wantStatus(t, "look-up", p.call("GET", "/charges", "", ""), 200)
		p.control("faults", `{"operation":"lookup","times":5}`)
		p.control("faults", `{"operation":"lookup","times":0}`)
		wantStatus(t, "look-up", p.call("GET", "/charges", "", ""), 200)
		wantStatus(t, "another operation", p.create("tok_captured", "automatic"), 500)
	})
}
