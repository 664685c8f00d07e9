package dynamo

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kessai/kessai/internal/store"
)

// tokenBytes is the entropy of a writer token: no two are ever equal.
const tokenBytes = 16

// Write carries out all of the writes, or none. See store.Table, and the package
// documentation for what becomes of lost answers.
func (t *Table) Write(ctx context.Context, writes ...store.Write) error {
	if err := store.ValidateWrites(writes); err != nil {
		return err
	}
	writer, err := t.token()
	if err != nil {
		return err
	}
	prepared := make([]store.Write, len(writes))
	for i, w := range writes {
		prepared[i] = stamped(w, writer)
	}
	// Again, since the stamp counts too: an item may be a few bytes too large now.
	if err := store.ValidateWrites(prepared); err != nil {
		return err
	}
	if len(writes) == 1 && writes[0].Kind != store.Check {
		return t.repeat(ctx, t.plain(prepared[0], writer, repeatable(writes[0])))
	}
	return t.repeat(ctx, t.transaction(prepared, writer))
}

// token draws the writer of one call of Write.
func (t *Table) token() (string, error) {
	var b [tokenBytes]byte
	if _, err := io.ReadFull(t.random, b[:]); err != nil {
		return "", fmt.Errorf("dynamo: writer token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b[:]), nil
}

// stamped is the write as it is sent: with its writer, and unable to add twice.
func stamped(w store.Write, writer string) store.Write {
	switch w.Kind {
	case store.Put:
		w.Item = withWriter(w.Item, writer)
	case store.Update:
		w.Set = withWriter(w.Set, writer)
		if len(w.Add) > 0 {
			w.If = store.All(w.If, store.NotEqual(store.AttrWriter, writer))
		}
	case store.Delete, store.Check:
	}
	return w
}

// withWriter copies the top level; nothing below it is changed.
func withWriter(item store.Item, writer string) store.Item {
	out := make(store.Item, len(item)+1)
	maps.Copy(out, item)
	out[store.AttrWriter] = writer
	return out
}

// repeatable says whether a plain write may be sent again after its answer was
// lost. Nothing would keep an unconditional addition from happening twice, with
// somebody else's write in between.
func repeatable(w store.Write) bool {
	return len(w.Add) == 0 || w.If.Simplify().Op != store.OpAlways
}

// plain is one write outside a transaction.
func (t *Table) plain(w store.Write, writer string, repeatable bool) call {
	return call{
		doing:      "write " + w.Key.String(),
		send:       t.sender(w),
		judge:      func(err error) verdict { return judgePlain(err, writer) },
		repeatable: repeatable,
	}
}

// sender builds the request once: every repeat is the same.
func (t *Table) sender(w store.Write) func(context.Context) error {
	x := newExpression()
	condition := x.condition(w.If)
	const old = types.ReturnValuesOnConditionCheckFailureAllOld
	switch w.Kind {
	case store.Put:
		in := &dynamodb.PutItemInput{
			TableName:                           &t.name,
			Item:                                toValues(w.Key, w.Item),
			ConditionExpression:                 condition,
			ExpressionAttributeNames:            x.attrNames(),
			ExpressionAttributeValues:           x.attrValues(),
			ReturnValuesOnConditionCheckFailure: old,
		}
		return func(ctx context.Context) error { _, err := t.api.PutItem(ctx, in); return err }
	case store.Update:
		update := x.update(w.Set, w.Remove, w.Add)
		in := &dynamodb.UpdateItemInput{
			TableName:                           &t.name,
			Key:                                 keyValues(w.Key),
			UpdateExpression:                    &update,
			ConditionExpression:                 condition,
			ExpressionAttributeNames:            x.attrNames(),
			ExpressionAttributeValues:           x.attrValues(),
			ReturnValuesOnConditionCheckFailure: old,
		}
		return func(ctx context.Context) error { _, err := t.api.UpdateItem(ctx, in); return err }
	case store.Delete:
		in := &dynamodb.DeleteItemInput{
			TableName:                           &t.name,
			Key:                                 keyValues(w.Key),
			ConditionExpression:                 condition,
			ExpressionAttributeNames:            x.attrNames(),
			ExpressionAttributeValues:           x.attrValues(),
			ReturnValuesOnConditionCheckFailure: old,
		}
		return func(ctx context.Context) error { _, err := t.api.DeleteItem(ctx, in); return err }
	case store.Check: // goes as a transaction
	}
	panic("dynamo: write that was not validated")
}

// transaction is several writes, or a lone check, under the writer's token.
func (t *Table) transaction(writes []store.Write, writer string) call {
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(writer)}
	for _, w := range writes {
		in.TransactItems = append(in.TransactItems, t.transactItem(w))
	}
	keys := slices.Clone(writes)
	return call{
		doing: fmt.Sprintf("write %s and %d others", keys[0].Key, len(keys)-1),
		send: func(ctx context.Context) error {
			_, err := t.api.TransactWriteItems(ctx, in)
			return err
		},
		judge:      func(err error) verdict { return judgeTransaction(err, writer) },
		exact:      true,
		repeatable: true,
	}
}

func (t *Table) transactItem(w store.Write) types.TransactWriteItem {
	x := newExpression()
	condition := x.condition(w.If)
	const old = types.ReturnValuesOnConditionCheckFailureAllOld
	switch w.Kind {
	case store.Put:
		return types.TransactWriteItem{Put: &types.Put{
			TableName:                           &t.name,
			Item:                                toValues(w.Key, w.Item),
			ConditionExpression:                 condition,
			ExpressionAttributeNames:            x.attrNames(),
			ExpressionAttributeValues:           x.attrValues(),
			ReturnValuesOnConditionCheckFailure: old,
		}}
	case store.Update:
		update := x.update(w.Set, w.Remove, w.Add)
		return types.TransactWriteItem{Update: &types.Update{
			TableName:                           &t.name,
			Key:                                 keyValues(w.Key),
			UpdateExpression:                    &update,
			ConditionExpression:                 condition,
			ExpressionAttributeNames:            x.attrNames(),
			ExpressionAttributeValues:           x.attrValues(),
			ReturnValuesOnConditionCheckFailure: old,
		}}
	case store.Delete:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName:                           &t.name,
			Key:                                 keyValues(w.Key),
			ConditionExpression:                 condition,
			ExpressionAttributeNames:            x.attrNames(),
			ExpressionAttributeValues:           x.attrValues(),
			ReturnValuesOnConditionCheckFailure: old,
		}}
	case store.Check:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName:                           &t.name,
			Key:                                 keyValues(w.Key),
			ConditionExpression:                 condition,
			ExpressionAttributeNames:            x.attrNames(),
			ExpressionAttributeValues:           x.attrValues(),
			ReturnValuesOnConditionCheckFailure: old,
		}}
	}
	panic("dynamo: write that was not validated")
}
