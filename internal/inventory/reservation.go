package inventory

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kessai/kessai/internal/command"
	"github.com/kessai/kessai/internal/store"
)

// Limits of a reservation.
const (
	maxLines = 50 // items of a checkout; with the record far below a transaction's 100 writes

	// maxQuantity of a line: all fifty items of a checkout, each of up to 9,999
	// pieces, may have named one SKU.
	maxQuantity = 50 * 9_999

	maxSKULength = 64 // characters

	// maxAvailable keeps every sum of available, reserved and sold far from the
	// end of an int64, and is more than any shop has.
	maxAvailable = 1_000_000_000
)

// Line is a number of pieces of one SKU.
type Line struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// Reservation is what a checkout wants held.
type Reservation struct {
	MerchantID string
	CheckoutID string
	Lines      []Line // 1 to 50
}

// ValidSKU reports whether s can name a SKU: 1 to 64 characters of UTF-8 without
// control characters.
func ValidSKU(s string) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxSKULength &&
		!strings.ContainsFunc(s, unicode.IsControl)
}

// merged returns the lines with equal SKUs added up, ordered by SKU: the one form
// in which two requests for the same pieces are equal.
func merged(lines []Line) ([]Line, error) {
	if len(lines) == 0 || len(lines) > maxLines {
		return nil, fmt.Errorf("%w: %d lines, must be 1 to %d", ErrInvalid, len(lines), maxLines)
	}
	total := make(map[string]int64, len(lines))
	for i, l := range lines {
		if !ValidSKU(l.SKU) {
			return nil, fmt.Errorf("%w: line %d: malformed sku", ErrInvalid, i)
		}
		if l.Quantity < 1 || l.Quantity > maxQuantity {
			return nil, fmt.Errorf("%w: line %d: quantity %d, must be 1 to %d", ErrInvalid, i, l.Quantity, maxQuantity)
		}
		total[l.SKU] += l.Quantity // fifty times maxQuantity at most
	}
	out := make([]Line, 0, len(total))
	for sku, quantity := range total {
		out = append(out, Line{SKU: sku, Quantity: quantity})
	}
	slices.SortFunc(out, func(a, b Line) int { return strings.Compare(a.SKU, b.SKU) })
	return out, nil
}

func validateIDs(merchant, checkout string) error {
	if !command.ValidID(merchant) || !command.ValidID(checkout) {
		return fmt.Errorf("%w: malformed merchant or checkout id", ErrInvalid)
	}
	return nil
}

// record is a checkout's reservation as the table holds it. A tombstone has no lines.
type record struct {
	status  Status
	lines   []Line
	lacking []string // SKUs that refused it
}

func (r record) item(now int64) store.Item {
	item := store.Item{attrStatus: string(r.status), attrCreatedAt: now, attrUpdatedAt: now}
	if len(r.lines) > 0 {
		lines := make([]any, len(r.lines))
		for i, l := range r.lines {
			lines[i] = map[string]any{attrSKU: l.SKU, attrQuantity: l.Quantity}
		}
		item[attrLines] = lines
	}
	if len(r.lacking) > 0 {
		lacking := make([]any, len(r.lacking))
		for i, sku := range r.lacking {
			lacking[i] = sku
		}
		item[attrLacking] = lacking
	}
	return item
}

func decodeRecord(item store.Item) record {
	var r record
	status, _ := item[attrStatus].(string)
	r.status = Status(status)
	lines, _ := item[attrLines].([]any)
	for _, l := range lines {
		m, _ := l.(map[string]any)
		sku, _ := m[attrSKU].(string)
		quantity, _ := m[attrQuantity].(int64)
		r.lines = append(r.lines, Line{SKU: sku, Quantity: quantity})
	}
	lacking, _ := item[attrLacking].([]any)
	for _, l := range lacking {
		sku, _ := l.(string)
		r.lacking = append(r.lacking, sku)
	}
	return r
}
