package simulator_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCustomersChoiceComesByWebhook(t *testing.T) {
	for _, test := range []struct{ method, outcome, status, declineCode string }{
		{"automatic", "approve", "captured", "null"},
		{"manual", "approve", "authorized", "null"},
		{"automatic", "decline", "failed", "authentication_failed"},
		{"manual", "decline", "failed", "authentication_failed"},
	} {
		t.Run(test.method+"/"+test.outcome, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPSP(t)
				c := p.mustCreate("tok_requires_action", test.method)
				if want := publicURL + "/redirect/" + c.ID; c.Status != "requires_action" || text(c.RedirectURL) != want || c.DeclineCode != nil {
					t.Fatalf("got %s %s, want requires_action %s", c.Status, text(c.RedirectURL), want)
				}
				choice := `{"outcome":"` + test.outcome + `"}`
				a := p.call("POST", "/redirect/"+c.ID, "", choice)
				got := decode[charge](t, a.body)
				if a.status != 200 || got.Status != test.status || got.RedirectURL != nil || text(got.DeclineCode) != test.declineCode {
					t.Errorf("choice: got %d %s, want 200 %s without redirect", a.status, a.body, test.status)
				}
				for _, outcome := range []string{"approve", "decline"} {
					wantCode(t, "again", p.call("POST", "/redirect/"+c.ID, "", `{"outcome":"`+outcome+`"}`), 409, "choice_made")
				}
				advance(time.Minute)
				checkCharge(t, p, "finally", test.status)
				wantKinds(t, p, "charge.requires_action", "charge."+test.status)
			})
		})
	}
}

func TestVoidedChargeTakesNoChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		c := p.mustCreate("tok_requires_action", "automatic")
		wantStatus(t, "cancel", p.call("POST", "/charges/"+c.ID+"/cancel", "", ""), 200)
		wantCode(t, "approve", p.call("POST", "/redirect/"+c.ID, "", `{"outcome":"approve"}`), 409, "choice_made")
		wantStatus(t, "approve by form", p.form(c.ID, "approve"), 409)
		advance(time.Minute)
		checkCharge(t, p, "finally", "canceled")
	})
}

// Clients that post a JSON object by hand often call it a form.
func TestAJSONChoiceCalledAFormIsTakenForWhatItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		c := p.mustCreate("tok_requires_action", "automatic")
		request := httptest.NewRequestWithContext(t.Context(), "POST", "/redirect/"+c.ID, strings.NewReader(`{"outcome":"approve"}`))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if a := p.serve(request); a.status != 200 {
			t.Errorf("got %d %s, want 200", a.status, a.body)
		}
	})
}

// form posts the choice as the page does.
func (p *psp) form(id, outcome string) answer {
	request := httptest.NewRequestWithContext(p.t.Context(), "POST", "/redirect/"+id, strings.NewReader(url.Values{"outcome": {outcome}}.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	return p.serve(request)
}

func TestFormLeadsBackToTheMerchant(t *testing.T) {
	for outcome, status := range map[string]string{"approve": "captured", "decline": "failed", "abandon": "requires_action"} {
		synctest.Test(t, func(t *testing.T) {
			p := newPSP(t)
			c := p.mustCreate("tok_requires_action", "automatic")
			a := p.form(c.ID, outcome)
			if a.status != 303 || a.header.Get("Location") != "https://shop.test/return" {
				t.Errorf("%s: got %d %q, want 303 to the return_url", outcome, a.status, a.header.Get("Location"))
			}
			checkCharge(t, p, outcome, status)
		})
	}
}

func TestFormWithoutReturnURLStaysOnThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		body := `{"reference":"pay_1","amount":5000,"currency":"JPY","payment_method":"tok_requires_action"}`
		c := decode[charge](t, p.call("POST", "/charges", "key-1", body).body)
		a := p.form(c.ID, "approve")
		if a.status != 200 || !strings.Contains(a.body, "captured") || a.header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("got %d %s, want 200 and a page that says captured", a.status, a.body)
		}
	})
}

func TestPageOffersThreeChoicesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		body := strings.Replace(chargeBody("tok_requires_action", "automatic"), "pay_1", `<script>\"&`, 1)
		c := decode[charge](t, p.call("POST", "/charges", "key-1", body).body)
		page := p.call("GET", "/redirect/"+c.ID, "", "")
		if page.status != 200 || page.header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(page.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("got %d %v, want a page without scripts", page.status, page.header)
		}
		for _, choice := range []string{"Approve", "Decline", "Abandon", "5000 JPY"} {
			if !strings.Contains(page.body, choice) {
				t.Errorf("the page lacks %s", choice)
			}
		}
		if strings.Contains(page.body, "<script>") {
			t.Error("the page takes the reference for markup")
		}
		wantStatus(t, "approve", p.form(c.ID, "approve"), 303)
		if page := p.call("GET", "/redirect/"+c.ID, "", ""); page.status != 200 || strings.Contains(page.body, "<button") {
			t.Errorf("afterwards: got %d, want a page without choices", page.status)
		}
	})
}

func TestOddChoicesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		c := p.mustCreate("tok_requires_action", "automatic")
		for _, body := range []string{``, `{}`, `{"outcome":"maybe"}`, `{"outcome":1}`, `{"Outcome":"approve"}`, `outcome=approve`} {
			wantStatus(t, body, p.call("POST", "/redirect/"+c.ID, "", body), 400)
		}
		wantStatus(t, "form", p.form(c.ID, "maybe"), 400)
		checkCharge(t, p, "finally", "requires_action")
	})
}

func TestOtherChargesHaveNoPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		c := p.mustCreate("tok_pending", "automatic")
		wantCode(t, "page", p.call("GET", "/redirect/"+c.ID, "", ""), 404, "redirect_not_found")
		wantCode(t, "choice", p.call("POST", "/redirect/"+c.ID, "", `{"outcome":"approve"}`), 404, "redirect_not_found")
		checkCharge(t, p, "finally", "pending")
	})
}
