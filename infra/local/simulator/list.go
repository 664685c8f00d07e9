package simulator

import (
	"math"
	"net/url"
	"strconv"
)

// unlimited is the page size of lists that come whole.
const unlimited = math.MaxInt

// page is a part of a list: where it starts, and its size. Rows are only ever
// added, so a position stays good.
type page struct {
	start int // position of the first row, -1 for the beginning
	size  int
}

// list is one page on the wire.
type list[T any] struct {
	Object     string  `json:"object"`
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// readPage reads cursor and limit; size is the limit when none is given.
func readPage(query url.Values, size, most int) (page, *refusal) {
	p := page{start: -1, size: size}
	if text := query.Get("cursor"); text != "" {
		start, err := strconv.Atoi(text)
		if err != nil || start < 0 {
			return p, invalid("cursor", "must be the next_cursor of a page")
		}
		p.start = start
	}
	if text := query.Get("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil || limit < 1 || limit > most {
			return p, invalid("limit", "must be an integer from 1 to "+strconv.Itoa(most))
		}
		p.size = limit
	}
	return p, nil
}

// newestFirst is a page of the rows that match, the last row first.
func newestFirst[R, T any](rows []R, p page, matches func(R) bool, show func(R) T) list[T] {
	start := len(rows) - 1
	if p.start >= 0 {
		start = min(p.start, start)
	}
	return collect(rows, p, collection[R, T]{start, -1, matches, show})
}

// oldestFirst is a page of the rows, the first row first.
func oldestFirst[R, T any](rows []R, p page, show func(R) T) list[T] {
	return collect(rows, p, collection[R, T]{max(p.start, 0), 1, func(R) bool { return true }, show})
}

// collection is a walk over rows: from where, in which direction, which and how.
type collection[R, T any] struct {
	start   int
	step    int
	matches func(R) bool
	show    func(R) T
}

func collect[R, T any](rows []R, p page, walk collection[R, T]) list[T] {
	found := list[T]{Object: "list", Data: []T{}}
	for i := walk.start; i >= 0 && i < len(rows); i += walk.step {
		if !walk.matches(rows[i]) {
			continue
		}
		if len(found.Data) == p.size {
			next := strconv.Itoa(i)
			found.NextCursor = &next
			break
		}
		found.Data = append(found.Data, walk.show(rows[i]))
	}
	return found
}
