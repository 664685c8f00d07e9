package dynamo_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kessai/kessai/internal/store"
)

func TestAScanSaysWhatItPicks(t *testing.T) {
	between := store.All(store.AtLeast("at", 1), store.Less("at", 9))
	for _, c := range []struct {
		scan store.Scan
		want string
	}{
		{store.Scan{Limit: 3}, ""},
		{store.Scan{SKPrefix: "EVENT#", Limit: 3}, "begins_with(<sk>, 'EVENT#')"},
		{store.Scan{Where: between, Limit: 3}, "(<at> >= 1 AND <at> < 9)"},
		{store.Scan{SKPrefix: "EVENT#", Where: between, Limit: 3}, "begins_with(<sk>, 'EVENT#') AND (<at> >= 1 AND <at> < 9)"},
		{store.Scan{SKPrefix: "E", Where: store.Any(store.Has("a"), store.Has("b")), Limit: 3}, "begins_with(<sk>, 'E') AND (attribute_exists(<a>) OR attribute_exists(<b>))"},
	} {
		table, f := newTable(t)
		f.scan = &dynamodb.ScanOutput{}
		if _, err := table.Scan(t.Context(), c.scan); err != nil {
			t.Fatal(err)
		}
		in := f.sent[0].(*dynamodb.ScanInput)
		if got := spell(in.FilterExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
		if (in.FilterExpression == nil) != (c.want == "") || (in.ExpressionAttributeNames == nil) != (c.want == "") || (c.want == "" && in.ExpressionAttributeValues != nil) {
			t.Errorf("got %v, want no empty expression, names or values", in)
		}
		if aws.ToInt32(in.Limit) != 3 || aws.ToString(in.TableName) != "payments" || in.IndexName != nil {
			t.Errorf("got limit %d of %q", aws.ToInt32(in.Limit), aws.ToString(in.TableName))
		}
	}
}

// What DynamoDB reads before it filters is a page: an empty one may have a key to
// go on from, and only its absence is the end.
func TestAScanGoesOnAfterAnEmptyPage(t *testing.T) {
	table, f := newTable(t)
	f.scan = &dynamodb.ScanOutput{LastEvaluatedKey: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "P"}, "sk": &types.AttributeValueMemberS{Value: "S"},
	}}
	s := store.Scan{SKPrefix: "EVENT#", Limit: 3}
	page, err := table.Scan(t.Context(), s)
	if err != nil || len(page.Entries) != 0 || page.Cursor == "" {
		t.Fatalf("got %v, %v, want no entry and a cursor", page, err)
	}
	f.scan = &dynamodb.ScanOutput{Items: []map[string]types.AttributeValue{image("x")}}
	s.Cursor = page.Cursor
	page, err = table.Scan(t.Context(), s)
	if err != nil || len(page.Entries) != 1 || page.Cursor != "" {
		t.Fatalf("got %v, %v, want the last entry", page, err)
	}
	start := f.sent[1].(*dynamodb.ScanInput).ExclusiveStartKey
	if len(start) != 2 || text(start["pk"]) != "P" || text(start["sk"]) != "S" {
		t.Errorf("got %v, want the key where it stopped", start)
	}
}

func TestAScanIsRepeated(t *testing.T) {
	table, f := newTable(t, failsWith("ThrottlingException"), fails(lostAnswers["reset"]))
	f.scan = &dynamodb.ScanOutput{}
	if _, err := table.Scan(t.Context(), store.Scan{Limit: 1}); err != nil || len(f.sent) != 3 {
		t.Errorf("got %v after %d requests, want an answer after 3", err, len(f.sent))
	}
	table, f = newTable(t, times(20, fails(lostAnswers["reset"]))...)
	if _, err := table.Scan(t.Context(), store.Scan{Limit: 1}); !errors.Is(err, store.ErrUnavailable) || len(f.sent) != 3 {
		t.Errorf("got %v after %d requests, want ErrUnavailable after 3", err, len(f.sent))
	}
}
