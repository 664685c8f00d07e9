package order

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/command"
	"github.com/kessai/kessai/internal/store"
)

var (
	// ErrInvalid says that a command is malformed, or repeats a checkout's order
	// with another purchase. Nothing was done.
	ErrInvalid = errors.New("order: invalid")
	// ErrNotFound says that the merchant has no such order.
	ErrNotFound = errors.New("order: no such order")
)

// errContended says that a command lost every race it may lose; a repeat finds out.
var errContended = errors.New("order: lost too many races")

const (
	// maxAttempts of one command. A record changes at most twice, so a command
	// that re-reads it loses at most two races.
	maxAttempts = 3

	// maxPage bounds a list, whose orders are read one by one. A reference has one
	// order, seldom a few: one at a time may stand, others were canceled.
	maxPage = 100
)

// Rule decides whether the shop refuses an order, and with which code.
type Rule func(Order) (code string, refuse bool)

// CodeRejected is the code of an order that the shop refused.
const CodeRejected = "order_rejected"

// RefuseSKUsFrom is the rule that refuses every order with a SKU that starts with
// prefix: for trying out what happens then.
func RefuseSKUsFrom(prefix string) Rule {
	return func(o Order) (string, bool) {
		for _, l := range o.Lines {
			if strings.HasPrefix(l.SKU, prefix) {
				return CodeRejected, true
			}
		}
		return "", false
	}
}

// Participant keeps orders. All methods are safe for concurrent use.
type Participant struct {
	table   store.Table
	now     func() time.Time
	refuses Rule
}

// New returns the participant over its own table. A nil rule refuses nothing.
func New(table store.Table, now func() time.Time, refuses Rule) *Participant {
	if refuses == nil {
		refuses = func(Order) (string, bool) { return "", false }
	}
	return &Participant{table: table, now: now, refuses: refuses}
}

// Answer is the outcome of a Create.
type Answer struct {
	Status  Status // Confirmed, Rejected, or Canceled when its Cancel came first
	OrderID string // of Confirmed
	Code    string // of Rejected: why
}

// Create makes the order of a checkout, or keeps that the shop refuses it: both
// are answers, and every repeat gets the same, until the order is canceled. It
// returns ErrInvalid for a malformed order, or another purchase than before; on
// any other error the outcome is unknown. Safe to repeat.
func (p *Participant) Create(ctx context.Context, o Order) (Answer, error) {
	if err := o.validate(); err != nil {
		return Answer{}, err
	}
	o.ID = ID(o.CheckoutID)
	o.Status = Confirmed
	o.CreatedAt = p.now().UTC().Truncate(time.Millisecond)
	code, refused := p.refuses(o)
	if refused {
		o.Status, o.Email = Rejected, "" // nobody will write to this buyer
	}
	err := p.table.Write(ctx, first(o, code)...)
	if err == nil {
		return answer(o.Status, o.ID, code)
	}
	if lost, ok := errors.AsType[*store.ConditionError](err); ok {
		if old, _ := lost.At(0); old != nil {
			return repeated(o, old)
		}
		err = errContended
	}
	return Answer{}, fmt.Errorf("order: create for %s: %w", o.CheckoutID, err)
}

// first writes the record of a checkout that has none and, of an order, its place
// in the list. The place needs no condition: only this transaction writes it.
func first(o Order, code string) []store.Write {
	item := o.item()
	writes := []store.Write{{Kind: store.Put, Key: orderKey(o.MerchantID, o.ID), Item: item, If: ifUntouched()}}
	if o.Status == Rejected {
		item[attrCode] = code
		return writes
	}
	if o.Reference != "" {
		writes = append(writes, store.Write{Kind: store.Put, Key: listKey(o), Item: store.Item{attrID: o.ID}})
	}
	return writes
}

// repeated answers a Create of a checkout that has a record. A tombstone knows no
// purchase to compare.
func repeated(o Order, old store.Item) (Answer, error) {
	was := decode(old)
	if was.Status != Prevented && !was.sameAs(o) {
		return Answer{}, fmt.Errorf("%w: the checkout %s was another purchase before", ErrInvalid, o.CheckoutID)
	}
	code, _ := old[attrCode].(string)
	return answer(was.Status, was.ID, code)
}

func answer(s Status, id, code string) (Answer, error) {
	switch s {
	case Confirmed:
		return Answer{Status: Confirmed, OrderID: id}, nil
	case Rejected:
		return Answer{Status: Rejected, Code: code}, nil
	case Canceled, Prevented:
		return Answer{Status: Canceled}, nil
	case None:
	}
	return Answer{}, fmt.Errorf("order: record %s has the unknown status %q", id, s)
}

// Cancel takes the checkout's order back, and keeps one from ever being made. It
// is right before, after and instead of Create. It returns ErrInvalid for
// malformed ids; on any other error the outcome is unknown. Safe to repeat.
func (p *Participant) Cancel(ctx context.Context, merchant, checkout string) error {
	if err := validateIDs(merchant, checkout); err != nil {
		return err
	}
	for range maxAttempts {
		err := p.tryCancel(ctx, merchant, checkout)
		if err == nil {
			return nil
		}
		if _, raced := errors.AsType[*store.ConditionError](err); !raced {
			return fmt.Errorf("order: cancel for %s: %w", checkout, err)
		}
	}
	return fmt.Errorf("order: cancel for %s: %w", checkout, errContended)
}

// tryCancel reads the record and ends it. A *store.ConditionError tells that it
// was no longer as read.
func (p *Participant) tryCancel(ctx context.Context, merchant, checkout string) error {
	key, now := orderKey(merchant, ID(checkout)), p.now().UnixMilli()
	item, err := p.table.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return p.table.Write(ctx, store.Write{
			Kind: store.Put, Key: key, If: ifUntouched(),
			Item: store.Item{attrStatus: string(Prevented), attrCheckoutID: checkout, attrCreatedAt: now, attrUpdatedAt: now},
		})
	}
	if err != nil {
		return err
	}
	was := decode(item)
	switch was.Status {
	case Confirmed:
		return p.table.Write(ctx, store.Write{
			Kind: store.Update, Key: key, If: ifConfirmed(),
			Set: store.Item{attrStatus: string(Canceled), attrUpdatedAt: now},
		})
	case Canceled, Rejected, Prevented:
		return nil
	case None:
	}
	return fmt.Errorf("record has the unknown status %q", was.Status)
}

// Get returns one order, read consistently. It returns ErrNotFound for an unknown
// id, for one whose order was refused or prevented, and for another merchant's.
func (p *Participant) Get(ctx context.Context, merchant, id string) (Order, error) {
	if !command.ValidID(merchant) || !command.ValidID(id) {
		return Order{}, ErrNotFound
	}
	item, err := p.table.Get(ctx, orderKey(merchant, id))
	if errors.Is(err, store.ErrNotFound) {
		return Order{}, ErrNotFound
	}
	if err != nil {
		return Order{}, fmt.Errorf("order: get %s: %w", id, err)
	}
	o := decode(item)
	if o.Status != Confirmed && o.Status != Canceled {
		return Order{}, ErrNotFound
	}
	return o, nil
}

// List is one page of orders. Cursor is "" on the last one.
type List struct {
	Orders []Order
	Cursor string
}

// ListByReference returns the merchant's orders of one reference, newest first, a
// page of at most limit, up to 100, from the cursor of the page before ("" for the
// first). A reference without orders is an empty list. It returns store.ErrCursor
// for a cursor that no such list gave out.
func (p *Participant) ListByReference(ctx context.Context, merchant, reference, cursor string, limit int) (List, error) {
	if !command.ValidID(merchant) || !validReference(reference) {
		return List{}, nil
	}
	page, err := p.table.Query(ctx, store.Query{
		PK: referencePartition(merchant, reference), SKPrefix: listPrefix,
		Descending: true, Limit: min(limit, maxPage), Cursor: cursor,
	})
	if err != nil {
		return List{}, fmt.Errorf("order: list by reference: %w", err)
	}
	list := List{Cursor: page.Cursor}
	for _, e := range page.Entries {
		id, _ := e.Item[attrID].(string)
		o, err := p.Get(ctx, merchant, id)
		if err != nil {
			return List{}, fmt.Errorf("order: list by reference: %w", err)
		}
		list.Orders = append(list.Orders, o)
	}
	return list, nil
}
