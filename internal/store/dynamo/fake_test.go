package dynamo_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/dynamo"
)

// fake is an API that gives scripted answers, then success, and keeps what it was
// sent. It knows nothing of DynamoDB: what DynamoDB does is the contract's to test.
type fake struct {
	mu      sync.Mutex
	answers []answer
	sent    []any

	item  map[string]types.AttributeValue // of every GetItem
	query *dynamodb.QueryOutput           // of every Query
	scan  *dynamodb.ScanOutput            // of every Scan
}

// answer is what becomes of one request, given the writer it carries.
type answer func(writer string) error

func (f *fake) next(in any, writer string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = append(f.sent, in)
	if len(f.answers) == 0 {
		return nil
	}
	a := f.answers[0]
	f.answers = f.answers[1:]
	return a(writer)
}

func (f *fake) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{Item: f.item}, f.next(in, "")
}

func (f *fake) Query(_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return f.query, f.next(in, "")
}

func (f *fake) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return f.scan, f.next(in, "")
}

func (f *fake) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return nil, f.next(in, text(in.Item[store.AttrWriter]))
}

func (f *fake) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return nil, f.next(in, "")
}

func (f *fake) DeleteItem(_ context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return nil, f.next(in, "")
}

func (f *fake) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return nil, f.next(in, aws.ToString(in.ClientRequestToken))
}

func text(av types.AttributeValue) string {
	s, _ := av.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

// newTable returns a table that never rests between attempts.
func newTable(t *testing.T, answers ...answer) (*dynamo.Table, *fake) {
	t.Helper()
	f := &fake{answers: answers}
	return dynamo.New(f, "payments", dynamo.Options{Jitter: noPause}), f
}

func fails(err error) answer { return func(string) error { return err } }

func failsWith(code string) answer {
	return fails(&smithy.GenericAPIError{Code: code, Message: "scripted"})
}

func times(n int, a answer) []answer {
	out := make([]answer, n)
	for i := range out {
		out[i] = a
	}
	return out
}

// image is an item as DynamoDB returns it; writer "" leaves it unstamped.
func image(writer string) map[string]types.AttributeValue {
	values := map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "P"},
		"sk": &types.AttributeValueMemberS{Value: "S"},
		"n":  &types.AttributeValueMemberN{Value: "7"},
	}
	if writer != "" {
		values[store.AttrWriter] = &types.AttributeValueMemberS{Value: writer}
	}
	return values
}

// refusedBy is a failed condition; the item is stamped by the writer given.
func refusedBy(writer string) answer {
	return fails(&types.ConditionalCheckFailedException{Item: image(writer)})
}

// refusedByOurselves is what a client that repeats requests makes of a lost answer.
func refusedByOurselves(writer string) error {
	return &types.ConditionalCheckFailedException{Item: image(writer)}
}

const (
	none      = "None"
	condition = "ConditionalCheckFailed"
	conflict  = "TransactionConflict"
)

// canceled is a canceled transaction with one reason for each write; items that
// refused are stamped by somebody else.
func canceled(codes ...string) answer {
	return fails(cancellation("somebody else", codes...))
}

func cancellation(writer string, codes ...string) error {
	e := &types.TransactionCanceledException{}
	for _, code := range codes {
		r := types.CancellationReason{Code: aws.String(code), Message: aws.String("scripted")}
		if code == condition {
			r.Item = image(writer)
		}
		e.CancellationReasons = append(e.CancellationReasons, r)
	}
	return e
}

var (
	onePut = []store.Write{{Kind: store.Put, Key: store.Key{PK: "P", SK: "S"}, Item: store.Item{"a": "x"}, If: store.Absent()}}
	twoPut = []store.Write{
		{Kind: store.Put, Key: store.Key{PK: "P", SK: "1"}, Item: store.Item{"a": "x"}, If: store.Absent()},
		{Kind: store.Put, Key: store.Key{PK: "P", SK: "2"}, Item: store.Item{"b": "x"}, If: store.Absent()},
	}
)

func noPause(time.Duration) time.Duration { return 0 }
