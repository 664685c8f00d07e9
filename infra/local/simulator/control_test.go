package simulator_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// discard is an http.ResponseWriter that keeps nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// newRequest is a POST with key key-1.
func newRequest(ctx context.Context, path, body string) *http.Request {
	request, err := http.NewRequestWithContext(ctx, "POST", path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Idempotency-Key", "key-1")
	return request
}

func TestPausedWebhooksAreKeptAndSentOnResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.control("webhooks/pause", "")
		p.control("webhooks/pause", "")
		began := time.Now()
		c := p.mustCreate("tok_webhook_first", "manual")
		wantStatus(t, "capture", p.call("POST", "/charges/"+c.ID+"/capture", "", ""), 200)
		p.control("webhooks", `{"event":{"id":"evt_x","type":"dispute.opened"}}`)
		if got := time.Since(began); got != 0 {
			t.Errorf("something waited %s for a paused webhook", got)
		}
		advance(time.Hour)
		wantKinds(t, p)
		p.control("webhooks/resume", "")
		p.control("webhooks/resume", "")
		synctest.Wait()
		got := p.kinds()
		slices.Sort(got)
		if want := []string{"charge.authorized", "charge.captured", "dispute.opened"}; !slices.Equal(got, want) {
			t.Errorf("after resume: got %q, want %q", got, want)
		}
		for _, d := range p.deliveries() {
			if err := verify(d, time.Now()); err != nil {
				t.Errorf("%s: %v", d.kind, err)
			}
		}
	})
}

func TestPauseEndsAWaitForAWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.answer = func(context.Context, delivery) (int, error) { return 503, nil }
		done := make(chan answer, 1)
		go func() {
			done <- p.call("POST", "/charges", "key-1", chargeBody("tok_webhook_first", "automatic"))
		}()
		synctest.Wait()
		p.control("webhooks/pause", "")
		synctest.Wait()
		if len(done) != 1 {
			t.Fatal("the call still waits")
		}
		attempts := len(p.deliveries())
		advance(time.Minute)
		if got := len(p.deliveries()); got != attempts {
			t.Errorf("got %d attempts while paused, want none", got-attempts)
		}
	})
}

func TestPauseCanBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		for i := range 3 {
			p.control("webhooks/pause", "")
			body := strings.Replace(chargeBody("tok_captured", "automatic"), "5000", fmt.Sprint(i+1), 1)
			wantStatus(t, "create", p.call("POST", "/charges", fmt.Sprint("key-", i), body), 201)
			advance(time.Minute)
			if got := len(p.deliveries()); got != i {
				t.Fatalf("paused: got %d webhooks, want %d", got, i)
			}
			p.control("webhooks/resume", "")
			synctest.Wait()
			if got := len(p.deliveries()); got != i+1 {
				t.Fatalf("resumed: got %d webhooks, want %d", got, i+1)
			}
		}
	})
}

func TestAnyEventCanBeSent(t *testing.T) {
	for what, event := range map[string]string{
		"dispute":         `{"id":"evt_1","type":"dispute.opened","created":1,"data":{"charge":{"id":"ch_1"},"dispute":{"id":"dp_1","amount":5000,"status":"open"}}}`,
		"odd white space": "{ \"id\" :\t\"evt_1\",\n \"z\":1, \"a\":\"\\u00e9\", \"a\":2 }",
		"unknown type":    `{"id":"evt_1","type":"weather.changed"}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPSP(t)
			p.control("webhooks", `{"event":`+event+`}`)
			synctest.Wait()
			got := p.deliveries()
			if len(got) != 1 || string(got[0].body) != event || got[0].id != "evt_1" {
				t.Fatalf("%s: got %+v, want it byte for byte as evt_1", what, got)
			}
			if err := verify(got[0], time.Now()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

func TestNonsenseCanBeSent(t *testing.T) {
	for _, event := range []string{`{}`, `[]`, `null`, `"text"`, `{"id":7}`, `{"id":""}`} {
		synctest.Test(t, func(t *testing.T) {
			p := newPSP(t)
			p.control("webhooks", `{"event":`+event+`}`)
			synctest.Wait()
			got := p.deliveries()
			if len(got) != 1 || string(got[0].body) != event || !strings.HasPrefix(got[0].id, "evt_") {
				t.Fatalf("%s: got %+v, want it byte for byte with an id made for it", event, got)
			}
		})
	}
}

func TestUnsignedEventIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.answer = func(context.Context, delivery) (int, error) { return 401, nil }
		p.control("webhooks", `{"event":{"id":"evt_1"},"sign":false}`)
		advance(time.Hour)
		got := p.deliveries()
		if len(got) != 1 || got[0].signature != "" || got[0].id != "evt_1" || got[0].timestamp == "" {
			t.Errorf("got %+v, want one delivery without signature", got)
		}
	})
}

func TestSentEventIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.answer = func(context.Context, delivery) (int, error) {
			if len(p.deliveries()) < 3 {
				return 503, nil
			}
			return 200, nil
		}
		p.control("webhooks", `{"event":{"id":"evt_1","type":"x"}}`)
		advance(time.Hour)
		wantKinds(t, p, "x", "x", "x")
	})
}

func TestSentEventCanBeDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		began := time.Now()
		p.control("webhooks", `{"event":{"id":"evt_1","type":"x"},"delay_ms":1500}`)
		if time.Since(began) != 0 {
			t.Error("the answer waited for the delay")
		}
		advance(1499 * time.Millisecond)
		wantKinds(t, p)
		advance(time.Millisecond)
		wantKinds(t, p, "x")
	})
}

func TestInvalidControlCallsAreRefused(t *testing.T) {
	p := newPSP(t)
	for _, test := range []struct{ path, body string }{
		{"webhooks", ``},
		{"webhooks", `{"event":`},
		{"webhooks", `{}`},
		{"webhooks", `{"event":{"id":"a\nb"}}`},
		{"webhooks", `{"event":{},"sign":"no"}`},
		{"webhooks", `{"event":{},"delay_ms":-1}`},
		{"webhooks", `{"event":{},"delay_ms":600001}`},
		{"faults", `{}`},
		{"faults", `{"operation":"payout"}`},
		{"faults", `{"operation":"refund","times":-1}`},
		{"faults", `{"operation":"refund","status":200}`},
		{"faults", `{"operation":"refund","status":600}`},
	} {
		wantStatus(t, test.path+" "+test.body, p.call("POST", "/_control/"+test.path, "", test.body), 400)
	}
	if got := len(p.deliveries()); got != 0 {
		t.Errorf("got %d webhooks, want none", got)
	}
}

// row is the test's own reading of a recorded call.
type row struct {
	At             string
	Method         string
	Path           string
	IdempotencyKey *string `json:"idempotency_key"`
	Body           map[string]any
	Status         *int
}

func (p *psp) calls() []row {
	p.t.Helper()
	return decode[struct{ Data []row }](p.t, p.call("GET", "/_control/calls", "", "").body).Data
}

func TestCallsAreShownAsTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		c := p.mustCreate("tok_captured", "automatic")
		p.call("GET", "/charges?reference=pay_1", "", "")
		p.call("POST", "/charges/"+c.ID+"/cancel", "key-2", "")
		p.call("POST", "/charges", "key-3", `{"amount":`)
		p.call("DELETE", "/nowhere", "", "[]")
		at := time.Now().UTC().Format(time.RFC3339)
		want := `{"object":"list","data":[` +
			`{"at":"` + at + `","method":"POST","path":"/charges","idempotency_key":"key-1","body":` + chargeBody("tok_captured", "automatic") + `,"status":201},` +
			`{"at":"` + at + `","method":"GET","path":"/charges","idempotency_key":null,"body":null,"status":200},` +
			`{"at":"` + at + `","method":"POST","path":"/charges/` + c.ID + `/cancel","idempotency_key":"key-2","body":null,"status":409},` +
			`{"at":"` + at + `","method":"POST","path":"/charges","idempotency_key":"key-3","body":null,"status":400},` +
			`{"at":"` + at + `","method":"DELETE","path":"/nowhere","idempotency_key":null,"body":null,"status":404}` +
			`],"next_cursor":null}`
		p.control("webhooks/pause", "")
		if got := p.call("GET", "/_control/calls", "", ""); got.body != want {
			t.Errorf("got  %s\nwant %s", got.body, want)
		}
	})
}

func TestACallIsShownWhileItHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan answer)
		go func() {
			done <- p.callFor(ctx, "POST", "/charges", "key-1", chargeBody("tok_timeout_nothing", "automatic"))
		}()
		synctest.Wait()
		check := func(when string) {
			if got := p.calls(); len(got) != 1 || got[0].Status != nil || got[0].Body["reference"] != "pay_1" || text(got[0].IdempotencyKey) != "key-1" {
				t.Errorf("%s: got %+v, want one unanswered call for pay_1", when, got)
			}
		}
		check("while it hangs")
		cancel()
		<-done
		check("afterwards")
	})
}

func TestControlListsComeWholeOrInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		want := []int64{}
		for i := range 150 {
			body := strings.Replace(chargeBody("tok_captured", "automatic"), "5000", fmt.Sprint(i+1), 1)
			wantStatus(t, "create", p.call("POST", "/charges", fmt.Sprint("key-", i), body), 201)
			want = append(want, int64(150-i))
		}
		for _, query := range []string{"", "?limit=7"} {
			if got := p.amounts("/_control/charges", query); !slices.Equal(got, want) {
				t.Errorf("charges%s: got %v, want all 150, newest first", query, got)
			}
		}
		if got := decode[struct{ Data []charge }](t, p.call("GET", "/_control/charges", "", "").body).Data; len(got) != 150 {
			t.Errorf("got %d charges in one page, want 150", len(got))
		}
		if got := p.calls(); len(got) != 150 || text(got[0].IdempotencyKey) != "key-0" {
			t.Errorf("got %d calls in one page, want 150, oldest first", len(got))
		}
		first := decode[struct {
			Data       []row
			NextCursor *string `json:"next_cursor"`
		}](t, p.call("GET", "/_control/calls?limit=149", "", "").body)
		last := decode[struct{ Data []row }](t, p.call("GET", "/_control/calls?cursor="+text(first.NextCursor), "", "").body)
		if len(first.Data) != 149 || len(last.Data) != 1 || text(last.Data[0].IdempotencyKey) != "key-149" {
			t.Errorf("got pages of %d and %d calls, want 149 and 1", len(first.Data), len(last.Data))
		}
	})
}
