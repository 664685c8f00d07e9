package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/kessai/kessai/infra/emulator/stream"
)

// carrier runs the event source mappings in the emulator's place; package stream says why.
type carrier struct {
	wire   wire
	lambda *lambda.Client
	sqs    *sqs.Client
}

func newCarrier(s settings) carrier {
	provider := aws.CredentialsProviderFunc(credentials)
	return carrier{
		wire: wire{url: s.awsURL()},
		// One attempt: a call that failed may have run, and it is for the mapping to say what follows.
		lambda: lambda.New(lambda.Options{Region: region, BaseEndpoint: aws.String(s.awsURL()), Credentials: provider, RetryMaxAttempts: 1}),
		sqs:    sqs.New(sqs.Options{Region: region, BaseEndpoint: aws.String(s.awsURL()), Credentials: provider}),
	}
}

// takeOver switches the emulator's mappings off and starts one of ours for each. They run until ctx ends.
func (c carrier) takeOver(ctx context.Context) error {
	var list struct{ EventSourceMappings []settingsOfMapping }
	if err := c.wire.lambda(ctx, "/2015-03-31/event-source-mappings/", &list); err != nil {
		return fmt.Errorf("list of stream mappings: %w", err)
	}
	for _, found := range list.EventSourceMappings {
		mapping, err := found.mapping()
		if err != nil {
			return fmt.Errorf("stream mapping of %s: %w", found.FunctionArn, err)
		}
		_, err = c.lambda.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{UUID: aws.String(found.UUID), Enabled: aws.Bool(false)})
		if err != nil && !errors.As(err, new(*smithy.DeserializationError)) { // the answer has the words for numbers, too
			return fmt.Errorf("stream mapping of %s: %w", mapping.Function, err)
		}
		source, err := newShard(ctx, c.wire, found.EventSourceArn)
		if err != nil {
			return fmt.Errorf("stream of %s: %w", mapping.Function, err)
		}
		queue := failureQueue{client: c.sqs, stream: source.stream, arn: found.DestinationConfig.OnFailure.Destination}
		go func() {
			if err := stream.Run(ctx, mapping, source, c, queue); ctx.Err() == nil {
				slog.ErrorContext(ctx, "stream mapping ended", "function", mapping.Function, "error", err)
			}
		}()
	}
	return nil
}

// settingsOfMapping is a mapping as the emulator tells it. The SDK can't read it: a number that came out of a template
// parameter is a string there.
type settingsOfMapping struct {
	UUID, FunctionArn, EventSourceArn string
	BatchSize, ParallelizationFactor  *number
	MaximumRetryAttempts              *number
	MaximumRecordAgeInSeconds         *number
	BisectBatchOnFunctionError        *bool
	FunctionResponseTypes             []string
	FilterCriteria                    struct{ Filters []struct{ Pattern string } }
	DestinationConfig                 struct{ OnFailure struct{ Destination string } }
}

type number int

func (n *number) UnmarshalJSON(text []byte) error {
	value, err := strconv.Atoi(strings.Trim(string(text), `"`))
	*n = number(value)
	return err
}

// mapping refuses settings that the emulator didn't keep: they would make it less than the template says.
func (s settingsOfMapping) mapping() (stream.Mapping, error) {
	_, function, _ := strings.Cut(s.FunctionArn, ":function:")
	if s.BatchSize == nil || s.MaximumRetryAttempts == nil || s.MaximumRecordAgeInSeconds == nil || s.ParallelizationFactor == nil ||
		s.BisectBatchOnFunctionError == nil || len(s.FilterCriteria.Filters) == 0 || s.DestinationConfig.OnFailure.Destination == "" {
		return stream.Mapping{}, errors.New("settings are missing")
	}
	mapping := stream.Mapping{
		Function:    function,
		BatchSize:   int(*s.BatchSize),
		Parallelism: int(*s.ParallelizationFactor),
		Bisect:      *s.BisectBatchOnFunctionError,
		Partial:     slices.Contains(s.FunctionResponseTypes, "ReportBatchItemFailures"),
		MaxRetries:  int(*s.MaximumRetryAttempts),
		MaxAge:      time.Duration(max(0, *s.MaximumRecordAgeInSeconds)) * time.Second,
	}
	for _, pattern := range s.FilterCriteria.Filters {
		filter, err := stream.ParseFilter(pattern.Pattern)
		if err != nil {
			return stream.Mapping{}, err
		}
		mapping.Filters = append(mapping.Filters, filter)
	}
	return mapping, nil
}

// Invoke calls a function and waits for its answer.
func (c carrier) Invoke(ctx context.Context, function string, payload []byte) ([]byte, string, error) {
	answer, err := c.lambda.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(function), Payload: payload})
	if err != nil {
		return nil, "", fmt.Errorf("invoke %s: %w", function, err)
	}
	if answer.FunctionError != nil {
		return nil, *answer.FunctionError + ": " + string(answer.Payload), nil
	}
	return answer.Payload, "", nil
}

// shard reads the one shard of the emulator's stream, from its start.
type shard struct {
	wire     wire
	stream   string
	id       string
	iterator string
	last     string // sequence number of the last record read
}

func newShard(ctx context.Context, w wire, streamARN string) (*shard, error) {
	var description struct {
		StreamDescription struct {
			Shards []struct{ ShardId string }
		}
	}
	if err := w.stream(ctx, "DescribeStream", map[string]string{"StreamArn": streamARN}, &description); err != nil {
		return nil, err
	}
	if shards := description.StreamDescription.Shards; len(shards) != 1 {
		return nil, fmt.Errorf("%d shards, and only one can be read", len(shards))
	}
	return &shard{wire: w, stream: streamARN, id: description.StreamDescription.Shards[0].ShardId}, nil
}

// Read returns the records behind the last one it returned.
func (s *shard) Read(ctx context.Context) ([]stream.Record, error) {
	if s.iterator == "" {
		if err := s.position(ctx); err != nil {
			return nil, err
		}
	}
	var answer struct {
		Records           []json.RawMessage
		NextShardIterator string
	}
	if err := s.wire.stream(ctx, "GetRecords", map[string]string{"ShardIterator": s.iterator}, &answer); err != nil {
		s.iterator = "" // find the place again by the last sequence number
		return nil, err
	}
	records := make([]stream.Record, 0, len(answer.Records))
	for _, body := range answer.Records {
		record, err := recordOf(body, s.stream)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
		s.last = record.Sequence
	}
	s.iterator = answer.NextShardIterator
	return records, nil
}

func (s *shard) position(ctx context.Context) error {
	in := map[string]string{"StreamArn": s.stream, "ShardId": s.id, "ShardIteratorType": "TRIM_HORIZON"}
	if s.last != "" {
		in["ShardIteratorType"], in["SequenceNumber"] = "AFTER_SEQUENCE_NUMBER", s.last
	}
	var answer struct{ ShardIterator string }
	if err := s.wire.stream(ctx, "GetShardIterator", in, &answer); err != nil {
		return err
	}
	s.iterator = answer.ShardIterator
	return nil
}

// recordOf adds to a record what only Lambda tells the function, which is the stream it is from.
func recordOf(body json.RawMessage, streamARN string) (stream.Record, error) {
	var fields map[string]json.RawMessage
	var change struct {
		ApproximateCreationDateTime float64
		SequenceNumber              string
		Keys                        map[string]json.RawMessage
	}
	if err := json.Unmarshal(body, &fields); err != nil {
		return stream.Record{}, fmt.Errorf("record: %w", err)
	}
	if err := json.Unmarshal(fields["dynamodb"], &change); err != nil {
		return stream.Record{}, fmt.Errorf("record: %w", err)
	}
	if change.SequenceNumber == "" || len(change.Keys["pk"]) == 0 {
		return stream.Record{}, errors.New("record: no sequence number or no key")
	}
	fields["eventSourceARN"], _ = json.Marshal(streamARN) // a string always can be
	complete, err := json.Marshal(fields)
	if err != nil {
		return stream.Record{}, fmt.Errorf("record: %w", err)
	}
	return stream.Record{
		Sequence: change.SequenceNumber,
		Key:      string(change.Keys["pk"]),
		At:       time.UnixMilli(int64(change.ApproximateCreationDateTime * 1000)),
		Body:     complete,
	}, nil
}

// failureQueue keeps discarded batches as AWS does: where they are in the stream, not what is in them.
type failureQueue struct {
	client *sqs.Client
	stream string
	arn    string
}

// Keep sends the note of a discarded batch to the queue that the mapping names.
func (q failureQueue) Keep(ctx context.Context, discard stream.Discard) error {
	place, err := q.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(q.arn[strings.LastIndex(q.arn, ":")+1:])})
	if err != nil {
		return fmt.Errorf("failure queue of %s: %w", discard.Function, err)
	}
	first, last := discard.Records[0], discard.Records[len(discard.Records)-1]
	note, err := json.Marshal(map[string]any{
		"version":   "1.0",
		"timestamp": time.Now().UTC().Format(time.RFC3339Nano),
		"requestContext": map[string]any{
			"functionArn": discard.Function, "condition": discard.Condition,
			"approximateInvokeCount": discard.Attempts,
		},
		"responseContext": map[string]any{"functionError": discard.Cause},
		"DDBStreamBatchInfo": map[string]any{
			"streamArn": q.stream, "batchSize": len(discard.Records),
			"startSequenceNumber": first.Sequence, "endSequenceNumber": last.Sequence,
			"approximateArrivalOfFirstRecord": first.At.UTC().Format(time.RFC3339Nano),
			"approximateArrivalOfLastRecord":  last.At.UTC().Format(time.RFC3339Nano),
		},
	})
	if err != nil {
		return fmt.Errorf("failure queue of %s: %w", discard.Function, err)
	}
	if _, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: place.QueueUrl, MessageBody: aws.String(string(note))}); err != nil {
		return fmt.Errorf("failure queue of %s: %w", discard.Function, err)
	}
	return nil
}
