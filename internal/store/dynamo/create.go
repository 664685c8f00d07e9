package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kessai/kessai/internal/store"
)

// createPatience is how long CreateTable waits for the table to become active.
const createPatience = time.Minute

// CreateTable makes a table with the keys, the sparse index, the stream and the
// expiry that a Table needs, and waits until it is active. It is for DynamoDB Local
// and tests; in AWS the template makes the tables. It fails when there is one of
// that name.
func CreateTable(ctx context.Context, client *dynamodb.Client, name string) error {
	if _, err := client.CreateTable(ctx, tableInput(name)); err != nil {
		return fmt.Errorf("dynamo: create table %s: %w", name, err)
	}
	active := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 50*time.Millisecond, time.Second
	})
	if err := active.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, createPatience); err != nil {
		return fmt.Errorf("dynamo: wait for table %s: %w", name, err)
	}
	_, err := client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(store.AttrExpiresAt),
			Enabled:       aws.Bool(true),
		},
	})
	if err != nil {
		return fmt.Errorf("dynamo: expiry of table %s: %w", name, err)
	}
	return nil
}

func tableInput(name string) *dynamodb.CreateTableInput {
	attr := func(name string, t types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: t}
	}
	keys := func(hash, sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{
			{AttributeName: &hash, KeyType: types.KeyTypeHash},
			{AttributeName: &sort, KeyType: types.KeyTypeRange},
		}
	}
	return &dynamodb.CreateTableInput{
		TableName:   &name,
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			attr(attrPK, types.ScalarAttributeTypeS),
			attr(attrSK, types.ScalarAttributeTypeS),
			attr(store.AttrDueShard, types.ScalarAttributeTypeS),
			attr(store.AttrDueAt, types.ScalarAttributeTypeN),
		},
		KeySchema: keys(attrPK, attrSK),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String(store.IndexDue),
			KeySchema:  keys(store.AttrDueShard, store.AttrDueAt),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled:  aws.Bool(true),
			StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	}
}
