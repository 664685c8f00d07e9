package delivery_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/delivery"
)

func TestADeadEndpointDoesNotFloodTheLog(t *testing.T) {
	for name, server := range map[string]server{
		"event not delivered": {err: errors.New("no connection")},
		"event refused":       {statuses: []int{500}},
	} {
		w := newWorld(t)
		w.server.err, w.server.statuses = server.err, server.statuses
		var log bytes.Buffer
		w.service.Log = slog.New(slog.NewJSONHandler(&log, nil))
		w.endpoint(delivery.AllTypes)
		e := w.event(subject)
		w.announce(e)
		d := w.deliver(e)
		for d.Status == delivery.StatusPending {
			w.now = d.DueAt
			d = w.deliver(e)
		}
		if d.Attempts < 10 {
			t.Fatalf("%s: got %d attempts, want many", name, d.Attempts)
		}
		for message, want := range map[string]int{name: 1, "event given up": 1, "endpoint disabled": 1} {
			if n := strings.Count(log.String(), `"msg":"`+message+`"`); n != want {
				t.Errorf("%s: got %d lines %q of %d attempts, want %d", name, n, message, d.Attempts, want)
			}
		}
		if n := strings.Count(log.String(), `"payment_id":"`+subject+`"`); n != 2 {
			t.Errorf("%s: got the payment named in %d lines, want 2:\n%s", name, n, log.String())
		}
	}
}
