package console_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/console"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store/memory"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/webhook"
)

const operatorKey = "sk_test_operator"

type world struct {
	t     *testing.T
	h     *console.Handler
	table *payments.Table
	now   time.Time
	log   bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	clock := func() time.Time { return w.now }
	w.table = payments.New(memory.New(memory.Options{Now: clock}))
	checkouts := &checkout.Service{Store: w.table, Starter: starter{}, Now: clock, Log: slog.New(slog.DiscardHandler)}
	n := 0
	w.h = console.New(console.Config{
		Table: w.table, Checkouts: checkouts, Now: clock, Log: slog.New(slog.NewJSONHandler(&w.log, nil)), Insecure: true,
		Keys:     func(context.Context) ([]string, error) { return []string{"", operatorKey}, nil },
		NewULID:  func() string { n++; return strings.Repeat("0", 25) + string(rune('0'+n%10)) },
		Webhooks: webhook.Settings{Wait: time.Hour},
	})
	return w
}

type visit struct {
	method, path, query, body, bearer, cookie string
}

func (w *world) visit(v visit) events.APIGatewayV2HTTPResponse {
	w.t.Helper()
	e := events.APIGatewayV2HTTPRequest{RawPath: v.path, RawQueryString: v.query, Body: v.body, Headers: map[string]string{}}
	e.RequestContext.HTTP.Method = v.method
	if v.bearer != "" {
		e.Headers["authorization"] = "Bearer " + v.bearer
	}
	if v.cookie != "" {
		e.Cookies = []string{v.cookie}
	}
	response, err := w.h.Handle(w.t.Context(), e)
	if err != nil {
		w.t.Fatal(err)
	}
	return response
}

// login returns the cookie of a session.
func (w *world) login() string {
	w.t.Helper()
	r := w.visit(visit{method: "POST", path: "/console/login", body: url.Values{"key": {operatorKey}}.Encode()})
	if r.StatusCode != 303 || len(r.Cookies) != 1 {
		w.t.Fatalf("got %d and cookies %q, want a redirect with a cookie", r.StatusCode, r.Cookies)
	}
	if !strings.Contains(r.Cookies[0], "HttpOnly") || !strings.Contains(r.Cookies[0], "SameSite=Strict") {
		w.t.Errorf("got cookie %q, want it HttpOnly and SameSite=Strict", r.Cookies[0])
	}
	cookie, _, _ := strings.Cut(r.Cookies[0], ";")
	return cookie
}

var tokenOf = regexp.MustCompile(`name="token" value="([^"]+)"`)

func TestWithoutTheKeyThereIsOnlyALoginPage(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/console", "/console/", "/console/webhooks", "/console/payments/pay_00000000000000000000000000", "/console/nothing"} {
		r := w.visit(visit{method: "GET", path: path})
		if r.StatusCode != 200 || !strings.Contains(r.Body, `type="password"`) || strings.Contains(r.Body, "Quarantined") {
			t.Errorf("%s: got %d, want a login page and nothing else", path, r.StatusCode)
		}
	}
}

func TestAWrongKeyIsRefused(t *testing.T) {
	w := newWorld(t)
	for _, v := range []visit{
		{method: "GET", path: "/console", bearer: "sk_test_alpha"},
		{method: "GET", path: "/console", bearer: " "},
		{method: "POST", path: "/console/login", body: "key=sk_test_alpha"},
		{method: "POST", path: "/console/login", body: "key="},
	} {
		if r := w.visit(v); r.StatusCode != 401 || len(r.Cookies) != 0 || strings.Contains(r.Body, "Quarantined") {
			t.Errorf("%+v: got %d, want 401", v, r.StatusCode)
		}
	}
}

func TestTheKeyOrASessionOpensTheOverview(t *testing.T) {
	w := newWorld(t)
	for _, v := range []visit{{method: "GET", path: "/console", bearer: operatorKey}, {method: "GET", path: "/console", cookie: w.login()}} {
		r := w.visit(v)
		if r.StatusCode != 200 || !strings.Contains(r.Body, "Quarantined webhooks") || !strings.HasPrefix(r.Headers["Content-Type"], "text/html") {
			t.Errorf("got %d, want the overview in HTML", r.StatusCode)
		}
	}
}

func TestASessionEndsAndCannotBeForged(t *testing.T) {
	w := newWorld(t)
	cookie := w.login()
	for _, forged := range []string{cookie + "x", "kessai_console=99999999999." + cookie[len(cookie)-43:], "kessai_console=", "kessai_console=99999999999."} {
		if r := w.visit(visit{method: "GET", path: "/console", cookie: forged}); strings.Contains(r.Body, "Quarantined") {
			t.Errorf("cookie %q opens the console", forged)
		}
	}
	w.now = w.now.Add(8 * time.Hour)
	if r := w.visit(visit{method: "GET", path: "/console", cookie: cookie}); strings.Contains(r.Body, "Quarantined") {
		t.Error("a session outlives its time")
	}
}

func (w *world) quarantine() webhook.Item {
	w.t.Helper()
	it := webhook.Item{PSP: "simulator", EventID: "evt_1", Type: "charge.captured", Body: []byte(`{"secret":"canary"}`), Status: webhook.StatusReceived, ReceivedAt: w.now, DueAt: w.now}
	if _, err := w.table.Receive(w.t.Context(), it); err != nil {
		w.t.Fatal(err)
	}
	it.Status, it.Reason = webhook.StatusQuarantined, "never matched a payment"
	if err := w.table.Save(w.t.Context(), it); err != nil {
		w.t.Fatal(err)
	}
	return it
}

func TestReplayNeedsTheSessionsOwnForm(t *testing.T) {
	w := newWorld(t)
	it := w.quarantine()
	cookie := w.login()
	path := "/console/webhooks/" + it.ID()
	shown := w.visit(visit{method: "GET", path: path, cookie: cookie})
	if !strings.Contains(shown.Body, "never matched a payment") || strings.Contains(shown.Body, "canary") {
		t.Errorf("got page\n%s\nwant the reason and nothing of the body", shown.Body)
	}
	for _, token := range []string{"", "forged"} {
		r := w.visit(visit{method: "POST", path: path + "/replay", cookie: cookie, body: url.Values{"token": {token}, "key": {"k"}}.Encode()})
		if r.StatusCode != 403 {
			t.Errorf("token %q: got %d, want 403", token, r.StatusCode)
		}
	}
	token := tokenOf.FindStringSubmatch(shown.Body)[1]
	form := url.Values{"token": {token}, "key": {"k"}}.Encode()
	for range 2 { // the second click changes nothing
		if r := w.visit(visit{method: "POST", path: path + "/replay", cookie: cookie, body: form}); r.StatusCode != 303 {
			t.Fatalf("got %d, want a redirect", r.StatusCode)
		}
	}
	got, err := w.table.Item(t.Context(), it.PSP, it.EventID)
	if err != nil || got.Status != webhook.StatusReceived || got.Wake != 1 {
		t.Errorf("got %s woken %d times (%v), want received once more", got.Status, got.Wake, err)
	}
}

func TestAPaymentsPageShowsItsJournalAndNoSecret(t *testing.T) {
	w := newWorld(t)
	id := payment.ID("pay_01M8NMNTP8PBAY5NFWEAWXN6KQ")
	p, row := payment.NewSent(payment.Terms{
		ID: id, MerchantID: "alpha", Amount: money.Amount{Minor: 500, Currency: "JPY"}, CaptureMethod: payment.CaptureAutomatic,
		PaymentMethod: "tok_canary", PSP: "simulator", ExpiresAt: w.now.Add(time.Hour),
	}, w.now)
	p.DueAt = w.now
	must(t, w.table.Commit(t.Context(), journal.Change{
		After: p, Row: row, Source: journal.SourceAPI,
		Claim: &idempotency.Claim{Record: idempotency.Record{MerchantID: "alpha", Hash: "h", ResourceID: string(id), CreatedAt: w.now, InProgressUntil: w.now}},
	}))
	next, row, _, err := p.Apply(payment.Event{
		Type: payment.EventActionRequired, At: w.now, Amount: p.Amount, PSPReference: "ch_1",
		RedirectURL: "https://psp.example/canary", ClientSecret: "canary",
	})
	must(t, err)
	must(t, w.table.Commit(t.Context(), journal.Change{Before: p, After: next, Row: row, Source: journal.SourceAPI}))
	r := w.visit(visit{method: "GET", path: "/console/payments/" + string(id), bearer: operatorKey})
	if r.StatusCode != 200 || !strings.Contains(r.Body, "payment.requires_action") || strings.Contains(r.Body, "canary") {
		t.Errorf("got %d\n%s\nwant the journal and no secret", r.StatusCode, r.Body)
	}
	if r := w.visit(visit{method: "GET", path: "/console/find", query: "id=" + string(id), bearer: operatorKey}); r.Headers["Location"] != "/console/payments/"+string(id) {
		t.Errorf("got location %q, want the payment's page", r.Headers["Location"])
	}
	if r := w.visit(visit{method: "GET", path: "/console/payments/pay_absent", bearer: operatorKey}); r.StatusCode != 404 {
		t.Errorf("got %d for an absent payment, want 404", r.StatusCode)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
