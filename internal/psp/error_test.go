package psp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kessai/kessai/internal/psp"
)

// What nobody classified may have run: unknown is never failed.
func TestAnErrorThatIsNotClassifiedIsUnknown(t *testing.T) {
	var zero psp.Outcome
	if zero != psp.OutcomeUnknown {
		t.Errorf("got outcome %d as the zero value, want OutcomeUnknown", zero)
	}
	for name, err := range map[string]error{
		"no error": nil, "another package's": errors.New("broken pipe"), "one without an outcome": &psp.Error{Operation: "create", HTTPStatus: 502},
		"not found": psp.ErrNotFound,
	} {
		if got := psp.OutcomeOf(err); got != psp.OutcomeUnknown {
			t.Errorf("%s: got outcome %d, want OutcomeUnknown", name, got)
		}
	}
	wrapped := fmt.Errorf("charge pay_1: %w", &psp.Error{Operation: "create", Outcome: psp.OutcomeThrottled})
	if got := psp.OutcomeOf(wrapped); got != psp.OutcomeThrottled {
		t.Errorf("got outcome %d of a wrapped error, want its own", got)
	}
}

func TestAnErrorSaysWhatHappenedAndKeepsItsCause(t *testing.T) {
	cause := errors.New("no answer")
	err := &psp.Error{Operation: "refund", Code: "charge_captured", HTTPStatus: 409, Err: cause}
	if want := "psp: refund: http status 409 charge_captured: no answer"; err.Error() != want || !errors.Is(err, cause) {
		t.Errorf("got %q, cause kept %t, want %q", err, errors.Is(err, cause), want)
	}
}
