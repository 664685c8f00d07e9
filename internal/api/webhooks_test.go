package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/webhook"
)

// quarantined is a notification that tells other money than its payment, and the payment.
func (w *world) quarantined() (hook, id string) {
	w.t.Helper()
	id = w.pay(psptest.TokenPending)
	w.fake.Drain()
	e := w.fake.Push(psp.Event{Status: psp.StatusCaptured, Charge: psp.Charge{
		Reference: "ch_000001", PaymentID: id, Status: psp.StatusCaptured, Amount: money.Amount{Minor: 1, Currency: "JPY"}, Captured: 1,
	}})
	w.deliver()
	rows := w.send(request{method: http.MethodGet, path: "/v1/webhooks?status=quarantined", apiKey: operator}).rows(w.t)
	if len(rows) != 1 || rows[0]["event_id"] != e.ID || rows[0]["payment_id"] != id {
		w.t.Fatalf("got %v, want the notification", rows)
	}
	return rows[0]["id"].(string), id
}

func (w *world) operate(method, path, key string) response {
	w.t.Helper()
	return w.send(request{method: method, path: path, apiKey: operator, key: key})
}

func TestOperatorsReadNotificationsByStatus(t *testing.T) {
	w := newWorld(t)
	hook, id := w.quarantined()
	w.fake.Push(psp.Event{Status: psp.StatusCaptured, Charge: psp.Charge{Reference: "ch_x", PaymentID: absentID, Amount: money.Amount{Minor: 1, Currency: "JPY"}}})
	w.pay(psptest.TokenCaptured)
	w.deliver()
	for status, n := range map[string]int{"received": 1, "applied": 1, "ignored": 0, "quarantined": 1} {
		if rows := w.operate(http.MethodGet, "/v1/webhooks?status="+status, "").rows(t); len(rows) != n {
			t.Errorf("%s: got %v, want %d", status, rows, n)
		}
	}
	got := w.operate(http.MethodGet, "/v1/webhooks/"+hook, "")
	w.want(got, http.StatusOK, "")
	if got.str("id") != hook || got.str("psp") != "simulator" || got.str("type") != "charge.captured" || got.str("status") != "quarantined" || got.str("payment_id") != id {
		t.Errorf("got %s, want the notification", got.text)
	}
	for _, unknown := range []string{
		"x", "wh_", "wh_!", "wh_" + base64.RawURLEncoding.EncodeToString([]byte("simulator")),
		"wh_" + base64.RawURLEncoding.EncodeToString([]byte("simulator\x00")), "wh_" + base64.RawURLEncoding.EncodeToString([]byte("\x00e")),
		"wh_" + base64.RawURLEncoding.EncodeToString([]byte("simulator\x00none")),
	} {
		w.want(w.send(request{method: http.MethodGet, path: "/v1/webhooks/" + unknown, apiKey: operator, unchecked: true}), http.StatusNotFound, "not_found")
		w.want(w.send(request{method: http.MethodPost, path: "/v1/webhooks/" + unknown + "/replay", apiKey: operator, unchecked: true}), http.StatusNotFound, "not_found")
	}
}

func TestNotificationsAreListedNewestFirstPageByPage(t *testing.T) {
	w := newWorld(t)
	for range 5 {
		w.pay(psptest.TokenCaptured)
		w.deliver()
		w.clock.advance(1e9)
	}
	var all []string
	cursor := ""
	for range 10 {
		r := w.operate(http.MethodGet, "/v1/webhooks?status=applied&limit=2"+cursor, "")
		for _, row := range r.rows(t) {
			all = append(all, row["received_at"].(string))
		}
		if r.str("next_cursor") == "" {
			break
		}
		cursor = "&cursor=" + r.str("next_cursor")
	}
	if len(all) != 5 || all[0] <= all[4] {
		t.Errorf("got %v, want five, newest first", all)
	}
}

func TestAReplayDrivesANotificationOnOnce(t *testing.T) {
	w := newWorld(t)
	hook, _ := w.quarantined()
	path := "/v1/webhooks/" + hook + "/replay"
	first := w.operate(http.MethodPost, path, "k")
	w.want(first, http.StatusAccepted, "")
	if first.str("status") != "received" || first.header.Get("Location") != "/v1/webhooks/"+hook || first.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("got %s %v, want it received, with its Location", first.text, first.header)
	}
	psp, eventID, _ := webhook.ParseID(hook)
	if err := w.applier.Apply(t.Context(), psp, eventID); err != nil {
		t.Fatal(err)
	}
	again := w.operate(http.MethodPost, path, "k")
	if again.status != http.StatusAccepted || again.str("status") != "quarantined" || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %d %s, want the replay, without effect", again.status, again.text)
	}
	scope := idempotency.Scope{MerchantID: "@operator", Method: http.MethodPost, Route: path, Key: "k"}
	if _, err := w.table.Record(t.Context(), scope.MerchantID, scope.Hash()); err != nil {
		t.Errorf("got %v, want the record where no merchant's can be", err)
	}
	if other := w.operate(http.MethodPost, path, "k2"); other.str("status") != "received" {
		t.Errorf("got %s, want another key to drive it on again", other.text)
	}
	w.want(w.send(request{method: http.MethodPost, path: path, apiKey: operator, key: "k", body: `{"x":1}`}), http.StatusBadRequest, "invalid_request")
	w.clock.advance(idempotencyTTL)
	if late := w.operate(http.MethodPost, path, "k"); late.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("got a replay, want a use of its own after the key's time")
	}
	if again := w.operate(http.MethodPost, path, "k"); again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got no replay, want the key remembered anew")
	}
	w.want(w.send(request{method: http.MethodPost, path: path, apiKey: operator, body: `{}`}), http.StatusAccepted, "")
}

func TestAReplayOfAnAppliedNotificationHasNoEffect(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured)
	w.deliver()
	hook := w.hook()
	before := w.get("/v1/payments/" + id)
	for _, replayed := range []string{"", "true"} {
		got := w.operate(http.MethodPost, "/v1/webhooks/"+hook+"/replay", "k")
		w.want(got, http.StatusAccepted, "")
		if got.str("status") != "applied" || got.header.Get("Idempotent-Replayed") != replayed {
			t.Errorf("got %s %v, want it applied still", got.text, got.header)
		}
	}
	if after := w.get("/v1/payments/" + id); after.text != before.text {
		t.Errorf("got %s, want %s", after.text, before.text)
	}
}

func TestAReplayWakesANotificationThatWaits(t *testing.T) {
	w := newWorld(t)
	w.fake.Push(psp.Event{Status: psp.StatusCaptured, Charge: psp.Charge{Reference: "ch_x", PaymentID: absentID, Amount: money.Amount{Minor: 1, Currency: "JPY"}}})
	e := w.fake.Pending()[0]
	w.deliver()
	before, err := w.table.Item(t.Context(), "simulator", e.ID)
	if err != nil {
		t.Fatal(err)
	}
	got := w.operate(http.MethodPost, "/v1/webhooks/"+before.ID()+"/replay", "")
	w.want(got, http.StatusAccepted, "")
	after, err := w.table.Item(t.Context(), "simulator", e.ID)
	if err != nil || after.Wake != before.Wake+1 || after.Status != webhook.StatusReceived {
		t.Errorf("got %+v, %v, want it woken", after, err)
	}
}

func TestParallelReplaysUnderOneKeyDriveOnOnce(t *testing.T) {
	w := newWorld(t)
	hook, _ := w.quarantined()
	answers := make([]response, 8)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = w.operate(http.MethodPost, "/v1/webhooks/"+hook+"/replay", "k") })
	}
	all.Wait()
	firsts := 0
	for _, a := range answers {
		w.want(a, http.StatusAccepted, "")
		if a.header.Get("Idempotent-Replayed") == "" {
			firsts++
		}
	}
	name, eventID, _ := webhook.ParseID(hook)
	it, err := w.table.Item(t.Context(), name, eventID)
	if err != nil || firsts != 1 || it.Wake != 1 {
		t.Errorf("got %d first answers and wake %d, %v, want one", firsts, it.Wake, err)
	}
}

func TestAnOperatorsViewShowsNothingOfTheBody(t *testing.T) {
	w := newWorld(t)
	body := `{"id":"evt_canary","type":"canary.type","secret":"canary-secret"}`
	delivery := w.fake.Delivery(psptest.Event{ID: "evt_canary", Type: "canary.type"}, w.clock.now())
	delivery.Body = []byte(body)
	if _, err := w.ingest.Receive(t.Context(), "simulator", delivery); err != nil {
		t.Fatal(err)
	}
	if err := w.applier.Apply(t.Context(), "simulator", "evt_canary"); err != nil {
		t.Fatal(err)
	}
	rows := w.operate(http.MethodGet, "/v1/webhooks?status=ignored", "")
	one := w.operate(http.MethodGet, fmt.Sprint("/v1/webhooks/", rows.rows(t)[0]["id"]), "")
	if text := rows.text + one.text + w.logs.text(); strings.Contains(text, "canary-secret") {
		t.Errorf("got the body in %s", text)
	}
}
