package payments

import (
	"context"
	"errors"
	"strconv"

	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/store"
)

const attrSeen = "seen"

func encodeHeartbeat(h outbox.Heartbeat) store.Item {
	f := fields{"beat": h.Beat, attrSeen: h.Seen}
	f.time("beat_at", h.BeatAt)
	f.time("seen_at", h.SeenAt)
	f.due(queueDue, heartbeatKey(h.N), h.DueAt)
	return store.Item(f)
}

func decodeHeartbeat(n int, item store.Item) outbox.Heartbeat {
	r := reader(item)
	return outbox.Heartbeat{
		N: n, Beat: r.num("beat"), BeatAt: r.time("beat_at"), Seen: r.num(attrSeen), SeenAt: r.time("seen_at"), DueAt: r.time(store.AttrDueAt),
	}
}

// Heartbeat reads consistently, or returns outbox.ErrNoHeartbeat.
func (t *Table) Heartbeat(ctx context.Context, n int) (outbox.Heartbeat, error) {
	item, err := t.table.Get(ctx, heartbeatKey(n))
	if errors.Is(err, store.ErrNotFound) {
		return outbox.Heartbeat{}, outbox.ErrNoHeartbeat
	}
	if err != nil {
		return outbox.Heartbeat{}, err
	}
	return decodeHeartbeat(n, item), nil
}

// AddHeartbeat writes a heartbeat that is not there yet.
func (t *Table) AddHeartbeat(ctx context.Context, h outbox.Heartbeat) error {
	return ignoreCondition(t.table.Write(ctx, store.Write{Kind: store.Put, Key: heartbeatKey(h.N), Item: encodeHeartbeat(h), If: store.Absent()}))
}

// SaveBeat writes the beat of h if the one before it is still the last.
func (t *Table) SaveBeat(ctx context.Context, h outbox.Heartbeat) error {
	set := fields{"beat": h.Beat}
	set.time("beat_at", h.BeatAt)
	set.due(queueDue, heartbeatKey(h.N), h.DueAt)
	return ignoreCondition(t.table.Write(ctx, store.Write{
		Kind: store.Update, Key: heartbeatKey(h.N), Set: store.Item(set), If: store.Equal("beat", h.Beat-1),
	}))
}

// SaveSeen notes the beat of h as seen while the last one seen is before. If it is
// not, it returns the heartbeat as it is, zero when there is none.
func (t *Table) SaveSeen(ctx context.Context, h outbox.Heartbeat, before int64) (outbox.Heartbeat, bool, error) {
	set := fields{attrSeen: h.Beat}
	set.time("seen_at", h.BeatAt)
	err := t.table.Write(ctx, store.Write{Kind: store.Update, Key: heartbeatKey(h.N), Set: store.Item(set), If: store.Equal(attrSeen, before)})
	if refusal, lost := errors.AsType[*store.ConditionError](err); lost {
		old, _ := refusal.At(0)
		return decodeHeartbeat(h.N, old), false, nil
	}
	return outbox.Heartbeat{}, err == nil, err
}

// BeatChange reads off a change of the table whether a heartbeat has beaten. That
// its beat was seen is no beat.
func BeatChange(c store.Change) (outbox.Heartbeat, bool) {
	id, ok := idOf(c.Key, pkHeartbeat)
	n, err := strconv.Atoi(id)
	if !ok || err != nil || reader(c.New).num("beat") <= reader(c.Old).num("beat") {
		return outbox.Heartbeat{}, false
	}
	return decodeHeartbeat(n, c.New), true
}

var (
	_ outbox.Hearts = (*Table)(nil)
	_ outbox.Marks  = (*Table)(nil)
)
