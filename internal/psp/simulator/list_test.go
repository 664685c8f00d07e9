package simulator_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/simulator"
)

func TestAListIsReadPageByPage(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		w.Header().Set("Content-Type", "application/json")
		body := listOf(`"7"`, row("ch_1", "captured", 9, 0))
		if r.URL.Query().Get("cursor") != "" {
			body = listOf("null", strings.Replace(row("ch_2", "failed", 0, 0), "pay_1", "another", 1))
		}
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	adapter, err := simulator.New(simulator.Config{BaseURL: server.URL, Tolerance: time.Minute, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	cursor, first := "", true
	for first || cursor != "" {
		charges, next, err := adapter.List(t.Context(), time.Unix(1767322445, 999), cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range charges {
			got = append(got, c.Reference+" of "+c.PaymentID)
		}
		cursor, first = next, false
	}
	if text := strings.Join(got, ", "); text != "ch_1 of pay_1, ch_2 of another" {
		t.Errorf("got %s, want both charges", text)
	}
	want := "/charges?limit=50&since=1767322445 /charges?cursor=7&limit=50&since=1767322445"
	if text := strings.Join(asked, " "); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

func TestAListThatCannotBeReadIsNoAnswer(t *testing.T) {
	for name, body := range map[string]string{
		"one charge without an amount": listOf("null", row("ch_1", "captured", 9, 0), `{"id":"ch_2","status":"captured"}`),
		"a status of another program":  listOf("null", row("ch_1", "settled", 9, 0)),
		"the same page again":          listOf(`"here"`),
		"a cursor without an end":      listOf(`"` + strings.Repeat("x", 1025) + `"`),
		"no list":                      `{}`,
	} {
		charges, _, err := answering(t, http.StatusOK, body).List(t.Context(), time.Unix(0, 0), "here")
		e, ok := errors.AsType[*psp.Error](err)
		if !ok || e.Outcome != psp.OutcomeUnknown || e.Operation != "list" || charges != nil {
			t.Errorf("%s: got %v, %v, want an error of the list and no charges", name, charges, err)
		}
	}
}
