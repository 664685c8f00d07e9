package reconcile_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/reconcile"
)

func TestTheLineOfARepairThatFailedNamesThePaymentOrCheckout(t *testing.T) {
	for _, c := range []struct {
		kind  reconcile.Kind
		fails func(context.Context, string) error
		want  string
	}{
		{reconcile.KindPayment, func(context.Context, string) error { return errors.New("broken") }, `"payment_id":"x_1"`},
		{reconcile.KindPayment, func(context.Context, string) error { panic("poison") }, `"payment_id":"x_1"`},
		{reconcile.KindCheckout, func(context.Context, string) error { return errors.New("broken") }, `"checkout_id":"x_1"`},
		{reconcile.KindWebhook, func(context.Context, string) error { return errors.New("broken") }, `"due_id":"x_1"`},
	} {
		x := fill(1, 0)
		x.shards[0] = []reconcile.Due{{Kind: c.kind, ID: "x_1"}}
		s, _ := sweeper(x, nil)
		var log bytes.Buffer
		s.Repairs, s.Log = map[reconcile.Kind]reconcile.Repair{c.kind: c.fails}, slog.New(slog.NewJSONHandler(&log, nil))
		if report, err := s.Sweep(t.Context()); err != nil || report.Failed != 1 {
			t.Fatalf("got %+v, %v, want one failure", report, err)
		}
		if got := log.String(); !strings.Contains(got, `"msg":"repair `) || !strings.Contains(got, c.want) {
			t.Errorf("%s: got line %s, want %s in it", c.kind, got, c.want)
		}
	}
}
