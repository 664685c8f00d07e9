package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/kessai/kessai/internal/store"
)

// Scan reads one page of all items, eventually consistent, at half the price of a
// consistent one. See store.Table.
func (t *Table) Scan(ctx context.Context, s store.Scan) (store.Page, error) {
	in, err := t.scanInput(s)
	if err != nil {
		return store.Page{}, err
	}
	var out *dynamodb.ScanOutput
	err = t.repeat(ctx, call{
		doing: "scan " + t.name,
		send: func(ctx context.Context) (err error) {
			out, err = t.api.Scan(ctx, in)
			return err
		},
		judge:      judge,
		repeatable: true,
	})
	if err != nil {
		return store.Page{}, err
	}
	page, err := scanned(s, out)
	if err != nil {
		return store.Page{}, fmt.Errorf("dynamo: scan %s: %w", t.name, err)
	}
	return page, nil
}

// scanInput filters by the sort key too: only a scan may name a key in its filter.
func (t *Table) scanInput(s store.Scan) (*dynamodb.ScanInput, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	from, resumed, err := s.Position()
	if err != nil {
		return nil, err
	}
	x := newExpression()
	in := &dynamodb.ScanInput{TableName: &t.name, Limit: aws.Int32(int32(s.Limit)), FilterExpression: x.condition(s.Where)}
	if s.SKPrefix != "" {
		prefix := "begins_with(" + x.name(attrSK) + ", " + x.value(s.SKPrefix) + ")"
		if in.FilterExpression != nil {
			prefix += " AND " + *in.FilterExpression
		}
		in.FilterExpression = &prefix
	}
	if resumed {
		in.ExclusiveStartKey = keyValues(from)
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = x.attrNames(), x.attrValues()
	return in, nil
}

// scanned goes on wherever DynamoDB says that it stopped, also after a page from
// which the filter has taken everything.
func scanned(s store.Scan, out *dynamodb.ScanOutput) (store.Page, error) {
	var page store.Page
	for _, values := range out.Items {
		e, err := entryOf(values)
		if err != nil {
			return store.Page{}, err
		}
		page.Entries = append(page.Entries, e)
	}
	if len(out.LastEvaluatedKey) == 0 {
		return page, nil
	}
	last, err := keyOf(out.LastEvaluatedKey)
	if err != nil {
		return store.Page{}, err
	}
	page.Cursor = s.CursorAfter(last)
	return page, nil
}
