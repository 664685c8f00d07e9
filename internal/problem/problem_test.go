package problem_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/problem"
)

func TestAProblemIsItsCodesDocument(t *testing.T) {
	e := problem.New(problem.AmountTooLarge, "Too much.")
	want := `{"type":"urn:kessai:problem:amount_too_large","title":"Amount too large","status":422,"detail":"Too much.","code":"amount_too_large"}`
	if got := string(e.Body()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if e.Status() != 422 || e.Header()["Content-Type"] != "application/problem+json" || e.Header()["Cache-Control"] != "no-store" {
		t.Errorf("got %d %v, want 422 and a problem's headers", e.Status(), e.Header())
	}
}

func TestEveryCodeHasAStatusAndATitle(t *testing.T) {
	codes := problem.Codes()
	if len(codes) < 20 {
		t.Fatalf("got %d codes, want all", len(codes))
	}
	for _, code := range codes {
		var document struct {
			Title  string
			Status int
		}
		e := problem.New(code, "d")
		if err := json.Unmarshal(e.Body(), &document); err != nil {
			t.Fatal(err)
		}
		if document.Title == "" || document.Status != e.Status() || e.Status() < 400 || strings.ToLower(string(code)) != string(code) {
			t.Errorf("%s: got %s, want a title and a status", code, e.Body())
		}
	}
	if got := problem.New("unheard_of", "d").Status(); got != 500 {
		t.Errorf("got %d, want 500 for a code that is not of the set", got)
	}
}

func TestAProblemsHeadersSayWhatToDo(t *testing.T) {
	if h := problem.New(problem.Unauthorized, "d").Header(); h["WWW-Authenticate"] != "Bearer" {
		t.Errorf("got %v, want how to authenticate", h)
	}
	h := (&problem.Error{Code: problem.MethodNotAllowed, Allow: "GET, HEAD"}).Header()
	if h["Allow"] != "GET, HEAD" || h["Retry-After"] != "" {
		t.Errorf("got %v, want Allow alone", h)
	}
	for d, want := range map[time.Duration]string{
		time.Nanosecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Hour: "3600", 48 * time.Hour: "3600",
	} {
		if got := (&problem.Error{Code: problem.Unavailable, RetryAfter: d}).Header()["Retry-After"]; got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
}

func TestAnInvalidFieldIsNamed(t *testing.T) {
	e := problem.Invalid("amount", "must be an integer")
	if got, want := string(e.Body()), `"errors":[{"field":"amount","message":"must be an integer"}]`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s in it", got, want)
	}
	if !strings.Contains(e.Error(), "invalid_request") {
		t.Errorf("got %v, want its code", e)
	}
}
