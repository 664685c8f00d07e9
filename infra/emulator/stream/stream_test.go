package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/infra/emulator/stream"
)

// shard is a source that has all its records from the start.
type shard struct {
	mu      sync.Mutex
	records []stream.Record
}

func (s *shard) Read(context.Context) ([]stream.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	records := s.records
	s.records = nil
	return records, nil
}

// function is a target that notes what it was called with, and a queue that notes what was discarded.
type function struct {
	mu        sync.Mutex
	calls     [][]string
	discarded []stream.Discard
	answer    func(call int, sequences []string) (answer, failure string, err error)
}

func (f *function) Invoke(_ context.Context, _ string, payload []byte) ([]byte, string, error) {
	var event struct{ Records []struct{ Sequence string } }
	if err := json.Unmarshal(payload, &event); err != nil {
		return nil, "", err
	}
	var sequences []string
	for _, record := range event.Records {
		sequences = append(sequences, record.Sequence)
	}
	f.mu.Lock()
	f.calls = append(f.calls, sequences)
	call := len(f.calls)
	f.mu.Unlock()
	answer, failure, err := f.answer(call, sequences)
	return []byte(answer), failure, err
}

func (f *function) Keep(_ context.Context, discard stream.Discard) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.discarded = append(f.discarded, discard)
	return nil
}

func records(sequences ...string) []stream.Record {
	var all []stream.Record
	for _, sequence := range sequences {
		body := fmt.Sprintf(`{"Sequence":%q,"dynamodb":{"NewImage":{"sk":{"S":"EVENT#%s"}}}}`, sequence, sequence)
		all = append(all, stream.Record{Sequence: sequence, Key: "one", At: time.Now(), Body: json.RawMessage(body)})
	}
	return all
}

// run delivers the records, waits for an hour of the bubble's time and returns what the function saw.
func run(t *testing.T, mapping stream.Mapping, all []stream.Record, answer func(int, []string) (string, string, error)) *function {
	t.Helper()
	target := &function{answer: answer}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := stream.Run(ctx, mapping, &shard{records: all}, target, target); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Run: got %v, want the end of its time", err)
	}
	return target
}

func processed(int, []string) (string, string, error) { return `{"batchItemFailures":[]}`, "", nil }

func failing(poison string) func(int, []string) (string, string, error) {
	return func(_ int, sequences []string) (string, string, error) {
		if slices.Contains(sequences, poison) {
			return "", "Unhandled: poison", nil
		}
		return `{}`, "", nil
	}
}

func TestRecordsArriveOnceInBatchesOfTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := run(t, stream.Mapping{BatchSize: 2, MaxRetries: 5, Partial: true}, records("1", "2", "3", "4", "5"), processed)
		if text, want := fmt.Sprint(got.calls), "[[1 2] [3 4] [5]]"; text != want {
			t.Errorf("calls: got %s, want %s", text, want)
		}
	})
}

func TestAPartialAnswerIsDeliveredAgainFromTheFirstItemItNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := run(t, stream.Mapping{BatchSize: 10, MaxRetries: 5, Partial: true}, records("1", "2", "3", "4"), func(call int, _ []string) (string, string, error) {
			if call == 1 {
				return `{"batchItemFailures":[{"itemIdentifier":"4"},{"itemIdentifier":"2"}]}`, "", nil
			}
			return `{"batchItemFailures":[]}`, "", nil
		})
		if text, want := fmt.Sprint(got.calls), "[[1 2 3 4] [2 3 4]]"; text != want {
			t.Errorf("calls: got %s, want %s", text, want)
		}
	})
}

func TestAnAnswerThatNamesAnUnknownItemFailsTheWholeBatch(t *testing.T) {
	for _, answer := range []string{`{"batchItemFailures":[{"itemIdentifier":"9"}]}`, `{"batchItemFailures":[{"itemIdentifier":""}]}`, `nonsense`} {
		synctest.Test(t, func(t *testing.T) {
			got := run(t, stream.Mapping{BatchSize: 10, MaxRetries: 1, Partial: true}, records("1", "2"), func(call int, _ []string) (string, string, error) {
				if call == 1 {
					return answer, "", nil
				}
				return `null`, "", nil
			})
			if text, want := fmt.Sprint(got.calls), "[[1 2] [1 2]]"; text != want {
				t.Errorf("calls after %s: got %s, want %s", answer, text, want)
			}
		})
	}
}

func TestAPoisonRecordIsSplitOffAndDiscardedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := run(t, stream.Mapping{BatchSize: 8, MaxRetries: 3, Partial: true, Bisect: true},
			records("1", "2", "3", "4", "5", "6", "7", "8"), failing("6"))
		if len(got.discarded) != 1 {
			t.Fatalf("discarded: got %d batches, want 1", len(got.discarded))
		}
		discard := got.discarded[0]
		if len(discard.Records) != 1 || discard.Records[0].Sequence != "6" || discard.Condition != "RetryAttemptsExhausted" {
			t.Errorf("discarded: got %+v, want record 6 with its attempts exhausted", discard)
		}
		alone := 0
		for _, call := range got.calls {
			if fmt.Sprint(call) == "[6]" {
				alone++
			}
		}
		if alone != 4 {
			t.Errorf("attempts on the poison record: got %d, want 1 and 3 retries", alone)
		}
		if last := got.calls[len(got.calls)-1]; fmt.Sprint(last) != "[7 8]" {
			t.Errorf("last call: got %v, want the records behind the poison", last)
		}
	})
}

func TestWithoutBisectABatchStaysWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := run(t, stream.Mapping{BatchSize: 3, MaxRetries: 2}, records("1", "2", "3", "4"), failing("2"))
		if text, want := fmt.Sprint(got.calls), "[[1 2 3] [1 2 3] [1 2 3] [4]]"; text != want {
			t.Errorf("calls: got %s, want %s", text, want)
		}
		if len(got.discarded) != 1 || len(got.discarded[0].Records) != 3 {
			t.Errorf("discarded: got %+v, want the batch of three", got.discarded)
		}
	})
}

func TestABatchThatIsTooOldIsDiscardedWhateverItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got := run(t, stream.Mapping{BatchSize: 1, MaxRetries: -1, MaxAge: time.Minute}, records("1"), failing("1"))
		if len(got.discarded) != 1 || got.discarded[0].Condition != "MaxRecordAgeExceeded" {
			t.Fatalf("discarded: got %+v, want one for its age", got.discarded)
		}
		if len(got.calls) < 5 || time.Since(start) < time.Minute {
			t.Errorf("attempts: got %d, want as many as a minute of pauses allows", len(got.calls))
		}
	})
}

func TestACallThatNeverReachedTheFunctionCountsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := run(t, stream.Mapping{BatchSize: 1, MaxRetries: 0}, records("1"), func(call int, _ []string) (string, string, error) {
			if call < 20 {
				return "", "", errors.New("throttled")
			}
			return `null`, "", nil
		})
		if len(got.calls) != 20 || len(got.discarded) != 0 {
			t.Errorf("got %d calls and %d discarded, want 20 and none", len(got.calls), len(got.discarded))
		}
	})
}

func TestOneKeyStaysInOrderAmongParallelBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := records("1", "2", "3", "4", "5", "6")
		for i := range all {
			all[i].Key = []string{"a", "b"}[i%2]
		}
		got := run(t, stream.Mapping{BatchSize: 1, MaxRetries: 3, Parallelism: 4}, all, func(_ int, sequences []string) (string, string, error) {
			time.Sleep(time.Second) // the bubble's second
			return `null`, "", nil
		})
		for _, key := range [][]string{{"1", "3", "5"}, {"2", "4", "6"}} {
			var order []string
			for _, call := range got.calls {
				if slices.Contains(key, call[0]) {
					order = append(order, call[0])
				}
			}
			if !slices.Equal(order, key) {
				t.Errorf("order of one key: got %v, want %v", order, key)
			}
		}
	})
}

func TestOnlyWhatAFilterMatchesIsDelivered(t *testing.T) {
	record := `{"eventName":"MODIFY","dynamodb":{"NewImage":{"sk":{"S":"INBOX"},"status":{"S":"received"}}}}`
	tests := []struct {
		name    string
		pattern string
		want    bool
	}{
		{"a literal", `{"eventName":["INSERT","MODIFY"]}`, true},
		{"another literal", `{"eventName":["REMOVE"]}`, false},
		{"every field has to fit", `{"eventName":["MODIFY"],"dynamodb":{"NewImage":{"status":{"S":["applied"]}}}}`, false},
		{"a nested literal", `{"dynamodb":{"NewImage":{"sk":{"S":["INBOX"]},"status":{"S":["received"]}}}}`, true},
		{"a prefix", `{"dynamodb":{"NewImage":{"sk":{"S":[{"prefix":"IN"}]}}}}`, true},
		{"another prefix", `{"dynamodb":{"NewImage":{"sk":{"S":[{"prefix":"EVENT#"}]}}}}`, false},
		{"an absent field", `{"dynamodb":{"NewImage":{"due_at":{"N":[{"exists":false}]}}}}`, true},
		{"a field that must be there", `{"dynamodb":{"OldImage":{"sk":{"S":[{"exists":true}]}}}}`, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				filter, err := stream.ParseFilter(test.pattern)
				if err != nil {
					t.Fatal(err)
				}
				all := []stream.Record{{Sequence: "1", At: time.Now(), Body: json.RawMessage(record)}}
				got := run(t, stream.Mapping{BatchSize: 1, MaxRetries: 3, Filters: []stream.Filter{filter}}, all, processed)
				if delivered := len(got.calls) == 1; delivered != test.want {
					t.Errorf("delivered: got %v, want %v", delivered, test.want)
				}
			})
		})
	}
}

func TestAPatternThatCantBeCarriedOutIsRefused(t *testing.T) {
	for _, pattern := range []string{`{"a":[{"numeric":[">",1]}]}`, `{"a":"b"}`, `{"a":[{"prefix":1}]}`, `[]`, `{`} {
		if _, err := stream.ParseFilter(pattern); err == nil || !strings.Contains(err.Error(), "pattern") {
			t.Errorf("ParseFilter(%s): got %v, want an error that shows the pattern", pattern, err)
		}
	}
}
