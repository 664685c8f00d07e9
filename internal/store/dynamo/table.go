package dynamo

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kessai/kessai/internal/store"
)

// Attributes of every table's key.
const (
	attrPK = "pk"
	attrSK = "sk"
)

// API is what a Table calls. *dynamodb.Client implements it.
type API interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Options of a Table. The zero value is for production.
type Options struct {
	// Random gives the entropy of writer tokens; nil means crypto/rand.
	Random io.Reader
	// Jitter picks a pause in [0, ceiling); nil means at random.
	Jitter func(ceiling time.Duration) time.Duration
}

// Table is one table in DynamoDB. Make one with New. It is safe for concurrent use.
type Table struct {
	api    API
	name   string
	random io.Reader
	jitter func(ceiling time.Duration) time.Duration
}

var _ store.Table = (*Table)(nil)

// New returns the table of that name, which must have the keys and the index that
// CreateTable gives it.
func New(client API, table string, o Options) *Table {
	t := &Table{api: client, name: table, random: o.Random, jitter: o.Jitter}
	if t.random == nil {
		t.random = rand.Reader
	}
	if t.jitter == nil {
		t.jitter = mathrand.N[time.Duration]
	}
	return t
}

// Get reads one item consistently. See store.Table.
func (t *Table) Get(ctx context.Context, key store.Key) (store.Item, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	in := &dynamodb.GetItemInput{
		TableName:      &t.name,
		Key:            keyValues(key),
		ConsistentRead: aws.Bool(true),
	}
	var out *dynamodb.GetItemOutput
	err := t.repeat(ctx, call{
		doing: "get " + key.String(),
		send: func(ctx context.Context) (err error) {
			out, err = t.api.GetItem(ctx, in)
			return err
		},
		judge:      judge,
		repeatable: true,
	})
	if err != nil {
		return nil, err
	}
	if len(out.Item) == 0 {
		return nil, store.ErrNotFound
	}
	item, err := fromValues(out.Item)
	if err != nil {
		return nil, fmt.Errorf("dynamo: get %s: %w", key, err)
	}
	return item, nil
}

// Query reads one page. See store.Table.
func (t *Table) Query(ctx context.Context, q store.Query) (store.Page, error) {
	in, err := t.queryInput(q)
	if err != nil {
		return store.Page{}, err
	}
	var out *dynamodb.QueryOutput
	err = t.repeat(ctx, call{
		doing: "query " + q.PK,
		send: func(ctx context.Context) (err error) {
			out, err = t.api.Query(ctx, in)
			return err
		},
		judge:      judge,
		repeatable: true,
	})
	if err != nil {
		return store.Page{}, err
	}
	page, err := pageOf(q, out)
	if err != nil {
		return store.Page{}, fmt.Errorf("dynamo: query %s: %w", q.PK, err)
	}
	return page, nil
}

// queryInput asks for one item more than the page holds: only that tells whether
// there is another page, for DynamoDB gives a key to go on from whenever it stops
// at a limit.
func (t *Table) queryInput(q store.Query) (*dynamodb.QueryInput, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	from, resumed, err := q.Position()
	if err != nil {
		return nil, err
	}
	x := newExpression()
	in := &dynamodb.QueryInput{
		TableName:        &t.name,
		Limit:            aws.Int32(int32(q.Limit) + 1),
		ScanIndexForward: aws.Bool(!q.Descending),
	}
	if q.Index == store.IndexDue {
		in.IndexName = aws.String(store.IndexDue)
		in.KeyConditionExpression = aws.String(dueRange(x, q))
	} else {
		in.ConsistentRead = aws.Bool(true)
		in.KeyConditionExpression = aws.String(keyRange(x, q))
	}
	if resumed {
		in.ExclusiveStartKey = keyValues(from.Key)
		if q.Index == store.IndexDue {
			in.ExclusiveStartKey[store.AttrDueShard] = toValue(q.PK)
			in.ExclusiveStartKey[store.AttrDueAt] = toValue(from.DueAt)
		}
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = x.names, x.values
	return in, nil
}

func keyRange(x *expression, q store.Query) string {
	s := x.name(attrPK) + " = " + x.value(q.PK)
	if q.SKPrefix != "" {
		s += " AND begins_with(" + x.name(attrSK) + ", " + x.value(q.SKPrefix) + ")"
	}
	return s
}

func dueRange(x *expression, q store.Query) string {
	s := x.name(store.AttrDueShard) + " = " + x.value(q.PK)
	if q.AtMost != 0 {
		s += " AND " + x.name(store.AttrDueAt) + " <= " + x.value(q.AtMost)
	}
	return s
}

// pageOf cuts the one item too many and finds where the next page begins.
func pageOf(q store.Query, out *dynamodb.QueryOutput) (store.Page, error) {
	var page store.Page
	var last store.Position
	for _, values := range out.Items {
		if len(page.Entries) == q.Limit {
			page.Cursor = q.CursorAfter(last)
			return page, nil
		}
		e, err := entryOf(values)
		if err != nil {
			return store.Page{}, err
		}
		last = positionOf(e)
		if q.Index == store.IndexDue {
			e.Item = store.Item{
				store.AttrDueShard: e.Item[store.AttrDueShard],
				store.AttrDueAt:    e.Item[store.AttrDueAt],
			}
		}
		page.Entries = append(page.Entries, e)
	}
	if len(out.LastEvaluatedKey) == 0 {
		return page, nil
	}
	// Stopped by DynamoDB's own limit of 1 MB.
	e, err := entryOf(out.LastEvaluatedKey)
	if err != nil {
		return store.Page{}, err
	}
	page.Cursor = q.CursorAfter(positionOf(e))
	return page, nil
}

func entryOf(values map[string]types.AttributeValue) (store.Entry, error) {
	key, err := keyOf(values)
	if err != nil {
		return store.Entry{}, err
	}
	item, err := fromValues(values)
	if err != nil {
		return store.Entry{}, fmt.Errorf("item %s: %w", key, err)
	}
	return store.Entry{Key: key, Item: item}, nil
}

func positionOf(e store.Entry) store.Position {
	at, _ := e.Item[store.AttrDueAt].(int64)
	return store.Position{Key: e.Key, DueAt: at}
}
