package merchant

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Keyring tells whose a key is. Safe for concurrent use.
type Keyring struct {
	Store Store
	// OperatorKeys are the operator's, several while one is being replaced. An
	// empty one matches nothing, since an empty key is nobody's. Nil: there are
	// none but seeded ones.
	OperatorKeys func(ctx context.Context) ([]string, error)
	Now          func() time.Time
}

// maxKeyLength is far above a made key (60 characters) and bounds what is hashed.
const maxKeyLength = 256

// Authenticate tells whose the key is. It returns ErrUnknownKey for a key that is
// none, has ended or is revoked, and any other error when nobody could tell.
func (r *Keyring) Authenticate(ctx context.Context, key string) (Principal, error) {
	if key == "" || len(key) > maxKeyLength {
		return Principal{}, ErrUnknownKey
	}
	operator, unsure := r.isOperator(ctx, key)
	if operator {
		return Principal{Role: RoleOperator}, nil
	}
	p, err := r.stored(ctx, key)
	if errors.Is(err, ErrUnknownKey) && unsure != nil {
		return Principal{}, fmt.Errorf("read the operator's keys: %w", unsure)
	}
	return p, err
}

// isOperator compares with every key of the operator, without an early end, in
// constant time. An error says that they could not be read.
func (r *Keyring) isOperator(ctx context.Context, key string) (bool, error) {
	if r.OperatorKeys == nil {
		return false, nil
	}
	keys, err := r.OperatorKeys(ctx)
	if err != nil {
		return false, err
	}
	got, found := sha256.Sum256([]byte(key)), 0
	for _, k := range keys {
		want := sha256.Sum256([]byte(k))
		found |= subtle.ConstantTimeCompare(got[:], want[:])
	}
	return found == 1, nil
}

func (r *Keyring) stored(ctx context.Context, key string) (Principal, error) {
	if !strings.HasPrefix(key, PrefixTest) && !strings.HasPrefix(key, PrefixLive) {
		return Principal{}, ErrUnknownKey
	}
	hash := Hash(key)
	k, err := r.Store.APIKey(ctx, hash)
	if err != nil {
		return Principal{}, fmt.Errorf("read API key: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(k.Hash), []byte(hash)) != 1 || !k.Works(r.Now()) {
		return Principal{}, ErrUnknownKey
	}
	return Principal{MerchantID: k.MerchantID, Role: k.Role}, nil
}
