package audit

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kessai/kessai/internal/money"
)

// Limits of a settlement file.
const (
	// MaxFile is the most of a file in bytes. It comes in a request's body, which is
	// bounded too, and is kept with its run in one item.
	MaxFile = 65_536
	// maxField is the most of one field in characters: ids of PSPs are up to 255.
	maxField = 255
	// maxColumns is more than any report has.
	maxColumns = 200
)

// Entry is one good row of a settlement file.
type Entry struct {
	Line      int
	Kind      EntryKind
	PaymentID string
	Reference string // the PSP's id of the charge, "" when the row has none
	Refund    string // the PSP's id of the refund, "" when the row has none
	Amount    money.Amount
}

// EntryKind is what a row says of a payment.
type EntryKind string

// Kinds of an Entry.
const (
	EntryCapture      EntryKind = "capture"
	EntryChargeFailed EntryKind = "charge_failed" // money that was told of did not come
	EntryRefund       EntryKind = "refund"
	EntryRefundFailed EntryKind = "refund_failed" // money that went back is here again
	EntryRelease      EntryKind = "release"       // takes a part of a capture back; it is never an Entry of its own
)

// Settlement is what a file says.
type Settlement struct {
	Entries    []Entry  // the good rows, in the file's order
	Bad        []BadRow // rows that cannot be used, by line
	PassedOver int      // rows that are about no payment, or that nothing here is compared with
}

// BadRow is a row that cannot be used.
type BadRow struct {
	Line   int
	Reason string // our words, without the row's content
}

// ErrUnknownFormat says that there is no column mapping for a PSP.
var ErrUnknownFormat = errors.New("audit: no settlement format of this psp")

// HeaderError says what of a file's first row cannot be used. Nothing of the file was.
type HeaderError struct {
	Reason string
}

func (e *HeaderError) Error() string { return "audit: settlement file: " + e.Reason }

// ParseSettlement reads a PSP's settlement file by its mapping. The error is
// ErrUnknownFormat or a *HeaderError.
func ParseSettlement(psp, text string) (Settlement, error) {
	m, known := mappings[psp]
	if !known {
		return Settlement{}, ErrUnknownFormat
	}
	if len(text) > MaxFile {
		return Settlement{}, &HeaderError{Reason: "is too long"}
	}
	text = strings.TrimPrefix(text, "\ufeff") // a byte-order mark
	comma, header, err := m.header(text)
	if err != nil {
		return Settlement{}, err
	}
	f := file{m: m, columns: header, seen: map[string]int{}}
	r := reader(text, comma)
	_, _ = r.Read() // the header, read before
	r.FieldsPerRecord = len(header)
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return f.settlement(), nil
		}
		f.take(r, row, err)
	}
}

func reader(text string, comma rune) *csv.Reader {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.FieldsPerRecord = comma, -1
	return r
}

// header finds the separator with which the first row has every column that the
// mapping needs. It is the file's own word, so nothing else is tried.
func (m Mapping) header(text string) (comma rune, names []string, err error) {
	lacking := m.needed()
	for _, comma := range []rune{',', ';'} {
		names, err := reader(text, comma).Read()
		if err != nil || len(names) > maxColumns {
			continue
		}
		for i := range names {
			names[i] = strings.TrimSpace(names[i])
		}
		missing := slices.DeleteFunc(m.needed(), func(column string) bool { return slices.Contains(names, column) })
		if len(missing) == 0 {
			return comma, names, m.unambiguous(names)
		}
		if len(missing) < len(lacking) {
			lacking = missing
		}
	}
	return 0, nil, &HeaderError{Reason: "the first row lacks " + strings.Join(lacking, ", ")}
}

// unambiguous refuses a column that is needed and there twice.
func (m Mapping) unambiguous(names []string) error {
	for _, column := range m.needed() {
		first := slices.Index(names, column)
		if slices.Contains(names[first+1:], column) {
			return &HeaderError{Reason: "the first row has " + column + " twice"}
		}
	}
	return nil
}

// file is a settlement file while it is read.
type file struct {
	m       Mapping
	columns []string
	seen    map[string]int // line of each row that was used, by what it is about
	good    []Entry
	bad     []BadRow
	passed  int
}

func (f *file) take(r *csv.Reader, row []string, err error) {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		f.bad = append(f.bad, BadRow{parse.StartLine, parseReason(parse.Err)})
		return
	}
	line, _ := r.FieldPos(0)
	cells := map[string]string{}
	for i, name := range f.columns {
		if utf8.RuneCountInString(row[i]) > maxField {
			f.bad = append(f.bad, BadRow{line, "a field is too long"})
			return
		}
		if !utf8.ValidString(row[i]) {
			f.bad = append(f.bad, BadRow{line, "is not UTF-8"})
			return
		}
		cells[name] = strings.TrimSpace(row[i])
	}
	entry, used, reason := f.m.entry(cells)
	switch {
	case reason != "":
		f.bad = append(f.bad, BadRow{line, reason})
		return
	case !used:
		f.passed++
		return
	}
	entry.Line = line
	about := string(entry.Kind) + "\x00" + entry.of()
	if first, twice := f.seen[about]; twice {
		f.bad = append(f.bad, BadRow{line, fmt.Sprintf("says again what line %d says", first)})
		return
	}
	f.seen[about] = line
	f.good = append(f.good, entry)
}

// settlement is the file as a whole. Rows that take back what another one says are
// put together with it: what remains is what the PSP says in the end.
func (f *file) settlement() Settlement {
	whole := Settlement{Bad: f.bad, PassedOver: f.passed}
	undone := map[string]bool{}
	released := map[string]int64{}
	charged := map[string]bool{}
	for _, e := range f.good {
		switch e.Kind {
		case EntryCapture:
			charged[e.money()] = true
		case EntryRelease:
			released[e.money()] += e.Amount.Minor
		case EntryChargeFailed, EntryRefundFailed:
			undone[e.of()] = true
		case EntryRefund:
		}
	}
	for _, e := range f.good {
		switch e.Kind {
		case EntryCapture:
			e.Amount.Minor -= released[e.money()]
			if e.Amount.Minor < 1 && !undone[e.of()] {
				whole.Bad = append(whole.Bad, BadRow{e.Line, "nothing of the amount is left"})
			} else if !undone[e.of()] {
				whole.Entries = append(whole.Entries, e)
			}
		case EntryRefund:
			if !undone[e.of()] {
				whole.Entries = append(whole.Entries, e)
			}
		case EntryChargeFailed, EntryRefundFailed:
			whole.Entries = append(whole.Entries, e)
		case EntryRelease:
			if !charged[e.money()] {
				whole.Bad = append(whole.Bad, BadRow{e.Line, "takes back a part of a charge that the file does not have"})
			}
		}
	}
	slices.SortFunc(whole.Bad, func(a, b BadRow) int { return a.Line - b.Line })
	return whole
}

// of is the charge or the refund that a row is about.
func (e Entry) of() string {
	return strings.Join([]string{e.PaymentID, e.Reference, e.Refund}, "\x00")
}

// money is what a row can take back of: the same charge in the same currency.
func (e Entry) money() string { return e.of() + "\x00" + string(e.Amount.Currency) }

func parseReason(err error) string {
	switch {
	case errors.Is(err, csv.ErrFieldCount):
		return "has another number of columns than the first row"
	case errors.Is(err, csv.ErrQuote):
		return "a quote is not closed, or something follows it"
	case errors.Is(err, csv.ErrBareQuote):
		return "a quote stands in a field that does not begin with one"
	}
	return "is no row of a CSV file"
}

// entry is what a row says; used is false for one that the mapping passes over, and
// reason is not "" for one that cannot be used.
func (m Mapping) entry(cells map[string]string) (e Entry, used bool, reason string) {
	kind := cells[m.Kind]
	if slices.Contains(m.PassedOver, kind) {
		return Entry{}, false, ""
	}
	rule, known := m.Kinds[kind]
	if !known {
		return Entry{}, false, "is of an unknown kind"
	}
	e = Entry{Kind: rule.Kind, PaymentID: cells[m.PaymentID], Reference: cells[m.Reference]}
	if rule.Kind == EntryRefund || rule.Kind == EntryRefundFailed {
		e.Refund = cells[m.Refund]
		if e.Refund == "" {
			return Entry{}, false, "a refund has no id"
		}
	}
	if e.PaymentID == "" && e.Reference == "" {
		return Entry{}, false, "says of no payment"
	}
	currency := money.Currency(cells[m.Currency])
	if m.LowerCurrency {
		currency = money.Currency(strings.ToUpper(string(currency)))
	}
	exponent, known := currency.Exponent()
	if !known {
		return Entry{}, false, "is in an unknown currency"
	}
	minor, ok := parseAmount(cells[rule.Amount], rule.Minus, m.Units, exponent)
	if !ok || rule.Empty != "" && !nothing(cells[rule.Empty]) {
		return Entry{}, false, "the amount is none"
	}
	e.Amount = money.Amount{Minor: minor, Currency: currency}
	return e, true, ""
}

// nothing reports an amount that is not there.
func nothing(text string) bool { return strings.Trim(text, "0.") == "" }

// centDecimals is how many decimals some reports write for every currency.
const centDecimals = 2

// parseAmount reads a number exactly: digits and one point, no separators of
// thousands, no spaces, a minus only where the mapping allows one. More decimals than
// the currency has are refused, since they may be a separator of thousands; but not
// one or two that are zero, since no such separator stands before two digits.
func parseAmount(text string, minus bool, units Units, exponent int) (minor int64, ok bool) {
	if minus {
		text = strings.TrimPrefix(text, "-")
	}
	whole, decimals, point := strings.Cut(text, ".")
	if whole == "" || point && (decimals == "" || units == MinorUnits) {
		return 0, false
	}
	if units == MinorUnits {
		exponent = 0
	}
	if len(decimals) > exponent {
		if len(decimals) > centDecimals || strings.Trim(decimals[exponent:], "0") != "" {
			return 0, false
		}
		decimals = decimals[:exponent]
	}
	digits := whole + decimals + strings.Repeat("0", exponent-len(decimals))
	if strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	minor, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || minor < 1 || minor > money.Max {
		return 0, false
	}
	return minor, true
}
