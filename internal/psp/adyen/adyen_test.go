package adyen_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/adyen"
	"github.com/kessai/kessai/internal/psp/psptest"
)

const (
	key      = "0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF"
	otherKey = "FEDCBA9876543210FEDCBA9876543210FEDCBA9876543210FEDCBA9876543210"
	account  = "KessaiTest"
)

func newAdapter(t testing.TB, merchantAccount string, keys ...string) *adyen.Adapter {
	t.Helper()
	adapter, err := adyen.New(adyen.Config{Keys: keys, MerchantAccount: merchantAccount})
	if err != nil {
		t.Fatal(err)
	}
	return adapter
}

func verify(t testing.TB, body []byte) ([]psp.Notification, error) {
	t.Helper()
	return newAdapter(t, account, key).Verify(psp.Delivery{Body: body, ReceivedAt: time.Unix(1767322445, 0)})
}

func authorisation() psptest.AdyenItem {
	return psptest.AdyenItem{
		PSPReference: "8835511210681111", MerchantAccountCode: account, MerchantReference: "pay_1",
		Value: 1130, Currency: "EUR", EventCode: "AUTHORISATION", Success: true,
	}
}

func TestSignaturesOfCommittedVectors(t *testing.T) {
	for _, v := range psptest.CommittedVectors(t, "testdata/signed.json") {
		adapter := newAdapter(t, account, strings.Fields(v.Secret)...)
		got, err := adapter.Verify(psp.Delivery{Body: v.Body})
		if (err == nil) != *v.Valid || (err != nil && !errors.Is(err, psp.ErrSignature)) {
			t.Errorf("%s: got %v, want valid %t", v.Name, err, *v.Valid)
		}
		if err != nil && got != nil {
			t.Errorf("%s: got %d notifications of a refused delivery, want none", v.Name, len(got))
		}
	}
}

func TestSignaturesOfPublishedVectors(t *testing.T) {
	vectors := psptest.PublishedVectors(t, "adyen")
	notifications := map[string][]psp.Notification{}
	for _, v := range vectors {
		if v.Secret == "" {
			continue // only the shape is known
		}
		got, err := newAdapter(t, accountOf(v.Body), v.Secret).Verify(psp.Delivery{Body: v.Body})
		want := *v.Valid && v.Scheme == "adyen-item-hmac"
		if v.Name == "py_colon_shifted_STILL_VALID" {
			want = false
		}
		if (err == nil) != want {
			t.Errorf("%s: got %v, want valid %t", v.Name, err, want)
		}
		notifications[v.Name] = got
	}
	// What is not signed can be altered, so it must not come through.
	altered, right := notifications["go_reason_tampered_STILL_VALID"], notifications["go_ok"]
	if len(altered) != 1 || len(right) != 1 || altered[0].EventID != right[0].EventID || !bytes.Equal(altered[0].Body, right[0].Body) {
		t.Errorf("got %+v, want what it was before unsigned fields were altered, %+v", altered, right)
	}
}

// accountOf is the account of the first item without the colon that one vector
// moves into it.
func accountOf(body []byte) string {
	var delivery struct {
		NotificationItems []struct {
			NotificationRequestItem struct {
				MerchantAccountCode string `json:"merchantAccountCode"`
			}
		} `json:"notificationItems"`
	}
	if json.Unmarshal(body, &delivery) != nil || len(delivery.NotificationItems) == 0 {
		return "none"
	}
	return delivery.NotificationItems[0].NotificationRequestItem.MerchantAccountCode
}

// S-EVENT-AUTH: an altered byte is refused, or was in a field that is not signed
// and changes nothing.
func TestNoByteThatCountsCanBeAltered(t *testing.T) {
	body := psptest.SignAdyen(key, authorisation())
	right, err := verify(t, body)
	if err != nil || len(right) != 1 {
		t.Fatalf("got %+v %v, want one notification", right, err)
	}
	refused := 0
	for at := range body {
		for bit := range 8 {
			altered := bytes.Clone(body)
			altered[at] ^= 1 << bit
			got, err := verify(t, altered)
			if err != nil {
				refused++
				continue
			}
			if len(got) != 1 || got[0].EventID != right[0].EventID || !bytes.Equal(got[0].Body, right[0].Body) {
				t.Errorf("byte %d altered: got %+v, want %+v or a refusal", at, got, right)
			}
		}
	}
	if refused < len(body) {
		t.Errorf("got %d refusals, want at least one for each of %d bytes on average", refused, len(body))
	}
}

func TestNotificationIsMadeOfSignedFieldsOnly(t *testing.T) {
	got, err := verify(t, psptest.SignAdyen(key, authorisation()))
	want := `{"pspReference":"8835511210681111","originalReference":"","merchantAccountCode":"KessaiTest","merchantReference":"pay_1",` +
		`"value":"1130","currency":"EUR","eventCode":"AUTHORISATION","success":"true"}`
	if err != nil || len(got) != 1 || string(got[0].Body) != want || got[0].Type != "AUTHORISATION" {
		t.Errorf("got %+v %v, want %s", got, err, want)
	}
}

func TestEveryItemIsAnEventOfItsOwn(t *testing.T) {
	items := []psptest.AdyenItem{authorisation(), authorisation(), authorisation(), authorisation(), authorisation()}
	items[1].Success = false
	items[2].EventCode = "CANCELLATION"
	items[3].OriginalReference = "8835511210680000"
	items[4].PSPReference = "8835511210682222"
	got, err := verify(t, psptest.SignAdyen(key, items...))
	if err != nil || len(got) != len(items) {
		t.Fatalf("got %d notifications %v, want %d", len(got), err, len(items))
	}
	want := []string{
		"8835511210681111.AUTHORISATION.true",
		"8835511210681111.AUTHORISATION.false",
		"8835511210681111.CANCELLATION.true",
		"8835511210681111.AUTHORISATION.true.8835511210680000",
		"8835511210682222.AUTHORISATION.true",
	}
	for i := range got {
		if got[i].EventID != want[i] {
			t.Errorf("got %s, want %s", got[i].EventID, want[i])
		}
	}
}

func TestOddReferencesGiveAnIDAllTheSame(t *testing.T) {
	ids := map[string]bool{}
	for _, reference := range []string{strings.Repeat("9", 256), "a b", "a/b", "é"} {
		item := authorisation()
		item.PSPReference = reference
		got, err := verify(t, psptest.SignAdyen(key, item))
		if err != nil || len(got) != 1 || !strings.HasPrefix(got[0].EventID, "sha256-") || len(got[0].EventID) > 255 {
			t.Fatalf("%q: got %+v %v, want a hash for an id", reference, got, err)
		}
		ids[got[0].EventID] = true
	}
	if len(ids) != 4 {
		t.Errorf("got %d ids, want one for each", len(ids))
	}
}

func TestLargeBatchesAreRefused(t *testing.T) {
	for size, valid := range map[int]bool{100: true, 101: false} {
		items := make([]psptest.AdyenItem, size)
		for i := range items {
			items[i] = authorisation()
		}
		if _, err := verify(t, psptest.SignAdyen(key, items...)); (err == nil) != valid {
			t.Errorf("%d items: got %v, want valid %t", size, err, valid)
		}
	}
}

// F62: while a key is rotated both verify; afterwards the old one does not.
func TestRotatedKeyIsRefusedOnceItIsGone(t *testing.T) {
	old := psp.Delivery{Body: psptest.SignAdyen(key, authorisation())}
	if _, err := newAdapter(t, account, otherKey, key).Verify(old); err != nil {
		t.Errorf("got %v, want the old key accepted beside the new one", err)
	}
	if _, err := newAdapter(t, account, otherKey).Verify(old); !errors.Is(err, psp.ErrSignature) {
		t.Errorf("got %v, want ErrSignature once the old key is gone", err)
	}
}

func TestNewRefusesWhatItCannotUse(t *testing.T) {
	tests := map[string]adyen.Config{
		"no key":              {MerchantAccount: account},
		"an empty key":        {MerchantAccount: account, Keys: []string{key, ""}},
		"half a key":          {MerchantAccount: account, Keys: []string{key[:32]}},
		"an odd key":          {MerchantAccount: account, Keys: []string{key[:63]}},
		"no hexadecimal":      {MerchantAccount: account, Keys: []string{strings.Repeat("hunter2!", 8)}},
		"no merchant account": {Keys: []string{key}},
	}
	for name, config := range tests {
		_, err := adyen.New(config)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error without the value", name, err)
		}
	}
	if _, err := adyen.New(adyen.Config{MerchantAccount: account, Keys: []string{strings.ToLower(key)}}); err != nil {
		t.Errorf("got %v, want small letters accepted", err)
	}
}

func TestAdyenIsAnsweredInItsOwnWords(t *testing.T) {
	if got := newAdapter(t, account, key).Acknowledge(); got.Body != "[accepted]" {
		t.Errorf("got %q, want [accepted]", got.Body)
	}
}

func TestNoEventIsAboutAPayment(t *testing.T) {
	got, err := verify(t, psptest.SignAdyen(key, authorisation()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newAdapter(t, account, key).Parse(got[0]); !errors.Is(err, psp.ErrEventInvalid) {
		t.Errorf("got %v, want ErrEventInvalid", err)
	}
}
