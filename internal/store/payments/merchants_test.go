package payments_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	keys "github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/memory"
	"github.com/kessai/kessai/internal/store/payments"
)

var keyTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func keyTable() *payments.Table {
	return payments.New(memory.New(memory.Options{Now: func() time.Time { return keyTime }}))
}

func keyOf(merchantID string, n int) keys.Key {
	secret := fmt.Sprintf("sk_test_%s%d", merchantID, n)
	return keys.Key{
		Hash: keys.Hash(secret), MerchantID: merchantID, Role: keys.RoleMerchant,
		Prefix: fmt.Sprintf("sk_test_%04d", n), CreatedAt: keyTime.Add(time.Duration(n) * time.Second),
	}
}

func TestAKeyIsReadByItsHashAndListedByItsMerchantNewestFirst(t *testing.T) {
	table := keyTable()
	m := keys.Merchant{ID: "alpha", Name: "Alpha", CreatedAt: keyTime}
	all := []keys.Key{keyOf("alpha", 0), keyOf("alpha", 1), keyOf("alpha", 2), keyOf("beta", 0)}
	if err := table.CommitKeys(t.Context(), keys.Change{Merchant: &m, Add: all}); err != nil {
		t.Fatal(err)
	}
	if got, err := table.Merchant(t.Context(), "alpha"); err != nil || got != m {
		t.Errorf("got %v, %v, want %v", got, err, m)
	}
	for _, k := range all {
		if got, err := table.APIKey(t.Context(), k.Hash); err != nil || got != k {
			t.Errorf("got %v, %v, want %v", got, err, k)
		}
	}
	first, cursor, err := table.MerchantKeys(t.Context(), "alpha", "", 2)
	if err != nil || len(first) != 2 || first[0] != all[2] || cursor == "" {
		t.Fatalf("got %v %q, %v, want the newest two and a cursor", first, cursor, err)
	}
	rest, _, err := table.MerchantKeys(t.Context(), "alpha", cursor, 2)
	if err != nil || len(rest) != 1 || rest[0] != all[0] {
		t.Errorf("got %v, %v, want the oldest", rest, err)
	}
	if _, _, err := table.MerchantKeys(t.Context(), "alpha", "x", 2); !errors.Is(err, store.ErrCursor) {
		t.Errorf("got %v, want ErrCursor", err)
	}
	if _, err := table.APIKey(t.Context(), "none"); !errors.Is(err, keys.ErrUnknownKey) {
		t.Errorf("got %v, want ErrUnknownKey", err)
	}
	if _, err := table.Merchant(t.Context(), "gamma"); !errors.Is(err, keys.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

// Both rows of a key change together, and only from what was seen.
func TestAChangeOfAKeyHoldsBothRowsToWhatWasSeen(t *testing.T) {
	table := keyTable()
	k := keyOf("alpha", 0)
	if err := table.CommitKeys(t.Context(), keys.Change{Add: []keys.Key{k}}); err != nil {
		t.Fatal(err)
	}
	ended, revoked := k, k
	ended.EndsAt, revoked.RevokedAt = keyTime.Add(time.Hour), keyTime
	if err := table.CommitKeys(t.Context(), keys.Change{Set: []keys.KeyChange{{Seen: k, Next: ended}}}); err != nil {
		t.Fatal(err)
	}
	both := ended
	both.RevokedAt = keyTime
	if err := table.CommitKeys(t.Context(), keys.Change{Set: []keys.KeyChange{{Seen: ended, Next: both}}}); err != nil {
		t.Fatal(err)
	}
	for name, stale := range map[string]keys.KeyChange{
		"a revocation that was not seen": {Seen: ended, Next: ended},
		"an end that was not seen":       {Seen: k, Next: revoked},
		"a key that never was there":     {Seen: keyOf("alpha", 9), Next: keyOf("alpha", 9)},
	} {
		err := table.CommitKeys(t.Context(), keys.Change{Set: []keys.KeyChange{stale}})
		if _, lost := errors.AsType[*journal.Conflict](err); !lost {
			t.Errorf("%s: got %v, want a conflict", name, err)
		}
	}
	byHash, err := table.APIKey(t.Context(), k.Hash)
	if err != nil || byHash != both {
		t.Errorf("got %v, %v, want %v", byHash, err, both)
	}
	listed, _, err := table.MerchantKeys(t.Context(), "alpha", "", 10)
	if err != nil || len(listed) != 1 || listed[0] != both {
		t.Errorf("got %v, %v, want the same in the list", listed, err)
	}
}

func TestAKeyIsAddedOnceAndWithItsClaim(t *testing.T) {
	table := keyTable()
	claim := &idempotency.Claim{Record: idempotency.Record{MerchantID: "@operator", Hash: "h", Fingerprint: "f", ResourceID: "r", CreatedAt: keyTime, InProgressUntil: keyTime}}
	change := keys.Change{Add: []keys.Key{keyOf("alpha", 0)}, Claim: claim}
	if err := table.CommitKeys(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	change.Add = []keys.Key{keyOf("alpha", 1)}
	conflict, lost := errors.AsType[*journal.Conflict](table.CommitKeys(t.Context(), change))
	if !lost || conflict.Record == nil || conflict.Record.ResourceID != "r" {
		t.Errorf("got %+v, want the record that has the key", conflict)
	}
	if _, err := table.APIKey(t.Context(), keyOf("alpha", 1).Hash); !errors.Is(err, keys.ErrUnknownKey) {
		t.Errorf("got %v, want nothing written", err)
	}
	again := keys.Change{Add: []keys.Key{keyOf("alpha", 0)}}
	if _, lost := errors.AsType[*journal.Conflict](table.CommitKeys(t.Context(), again)); !lost {
		t.Error("got a key added twice")
	}
}

// An operator's key has no merchant, and no list.
func TestAnOperatorsKeyIsInNoList(t *testing.T) {
	table := keyTable()
	k := keys.Key{Hash: keys.Hash("sk_test_operator"), Role: keys.RoleOperator, Prefix: "sk_test_oper", CreatedAt: keyTime}
	if err := table.CommitKeys(t.Context(), keys.Change{Add: []keys.Key{k}}); err != nil {
		t.Fatal(err)
	}
	if got, err := table.APIKey(t.Context(), k.Hash); err != nil || got != k {
		t.Errorf("got %v, %v, want %v", got, err, k)
	}
	if listed, _, err := table.MerchantKeys(t.Context(), "", "", 10); err != nil || len(listed) != 0 {
		t.Errorf("got %v, %v, want nothing", listed, err)
	}
}
