package payments_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/webhook"
)

func notification(eventID string) webhook.Item {
	return webhook.Item{
		PSP: "simulator", EventID: eventID, Type: "charge.captured", Body: []byte(`{"id":"x"}`), Status: webhook.StatusReceived,
		ReceivedAt: start, WaitUntil: start.Add(30 * time.Minute), DueAt: start.Add(time.Minute),
	}
}

func (b *bench) saved(it webhook.Item) webhook.Item {
	b.Helper()
	if err := b.table.Save(b.Context(), it); err != nil {
		b.Fatalf("save: %v", err)
	}
	return b.inbox(it.EventID)
}

func (b *bench) inbox(eventID string) webhook.Item {
	b.Helper()
	it, err := b.table.Item(b.Context(), "simulator", eventID)
	if err != nil {
		b.Fatalf("item %s: %v", eventID, err)
	}
	return it
}

func settled(it webhook.Item, status webhook.Status) webhook.Item {
	it.Status, it.Reason, it.DueAt, it.Attempts, it.PaymentID = status, "because", time.Time{}, it.Attempts+1, firstID
	return it
}

func TestAnItemIsTakenInOnce(t *testing.T) {
	b := newBench(t)
	want := notification("evt_1")
	fresh, err := b.table.Receive(t.Context(), want)
	if err != nil || !fresh {
		t.Fatalf("first: got fresh %t, %v", fresh, err)
	}
	same(t, "item", b.inbox("evt_1"), want)
	second := want
	second.Body, second.ReceivedAt, second.DueAt = []byte("other"), start.Add(time.Hour), start.Add(time.Hour)
	fresh, err = b.table.Receive(t.Context(), second)
	if err != nil || fresh {
		t.Fatalf("second: got fresh %t, %v", fresh, err)
	}
	want.Wake = 1
	same(t, "item", b.inbox("evt_1"), want)
	other := want
	other.PSP, other.Wake = "other", 0
	if fresh, err := b.table.Receive(t.Context(), other); err != nil || !fresh {
		t.Errorf("another PSP's event of the same id: got fresh %t, %v, want it taken in", fresh, err)
	}
	if _, err := b.table.Item(t.Context(), "simulator", "evt_2"); !errors.Is(err, webhook.ErrNotFound) {
		t.Errorf("got %v, want %v", err, webhook.ErrNotFound)
	}
}

func TestABodyIsKeptByteForByte(t *testing.T) {
	for name, body := range map[string][]byte{
		"text":          []byte("{\"name\":\"\u00e9\"}\r\n"),
		"no UTF-8":      {0xff, 0xfe, 0x00, 0x80},
		"nothing":       {},
		"the largest":   bytes.Repeat([]byte{0xff}, 262_144),
		"the largest 2": bytes.Repeat([]byte("x"), 262_144),
		"base64 itself": []byte(base64.StdEncoding.EncodeToString([]byte("x"))),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			it := notification("evt_1")
			it.Body = body
			if _, err := b.table.Receive(t.Context(), it); err != nil {
				t.Fatal(err)
			}
			if got := b.inbox("evt_1").Body; !bytes.Equal(got, body) {
				t.Errorf("got %d bytes, want %d the same", len(got), len(body))
			}
		})
	}
}

func TestOnlyAnItemThatIsStillReceivedIsSaved(t *testing.T) {
	b := newBench(t)
	b.receive("evt_1", start)
	waiting := b.inbox("evt_1")
	waiting.Attempts, waiting.DueAt = 3, start.Add(time.Hour)
	same(t, "waiting", b.saved(waiting), waiting)
	applied := settled(waiting, webhook.StatusApplied)
	same(t, "applied", b.saved(applied), applied)
	late := waiting
	late.Attempts = 9
	same(t, "a late worker's", b.saved(late), applied)
	same(t, "a later verdict", b.saved(settled(waiting, webhook.StatusQuarantined)), applied)
}

func TestADeliveryWakesWhatIsReceivedOnly(t *testing.T) {
	for _, status := range webhook.Statuses() {
		t.Run(string(status), func(t *testing.T) {
			b := newBench(t)
			b.receive("evt_1", start)
			if status != webhook.StatusReceived {
				b.saved(settled(b.inbox("evt_1"), status))
			}
			before := b.inbox("evt_1")
			if fresh, err := b.table.Receive(t.Context(), notification("evt_1")); err != nil || fresh {
				t.Fatalf("got fresh %t, %v", fresh, err)
			}
			if status == webhook.StatusReceived {
				before.Wake = 1
			}
			same(t, "item", b.inbox("evt_1"), before)
		})
	}
}

func TestAFinishedItemIsForgottenLaterAndAQuarantinedOneNever(t *testing.T) {
	for status, forgotten := range map[webhook.Status]bool{
		webhook.StatusReceived: false, webhook.StatusApplied: true, webhook.StatusIgnored: true, webhook.StatusQuarantined: false,
	} {
		b := newBench(t)
		b.receive("evt_1", start)
		it := settled(b.inbox("evt_1"), status)
		if status == webhook.StatusReceived {
			it.DueAt = start.Add(time.Minute)
		}
		b.saved(it)
		expires, set := b.item("WEBHOOK#simulator#evt_1", "INBOX")[store.AttrExpiresAt]
		if set != forgotten {
			t.Errorf("%s: got %v, want a time to live %t", status, expires, forgotten)
		}
		if want := start.Add(90 * 24 * time.Hour).Unix(); set && expires != want {
			t.Errorf("%s: got %v, want %d", status, expires, want)
		}
	}
}

func TestAReplayReopensWhatEndedWithoutEffect(t *testing.T) {
	for _, status := range webhook.Statuses() {
		t.Run(string(status), func(t *testing.T) {
			b := newBench(t)
			b.receive("evt_1", start)
			if status != webhook.StatusReceived {
				b.saved(settled(b.inbox("evt_1"), status))
			}
			it := b.inbox("evt_1")
			it.WaitUntil, it.DueAt = start.Add(5*time.Hour), start.Add(4*time.Hour)
			c := claim("k", it.ID())
			if err := b.table.Reopen(t.Context(), it, *c); err != nil {
				t.Fatal(err)
			}
			got := b.inbox("evt_1")
			switch status {
			case webhook.StatusQuarantined, webhook.StatusIgnored:
				if got.Status != webhook.StatusReceived || got.Attempts != 0 || got.Reason != "" || !got.DueAt.Equal(it.DueAt) || !got.WaitUntil.Equal(it.WaitUntil) || got.Wake != 1 {
					t.Errorf("got %+v, want it received anew", got)
				}
				if _, set := b.item("WEBHOOK#simulator#evt_1", "INBOX")[store.AttrExpiresAt]; set {
					t.Error("it has a time to live")
				}
			case webhook.StatusReceived:
				if got.Wake != 1 {
					t.Errorf("got %+v, want it woken", got)
				}
			case webhook.StatusApplied:
				if got.Status != webhook.StatusApplied || got.Wake != 0 {
					t.Errorf("got %+v, want it left alone", got)
				}
			}
			rec, err := b.table.Record(t.Context(), merchant, c.Record.Hash)
			if err != nil || rec.ResourceID != it.ID() {
				t.Errorf("record: got %+v, %v, want the claim", rec, err)
			}
			err = b.table.Reopen(t.Context(), got, *c)
			if conflict, ok := errors.AsType[*journal.Conflict](err); !ok || conflict.Record == nil {
				t.Errorf("again: got %v, want the record in the way", err)
			}
		})
	}
	t.Run("moved on", func(t *testing.T) {
		b := newBench(t)
		b.receive("evt_1", start)
		it := b.saved(settled(b.inbox("evt_1"), webhook.StatusQuarantined))
		c := claim("k", it.ID())
		it.Status = webhook.StatusReceived // as it was seen
		err := b.table.Reopen(t.Context(), it, *c)
		if conflict, ok := errors.AsType[*journal.Conflict](err); !ok || !conflict.Version {
			t.Errorf("got %v, want a conflict", err)
		}
	})
}

func TestUnknownAttributesOfAnItemSurvive(t *testing.T) {
	b := newBench(t)
	b.receive("evt_1", start)
	b.set("WEBHOOK#simulator#evt_1", "INBOX", store.Item{"newer": "kept"})
	kept := func(what string) {
		t.Helper()
		if got := b.item("WEBHOOK#simulator#evt_1", "INBOX")["newer"]; got != "kept" {
			t.Errorf("%s: got %v, want it kept", what, got)
		}
	}
	if _, err := b.table.Receive(t.Context(), notification("evt_1")); err != nil {
		t.Fatal(err)
	}
	kept("delivered again")
	it := b.saved(settled(b.inbox("evt_1"), webhook.StatusQuarantined))
	kept("saved")
	if err := b.table.Reopen(t.Context(), it, *claim("k", it.ID())); err != nil {
		t.Fatal(err)
	}
	kept("reopened")
}

func TestAChangeAsksForApplyingWhenItIsNewOrWoken(t *testing.T) {
	b := newBench(t)
	key := store.Key{PK: "WEBHOOK#simulator#evt_1", SK: "INBOX"}
	var old store.Item
	asks := func(what string, want bool) {
		t.Helper()
		now := b.item(key.PK, key.SK)
		name, eventID, ok := payments.InboxChange(store.Change{Key: key, Old: old, New: now})
		if ok != want || ok && (name != "simulator" || eventID != "evt_1") {
			t.Errorf("%s: got %s %s %t, want %t", what, name, eventID, ok, want)
		}
		old = now
	}
	b.receive("evt_1", start)
	asks("new", true)
	it := b.inbox("evt_1")
	it.Attempts, it.DueAt = 1, start.Add(time.Hour)
	b.saved(it)
	asks("a worker's own save", false)
	if _, err := b.table.Receive(t.Context(), notification("evt_1")); err != nil {
		t.Fatal(err)
	}
	asks("delivered again", true)
	it = b.saved(settled(b.inbox("evt_1"), webhook.StatusQuarantined))
	asks("finished", false)
	if err := b.table.Reopen(t.Context(), it, *claim("k", it.ID())); err != nil {
		t.Fatal(err)
	}
	asks("reopened", true)
	for name, c := range map[string]store.Change{
		"removed":  {Key: key, Old: old},
		"a state":  {Key: store.Key{PK: key.PK, SK: "STATE"}, New: old},
		"finished": {Key: key, New: store.Item{"status": "applied", "psp": "simulator", "event_id": "evt_1"}},
	} {
		if _, _, ok := payments.InboxChange(c); ok {
			t.Errorf("%s asks for applying", name)
		}
	}
}

// list is the ids of all pages of a list, and the sizes of its pages.
func list(t *testing.T, table *payments.Table, status webhook.Status, limit int) (ids []string, sizes []int) {
	t.Helper()
	cursor := ""
	for {
		items, next, err := table.Webhooks(t.Context(), status, cursor, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range items {
			ids = append(ids, it.EventID)
		}
		sizes = append(sizes, len(items))
		if cursor = next; cursor == "" {
			return ids, sizes
		}
	}
}

func TestListsMergeTheirShardsNewestFirst(t *testing.T) {
	for _, status := range webhook.Statuses() {
		for _, limit := range []int{1, 3, 7, 100} {
			t.Run(fmt.Sprintf("%s by %d", status, limit), func(t *testing.T) {
				b := newBench(t)
				var want []string
				for n := range 25 {
					it := notification(fmt.Sprintf("evt_%02d", n))
					it.ReceivedAt = start.Add(time.Duration(n*7%25) * time.Second)
					it.DueAt = it.ReceivedAt.Add(time.Minute)
					if _, err := b.table.Receive(t.Context(), it); err != nil {
						t.Fatal(err)
					}
					want = append(want, it.EventID)
					if status != webhook.StatusReceived {
						b.saved(settled(it, status))
					}
				}
				b.commit(change(firstID)) // which is due as well, and no notification
				slices.SortFunc(want, func(x, y string) int { return b.inbox(y).ReceivedAt.Compare(b.inbox(x).ReceivedAt) })
				got, sizes := list(t, b.table, status, limit)
				same(t, "list", got, want)
				for _, n := range sizes[:len(sizes)-1] {
					if n != limit {
						t.Errorf("got pages of %v, want %d each", sizes, limit)
					}
				}
				for _, other := range webhook.Statuses() {
					if ids, _ := list(t, b.table, other, 10); other != status && len(ids) != 0 {
						t.Errorf("%s lists %v too", other, ids)
					}
				}
			})
		}
	}
}

func TestAListHasEveryItemOnceAlsoOfOneInstant(t *testing.T) {
	for name, table := range map[string]func(store.Table) store.Table{
		"ordered index":  func(t store.Table) store.Table { return t },
		"disordered one": func(t store.Table) store.Table { return disordered{t} },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for n := range 60 { // one delivery of a batch
				it := notification(fmt.Sprintf("evt_%02d", n))
				if _, err := b.table.Receive(t.Context(), it); err != nil {
					t.Fatal(err)
				}
				b.saved(settled(it, webhook.StatusApplied))
			}
			got, _ := list(t, payments.New(table(b.raw)), webhook.StatusApplied, 2)
			slices.Sort(got)
			if unique := slices.Compact(slices.Clone(got)); len(got) != 60 || len(unique) != 60 {
				t.Errorf("got %d items, %d different, want 60", len(got), len(unique))
			}
		})
	}
}

func TestAListPassesOverWhatTheIndexHasWrong(t *testing.T) {
	b := newBench(t)
	for n := range 6 {
		b.receive(fmt.Sprintf("evt_%d", n), start.Add(time.Duration(n)*time.Second))
	}
	// An index that is behind: the entry is there, the item has moved on or is gone.
	b.set("WEBHOOK#simulator#evt_3", "INBOX", store.Item{"status": "applied"})
	stale := staleIndex{Table: b.raw, gone: store.Key{PK: "WEBHOOK#simulator#evt_1", SK: "INBOX"}}
	got, _ := list(t, payments.New(stale), webhook.StatusReceived, 2)
	same(t, "list", got, []string{"evt_5", "evt_4", "evt_2", "evt_0"})
}

func TestACursorOfNobodyIsRefused(t *testing.T) {
	b := newBench(t)
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, cursor := range []string{"!", "x", encode("5"), encode("x|y"), encode("-1|y"), encode("0|y"), encode("1x|y"), encode(strings.Repeat("9", 30) + "|y")} {
		if _, _, err := b.table.Webhooks(t.Context(), webhook.StatusReceived, cursor, 10); !errors.Is(err, store.ErrCursor) {
			t.Errorf("%q: got %v, want %v", cursor, err, store.ErrCursor)
		}
	}
}

func TestEveryFieldOfAnItemSurvives(t *testing.T) {
	b := newBench(t)
	var want webhook.Item
	var n int64
	v := reflect.ValueOf(&want).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() != reflect.Slice {
			fill(v.Field(i), &n)
		}
	}
	want.Body, want.Status, want.Wake = []byte("body"), webhook.StatusReceived, 0
	if _, err := b.table.Receive(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if err := b.table.Save(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := b.table.Item(t.Context(), want.PSP, want.EventID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "item", got, want)
}
