package store

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// ErrCursor says that a query's cursor is not one that the same kind of query
// gave out. A caller whose cursors come from outside answers it as bad input.
var ErrCursor = errors.New("store: malformed cursor")

// Position is the place of an entry in the order of a query.
type Position struct {
	Key   Key
	DueAt int64 // IndexDue only
}

// cursor is what a cursor holds. The partition or shard is never part of it but
// taken from the query, so a forged cursor can move within one's own partition
// and nowhere else.
type cursor struct {
	PK    string `json:"p,omitempty"` // IndexDue and scans only
	SK    string `json:"s"`
	DueAt *int64 `json:"d,omitempty"` // IndexDue only
}

// CursorAfter returns the cursor of the page that begins after the position.
func (q Query) CursorAfter(p Position) string {
	c := cursor{SK: p.Key.SK}
	if q.Index == IndexDue {
		c.PK, c.DueAt = p.Key.PK, &p.DueAt
	}
	return c.String()
}

func (c cursor) String() string {
	raw, err := json.Marshal(c)
	if err != nil {
		panic("store: cursor of strings and a number: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parseCursor(text string) (c cursor, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return cursor{}, ErrCursor
	}
	return c, nil
}

// Position returns where the page before ended; ok is false when the query has
// no cursor. It returns ErrCursor when the cursor can't belong to the query.
func (q Query) Position() (p Position, ok bool, err error) {
	if q.Cursor == "" {
		return Position{}, false, nil
	}
	c, err := parseCursor(q.Cursor)
	if err != nil {
		return Position{}, false, err
	}
	onIndex := q.Index == IndexDue
	if (c.DueAt != nil) != onIndex || (c.PK != "") != onIndex {
		return Position{}, false, ErrCursor
	}
	p.Key = Key{PK: q.PK, SK: c.SK}
	if onIndex {
		p.Key.PK, p.DueAt = c.PK, *c.DueAt
	}
	outside := !strings.HasPrefix(c.SK, q.SKPrefix) || (q.AtMost != 0 && p.DueAt > q.AtMost)
	if outside || p.Key.validate() != nil {
		return Position{}, false, ErrCursor
	}
	return p, true, nil
}

// CursorAfter returns the cursor of the page that begins after the item with the key.
func (s Scan) CursorAfter(key Key) string { return cursor{PK: key.PK, SK: key.SK}.String() }

// Position returns the key after which the page begins; ok is false when the scan
// has no cursor. It returns ErrCursor when the cursor can't be a scan's.
func (s Scan) Position() (after Key, ok bool, err error) {
	if s.Cursor == "" {
		return Key{}, false, nil
	}
	c, err := parseCursor(s.Cursor)
	if err != nil {
		return Key{}, false, err
	}
	after = Key{PK: c.PK, SK: c.SK}
	if c.DueAt != nil || after.validate() != nil {
		return Key{}, false, ErrCursor
	}
	return after, true, nil
}

// Fits reports whether an item is one that the scan selects.
func (s Scan) Fits(key Key, item Item) bool {
	return strings.HasPrefix(key.SK, s.SKPrefix) && s.Where.Holds(item)
}
