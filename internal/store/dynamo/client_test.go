package dynamo_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/dynamo"
)

// serve is an endpoint that gives one status and body to every request.
func serve(t *testing.T, status int, body string) (dynamo.Config, *[]*http.Request) {
	t.Helper()
	var requests []*http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return dynamo.Config{
		Region: "eu-central-1", AccessKeyID: "AKID", SecretAccessKey: "secret", SessionToken: "session", Endpoint: server.URL,
	}, &requests
}

func TestTheClientNeverRepeatsARequestItself(t *testing.T) {
	for _, status := range []int{400, 500, 503} {
		config, requests := serve(t, status, `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"slow"}`)
		_, err := dynamo.NewClient(config).DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("t")})
		if err == nil || len(*requests) != 1 {
			t.Errorf("status %d: got %v after %d requests, want an error after 1", status, err, len(*requests))
		}
	}
}

func TestTheClientSignsForItsRegionAndSession(t *testing.T) {
	config, requests := serve(t, 200, `{}`)
	table := dynamo.New(dynamo.NewClient(config), "payments", dynamo.Options{})
	if _, err := table.Get(t.Context(), store.Key{PK: "P", SK: "S"}); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("got %v, want ErrNotFound", err)
	}
	header := (*requests)[0].Header
	if got := header.Get("Authorization"); !strings.Contains(got, "Credential=AKID/") || !strings.Contains(got, "/eu-central-1/dynamodb/") {
		t.Errorf("got %q, want the key and region", got)
	}
	if got := header.Get("X-Amz-Security-Token"); got != "session" {
		t.Errorf("got session token %q, want session", got)
	}
}

// What an SDK makes of real answers is what the table's judgement rests on.
func TestAnswersOfTheWireAreUnderstood(t *testing.T) {
	const prefix = `{"__type":"com.amazonaws.dynamodb.v20120810#`
	item := `{"pk":{"S":"P"},"sk":{"S":"S"},"n":{"N":"7"},"writer":{"S":"theirs"}}`
	cases := []struct {
		name   string
		status int
		body   string
		writes []store.Write
		judge  func(err error) bool
		sent   int
	}{
		{"refusal", 400, prefix + `ConditionalCheckFailedException","Item":` + item + `}`, onePut, refusedWrite(0), 1},
		{
			"canceled", 400, prefix + `TransactionCanceledException","CancellationReasons":[{"Code":"None"},{"Code":"ConditionalCheckFailed","Item":` + item + `}]}`,
			twoPut, refusedWrite(1), 1,
		},
		{
			"conflict", 400, prefix + `TransactionCanceledException","CancellationReasons":[{"Code":"None"},{"Code":"TransactionConflict"}]}`,
			twoPut, is(store.ErrUnavailable), 8,
		},
		{"too large", 400, prefix + `ValidationException","message":"Item size has exceeded the maximum allowed size"}`, onePut, is(store.ErrTooLarge), 1},
		{"server error", 500, prefix + `InternalServerError","message":"oops"}`, onePut, is(store.ErrUnavailable), 3},
		{"server error of another kind", 500, prefix + `SomethingNewException","message":"oops"}`, onePut, is(store.ErrUnavailable), 3},
		{"refused request of another kind", 400, prefix + `SomethingNewException","message":"no"}`, onePut, isPlain, 1},
		{"no answer of DynamoDB", 502, `<html>bad gateway</html>`, onePut, is(store.ErrUnavailable), 3},
		{"throttled", 400, `{"__type":"com.amazon.coral.availability#ThrottlingException","message":"slow"}`, onePut, is(store.ErrUnavailable), 8},
	}
	for _, c := range cases {
		config, requests := serve(t, c.status, c.body)
		table := dynamo.New(dynamo.NewClient(config), "payments", dynamo.Options{Jitter: noPause})
		if err := table.Write(t.Context(), c.writes...); !c.judge(err) || len(*requests) != c.sent {
			t.Errorf("%s: got %v after %d requests, want %d", c.name, err, len(*requests), c.sent)
		}
	}
}

// closedBody is a request body of the SDK that was closed when its bytes were read.
type closedBody struct{ io.Reader }

func (closedBody) Close() error                     { return nil }
func (closedBody) WriteTo(io.Writer) (int64, error) { return 0, io.EOF }

func TestABodyThatTheSDKClosedIsNoFailedRequest(t *testing.T) {
	config, _ := serve(t, 200, `{}`)
	var wrote error
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { wrote = i.Err },
	})
	body := closedBody{strings.NewReader("{}")}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, config.Endpoint, body)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = 2
	response, err := dynamo.NewClient(config).Options().HTTPClient.Do(r)
	if err != nil || wrote != nil {
		t.Fatalf("got %v, writing the request %v, want success", err, wrote)
	}
	_ = response.Body.Close()
	if r.Body != body {
		t.Error("got the caller's request changed")
	}
}

func is(want error) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) }
}

// isPlain is an error that none of the port's names stand for.
func isPlain(err error) bool {
	return err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrInvalid)
}

func refusedWrite(i int) func(error) bool {
	return func(err error) bool {
		refusal, ok := errors.AsType[*store.ConditionError](err)
		if !ok {
			return false
		}
		old, ok := refusal.At(i)
		return ok && old["n"] == int64(7) && len(refusal.Failed) == 1
	}
}
