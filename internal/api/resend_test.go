package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/api"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/telemetry"
)

// recovering is a world whose operator can send events again.
func recovering(t *testing.T) (*world, *outbox.Recoverer) {
	t.Helper()
	w, _ := withEvents(t, answers{status: 200})
	r := &outbox.Recoverer{
		Gaps: w.table, Rows: w.table, Records: w.table, IdempotencyTTL: idempotencyTTL, Now: w.clock.now, Meter: telemetry.Discard{}, Log: w.config.Log,
	}
	w.config.Recovery = r
	w.api = api.New(w.config)
	return w, r
}

const resendPath = "/v1/events/resend"

func (w *world) resend(key, body string) response {
	w.t.Helper()
	return w.send(request{method: http.MethodPost, path: resendPath, apiKey: operator, key: key, body: body})
}

func TestAnOperatorSendsTheEventsOfATimeAgain(t *testing.T) {
	w, recoverer := recovering(t)
	w.want(w.operate(http.MethodGet, resendPath, ""), http.StatusNotFound, "not_found")
	w.want(w.send(create("", order)), http.StatusCreated, "")
	w.clock.advance(time.Minute)
	const body = `{"from":"2026-01-02T03:04:00Z","to":"2026-01-02T03:05:00Z"}`
	first := w.resend("k", body)
	w.want(first, http.StatusAccepted, "")
	if first.str("status") != "pending" || first.str("from") != "2026-01-02T03:04:00Z" || first.str("to") != "2026-01-02T03:05:00Z" || first.header.Get("Location") != resendPath {
		t.Errorf("got %s, want it pending", first.text)
	}
	if again := w.resend("k", body); again.text != first.text || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %s, want the replay of %s", again.text, first.text)
	}
	w.want(w.resend("k", `{"from":"2026-01-02T03:04:00Z","to":"2026-01-02T03:04:30Z"}`), http.StatusUnprocessableEntity, "idempotency_key_reused")
	merged := w.resend("", `{"from":"2026-01-02T02:00:00Z","to":"2026-01-02T03:04:30Z"}`)
	if merged.str("from") != "2026-01-02T02:00:00Z" || merged.str("to") != "2026-01-02T03:05:00Z" {
		t.Errorf("got %s, want one time that holds both", merged.text)
	}
	if err := recoverer.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := w.operate(http.MethodGet, resendPath, "")
	w.want(done, http.StatusOK, "")
	if done.str("status") != "completed" || done.field("events") != float64(2) || done.field("next_at") != nil {
		t.Errorf("got %s, want both events of the payment sent", done.text)
	}
}

func TestATimeToSendAgainIsOverAndBounded(t *testing.T) {
	w, _ := recovering(t)
	for body, field := range map[string]string{
		`{}`:                              "from",
		`{"from":"2026-01-02T03:00:00Z"}`: "to",
		`{"from":"yesterday","to":"2026-01-02T03:00:00Z"}`:                               "from",
		`{"from":"2026-01-02T03:00:00Z","to":1}`:                                         "to",
		`{"from":"2026-01-02T03:00:00Z","to":"2026-01-02T03:00:00Z"}`:                    "from",
		`{"from":"2026-01-02T03:00:00Z","to":"2026-01-02T03:04:06Z"}`:                    "to",
		`{"from":"2025-10-04T02:59:59Z","to":"2026-01-02T03:00:00Z"}`:                    "from",
		`{"from":"2026-01-02T02:00:00Z","to":"2026-01-02T03:00:00Z","merchant_id":"al"}`: "merchant_id",
	} {
		got := w.resend("", body)
		w.want(got, http.StatusBadRequest, "invalid_request")
		if !strings.Contains(got.text, `"`+field+`"`) {
			t.Errorf("%s: got %s, want %s named", body, got.text, field)
		}
	}
	w.want(w.operate(http.MethodGet, resendPath, ""), http.StatusNotFound, "not_found")
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		got := w.send(request{method: method, path: resendPath, apiKey: alpha, body: `{"from":"2026-01-02T02:00:00Z","to":"2026-01-02T03:00:00Z"}`})
		w.want(got, http.StatusForbidden, "forbidden")
	}
}
