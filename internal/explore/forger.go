package explore

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/psp/simulator"
)

// Deliveries are signed as the simulator signs them, and verified by its adapter:
// what a delivery stands for is all that is the Fake's.

// elsewhere is another provider that the ingest knows.
const elsewhere = "elsewhere"

// secrets are what the providers sign with, and what a stranger might.
var secrets = map[string]string{provider: secretOf("simulator"), elsewhere: secretOf("elsewhere"), forgerName: secretOf("forger")}

func secretOf(name string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(name), 4)[:24])
}

// verifiers are the adapters that verify what arrives at each route.
var verifiers = sync.OnceValue(func() map[string]*simulator.Adapter {
	all := map[string]*simulator.Adapter{}
	for _, route := range []string{provider, elsewhere} {
		a, err := simulator.New(simulator.Config{
			BaseURL: "http://psp.example", Secrets: []string{secrets[route]}, Timeout: time.Second, Tolerance: durations.WebhookTolerance,
		})
		if err != nil {
			panic(err)
		}
		all[route] = a
	}
	return all
})

// hookPort is what a provider has to do with webhooks: what a notification stands
// for is the provider's business, and known as long as it lives.
type hookPort struct {
	w     *world
	route string
}

var _ psp.Webhooks = (*hookPort)(nil)

func (p *hookPort) Verify(d psp.Delivery) ([]psp.Notification, error) {
	return verifiers()[p.route].Verify(d)
}

func (p *hookPort) Acknowledge() psp.Acknowledgement { return verifiers()[p.route].Acknowledge() }

// meant is what a notification stands for.
type meant struct {
	event psp.Event
	err   error
}

func (p *hookPort) Parse(n psp.Notification) (psp.Event, error) {
	m := look(p.w, func(w *world) meant {
		if n.EventID == forgedEvent {
			return meant{w.forged(), nil}
		}
		e, err := w.psp.Parse(n)
		return meant{e, err}
	}, func(m meant) uint64 {
		h := digestCharge(m.event.Charge) ^ digestError(m.err)
		if r := m.event.Refund; r != nil {
			h = mix(h ^ digestRefund(*r))
		}
		return digestString(h, string(m.event.Status))
	})
	return m.event, m.err
}

// webhooks are the routes of the ingest. A mutant puts its defect in between.
func (w *world) webhooks() map[string]psp.Webhooks {
	routes := map[string]psp.Webhooks{}
	for _, route := range []string{provider, elsewhere} {
		routes[route] = &hookPort{w, route}
		if m := w.scenario.mutant; m != nil && m.Webhooks != nil {
			routes[route] = m.Webhooks(w, routes[route])
		}
	}
	return routes
}

// delivery is an event as its provider posts it at that time.
func (w *world) delivery(e psptest.Event, at time.Time) psp.Delivery {
	body := w.psp.Delivery(e, at).Body
	return psp.Delivery{Header: psptest.SignStandard(secrets[provider], e.ID, at, body), Body: body, ReceivedAt: at}
}

const (
	forgerName  = "forger"
	forgedEvent = "evt_forged"
)

// forged is what a forger wants to be believed: that the first payment is paid.
func (w *world) forged() psp.Event {
	id, _ := w.first()
	all := money.Amount{Minor: amount, Currency: "JPY"}
	return psp.Event{Status: psp.StatusCaptured, Charge: psp.Charge{
		Reference: "ch_forged", PaymentID: string(id), Status: psp.StatusCaptured, Amount: all, Captured: all.Minor,
	}}
}

// forgery is one post of a forger, who knows the whole house but no secret, and has
// read a delivery off the wire.
type forgery struct {
	name string
	post func(now time.Time, read psptest.Event, body []byte) (route string, d psp.Delivery)
}

var forgedBody = []byte(`{"id":"` + forgedEvent + `","type":"charge.captured"}`)

func forgeries() []forgery {
	signed := func(secret, id string, at, now time.Time, body []byte) psp.Delivery {
		return psp.Delivery{Header: psptest.SignStandard(secret, id, at, body), Body: body, ReceivedAt: now}
	}
	tooFar := durations.WebhookTolerance + time.Second
	return []forgery{
		{"an event without a signature", func(now time.Time, _ psptest.Event, _ []byte) (string, psp.Delivery) {
			return provider, psp.Delivery{Header: http.Header{"Content-Type": {"application/json"}}, Body: forgedBody, ReceivedAt: now}
		}},
		{"an event with another secret", func(now time.Time, _ psptest.Event, _ []byte) (string, psp.Delivery) {
			return provider, signed(secrets[forgerName], forgedEvent, now, now, forgedBody)
		}},
		{"an event signed by another provider", func(now time.Time, _ psptest.Event, _ []byte) (string, psp.Delivery) {
			return provider, signed(secrets[elsewhere], forgedEvent, now, now, forgedBody)
		}},
		{"a delivery that is old", func(now time.Time, e psptest.Event, body []byte) (string, psp.Delivery) {
			return provider, signed(secrets[provider], e.ID, now.Add(-tooFar), now, body)
		}},
		{"a delivery from the future", func(now time.Time, e psptest.Event, body []byte) (string, psp.Delivery) {
			return provider, signed(secrets[provider], e.ID, now.Add(tooFar), now, body)
		}},
		{"another body under a signature", func(now time.Time, e psptest.Event, body []byte) (string, psp.Delivery) {
			d := signed(secrets[provider], e.ID, now, now, body)
			d.Body = forgedBody
			return provider, d
		}},
		{"a delivery under another event's id", func(now time.Time, e psptest.Event, body []byte) (string, psp.Delivery) {
			d := signed(secrets[provider], e.ID, now, now, body)
			d.Header.Set("webhook-id", forgedEvent)
			return provider, d
		}},
		{"a delivery at another provider's route", func(now time.Time, e psptest.Event, body []byte) (string, psp.Delivery) {
			return elsewhere, signed(secrets[provider], e.ID, now, now, body)
		}},
		{"a delivery at no provider's route", func(now time.Time, e psptest.Event, body []byte) (string, psp.Delivery) {
			return "nobody", signed(secrets[provider], e.ID, now, now, body)
		}},
	}
}

// forger posts to the ingest, between whatever else happens, once there is an event
// that it has read.
func forger() *actor {
	return &actor{name: forgerName, body: func(w *world) {
		for _, f := range forgeries() {
			read, _ := w.do(&call{
				name: func() string { return "posts " + f.name }, guard: func(w *world) bool { return len(w.told) > 0 },
				run: func(w *world) any { return w.told[0] }, digest: digestEvent,
			}).(psptest.Event)
			route, d := f.post(w.time(), read, w.psp.Delivery(read, w.now).Body)
			_, err := w.ingest.Receive(background(), route, d)
			w.effect(err, func(w *world) {
				w.reach("forgery")
				if err == nil {
					w.violate("S-EVENT-AUTH", "%s is acknowledged", f.name)
				}
			})
		}
	}}
}

// checkEventAuth is S-EVENT-AUTH where it matters: nothing is written for a forger,
// and every stored notification is one that its provider sent.
func (w *world) checkEventAuth(stored string) {
	if w.mover == forgerName {
		w.violate("S-EVENT-AUTH", "a forger's delivery wrote %s", stored)
	}
	id, isHook := strings.CutPrefix(stored, "WEBHOOK#"+provider+"#")
	if !isHook {
		if strings.HasPrefix(stored, "WEBHOOK#") {
			w.violate("S-EVENT-AUTH", "%s was sent to another", stored)
		}
		return
	}
	for _, e := range w.told {
		if e.ID == id {
			return
		}
	}
	w.violate("S-EVENT-AUTH", "%s was never sent", stored)
}
