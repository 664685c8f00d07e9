package command_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/internal/command"
)

type question struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

type answer struct {
	Outcome string `json:"outcome"`
}

var (
	errBad   = errors.New("bad")
	errStuck = errors.New("stuck")
)

func ask(_ context.Context, q question) (answer, error) {
	switch q.Name {
	case "bad":
		return answer{}, fmt.Errorf("ask: %w", errBad)
	case "stuck":
		return answer{}, fmt.Errorf("ask: %w", errStuck)
	}
	return answer{Outcome: fmt.Sprint(q.Name, q.Count)}, nil
}

func TestAnErrorIsToldByTheNameOfItsType(t *testing.T) {
	tests := []struct {
		name, payload, want, failure string
	}{
		{"an answer", `{"name":"a","count":3}`, `{"outcome":"a3"}`, ""},
		{"null is absent", `{"name":"a","count":null}`, `{"outcome":"a0"}`, ""},
		{"a final error", `{"name":"bad"}`, "", "InvalidCommandError"},
		{"any other error", `{"name":"stuck"}`, "", "UnavailableError"},
		{"an unknown field", `{"name":"a","other":1}`, "", "InvalidCommandError"},
		{"a name in another case", `{"Name":"a"}`, "", "InvalidCommandError"},
		{"a name twice", `{"name":"a","name":"b"}`, "", "InvalidCommandError"},
		{"trailing data", `{"name":"a"}{}`, "", "InvalidCommandError"},
		{"invalid UTF-8", "{\"name\":\"\xff\"}", "", "InvalidCommandError"},
		{"a fraction", `{"count":1.5}`, "", "InvalidCommandError"},
		{"an exponent", `{"count":1e3}`, "", "InvalidCommandError"},
		{"beyond 64 bits", `{"count":9223372036854775808}`, "", "InvalidCommandError"},
		{"a number as text", `{"count":"1"}`, "", "InvalidCommandError"},
		{"nothing", ``, "", "InvalidCommandError"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := command.Serve(t.Context(), []byte(tt.payload), ask, errBad)
			failure := ""
			if err != nil {
				failure = reflect.TypeOf(err).Elem().Name() // what the Lambda runtime reports
			}
			if string(got) != tt.want || failure != tt.failure {
				t.Errorf("got %s %v, want %s %s", got, err, tt.want, tt.failure)
			}
		})
	}
	_, err := command.Serve(t.Context(), []byte(`{"name":"bad"}`), ask, errBad)
	if !errors.Is(err, errBad) {
		t.Errorf("got %v, want it to wrap the cause", err)
	}
	_, err = command.Serve(t.Context(), []byte(`{"name":"stuck"}`), ask, errBad)
	if !errors.Is(err, errStuck) {
		t.Errorf("got %v, want it to wrap the cause", err)
	}
}

func TestAMalformedCommandIsNotQuoted(t *testing.T) {
	for _, payload := range []string{`{"name":["a@example.com"]}`, `{"count":"a@example.com"}`, `{"name":"a@example.com"`, `{"a@example.com":1}`, `{"a@example.com":1,"a@example.com":2}`} {
		_, err := command.Serve(t.Context(), []byte(payload), ask)
		if err == nil || strings.Contains(err.Error(), "example.com") {
			t.Errorf("%s: got %v, want an error that quotes nothing", payload, err)
		}
	}
}

// The function is cut off at its deadline, and then nothing tells what happened:
// so the work is, a little before.
func TestTheWorkEndsInTimeToAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := command.Serve(ctx, []byte(`{}`), func(ctx context.Context, _ question) (answer, error) {
			<-ctx.Done()
			return answer{}, ctx.Err()
		})
		if _, ok := errors.AsType[*command.UnavailableError](err); !ok {
			t.Errorf("got %v, want UnavailableError", err)
		}
		deadline, _ := ctx.Deadline()
		if left := time.Until(deadline); left <= 0 || left > time.Second {
			t.Errorf("got an answer with %s left, want some, and not much", left)
		}
	})
}

func TestAnIDHoldsNoSeparator(t *testing.T) {
	for _, id := range []string{"chk_01J00000000000000000000000", "alpha", "a-b_C9", strings.Repeat("x", 64)} {
		if !command.ValidID(id) {
			t.Errorf("%q: got invalid, want valid", id)
		}
	}
	for _, id := range []string{"", "a#b", "a b", "a/b", "a\n", "é", "a:b", strings.Repeat("x", 65)} {
		if command.ValidID(id) {
			t.Errorf("%q: got valid, want invalid", id)
		}
	}
}
