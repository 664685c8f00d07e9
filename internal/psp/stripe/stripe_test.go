package stripe_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/psp/stripe"
)

const (
	secret      = "whsec_test_secret_number_one"
	otherSecret = "whsec_test_secret_number_two"
	body        = `{"id":"evt_1","object":"event","type":"payment_intent.succeeded"}`
)

var arrival = time.Unix(1767322445, 0)

func newAdapter(t testing.TB, secrets ...string) *stripe.Adapter {
	t.Helper()
	adapter, err := stripe.New(stripe.Config{Secrets: secrets, Tolerance: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return adapter
}

func deliver(v psptest.Vector) psp.Delivery {
	header := http.Header{}
	for key, value := range v.Headers {
		header[key] = []string{value} // as written, not as Go writes it
	}
	return psp.Delivery{Header: header, Body: v.Body, ReceivedAt: time.Unix(v.VerifyAt, 0)}
}

func TestSignaturesOfCommittedVectors(t *testing.T) {
	for _, v := range psptest.CommittedVectors(t, "testdata/signed.json") {
		_, err := newAdapter(t, strings.Fields(v.Secret)...).Verify(deliver(v))
		if (err == nil) != *v.Valid || (err != nil && !errors.Is(err, psp.ErrSignature)) {
			t.Errorf("%s: got %v, want valid %t", v.Name, err, *v.Valid)
		}
	}
}

// S-EVENT-AUTH: whatever byte is altered, in whatever way, nothing verifies.
func TestNoByteCanBeAltered(t *testing.T) {
	adapter := newAdapter(t, secret, otherSecret)
	signed := func() psp.Delivery {
		return psp.Delivery{Header: psptest.SignStripe(secret, arrival, []byte(body)), Body: []byte(body), ReceivedAt: arrival}
	}
	if _, err := adapter.Verify(signed()); err != nil {
		t.Fatal(err)
	}
	refused := func(d psp.Delivery, where string) {
		if _, err := adapter.Verify(d); !errors.Is(err, psp.ErrSignature) {
			t.Errorf("%s: got %v, want ErrSignature", where, err)
		}
	}
	for at := range body {
		for bit := range 8 {
			d := signed()
			d.Body[at] ^= 1 << bit
			refused(d, "body altered")
		}
		d := signed()
		d.Body = slices.Delete(d.Body, at, at+1)
		refused(d, "body shortened")
		d = signed()
		d.Body = slices.Insert(d.Body, at, ' ')
		refused(d, "body lengthened")
	}
	header := signed().Header.Get("Stripe-Signature")
	for at := range header {
		for to := range 256 {
			if byte(to) == header[at] {
				continue
			}
			d := signed()
			d.Header["Stripe-Signature"] = []string{header[:at] + string([]byte{byte(to)}) + header[at+1:]}
			refused(d, "header altered")
		}
	}
	d := signed()
	d.Header.Add("Stripe-Signature", header)
	refused(d, "header twice")
}

func TestTooManySignaturesAreRefused(t *testing.T) {
	d := psp.Delivery{Header: psptest.SignStripe(secret, arrival, []byte(body)), Body: []byte(body), ReceivedAt: arrival}
	right := d.Header.Get("Stripe-Signature")
	for padding, valid := range map[int]bool{18: true, 19: false} {
		d.Header.Set("Stripe-Signature", right+strings.Repeat(",v1=00", padding))
		if _, err := newAdapter(t, secret).Verify(d); (err == nil) != valid {
			t.Errorf("%d more: got %v, want valid %t", padding, err, valid)
		}
	}
}

// F62: while a secret is rotated both verify; afterwards the old one does not.
func TestRotatedSecretIsRefusedOnceItIsGone(t *testing.T) {
	old := psp.Delivery{Header: psptest.SignStripe(secret, arrival, []byte(body)), Body: []byte(body), ReceivedAt: arrival}
	if _, err := newAdapter(t, otherSecret, secret).Verify(old); err != nil {
		t.Errorf("got %v, want the old secret accepted beside the new one", err)
	}
	if _, err := newAdapter(t, otherSecret).Verify(old); !errors.Is(err, psp.ErrSignature) {
		t.Errorf("got %v, want ErrSignature once the old secret is gone", err)
	}
}

func TestNotificationIsWhatTheBodySays(t *testing.T) {
	tests := []struct{ name, body, eventID, kind string }{
		{"its id and type", body, "evt_1", "payment_intent.succeeded"},
		{"no type", `{"id":"evt_1"}`, "evt_1", ""},
		{"no id", `{"type":"x"}`, "sha256-", "x"},
		{"an id that is no text", `{"id":7,"type":"x"}`, "sha256-", "x"},
		{"an id with a slash", `{"id":"a/b","type":"x"}`, "sha256-", "x"},
		{"a long id", `{"id":"` + strings.Repeat("e", 256) + `"}`, "sha256-", ""},
		{"two ids", `{"id":"evt_1","id":"evt_2"}`, "sha256-", ""},
		{"no JSON", `<html>`, "sha256-", ""},
		{"nothing", ``, "sha256-", ""},
	}
	for _, tt := range tests {
		d := psp.Delivery{Header: psptest.SignStripe(secret, arrival, []byte(tt.body)), Body: []byte(tt.body), ReceivedAt: arrival}
		got, err := newAdapter(t, secret).Verify(d)
		if err != nil || len(got) != 1 || !strings.HasPrefix(got[0].EventID, tt.eventID) || got[0].Type != tt.kind ||
			string(got[0].Body) != tt.body {
			t.Errorf("%s: got %+v %v, want %s %q and the body", tt.name, got, err, tt.eventID, tt.kind)
			continue
		}
		if again, _ := newAdapter(t, secret).Verify(d); again[0].EventID != got[0].EventID {
			t.Errorf("%s: got another id for the same body", tt.name)
		}
	}
}

func TestNewRefusesWhatItCannotUse(t *testing.T) {
	tests := map[string]stripe.Config{
		"no secret":              {Tolerance: time.Minute},
		"an empty secret":        {Tolerance: time.Minute, Secrets: []string{secret, ""}},
		"a prefix only":          {Tolerance: time.Minute, Secrets: []string{"whsec_"}},
		"an API key":             {Tolerance: time.Minute, Secrets: []string{"sk_live_hunter2hunter2"}},
		"a secret with a space":  {Tolerance: time.Minute, Secrets: []string{"whsec_hunter2 hunter2"}},
		"a secret and line feed": {Tolerance: time.Minute, Secrets: []string{"whsec_hunter2hunter2\n"}},
		"no tolerance":           {Secrets: []string{secret}},
	}
	for name, config := range tests {
		_, err := stripe.New(config)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error without the value", name, err)
		}
	}
	if _, err := stripe.New(stripe.Config{Secrets: []string{"whsec_local_stripe"}, Tolerance: time.Minute}); err != nil {
		t.Errorf("got %v, want a short secret of the right form accepted", err)
	}
}

func TestNoEventIsAboutAPayment(t *testing.T) {
	if _, err := newAdapter(t, secret).Parse(psp.Notification{Body: []byte(body)}); !errors.Is(err, psp.ErrEventInvalid) {
		t.Errorf("got %v, want ErrEventInvalid", err)
	}
}
