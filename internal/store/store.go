// Package store is the port to a key-value table with conditional writes and
// transactions. It speaks of items and conditions only; what they mean belongs
// to the flows. Adapters (store/dynamo, store/memory) pass store/storetest.
package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Key names one item of a table: its partition and its place in the partition.
type Key struct{ PK, SK string }

func (k Key) String() string { return k.PK + "/" + k.SK }

// Item is the attributes of one item without its key. A value is one of string,
// int64, bool, []any or map[string]any of the same; nil is never stored.
type Item map[string]any

// Attributes with a meaning to the table itself.
const (
	AttrDueShard  = "due_shard"  // string, partition of the sparse index IndexDue
	AttrDueAt     = "due_at"     // int64, Unix milliseconds, order within IndexDue
	AttrExpiresAt = "expires_at" // int64, Unix seconds, when the table may delete the item, days late
	AttrWriter    = "writer"     // string, token of the last write, stamped by the adapter
)

// IndexDue is the sparse index over due_shard and due_at. It is eventually
// consistent: a hint, never the base of a decision.
const IndexDue = "due"

// Entry is an item with its key, as a query returns it.
type Entry struct {
	Key  Key
	Item Item
}

// Query selects items of one partition, ordered by sort key, or of one shard of
// IndexDue, ordered by due_at. On IndexDue an Entry holds only its key,
// due_shard and due_at.
type Query struct {
	PK         string // partition, or shard when Index is IndexDue
	Index      string // "" for the table, else IndexDue
	SKPrefix   string // table only
	AtMost     int64  // IndexDue only: due_at at most this; 0 for no bound
	Descending bool
	Limit      int    // 1..1000 entries a page
	Cursor     string // from the page before, "" for the first
}

// Page is one page of a query. Cursor is "" on the last one.
type Page struct {
	Entries []Entry
	Cursor  string
}

// Scan selects items of the whole table, in an order that means nothing. What it
// selects is picked after it was read and paid for: a page may hold few entries, or
// none, and not be the last.
type Scan struct {
	SKPrefix string
	Where    Condition // of the item, as in a Write
	Limit    int       // 1..1000 items read a page, whether they fit or not
	Cursor   string    // from the page before, "" for the first
}

// Kind is what a Write does.
type Kind int

// Kinds of a Write.
const (
	Put    Kind = iota // replace the whole item
	Update             // change the named attributes, create the item if absent
	Delete             // remove the item; removing an absent one succeeds
	Check              // change nothing, only hold the condition
)

// Write is one change of one item under a condition.
type Write struct {
	Kind   Kind
	Key    Key
	Item   Item             // Put
	Set    Item             // Update: attributes to set
	Remove []string         // Update: attributes to remove
	Add    map[string]int64 // Update: numbers to add; an absent attribute counts as 0
	If     Condition        // the zero Condition always holds
}

// Table is a table of items. All methods are safe for concurrent use.
//
// Write is all or nothing, at most MaxWrites items, each key once. One write is
// a plain conditional write; several are a transaction. Its error is nil, a
// *ConditionError when a condition did not hold (nothing was written),
// ErrTooLarge or ErrInvalid (nothing was written), or any other error: then the
// outcome is unknown and the caller must read before it decides. A repeat of a write that
// had succeeded unseen is recognised by its writer token and reported as success.
// Contention and throttling are retried inside, within the context's deadline.
type Table interface {
	// Get reads one item consistently. It returns ErrNotFound when it is absent.
	Get(ctx context.Context, key Key) (Item, error)
	// Query reads one page; consistent on the table, eventually so on IndexDue. It
	// returns ErrCursor when the cursor is not one of that kind of query.
	Query(ctx context.Context, q Query) (Page, error)
	// Scan reads one page of all items, eventually consistent, and expensive: it is
	// for repairs. From the first page to the last, each item that was there all the
	// while is read; one that was written or removed meanwhile may be or not. It
	// returns ErrCursor when the cursor is not a scan's.
	Scan(ctx context.Context, s Scan) (Page, error)
	Write(ctx context.Context, writes ...Write) error
}

// MaxWrites is the most items one transaction may touch (DynamoDB's limit).
const MaxWrites = 100

var (
	// ErrNotFound says that there is no item with that key.
	ErrNotFound = errors.New("store: no such item")
	// ErrTooLarge says that an item would exceed 400 KB, DynamoDB's limit.
	ErrTooLarge = errors.New("store: item is larger than 400 KB")
	// ErrUnavailable wraps throttling, contention and outages that outlasted the
	// retries. The outcome of a write is unknown.
	ErrUnavailable = errors.New("store: unavailable")
)

// ConditionError says which writes' conditions did not hold. Nothing was written.
type ConditionError struct {
	Failed []Failed
}

// Failed is one write whose condition did not hold.
type Failed struct {
	Index int  // in the order of the writes
	Old   Item // the item as it was, nil when it was absent
}

func (e *ConditionError) Error() string {
	at := make([]string, len(e.Failed))
	for i, f := range e.Failed {
		at[i] = fmt.Sprint(f.Index)
	}
	return "store: condition of write " + strings.Join(at, ", ") + " did not hold"
}

// At returns the item that refused write i; ok is false when that write's condition held.
func (e *ConditionError) At(i int) (old Item, ok bool) {
	for _, f := range e.Failed {
		if f.Index == i {
			return f.Old, true
		}
	}
	return nil, false
}
