package simulator_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/psp/simulator"
)

const otherSecret = "whsec_a2Vzc2FpLXRlc3Qtc2VjcmV0LW51bWJlci10d28="

var arrival = time.Unix(1767322445, 0)

func newReceiver(t testing.TB, secrets ...string) *simulator.Adapter {
	t.Helper()
	adapter, err := simulator.New(simulator.Config{
		BaseURL: baseURL, Secrets: secrets, Tolerance: 5 * time.Minute, Timeout: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return adapter
}

func deliver(v psptest.Vector) psp.Delivery {
	header := http.Header{}
	for key, value := range v.Headers {
		header[strings.Replace(key, "svix-", "webhook-", 1)] = []string{value} // as written, not as Go writes it
	}
	return psp.Delivery{Header: header, Body: v.Body, ReceivedAt: time.Unix(v.VerifyAt, 0)}
}

func TestSignaturesOfCommittedVectors(t *testing.T) {
	for _, v := range psptest.CommittedVectors(t, "testdata/signed.json") {
		_, err := newReceiver(t, strings.Fields(v.Secret)...).Verify(deliver(v))
		if (err == nil) != *v.Valid || (err != nil && !errors.Is(err, psp.ErrSignature)) {
			t.Errorf("%s: got %v, want valid %t", v.Name, err, *v.Valid)
		}
	}
}

func TestSignaturesOfPublishedVectors(t *testing.T) {
	for _, provider := range []string{"standardwebhooks", "svix"} {
		for _, v := range psptest.PublishedVectors(t, provider) {
			_, err := newReceiver(t, v.Secret).Verify(deliver(v))
			if (err == nil) != *v.Valid {
				t.Errorf("%s/%s: got %v, want valid %t", provider, v.Name, err, *v.Valid)
			}
		}
	}
}

// S-EVENT-AUTH: whatever byte is altered, in whatever way, nothing verifies.
func TestNoByteCanBeAltered(t *testing.T) {
	adapter := newReceiver(t, secret, otherSecret)
	body := []byte(`{"id":"evt_1","type":"charge.captured","data":{"charge":{"id":"ch_1","amount":5000}}}`)
	signed := func() psp.Delivery {
		return psp.Delivery{
			Header: psptest.SignStandard(secret, "evt_1", arrival, body), Body: slices.Clone(body), ReceivedAt: arrival,
		}
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
	for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
		value := signed().Header.Get(name)
		for at := range value {
			for to := range 256 {
				if byte(to) == value[at] {
					continue
				}
				d := signed()
				d.Header[name] = []string{value[:at] + string([]byte{byte(to)}) + value[at+1:]}
				refused(d, name+" altered")
			}
		}
		d := signed()
		d.Header.Add(name, value)
		if name != "Webhook-Signature" {
			refused(d, name+" twice")
		}
	}
}

func TestSeveralSignatureHeadersAreOneList(t *testing.T) {
	d := psp.Delivery{Header: psptest.SignStandard(secret, "evt_1", arrival, nil), ReceivedAt: arrival}
	d.Header["webhook-signature"] = []string{"v1,AAAA"}
	if _, err := newReceiver(t, secret).Verify(d); err != nil {
		t.Errorf("got %v, want the right one of two headers to count", err)
	}
}

func TestTooManySignaturesAreRefused(t *testing.T) {
	d := psp.Delivery{Header: psptest.SignStandard(secret, "evt_1", arrival, nil), ReceivedAt: arrival}
	right := d.Header.Get("Webhook-Signature")
	for padding, valid := range map[int]bool{15: true, 16: false} {
		d.Header.Set("Webhook-Signature", strings.Repeat("v1,AAAA ", padding)+right)
		if _, err := newReceiver(t, secret).Verify(d); (err == nil) != valid {
			t.Errorf("%d signatures: got %v, want valid %t", padding+1, err, valid)
		}
	}
}

// F62: while a secret is rotated both verify; afterwards the old one does not.
func TestRotatedSecretIsRefusedOnceItIsGone(t *testing.T) {
	body := []byte(`{"id":"evt_1","type":"x"}`)
	old := psp.Delivery{Header: psptest.SignStandard(secret, "evt_1", arrival, body), Body: body, ReceivedAt: arrival}
	if _, err := newReceiver(t, otherSecret, secret).Verify(old); err != nil {
		t.Errorf("got %v, want the old secret accepted beside the new one", err)
	}
	if _, err := newReceiver(t, otherSecret).Verify(old); !errors.Is(err, psp.ErrSignature) {
		t.Errorf("got %v, want ErrSignature once the old secret is gone", err)
	}
}

func TestNotificationIsWhatTheBodySays(t *testing.T) {
	long := strings.Repeat("e", 256)
	tests := []struct {
		name, webhookID, body, eventID, kind string
	}{
		{"its id and type", "msg_1", `{"id":"evt_1","type":"charge.captured"}`, "evt_1", "charge.captured"},
		{"no id", "msg_1", `{"type":"charge.captured"}`, "msg_1", "charge.captured"},
		{"null id", "msg_1", `{"id":null,"type":"charge.captured"}`, "msg_1", "charge.captured"},
		{"empty id", "msg_1", `{"id":"","type":"x"}`, "msg_1", "x"},
		{"numeric id", "msg_1", `{"id":7,"type":"x"}`, "msg_1", "x"},
		{"no type", "msg_1", `{"id":"evt_1"}`, "evt_1", ""},
		{"numeric type", "msg_1", `{"id":"evt_1","type":7}`, "evt_1", ""},
		{"long type", "msg_1", `{"id":"evt_1","type":"` + long + `"}`, "evt_1", ""},
		{"no JSON", "msg_1", `<html>`, "msg_1", ""},
		{"an array", "msg_1", `[]`, "msg_1", ""},
		{"nothing", "msg_1", ``, "msg_1", ""},
		{"two ids", "msg_1", `{"id":"evt_1","id":"evt_2","type":"x"}`, "msg_1", ""},
		{"id of 255", "msg_1", `{"id":"` + long[:255] + `"}`, long[:255], ""},
	}
	for _, tt := range tests {
		got, err := newReceiver(t, secret).Verify(psp.Delivery{
			Header: psptest.SignStandard(secret, tt.webhookID, arrival, []byte(tt.body)), Body: []byte(tt.body), ReceivedAt: arrival,
		})
		if err != nil || len(got) != 1 || got[0].EventID != tt.eventID || got[0].Type != tt.kind || string(got[0].Body) != tt.body {
			t.Errorf("%s: got %+v %v, want %s %q and the body", tt.name, got, err, tt.eventID, tt.kind)
		}
	}
	for _, id := range []string{long, "evt 1", "evt/1", "évt", `evt\n1`} {
		body := []byte(`{"id":"` + id + `"}`)
		d := psp.Delivery{Header: psptest.SignStandard(secret, "msg_1", arrival, body), Body: body, ReceivedAt: arrival}
		got, err := newReceiver(t, secret).Verify(d)
		if err != nil || len(got) != 1 || !strings.HasPrefix(got[0].EventID, "sha256-") || len(got[0].EventID) > 255 {
			t.Errorf("%q: got %+v %v, want its hash for an id", id, got, err)
		}
	}
}

// An adapter that only calls has no secret, and nothing verifies with none.
func TestWithoutASecretEveryDeliveryIsRefused(t *testing.T) {
	adapter, err := simulator.New(simulator.Config{BaseURL: "http://127.0.0.1:3002", Tolerance: time.Minute, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	now := time.Unix(1_700_000_000, 0)
	header.Set("webhook-id", "evt_1")
	header.Set("webhook-timestamp", "1700000000")
	header.Set("webhook-signature", "v1,")
	if _, err := adapter.Verify(psp.Delivery{Header: header, Body: []byte(`{}`), ReceivedAt: now}); !errors.Is(err, psp.ErrSignature) {
		t.Errorf("got %v, want ErrSignature", err)
	}
}
