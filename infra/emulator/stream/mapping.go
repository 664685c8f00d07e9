package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// pollEvery is the pause after a read that found nothing. AWS reads four times a second; here a person waits.
	pollEvery = 40 * time.Millisecond

	// firstPause and longestPause bound the doubling pause between attempts.
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
)

// Mapping is what an event source mapping says about its batches.
type Mapping struct {
	Function    string
	BatchSize   int
	Parallelism int           // batches of the shard that may be under way at once
	Filters     []Filter      // a record that fits one of them is delivered; none means all are
	Partial     bool          // the function answers with batchItemFailures
	Bisect      bool          // a failing batch is split
	MaxRetries  int           // attempts after the first; negative means until MaxAge
	MaxAge      time.Duration // zero means no limit
}

// Record is one change, as the stream tells it and the function receives it.
type Record struct {
	Sequence string
	Key      string // partition key: records of one key stay in order
	At       time.Time
	Body     json.RawMessage
}

// Discard is a batch that left the stream unprocessed.
type Discard struct {
	Function  string
	Condition string // RetryAttemptsExhausted or MaxRecordAgeExceeded, the words of AWS
	Attempts  int
	Records   []Record
	Cause     string
}

// Source hands out the next records of a shard in order, none when there are none yet.
type Source interface {
	Read(ctx context.Context) ([]Record, error)
}

// Target calls a function. failure is what the function says of its own failing; err means that it was not reached.
type Target interface {
	Invoke(ctx context.Context, function string, payload []byte) (answer []byte, failure string, err error)
}

// Queue keeps discarded batches.
type Queue interface {
	Keep(ctx context.Context, discard Discard) error
}

// Run delivers records until ctx ends. Its error is then ctx's.
func Run(ctx context.Context, mapping Mapping, source Source, target Target, queue Queue) error {
	ctx, cancel := context.WithCancel(ctx)
	lanes := make([]*lane, max(1, mapping.Parallelism))
	var running sync.WaitGroup
	for i := range lanes {
		lanes[i] = newLane(mapping, target, queue)
		running.Go(func() { lanes[i].run(ctx) })
	}
	defer running.Wait()
	defer cancel()
	for ctx.Err() == nil {
		records, err := source.Read(ctx)
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "stream not read", "function", mapping.Function, "error", err)
		}
		for _, record := range records {
			matched, err := mapping.matches(record)
			if err != nil {
				return err
			}
			if matched {
				lanes[laneOf(record.Key, len(lanes))].add(record)
			}
		}
		if len(records) == 0 && !pause(ctx, pollEvery) {
			break
		}
	}
	return ctx.Err()
}

func (m Mapping) matches(record Record) (bool, error) {
	if len(m.Filters) == 0 {
		return true, nil
	}
	var fields map[string]any
	if err := json.Unmarshal(record.Body, &fields); err != nil {
		return false, fmt.Errorf("record %s of the stream: %w", record.Sequence, err)
	}
	for _, filter := range m.Filters {
		if filter.Match(fields) {
			return true, nil
		}
	}
	return false, nil
}

// pause waits, and says whether it could wait to the end.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
