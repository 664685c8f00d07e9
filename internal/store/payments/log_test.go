package payments_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/webhook"
)

// The log of a period has every item of a PSP once, whatever the size of a page.
func TestTheLogOfAPeriodHasEveryItemOnce(t *testing.T) {
	b := newBench(t)
	for i := range 40 {
		it := notification(fmt.Sprintf("evt_%02d", i))
		it.ReceivedAt = start.Add(time.Duration(i/2) * time.Second) // two of one instant
		if i%5 == 0 {
			it.PSP = "other"
		}
		if _, err := b.table.Receive(t.Context(), it); err != nil {
			t.Fatal(err)
		}
		if i%4 == 3 { // these stay received, and are due at one time
			continue
		}
		if err := b.table.Save(t.Context(), settled(it, webhook.StatusApplied)); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{1, 2, 7, 100} {
		for _, tt := range []struct {
			status   webhook.Status
			from, to int // seconds, both within
			want     string
		}{
			{webhook.StatusApplied, 3, 6, "evt_13 evt_12 evt_09 evt_08 evt_06"},
			{webhook.StatusApplied, 19, 99, "evt_38"},
			{webhook.StatusApplied, 20, 99, ""},
			{webhook.StatusReceived, 3, 10, "evt_07 evt_11 evt_19"},
			{webhook.StatusQuarantined, 0, 99, ""},
		} {
			w := audit.Window{From: start.Add(time.Duration(tt.from) * time.Second), To: start.Add(time.Duration(tt.to) * time.Second), Limit: limit}
			var got []string
			pages := 0
			for {
				pages++
				items, next, err := b.table.Log(t.Context(), "simulator", tt.status, w)
				if err != nil || len(items) > limit {
					t.Fatalf("got %d items of at most %d, %v", len(items), limit, err)
				}
				for _, it := range items {
					got = append(got, it.EventID)
				}
				if w.Cursor = next; next == "" {
					break
				}
			}
			if tt.to == 6 && pages > 6/limit+2 { // of both PSPs there are six
				t.Errorf("got %d pages of %d, want none read before the period", pages, limit)
			}
			if tt.status == webhook.StatusReceived {
				slices.Sort(got)
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("%s from %d to %d, %d a page: got %q, want %q", tt.status, tt.from, tt.to, limit, text, tt.want)
			}
		}
	}
	if _, _, err := b.table.Log(t.Context(), "simulator", webhook.StatusApplied, audit.Window{Cursor: "x"}); !errors.Is(err, store.ErrCursor) {
		t.Errorf("got %v, want ErrCursor", err)
	}
}
