package dynamo_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/dynamo"
)

var streamed = store.Item{
	"text": "é", "empty": "", "n": int64(math.MinInt64), "max": int64(math.MaxInt64), "yes": true, "no": false,
	"list": []any{"x", int64(1), []any{}, map[string]any{}}, "map": map[string]any{"deep": map[string]any{"a": "b"}},
}

func TestAChangeSurvivesTheRecordItBecomes(t *testing.T) {
	key := store.Key{PK: "P", SK: "S"}
	cases := map[string]store.Change{
		"insert":          {Key: key, New: streamed, Sequence: "1"},
		"insert of none":  {Key: key, New: store.Item{}, Sequence: "1"},
		"modification":    {Key: key, Old: streamed, New: store.Item{"a": "x"}, Sequence: "2"},
		"removal":         {Key: key, Old: streamed, Sequence: "3"},
		"expiry":          {Key: key, Old: streamed, Sequence: "4", Expired: true},
		"emptied by none": {Key: key, Old: store.Item{}, New: store.Item{}, Sequence: "5"},
	}
	for name, want := range cases {
		raw, err := json.Marshal(dynamo.RecordFromChange(want))
		if err != nil {
			t.Fatal(err)
		}
		var record events.DynamoDBEventRecord
		if err := json.Unmarshal(raw, &record); err != nil {
			t.Fatal(err)
		}
		got, err := dynamo.ChangeFromRecord(record)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// A record as Lambda passes it on, of an item that DynamoDB expired.
const expiredRecord = `{
  "eventID": "c81e728d9d4c2f636f067f89cc14862c", "eventName": "REMOVE", "eventVersion": "1.1",
  "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
  "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"},
  "dynamodb": {
    "ApproximateCreationDateTime": 1767322445,
    "Keys": {"pk": {"S": "WEBHOOK#simulator#evt_1"}, "sk": {"S": "INBOX"}},
    "OldImage": {"pk": {"S": "WEBHOOK#simulator#evt_1"}, "sk": {"S": "INBOX"}, "expires_at": {"N": "1767322445"}, "l": {"L": [{"BOOL": true}]}},
    "SequenceNumber": "4421584500000000017450439091", "SizeBytes": 59, "StreamViewType": "NEW_AND_OLD_IMAGES"
  },
  "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/payments/stream/2026-01-02T03:04:05.000"
}`

func TestF29_AnExpiryIsToldFromARemoval(t *testing.T) {
	var record events.DynamoDBEventRecord
	if err := json.Unmarshal([]byte(expiredRecord), &record); err != nil {
		t.Fatal(err)
	}
	got, err := dynamo.ChangeFromRecord(record)
	want := store.Change{
		Key:      store.Key{PK: "WEBHOOK#simulator#evt_1", SK: "INBOX"},
		Old:      store.Item{"expires_at": int64(1767322445), "l": []any{true}},
		Sequence: "4421584500000000017450439091",
		Expired:  true,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for name, by := range map[string]*events.DynamoDBUserIdentity{
		"nobody":            nil,
		"another service":   {Type: "Service", PrincipalID: "replication.dynamodb.amazonaws.com"},
		"somebody like it":  {Type: "User", PrincipalID: "dynamodb.amazonaws.com"},
		"an empty identity": {},
	} {
		record.UserIdentity = by
		if got, err := dynamo.ChangeFromRecord(record); err != nil || got.Expired {
			t.Errorf("removed by %s: got %+v, %v, want no expiry", name, got, err)
		}
	}
}

func TestARecordThatCantBeReadIsAnError(t *testing.T) {
	good := func() events.DynamoDBEventRecord {
		return dynamo.RecordFromChange(store.Change{Key: store.Key{PK: "P", SK: "S"}, Old: streamed, New: streamed, Sequence: "1"})
	}
	for name, spoil := range map[string]func(r *events.DynamoDBEventRecord){
		"no keys":         func(r *events.DynamoDBEventRecord) { r.Change.Keys = nil },
		"a number as key": func(r *events.DynamoDBEventRecord) { r.Change.Keys["pk"] = events.NewNumberAttribute("1") },
		"no old image":    func(r *events.DynamoDBEventRecord) { r.Change.OldImage = nil },
		"no new image":    func(r *events.DynamoDBEventRecord) { r.Change.NewImage = nil },
		"unknown event":   func(r *events.DynamoDBEventRecord) { r.EventName, r.Change.NewImage = "", nil },
		"null in new":     func(r *events.DynamoDBEventRecord) { r.Change.NewImage["x"] = events.NewNullAttribute() },
		"fraction in old": func(r *events.DynamoDBEventRecord) { r.Change.OldImage["x"] = events.NewNumberAttribute("1.5") },
		"set in new": func(r *events.DynamoDBEventRecord) {
			r.Change.NewImage["x"] = events.NewStringSetAttribute([]string{"a"})
		},
		"null in a list":   func(r *events.DynamoDBEventRecord) { r.Change.NewImage["x"] = listOf(events.NewNullAttribute()) },
		"binary in a map":  func(r *events.DynamoDBEventRecord) { r.Change.NewImage["x"] = mapOf(events.NewBinaryAttribute(nil)) },
		"removal with new": func(r *events.DynamoDBEventRecord) { r.EventName = "REMOVE" },
	} {
		r := good()
		spoil(&r)
		if got, err := dynamo.ChangeFromRecord(r); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
	}
}

func listOf(av events.DynamoDBAttributeValue) events.DynamoDBAttributeValue {
	return events.NewListAttribute([]events.DynamoDBAttributeValue{av})
}

func mapOf(av events.DynamoDBAttributeValue) events.DynamoDBAttributeValue {
	return events.NewMapAttribute(map[string]events.DynamoDBAttributeValue{"x": av})
}

func TestALambdaHandlersFailuresBecomeABatchError(t *testing.T) {
	key := store.Key{PK: "P", SK: "S"}
	batch := []store.Change{{Key: key, New: store.Item{}, Sequence: "1"}, {Key: key, Old: store.Item{}, Sequence: "2"}}
	var got []string
	response := events.DynamoDBEventResponse{}
	var failure error
	handler := dynamo.StreamHandler(func(_ context.Context, e events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
		got = nil
		for _, r := range e.Records {
			got = append(got, r.EventName+" "+r.Change.SequenceNumber)
		}
		return response, failure
	})
	if err := handler(t.Context(), batch); err != nil || !slices.Equal(got, []string{"INSERT 1", "REMOVE 2"}) {
		t.Errorf("got %v, %v, want both records and success", got, err)
	}
	response.BatchItemFailures = []events.DynamoDBBatchItemFailure{{ItemIdentifier: "2"}}
	partial, ok := errors.AsType[*store.BatchError](handler(t.Context(), batch))
	if !ok || !slices.Equal(partial.Failed, []string{"2"}) {
		t.Errorf("got %v, want the failure of 2", partial)
	}
	failure = errors.New("broken")
	if err := handler(t.Context(), batch); !errors.Is(err, failure) {
		t.Errorf("got %v, want the handler's error", err)
	}
}
