package dynamo_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/dynamo"
	"github.com/kessai/kessai/internal/store/storetest"
)

var endpoint = flag.String("endpoint", "", "run the contract against this DynamoDB endpoint, such as http://127.0.0.1:4566")

func TestContract(t *testing.T) {
	if *endpoint == "" {
		t.Skip("no -endpoint given: the contract needs a running DynamoDB")
	}
	client := patient(dynamo.NewClient(dynamo.Config{
		Region: "us-east-1", AccessKeyID: "test", SecretAccessKey: "test", Endpoint: *endpoint,
	}))
	name := fmt.Sprintf("contract-%d", time.Now().UnixNano())
	if err := dynamo.CreateTable(t.Context(), client, name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if _, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Logf("delete table %s: %v", name, err)
		}
	})
	storetest.Run(t, func(*testing.T) store.Table {
		api := &forgetful{API: client}
		return &table{Table: dynamo.New(api, name, dynamo.Options{}), forgetful: api}
	})
}

// patient lets an emulator be slow under 64 writers: an answer that is lost is a
// claim of its own, not an accident of the others.
func patient(client *dynamodb.Client) *dynamodb.Client {
	o := client.Options()
	slow := *o.HTTPClient.(*http.Client)
	slow.Timeout = time.Minute
	o.HTTPClient = &slow
	return dynamodb.New(o)
}

// table is one whose answers can be lost.
type table struct {
	*dynamo.Table
	*forgetful
}

var _ storetest.AnswerLoser = (*table)(nil)

// forgetful passes requests on, and loses the answer of the next write when told.
type forgetful struct {
	dynamo.API

	mu    sync.Mutex
	armed *loss
}

type loss struct {
	below     bool
	meanwhile func()
}

func (f *forgetful) LoseAnswer(below bool, meanwhile func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = &loss{below: below, meanwhile: meanwhile}
}

var errLost = errors.New("connection reset by peer")

// lose sends a request once or, after a loss that the adapter must not see, twice.
func (f *forgetful) lose(send func() error) error {
	f.mu.Lock()
	l := f.armed
	f.armed = nil
	f.mu.Unlock()
	err := send()
	if l == nil {
		return err
	}
	if l.meanwhile != nil {
		l.meanwhile()
	}
	if l.below {
		return send()
	}
	return errLost
}

func (f *forgetful) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (out *dynamodb.PutItemOutput, err error) {
	err = f.lose(func() error { out, err = f.API.PutItem(ctx, in, o...); return err })
	return out, err
}

func (f *forgetful) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (out *dynamodb.UpdateItemOutput, err error) {
	err = f.lose(func() error { out, err = f.API.UpdateItem(ctx, in, o...); return err })
	return out, err
}

func (f *forgetful) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (out *dynamodb.DeleteItemOutput, err error) {
	err = f.lose(func() error { out, err = f.API.DeleteItem(ctx, in, o...); return err })
	return out, err
}

func (f *forgetful) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (out *dynamodb.TransactWriteItemsOutput, err error) {
	err = f.lose(func() error { out, err = f.API.TransactWriteItems(ctx, in, o...); return err })
	return out, err
}
