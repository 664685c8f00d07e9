package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/api"
	"github.com/kessai/kessai/internal/delivery"
	"github.com/kessai/kessai/internal/delivery/webhookclient"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/telemetry"
)

// answers is a merchant's server that always gives the same.
type answers struct {
	status int
	err    error
}

func (a answers) Post(context.Context, delivery.Message) (int, error) { return a.status, a.err }

// withEvents is a world whose API delivers to a server.
func withEvents(t *testing.T, server answers) (*world, *delivery.Service) {
	t.Helper()
	w := newWorld(t)
	service := &delivery.Service{
		Store: w.table, Poster: server, IdempotencyTTL: 24 * time.Hour, NewSecret: webhookclient.NewSecret, Now: w.config.Now,
		Spread: func(d time.Duration) time.Duration { return d }, Meter: telemetry.Discard{}, Log: w.config.Log,
	}
	w.config.Deliveries, w.config.Feed, w.config.CheckEndpoint = service, w.table, webhookclient.New(false).CheckURL
	w.api = api.New(w.config)
	return w, service
}

const endpointPath = "/v1/webhook_endpoint"

func (w *world) put(path, body string) response {
	w.t.Helper()
	return w.send(request{method: http.MethodPut, path: path, apiKey: alpha, body: body})
}

func TestAnEndpointShowsItsSecretOnce(t *testing.T) {
	w, _ := withEvents(t, answers{status: 200})
	w.want(w.get(endpointPath), http.StatusNotFound, "not_found")
	first := w.put(endpointPath, `{"url":"https://shop.example/hook","events":["payment.captured","payment.captured"]}`)
	w.want(first, http.StatusOK, "")
	if !strings.Contains(first.text, `"secret":"whsec_`) || !strings.Contains(first.text, `"events":["payment.captured"]`) {
		t.Errorf("got %s, want a secret and the type once", first.text)
	}
	for _, r := range []response{w.put(endpointPath, `{"url":"https://shop.example/hook"}`), w.get(endpointPath)} {
		w.want(r, http.StatusOK, "")
		if strings.Contains(r.text, "whsec_") || !strings.Contains(r.text, `"events":["*"]`) {
			t.Errorf("got %s, want no secret and all types", r.text)
		}
	}
	rotated := w.post(endpointPath+"/rotate", "")
	w.want(rotated, http.StatusOK, "")
	if !strings.Contains(rotated.text, "whsec_") || strings.Contains(rotated.text, "whsec_x") {
		t.Errorf("got %s, want a new secret", rotated.text)
	}
}

func TestWhatIsNoEndpointIsRefused(t *testing.T) {
	w, _ := withEvents(t, answers{status: 200})
	for _, body := range []string{
		`{}`, `{"url":""}`, `{"url":"http://shop.example"}`, `{"url":"https://127.0.0.1/"}`, `{"url":"https://10.0.0.8/x"}`, `{"url":"https://a:b@shop.example"}`,
		`{"url":"https://shop.example","events":[]}`, `{"url":"https://shop.example","events":["nothing"]}`, `{"url":"https://shop.example","events":"*"}`,
		`{"url":"https://shop.example","secret":"mine"}`,
	} {
		w.want(w.put(endpointPath, body), http.StatusBadRequest, "invalid_request")
	}
	w.want(w.get(endpointPath), http.StatusNotFound, "not_found")
}

func TestATestMessageSaysHowItWent(t *testing.T) {
	w, _ := withEvents(t, answers{err: errors.New("no answer in time")})
	w.want(w.post(endpointPath+"/test", ""), http.StatusNotFound, "not_found")
	w.want(w.put(endpointPath, `{"url":"https://shop.example/hook"}`), http.StatusOK, "")
	r := w.post(endpointPath+"/test", "")
	w.want(r, http.StatusOK, "")
	if !strings.Contains(r.text, `"http_status":null,"reason":"no answer in time"`) {
		t.Errorf("got %s, want why there was no answer", r.text)
	}
}

func TestTheFeedShowsAMerchantsOwnEventsAndTheirDelivery(t *testing.T) {
	w, service := withEvents(t, answers{status: 204})
	w.want(w.put(endpointPath, `{"url":"https://shop.example/hook"}`), http.StatusOK, "")
	id := w.pay(psptest.TokenCaptured)
	var ids []string
	for version := int64(1); version <= 2; version++ {
		e, err := w.table.Event(t.Context(), outbox.EventID(id, version))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
		for _, do := range []error{service.Announce(t.Context(), e), service.Deliver(t.Context(), e.MerchantID, e.ID)} {
			if do != nil {
				t.Fatal(do)
			}
		}
	}
	all := w.get("/v1/events")
	w.want(all, http.StatusOK, "")
	if !strings.Contains(all.text, ids[0]) || !strings.Contains(all.text, ids[1]) {
		t.Errorf("got %s, want both events", all.text)
	}
	for query, want := range map[string]bool{"?after=" + ids[0]: false, "?type=payment.created": true, "?type=payment.refunded": false} {
		if r := w.get("/v1/events" + query); strings.Contains(r.text, ids[0]) != want {
			t.Errorf("%s: got %s, want the first event in it: %v", query, r.text, want)
		}
	}
	one := w.get("/v1/events/" + ids[1])
	w.want(one, http.StatusOK, "")
	if !strings.Contains(one.text, `"delivery":{"status":"succeeded","attempts":1`) {
		t.Errorf("got %s, want its delivery", one.text)
	}
	w.want(w.post("/v1/events/"+ids[1]+"/redeliver", ""), http.StatusAccepted, "")
	w.want(w.get("/v1/events?after=evt_nothing"), http.StatusBadRequest, "invalid_request")
	for _, foreign := range []string{ids[0], outbox.EventID(string(payment.ID(id)), 9), "evt_x"} {
		w.want(w.send(request{method: http.MethodGet, path: "/v1/events/" + foreign, apiKey: beta}), http.StatusNotFound, "not_found")
	}
	if r := w.send(request{method: http.MethodGet, path: "/v1/events", apiKey: beta}); strings.Contains(r.text, id) {
		t.Errorf("got %s, want nothing of another merchant", r.text)
	}
}
