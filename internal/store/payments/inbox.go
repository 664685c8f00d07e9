package payments

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/webhook"
)

// attrWake counts what asks for applying an inbox item anew.
const attrWake = "wake"

// inboxForget is how long a finished item is kept: longer than any PSP sends again.
const inboxForget = 90 * 24 * time.Hour

// Receive puts an item if it is absent, in one trip. One that is there and still
// received is woken, best effort: the sweep would come to it all the same.
func (t *Table) Receive(ctx context.Context, it webhook.Item) (fresh bool, err error) {
	key := inboxKey(it.PSP, it.EventID)
	f := fields{}
	f.str("psp", it.PSP)
	f.str("event_id", it.EventID)
	f.str("type", it.Type)
	if utf8.Valid(it.Body) {
		f.str("body", string(it.Body))
	} else {
		f.str("body_base64", base64.StdEncoding.EncodeToString(it.Body))
	}
	f.str(attrStatus, string(it.Status))
	f.time("received_at", it.ReceivedAt)
	f.time("wait_until", it.WaitUntil)
	f.due(queueOf(it.Status), key, it.DueAt)
	err = t.table.Write(ctx, store.Write{Kind: store.Put, Key: key, Item: store.Item(f), If: store.Absent()})
	refused, seen := errors.AsType[*store.ConditionError](err)
	if !seen {
		return err == nil, err
	}
	old, _ := refused.At(0)
	if reader(old).str(attrStatus) != string(webhook.StatusReceived) {
		return false, nil
	}
	return false, ignoreCondition(t.table.Write(ctx, store.Write{
		Kind: store.Update, Key: key, Add: map[string]int64{attrWake: 1}, If: stillReceived,
	}))
}

// stillReceived: a finished item is never changed by a worker that is late.
var stillReceived = store.Equal(attrStatus, string(webhook.StatusReceived))

// Item reads an inbox item consistently, or returns webhook.ErrNotFound.
func (t *Table) Item(ctx context.Context, psp, eventID string) (webhook.Item, error) {
	item, err := t.table.Get(ctx, inboxKey(psp, eventID))
	if errors.Is(err, store.ErrNotFound) {
		return webhook.Item{}, webhook.ErrNotFound
	}
	if err != nil {
		return webhook.Item{}, err
	}
	return decodeInbox(item)
}

func decodeInbox(item store.Item) (webhook.Item, error) {
	r := reader(item)
	it := webhook.Item{
		PSP: r.str("psp"), EventID: r.str("event_id"), Type: r.str("type"), Body: []byte(r.str("body")),
		Status: webhook.Status(r.str(attrStatus)), PaymentID: payment.ID(r.str(attrPaymentID)), Reason: r.str("reason"),
		ReceivedAt: r.time("received_at"), WaitUntil: r.time("wait_until"), Attempts: int(r.num("attempts")), Wake: r.num(attrWake),
	}
	if it.Status == webhook.StatusReceived {
		it.DueAt = r.time(store.AttrDueAt)
	}
	if encoded := r.str("body_base64"); encoded != "" {
		body, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return webhook.Item{}, fmt.Errorf("decode body of %s: %w", it.ID(), err)
		}
		it.Body = body
	}
	return it, nil
}

// Save writes what became of an item that is still received. A finished one
// moves to its status' list, and may be forgotten once it is no longer needed.
func (t *Table) Save(ctx context.Context, it webhook.Item) error {
	key := inboxKey(it.PSP, it.EventID)
	f := fields{"attempts": int64(it.Attempts)}
	f.str(attrStatus, string(it.Status))
	f.str(attrPaymentID, string(it.PaymentID))
	f.str("reason", it.Reason)
	switch it.Status {
	case webhook.StatusReceived:
		f.due(queueOf(it.Status), key, it.DueAt)
	case webhook.StatusApplied, webhook.StatusIgnored:
		f.due(queueOf(it.Status), key, it.ReceivedAt)
		f[store.AttrExpiresAt] = it.ReceivedAt.Add(inboxForget).Unix()
	case webhook.StatusQuarantined: // kept until an operator has looked
		f.due(queueOf(it.Status), key, it.ReceivedAt)
	}
	return ignoreCondition(t.table.Write(ctx, store.Write{Kind: store.Update, Key: key, Set: store.Item(f), If: stillReceived}))
}

// Reopen makes a quarantined or ignored item received again, for an operator's
// replay, and writes the claim of the request in the same transaction. One that is
// still received is woken; an applied one stays as it is, and the claim is written
// all the same. It returns a *journal.Conflict when the item has moved on, or with
// the record that has the key already.
func (t *Table) Reopen(ctx context.Context, it webhook.Item, claim idempotency.Claim) error {
	key := inboxKey(it.PSP, it.EventID)
	unchanged := store.Equal(attrStatus, string(it.Status))
	inbox := store.Write{Kind: store.Check, Key: key, If: unchanged}
	if it.Status == webhook.StatusQuarantined || it.Status == webhook.StatusIgnored {
		f := fields{"attempts": int64(0)}
		f.str(attrStatus, string(webhook.StatusReceived))
		f.time("wait_until", it.WaitUntil)
		f.due(queueOf(webhook.StatusReceived), key, it.DueAt)
		inbox = store.Write{
			Kind: store.Update, Key: key, Set: store.Item(f), Remove: []string{"reason", store.AttrExpiresAt},
			Add: map[string]int64{attrWake: 1}, If: unchanged,
		}
	}
	if it.Status == webhook.StatusReceived { // it waits for its next try: that is now
		inbox = store.Write{Kind: store.Update, Key: key, Add: map[string]int64{attrWake: 1}, If: unchanged}
	}
	return t.commit(ctx, []part{{inbox, movedOn}, claimPart(claim)})
}

// position is a place in a list that is merged from the shards of an index.
type position struct {
	at  int64
	key string
}

func positionOf(e store.Entry) position {
	return position{reader(e.Item).num(store.AttrDueAt), e.Key.PK}
}

// after reports whether p comes later in a list, newest first, than from. Its zero
// value is before all.
func (p position) after(from position) bool {
	return from.at == 0 || p.at < from.at || (p.at == from.at && p.key < from.key)
}

func (p position) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d|%s", p.at, p.key))
}

func parsePosition(cursor string) (position, error) {
	if cursor == "" {
		return position{}, nil
	}
	var p position
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return p, store.ErrCursor
	}
	at, key, ok := strings.Cut(string(raw), "|")
	p.at, err = strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || p.at <= 0 {
		return position{}, store.ErrCursor
	}
	p.key = key
	return p, nil
}

// Webhooks lists inbox items by status, newest first; received ones by when they
// are tried next. The index is a hint: each item is read again, and one that has
// left the status is passed over.
func (t *Table) Webhooks(ctx context.Context, status webhook.Status, cursor string, limit int) ([]webhook.Item, string, error) {
	from, err := parsePosition(cursor)
	if err != nil {
		return nil, "", err
	}
	return t.inbox(ctx, status, from, span{}, min(limit, maxPage))
}

// Log lists the items of a PSP that have a status and were received in a period,
// newest first: the place of a finished item in the index is when it was received.
// Received ones are listed by when they are tried next, and all of them are read.
func (t *Table) Log(ctx context.Context, psp string, status webhook.Status, w audit.Window) ([]webhook.Item, string, error) {
	from, err := parsePosition(w.Cursor)
	if err != nil {
		return nil, "", err
	}
	within := span{prefix: inboxKey(psp, "").PK}
	if status != webhook.StatusReceived {
		within.floor = w.From.UnixMilli()
		if w.Cursor == "" {
			from = position{at: w.To.UnixMilli() + 1}
		}
	}
	items, next, err := t.inbox(ctx, status, from, within, min(w.Limit, maxPage))
	outside := func(it webhook.Item) bool { return it.ReceivedAt.Before(w.From) || it.ReceivedAt.After(w.To) }
	return slices.DeleteFunc(items, outside), next, err
}

// span is a part of a queue.
type span struct {
	prefix string // of keys
	floor  int64  // the earliest due date, in milliseconds
}

// inbox is one page of a queue of inbox items after a position.
func (t *Table) inbox(ctx context.Context, status webhook.Status, from position, within span, limit int) ([]webhook.Item, string, error) {
	entries, err := t.newest(ctx, queueOf(status), from, limit)
	if err != nil {
		return nil, "", err
	}
	next := ""
	if len(entries) > limit {
		entries = entries[:limit]
		if last := positionOf(entries[limit-1]); last.at >= within.floor {
			next = last.String()
		}
	}
	items := make([]webhook.Item, 0, len(entries))
	for _, e := range entries {
		if !strings.HasPrefix(e.Key.PK, within.prefix) || positionOf(e).at < within.floor {
			continue
		}
		item, err := t.table.Get(ctx, e.Key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, "", fmt.Errorf("list webhooks: %w", err)
		}
		it, err := decodeInbox(item)
		if err != nil {
			return nil, "", err
		}
		if it.Status == status {
			items = append(items, it)
		}
	}
	return items, next, nil
}

// newest merges the newest entries of all shards of a queue after a position: one
// more than limit when there are more.
func (t *Table) newest(ctx context.Context, queue string, from position, limit int) ([]store.Entry, error) {
	var all []store.Entry
	for n := range Shards {
		entries, err := t.newestOf(ctx, shard(queue, n), from, limit)
		if err != nil {
			return nil, fmt.Errorf("list webhooks: %w", err)
		}
		all = append(all, entries...)
	}
	slices.SortFunc(all, func(a, b store.Entry) int {
		return cmp.Or(cmp.Compare(positionOf(b).at, positionOf(a).at), strings.Compare(b.Key.PK, a.Key.PK))
	})
	return all[:min(len(all), limit+1)], nil
}

// newestOf reads the newest entries of one shard after a position: at least one
// more than limit when there are more. The index does not order entries of the
// same time, so that all of the last time are read.
func (t *Table) newestOf(ctx context.Context, shard string, from position, limit int) ([]store.Entry, error) {
	var taken []store.Entry
	query := store.Query{PK: shard, Index: store.IndexDue, AtMost: from.at, Descending: true, Limit: limit + 1}
	for {
		page, err := t.table.Query(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, e := range page.Entries {
			if len(taken) > limit && positionOf(e).at < positionOf(taken[len(taken)-1]).at {
				return taken, nil
			}
			if positionOf(e).after(from) {
				taken = append(taken, e)
			}
		}
		if query.Cursor = page.Cursor; query.Cursor == "" {
			return taken, nil
		}
	}
}

var (
	_ journal.Store = (*Table)(nil)
	_ webhook.Inbox = (*Table)(nil)
)

// InboxChange reads off a change of the table whether an inbox item asks for
// applying: it is new, or something has woken it since. A worker's own save of
// an item that stays received asks for nothing.
func InboxChange(c store.Change) (psp, eventID string, ok bool) {
	if c.Key.SK != skInbox || c.New == nil {
		return "", "", false
	}
	now, before := reader(c.New), reader(c.Old)
	asks := c.Old == nil || now.num(attrWake) != before.num(attrWake)
	if !asks || now.str(attrStatus) != string(webhook.StatusReceived) {
		return "", "", false
	}
	return now.str("psp"), now.str("event_id"), true
}
