package merchant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
)

// Service makes merchants and keys, for the operator. Its methods are safe for
// concurrent use and safe to repeat.
type Service struct {
	Store          Store
	IdempotencyTTL time.Duration // a key of a request is remembered at least this long
	KeyPrefix      string        // PrefixTest or PrefixLive
	NewULID        func() string
	NewSecret      func() string // the random part of a key, at least 256 bits
	Now            func() time.Time
}

// Request is what every changing call carries.
type Request struct {
	Scope       idempotency.Scope
	Fingerprint string // of the decoded request
}

// Issued is a merchant and a key of it. Secret is the key itself, "" in a repeat.
type Issued struct {
	Merchant Merchant
	Key      Key
	Secret   string
	Replayed bool
}

const (
	// maxRaces bounds how often a request decides anew because another writer was
	// faster. Operators are few.
	maxRaces = 8
	// maxWorking bounds the keys of a merchant that work at one time, so that a
	// rotation is one transaction.
	maxWorking = 20
	// pageSize is how many keys one read brings.
	pageSize = 100
)

// idPrefix of a made merchant's id; a ULID follows.
const idPrefix = "mer_"

// Create makes a merchant with its first key. Error: idempotency.ErrKeyReused.
func (s *Service) Create(ctx context.Context, r Request, name string) (Issued, error) {
	now := s.Now()
	m := Merchant{ID: idPrefix + s.NewULID(), Name: name, CreatedAt: now}
	key, secret := s.newKey(m.ID, now)
	return s.issue(ctx, r, func(claim *idempotency.Claim) (Issued, Change, error) {
		claim.Record.ResourceID = resource(key)
		return Issued{Merchant: m, Key: key, Secret: secret}, Change{Merchant: &m, Add: []Key{key}, Claim: claim}, nil
	})
}

// Rotate makes a new key of a merchant. Its older ones work for overlap from now
// on; one that ends sooner still does. Errors: ErrNotFound, ErrTooManyKeys,
// idempotency.ErrKeyReused.
func (s *Service) Rotate(ctx context.Context, r Request, merchantID string, overlap time.Duration) (Issued, error) {
	return s.issue(ctx, r, func(claim *idempotency.Claim) (Issued, Change, error) {
		m, err := s.merchant(ctx, merchantID)
		if err != nil {
			return Issued{}, Change{}, err
		}
		older, err := s.keys(ctx, merchantID)
		if err != nil {
			return Issued{}, Change{}, err
		}
		now := s.Now()
		change := Change{Claim: claim}
		working := 0
		for _, k := range older {
			if !k.Works(now) {
				continue
			}
			working++
			if end := now.Add(overlap); k.EndsAt.IsZero() || end.Before(k.EndsAt) {
				next := k
				next.EndsAt = end
				change.Set = append(change.Set, KeyChange{Seen: k, Next: next})
			}
		}
		if working >= maxWorking {
			return Issued{}, Change{}, ErrTooManyKeys
		}
		key, secret := s.newKey(merchantID, now)
		for slices.ContainsFunc(older, func(k Key) bool { return k.Prefix == key.Prefix }) {
			key, secret = s.newKey(merchantID, now) // a prefix names one key of a merchant
		}
		claim.Record.ResourceID = resource(key)
		change.Add = []Key{key}
		return Issued{Merchant: m, Key: key, Secret: secret}, change, nil
	})
}

// Revoke ends a merchant's keys with that prefix at once. Revoking again changes
// nothing. It returns ErrNotFound when the merchant never had one.
func (s *Service) Revoke(ctx context.Context, merchantID, prefix string) error {
	for range maxRaces {
		if _, err := s.merchant(ctx, merchantID); err != nil {
			return err
		}
		keys, err := s.keys(ctx, merchantID)
		if err != nil {
			return err
		}
		found, change := false, Change{}
		for _, k := range keys {
			if k.Prefix != prefix {
				continue
			}
			found = true
			if k.RevokedAt.IsZero() {
				next := k
				next.RevokedAt = s.Now()
				change.Set = append(change.Set, KeyChange{Seen: k, Next: next})
			}
		}
		switch {
		case !found:
			return ErrNotFound
		case change.Set == nil:
			return nil
		}
		err = s.Store.CommitKeys(ctx, change)
		if _, lost := errors.AsType[*journal.Conflict](err); !lost {
			return err
		}
	}
	return journal.ErrBusy
}

// Keys reads a page of the keys of a merchant that work, newest first. A page may
// hold fewer than limit although another follows. Errors: ErrNotFound,
// store.ErrCursor.
func (s *Service) Keys(ctx context.Context, merchantID, cursor string, limit int) ([]Key, string, error) {
	if _, err := s.merchant(ctx, merchantID); err != nil {
		return nil, "", err
	}
	keys, next, err := s.Store.MerchantKeys(ctx, merchantID, cursor, limit)
	if err != nil {
		return nil, "", fmt.Errorf("list keys of %s: %w", merchantID, err)
	}
	now := s.Now()
	keys = slices.DeleteFunc(keys, func(k Key) bool { return !k.Works(now) })
	return keys, next, nil
}

// Seed makes sure that the key exists with that role: for local runs, where keys
// are public. MerchantID is "" for the operator. Safe to repeat; a key that exists
// is left as it is.
func (s *Service) Seed(ctx context.Context, merchantID, key string, role Role) error {
	k := Key{Hash: Hash(key), MerchantID: merchantID, Role: role, Prefix: shownPrefix(key), CreatedAt: s.Now()}
	if k.Prefix == "" || (role == RoleMerchant) != ValidID(merchantID) {
		return fmt.Errorf("seed key of merchant %q: malformed", merchantID)
	}
	for range maxRaces {
		_, err := s.Store.APIKey(ctx, k.Hash)
		if !errors.Is(err, ErrUnknownKey) {
			return err
		}
		change := Change{Add: []Key{k}}
		if role == RoleMerchant {
			_, err := s.Store.Merchant(ctx, merchantID)
			switch {
			case errors.Is(err, ErrNotFound):
				change.Merchant = &Merchant{ID: merchantID, Name: merchantID, CreatedAt: k.CreatedAt}
			case err != nil:
				return err
			}
		}
		err = s.Store.CommitKeys(ctx, change)
		if _, lost := errors.AsType[*journal.Conflict](err); !lost {
			return err
		}
	}
	return journal.ErrBusy
}

func (s *Service) newKey(merchantID string, now time.Time) (Key, string) {
	secret := s.KeyPrefix + s.NewSecret()
	return Key{Hash: Hash(secret), MerchantID: merchantID, Role: RoleMerchant, Prefix: shownPrefix(secret), CreatedAt: now}, secret
}

func (s *Service) merchant(ctx context.Context, id string) (Merchant, error) {
	if !ValidID(id) {
		return Merchant{}, ErrNotFound
	}
	return s.Store.Merchant(ctx, id)
}

// keys reads all keys of a merchant, newest first.
func (s *Service) keys(ctx context.Context, merchantID string) ([]Key, error) {
	var all []Key
	for cursor := ""; ; {
		page, next, err := s.Store.MerchantKeys(ctx, merchantID, cursor, pageSize)
		if err != nil {
			return nil, fmt.Errorf("read keys of %s: %w", merchantID, err)
		}
		all = append(all, page...)
		if cursor = next; cursor == "" {
			return all, nil
		}
	}
}

// issue makes what decide decides, once for each key of a request. A repeat gets
// what was made then, without the secret, which nobody has any more.
func (s *Service) issue(ctx context.Context, r Request, decide func(*idempotency.Claim) (Issued, Change, error)) (Issued, error) {
	for range maxRaces {
		claim, done, err := idempotency.Begin(ctx, s.Store, idempotency.Fresh(r.Scope, r.Fingerprint, "", s.Now()), s.IdempotencyTTL)
		switch {
		case err != nil:
			return Issued{}, err
		case done != nil:
			return s.replay(ctx, *done)
		}
		issued, change, err := decide(claim)
		if err != nil {
			return Issued{}, err
		}
		err = s.Store.CommitKeys(ctx, change)
		if err == nil {
			return issued, nil
		}
		if _, lost := errors.AsType[*journal.Conflict](err); !lost {
			return Issued{}, fmt.Errorf("issue key: %w", err)
		}
	}
	return Issued{}, journal.ErrBusy
}

// resource is what a record remembers of an issued key: its merchant and its id.
func resource(k Key) string { return k.MerchantID + "/" + k.ID() }

func (s *Service) replay(ctx context.Context, rec idempotency.Record) (Issued, error) {
	merchantID, keyID, _ := strings.Cut(rec.ResourceID, "/")
	m, err := s.Store.Merchant(ctx, merchantID)
	if err != nil {
		return Issued{}, fmt.Errorf("read merchant of a repeat: %w", err)
	}
	keys, err := s.keys(ctx, merchantID)
	if err != nil {
		return Issued{}, err
	}
	for _, k := range keys {
		if k.ID() == keyID {
			return Issued{Merchant: m, Key: k, Replayed: true}, nil
		}
	}
	return Issued{}, fmt.Errorf("key of a repeat: %w", ErrNotFound)
}
