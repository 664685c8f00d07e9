package dynamo

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/store"
)

// What a stream record says of a removal by expiry. See "DynamoDB Streams and Time
// to Live".
const (
	expiryType      = "Service"
	expiryPrincipal = "dynamodb.amazonaws.com"
)

// ChangeFromRecord reads one record of a stream with old and new images. An error
// says that the record can't be read, now or later.
func ChangeFromRecord(r events.DynamoDBEventRecord) (store.Change, error) {
	key, err := keyFromImage(r.Change.Keys)
	if err != nil {
		return store.Change{}, fmt.Errorf("dynamo: record %s: %w", r.Change.SequenceNumber, err)
	}
	c := store.Change{Key: key, Sequence: r.Change.SequenceNumber}
	if c.Old, err = FromImage(r.Change.OldImage); err != nil {
		return store.Change{}, fmt.Errorf("dynamo: record %s of %s: old image: %w", c.Sequence, key, err)
	}
	if c.New, err = FromImage(r.Change.NewImage); err != nil {
		return store.Change{}, fmt.Errorf("dynamo: record %s of %s: new image: %w", c.Sequence, key, err)
	}
	event := events.DynamoDBOperationType(r.EventName)
	hasOld, hasNew := event != events.DynamoDBOperationTypeInsert, event != events.DynamoDBOperationTypeRemove
	if (c.Old != nil) != hasOld || (c.New != nil) != hasNew {
		return store.Change{}, fmt.Errorf("dynamo: record %s of %s: %q without the images it needs", c.Sequence, key, r.EventName)
	}
	by := r.UserIdentity
	c.Expired = !hasNew && by != nil && by.Type == expiryType && by.PrincipalID == expiryPrincipal
	return c, nil
}

// RecordFromChange is the record that a stream would carry for the change, so that
// a table in memory can feed the handler of a Lambda function.
func RecordFromChange(c store.Change) events.DynamoDBEventRecord {
	r := events.DynamoDBEventRecord{
		EventID:      c.Sequence,
		EventName:    string(events.DynamoDBOperationTypeModify),
		EventSource:  "aws:dynamodb",
		EventVersion: "1.1",
		Change: events.DynamoDBStreamRecord{
			Keys:           ToImage(store.Item{attrPK: c.Key.PK, attrSK: c.Key.SK}),
			OldImage:       imageOf(c.Key, c.Old),
			NewImage:       imageOf(c.Key, c.New),
			SequenceNumber: c.Sequence,
			StreamViewType: string(events.DynamoDBStreamViewTypeNewAndOldImages),
		},
	}
	switch {
	case c.Old == nil:
		r.EventName = string(events.DynamoDBOperationTypeInsert)
	case c.New == nil:
		r.EventName = string(events.DynamoDBOperationTypeRemove)
	}
	if c.Expired {
		r.UserIdentity = &events.DynamoDBUserIdentity{Type: expiryType, PrincipalID: expiryPrincipal}
	}
	return r
}

// StreamHandler makes a Lambda function's stream handler read the changes of a
// table in memory: its response's failures become a *store.BatchError.
func StreamHandler(
	handle func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error),
) func(context.Context, []store.Change) error {
	return func(ctx context.Context, batch []store.Change) error {
		var event events.DynamoDBEvent
		for _, c := range batch {
			event.Records = append(event.Records, RecordFromChange(c))
		}
		response, err := handle(ctx, event)
		if err != nil {
			return fmt.Errorf("dynamo: stream handler: %w", err)
		}
		if len(response.BatchItemFailures) == 0 {
			return nil
		}
		failure := &store.BatchError{}
		for _, f := range response.BatchItemFailures {
			failure.Failed = append(failure.Failed, f.ItemIdentifier)
		}
		return failure
	}
}

// FromImage converts an image of a record, leaving out the key; nil of no image.
func FromImage(image map[string]events.DynamoDBAttributeValue) (store.Item, error) {
	if len(image) == 0 {
		return nil, nil
	}
	item := make(store.Item, len(image))
	for name, av := range image {
		if name == attrPK || name == attrSK {
			continue
		}
		v, err := fromImageValue(av)
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
		item[name] = v
	}
	return item, nil
}

func fromImageValue(av events.DynamoDBAttributeValue) (any, error) {
	switch av.DataType() {
	case events.DataTypeString:
		return av.String(), nil
	case events.DataTypeNumber:
		return fromNumber(av.Number())
	case events.DataTypeBoolean:
		return av.Boolean(), nil
	case events.DataTypeList:
		list := make([]any, len(av.List()))
		for i, e := range av.List() {
			v, err := fromImageValue(e)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	case events.DataTypeMap:
		m := make(map[string]any, len(av.Map()))
		for name, e := range av.Map() {
			v, err := fromImageValue(e)
			if err != nil {
				return nil, err
			}
			m[name] = v
		}
		return m, nil
	case events.DataTypeBinary, events.DataTypeNull, events.DataTypeBinarySet,
		events.DataTypeNumberSet, events.DataTypeStringSet:
	}
	return nil, fmt.Errorf("value of a type this program doesn't use: %v", av.DataType())
}

// ToImage converts an item's attributes as they are, without a key.
func ToImage(item store.Item) map[string]events.DynamoDBAttributeValue {
	image := make(map[string]events.DynamoDBAttributeValue, len(item)+2)
	for name, v := range item {
		image[name] = toImageValue(v)
	}
	return image
}

// imageOf is the whole item with its key; nil of no item.
func imageOf(key store.Key, item store.Item) map[string]events.DynamoDBAttributeValue {
	if item == nil {
		return nil
	}
	image := ToImage(item)
	image[attrPK] = events.NewStringAttribute(key.PK)
	image[attrSK] = events.NewStringAttribute(key.SK)
	return image
}

func toImageValue(v any) events.DynamoDBAttributeValue {
	switch v := v.(type) {
	case string:
		return events.NewStringAttribute(v)
	case int64:
		return events.NewNumberAttribute(strconv.FormatInt(v, 10))
	case bool:
		return events.NewBooleanAttribute(v)
	case []any:
		list := make([]events.DynamoDBAttributeValue, len(v))
		for i, e := range v {
			list[i] = toImageValue(e)
		}
		return events.NewListAttribute(list)
	case map[string]any:
		m := make(map[string]events.DynamoDBAttributeValue, len(v))
		for name, e := range v {
			m[name] = toImageValue(e)
		}
		return events.NewMapAttribute(m)
	}
	panic(fmt.Sprintf("dynamo: value of unvalidated type %T", v))
}

func keyFromImage(keys map[string]events.DynamoDBAttributeValue) (store.Key, error) {
	pk, sk := keys[attrPK], keys[attrSK]
	if pk.DataType() != events.DataTypeString || sk.DataType() != events.DataTypeString {
		return store.Key{}, fmt.Errorf("keys of the wrong type")
	}
	return store.Key{PK: pk.String(), SK: sk.String()}, nil
}
