// Package idempotency makes a repeated request find what the first one did. Its
// record points at the resource and holds no answer, so that a replay is
// rendered from the resource as it is now.
//
// A record is written in one transaction with the first intent of its request
// and changed only by a takeover. It has expired when it is older than the
// configured time and its resource is at rest; an expired one is replaced.
//
// The header follows draft-ietf-httpapi-idempotency-key-header.
package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxKeyLength is the longest key in characters, as with other payment APIs.
const MaxKeyLength = 255

var (
	// ErrKeyRequired says that the header is missing or empty.
	ErrKeyRequired = errors.New("idempotency: key required")
	// ErrKeyInvalid says that the key is too long or not printable ASCII.
	ErrKeyInvalid = errors.New("idempotency: key invalid")
	// ErrKeyReused says that the key was used with another request.
	ErrKeyReused = errors.New("idempotency: key used with another request")
	// ErrNoRecord says that the key is free.
	ErrNoRecord = errors.New("idempotency: no record")
)

// ParseKey reads the value of an Idempotency-Key header. A quoted structured
// string (RFC 8941 section 3.3.3) counts as its content. It returns
// ErrKeyRequired or ErrKeyInvalid.
func ParseKey(header string) (string, error) {
	key := strings.Trim(header, " \t")
	if len(key) >= 2 && key[0] == '"' && key[len(key)-1] == '"' {
		var err error
		if key, err = unquote(key[1 : len(key)-1]); err != nil {
			return "", err
		}
	}
	if key == "" {
		return "", ErrKeyRequired
	}
	if len(key) > MaxKeyLength {
		return "", ErrKeyInvalid
	}
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7e {
			return "", ErrKeyInvalid
		}
	}
	return key, nil
}

// unquote resolves the two escapes of a structured string, \" and \\.
func unquote(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return "", ErrKeyInvalid
		case s[i] != '\\':
			b.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) || (s[i] != '"' && s[i] != '\\') {
			return "", ErrKeyInvalid
		}
		b.WriteByte(s[i])
	}
	return b.String(), nil
}

// Scope is where a key counts: one merchant, one method, one route with its ids.
type Scope struct {
	MerchantID string
	Method     string
	Route      string // path with ids, such as /v1/payments/pay_01J/refunds
	Key        string
}

// Hash is the scope's place in the store beside the merchant: SHA-256 of method,
// route and key. The key itself is not stored.
func (s Scope) Hash() string {
	sum := sha256.Sum256([]byte(s.Method + "\x00" + s.Route + "\x00" + s.Key))
	return hex.EncodeToString(sum[:])
}

// Fingerprint identifies a decoded request: canonical is its decoded form,
// written in one fixed way.
func Fingerprint(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// Record says which request had the key, and what it made.
type Record struct {
	MerchantID      string
	Hash            string
	Fingerprint     string
	ResourceID      string // payment or checkout
	RefundID        string // refund of the payment, "" unless the request was a refund
	Attempt         int    // which attempt at its operation the request was, from 1; 0 where there is only one
	CreatedAt       time.Time
	InProgressUntil time.Time // until then the first request may be in flight
}

// Check returns ErrKeyReused when the request with that fingerprint is another
// than the record's.
func (r Record) Check(fingerprint string) error {
	if r.Fingerprint != fingerprint {
		return ErrKeyReused
	}
	return nil
}

// Expired reports whether the key may be used for something new.
func (r Record) Expired(now time.Time, ttl time.Duration, atRest bool) bool {
	return atRest && now.Sub(r.CreatedAt) >= ttl
}

// Claim is the writing of a record within a transaction: a new one, or one in
// place of Seen, which must not have changed meanwhile.
type Claim struct {
	Record Record
	Seen   *Record // nil: there must be none
}

// Records finds records.
type Records interface {
	// Record reads consistently, or returns ErrNoRecord.
	Record(ctx context.Context, merchantID, hash string) (Record, error)
}

// Fresh is the record of a request that is done with one commit.
func Fresh(s Scope, fingerprint, resourceID string, now time.Time) Record {
	return Record{MerchantID: s.MerchantID, Hash: s.Hash(), Fingerprint: fingerprint, ResourceID: resourceID, CreatedAt: now, InProgressUntil: now}
}

// Begin looks for the record of a request that is done with one commit: done is the
// record when it was done before, else claim is what to write with it. Fresh is the
// record that it would leave. Errors: ErrKeyReused, or the store's.
func Begin(ctx context.Context, records Records, fresh Record, ttl time.Duration) (claim *Claim, done *Record, err error) {
	rec, err := records.Record(ctx, fresh.MerchantID, fresh.Hash)
	switch {
	case errors.Is(err, ErrNoRecord):
		return &Claim{Record: fresh}, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("read idempotency record: %w", err)
	case rec.Expired(fresh.CreatedAt, ttl, true):
		return &Claim{Record: fresh, Seen: &rec}, nil, nil
	}
	return nil, &rec, rec.Check(fresh.Fingerprint)
}
