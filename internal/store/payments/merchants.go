package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/store"
)

// Places of merchants and their keys. A key is two rows: one by its hash, which
// authenticates, and one below its merchant, which lists.
const (
	pkAPIKey   = "APIKEY#"
	pkMerchant = "MERCHANT#"
	// pkMerchants lists the merchants: one row each, written once.
	pkMerchants = "MERCHANTS"
	skKey       = "KEY"
	skKeyOf     = "KEY#"
)

// Attributes of a key that change. They are not the table's own expires_at: a key
// that has ended stays, so that a repeat of its request finds it.
const (
	attrEndsAt    = "ends_at"
	attrRevokedAt = "revoked_at"
	attrHash      = "hash"
)

func merchantListKey(id string) store.Key { return store.Key{PK: pkMerchants, SK: id} }

func merchantKey(id string) store.Key { return store.Key{PK: pkMerchant + id, SK: skState} }

func apiKeyKey(hash string) store.Key { return store.Key{PK: pkAPIKey + hash, SK: skKey} }

// keyOfMerchantKey is the place of a key in its merchant's list, which is ordered by age.
func keyOfMerchantKey(k merchant.Key) store.Key {
	return store.Key{PK: pkMerchant + k.MerchantID, SK: skKeyOf + k.ID()}
}

// APIKey reads a key by its hash, consistently, or returns merchant.ErrUnknownKey.
func (t *Table) APIKey(ctx context.Context, hash string) (merchant.Key, error) {
	item, err := t.table.Get(ctx, apiKeyKey(hash))
	if errors.Is(err, store.ErrNotFound) {
		return merchant.Key{}, merchant.ErrUnknownKey
	}
	if err != nil {
		return merchant.Key{}, err
	}
	return decodeKey(item), nil
}

// Merchant reads a merchant consistently, or returns merchant.ErrNotFound.
func (t *Table) Merchant(ctx context.Context, id string) (merchant.Merchant, error) {
	item, err := t.table.Get(ctx, merchantKey(id))
	if errors.Is(err, store.ErrNotFound) {
		return merchant.Merchant{}, merchant.ErrNotFound
	}
	if err != nil {
		return merchant.Merchant{}, err
	}
	r := reader(item)
	return merchant.Merchant{ID: id, Name: r.str("name"), CreatedAt: r.time("created_at")}, nil
}

// MerchantKeys reads a page of a merchant's keys, newest first.
func (t *Table) MerchantKeys(ctx context.Context, merchantID, cursor string, limit int) ([]merchant.Key, string, error) {
	page, err := t.table.Query(ctx, store.Query{
		PK: pkMerchant + merchantID, SKPrefix: skKeyOf, Descending: true, Limit: min(limit, maxPage), Cursor: cursor,
	})
	if err != nil {
		return nil, "", fmt.Errorf("list keys: %w", err)
	}
	keys := make([]merchant.Key, 0, len(page.Entries))
	for _, e := range page.Entries {
		keys = append(keys, decodeKey(e.Item))
	}
	return keys, page.Cursor, nil
}

// CommitKeys writes a change of merchants and keys in one transaction. It returns
// a *journal.Conflict, or an error that means that the outcome is unknown.
func (t *Table) CommitKeys(ctx context.Context, c merchant.Change) error {
	var parts []part
	if m := c.Merchant; m != nil {
		f := fields{}
		f.str("name", m.Name)
		f.time("created_at", m.CreatedAt)
		parts = append(parts, part{store.Write{Kind: store.Put, Key: merchantKey(m.ID), Item: store.Item(f), If: store.Absent()}, movedOn})
		parts = append(parts, part{store.Write{Kind: store.Put, Key: merchantListKey(m.ID), Item: store.Item{}}, movedOn})
	}
	for _, k := range c.Add {
		for _, key := range placesOf(k) {
			parts = append(parts, part{store.Write{Kind: store.Put, Key: key, Item: encodeKey(k), If: store.Absent()}, movedOn})
		}
	}
	for _, change := range c.Set {
		parts = append(parts, keyParts(change)...)
	}
	if c.Claim != nil {
		parts = append(parts, claimPart(*c.Claim))
	}
	return t.commit(ctx, parts)
}

// placesOf are the rows of a key: an operator's has no list.
func placesOf(k merchant.Key) []store.Key {
	if k.MerchantID == "" {
		return []store.Key{apiKeyKey(k.Hash)}
	}
	return []store.Key{apiKeyKey(k.Hash), keyOfMerchantKey(k)}
}

// keyParts change the end of a key in both of its rows, if it is still as it was
// seen: a revocation is never undone by a rotation that had read before it.
func keyParts(c merchant.KeyChange) []part {
	set := fields{}
	set.time(attrEndsAt, c.Next.EndsAt)
	set.time(attrRevokedAt, c.Next.RevokedAt)
	unchanged := store.All(
		store.Equal(attrHash, c.Seen.Hash),
		sameTime(attrEndsAt, c.Seen.EndsAt),
		sameTime(attrRevokedAt, c.Seen.RevokedAt))
	var parts []part
	for _, key := range placesOf(c.Seen) {
		parts = append(parts, part{store.Write{Kind: store.Update, Key: key, Set: store.Item(set), If: unchanged}, movedOn})
	}
	return parts
}

func sameTime(attr string, at time.Time) store.Condition {
	if at.IsZero() {
		return store.HasNo(attr)
	}
	return store.Equal(attr, at.UnixMilli())
}

func encodeKey(k merchant.Key) store.Item {
	f := fields{}
	f.str(attrHash, k.Hash)
	f.str("merchant_id", k.MerchantID)
	f.str("role", string(k.Role))
	f.str("prefix", k.Prefix)
	f.time("created_at", k.CreatedAt)
	f.time(attrEndsAt, k.EndsAt)
	f.time(attrRevokedAt, k.RevokedAt)
	return store.Item(f)
}

func decodeKey(item store.Item) merchant.Key {
	r := reader(item)
	return merchant.Key{
		Hash: r.str(attrHash), MerchantID: r.str("merchant_id"), Role: merchant.Role(r.str("role")), Prefix: r.str("prefix"),
		CreatedAt: r.time("created_at"), EndsAt: r.time(attrEndsAt), RevokedAt: r.time(attrRevokedAt),
	}
}

var _ merchant.Store = (*Table)(nil)
