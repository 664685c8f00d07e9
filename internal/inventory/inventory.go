package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kessai/kessai/internal/store"
)

var (
	// ErrInvalid says that a command or a stock level is malformed, or repeats a
	// reservation with other lines. Nothing was done.
	ErrInvalid = errors.New("inventory: invalid")
	// ErrIllegal is matched by every *IllegalError. Nothing was done.
	ErrIllegal = errors.New("inventory: illegal")
	// ErrDamaged says that a stock row holds less than its reservations say. A
	// person has to look. Nothing was done.
	ErrDamaged = errors.New("inventory: stock row holds less than its reservations")
	// ErrNotFound says that the merchant has no such SKU.
	ErrNotFound = errors.New("inventory: no such sku")
)

// errContended says that a command lost every race it may lose; a repeat finds out.
var errContended = errors.New("inventory: lost too many races")

// maxAttempts of one command. A record changes at most twice, so a command that
// re-reads it loses at most two races.
const maxAttempts = 3

// Participant keeps stock. All methods are safe for concurrent use.
type Participant struct {
	table store.Table
	now   func() time.Time
}

// New returns the participant over its own table.
func New(table store.Table, now func() time.Time) *Participant {
	return &Participant{table: table, now: now}
}

// Answer is the outcome of a Reserve.
type Answer struct {
	Status  Status   // Reserved, OutOfStock, or Released when its Release came first
	Lacking []string // of OutOfStock: the SKUs that were short, in order
}

// Reserve holds all lines for the checkout, or none. Being out of stock is an
// answer, kept like a success: every repeat gets it again. It returns ErrInvalid
// for a malformed reservation or other lines than before; on any other error the
// outcome is unknown. Safe to repeat.
func (p *Participant) Reserve(ctx context.Context, r Reservation) (Answer, error) {
	if err := validateIDs(r.MerchantID, r.CheckoutID); err != nil {
		return Answer{}, err
	}
	lines, err := merged(r.Lines)
	if err != nil {
		return Answer{}, err
	}
	r.Lines = lines
	for range maxAttempts {
		answer, done, err := p.tryReserve(ctx, r)
		if err != nil {
			return Answer{}, fmt.Errorf("inventory: reserve for %s: %w", r.CheckoutID, err)
		}
		if done {
			return answer, nil
		}
	}
	return Answer{}, fmt.Errorf("inventory: reserve for %s: %w", r.CheckoutID, errContended)
}

func (p *Participant) tryReserve(ctx context.Context, r Reservation) (answer Answer, done bool, err error) {
	held := record{status: Reserved, lines: r.Lines}
	writes := []store.Write{p.first(r, held)}
	for _, l := range r.Lines {
		writes = append(writes, store.Write{
			Kind: store.Update,
			Key:  stockKey(r.MerchantID, l.SKU),
			Add:  map[string]int64{attrAvailable: -l.Quantity, attrReserved: l.Quantity},
			If:   ifAvailable(l.Quantity),
		})
	}
	err = p.table.Write(ctx, writes...)
	refused, ok := errors.AsType[*store.ConditionError](err)
	if err == nil {
		return Answer{Status: Reserved}, true, nil
	}
	if !ok {
		return Answer{}, false, err
	}
	if old, ok := refused.At(0); ok {
		return repeated(r, decodeRecord(old))
	}
	lacking := lackingSKUs(r.Lines, refused)
	if len(lacking) == 0 {
		return Answer{}, false, nil
	}
	return p.refuse(ctx, r, lacking)
}

// refuse keeps the refusal, unless the checkout's record was written meanwhile.
func (p *Participant) refuse(ctx context.Context, r Reservation, lacking []string) (Answer, bool, error) {
	refusal := record{status: OutOfStock, lines: r.Lines, lacking: lacking}
	err := p.table.Write(ctx, p.first(r, refusal))
	if err == nil {
		return Answer{Status: OutOfStock, Lacking: lacking}, true, nil
	}
	refused, ok := errors.AsType[*store.ConditionError](err)
	if !ok {
		return Answer{}, false, err
	}
	old, _ := refused.At(0)
	return repeated(r, decodeRecord(old))
}

// first writes the record of a checkout that has none.
func (p *Participant) first(r Reservation, rec record) store.Write {
	return store.Write{
		Kind: store.Put,
		Key:  reservationKey(r.MerchantID, r.CheckoutID),
		Item: rec.item(p.now().UnixMilli()),
		If:   ifUntouched(),
	}
}

// repeated answers a Reserve of a checkout that has a record.
func repeated(r Reservation, rec record) (Answer, bool, error) {
	if rec.lines != nil && !slices.Equal(rec.lines, r.Lines) {
		return Answer{}, false, fmt.Errorf("%w: the checkout asked for other lines before", ErrInvalid)
	}
	m, err := next(Reserve, rec.status)
	if err != nil {
		return Answer{}, false, err
	}
	if m.to != rec.status { // an absent record that refused a write for being there
		return Answer{}, false, nil
	}
	return Answer{Status: m.answer, Lacking: rec.lacking}, true, nil
}

// lackingSKUs returns the SKUs whose row, as it was when it refused, really lacks
// the pieces. A row that refused and has them lost a race.
func lackingSKUs(lines []Line, refused *store.ConditionError) []string {
	var lacking []string
	for i, l := range lines {
		old, failed := refused.At(i + 1)
		if failed && decodeStock(l.SKU, old).Available < l.Quantity {
			lacking = append(lacking, l.SKU)
		}
	}
	return lacking
}

// Release gives back what the checkout holds, and keeps it from ever holding
// anything again. It is right before, after and instead of Reserve. It returns an
// *IllegalError once the pieces are sold, and ErrInvalid for malformed ids; on any
// other error the outcome is unknown. Safe to repeat.
func (p *Participant) Release(ctx context.Context, merchant, checkout string) error {
	return p.settle(ctx, Release, merchant, checkout)
}

// Sell makes what the checkout holds sold, for good: call it once the order exists.
// It returns an *IllegalError when nothing is held, and ErrInvalid for malformed
// ids; on any other error the outcome is unknown. Safe to repeat.
func (p *Participant) Sell(ctx context.Context, merchant, checkout string) error {
	return p.settle(ctx, Sell, merchant, checkout)
}

func (p *Participant) settle(ctx context.Context, c Command, merchant, checkout string) error {
	if err := validateIDs(merchant, checkout); err != nil {
		return err
	}
	lost := errContended
	for range maxAttempts {
		done, err := p.trySettle(ctx, c, reservationKey(merchant, checkout), merchant)
		refused, raced := errors.AsType[*store.ConditionError](err)
		if err != nil && !raced {
			return fmt.Errorf("inventory: %s for %s: %w", c, checkout, err)
		}
		if done {
			return nil
		}
		lost = errContended
		if _, ok := refused.At(0); !ok {
			lost = ErrDamaged
		}
	}
	return fmt.Errorf("inventory: %s for %s: %w", c, checkout, lost)
}

// trySettle reads the record and moves it and its stock. A *store.ConditionError
// tells that it was no longer as read.
func (p *Participant) trySettle(ctx context.Context, c Command, key store.Key, merchant string) (done bool, err error) {
	rec, err := p.read(ctx, key)
	if err != nil {
		return false, err
	}
	m, err := next(c, rec.status)
	if err != nil {
		return false, err
	}
	if m.to == rec.status {
		return true, nil
	}
	writes := []store.Write{p.moveRecord(key, rec.status, m.to)}
	for _, l := range rec.lines {
		writes = append(writes, store.Write{
			Kind: store.Update,
			Key:  stockKey(merchant, l.SKU),
			Add:  map[string]int64{attrReserved: -l.Quantity, destination(m.to): l.Quantity},
			If:   ifReserved(l.Quantity),
		})
	}
	if err := p.table.Write(ctx, writes...); err != nil {
		return false, err
	}
	return true, nil
}

func (p *Participant) moveRecord(key store.Key, from, to Status) store.Write {
	now := p.now().UnixMilli()
	if from == None {
		return store.Write{Kind: store.Put, Key: key, Item: record{status: to}.item(now), If: ifUntouched()}
	}
	return store.Write{
		Kind: store.Update,
		Key:  key,
		Set:  store.Item{attrStatus: string(to), attrUpdatedAt: now},
		If:   ifStill(from),
	}
}

// destination is where reserved pieces go when their record becomes to.
func destination(to Status) string {
	if to == Sold {
		return attrSold
	}
	return attrAvailable
}

// Held returns how far the checkout's reservation is, read consistently.
func (p *Participant) Held(ctx context.Context, merchant, checkout string) (Status, error) {
	if err := validateIDs(merchant, checkout); err != nil {
		return None, err
	}
	rec, err := p.read(ctx, reservationKey(merchant, checkout))
	if err != nil {
		return None, fmt.Errorf("inventory: read reservation of %s: %w", checkout, err)
	}
	return rec.status, nil
}

// read returns the record, of status None when there is none.
func (p *Participant) read(ctx context.Context, key store.Key) (record, error) {
	item, err := p.table.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return record{}, nil
	}
	if err != nil {
		return record{}, err
	}
	return decodeRecord(item), nil
}
