package simulator

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/kessai/kessai/internal/psp"
)

const (
	operationList = "list"
	// listPage is how many charges one page of a list is asked for: few enough to be
	// compared within a few seconds.
	listPage = 50
	// maxCursor is far above any cursor that the simulator gives out, in bytes; it
	// is stored between two pages.
	maxCursor = 1024
)

// List is one page of the charges made since a time, to the second, newest first:
// "" is the cursor of the first page, and next that of the one that follows, "" on
// the last. One charge that cannot be read makes the page unknown.
func (a *Adapter) List(ctx context.Context, since time.Time, cursor string) (charges []psp.Charge, next string, err error) {
	query := url.Values{"since": {strconv.FormatInt(since.Unix(), 10)}, "limit": {strconv.Itoa(listPage)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	answer, err := a.send(ctx, operationList, request{method: http.MethodGet, path: "/charges?" + query.Encode()})
	if err != nil {
		return nil, "", err
	}
	charges, next, err = decodePage(answer.body)
	if err == nil && (len(next) > maxCursor || next != "" && next == cursor) {
		err = errEndless
	}
	if err != nil {
		return nil, "", unknown(operationList, answer.status, err)
	}
	return charges, next, nil
}
