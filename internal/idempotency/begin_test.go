package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
)

// records is a store with one record, or none, or no answer.
type records struct {
	record *idempotency.Record
	err    error
}

func (r records) Record(context.Context, string, string) (idempotency.Record, error) {
	switch {
	case r.err != nil:
		return idempotency.Record{}, r.err
	case r.record == nil:
		return idempotency.Record{}, idempotency.ErrNoRecord
	}
	return *r.record, nil
}

func TestARequestThatIsDoneWithOneCommitFindsItsRecordOrClaimsItsKey(t *testing.T) {
	const ttl = 24 * time.Hour
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	scope := idempotency.Scope{MerchantID: "m", Method: "POST", Route: "/v1/merchants", Key: "k"}
	fresh := idempotency.Fresh(scope, "print", "mer_1", now)
	if fresh.MerchantID != "m" || fresh.Hash != scope.Hash() || !fresh.InProgressUntil.Equal(now) {
		t.Errorf("got %+v, want a record of the scope that is never in flight", fresh)
	}
	made := idempotency.Fresh(scope, "print", "mer_0", now.Add(-time.Hour))
	expired := idempotency.Fresh(scope, "another", "mer_0", now.Add(-ttl))

	claim, done, err := idempotency.Begin(t.Context(), records{}, fresh, ttl)
	if err != nil || done != nil || claim == nil || claim.Record != fresh || claim.Seen != nil {
		t.Errorf("a free key: got %+v, %+v, %v, want it claimed", claim, done, err)
	}
	claim, done, err = idempotency.Begin(t.Context(), records{record: &made}, fresh, ttl)
	if err != nil || claim != nil || done == nil || *done != made {
		t.Errorf("a repeat: got %+v, %+v, %v, want the record of the first", claim, done, err)
	}
	other := fresh
	other.Fingerprint = "another"
	if claim, _, err = idempotency.Begin(t.Context(), records{record: &made}, other, ttl); claim != nil || !errors.Is(err, idempotency.ErrKeyReused) {
		t.Errorf("another request: got %+v, %v, want %v", claim, err, idempotency.ErrKeyReused)
	}
	claim, done, err = idempotency.Begin(t.Context(), records{record: &expired}, fresh, ttl)
	if err != nil || done != nil || claim == nil || claim.Record != fresh || claim.Seen == nil || *claim.Seen != expired {
		t.Errorf("an expired record: got %+v, %+v, %v, want it replaced as it was seen", claim, done, err)
	}
	silent := errors.New("no answer")
	if claim, done, err = idempotency.Begin(t.Context(), records{err: silent}, fresh, ttl); claim != nil || done != nil || !errors.Is(err, silent) {
		t.Errorf("no answer: got %+v, %+v, %v, want neither claim nor record", claim, done, err)
	}
}
