// Package adyen is the receiving side for Adyen: it verifies standard webhooks
// and keeps them, and makes no charges.
//
// # What is signed
//
// Adyen signs no bytes. Each item of a delivery carries a base64 HMAC-SHA256
// over eight of its fields joined by colons, without any escaping
// (https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures).
// So the body is parsed before anything is verified, strictly: duplicate names
// are refused, and names have one case.
//
// Two gaps of the scheme are closed here. Everything else in an item (reason,
// eventDate, operations, additionalData) can be altered without a trace: the
// notification's body is made of the signed fields alone. And a colon inside a
// field moves the border between two of them: only the merchant's reference may
// hold any, in the middle of the eight, so that the joined text can be taken
// apart in one way only.
//
// # What is not protected
//
// There is no timestamp, so a recorded delivery verifies for ever. Only the
// event id gives it away, which is derived from the signed fields: a replay is
// the same event again and has no second effect as long as the event is
// remembered. Adyen has no event id of its own.
//
// Platform and management webhooks, signed in a header, are refused.
package adyen

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/kessai/kessai/internal/psp"
)

// Name is the provider's name in routes and configuration.
const Name = "adyen"

// keySize is the size of an HMAC key in bytes, as the Customer Area makes them.
const keySize = 32

// Config is how Adyen's webhooks are signed. Nothing has a default.
type Config struct {
	// Keys are HMAC keys in hexadecimal, current first. An item signed with any
	// of them is accepted.
	Keys []string
	// MerchantAccount is the one merchant account that items may be about.
	MerchantAccount string
}

// Adapter is psp.Webhooks for Adyen. It is safe for concurrent use.
type Adapter struct {
	keys            [][]byte
	merchantAccount string
}

var _ psp.Webhooks = (*Adapter)(nil)

// New is the adapter, or an error that says what of the configuration cannot be
// used, without its value. An empty key would verify what anybody signs.
func New(config Config) (*Adapter, error) {
	if config.MerchantAccount == "" {
		return nil, errors.New("adyen: no merchant account")
	}
	if len(config.Keys) == 0 {
		return nil, errors.New("adyen: no HMAC key")
	}
	a := &Adapter{merchantAccount: config.MerchantAccount}
	for i, text := range config.Keys {
		key, err := hex.DecodeString(text)
		if err != nil || len(key) != keySize {
			return nil, fmt.Errorf("adyen: HMAC key %d is not %d bytes in hexadecimal", i+1, keySize)
		}
		a.keys = append(a.keys, key)
	}
	return a, nil
}

// Verify checks every item of the delivery. One item with a bad signature, of
// another merchant account, or that could be read in two ways refuses all of it.
func (a *Adapter) Verify(d psp.Delivery) ([]psp.Notification, error) {
	items, err := decodeItems(d.Body)
	if err != nil {
		return nil, psp.ErrSignature
	}
	valid := true
	var notifications []psp.Notification
	for _, item := range items {
		if !a.signed(item) || item.MerchantAccount != a.merchantAccount {
			valid = false
		}
		notifications = append(notifications, item.notification())
	}
	if !valid {
		return nil, psp.ErrSignature
	}
	return notifications, nil
}

// Parse is always psp.ErrEventInvalid: no charge is made at Adyen, so no
// notification of its can be about a payment of ours.
func (a *Adapter) Parse(psp.Notification) (psp.Event, error) {
	return psp.Event{}, fmt.Errorf("%w: no charges are made at adyen", psp.ErrEventInvalid)
}

// Acknowledge is the text without which Adyen sends the delivery again.
func (a *Adapter) Acknowledge() psp.Acknowledgement {
	return psp.Acknowledgement{ContentType: "text/plain", Body: "[accepted]"}
}
