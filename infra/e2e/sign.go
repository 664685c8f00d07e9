package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// standard is the headers of a delivery by Standard Webhooks.
func standard(secret, id string, at time.Time, body []byte) map[string]string {
	return map[string]string{
		"Webhook-Id": id, "Webhook-Timestamp": strconv.FormatInt(at.Unix(), 10),
		"Webhook-Signature": standardSignature(secret, id, at, body),
	}
}

func standardSignature(secret, id string, at time.Time, body []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic("secret of a test: " + err.Error())
	}
	return "v1," + base64.StdEncoding.EncodeToString(mac(key, fmt.Appendf(nil, "%s.%d.%s", id, at.Unix(), body)))
}

// stripeSignature is the header Stripe-Signature.
func stripeSignature(secret string, at time.Time, body []byte) string {
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac([]byte(secret), fmt.Appendf(nil, "%d.%s", at.Unix(), body))))
}

// adyenItem is one item of an Adyen delivery.
type adyenItem struct {
	pspReference, account, merchantReference, eventCode string
	value                                               int64
	currency                                            string
	success                                             bool
}

// signed is the item with its signature.
func (i adyenItem) signed(t *testing.T, hexKey string) object {
	t.Helper()
	key, err := hex.DecodeString(hexKey)
	if err != nil {
		t.Fatalf("Adyen key: %v", err)
	}
	payload := fmt.Sprintf("%s::%s:%s:%d:%s:%s:%t", i.pspReference, i.account, i.merchantReference, i.value, i.currency, i.eventCode, i.success)
	return object{"NotificationRequestItem": object{
		"pspReference": i.pspReference, "merchantAccountCode": i.account, "merchantReference": i.merchantReference,
		"amount": object{"value": i.value, "currency": i.currency}, "eventCode": i.eventCode, "success": strconv.FormatBool(i.success),
		"eventDate": "2026-01-02T03:04:05+01:00", "reason": "", "paymentMethod": "visa",
		"additionalData": object{"hmacSignature": base64.StdEncoding.EncodeToString(mac(key, []byte(payload)))},
	}}
}

func mac(key, text []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(text)
	return m.Sum(nil)
}

// event is an event of the simulator.
type event struct {
	id, kind string
	data     object
}

// event is a new event of that type about a charge.
func (s *stage) event(kind string, c charge) event {
	return event{s.unique("evt"), kind, object{"charge": c}}
}

func (e event) body(t *testing.T) []byte {
	t.Helper()
	text, err := json.Marshal(object{"id": e.id, "type": e.kind, "created": time.Now().Unix(), "data": e.data})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// deliver posts bytes as the simulator does, signed now.
func (s *stage) deliver(t *testing.T, id string, body []byte) answer {
	t.Helper()
	return s.knock(t, "simulator", body, standard(s.SimulatorSecret, id, time.Now(), body))
}

// tell delivers an event and wants it taken in.
func (s *stage) tell(t *testing.T, e event) {
	t.Helper()
	s.deliver(t, e.id, e.body(t)).want(t, http.StatusOK)
}

// knock posts to the webhook address of a PSP.
func (s *stage) knock(t *testing.T, psp string, body []byte, header map[string]string) answer {
	t.Helper()
	return client{s, s.Webhook, ""}.send(t, request{method: http.MethodPost, path: "/" + psp, body: body, header: header})
}

// notification is a notification as operators see it.
type notification struct {
	ID, PSP, Status string
	EventID         string  `json:"event_id"`
	Type            *string `json:"type"`
	PaymentID       *string `json:"payment_id"`
	ReceivedAt      string  `json:"received_at"`
}

// inbox finds a notification by its event id among those of a status.
func (s *stage) inbox(t *testing.T, status, eventID string) (notification, bool) {
	t.Helper()
	for _, n := range wholeList[notification](t, s.operator, "/v1/webhooks?status="+status) {
		if n.EventID == eventID || n.PSP == "adyen" && strings.Contains(n.EventID, eventID) {
			return n, true
		}
	}
	return notification{}, false
}

// settles waits until the notification has that status.
func (s *stage) settles(t *testing.T, eventID, status string) notification {
	t.Helper()
	var n notification
	if s.awaited(func() (found bool) {
		n, found = s.inbox(t, status, eventID)
		return found
	}) {
		return n
	}
	for _, other := range []string{"received", "applied", "ignored", "quarantined"} {
		if _, found := s.inbox(t, other, eventID); found {
			t.Fatalf("notification %s is %s, want %s", eventID, other, status)
		}
	}
	t.Fatalf("there is no notification %s, want one that is %s", eventID, status)
	return n
}
