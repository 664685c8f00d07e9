package merchant_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/merchant"
)

// confused is a store that finds the same key whatever is asked for, and counts.
type confused struct {
	merchant.Store
	key   merchant.Key
	reads *int
}

func (s confused) APIKey(context.Context, string) (merchant.Key, error) {
	*s.reads++
	return s.key, nil
}

func TestAKeyThatTheStoreTakesForAnotherIsNobodys(t *testing.T) {
	w := newWorld(t)
	issued, reads := w.create(t, "k"), 0
	w.keyring.Store = confused{w.table, issued.Key, &reads}
	if p := w.authenticates(t, issued.Secret); p.MerchantID != issued.Merchant.ID {
		t.Fatalf("got %+v of the key itself, want its merchant", p)
	}
	if p := w.authenticates(t, issued.Secret+"x"); p != (merchant.Principal{}) {
		t.Errorf("got %+v of another key, want nobody", p)
	}
}

func TestWhatCannotBeAKeyIsNotLookedUp(t *testing.T) {
	w := newWorld(t)
	issued, reads := w.create(t, "k"), 0
	w.keyring.Store = confused{w.table, issued.Key, &reads}
	for _, key := range []string{"", "sk_", "pk_live_" + issued.Secret, merchant.PrefixLive + strings.Repeat("k", 249), long} {
		if p := w.authenticates(t, key); p != (merchant.Principal{}) {
			t.Errorf("%q: got %+v, want nobody", key, p)
		}
	}
	if reads != 0 {
		t.Errorf("got %d reads, want none", reads)
	}
}

func TestAMerchantHasABoundedNumberOfWorkingKeys(t *testing.T) {
	w := newWorld(t)
	issued := w.create(t, "k0")
	rotate := func(n int) (merchant.Issued, error) {
		return w.service.Rotate(t.Context(), asked(fmt.Sprint("k", n), "b"), issued.Merchant.ID, time.Hour)
	}
	for n := 1; n < 20; n++ {
		if _, err := rotate(n); err != nil {
			t.Fatalf("key %d: %v", n+1, err)
		}
	}
	if _, err := rotate(20); !errors.Is(err, merchant.ErrTooManyKeys) {
		t.Errorf("got %v, want ErrTooManyKeys with 20 that work", err)
	}
	w.at = w.at.Add(time.Hour) // all but the newest have ended
	if _, err := rotate(20); err != nil {
		t.Errorf("got %v, want a key once the older ones have ended", err)
	}
}

func TestRevokingAgainChangesNothing(t *testing.T) {
	w := newWorld(t)
	issued := w.create(t, "k")
	revoked := func() time.Time {
		t.Helper()
		if err := w.service.Revoke(t.Context(), issued.Merchant.ID, issued.Key.Prefix); err != nil {
			t.Fatal(err)
		}
		key, err := w.table.APIKey(t.Context(), issued.Key.Hash)
		if err != nil {
			t.Fatal(err)
		}
		return key.RevokedAt
	}
	first := revoked()
	w.at = w.at.Add(time.Hour)
	if again := revoked(); first.IsZero() || !again.Equal(first) {
		t.Errorf("got revoked at %s, want %s as before", again, first)
	}
}

// strict is a store that fails the test when it is asked for such an id.
type strict struct {
	merchant.Store
	t *testing.T
}

func (s strict) Merchant(ctx context.Context, id string) (merchant.Merchant, error) {
	if !merchant.ValidID(id) {
		s.t.Errorf("the store was asked for merchant %q", id)
	}
	return s.Store.Merchant(ctx, id)
}

func TestAnIDThatCanBeNoMerchantsIsNotLookedUp(t *testing.T) {
	w := newWorld(t)
	w.service.Store = strict{w.table, t}
	for _, id := range []string{"", "a#b", "ü", strings.Repeat("m", 65)} {
		if _, _, err := w.service.Keys(t.Context(), id, "", 1); !errors.Is(err, merchant.ErrNotFound) {
			t.Errorf("%q: got %v, want ErrNotFound", id, err)
		}
	}
}
