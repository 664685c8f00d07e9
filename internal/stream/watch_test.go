package stream_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/stream"
)

// watch notes what it is told.
type watch struct {
	arrived []string
	failed  []outbox.Failure
	fails   error
}

func (w *watch) Arrived(_ context.Context, h outbox.Heartbeat) error {
	w.arrived = append(w.arrived, fmt.Sprint(h.N, "/", h.Beat))
	return w.fails
}

func (w *watch) Failed(_ context.Context, failures []outbox.Failure) error {
	w.failed = append(w.failed, failures...)
	return w.fails
}

// heartbeat is a change of a heartbeat from one beat, and one mark, to others.
func heartbeat(sequence string, before, beat, seenBefore, seen int64) store.Change {
	c := store.Change{
		Key: store.Key{PK: "HEARTBEAT#3", SK: "BEAT"}, Sequence: sequence,
		New: store.Item{"beat": beat, "seen": seen}, Old: store.Item{"beat": before, "seen": seenBefore},
	}
	if before == 0 {
		c.Old = nil
	}
	return c
}

func journalRow(sequence, kind string) store.Change {
	return store.Change{
		Key: store.Key{PK: "PAYMENT#pay_1", SK: "EVENT#000000000" + sequence}, Sequence: sequence,
		New: store.Item{"type": kind, "version": int64(1), "wake": int64(2), "data": map[string]any{"status": "processing"}},
	}
}

func TestBeatsAreNotedAfterABatchWithoutFailures(t *testing.T) {
	for _, c := range []struct {
		name            string
		fails           map[string]error
		odd             bool
		watch           error
		arrived, failed []string
		failures        int
	}{
		{name: "all is well", arrived: []string{"3/1", "3/2"}},
		{name: "a row fails", fails: map[string]error{"payment.captured": errors.New("full")}, failed: []string{"3", "1", "4"}, failures: 1},
		{name: "a record cannot be read", odd: true, failed: []string{"9", "1", "4"}},
		{name: "the mark fails", watch: errors.New("no answer"), arrived: []string{"3/1", "3/2"}, failed: []string{"1", "4"}},
	} {
		seen := &watch{fails: c.watch}
		h := &stream.Outbox{Carrier: &carrier{fails: c.fails}, Watch: seen, Log: slog.New(slog.DiscardHandler)}
		batch := batchOf(heartbeat("1", 0, 1, 0, 0), journalRow("2", "payment.created"), journalRow("3", "payment.captured"), heartbeat("4", 1, 2, 0, 0),
			heartbeat("5", 2, 2, 0, 1), heartbeat("6", 2, 2, 1, 2)) // the marks are changes too, and no beats
		if c.odd {
			batch.Records = append(batch.Records, unreadable("9"))
		}
		made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		for i := range batch.Records {
			batch.Records[i].Change.ApproximateCreationDateTime = events.SecondsEpochTime{Time: made}
		}
		response, err := h.Handle(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		same(t, c.name+": noted", seen.arrived, c.arrived)
		same(t, c.name+": again", failures(response), c.failed)
		if len(seen.failed) != c.failures {
			t.Errorf("%s: got %d failures told, want %d", c.name, len(seen.failed), c.failures)
		}
		for _, f := range seen.failed {
			if f.Event.Type != "payment.captured" || !f.Since.Equal(made) || f.Event.Again != 2 {
				t.Errorf("%s: got %+v, want the event since when the stream has it", c.name, f)
			}
		}
	}
}
