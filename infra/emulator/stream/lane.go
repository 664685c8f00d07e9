package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// lane delivers the records of some keys one batch after the other.
type lane struct {
	mapping Mapping
	target  Target
	queue   Queue

	mu      sync.Mutex
	waiting []Record
	added   chan struct{}
}

func newLane(mapping Mapping, target Target, queue Queue) *lane {
	return &lane{mapping: mapping, target: target, queue: queue, added: make(chan struct{}, 1)}
}

func laneOf(key string, lanes int) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key)) // never fails
	return int(hash.Sum32() % uint32(lanes))
}

func (l *lane) add(record Record) {
	l.mu.Lock()
	l.waiting = append(l.waiting, record)
	l.mu.Unlock()
	select {
	case l.added <- struct{}{}:
	default: // it has been told
	}
}

func (l *lane) take() []Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.waiting), max(1, l.mapping.BatchSize))
	batch := slices.Clone(l.waiting[:n])
	l.waiting = l.waiting[n:]
	return batch
}

func (l *lane) run(ctx context.Context) {
	for ctx.Err() == nil {
		if batch := l.take(); len(batch) > 0 {
			l.deliver(ctx, batch, 0)
			continue
		}
		select {
		case <-ctx.Done():
		case <-l.added:
		}
	}
}

// deliver brings one batch to its end: processed, or discarded. attempts have been made on it before.
func (l *lane) deliver(ctx context.Context, batch []Record, attempts int) {
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		done, cause := l.attempt(ctx, batch)
		if done == len(batch) || ctx.Err() != nil {
			return
		}
		slog.WarnContext(ctx, "stream batch failed", "function", l.mapping.Function, "records", len(batch)-done,
			"attempts", attempts+1, "error", cause)
		if done > 0 {
			batch, attempts, wait = batch[done:], 0, firstPause
		} else if l.mapping.Bisect && len(batch) > 1 {
			l.deliver(ctx, batch[:len(batch)/2], attempts)
			l.deliver(ctx, batch[len(batch)/2:], attempts)
			return
		} else {
			attempts++
		}
		if condition := l.given(batch, attempts); condition != "" {
			l.discard(ctx, Discard{Function: l.mapping.Function, Condition: condition, Attempts: attempts, Records: batch, Cause: cause})
			return
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// given names the reason to give a batch up, if there is one.
func (l *lane) given(batch []Record, attempts int) string {
	if l.mapping.MaxRetries >= 0 && attempts > l.mapping.MaxRetries {
		return "RetryAttemptsExhausted"
	}
	if l.mapping.MaxAge > 0 && time.Since(batch[0].At) > l.mapping.MaxAge {
		return "MaxRecordAgeExceeded"
	}
	return ""
}

// attempt calls the function until it is reached and says how many records from the start it is done with.
func (l *lane) attempt(ctx context.Context, batch []Record) (done int, cause string) {
	bodies := make([]json.RawMessage, len(batch))
	for i, record := range batch {
		bodies[i] = record.Body
	}
	payload, err := json.Marshal(map[string]any{"Records": bodies})
	if err != nil {
		return 0, fmt.Sprintf("batch not encoded: %v", err)
	}
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		answer, failure, err := l.target.Invoke(ctx, l.mapping.Function, payload)
		switch {
		case err == nil && failure != "":
			return 0, failure
		case err == nil && l.mapping.Partial:
			return processed(batch, answer)
		case err == nil:
			return len(batch), ""
		}
		if !pause(ctx, wait) {
			return 0, err.Error()
		}
	}
}

// processed counts the records before the first one that the answer names as failed. An answer that can't be
// read, or that names a record which is not of the batch, fails all of it.
func processed(batch []Record, answer []byte) (int, string) {
	var report struct {
		BatchItemFailures []struct {
			ItemIdentifier string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(answer, &report); err != nil {
		return 0, fmt.Sprintf("batch answer: %v", err)
	}
	done := len(batch)
	for _, failed := range report.BatchItemFailures {
		at := slices.IndexFunc(batch, func(r Record) bool { return r.Sequence == failed.ItemIdentifier })
		if at < 0 {
			return 0, fmt.Sprintf("batch answer names the unknown record %q", failed.ItemIdentifier)
		}
		done = min(done, at)
	}
	return done, "named in batchItemFailures"
}

func (l *lane) discard(ctx context.Context, discard Discard) {
	slog.ErrorContext(ctx, "stream batch discarded", "function", discard.Function, "condition", discard.Condition,
		"records", len(discard.Records))
	if err := l.queue.Keep(ctx, discard); err != nil {
		slog.ErrorContext(ctx, "discarded batch not kept", "function", discard.Function, "error", err)
	}
}
