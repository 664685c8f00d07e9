package adyen

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/kessai/kessai/internal/psp"
)

const (
	// maxItems bounds the work on one delivery; Adyen sends one item as JSON, and
	// a handful when it catches up.
	maxItems = 100
	maxID    = 255 // bytes of an event id, as psp.Notification allows
	maxValue = 19  // characters of an amount: an int64 with its sign
)

var errItems = errors.New("adyen: not a delivery of standard webhooks")

// item is the signed fields of one notification, each as the text that is
// signed, and its signature.
type item struct {
	PSPReference      string `json:"pspReference"`
	OriginalReference string `json:"originalReference"`
	MerchantAccount   string `json:"merchantAccountCode"`
	MerchantReference string `json:"merchantReference"`
	Value             string `json:"value"`
	Currency          string `json:"currency"`
	EventCode         string `json:"eventCode"`
	Success           string `json:"success"`

	signature string
}

// wireItem is an item as Adyen writes it. Value and success come as JSON
// strings or not.
type wireItem struct {
	PSPReference        string `json:"pspReference"`
	OriginalReference   string `json:"originalReference"`
	MerchantAccountCode string `json:"merchantAccountCode"`
	MerchantReference   string `json:"merchantReference"`
	Amount              struct {
		Value    jsontext.Value `json:"value"`
		Currency string         `json:"currency"`
	} `json:"amount"`
	EventCode      string         `json:"eventCode"`
	Success        jsontext.Value `json:"success"`
	AdditionalData struct {
		HMACSignature string `json:"hmacSignature"`
	} `json:"additionalData"`
}

// decodeItems reads a delivery. It refuses what could be read in two ways.
func decodeItems(body []byte) ([]item, error) {
	var delivery struct {
		NotificationItems []struct {
			NotificationRequestItem *wireItem `json:"NotificationRequestItem"`
		} `json:"notificationItems"`
	}
	if err := json.Unmarshal(body, &delivery); err != nil {
		return nil, errItems
	}
	if len(delivery.NotificationItems) == 0 || len(delivery.NotificationItems) > maxItems {
		return nil, errItems
	}
	var items []item
	for _, wrapped := range delivery.NotificationItems {
		if wrapped.NotificationRequestItem == nil {
			return nil, errItems
		}
		item, ok := wrapped.NotificationRequestItem.item()
		if !ok {
			return nil, errItems
		}
		items = append(items, item)
	}
	return items, nil
}

func (w *wireItem) item() (item, bool) {
	value, ok := scalar(w.Amount.Value)
	if !ok || !isInteger(value) {
		return item{}, false
	}
	success, ok := scalar(w.Success)
	if !ok || (success != "true" && success != "false") {
		return item{}, false
	}
	i := item{
		PSPReference: w.PSPReference, OriginalReference: w.OriginalReference,
		MerchantAccount: w.MerchantAccountCode, MerchantReference: w.MerchantReference,
		Value: value, Currency: w.Amount.Currency, EventCode: w.EventCode, Success: success,
		signature: w.AdditionalData.HMACSignature,
	}
	for _, field := range []string{i.PSPReference, i.OriginalReference, i.MerchantAccount, i.Currency, i.EventCode} {
		if strings.Contains(field, ":") {
			return item{}, false
		}
	}
	return i, i.PSPReference != "" && i.EventCode != ""
}

// scalar is the text of a JSON string, number or boolean, and "" for null and
// for what is not there.
func scalar(raw jsontext.Value) (text string, ok bool) {
	switch raw.Kind() {
	case jsontext.KindNumber, jsontext.KindTrue, jsontext.KindFalse:
		return string(raw), true
	case jsontext.KindString:
		return text, json.Unmarshal(raw, &text) == nil
	case jsontext.KindNull:
		return "", true
	case jsontext.KindInvalid:
		return "", len(raw) == 0
	case jsontext.KindBeginObject, jsontext.KindEndObject, jsontext.KindBeginArray, jsontext.KindEndArray:
	}
	return "", false
}

// isInteger reports digits as one writes them, or nothing for a missing amount.
func isInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if s == "" || s == "0" {
		return true
	}
	return len(s) <= maxValue && digits != "" && digits[0] != '0' && strings.Trim(digits, "0123456789") == ""
}

// payload is the text that is signed.
func (i item) payload() string {
	return strings.Join([]string{
		i.PSPReference, i.OriginalReference, i.MerchantAccount, i.MerchantReference,
		i.Value, i.Currency, i.EventCode, i.Success,
	}, ":")
}

// signed reports whether the item's signature is that of one of the keys. It
// tries them all, so that the time taken tells nothing.
func (a *Adapter) signed(i item) bool {
	valid := false
	for _, key := range a.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(i.payload()))
		want := []byte(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		if hmac.Equal([]byte(i.signature), want) {
			valid = true
		}
	}
	return valid
}

// notification is the item as it is stored: its signed fields and nothing else.
func (i item) notification() psp.Notification {
	body, err := json.Marshal(i)
	if err != nil { // strings that came out of valid JSON
		panic(err)
	}
	n := psp.Notification{EventID: i.eventID(), Body: body}
	if isID(i.EventCode) {
		n.Type = i.EventCode
	}
	return n
}

// eventID tells notifications apart. One reference of Adyen's has several: an
// authorisation and its later reversal, a refusal and the success after it.
func (i item) eventID() string {
	id := i.PSPReference + "." + i.EventCode + "." + i.Success
	if i.OriginalReference != "" {
		id += "." + i.OriginalReference
	}
	if isID(id) {
		return id
	}
	sum := sha256.Sum256([]byte(i.payload()))
	return "sha256-" + hex.EncodeToString(sum[:])
}

// isID reports what is fit to be part of a stored key.
func isID(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '/' {
			return false
		}
	}
	return s != "" && len(s) <= maxID
}
