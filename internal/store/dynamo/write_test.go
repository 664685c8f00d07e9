package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/dynamo"
)

// Faults 21 and 22 of a table: our own success comes back as a refusal.
func TestF21_OwnWriteRefusedIsASuccess(t *testing.T) {
	table, f := newTable(t, refusedByOurselves)
	if err := table.Write(t.Context(), onePut...); err != nil || len(f.sent) != 1 {
		t.Errorf("got %v after %d requests, want success after 1", err, len(f.sent))
	}
}

func TestF22_OwnTransactionRefusedIsASuccess(t *testing.T) {
	// The other reason is the item of an earlier writer: one own item proves them all.
	table, _ := newTable(t, func(writer string) error {
		e := cancellation("somebody else", condition, condition).(*types.TransactionCanceledException)
		e.CancellationReasons[1].Item = image(writer)
		return e
	})
	if err := table.Write(t.Context(), twoPut...); err != nil {
		t.Errorf("got %v, want success", err)
	}
}

func TestARefusalByAnotherWriterIsAConditionError(t *testing.T) {
	for name, writer := range map[string]string{"stamped": "somebody else", "unstamped": ""} {
		table, f := newTable(t, refusedBy(writer))
		err := table.Write(t.Context(), onePut...)
		refusal, ok := errors.AsType[*store.ConditionError](err)
		if !ok || len(f.sent) != 1 {
			t.Fatalf("%s: got %v after %d requests, want a ConditionError after 1", name, err, len(f.sent))
		}
		if old, ok := refusal.At(0); !ok || old["n"] != int64(7) || old["pk"] != nil {
			t.Errorf("%s: got %v, want the item without its key", name, old)
		}
	}
	table, _ := newTable(t, fails(&types.ConditionalCheckFailedException{}))
	err := table.Write(t.Context(), store.Write{Kind: store.Delete, Key: onePut[0].Key, If: store.Exists()})
	refusal, ok := errors.AsType[*store.ConditionError](err)
	if !ok || refusal.Failed[0].Old != nil {
		t.Errorf("got %v, want a ConditionError with no item", err)
	}
}

func TestTheTokenIsKeptInRepeatsAndNewInTheNextWrite(t *testing.T) {
	table, f := newTable(t, canceled(none, conflict), failsWith("TransactionInProgressException"), failsWith("InternalServerError"))
	for range 2 {
		if err := table.Write(t.Context(), twoPut...); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.sent) != 5 {
		t.Fatalf("got %d requests, want 4 of the first write and 1 of the second", len(f.sent))
	}
	first := f.sent[0].(*dynamodb.TransactWriteItemsInput)
	for _, in := range f.sent[1:4] {
		if !reflect.DeepEqual(in, first) {
			t.Errorf("got %v repeated as %v, want the same request", first, in)
		}
	}
	token := aws.ToString(first.ClientRequestToken)
	if len(token) == 0 || len(token) > 36 {
		t.Errorf("got token %q, want 1 to 36 characters", token)
	}
	for _, item := range first.TransactItems {
		if got := text(item.Put.Item[store.AttrWriter]); got != token {
			t.Errorf("got writer %q, want the token %q", got, token)
		}
	}
	if next := aws.ToString(f.sent[4].(*dynamodb.TransactWriteItemsInput).ClientRequestToken); next == token {
		t.Errorf("got %q again for another write, want a new token", next)
	}
}

func TestWithoutEntropyNothingIsSent(t *testing.T) {
	f := &fake{}
	table := dynamo.New(f, "payments", dynamo.Options{Random: bytes.NewReader([]byte("too short"))})
	if err := table.Write(t.Context(), onePut...); err == nil || len(f.sent) != 0 {
		t.Errorf("got %v after %d requests, want an error before any", err, len(f.sent))
	}
}

func TestF20_ConflictIsRepeatedAndRefusalIsNot(t *testing.T) {
	cases := []struct {
		name     string
		answers  []answer
		requests int
		refused  []int // nil for success
	}{
		{"conflict", []answer{canceled(none, conflict)}, 2, nil},
		{"conflict of a plain kind", []answer{fails(&types.TransactionConflictException{})}, 2, nil},
		{"throttled", []answer{canceled("ThrottlingError", none), canceled(none, "ProvisionedThroughputExceeded")}, 3, nil},
		{"refusal of the second", []answer{canceled(none, condition)}, 1, []int{1}},
		{"refusal of both", []answer{canceled(condition, condition)}, 1, []int{0, 1}},
		{"refusal beside a conflict, then success", []answer{canceled(condition, conflict)}, 2, nil},
		{"refusal beside a conflict, then another", []answer{canceled(condition, conflict), canceled(none, condition)}, 2, []int{1}},
		{"refusal beside conflicts that last", times(8, canceled(condition, conflict)), 8, []int{0}},
	}
	for _, c := range cases {
		table, f := newTable(t, c.answers...)
		err := table.Write(t.Context(), twoPut...)
		if len(f.sent) != c.requests {
			t.Errorf("%s: got %d requests, want %d", c.name, len(f.sent), c.requests)
		}
		var refused []int
		if refusal, ok := errors.AsType[*store.ConditionError](err); ok {
			for _, failure := range refusal.Failed {
				refused = append(refused, failure.Index)
			}
		}
		if !slices.Equal(refused, c.refused) || (err == nil) != (c.refused == nil) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: got %v, want the refusal of writes %v", c.name, err, c.refused)
		}
	}
}

func TestF19_ThrottlingIsRepeatedThenUnavailable(t *testing.T) {
	for _, code := range []string{
		"ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded", "TransactionConflictException",
	} {
		table, f := newTable(t, times(7, failsWith(code))...)
		if err := table.Write(t.Context(), onePut...); err != nil || len(f.sent) != 8 {
			t.Errorf("%s: got %v after %d requests, want success at the 8th", code, err, len(f.sent))
		}
		table, f = newTable(t, times(20, failsWith(code))...)
		err := table.Write(t.Context(), onePut...)
		if !errors.Is(err, store.ErrUnavailable) || len(f.sent) != 8 {
			t.Errorf("%s: got %v after %d requests, want ErrUnavailable after 8", code, err, len(f.sent))
		}
	}
}

// lostAnswers are errors after which a request may have been carried out.
var lostAnswers = map[string]error{
	"time-out":            context.DeadlineExceeded, // of the HTTP client: the caller's context goes on
	"reset":               &net.OpError{Op: "read", Err: errors.New("connection reset by peer")},
	"InternalServerError": &smithy.GenericAPIError{Code: "InternalServerError"},
	"unknown 5xx":         &smithy.GenericAPIError{Code: "Odd", Fault: smithy.FaultServer},
	"unreadable":          &smithy.DeserializationError{Err: errors.New("bad checksum")},
}

func TestF25_ALostAnswerIsNeverAConditionError(t *testing.T) {
	for name, lost := range lostAnswers {
		table, f := newTable(t, times(20, fails(lost))...)
		err := table.Write(t.Context(), onePut...)
		_, refused := errors.AsType[*store.ConditionError](err)
		if !errors.Is(err, store.ErrUnavailable) || refused || len(f.sent) != 3 {
			t.Errorf("%s: got %v after %d requests, want ErrUnavailable after 3", name, err, len(f.sent))
		}
		table, _ = newTable(t, fails(lost), refusedByOurselves)
		if err := table.Write(t.Context(), onePut...); err != nil {
			t.Errorf("%s: got %v refused by ourselves, want success", name, err)
		}
		for _, later := range []answer{refusedBy("somebody else"), fails(&types.ConditionalCheckFailedException{})} {
			table, _ = newTable(t, fails(lost), later)
			err = table.Write(t.Context(), onePut...)
			if _, refused := errors.AsType[*store.ConditionError](err); !errors.Is(err, store.ErrUnavailable) || refused {
				t.Errorf("%s: got %v refused later, want ErrUnavailable alone", name, err)
			}
		}
		// A transaction's token makes its repeat exact.
		table, _ = newTable(t, fails(lost), canceled(condition, none))
		if _, refused := errors.AsType[*store.ConditionError](table.Write(t.Context(), twoPut...)); !refused {
			t.Errorf("%s: got no ConditionError of a transaction, want one", name)
		}
	}
}

func TestWhatNeverReachedDynamoDBIsNoLostAnswer(t *testing.T) {
	dial := fails(&net.OpError{Op: "dial", Err: errors.New("connection refused")})
	table, f := newTable(t, dial, dial, dial, refusedBy("somebody else"))
	err := table.Write(t.Context(), onePut...)
	if _, refused := errors.AsType[*store.ConditionError](err); !refused || len(f.sent) != 4 {
		t.Errorf("got %v after %d requests, want a ConditionError after 4", err, len(f.sent))
	}
}

func TestAnAdditionThatNothingGuardsIsNotRepeatedAfterALostAnswer(t *testing.T) {
	add := store.Write{Kind: store.Update, Key: onePut[0].Key, Add: map[string]int64{"n": 1}}
	lost := fails(lostAnswers["reset"])
	table, f := newTable(t, lost)
	if err := table.Write(t.Context(), add); !errors.Is(err, store.ErrUnavailable) || len(f.sent) != 1 {
		t.Errorf("got %v after %d requests, want ErrUnavailable after 1", err, len(f.sent))
	}
	table, f = newTable(t, failsWith("ThrottlingException"))
	if err := table.Write(t.Context(), add); err != nil || len(f.sent) != 2 {
		t.Errorf("throttled: got %v after %d requests, want success after 2", err, len(f.sent))
	}
	add.If = store.Equal("version", int64(1))
	table, f = newTable(t, lost)
	if err := table.Write(t.Context(), add); err != nil || len(f.sent) != 2 {
		t.Errorf("under a condition: got %v after %d requests, want success after 2", err, len(f.sent))
	}
}

func TestF23_WhatNoRepeatCanHealIsNotRepeated(t *testing.T) {
	for _, code := range []string{"IdempotentParameterMismatchException", "AccessDeniedException", "ResourceNotFoundException"} {
		table, f := newTable(t, times(20, failsWith(code))...)
		err := table.Write(t.Context(), twoPut...)
		api, ok := errors.AsType[smithy.APIError](err)
		if !ok || api.ErrorCode() != code || errors.Is(err, store.ErrUnavailable) || len(f.sent) != 1 {
			t.Errorf("got %v after %d requests, want the plain %s after 1", err, len(f.sent), code)
		}
	}
}

func TestAnItemOver400KBIsTooLarge(t *testing.T) {
	large := store.Write{Kind: store.Put, Key: onePut[0].Key}
	room := store.MaxItemBytes - store.Size(large.Key, store.Item{"a": ""})
	for name, bytes := range map[string]int{"by itself": room + 1, "by its writer's token": room} {
		table, f := newTable(t)
		large.Item = store.Item{"a": strings.Repeat("x", bytes)}
		if err := table.Write(t.Context(), large); !errors.Is(err, store.ErrTooLarge) || len(f.sent) != 0 {
			t.Errorf("%s: got %v after %d requests, want ErrTooLarge before any", name, err, len(f.sent))
		}
	}
	const message = "Item size to update has exceeded the maximum allowed size"
	alone := fails(&smithy.GenericAPIError{Code: "ValidationException", Message: "One or more: " + message})
	within := fails(&types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{
		{Code: aws.String(none)}, {Code: aws.String("ValidationError"), Message: aws.String(message)},
	}})
	table, _ := newTable(t, alone)
	if err := table.Write(t.Context(), onePut...); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("got %v of a plain write, want ErrTooLarge", err)
	}
	table, _ = newTable(t, within)
	if err := table.Write(t.Context(), twoPut...); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("got %v of a transaction, want ErrTooLarge", err)
	}
	table, f := newTable(t, failsWith("ValidationException"))
	err := table.Write(t.Context(), onePut...)
	if !errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrTooLarge) || len(f.sent) != 1 {
		t.Errorf("got %v of another validation, want ErrInvalid", err)
	}
}

func TestPausesGrowWithFullJitterUpToACap(t *testing.T) {
	var ceilings []time.Duration
	f := &fake{answers: times(20, failsWith("ThrottlingException"))}
	table := dynamo.New(f, "payments", dynamo.Options{Jitter: func(ceiling time.Duration) time.Duration {
		ceilings = append(ceilings, ceiling)
		return 0
	}})
	_ = table.Write(t.Context(), onePut...)
	want := []time.Duration{25, 50, 100, 200, 400, 800, 1000}
	for i := range want {
		want[i] *= time.Millisecond
	}
	if !slices.Equal(ceilings, want) {
		t.Errorf("got %v, want %v", ceilings, want)
	}
}

func TestNoPauseOutlastsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answers: times(20, failsWith("ThrottlingException"))}
		table := dynamo.New(f, "payments", dynamo.Options{Jitter: func(ceiling time.Duration) time.Duration { return ceiling }})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := table.Write(ctx, onePut...)
		// 25 and 50 ms fit; another 100 would not, so it isn't begun.
		if !errors.Is(err, store.ErrUnavailable) || len(f.sent) != 3 || time.Since(began) != 75*time.Millisecond {
			t.Errorf("got %v after %d requests in %v, want ErrUnavailable after 3 in 75ms", err, len(f.sent), time.Since(began))
		}
	})
}

func TestAnEndedContextIsNotRepeated(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	table, f := newTable(t, func(string) error { cancel(); return context.Canceled })
	err := table.Write(ctx, onePut...)
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) || len(f.sent) != 1 {
		t.Errorf("got %v after %d requests, want ErrUnavailable and the context's error after 1", err, len(f.sent))
	}
}

func TestAnUnreadableRefusalIsAnError(t *testing.T) {
	item := image("somebody else")
	item["odd"] = &types.AttributeValueMemberNULL{Value: true}
	table, _ := newTable(t, fails(&types.ConditionalCheckFailedException{Item: item}))
	err := table.Write(t.Context(), onePut...)
	if _, refused := errors.AsType[*store.ConditionError](err); err == nil || refused {
		t.Errorf("got %v, want a plain error: the item can't be shown", err)
	}
}
