package merchant

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
)

// Role is whom a key speaks for.
type Role string

// Roles.
const (
	RoleMerchant Role = "merchant" // one merchant's own resources
	RoleOperator Role = "operator" // the operator's routes
)

// Principal is who makes a request. Its zero value is nobody.
type Principal struct {
	MerchantID string // "" for the operator
	Role       Role
}

// Merchant is one shop.
type Merchant struct {
	ID        string
	Name      string
	CreatedAt time.Time
}

// Key is an API key without the key itself.
type Key struct {
	Hash       string // SHA-256 of the key, in hexadecimal
	MerchantID string // "" for an operator's
	Role       Role
	Prefix     string // the start of the key, for people
	CreatedAt  time.Time
	EndsAt     time.Time // from then on it does not work; zero: no end
	RevokedAt  time.Time // zero: not revoked
}

// Works reports whether the key authenticates at now.
func (k Key) Works(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.EndsAt.IsZero() || now.Before(k.EndsAt))
}

// ID names the key within its merchant and orders a merchant's keys by age.
func (k Key) ID() string { return fmt.Sprintf("%013d#%s", k.CreatedAt.UnixMilli(), k.Prefix) }

var (
	// ErrUnknownKey says that a key is none, has ended or is revoked.
	ErrUnknownKey = errors.New("merchant: unknown key")
	// ErrNotFound says that there is no such merchant, or no such key of it.
	ErrNotFound = errors.New("merchant: not found")
	// ErrTooManyKeys says that the merchant has as many working keys as it may.
	ErrTooManyKeys = errors.New("merchant: too many working keys")
)

// Change is one transaction on merchants and keys.
type Change struct {
	Merchant *Merchant // made, if there is none with its id
	Add      []Key     // made; each must be absent
	// Set are keys whose EndsAt and RevokedAt change, each unchanged since Seen.
	Set   []KeyChange
	Claim *idempotency.Claim
}

// KeyChange is a key before and after a change of its end.
type KeyChange struct{ Seen, Next Key }

// Store keeps merchants and keys.
type Store interface {
	// APIKey reads a key by its hash, consistently, or returns ErrUnknownKey.
	APIKey(ctx context.Context, hash string) (Key, error)
	// Merchant reads consistently, or returns ErrNotFound.
	Merchant(ctx context.Context, id string) (Merchant, error)
	// MerchantKeys reads a page of a merchant's keys, newest first, whether they
	// work or not. It returns store.ErrCursor for a cursor that is none.
	MerchantKeys(ctx context.Context, merchantID, cursor string, limit int) ([]Key, string, error)
	// Record reads an idempotency record consistently, or returns idempotency.ErrNoRecord.
	Record(ctx context.Context, merchantID, hash string) (idempotency.Record, error)
	// CommitKeys is one transaction. It returns a *journal.Conflict when something
	// has moved on or another request has the claim's key.
	CommitKeys(ctx context.Context, c Change) error
}

// Prefixes of keys, by what they are good for.
const (
	PrefixTest = "sk_test_"
	PrefixLive = "sk_live_"
)

// NewSecret is the random part of a key: 52 characters with 5 random bits each.
func NewSecret() string { return rand.Text() + rand.Text() }

// Hash is the place of a key in the store.
func Hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// shownCharacters of a key's random part are in its prefix: 20 bits of 260.
const shownCharacters = 4

// shownPrefix is the part of a key that people see: 12 characters of a made key,
// and of a short one, which only a seed can be, never more than half of its own part.
func shownPrefix(key string) string {
	for _, prefix := range []string{PrefixTest, PrefixLive} {
		if own, ok := strings.CutPrefix(key, prefix); ok {
			return prefix + own[:min(shownCharacters, len(own)/2)]
		}
	}
	return ""
}

// maxIDLength is far above a prefix and a ULID (30) and far below a key's limit.
const maxIDLength = 64

// ValidID reports whether s can be a merchant's id: 1 to 64 letters, digits, "_"
// or "-". Store keys join ids with "#"; that no id can hold one is what keeps two
// merchants' keys from meeting.
func ValidID(s string) bool {
	if s == "" || len(s) > maxIDLength {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
