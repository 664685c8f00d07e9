package simulator_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/infra/local/simulator"
)

// verify is a receiver's check of Standard Webhooks, from its specification.
func verify(d delivery, now time.Time) error {
	seconds, err := strconv.ParseInt(d.timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("timestamp %q: %w", d.timestamp, err)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age < 0 || age >= time.Second {
		return fmt.Errorf("timestamp is %s old", age)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", d.id, d.timestamp, d.body)
	version, signature, _ := strings.Cut(d.signature, ",")
	got, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || version != "v1" || !hmac.Equal(got, mac.Sum(nil)) {
		return fmt.Errorf("signature %q does not fit", d.signature)
	}
	return nil
}

func TestEventOnTheWireIsSigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		a := p.create("tok_captured", "automatic")
		synctest.Wait()
		d := p.deliveries()[0]
		want := fmt.Sprintf(`{"id":%q,"type":"charge.captured","created":%d,"data":{"charge":%s}}`, d.id, time.Now().Unix(), a.body)
		if string(d.body) != want || !strings.HasPrefix(d.id, "evt_") || d.url != webhookURL {
			t.Errorf("got %s to %s, want %s to %s", d.body, d.url, want, webhookURL)
		}
		if err := verify(d, time.Now()); err != nil {
			t.Error(err)
		}
	})
}

// The signature was made with openssl.
func TestSignatureIsTheOneOtherToolsMake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &merchant{}
		server, err := simulator.New(simulator.Config{
			WebhookURL: webhookURL, PublicURL: publicURL, Secret: secret, HTTPClient: &http.Client{Transport: m},
			Now: func() time.Time { return time.Unix(1767322445, 0) },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		p := &psp{Server: server, merchant: m, t: t}
		p.control("webhooks", `{"event":{"id":"evt_1","type":"charge.captured"}}`)
		synctest.Wait()
		d := p.deliveries()[0]
		if want := "v1,r9UVU6sKdIZjPRwnwEJn92rO7/auas1NxImQwMSu2DQ="; d.signature != want || d.timestamp != "1767322445" || d.id != "evt_1" {
			t.Errorf("got %s %s %s, want evt_1 1767322445 %s", d.id, d.timestamp, d.signature, want)
		}
	})
}

func TestAnythingButSuccessIsTriedAgainWithBackOff(t *testing.T) {
	for what, fail := range map[string]func() (int, error){
		"server error": func() (int, error) { return 503, nil },
		"refused":      func() (int, error) { return 401, nil },
		"redirect":     func() (int, error) { return 307, nil },
		"not modified": func() (int, error) { return 304, nil },
		"no answer":    func() (int, error) { return 0, errors.New("connection reset") },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPSP(t)
				p.answer = func(_ context.Context, d delivery) (int, error) {
					if err := verify(d, d.at); err != nil {
						t.Errorf("attempt at %s: %v", d.at, err)
					}
					if len(p.deliveries()) < 5 {
						return fail()
					}
					return 204, nil
				}
				p.mustCreate("tok_captured", "automatic")
				advance(time.Hour)
				got := p.deliveries()
				var gaps []time.Duration
				for i := range len(got) - 1 {
					gaps = append(gaps, got[i+1].at.Sub(got[i].at))
					if got[i+1].id != got[i].id || !slices.Equal(got[i+1].body, got[i].body) || got[i].url != webhookURL {
						t.Errorf("attempt %d: got another event or address", i+2)
					}
				}
				want := []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond}
				if !slices.Equal(gaps, want) {
					t.Errorf("gaps: got %v, want %v", gaps, want)
				}
			})
		})
	}
}

func TestSuccessOfAnyKindIsEnough(t *testing.T) {
	for _, status := range []int{200, 201, 202, 204, 299} {
		synctest.Test(t, func(t *testing.T) {
			p := newPSP(t)
			p.answer = func(context.Context, delivery) (int, error) { return status, nil }
			p.mustCreate("tok_captured", "automatic")
			advance(time.Hour)
			wantKinds(t, p, "charge.captured")
		})
	}
}

func TestAttemptsAreBoundedInNumberAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.answer = func(ctx context.Context, _ delivery) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
		p.mustCreate("tok_captured", "automatic")
		advance(24 * time.Hour)
		got := p.deliveries()
		if len(got) != 12 {
			t.Fatalf("got %d attempts, want 12", len(got))
		}
		if gap := got[1].at.Sub(got[0].at); gap != 5*time.Second+200*time.Millisecond {
			t.Errorf("got %s between attempts on a receiver that hangs, want 5.2s", gap)
		}
		if gap := got[11].at.Sub(got[10].at); gap != 35*time.Second {
			t.Errorf("got %s between the last attempts, want 35s", gap)
		}
	})
}

func TestEventsOfAChargeKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		failures := 3
		p.answer = func(_ context.Context, d delivery) (int, error) {
			if failures > 0 {
				failures--
				return 503, nil
			}
			return 200, nil
		}
		c := p.mustCreate("tok_captured", "manual")
		wantStatus(t, "capture", p.call("POST", "/charges/"+c.ID+"/capture", "", ""), 200)
		wantStatus(t, "refund", p.call("POST", "/charges/"+c.ID+"/refunds", "", ""), 201)
		advance(time.Minute)
		wantKinds(t, p, "charge.authorized", "charge.authorized", "charge.authorized", "charge.authorized", "charge.captured", "refund.succeeded")
	})
}

func TestOneFailingDeliveryHoldsUpNoOtherCharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		p.answer = func(ctx context.Context, d delivery) (int, error) {
			if strings.Contains(string(d.body), `"pay_1"`) {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 200, nil
		}
		p.mustCreate("tok_captured", "automatic")
		began := time.Now()
		for i := range 3 {
			body := strings.Replace(chargeBody("tok_webhook_first", "automatic"), "pay_1", fmt.Sprint("other_", i), 1)
			wantStatus(t, "create", p.call("POST", "/charges", fmt.Sprint("other-", i), body), 201)
		}
		if got := time.Since(began); got != 0 {
			t.Errorf("other charges waited %s", got)
		}
	})
}

// slowWriter is a client that takes its time to receive the answer.
type slowWriter struct {
	discard
	received chan struct{}
}

func (w *slowWriter) Flush() { <-w.received }

func TestWebhookComesAfterTheAnswer(t *testing.T) {
	for token, waits := range map[string]bool{"tok_captured": true, "tok_error_captured": true, "tok_webhook_first": false} {
		synctest.Test(t, func(t *testing.T) {
			p := newPSP(t)
			w := &slowWriter{discard{header: http.Header{}}, make(chan struct{})}
			go p.ServeHTTP(w, newRequest(t.Context(), "/charges", chargeBody(token, "automatic")))
			advance(time.Minute)
			if got := len(p.deliveries()); (got == 0) != waits {
				t.Errorf("%s: got %d webhooks before the answer was out", token, got)
			}
			close(w.received)
			synctest.Wait()
			wantKinds(t, p, "charge.captured")
		})
	}
}

func TestFailuresAreLoggedWithoutSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := &merchant{answer: func(context.Context, delivery) (int, error) { return 503, nil }}
		server, err := simulator.New(simulator.Config{
			WebhookURL: webhookURL, PublicURL: publicURL, Secret: secret, HTTPClient: &http.Client{Transport: m},
			Logger: slog.New(slog.NewJSONHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		p := &psp{Server: server, merchant: m, t: t}
		c := p.mustCreate("tok_requires_action", "automatic")
		advance(time.Hour)
		server.Close()
		text := log.String()
		if got := strings.Count(text, `"webhook not acknowledged"`); got != 12 {
			t.Errorf("got %d lines about attempts, want 12", got)
		}
		if !strings.Contains(text, `"msg":"webhook given up","event_id":"`+p.deliveries()[0].id+`","payment_id":"pay_1"`) {
			t.Errorf("got %s, want a line that the webhook was given up", text)
		}
		for _, hidden := range []string{"/redirect/", c.ID, secret, "v1,"} {
			if strings.Contains(text, hidden) {
				t.Errorf("the log holds %s", hidden)
			}
		}
	})
}

func TestSilentChargesStaySilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPSP(t)
		c := p.mustCreate("tok_pending_silent", "automatic")
		advance(time.Second)
		wantStatus(t, "refund", p.call("POST", "/charges/"+c.ID+"/refunds", "", ""), 201)
		advance(time.Minute)
		wantKinds(t, p)
	})
}

func TestConfigurationThatCannotWorkIsRefused(t *testing.T) {
	valid := simulator.Config{WebhookURL: webhookURL, PublicURL: publicURL, Secret: secret}
	for what, spoil := range map[string]func(*simulator.Config){
		"no secret":           func(c *simulator.Config) { c.Secret = "" },
		"empty key":           func(c *simulator.Config) { c.Secret = "whsec_" },
		"no prefix":           func(c *simulator.Config) { c.Secret = strings.TrimPrefix(secret, "whsec_") },
		"no base64":           func(c *simulator.Config) { c.Secret = "whsec_!" },
		"no webhook address":  func(c *simulator.Config) { c.WebhookURL = "" },
		"relative address":    func(c *simulator.Config) { c.PublicURL = "/psp" },
		"address of no web":   func(c *simulator.Config) { c.WebhookURL = "ftp://merchant.test/" },
		"address without end": func(c *simulator.Config) { c.WebhookURL = "http://" },
	} {
		config := valid
		spoil(&config)
		if server, err := simulator.New(config); err == nil {
			server.Close()
			t.Errorf("%s: accepted", what)
		} else if strings.Contains(err.Error(), "a2Vzc2Fp") {
			t.Errorf("%s: the error holds the secret: %v", what, err)
		}
	}
}
