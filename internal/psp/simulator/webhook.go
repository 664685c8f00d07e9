package simulator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/kessai/kessai/internal/psp"
)

// Standard Webhooks: https://www.standardwebhooks.com.
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"
	secretPrefix    = "whsec_"
	signatureV1     = "v1,"
)

const (
	minSecret = 24 // bytes, the least that the specification allows
	maxSecret = 64 // bytes, the most
	// maxSignatures bounds the work on one header. A sender has one for each
	// secret that is live, and there are two while one is rotated.
	maxSignatures = 16
	// maxTimestamp is the number of digits of a Unix time in seconds for the
	// next thirty thousand years.
	maxTimestamp = 12
)

// decodeSecrets is the HMAC keys, none when there is no secret, or an error for
// any that is not a secret of the scheme. An empty key would verify what anybody
// signs; no key verifies nothing.
func decodeSecrets(secrets []string) ([][]byte, error) {
	var keys [][]byte
	for i, secret := range secrets {
		encoded, found := strings.CutPrefix(secret, secretPrefix)
		key, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if !found || err != nil || len(key) < minSecret || len(key) > maxSecret {
			return nil, errors.New("simulator: webhook secret " + strconv.Itoa(i+1) +
				` is not "whsec_" and the base64 of 24 to 64 bytes`)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Verify checks a Standard Webhooks signature over the raw body, and that the
// timestamp it covers is within the tolerance of the arrival, either way. The
// notification's body is d.Body itself. A signed body that cannot be read is a
// notification too, without a type and with the webhook-id as its event id.
func (a *Adapter) Verify(d psp.Delivery) ([]psp.Notification, error) {
	id, ok := single(d.Header, headerID)
	// A dot in the id would let a part of it, or of the body, pass for the timestamp.
	if !ok || id == "" || strings.Contains(id, ".") {
		return nil, psp.ErrSignature
	}
	timestamp, ok := single(d.Header, headerTimestamp)
	if !ok || !a.fresh(timestamp, d.ReceivedAt) {
		return nil, psp.ErrSignature
	}
	signatures := strings.Fields(strings.Join(values(d.Header, headerSignature), " "))
	if len(signatures) > maxSignatures || !a.signed(signatures, id+"."+timestamp+".", d.Body) {
		return nil, psp.ErrSignature
	}
	return []psp.Notification{notification(id, d.Body)}, nil
}

// Acknowledge is an empty JSON object; the simulator looks at the status only.
func (a *Adapter) Acknowledge() psp.Acknowledgement {
	return psp.Acknowledgement{ContentType: "application/json", Body: "{}"}
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
func (a *Adapter) signed(signatures []string, prefix string, body []byte) bool {
	valid := false
	for _, key := range a.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(prefix))
		mac.Write(body)
		want := []byte(signatureV1 + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		for _, signature := range signatures {
			if hmac.Equal([]byte(signature), want) {
				valid = true
			}
		}
	}
	return valid
}

// notification is what a verified body says of itself.
func notification(webhookID string, body []byte) psp.Notification {
	var content struct {
		ID   jsontext.Value `json:"id"`
		Type jsontext.Value `json:"type"`
	}
	n := psp.Notification{EventID: webhookID, Body: body}
	if err := json.Unmarshal(body, &content); err == nil {
		if id := text(content.ID); id != "" {
			n.EventID = id
		}
		if kind := text(content.Type); isID(kind) {
			n.Type = kind
		}
	}
	if !isID(n.EventID) { // too long, or nothing to build a stored key of
		sum := sha256.Sum256([]byte(n.EventID))
		n.EventID = "sha256-" + hex.EncodeToString(sum[:])
	}
	return n
}

// text is a JSON string's value, "" for anything else.
func text(raw jsontext.Value) string {
	var s string
	if raw.Kind() != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// values are the header's values, however its name is written.
func values(header http.Header, name string) []string {
	var all []string
	for key, list := range header {
		if strings.EqualFold(key, name) {
			all = append(all, list...)
		}
	}
	return all
}

// single is the value of a header that must be there exactly once.
func single(header http.Header, name string) (string, bool) {
	all := values(header, name)
	if len(all) != 1 {
		return "", false
	}
	return all[0], true
}
