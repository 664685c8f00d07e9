package psptest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// SignStandard is the headers of a Standard Webhooks delivery, as the simulator
// sends it. The secret is "whsec_" and base64; it panics on any other.
func SignStandard(secret, id string, at time.Time, body []byte) http.Header {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic("psptest: not a Standard Webhooks secret")
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	mac := digest(key, fmt.Appendf(nil, "%s.%s.%s", id, timestamp, body))
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", timestamp)
	header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac))
	return header
}

// SignStripe is the headers of a Stripe delivery.
func SignStripe(secret string, at time.Time, body []byte) http.Header {
	mac := digest([]byte(secret), fmt.Appendf(nil, "%d.%s", at.Unix(), body))
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("Stripe-Signature", fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac)))
	return header
}

// AdyenItem is one item of an Adyen delivery.
type AdyenItem struct {
	PSPReference        string
	OriginalReference   string
	MerchantAccountCode string
	MerchantReference   string
	Value               int64 // minor units
	Currency            string
	EventCode           string
	Success             bool
}

// SignAdyen is the body of an Adyen delivery of those items, each signed with
// the key in hexadecimal; it panics on any other. Adyen signs in no header.
func SignAdyen(key string, items ...AdyenItem) []byte {
	secret, err := hex.DecodeString(key)
	if err != nil {
		panic("psptest: not a key in hexadecimal")
	}
	var wrapped []any
	for _, i := range items {
		text := fmt.Sprintf("%s:%s:%s:%s:%d:%s:%s:%t", i.PSPReference, i.OriginalReference, i.MerchantAccountCode,
			i.MerchantReference, i.Value, i.Currency, i.EventCode, i.Success)
		wrapped = append(wrapped, map[string]any{"NotificationRequestItem": map[string]any{
			"pspReference":        i.PSPReference,
			"originalReference":   i.OriginalReference,
			"merchantAccountCode": i.MerchantAccountCode,
			"merchantReference":   i.MerchantReference,
			"amount":              map[string]any{"value": i.Value, "currency": i.Currency},
			"eventCode":           i.EventCode,
			"success":             strconv.FormatBool(i.Success),
			"eventDate":           "2026-01-02T03:04:05+01:00",
			"reason":              "",
			"additionalData": map[string]any{
				"hmacSignature": base64.StdEncoding.EncodeToString(digest(secret, []byte(text))),
			},
		}})
	}
	body, err := json.Marshal(map[string]any{"live": "false", "notificationItems": wrapped}, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("psptest: an item that cannot be written: %v", err))
	}
	return body
}

func digest(key, message []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(message)
	return mac.Sum(nil)
}
