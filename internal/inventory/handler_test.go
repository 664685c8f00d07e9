package inventory_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/kessai/kessai/internal/inventory"
)

var _ lambda.Handler = inventory.Handler{}

func TestTheHandlerAnswersInDataAndFailsByName(t *testing.T) {
	const (
		ids   = `"merchant_id":"alpha","checkout_id":"chk_1"`
		other = `"merchant_id":"alpha","checkout_id":"chk_2"`
	)
	steps := []struct{ payload, want, failure string }{
		{
			payload: `{"command":"reserve",` + ids + `,"lines":[{"sku":"tee","quantity":2}]}`,
			want:    `{"outcome":"reserved","checkout_id":"chk_1","lacking":[]}`,
		},
		{
			payload: `{"command":"reserve",` + other + `,"lines":[{"sku":"tee","quantity":2}]}`,
			want:    `{"outcome":"out_of_stock","checkout_id":"chk_2","lacking":["tee"]}`,
		},
		{
			payload: `{"command":"release",` + other + `,"lines":[{"sku":"tee","quantity":2}]}`,
			want:    `{"outcome":"released","checkout_id":"chk_2","lacking":[]}`,
		},
		{payload: `{"command":"sell",` + ids + `}`, want: `{"outcome":"sold","checkout_id":"chk_1","lacking":[]}`},
		{payload: `{"command":"release",` + ids + `}`, failure: "InvalidCommandError"},
		{payload: `{"command":"sell",` + other + `}`, failure: "InvalidCommandError"},
		{payload: `{"command":"count",` + ids + `}`, failure: "InvalidCommandError"},
		{payload: `{"command":"Reserve",` + ids + `,"lines":[{"sku":"tee","quantity":2}]}`, failure: "InvalidCommandError"},
		{payload: `{"command":"reserve",` + ids + `,"lines":[{"sku":"tee","quantity":2.0}]}`, failure: "InvalidCommandError"},
		{payload: `{"command":"reserve",` + ids + `,"lines":[{"sku":"tee","quantity":2,"unit_amount":1}]}`, failure: "InvalidCommandError"},
		{payload: `{"command":"release","command":"sell",` + ids + `}`, failure: "InvalidCommandError"},
		{payload: `{"command":"release",` + ids + `} {}`, failure: "InvalidCommandError"},
		{payload: `{"command":"release","checkout_id":"chk_1"}`, failure: "InvalidCommandError"},
		{payload: `null`, failure: "InvalidCommandError"},
		{payload: ``, failure: "InvalidCommandError"},
	}
	p := inventory.New(newTable(), clock)
	set(t, p, "tee", 3)
	h := inventory.NewHandler(p)
	for _, s := range steps {
		got, err := h.Invoke(t.Context(), []byte(s.payload))
		if string(got) != s.want || failure(err) != s.failure {
			t.Errorf("%s: got %s %v, want %s %s", s.payload, got, err, s.want, s.failure)
		}
	}
}

func TestATableWithoutAnAnswerIsUnavailable(t *testing.T) {
	table := newTable()
	h := inventory.NewHandler(inventory.New(&tap{Table: table, lost: func(int) fault { return unheard }}, clock))
	for _, payload := range []string{
		`{"command":"reserve","merchant_id":"alpha","checkout_id":"chk_1","lines":[{"sku":"tee","quantity":2}]}`,
		`{"command":"release","merchant_id":"alpha","checkout_id":"chk_1"}`,
	} {
		if _, err := h.Invoke(t.Context(), []byte(payload)); failure(err) != "UnavailableError" || !errors.Is(err, errCut) {
			t.Errorf("%s: got %v, want UnavailableError", payload, err)
		}
	}
}

// failure is the name that Step Functions sees: the outermost Go type's.
func failure(err error) string {
	if err == nil {
		return ""
	}
	return reflect.TypeOf(err).Elem().Name()
}
