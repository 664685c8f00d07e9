package main

import (
	"context"
	"os"
	"strings"
	"testing"
)

// The participant's schedule calls its function, with what the template says.
func TestASweepCallsTheNotificationsFunctionAsItsScheduleDoes(t *testing.T) {
	t.Setenv("LOG_LEVEL", "ERROR")
	s, err := readSettings()
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProduct(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	var sent, answers []string
	invoke := p.notices
	p.notices = func(ctx context.Context, payload []byte) ([]byte, error) {
		answer, err := invoke(ctx, payload)
		sent, answers = append(sent, string(payload)), append(answers, string(answer))
		return answer, err
	}
	p.sweepOnce(t.Context())
	if len(sent) != 1 || !strings.Contains(answers[0], `"outcome":"swept"`) {
		t.Fatalf("got %q for %q, want one call that sweeps", answers, sent)
	}
	template, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(template), "Input: '"+sent[0]+"'") {
		t.Errorf("no schedule of the template sends %s", sent[0])
	}
}
