package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// maxDelivery is the largest webhook in bytes, and maxRequest the largest request
// of the merchant API.
const (
	maxDelivery = 262_144
	maxRequest  = 65_536
)

var signatures = []claim{
	{"a signature is of the exact bytes", exactBytes},
	{"no byte can be changed", anyByteChanged},
	{"a delivery without a full signature is refused", incompleteSignature},
	{"a signature of another secret is refused", otherSecret},
	{"one good signature among others is enough", oneGoodSignature},
	{"a stale or future timestamp is refused", timestamps},
	{"what is refused is not applied", refusedNotApplied},
	{"the largest delivery is taken, a larger one is not", deliverySizes},
	{"only known PSPs have an address, only POST is taken", knownAddresses},
}

// strangeEvent is an event of an unknown type, as text: its content is of no
// interest, its bytes are.
func strangeEvent(id, note string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"type":"something.new","created":1767322445,"data":{"note":"%s"}}`, id, note)
}

func exactBytes(t *testing.T, s *stage) {
	for name, note := range map[string]string{
		"plain": "a", "UTF-8": "é日本", "escapes": `\u00e9\ud83d\ude00`, "CR LF": "\"\r\n,\r\n\"b\":\"", "emoji": "😀",
		"not UTF-8": "\xff\xfe", "NUL": "\x00", "white space": `" , "b" :  "`, "byte order mark": "\ufeff", "base64": "aGVsbG8=",
	} {
		for _, contentType := range []string{"application/json", "application/octet-stream"} {
			if contentType == "application/json" && !utf8.ValidString(note) { // AWS itself alters a text that is none
				continue
			}
			id := s.unique("evt")
			body := strangeEvent(id, note)
			header := standard(s.SimulatorSecret, id, time.Now(), body)
			header["Content-Type"] = contentType // AWS hands one over as text, the other in base64
			if a := s.knock(t, "simulator", append(body, ' '), header); a.status != http.StatusUnauthorized {
				t.Errorf("%s, %s: got %s for another body, want 401", name, contentType, a)
			}
			if a := s.knock(t, "simulator", body, header); a.status != http.StatusOK {
				t.Errorf("%s, %s: got %s, want 200", name, contentType, a)
			}
		}
	}
}

func anyByteChanged(t *testing.T, s *stage) {
	id := s.unique("evt")
	body := strangeEvent(id, "x")
	header := standard(s.SimulatorSecret, id, time.Now(), body)
	step := max(1, len(body)/s.Crowd)
	for i := 0; i < len(body); i += step {
		changed := bytes.Clone(body)
		changed[i] ^= 1
		s.knock(t, "simulator", changed, header).want(t, http.StatusUnauthorized)
	}
	for name := range header {
		changed := standard(s.SimulatorSecret, id, time.Now(), body)
		changed[name] = header[name] + "1"
		s.knock(t, "simulator", body, changed).want(t, http.StatusUnauthorized)
	}
	s.knock(t, "simulator", body, header).want(t, http.StatusOK)
}

func incompleteSignature(t *testing.T, s *stage) {
	id := s.unique("evt")
	body := strangeEvent(id, "x")
	good := standard(s.SimulatorSecret, id, time.Now(), body)
	s.knock(t, "simulator", body, nil).want(t, http.StatusUnauthorized)
	for name, value := range good {
		header := standard(s.SimulatorSecret, id, time.Now(), body)
		delete(header, name)
		s.knock(t, "simulator", body, header).want(t, http.StatusUnauthorized)
		header[name] = ""
		s.knock(t, "simulator", body, header).want(t, http.StatusUnauthorized)
		header[name] = "x" + value
		s.knock(t, "simulator", body, header).want(t, http.StatusUnauthorized)
	}
	for _, signature := range []string{
		"v1", "v1,", ",", "v1," + strings.Repeat("A", 44), strings.TrimPrefix(good["Webhook-Signature"], "v1,"),
		strings.Replace(good["Webhook-Signature"], "v1,", "v2,", 1), strings.Replace(good["Webhook-Signature"], "v1,", "v1a,", 1),
	} {
		header := standard(s.SimulatorSecret, id, time.Now(), body)
		header["Webhook-Signature"] = signature
		s.knock(t, "simulator", body, header).want(t, http.StatusUnauthorized)
	}
	s.knock(t, "simulator", body, map[string]string{"Stripe-Signature": stripeSignature(s.StripeSecret, time.Now(), body)}).
		want(t, http.StatusUnauthorized)
}

func otherSecret(t *testing.T, s *stage) {
	id := s.unique("evt")
	body := strangeEvent(id, "x")
	for _, secret := range []string{"whsec_", "whsec_AAAA", "whsec_" + strings.Repeat("A", 32)} {
		s.knock(t, "simulator", body, standard(secret, id, time.Now(), body)).want(t, http.StatusUnauthorized)
	}
}

func oneGoodSignature(t *testing.T, s *stage) {
	id := s.unique("evt")
	body := strangeEvent(id, "x")
	header := standard(s.SimulatorSecret, id, time.Now(), body)
	wrong := standardSignature("whsec_AAAA", id, time.Now(), body)
	header["Webhook-Signature"] = "v1a,AAAA " + wrong + " " + header["Webhook-Signature"] + " " + wrong
	s.knock(t, "simulator", body, header).want(t, http.StatusOK)
}

func timestamps(t *testing.T, s *stage) {
	margin := s.Tolerance / 5
	for _, away := range []time.Duration{s.Tolerance + margin, -s.Tolerance - margin, 24 * time.Hour, -24 * time.Hour} {
		id := s.unique("evt")
		body := strangeEvent(id, "x")
		s.knock(t, "simulator", body, standard(s.SimulatorSecret, id, time.Now().Add(away), body)).want(t, http.StatusUnauthorized)
	}
	for _, away := range []time.Duration{s.Tolerance - margin, margin - s.Tolerance} {
		id := s.unique("evt")
		body := strangeEvent(id, "x")
		s.knock(t, "simulator", body, standard(s.SimulatorSecret, id, time.Now().Add(away), body)).want(t, http.StatusOK)
	}
	for _, text := range []string{"0", "-1", "now", "1e9", fmt.Sprint(time.Now().UnixMilli())} {
		id := s.unique("evt")
		body := strangeEvent(id, "x")
		header := standard(s.SimulatorSecret, id, time.Now(), body)
		header["Webhook-Timestamp"] = text
		s.knock(t, "simulator", body, header).want(t, http.StatusUnauthorized)
	}
}

func refusedNotApplied(t *testing.T, s *stage) {
	p := s.waiting(t, nil)
	c := s.charge(t, p.ID)
	c.Status, c.Captured, c.RedirectURL = "captured", c.Amount, nil
	forged := s.event("charge.captured", c)
	body := forged.body(t)
	s.knock(t, "simulator", body, standard("whsec_AAAA", forged.id, time.Now(), body)).want(t, http.StatusUnauthorized)
	s.control(t, "webhooks", object{"event": object{"id": s.unique("evt"), "type": forged.kind, "created": 1, "data": forged.data}, "sign": false})
	honest := s.event("charge.captured", c)
	s.tell(t, honest)
	s.ends(t, p.ID, "captured")
	for _, status := range []string{"received", "applied", "ignored", "quarantined"} {
		if _, found := s.inbox(t, status, forged.id); found {
			t.Errorf("a forged event is stored as %s", status)
		}
	}
}

func deliverySizes(t *testing.T, s *stage) {
	for size, want := range map[int]int{maxDelivery: http.StatusOK, maxDelivery + 1: http.StatusRequestEntityTooLarge} {
		id := s.unique("evt")
		body := strangeEvent(id, "")
		body = append(body, bytes.Repeat([]byte(" "), size-len(body))...)
		s.deliver(t, id, body).want(t, want)
		id = s.unique("evt")
		body = strangeEvent(id, strings.Repeat("x", size-len(strangeEvent(id, ""))))
		s.deliver(t, id, body).want(t, want)
		if _, found := s.inbox(t, "ignored", id); !found && want == http.StatusOK {
			s.settles(t, id, "ignored")
		}
	}
}

func knownAddresses(t *testing.T, s *stage) {
	id := s.unique("evt")
	body := strangeEvent(id, "x")
	header := standard(s.SimulatorSecret, id, time.Now(), body)
	for _, psp := range []string{"nobody", "Simulator", "simulator2", ""} {
		s.knock(t, psp, body, header).want(t, http.StatusNotFound)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		client{s, s.Webhook, ""}.send(t, request{method: method, path: "/simulator", header: header, undocumented: true}).want(t, http.StatusMethodNotAllowed)
	}
}
