package merchant_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/merchant"
)

func TestAKeyIsRandomAndStoredAsAHashOnly(t *testing.T) {
	w := newWorld(t)
	a, b := w.create(t, "a"), w.create(t, "b")
	if len(a.Secret) != 60 || !strings.HasPrefix(a.Secret, "sk_live_") || a.Secret == b.Secret || a.Key.Prefix != a.Secret[:12] {
		t.Errorf("got %q and %q, want two keys of 60 characters, and the first 12 as prefix", a.Secret, b.Secret)
	}
	stored, err := w.table.APIKey(t.Context(), merchant.Hash(a.Secret))
	if err != nil || stored != a.Key || strings.Contains(stored.Hash, a.Secret[12:]) {
		t.Errorf("got %+v, %v, want %+v without the key", stored, err, a.Key)
	}
}

func TestARepeatFindsWhatWasMadeWithoutTheKey(t *testing.T) {
	w := newWorld(t)
	first := w.create(t, "k")
	again := w.create(t, "k")
	if again.Secret != "" || !again.Replayed || again.Merchant != first.Merchant || again.Key != first.Key {
		t.Errorf("got %+v, want %+v without the key", again, first)
	}
	if _, err := w.service.Create(t.Context(), asked("k", "other"), "n"); !errors.Is(err, idempotency.ErrKeyReused) {
		t.Errorf("got %v, want ErrKeyReused", err)
	}
	w.at = w.at.Add(24 * time.Hour)
	if late := w.create(t, "k"); late.Replayed || late.Merchant.ID == first.Merchant.ID {
		t.Errorf("got %+v, want a merchant of its own after the key's time", late)
	}
}

func TestARotationShortensLivesAndNeverLengthensThem(t *testing.T) {
	w := newWorld(t)
	id := w.create(t, "k").Merchant.ID
	ends := func() []time.Duration {
		keys, _, err := w.service.Keys(t.Context(), id, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		var all []time.Duration
		for _, k := range keys {
			if k.EndsAt.IsZero() {
				all = append(all, 0)
				continue
			}
			all = append(all, k.EndsAt.Sub(w.at))
		}
		return all
	}
	rotate := func(key string, overlap time.Duration) {
		w.at = w.at.Add(time.Second)
		if _, err := w.service.Rotate(t.Context(), asked(key, "b"), id, overlap); err != nil {
			t.Fatal(err)
		}
	}
	rotate("1", time.Minute)
	rotate("2", time.Hour)
	if got := ends(); len(got) != 3 || got[0] != 0 || got[1] != time.Hour || got[2] != time.Minute-time.Second {
		t.Errorf("got %v, want no end, an hour, and a minute from the rotation before", got)
	}
	rotate("3", 0)
	if got := ends(); len(got) != 1 {
		t.Errorf("got %v, want the newest alone", got)
	}
	if _, err := w.service.Rotate(t.Context(), asked("4", "b"), "mer_none", 0); !errors.Is(err, merchant.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

// overtaken lets another writer be faster, once.
type overtaken struct {
	merchant.Store
	first func()
}

func (o *overtaken) CommitKeys(ctx context.Context, c merchant.Change) error {
	if f := o.first; f != nil {
		o.first = nil
		f()
	}
	return o.Store.CommitKeys(ctx, c)
}

func TestARotationNeverUndoesARevocation(t *testing.T) {
	w := newWorld(t)
	issued := w.create(t, "k")
	id, prefix := issued.Merchant.ID, issued.Key.Prefix
	revoker := *w.service
	w.service.Store = &overtaken{Store: w.table, first: func() {
		if err := revoker.Revoke(t.Context(), id, prefix); err != nil {
			t.Fatal(err)
		}
	}}
	if _, err := w.service.Rotate(t.Context(), asked("r", "b"), id, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := w.authenticates(t, issued.Secret); got != (merchant.Principal{}) {
		t.Errorf("got %v, want the revoked key to stay nobody's", got)
	}
}

func TestAPrefixNamesOneKeyOfAMerchant(t *testing.T) {
	w := newWorld(t)
	secrets := []string{"AAAA1", "AAAA2", "BBBB1"}
	w.service.NewSecret = func() string {
		next := secrets[0]
		secrets = secrets[1:]
		return next + strings.Repeat("X", 47)
	}
	id := w.create(t, "k").Merchant.ID
	got, err := w.service.Rotate(t.Context(), asked("r", "b"), id, time.Hour)
	if err != nil || got.Key.Prefix != "sk_live_BBBB" {
		t.Errorf("got %q, %v, want a prefix of its own", got.Key.Prefix, err)
	}
}

func TestRevokingNamesWhatThereIs(t *testing.T) {
	w := newWorld(t)
	issued := w.create(t, "k")
	for range 2 {
		if err := w.service.Revoke(t.Context(), issued.Merchant.ID, issued.Key.Prefix); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	}
	for _, tt := range [][2]string{{issued.Merchant.ID, "sk_live_none"}, {"mer_none", issued.Key.Prefix}, {"a#b", issued.Key.Prefix}, {"", issued.Key.Prefix}} {
		if err := w.service.Revoke(t.Context(), tt[0], tt[1]); !errors.Is(err, merchant.ErrNotFound) {
			t.Errorf("%v: got %v, want ErrNotFound", tt, err)
		}
	}
}

func TestASeedIsMadeOnceAndShowsLittleOfAShortKey(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		for key, id := range map[string]string{"sk_test_alpha": "alpha", "sk_test_alpha2": "alpha", "sk_test_beta": "beta"} {
			if err := w.service.Seed(t.Context(), id, key, merchant.RoleMerchant); err != nil {
				t.Fatal(err)
			}
		}
	}
	keys, _, err := w.service.Keys(t.Context(), "alpha", "", 100)
	if err != nil || len(keys) != 2 {
		t.Errorf("got %v, %v, want two keys", keys, err)
	}
	betas, _, err := w.service.Keys(t.Context(), "beta", "", 100)
	if err != nil || len(betas) != 1 || betas[0].Prefix != "sk_test_be" {
		t.Errorf("got %v, %v, want a prefix that is not the key", betas, err)
	}
	for key, id := range map[string]string{"alpha": "alpha", "sk_test_x": "a#b", "sk_test_y": ""} {
		if err := w.service.Seed(t.Context(), id, key, merchant.RoleMerchant); err == nil {
			t.Errorf("seed of %q for %q: got no error", key, id)
		}
	}
	if err := w.service.Seed(t.Context(), "alpha", "sk_test_z", merchant.RoleOperator); err == nil {
		t.Error("operator's key with a merchant: got no error")
	}
}

func TestARequestThatAlwaysLosesSaysSo(t *testing.T) {
	w := newWorld(t)
	w.service.Store = loser{w.table}
	if _, err := w.service.Create(t.Context(), asked("k", "b"), "n"); !errors.Is(err, journal.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
}

// loser loses every race.
type loser struct{ merchant.Store }

func (loser) CommitKeys(context.Context, merchant.Change) error {
	return &journal.Conflict{Version: true}
}
