package simulator_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestChargeOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		a := p.create("tok_captured", "automatic")
		id := decode[charge](t, a.body).ID
		if !strings.HasPrefix(id, "ch_") {
			t.Errorf("got id %s, want ch_…", id)
		}
		want := `{"id":"` + id + `","reference":"pay_1","amount":5000,"currency":"JPY","status":"captured","captured":5000,"refunded":0,"redirect_url":null,"decline_code":null,"refunds":[]}`
		if a.body != want || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s %s, want %s", a.header.Get("Content-Type"), a.body, want)
		}
		refunded := p.call("POST", "/charges/"+id+"/refunds", "", `{"amount":2000}`)
		r := decode[refund](t, refunded.body)
		wantRefund := `{"id":"` + r.ID + `","charge":"` + id + `","amount":2000,"status":"succeeded","reference":null}`
		if refunded.status != 201 || refunded.body != wantRefund {
			t.Errorf("refund: got %d %s, want 201 %s", refunded.status, refunded.body, wantRefund)
		}
		want = strings.Replace(want, `"refunded":0`, `"refunded":2000`, 1)
		want = strings.Replace(want, `"refunds":[]`, `"refunds":[`+wantRefund+`]`, 1)
		if got := p.call("GET", "/charges/"+id, "", ""); got.body != want {
			t.Errorf("look-up: got %s, want %s", got.body, want)
		}
	})
}

func TestInvalidChargesAreRefused(t *testing.T) {
	valid := chargeBody("tok_captured", "automatic")
	change := func(from, to string) string { return strings.Replace(valid, from, to, 1) }
	for what, body := range map[string]string{
		"empty":                  ``,
		"no JSON":                `{"amount":`,
		"array":                  `[]`,
		"null":                   `null`,
		"trailing data":          valid + `{}`,
		"not UTF-8":              change("pay_1", "pay_\xff"),
		"amount missing":         change(`"amount":5000,`, ``),
		"amount null":            change(`5000`, `null`),
		"amount zero":            change(`5000`, `0`),
		"amount negative":        change(`5000`, `-1`),
		"amount fraction":        change(`5000`, `1.5`),
		"amount whole fraction":  change(`5000`, `5000.0`),
		"amount exponent":        change(`5000`, `5e3`),
		"amount string":          change(`5000`, `"5000"`),
		"amount too large":       change(`5000`, `1000000000000`),
		"amount overflow":        change(`5000`, `92233720368547758080`),
		"name in another case":   change(`"amount"`, `"Amount"`),
		"currency lower case":    change(`JPY`, `jpy`),
		"currency too long":      change(`JPY`, `JPYX`),
		"currency number":        change(`"JPY"`, `392`),
		"token unknown":          change(`tok_captured`, `tok_`),
		"token missing":          change(`"payment_method":"tok_captured",`, ``),
		"capture method unknown": change(`automatic`, `later`),
		"reference number":       change(`"pay_1"`, `1`),
		"reference too long":     change(`pay_1`, strings.Repeat("p", 256)),
		"return_url script":      change(`https://shop.test/return`, `javascript:alert(1)`),
		"return_url relative":    change(`https://shop.test/return`, `/return`),
	} {
		t.Run(what, func(t *testing.T) {
			p := newPSP(t)
			wantStatus(t, what, p.call("POST", "/charges", "key-1", body), 400)
			if list := p.call("GET", "/charges", "", ""); list.body != `{"object":"list","data":[],"next_cursor":null}` {
				t.Errorf("got %s, want no charge", list.body)
			}
		})
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		a := p.call("POST", "/charges", "key-1", `{"amount":999999999999,"currency":"KWD","payment_method":"tok_captured","metadata":{"k":"v"},"x":[1]}`)
		wantStatus(t, "create", a, 201)
		if c := decode[charge](t, a.body); c.Reference != nil || c.Captured != 999999999999 {
			t.Errorf("got %+v, want no reference and all captured", c)
		}
	})
}

func TestCaptureTakesAPartAndReleasesTheRest(t *testing.T) {
	for body, want := range map[string]int64{``: 5000, `{}`: 5000, `{"amount":null}`: 5000, `{"amount":5000}`: 5000, `{"amount":4000}`: 4000, `{"amount":1}`: 1} {
		synctest.Test(t, func(t *testing.T) {
			p := newPSP(t)
			c := p.mustCreate("tok_captured", "manual")
			path := "/charges/" + c.ID
			wantCode(t, "over-capture", p.call("POST", path+"/capture", "", `{"amount":5001}`), 422, "amount_too_large")
			got := decode[charge](t, p.call("POST", path+"/capture", "", body).body)
			if got.Status != "captured" || got.Captured != want || got.Amount != 5000 {
				t.Errorf("capture %s: got %+v, want %d captured", body, got, want)
			}
			wantCode(t, "capture again", p.call("POST", path+"/capture", "", ""), 409, "charge_not_authorized")
			tooMuch := fmt.Sprintf(`{"amount":%d}`, want+1)
			wantCode(t, "refund more than captured", p.call("POST", path+"/refunds", "", tooMuch), 422, "amount_too_large")
			wantStatus(t, "refund", p.call("POST", path+"/refunds", "", ""), 201)
			synctest.Wait()
			wantKinds(t, p, "charge.authorized", "charge.captured", "refund.succeeded")
		})
	}
}

func TestOperationsByStatus(t *testing.T) {
	for _, test := range []struct {
		status, token, method                                 string
		capture, cancel, refund                               int
		captureCode, cancelCode, refundCode, afterCancelEvent string
	}{
		{"pending", "tok_late_captured", "automatic", 409, 200, 409, "charge_not_authorized", "", "charge_not_captured", "charge.canceled"},
		{"requires_action", "tok_requires_action", "automatic", 409, 200, 409, "charge_not_authorized", "", "charge_not_captured", "charge.canceled"},
		{"authorized", "tok_captured", "manual", 200, 200, 409, "", "", "charge_not_captured", "charge.canceled"},
		{"captured", "tok_captured", "automatic", 409, 409, 201, "charge_not_authorized", "charge_captured", "", ""},
		{"failed", "tok_declined", "automatic", 409, 409, 409, "charge_not_authorized", "charge_failed", "charge_not_captured", ""},
	} {
		t.Run(test.status, func(t *testing.T) {
			for operation, want := range map[string]struct {
				status int
				code   string
			}{"capture": {test.capture, test.captureCode}, "cancel": {test.cancel, test.cancelCode}, "refunds": {test.refund, test.refundCode}} {
				synctest.Test(t, func(t *testing.T) {
					p := newPSP(t)
					c := p.mustCreate(test.token, test.method)
					if c.Status != test.status {
						t.Fatalf("got %s, want %s", c.Status, test.status)
					}
					a := p.call("POST", "/charges/"+c.ID+"/"+operation, "", "{}")
					wantStatus(t, operation, a, want.status)
					if want.status == http.StatusConflict {
						wantCode(t, operation, a, want.status, want.code)
						stands := decode[struct{ Charge charge }](t, a.body).Charge
						if stands.ID != c.ID || stands.Status != test.status {
							t.Errorf("%s: got charge %+v in the refusal, want it as it stands", operation, stands)
						}
					}
				})
			}
		})
	}
}

func TestCancelTwiceIsOneCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		c := p.mustCreate("tok_captured", "manual")
		for range 2 {
			a := p.call("POST", "/charges/"+c.ID+"/cancel", "", "")
			if got := decode[charge](t, a.body).Status; a.status != 200 || got != "canceled" {
				t.Errorf("got %d %s, want 200 canceled", a.status, got)
			}
		}
		synctest.Wait()
		wantKinds(t, p, "charge.authorized", "charge.canceled")
		wantCode(t, "capture", p.call("POST", "/charges/"+c.ID+"/capture", "", ""), 409, "charge_not_authorized")
	})
}

func TestRefundsNeverExceedTheCaptureUnderConcurrency(t *testing.T) {
	for _, token := range []string{"tok_captured", "tok_refund_pending_failed"} {
		synctest.Test(t, func(t *testing.T) {
			p := newPSP(t)
			c := p.mustCreate(token, "automatic")
			var accepted atomic.Int64
			var calls sync.WaitGroup
			for i := range 20 {
				calls.Go(func() {
					a := p.call("POST", "/charges/"+c.ID+"/refunds", fmt.Sprint("refund-", i), `{"amount":1500}`)
					if a.status == http.StatusCreated {
						accepted.Add(1)
					} else {
						wantCode(t, "refund", a, 422, "amount_too_large")
					}
				})
			}
			calls.Wait()
			if got := accepted.Load(); got != 3 {
				t.Errorf("%s: got %d refunds of 1500 out of 5000, want 3", token, got)
			}
			wantStatus(t, "the rest", p.call("POST", "/charges/"+c.ID+"/refunds", "", ""), 201)
			wantCode(t, "nothing left", p.call("POST", "/charges/"+c.ID+"/refunds", "", ""), 422, "amount_too_large")
			if refunds := p.charge().Refunds; len(refunds) != 4 || refunds[3].Amount != 500 {
				t.Errorf("got %+v, want four refunds, the last of 500", refunds)
			}
		})
	}
}

func TestRefundMadeDirectlyHasNoReference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		c := p.mustCreate("tok_captured", "automatic")
		wantStatus(t, "refund", p.call("POST", "/charges/"+c.ID+"/refunds", "", `{"amount":1000}`), 201)
		synctest.Wait()
		event := decode[struct {
			Type string
			Data struct {
				Charge charge
				Refund refund
			}
		}](t, string(p.deliveries()[1].body))
		r := event.Data.Refund
		if event.Type != "refund.succeeded" || r.Reference != nil || r.Amount != 1000 || r.Charge != c.ID || event.Data.Charge.Refunded != 1000 {
			t.Errorf("got %+v, want refund.succeeded of 1000 without reference", event)
		}
	})
}

func TestUnknownChargesAreNotFound(t *testing.T) {
	p := newPSP(t)
	for _, operation := range []string{"capture", "cancel", "refunds"} {
		wantCode(t, operation, p.call("POST", "/charges/ch_none/"+operation, "k", "{}"), 404, "charge_not_found")
	}
	wantCode(t, "look-up", p.call("GET", "/charges/ch_none", "", ""), 404, "charge_not_found")
	wantCode(t, "redirect", p.call("GET", "/redirect/ch_none", "", ""), 404, "charge_not_found")
	wantCode(t, "choice", p.call("POST", "/redirect/ch_none", "", `{"outcome":"approve"}`), 404, "charge_not_found")
}

func TestListIsFilteredAndPaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		began := time.Now()
		for i := range 5 {
			body := strings.Replace(chargeBody("tok_captured", "automatic"), "pay_1", fmt.Sprint("pay_", i%2), 1)
			wantStatus(t, "create", p.call("POST", "/charges", fmt.Sprint("key-", i), strings.Replace(body, "5000", fmt.Sprint(i+1), 1)), 201)
			advance(time.Second)
		}
		for query, want := range map[string]string{
			"":                                    "[5 4 3 2 1]",
			"?reference=pay_0":                    "[5 3 1]",
			"?reference=pay_1&limit=1":            "[4 2]",
			"?limit=2":                            "[5 4 3 2 1]",
			"?reference=pay_9":                    "[]",
			"?limit=2&reference=pay_0":            "[5 3 1]",
			"?reference=pay_0&limit=1000":         "[5 3 1]",
			fmt.Sprint("?since=", began.Unix()+3): "[5 4]",
			"?since=" + began.Add(2*time.Second).UTC().Format(time.RFC3339):       "[5 4 3]",
			fmt.Sprint("?limit=1&reference=pay_0&since=", began.Unix()+1):         "[5 3]",
			"?since=" + began.Add(time.Hour).UTC().Format("2006-01-02T15:04:05Z"): "[]",
		} {
			if got := fmt.Sprint(p.amounts("/charges", query)); got != want {
				t.Errorf("GET /charges%s: got %s, want %s", query, got, want)
			}
		}
		for _, query := range []string{"?limit=0", "?limit=1001", "?limit=x", "?cursor=-1", "?cursor=x", "?since=soon", "?reference="} {
			wantStatus(t, query, p.call("GET", "/charges"+query, "", ""), 400)
		}
	})
}

// amounts walks every page of a list and names the charges by their amounts.
func (p *psp) amounts(path, query string) []int64 {
	p.t.Helper()
	amounts := []int64{}
	for address := path + query; ; {
		a := p.call("GET", address, "", "")
		page := decode[struct {
			Object     string
			Data       []charge
			NextCursor *string `json:"next_cursor"`
		}](p.t, a.body)
		if a.status != http.StatusOK || page.Object != "list" {
			p.t.Fatalf("%s: got %d %s, want a list", address, a.status, a.body)
		}
		for _, c := range page.Data {
			amounts = append(amounts, c.Amount)
		}
		if page.NextCursor == nil {
			return amounts
		}
		separator := "?"
		if query != "" {
			separator = "&"
		}
		address = path + query + separator + "cursor=" + *page.NextCursor
	}
}
