// Package stripe is the receiving side for Stripe: it verifies webhooks and
// keeps them, and makes no charges.
//
// A delivery is signed in the header Stripe-Signature, t=<Unix seconds> and one
// v1=<hex HMAC-SHA256 of "t.body"> for each live secret
// (https://docs.stripe.com/webhooks#verify-manually). Other schemes in the
// header, v0 among them, count for nothing. Deliveries outside the tolerance are
// refused in both directions, so that a recorded one cannot be replayed later;
// within it the event id, which is signed, gives a replay away.
package stripe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/kessai/kessai/internal/psp"
)

// Name is the provider's name in routes and configuration.
const Name = "stripe"

const (
	headerSignature = "Stripe-Signature"
	secretPrefix    = "whsec_"
)

const (
	// minSecret is well below what Stripe makes, and above a slip of the hand.
	minSecret = len(secretPrefix) + 8
	// maxElements bounds the work on one header: a timestamp and the signatures
	// of a few live secrets.
	maxElements = 20
	// maxTimestamp is the number of digits of a Unix time in seconds for the
	// next thirty thousand years.
	maxTimestamp = 12
	maxID        = 255 // bytes of an event id, as psp.Notification allows
)

// Config is how Stripe's webhooks are signed. Nothing has a default.
type Config struct {
	// Secrets are endpoint secrets, "whsec_…", current first. A webhook signed
	// with any of them is accepted.
	Secrets []string
	// Tolerance is how far a timestamp may be from the arrival, either way.
	Tolerance time.Duration
}

// Adapter is psp.Webhooks for Stripe. It is safe for concurrent use.
type Adapter struct {
	keys      [][]byte
	tolerance time.Duration
}

var _ psp.Webhooks = (*Adapter)(nil)

// New is the adapter, or an error that says what of the configuration cannot be
// used, without its value. An empty secret would verify what anybody signs; one
// without Stripe's prefix is another kind of key.
func New(config Config) (*Adapter, error) {
	if config.Tolerance <= 0 {
		return nil, errors.New("stripe: the webhook tolerance must be positive")
	}
	if len(config.Secrets) == 0 {
		return nil, errors.New("stripe: no webhook secret")
	}
	a := &Adapter{tolerance: config.Tolerance}
	for i, secret := range config.Secrets {
		if !strings.HasPrefix(secret, secretPrefix) || len(secret) < minSecret || !isVisible(secret) {
			return nil, fmt.Errorf(`stripe: webhook secret %d is not "whsec_" and what follows it`, i+1)
		}
		a.keys = append(a.keys, []byte(secret))
	}
	return a, nil
}

// Verify checks the signature over the raw body and the timestamp it covers. The
// notification's body is d.Body itself. A signed body that cannot be read is a
// notification too, without a type and with an id derived from the body.
func (a *Adapter) Verify(d psp.Delivery) ([]psp.Notification, error) {
	header, ok := single(d.Header, headerSignature)
	if !ok {
		return nil, psp.ErrSignature
	}
	timestamp, signatures, ok := parseHeader(header)
	if !ok || !a.fresh(timestamp, d.ReceivedAt) || !a.signed(signatures, timestamp, d.Body) {
		return nil, psp.ErrSignature
	}
	return []psp.Notification{notification(d.Body)}, nil
}

// Parse is always psp.ErrEventInvalid: no charge is made at Stripe, so no event
// of its can be about a payment of ours.
func (a *Adapter) Parse(psp.Notification) (psp.Event, error) {
	return psp.Event{}, fmt.Errorf("%w: no charges are made at stripe", psp.ErrEventInvalid)
}

// Acknowledge is an empty JSON object; Stripe looks at the status only.
func (a *Adapter) Acknowledge() psp.Acknowledgement {
	return psp.Acknowledgement{ContentType: "application/json", Body: "{}"}
}

// parseHeader takes the header apart: at most one t, any number of v1, and
// elements of other schemes, which are left out.
func parseHeader(header string) (timestamp string, signatures []string, ok bool) {
	elements := strings.Split(header, ",")
	if len(elements) > maxElements {
		return "", nil, false
	}
	for _, element := range elements {
		name, value, found := strings.Cut(element, "=")
		if !found {
			return "", nil, false
		}
		switch name {
		case "t":
			if timestamp != "" {
				return "", nil, false
			}
			timestamp = value
		case "v1":
			signatures = append(signatures, value)
		}
	}
	return timestamp, signatures, true // a missing t is not fresh
}

// fresh reports a timestamp in Unix seconds no further from the arrival than
// the tolerance, before or after.
func (a *Adapter) fresh(timestamp string, arrival time.Time) bool {
	if len(timestamp) > maxTimestamp || strings.Trim(timestamp, "0123456789") != "" {
		return false
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	return err == nil && arrival.Sub(time.Unix(seconds, 0)).Abs() <= a.tolerance
}

// signed reports whether one of the signatures is that of one of the keys. It
// tries them all, so that the time taken tells nothing.
func (a *Adapter) signed(signatures []string, timestamp string, body []byte) bool {
	valid := false
	for _, key := range a.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(timestamp + "."))
		mac.Write(body)
		want := []byte(hex.EncodeToString(mac.Sum(nil)))
		for _, signature := range signatures {
			if hmac.Equal([]byte(signature), want) {
				valid = true
			}
		}
	}
	return valid
}

// notification is what a verified body says of itself.
func notification(body []byte) psp.Notification {
	var content struct {
		ID   jsontext.Value `json:"id"`
		Type jsontext.Value `json:"type"`
	}
	n := psp.Notification{Body: body}
	if err := json.Unmarshal(body, &content); err == nil {
		n.EventID = word(content.ID)
		n.Type = word(content.Type)
	}
	if n.EventID == "" {
		sum := sha256.Sum256(body)
		n.EventID = "sha256-" + hex.EncodeToString(sum[:])
	}
	return n
}

// word is a JSON string fit to be part of a stored key: visible ASCII, not too
// long. It is "" for anything else.
func word(raw jsontext.Value) string {
	var s string
	if raw.Kind() != '"' || json.Unmarshal(raw, &s) != nil || len(s) > maxID || !isVisible(s) || strings.Contains(s, "/") {
		return ""
	}
	return s
}

func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// single is the value of a header that must be there exactly once, however its
// name is written.
func single(header http.Header, name string) (string, bool) {
	var all []string
	for key, list := range header {
		if strings.EqualFold(key, name) {
			all = append(all, list...)
		}
	}
	if len(all) != 1 {
		return "", false
	}
	return all[0], true
}
