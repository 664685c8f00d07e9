package simulator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// signer makes signatures of Standard Webhooks 1.0 with a symmetric key.
type signer struct{ key []byte }

// newSigner reads a secret of the form "whsec_" and base64. An empty key is refused.
func newSigner(secret string) (signer, error) {
	encoded, prefixed := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !prefixed || err != nil || len(key) == 0 {
		return signer{}, errSecret
	}
	return signer{key}, nil
}

// sign is the webhook-signature of a body: HMAC-SHA256 over id, timestamp and
// body, joined by dots.
func (s signer) sign(id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// LogValue keeps the key out of every log.
func (signer) LogValue() slog.Value { return slog.StringValue("redacted") }
