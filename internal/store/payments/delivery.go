package payments

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/delivery"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
)

const (
	pkEndpoint = "ENDPOINT#"
	skEndpoint = "ENDPOINT"
	pkFeed     = "FEED#"
	pkDelivery = "DELIVERY#"
	skDelivery = "DELIVERY"
)

func endpointKey(merchantID string) store.Key {
	return store.Key{PK: pkEndpoint + merchantID, SK: skEndpoint}
}

func deliveryKey(merchantID, eventID string) store.Key {
	return store.Key{PK: pkDelivery + merchantID + "#" + eventID, SK: skDelivery}
}

// feedKey is the place of an event in its merchant's feed: a partition for each
// month, ordered by time and id.
func feedKey(merchantID string, at time.Time, eventID string) store.Key {
	return store.Key{PK: feedPK(merchantID, at), SK: fmt.Sprintf("%013d#%s", at.UnixMilli(), eventID)}
}

func feedPK(merchantID string, at time.Time) string {
	return pkFeed + merchantID + "#" + at.UTC().Format("2006-01")
}

// feedForget is how long the feed goes back, and deliveries are remembered.
const feedForget = 90 * 24 * time.Hour

// Endpoint reads a merchant's endpoint consistently, or returns delivery.ErrNoEndpoint.
func (t *Table) Endpoint(ctx context.Context, merchantID string) (delivery.Endpoint, error) {
	item, err := t.table.Get(ctx, endpointKey(merchantID))
	if errors.Is(err, store.ErrNotFound) {
		return delivery.Endpoint{}, delivery.ErrNoEndpoint
	}
	if err != nil {
		return delivery.Endpoint{}, err
	}
	r := reader(item)
	return delivery.Endpoint{
		MerchantID: merchantID, URL: r.str("url"), Events: strings.Split(r.str("events"), ","),
		Secret: payment.Secret(r.str("secret")), Previous: payment.Secret(r.str("previous_secret")), PreviousUntil: r.time("previous_until"),
		Disabled: r.flag("disabled"), Version: r.num(attrVersion), CreatedAt: r.time("created_at"), UpdatedAt: r.time("updated_at"),
	}, nil
}

// SaveEndpoint writes an endpoint whose version is still Version-1.
func (t *Table) SaveEndpoint(ctx context.Context, e delivery.Endpoint, claim *idempotency.Claim) error {
	f := fields{"disabled": e.Disabled}
	f.str("url", e.URL)
	f.str("events", strings.Join(e.Events, ","))
	f.str("secret", e.Secret.Reveal())
	f.str("previous_secret", e.Previous.Reveal())
	f.time("previous_until", e.PreviousUntil)
	f.num(attrVersion, e.Version)
	f.time("created_at", e.CreatedAt)
	f.time("updated_at", e.UpdatedAt)
	seen := store.Equal(attrVersion, e.Version-1)
	if e.Version == 1 {
		seen = store.Absent()
	}
	write := store.Write{Kind: store.Update, Key: endpointKey(e.MerchantID), Set: store.Item(f), If: seen}
	return t.commit(ctx, withClaim(part{write, movedOn}, claim))
}

func withClaim(p part, claim *idempotency.Claim) []part {
	if claim == nil {
		return []part{p}
	}
	return []part{p, claimPart(*claim)}
}

// Remember writes the claim of a request whose work is done.
func (t *Table) Remember(ctx context.Context, claim idempotency.Claim) error {
	return t.commit(ctx, []part{claimPart(claim)})
}

// AddToFeed puts a pointer to an event into its merchant's feed: the journal row
// is read again when the feed is. Safe to repeat.
func (t *Table) AddToFeed(ctx context.Context, e outbox.Event) error {
	f := fields{store.AttrExpiresAt: e.At.Add(feedForget).Unix()}
	f.str("event_id", e.ID)
	f.str("type", e.Type)
	return t.table.Write(ctx, store.Write{Kind: store.Put, Key: feedKey(e.MerchantID, e.At, e.ID), Item: store.Item(f)})
}

// Event reads the event of a journal row by its id, or returns delivery.ErrNotFound.
func (t *Table) Event(ctx context.Context, eventID string) (outbox.Event, error) {
	subject, version, ok := outbox.ParseEventID(eventID)
	if !ok {
		return outbox.Event{}, delivery.ErrNotFound
	}
	pk := pkPayment + subject
	if strings.HasPrefix(subject, "chk_") {
		pk = pkCheckout + subject
	}
	key := eventKey(pk, version)
	item, err := t.table.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return outbox.Event{}, delivery.ErrNotFound
	}
	if err != nil {
		return outbox.Event{}, err
	}
	e, ok := RowChange(store.Change{Key: key, New: item})
	if !ok {
		return outbox.Event{}, delivery.ErrNotFound
	}
	return e, nil
}

// feedPosition is where a page of the feed ended: its month, and the cursor in it.
func feedPosition(month time.Time, inner string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(month.Format("2006-01") + "|" + inner))
}

func parseFeedPosition(cursor string) (month time.Time, inner string, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return time.Time{}, "", store.ErrCursor
	}
	text, inner, ok := strings.Cut(string(raw), "|")
	month, err = time.Parse("2006-01", text)
	if !ok || err != nil {
		return time.Time{}, "", store.ErrCursor
	}
	return month, inner, nil
}

// FeedAfter is the cursor of the page that begins after an event of the feed.
func FeedAfter(merchantID string, e outbox.Event) string {
	key := feedKey(merchantID, e.At, e.ID)
	return feedPosition(month(e.At), store.Query{PK: key.PK}.CursorAfter(store.Position{Key: key}))
}

func month(at time.Time) time.Time {
	return time.Date(at.UTC().Year(), at.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
}

// Feed reads a merchant's events from a time on, oldest first, a page at a time.
func (t *Table) Feed(ctx context.Context, q delivery.FeedQuery) ([]outbox.Event, string, error) {
	at, inner := month(q.From), ""
	if q.Cursor != "" {
		var err error
		if at, inner, err = parseFeedPosition(q.Cursor); err != nil {
			return nil, "", err
		}
	}
	query := store.Query{PK: feedPK(q.MerchantID, at), Limit: min(q.Limit, maxPage), Cursor: inner}
	if q.Cursor == "" { // the first page begins right before From
		before := store.Key{PK: query.PK, SK: fmt.Sprintf("%013d", q.From.UnixMilli())}
		query.Cursor = query.CursorAfter(store.Position{Key: before})
	}
	var events []outbox.Event
	for {
		page, err := t.table.Query(ctx, query)
		if err != nil {
			return nil, "", fmt.Errorf("read feed: %w", err)
		}
		for _, entry := range page.Entries {
			if stamp, _, _ := strings.Cut(entry.Key.SK, "#"); beyond(stamp, q.To) {
				return events, "", nil
			}
			e, err := t.Event(ctx, reader(entry.Item).str("event_id"))
			if err != nil {
				return nil, "", fmt.Errorf("read event of feed: %w", err)
			}
			events = append(events, e)
		}
		next := month(at.AddDate(0, 1, 0))
		switch {
		case page.Cursor != "":
			return events, feedPosition(at, page.Cursor), nil
		case next.After(q.To):
			return events, "", nil
		case len(events) >= query.Limit:
			return events, feedPosition(next, ""), nil
		}
		at = next
		query = store.Query{PK: feedPK(q.MerchantID, at), Limit: min(q.Limit, maxPage) - len(events)}
	}
}

func beyond(stamp string, to time.Time) bool {
	ms, err := strconv.ParseInt(stamp, 10, 64)
	return err == nil && ms > to.UnixMilli()
}

// AddDelivery puts a delivery if there is none for its event.
func (t *Table) AddDelivery(ctx context.Context, d delivery.Delivery) error {
	return ignoreCondition(t.table.Write(ctx, store.Write{
		Kind: store.Put, Key: deliveryKey(d.Event.MerchantID, d.Event.ID), Item: encodeDelivery(d), If: store.Absent(),
	}))
}

func encodeDelivery(d delivery.Delivery) store.Item {
	f := fields{store.AttrExpiresAt: d.CreatedAt.Add(feedForget).Unix()}
	f.str("merchant_id", d.Event.MerchantID)
	f.str("event_id", d.Event.ID)
	f.str(attrStatus, string(d.Status))
	f.num("attempts", int64(d.Attempts))
	log := make([]any, 0, len(d.Log))
	for _, a := range d.Log {
		sub := fields{}
		sub.time("at", a.At)
		sub.num("status", int64(a.Status))
		sub.str("reason", a.Reason)
		log = append(log, map[string]any(sub))
	}
	f["log"] = log
	f.time("created_at", d.CreatedAt)
	f.num(attrWake, d.Wake)
	f.due(queueDue, deliveryKey(d.Event.MerchantID, d.Event.ID), d.DueAt)
	return store.Item(f)
}

// Delivery reads a delivery with its event consistently, or returns delivery.ErrNotFound.
func (t *Table) Delivery(ctx context.Context, merchantID, eventID string) (delivery.Delivery, error) {
	item, err := t.table.Get(ctx, deliveryKey(merchantID, eventID))
	if errors.Is(err, store.ErrNotFound) {
		return delivery.Delivery{}, delivery.ErrNotFound
	}
	if err != nil {
		return delivery.Delivery{}, err
	}
	r := reader(item)
	d := delivery.Delivery{
		Status: delivery.Status(r.str(attrStatus)), Attempts: int(r.num("attempts")), CreatedAt: r.time("created_at"),
		DueAt: r.time(store.AttrDueAt), Wake: r.num(attrWake),
	}
	log, _ := r["log"].([]any)
	for _, entry := range log {
		m, _ := entry.(map[string]any)
		sub := reader(m)
		d.Log = append(d.Log, delivery.Attempt{At: sub.time("at"), Status: int(sub.num("status")), Reason: sub.str("reason")})
	}
	if d.Event, err = t.Event(ctx, eventID); err != nil {
		return delivery.Delivery{}, err
	}
	return d, nil
}

// SaveDelivery writes a delivery whose round and attempts are still what was read.
func (t *Table) SaveDelivery(ctx context.Context, seen *delivery.Delivery, next delivery.Delivery, claim *idempotency.Claim) error {
	key := deliveryKey(next.Event.MerchantID, next.Event.ID)
	if seen == nil {
		return t.commit(ctx, withClaim(part{store.Write{Kind: store.Update, Key: key, Set: encodeDelivery(next), If: store.Absent()}, movedOn}, claim))
	}
	set, remove := diff(encodeDelivery(*seen), encodeDelivery(next))
	unchanged := store.All(store.Exists(), sameNumber("attempts", int64(seen.Attempts)), sameNumber(attrWake, seen.Wake))
	return t.commit(ctx, withClaim(part{store.Write{Kind: store.Update, Key: key, Set: set, Remove: remove, If: unchanged}, movedOn}, claim))
}

// sameNumber holds while a number is n; zero is not stored.
func sameNumber(name string, n int64) store.Condition {
	if n == 0 {
		return store.HasNo(name)
	}
	return store.Equal(name, n)
}

var _ delivery.Store = (*Table)(nil)
