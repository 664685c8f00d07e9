package dynamo_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kessai/kessai/internal/store"
)

// spell replaces the placeholders of an expression by what they stand for.
func spell(expression *string, names map[string]string, values map[string]types.AttributeValue) string {
	s := aws.ToString(expression)
	// The longest first: #10 before #1.
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(names))) {
		s = strings.ReplaceAll(s, p, "<"+names[p]+">")
	}
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(values))) {
		v := values[p]
		literal := "?"
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			literal = "'" + v.Value + "'"
		case *types.AttributeValueMemberN:
			literal = v.Value
		case *types.AttributeValueMemberBOOL:
			literal = fmt.Sprint(v.Value)
		}
		s = strings.ReplaceAll(s, p, literal)
	}
	return s
}

func TestConditionsBecomeExpressions(t *testing.T) {
	cases := []struct {
		c    store.Condition
		want string
	}{
		{store.Condition{}, ""},
		{store.All(), ""},
		{store.Any(), "(attribute_exists(<pk>) AND attribute_not_exists(<pk>))"},
		{store.Exists(), "attribute_exists(<pk>)"},
		{store.Absent(), "attribute_not_exists(<pk>)"},
		{store.Has("status"), "attribute_exists(<status>)"},
		{store.HasNo("status"), "attribute_not_exists(<status>)"},
		{store.Equal("status", "x"), "<status> = 'x'"},
		{store.Equal("b", true), "<b> = true"},
		{store.NotEqual("n", int64(5)), "(attribute_not_exists(<n>) OR <n> <> 5)"},
		{store.Less("n", -5), "<n> < -5"},
		{store.AtLeast("n", 5), "<n> >= 5"},
		{
			store.All(store.Absent(), store.Any(store.Has("a"), store.Less("n", 1)), store.All()),
			"(attribute_not_exists(<pk>) AND (attribute_exists(<a>) OR <n> < 1))",
		},
		{store.Any(store.All(store.Has("a"), store.Any()), store.Equal("a", "y")), "<a> = 'y'"},
	}
	for _, c := range cases {
		table, f := newTable(t)
		if err := table.Write(t.Context(), store.Write{Kind: store.Delete, Key: onePut[0].Key, If: c.c}); err != nil {
			t.Fatal(err)
		}
		in := f.sent[0].(*dynamodb.DeleteItemInput)
		got := spell(in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
		if got != c.want {
			t.Errorf("%+v: got %q, want %q", c.c, got, c.want)
		}
		if (in.ConditionExpression == nil) != (c.want == "") || (in.ExpressionAttributeNames == nil) != (c.want == "") {
			t.Errorf("%+v: got %v, want no empty expression or names", c.c, in)
		}
		if in.ReturnValuesOnConditionCheckFailure != types.ReturnValuesOnConditionCheckFailureAllOld {
			t.Errorf("%+v: got no ALL_OLD", c.c)
		}
	}
}

func TestAnUpdateNamesWhatItChangesAndCantAddTwice(t *testing.T) {
	w := store.Write{
		Kind: store.Update, Key: onePut[0].Key, If: store.Equal("version", int64(1)),
		Set: store.Item{"b": int64(2), "a": "x"}, Remove: []string{"r"}, Add: map[string]int64{"version": 1, "n": -1},
	}
	table, f := newTable(t)
	if err := table.Write(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	in := f.sent[0].(*dynamodb.UpdateItemInput)
	writer := ""
	for _, v := range in.ExpressionAttributeValues {
		if s := text(v); len(s) > 5 {
			writer = s
		}
	}
	update := spell(in.UpdateExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	want := "SET <a> = 'x', <b> = 2, <writer> = '" + writer + "' REMOVE <r> ADD <n> -1, <version> 1"
	if update != want {
		t.Errorf("got %q, want %q", update, want)
	}
	condition := spell(in.ConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
	want = "(<version> = 1 AND (attribute_not_exists(<writer>) OR <writer> <> '" + writer + "'))"
	if condition != want {
		t.Errorf("got %q, want %q", condition, want)
	}
	if in.ReturnValuesOnConditionCheckFailure != types.ReturnValuesOnConditionCheckFailureAllOld {
		t.Error("got no ALL_OLD")
	}
	if text(in.Key["pk"]) != "P" || text(in.Key["sk"]) != "S" || aws.ToString(in.TableName) != "payments" {
		t.Errorf("got key %v of table %q", in.Key, aws.ToString(in.TableName))
	}
}

func TestATransactionAsksForEachItemThatRefusesIt(t *testing.T) {
	key := func(sk string) store.Key { return store.Key{PK: "P", SK: sk} }
	table, f := newTable(t)
	err := table.Write(t.Context(),
		store.Write{Kind: store.Put, Key: key("1"), If: store.Absent()},
		store.Write{Kind: store.Update, Key: key("2"), If: store.Exists()},
		store.Write{Kind: store.Delete, Key: key("3"), If: store.Exists()},
		store.Write{Kind: store.Check, Key: key("4"), If: store.Exists()})
	if err != nil {
		t.Fatal(err)
	}
	items := f.sent[0].(*dynamodb.TransactWriteItemsInput).TransactItems
	for i, got := range []types.ReturnValuesOnConditionCheckFailure{
		items[0].Put.ReturnValuesOnConditionCheckFailure, items[1].Update.ReturnValuesOnConditionCheckFailure,
		items[2].Delete.ReturnValuesOnConditionCheckFailure, items[3].ConditionCheck.ReturnValuesOnConditionCheckFailure,
	} {
		if got != types.ReturnValuesOnConditionCheckFailureAllOld {
			t.Errorf("write %d: got no ALL_OLD", i)
		}
	}
}

func TestALoneCheckIsATransaction(t *testing.T) {
	table, f := newTable(t)
	if err := table.Write(t.Context(), store.Write{Kind: store.Check, Key: onePut[0].Key, If: store.Exists()}); err != nil {
		t.Fatal(err)
	}
	if in, ok := f.sent[0].(*dynamodb.TransactWriteItemsInput); !ok || in.TransactItems[0].ConditionCheck == nil {
		t.Errorf("got %T, want a transaction of one check", f.sent[0])
	}
}

func TestF26_AReadIsConsistent(t *testing.T) {
	table, f := newTable(t)
	if _, err := table.Get(t.Context(), onePut[0].Key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v of no item, want ErrNotFound", err)
	}
	if !aws.ToBool(f.sent[0].(*dynamodb.GetItemInput).ConsistentRead) {
		t.Error("got an eventually consistent get")
	}
	f.query = &dynamodb.QueryOutput{}
	if _, err := table.Query(t.Context(), store.Query{PK: "P", Limit: 1}); err != nil {
		t.Fatal(err)
	}
	if !aws.ToBool(f.sent[1].(*dynamodb.QueryInput).ConsistentRead) {
		t.Error("got an eventually consistent query of the table")
	}
	if _, err := table.Query(t.Context(), store.Query{PK: "0", Index: store.IndexDue, Limit: 1}); err != nil {
		t.Fatal(err)
	}
	if aws.ToBool(f.sent[2].(*dynamodb.QueryInput).ConsistentRead) {
		t.Error("got a consistent query of the index, which DynamoDB refuses")
	}
}

func TestReadsAreRepeated(t *testing.T) {
	table, f := newTable(t, failsWith("ThrottlingException"), fails(lostAnswers["reset"]))
	f.item = image("x")
	item, err := table.Get(t.Context(), onePut[0].Key)
	if err != nil || item["n"] != int64(7) || item["pk"] != nil || len(f.sent) != 3 {
		t.Errorf("got %v, %v after %d requests, want the item after 3", item, err, len(f.sent))
	}
	table, f = newTable(t, times(20, fails(lostAnswers["reset"]))...)
	f.query = &dynamodb.QueryOutput{}
	_, err = table.Query(t.Context(), store.Query{PK: "P", Limit: 1})
	if !errors.Is(err, store.ErrUnavailable) || len(f.sent) != 3 {
		t.Errorf("got %v after %d requests, want ErrUnavailable after 3", err, len(f.sent))
	}
}

func TestAQuerySaysWhatItReads(t *testing.T) {
	cases := []struct {
		q    store.Query
		want string
	}{
		{store.Query{PK: "P", Limit: 3}, "<pk> = 'P'"},
		{store.Query{PK: "P", SKPrefix: "E#", Limit: 3, Descending: true}, "<pk> = 'P' AND begins_with(<sk>, 'E#')"},
		{store.Query{PK: "0", Index: store.IndexDue, Limit: 3}, "<due_shard> = '0'"},
		{store.Query{PK: "0", Index: store.IndexDue, AtMost: 9, Limit: 3}, "<due_shard> = '0' AND <due_at> <= 9"},
	}
	for _, c := range cases {
		table, f := newTable(t)
		f.query = &dynamodb.QueryOutput{}
		if _, err := table.Query(t.Context(), c.q); err != nil {
			t.Fatal(err)
		}
		in := f.sent[0].(*dynamodb.QueryInput)
		got := spell(in.KeyConditionExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues)
		if got != c.want || aws.ToString(in.IndexName) != c.q.Index {
			t.Errorf("got %q of index %q, want %q", got, aws.ToString(in.IndexName), c.want)
		}
		if aws.ToInt32(in.Limit) != 4 || aws.ToBool(in.ScanIndexForward) == c.q.Descending {
			t.Errorf("got limit %d, forward %v", aws.ToInt32(in.Limit), aws.ToBool(in.ScanIndexForward))
		}
	}
}

func TestAPageStoppedByItsBytesGoesOnAtTheirKey(t *testing.T) {
	table, f := newTable(t)
	f.query = &dynamodb.QueryOutput{
		Items: []map[string]types.AttributeValue{image("x")},
		LastEvaluatedKey: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "P"}, "sk": &types.AttributeValueMemberS{Value: "S"},
			"due_shard": &types.AttributeValueMemberS{Value: "0"}, "due_at": &types.AttributeValueMemberN{Value: "9"},
		},
	}
	q := store.Query{PK: "0", Index: store.IndexDue, Limit: 10}
	page, err := table.Query(t.Context(), q)
	if err != nil || len(page.Entries) != 1 || page.Cursor == "" {
		t.Fatalf("got %v, %v, want one entry and a cursor", page, err)
	}
	q.Cursor = page.Cursor
	if _, err := table.Query(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	start := f.sent[1].(*dynamodb.QueryInput).ExclusiveStartKey
	at, _ := start["due_at"].(*types.AttributeValueMemberN)
	if len(start) != 4 || text(start["pk"]) != "P" || text(start["due_shard"]) != "0" || at == nil || at.Value != "9" {
		t.Errorf("got %v, want the key of index and table", start)
	}
}

func TestAnItemThatThePortHasNoTypeForIsAnError(t *testing.T) {
	for name, odd := range map[string]types.AttributeValue{
		"null":           &types.AttributeValueMemberNULL{Value: true},
		"binary":         &types.AttributeValueMemberB{Value: []byte("x")},
		"set":            &types.AttributeValueMemberSS{Value: []string{"x"}},
		"fraction":       &types.AttributeValueMemberN{Value: "1.5"},
		"beyond 64 bits": &types.AttributeValueMemberN{Value: "9223372036854775808"},
		"null in a list": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberNULL{Value: true}}},
		"null in a map":  &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"x": &types.AttributeValueMemberNULL{Value: true}}},
	} {
		table, f := newTable(t)
		f.item = image("x")
		f.item["odd"] = odd
		if item, err := table.Get(t.Context(), onePut[0].Key); err == nil {
			t.Errorf("%s: got %v, want an error", name, item)
		}
		f.query = &dynamodb.QueryOutput{Items: []map[string]types.AttributeValue{f.item}}
		if page, err := table.Query(t.Context(), store.Query{PK: "P", Limit: 1}); err == nil {
			t.Errorf("%s: got %v, want an error", name, page)
		}
	}
}
