package api

import (
	"fmt"
	"net/url"

	"github.com/kessai/kessai/internal/problem"
)

const (
	// maxLimit is the most rows of one page; the store reads no more at once.
	maxLimit = 100
	// readLimit is the default of lists whose rows are read again one by one.
	readLimit = 20
	// scanLimit is the default of lists that one read brings.
	scanLimit = 100
	// maxCursor is far above any cursor given out, in bytes.
	maxCursor = 1024
	// maxQueryDigits keeps a number of a query within an int.
	maxQueryDigits = 9
)

func queryMessage(least, most int) string {
	return fmt.Sprintf("must be an integer from %d to %d", least, most)
}

// paging is where a page starts and how long it is.
type paging struct {
	cursor string
	limit  int
}

func readPaging(q url.Values, limit int) (paging, error) {
	n, err := queryInteger(q, "limit", 1, maxLimit, limit)
	if err != nil {
		return paging{}, err
	}
	cursors, there := q["cursor"]
	if !there {
		return paging{limit: n}, nil
	}
	if len(cursors) != 1 || cursors[0] == "" || len(cursors[0]) > maxCursor {
		return paging{}, problem.Invalid("cursor", "is none that this list gave out")
	}
	return paging{cursors[0], n}, nil
}
