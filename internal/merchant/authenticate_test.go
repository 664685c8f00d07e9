package merchant_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/merchant"
)

func TestAKeySpeaksForItsMerchantUntilItsEnd(t *testing.T) {
	w := newWorld(t)
	issued := w.create(t, "k")
	want := merchant.Principal{MerchantID: issued.Merchant.ID, Role: merchant.RoleMerchant}
	if got := w.authenticates(t, issued.Secret); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	rotated, err := w.service.Rotate(t.Context(), asked("r", "b"), want.MerchantID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	w.at = w.at.Add(time.Hour - time.Millisecond)
	if got := w.authenticates(t, issued.Secret); got != want {
		t.Errorf("got %v a moment before its end, want %v", got, want)
	}
	w.at = w.at.Add(time.Millisecond)
	if got := w.authenticates(t, issued.Secret); got != (merchant.Principal{}) {
		t.Errorf("got %v at its end, want nobody", got)
	}
	if got := w.authenticates(t, rotated.Secret); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := w.service.Revoke(t.Context(), want.MerchantID, rotated.Key.Prefix); err != nil {
		t.Fatal(err)
	}
	if got := w.authenticates(t, rotated.Secret); got != (merchant.Principal{}) {
		t.Errorf("got %v for a revoked key, want nobody", got)
	}
}

func TestAnUnknownKeyIsNobodys(t *testing.T) {
	w := newWorld(t)
	w.operator = []string{"", "op-1"}
	issued := w.create(t, "k")
	for _, key := range []string{
		"", " ", "sk_live_", issued.Key.Prefix, issued.Secret + "x", issued.Secret[:59], strings.ToLower(issued.Secret), issued.Key.Hash,
		strings.TrimPrefix(issued.Secret, "sk_live_"), "op-", "op-12", long, merchant.PrefixTest + strings.TrimPrefix(issued.Secret, "sk_live_"),
	} {
		if got := w.authenticates(t, key); got != (merchant.Principal{}) {
			t.Errorf("%q: got %v, want nobody", key, got)
		}
	}
}

func TestTheOperatorHasSeveralKeysWhileOneIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.operator = []string{"op-old", "", "op-new"}
	if err := w.service.Seed(t.Context(), "", "sk_test_operator", merchant.RoleOperator); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"op-old", "op-new", "sk_test_operator"} {
		if got, want := w.authenticates(t, key), (merchant.Principal{Role: merchant.RoleOperator}); got != want {
			t.Errorf("%s: got %v, want the operator", key, got)
		}
	}
	w.keyring.OperatorKeys = nil
	if got := w.authenticates(t, "op-new"); got != (merchant.Principal{}) {
		t.Errorf("got %v, want nobody", got)
	}
}

// Nobody is told that a key is unknown when that could not be found out.
func TestAnOutageIsNoUnknownKey(t *testing.T) {
	w := newWorld(t)
	issued := w.create(t, "k")
	w.broken = errDown
	if got := w.authenticates(t, issued.Secret); got.MerchantID != issued.Merchant.ID {
		t.Errorf("got %v, want a merchant served while the operator's keys can't be read", got)
	}
	if _, err := w.keyring.Authenticate(t.Context(), "sk_live_unknown"); !errors.Is(err, errDown) || errors.Is(err, merchant.ErrUnknownKey) {
		t.Errorf("got %v, want the outage", err)
	}
	w.broken = nil
	w.keyring.Store = down{}
	if _, err := w.keyring.Authenticate(t.Context(), issued.Secret); !errors.Is(err, errDown) {
		t.Errorf("got %v, want the outage", err)
	}
}

func TestTheAuthorizerLetsEverybodyPassAndSaysWhoItIs(t *testing.T) {
	w := newWorld(t)
	w.operator = []string{"op"}
	issued := w.create(t, "k")
	var logs bytes.Buffer
	a := merchant.Authorizer{Keys: w.keyring, Log: slog.New(slog.NewJSONHandler(&logs, nil))}
	own := issued.Merchant.ID
	tests := []struct {
		header         map[string]string
		merchant, role string
	}{
		{map[string]string{"authorization": "Bearer " + issued.Secret}, own, "merchant"},
		{map[string]string{"Authorization": "bearer  " + issued.Secret + " "}, own, "merchant"},
		{map[string]string{"AUTHORIZATION": "BEARER op"}, "", "operator"},
		{nil, "", ""},
		{map[string]string{"authorization": ""}, "", ""},
		{map[string]string{"authorization": "Bearer"}, "", ""},
		{map[string]string{"authorization": "Bearer "}, "", ""},
		{map[string]string{"authorization": issued.Secret}, "", ""},
		{map[string]string{"authorization": "Basic " + issued.Secret}, "", ""},
		{map[string]string{"authorization": "Bearer " + issued.Secret + " x"}, "", ""},
		{map[string]string{"authorization": "Bearer " + issued.Secret + ",Bearer " + issued.Secret}, "", ""},
		{map[string]string{"x-authorization": "Bearer " + issued.Secret}, "", ""},
		{map[string]string{"authorization": "Bearer sk_live_unknown"}, "", ""},
	}
	for _, tt := range tests {
		got, err := a.Handle(t.Context(), events.APIGatewayV2CustomAuthorizerV2Request{Headers: tt.header})
		if err != nil || !got.IsAuthorized || got.Context["merchant"] != tt.merchant || got.Context["role"] != tt.role || got.Context["failure"] != "" {
			t.Errorf("%v: got %v, %v, want %q %q", tt.header, got, err, tt.merchant, tt.role)
		}
	}
	w.keyring.Store = down{}
	got, err := a.Handle(t.Context(), events.APIGatewayV2CustomAuthorizerV2Request{Headers: tests[0].header})
	if err != nil || !got.IsAuthorized || got.Context["role"] != "" || got.Context["failure"] != "unavailable" {
		t.Errorf("got %v, %v, want to pass as nobody, with the failure", got, err)
	}
	if strings.Contains(logs.String(), issued.Secret) || strings.Count(logs.String(), "\n") != 1 {
		t.Errorf("got %s, want the outage once and no key", logs.String())
	}
}
