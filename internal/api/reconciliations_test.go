package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/api"
	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// audited is the world with an auditor, and without a shop.
func audited(t *testing.T) *world {
	w := newWorld(t)
	n := int64(800_000)
	w.config.Reconciliations = &audit.Service{
		Store: w.table, Charges: w.charges, Providers: map[string]psp.Provider{"simulator": w.fake}, Listers: map[string]audit.Lister{"simulator": w.fake},
		Webhooks: map[string]psp.Webhooks{"simulator": w.fake}, ReconcileAfter: time.Minute,
		IdempotencyTTL: idempotencyTTL, NewULID: func() string { n++; return fmt.Sprintf("01KDYAK348M9S346Q3D2%06d", n) },
		Now: w.clock.now, Meter: meter{}, Log: w.config.Log,
	}
	w.config.ReconciliationLists = w.table
	w.api = api.New(w.config)
	return w
}

const reconcileAll = `{"psp":"simulator","from":"2026-01-02T03:00:00Z","repair":true}`

func (w *world) reconcile(key, body string) response {
	w.t.Helper()
	return w.send(request{method: http.MethodPost, path: "/v1/reconciliations", apiKey: operator, key: key, body: body})
}

func TestAReconciliationIsShownWithItsFindings(t *testing.T) {
	w := audited(t)
	silent := w.pay(psptest.TokenTimeoutCapturedSilent)
	first := w.reconcile("k", reconcileAll)
	w.want(first, http.StatusCreated, "")
	path := "/v1/reconciliations/" + first.str("id")
	if first.header.Get("Location") != path || first.str("status") != "completed" || fmt.Sprint(first.field("repaired")) != "1" {
		t.Errorf("got %v %s, want it completed with one repair", first.header, first.text)
	}
	again := w.reconcile("k", reconcileAll)
	if again.status != http.StatusCreated || again.str("id") != first.str("id") || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %d %s, want the same one", again.status, again.text)
	}
	w.want(w.reconcile("k", `{"psp":"simulator","from":"2026-01-02T03:00:00Z"}`), http.StatusUnprocessableEntity, "idempotency_key_reused")
	for _, read := range []response{w.operate(http.MethodGet, path, ""), again} {
		if read.text != first.text {
			t.Errorf("got %s, want %s", read.text, first.text)
		}
	}
	rows := w.operate(http.MethodGet, path+"/findings", "").rows(t)
	if len(rows) != 1 || rows[0]["kind"] != "status_differs" || rows[0]["payment_id"] != silent || rows[0]["repair"] != "recorded" || rows[0]["needs_review"] != false ||
		rows[0]["there"] != "captured, 10000 JPY captured of 10000 JPY" || rows[0]["here"] != "processing, 0 JPY captured of 10000 JPY" || rows[0]["line"] != nil {
		t.Errorf("got %v, want the difference and its repair", rows)
	}
	if got := w.get("/v1/payments/" + silent).str("status"); got != "captured" {
		t.Errorf("got %s, want captured", got)
	}
	second := w.reconcile("", reconcileAll)
	if second.str("id") == first.str("id") || fmt.Sprint(second.field("repaired")) != "0" {
		t.Errorf("got %s, want another one that finds nothing", second.text)
	}
	list := w.operate(http.MethodGet, "/v1/reconciliations?limit=1", "")
	if rows := list.rows(t); len(rows) != 1 || rows[0]["id"] != second.str("id") || list.str("next_cursor") == "" {
		t.Errorf("got %s, want the newest one and a next page", list.text)
	}
	next := w.operate(http.MethodGet, "/v1/reconciliations?cursor="+list.str("next_cursor"), "")
	if rows := next.rows(t); len(rows) != 1 || rows[0]["id"] != first.str("id") {
		t.Errorf("got %s, want the first one", next.text)
	}
}

func TestAReconciliationThatIsNotDoneIsAccepted(t *testing.T) {
	w := audited(t)
	w.pay(psptest.TokenCaptured)
	w.fake.Before(psptest.OperationList, psptest.Once(errSilence))
	first := w.reconcile("k", reconcileAll)
	w.want(first, http.StatusAccepted, "")
	if first.str("status") != "running" || first.header.Get("Retry-After") == "" || first.header.Get("Location") != "/v1/reconciliations/"+first.str("id") {
		t.Errorf("got %v %s, want it running, and where and when to look", first.header, first.text)
	}
	again := w.reconcile("k", reconcileAll)
	if again.status != http.StatusCreated || again.str("status") != "completed" || again.str("id") != first.str("id") {
		t.Errorf("got %d %s, want the same one done", again.status, again.text)
	}
}

// A webhook that disagrees is a finding that names it.
func TestAReconciliationShowsWhatWebhooksTold(t *testing.T) {
	w := audited(t)
	hook, id := w.quarantined()
	w.clock.advance(time.Minute)
	got := w.reconcile("", reconcileAll)
	w.want(got, http.StatusCreated, "")
	rows := w.operate(http.MethodGet, "/v1/reconciliations/"+got.str("id")+"/findings", "").rows(t)
	if len(rows) != 1 || rows[0]["kind"] != "amount_differs" || rows[0]["payment_id"] != id || rows[0]["webhook_id"] != hook || rows[0]["needs_review"] != true ||
		rows[0]["there"] != "charge.captured webhook, quarantined: captured, 1 JPY captured of 1 JPY" {
		t.Errorf("got %v, want the difference that the webhook tells of", rows)
	}
	if fmt.Sprint(got.field("webhooks")) != "1" {
		t.Errorf("got %s, want one webhook compared", got.text)
	}
}

// file is the body of a request with a settlement file.
func file(t *testing.T, psp, text string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"psp": psp, "file": text, "repair": true})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestASettlementFileIsUsedRowByRow(t *testing.T) {
	w := audited(t)
	fine, silent := w.pay(psptest.TokenCaptured), w.pay(psptest.TokenTimeoutCapturedSilent)
	charges := w.fake.Charges()
	text := "\ufeffcharge_id;payment_id;type;refund_id;amount;currency\r\n" +
		charges[0].Reference + ";" + fine + ";capture;;10000;JPY\r\n" +
		charges[1].Reference + ";" + silent + ";capture;;10000;JPY\r\n" +
		"ch_x;" + absentID + ";capture;;7;JPY\r\n" +
		charges[0].Reference + ";" + fine + ";refund;rf_x;10;JPY\r\n" +
		"ch_y;pay_y;capture;;1.5;JPY\r\n" + "ch_y;pay_y\r\n" + ";;fee;;3;JPY\r\n"
	got := w.reconcile("", file(t, "simulator", text))
	w.want(got, http.StatusCreated, "")
	bad := fmt.Sprint(got.field("bad_rows"))
	if bad != "[map[line:6 reason:the amount is none] map[line:7 reason:has another number of columns than the first row]]" || got.str("source") != "file" || got.field("from") != nil {
		t.Errorf("got %s, want the bad rows by line", got.text)
	}
	if fmt.Sprint(got.field("passed_over_row_count")) != "1" {
		t.Errorf("got %s, want the fee passed over", got.text)
	}
	found := map[string]string{}
	for _, row := range w.operate(http.MethodGet, "/v1/reconciliations/"+got.str("id")+"/findings", "").rows(t) {
		found[fmt.Sprint(row["line"])] = fmt.Sprint(row["kind"], " ", row["repair"], " ", row["needs_review"])
	}
	want := map[string]string{"3": "status_differs recorded false", "4": "missing_here <nil> true", "5": "refund_unmatched <nil> true"}
	if fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", found, want)
	}
	w.want(w.reconcile("", file(t, "stripe", text)), http.StatusBadRequest, "invalid_request")
	if got := w.reconcile("", file(t, "simulator", "a,b\n1,2\n")); got.status != http.StatusBadRequest || !strings.Contains(got.text, "payment_id, charge_id") {
		t.Errorf("got %d %s, want what the header lacks", got.status, got.text)
	}
}

func TestAReconciliationNeedsAPeriodThatIsRemembered(t *testing.T) {
	w := audited(t)
	for body, field := range map[string]string{
		`{}`:                  "psp",
		`{"psp":"simulator"}`: "from",
		`{"psp":"other","from":"2026-01-02T03:00:00Z"}`:                                 "psp",
		`{"psp":"simulator","from":"yesterday"}`:                                        "from",
		`{"psp":"simulator","from":1}`:                                                  "from",
		`{"psp":"simulator","from":"2025-10-04T03:04:04Z"}`:                             "from",
		`{"psp":"simulator","from":"2026-01-02T03:04:05Z"}`:                             "from",
		`{"psp":"simulator","from":"2026-01-02T03:00:00Z","to":"2026-01-02T02:00:00Z"}`: "from",
		`{"psp":"simulator","from":"2026-01-02T03:00:00Z","to":"2026-01-02T03:04:06Z"}`: "to",
		`{"psp":"simulator","file":"x","to":"2026-01-02T03:00:00Z"}`:                    "to",
		`{"psp":"simulator","from":"2026-01-02T03:00:00Z","repair":"yes"}`:              "repair",
		`{"psp":"simulator","from":"2026-01-02T03:00:00Z","repair":null}`:               "repair",
		`{"psp":"simulator","from":"2026-01-02T03:00:00Z","file":""}`:                   "file",
		`{"psp":"simulator","from":"2026-01-02T03:00:00Z","repairs":true}`:              "repairs",
		`{"psp":"unknown","file":"a,b\n"}`:                                              "psp",
	} {
		got := w.reconcile("", body)
		w.want(got, http.StatusBadRequest, "invalid_request")
		if !strings.Contains(got.text, `"`+field+`"`) {
			t.Errorf("%s: got %s, want %s named", body, got.text, field)
		}
	}
	for _, id := range []string{"rec_01KDYAK348M9S346Q3D2000009", "rec_", "x", "rec_%23", "rec_" + strings.Repeat("0", 3000)} {
		for _, path := range []string{"/v1/reconciliations/" + id, "/v1/reconciliations/" + id + "/findings"} {
			got := w.send(request{method: http.MethodGet, path: path, apiKey: operator, unchecked: true})
			w.want(got, http.StatusNotFound, "not_found")
		}
	}
	for _, r := range []request{
		{method: http.MethodGet, path: "/v1/reconciliations"},
		{method: http.MethodPost, path: "/v1/reconciliations", body: reconcileAll},
		{method: http.MethodGet, path: "/v1/reconciliations/rec_01KDYAK348M9S346Q3D2000009"},
	} {
		r.apiKey = alpha
		w.want(w.send(r), http.StatusForbidden, "forbidden")
	}
	w.clock.advance(time.Minute)
	w.want(w.reconcile("", `{"psp":"simulator","from":"2026-01-02T04:04:05+01:00"}`), http.StatusCreated, "")
}
