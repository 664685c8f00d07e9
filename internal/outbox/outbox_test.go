package outbox_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/kessai/kessai/internal/outbox"
)

// bus takes events, but refuses some by their id.
type bus struct {
	taken   []string
	refuses map[string]error
}

func (b *bus) Publish(_ context.Context, events []outbox.Event) []error {
	errs := make([]error, len(events))
	for i, e := range events {
		b.taken = append(b.taken, e.ID)
		errs[i] = b.refuses[e.ID]
	}
	return errs
}

// sagas notes what was begun and woken.
type sagas struct {
	calls []string
	fail  error
}

func (s *sagas) Begin(_ context.Context, id string) error {
	s.calls = append(s.calls, "begin "+id)
	return s.fail
}

func (s *sagas) Wake(_ context.Context, id string) error {
	s.calls = append(s.calls, "wake "+id)
	return s.fail
}

func TestACheckoutIsWokenByWhatItWaitsFor(t *testing.T) {
	tests := []struct {
		kind, source, checkout, want string
	}{
		{"checkout.created", "api", "chk_1", "begin chk_1"},
		{"payment.captured", "webhook", "chk_1", "wake chk_1"},
		{"payment.captured", "reconciler", "chk_1", "wake chk_1"},
		{"payment.failed", "webhook", "chk_1", "wake chk_1"},
		{"payment.canceled", "api", "chk_1", "wake chk_1"}, // by the merchant
		{"payment.requires_action", "webhook", "chk_1", "wake chk_1"},
		{"refund.succeeded", "webhook", "chk_1", "wake chk_1"},
		{"refund.failed", "reconciler", "chk_1", "wake chk_1"},

		{"payment.captured", "saga", "chk_1", ""}, // no news to the saga that did it
		{"payment.captured", "webhook", "", ""},   // a payment made directly
		{"payment.created", "api", "chk_1", ""},
		{"payment.sent", "reconciler", "chk_1", ""},
		{"payment.pending", "webhook", "chk_1", ""},
		{"payment.authorized", "webhook", "chk_1", ""},
		{"payment.late_captured", "webhook", "chk_1", ""}, // its refund is
		{"payment.dispute_opened", "webhook", "chk_1", ""},
		{"refund.pending", "webhook", "chk_1", ""},
		{"checkout.resumed", "api", "chk_1", ""}, // who resumes starts it
		{"checkout.completed", "saga", "chk_1", ""},
		{"checkout.needs_review", "reconciler", "chk_1", ""},
	}
	for _, tt := range tests {
		woken := &sagas{}
		relay := &outbox.Relay{Publisher: &bus{}, Sagas: woken}
		e := outbox.Event{ID: "evt_1", Type: tt.kind, Source: tt.source, CheckoutID: tt.checkout}
		if err := relay.Carry(t.Context(), []outbox.Event{e})[0]; err != nil {
			t.Errorf("%s: %v", tt.kind, err)
		}
		var want []string
		if tt.want != "" {
			want = []string{tt.want}
		}
		if !slices.Equal(woken.calls, want) {
			t.Errorf("%s by %s of %q: got %v, want %v", tt.kind, tt.source, tt.checkout, woken.calls, want)
		}
	}
}

func TestWhatFailsIsToldForEachEvent(t *testing.T) {
	full, down := errors.New("bus is full"), errors.New("no answer")
	events := []outbox.Event{
		{ID: "evt_1", Type: "payment.created", Source: "api"},
		{ID: "evt_2", Type: "payment.captured", Source: "webhook", CheckoutID: "chk_1"},
		{ID: "evt_3", Type: "payment.failed", Source: "webhook"},
	}
	b := &bus{refuses: map[string]error{"evt_2": full}}
	woken := &sagas{fail: down}
	errs := (&outbox.Relay{Publisher: b, Sagas: woken}).Carry(t.Context(), events)
	if len(errs) != 3 || errs[0] != nil || errs[2] != nil {
		t.Errorf("got %v, want an error of the second event alone", errs)
	}
	if !errors.Is(errs[1], full) || !errors.Is(errs[1], down) {
		t.Errorf("got %v, want both that it was refused and that its saga was not woken", errs[1])
	}
	if want := []string{"evt_1", "evt_2", "evt_3"}; !slices.Equal(b.taken, want) {
		t.Errorf("got %v published, want %v in order", b.taken, want)
	}
	if want := []string{"wake chk_1"}; !slices.Equal(woken.calls, want) {
		t.Errorf("got %v, want %v though the bus refused", woken.calls, want)
	}
}

func TestAnEventsIDIsTheSameWhereverItsRowIsSeen(t *testing.T) {
	if got, want := outbox.EventID("pay_1", 7), "evt_pay_1_7"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
