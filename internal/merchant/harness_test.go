package merchant_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/store/memory"
	"github.com/kessai/kessai/internal/store/payments"
)

// world is the service and the keyring on a store in memory.
type world struct {
	at       time.Time
	table    merchant.Store
	service  *merchant.Service
	keyring  *merchant.Keyring
	operator []string
	broken   error // of the operator's keys
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	now := func() time.Time { return w.at }
	w.table = payments.New(memory.New(memory.Options{Now: now}))
	var n atomic.Int64
	w.service = &merchant.Service{
		Store: w.table, IdempotencyTTL: 24 * time.Hour, KeyPrefix: merchant.PrefixLive, Now: now,
		NewULID: func() string { return fmt.Sprintf("01KDYAK348M9S346Q3D2%06d", n.Add(1)) }, NewSecret: merchant.NewSecret,
	}
	w.keyring = &merchant.Keyring{Store: w.table, Now: now, OperatorKeys: func(context.Context) ([]string, error) { return w.operator, w.broken }}
	return w
}

func asked(key, body string) merchant.Request {
	return merchant.Request{Scope: idempotency.Scope{MerchantID: "@operator", Method: "POST", Route: "/v1/merchants", Key: key}, Fingerprint: body}
}

// authenticates tells whose a key is, nobody's for one that is unknown.
func (w *world) authenticates(t *testing.T, key string) merchant.Principal {
	t.Helper()
	p, err := w.keyring.Authenticate(t.Context(), key)
	if err != nil && !errors.Is(err, merchant.ErrUnknownKey) {
		t.Fatal(err)
	}
	return p
}

func (w *world) create(t *testing.T, key string) merchant.Issued {
	t.Helper()
	issued, err := w.service.Create(t.Context(), asked(key, "b"), "n")
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

// down is a store that gives no answer.
type down struct{ merchant.Store }

var errDown = errors.New("down")

func (down) APIKey(context.Context, string) (merchant.Key, error) { return merchant.Key{}, errDown }

var long = strings.Repeat("k", 257)
