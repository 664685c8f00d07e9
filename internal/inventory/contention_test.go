package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/storetest"
)

// What the commands cost on their way through: a reservation and the refusal of
// a repeat are one write, being out of stock two, and what follows a read and a write.
func TestTripsOfEachCommand(t *testing.T) {
	meter := storetest.NewMeter(newTable())
	p := inventory.New(meter, clock)
	set(t, p, "tee", 5)
	few, many := []inventory.Line{{SKU: "tee", Quantity: 1}}, []inventory.Line{{SKU: "tee", Quantity: 9}}
	steps := []struct {
		name, checkout string
		lines          []inventory.Line // nil: Sell
		want           int
	}{
		{"reserve", "chk_1", few, 1},
		{"reserve again", "chk_1", few, 1},
		{"out of stock", "chk_2", many, 2},
		{"out of stock again", "chk_2", many, 1},
		{"sell", "chk_1", nil, 2},
		{"sell again", "chk_1", nil, 1},
	}
	for _, s := range steps {
		meter.Reset()
		var err error
		if s.lines == nil {
			err = p.Sell(t.Context(), merchant, s.checkout)
		} else {
			_, err = p.Reserve(t.Context(), inventory.Reservation{MerchantID: merchant, CheckoutID: s.checkout, Lines: s.lines})
		}
		if got := meter.Count().Trips; err != nil || got != s.want {
			t.Errorf("%s: got %d trips %v, want %d", s.name, got, err, s.want)
		}
	}
}

// The last 40 pieces go to exactly 40 of 64 buyers, each asked twice at once. No
// buyer's attempt is spoilt by another's and made again.
func TestSixtyFourBuyersOfOneSKU(t *testing.T) {
	const buyers, pieces = 64, 40
	meter := storetest.NewMeter(newTable())
	p := inventory.New(meter, clock)
	set(t, p, "tee", pieces)
	meter.Reset()
	answers := make([]inventory.Status, 2*buyers)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			a, err := p.Reserve(t.Context(), inventory.Reservation{
				MerchantID: merchant, CheckoutID: fmt.Sprintf("chk_%d", i/2), Lines: []inventory.Line{{SKU: "tee", Quantity: 1}},
			})
			if err != nil {
				t.Errorf("buyer %d: %v", i, err)
			}
			answers[i] = a.Status
		})
	}
	all.Wait()
	total := meter.Count()
	got := map[inventory.Status]int{}
	for i := 0; i < len(answers); i += 2 {
		if answers[i] != answers[i+1] {
			t.Errorf("buyer %d: got %s and %s, want one answer", i/2, answers[i], answers[i+1])
		}
		got[answers[i]]++
	}
	if got[inventory.Reserved] != pieces || got[inventory.OutOfStock] != buyers-pieces {
		t.Errorf("got %v, want %d reserved and %d out of stock", got, pieces, buyers-pieces)
	}
	wantStock(t, p, inventory.Stock{SKU: "tee", Reserved: pieces})
	// Two written rows for each answer, and one more for each refusal to keep.
	if got, most := total.Writes, 2*2*buyers+2*(buyers-pieces); got > most {
		t.Errorf("got %d writes, want at most %d: none spoilt by another buyer's", got, most)
	}
}

// Half of the buyers are released and half sold, by two executions each, while
// others still reserve.
func TestBuyersComeAndGoAtOnce(t *testing.T) {
	const buyers, pieces = 64, 64
	p := inventory.New(newTable(), clock)
	set(t, p, "tee", pieces)
	set(t, p, "mug", pieces)
	var all sync.WaitGroup
	for i := range 2 * buyers {
		all.Go(func() {
			id := fmt.Sprintf("chk_%d", i/2)
			lines := []inventory.Line{{SKU: "tee", Quantity: 1}, {SKU: "mug", Quantity: 1}}
			if i%4 < 2 {
				lines[0], lines[1] = lines[1], lines[0]
			}
			_, err := p.Reserve(t.Context(), inventory.Reservation{MerchantID: merchant, CheckoutID: id, Lines: lines})
			if err == nil && i/2%2 == 0 {
				err = p.Release(t.Context(), merchant, id)
			} else if err == nil {
				err = p.Sell(t.Context(), merchant, id)
			}
			if err != nil {
				t.Errorf("buyer %d: %v", i/2, err)
			}
		})
	}
	all.Wait()
	for _, sku := range []string{"tee", "mug"} {
		wantStock(t, p, inventory.Stock{SKU: sku, Available: pieces / 2, Sold: pieces / 2})
	}
}

// stubborn refuses the second of several writes n times, and shows a row that
// has all it takes.
type stubborn struct {
	store.Table
	n int
}

func (s *stubborn) Write(ctx context.Context, writes ...store.Write) error {
	if len(writes) > 1 && s.n > 0 {
		s.n--
		return &store.ConditionError{Failed: []store.Failed{{Index: 1, Old: store.Item{"available": int64(9), "reserved": int64(9)}}}}
	}
	return s.Table.Write(ctx, writes...)
}

func TestARowThatRefusedButHasTheStockIsARace(t *testing.T) {
	lines := []inventory.Line{{SKU: "tee", Quantity: 1}}
	table := newTable()
	p := inventory.New(&stubborn{table, 2}, clock)
	set(t, p, "tee", 1)
	if got, err := do(t.Context(), p, inventory.Reserve, lines); err != nil || got != inventory.Reserved {
		t.Errorf("lost twice: got %s %v, want reserved", got, err)
	}
	p = inventory.New(&stubborn{newTable(), 1000}, clock)
	set(t, p, "tee", 1)
	got, err := do(t.Context(), p, inventory.Reserve, lines)
	if err == nil || errors.Is(err, inventory.ErrInvalid) || errors.Is(err, inventory.ErrDamaged) {
		t.Errorf("lost always: got %s %v, want an error that a repeat may heal", got, err)
	}
	if got := held(t, p, checkout); got != inventory.None {
		t.Errorf("got %q, want no refusal kept", got)
	}
}

func TestAStockRowWithoutItsHeldPiecesIsDamage(t *testing.T) {
	for _, c := range []inventory.Command{inventory.Release, inventory.Sell} {
		table := newTable()
		p := inventory.New(table, clock)
		set(t, p, "tee", 3)
		if got, err := do(t.Context(), p, inventory.Reserve, []inventory.Line{{SKU: "tee", Quantity: 2}}); err != nil || got != inventory.Reserved {
			t.Fatalf("got %s %v, want reserved", got, err)
		}
		err := table.Write(t.Context(), store.Write{
			Kind: store.Update, Key: store.Key{PK: "STOCK#alpha#tee", SK: "STATE"}, Set: store.Item{"reserved": int64(1)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := do(t.Context(), p, c, nil); !errors.Is(err, inventory.ErrDamaged) {
			t.Errorf("%s: got %v, want ErrDamaged", c, err)
		}
		wantStock(t, p, inventory.Stock{SKU: "tee", Available: 1, Reserved: 1})
		if got := held(t, p, checkout); got != inventory.Reserved {
			t.Errorf("%s: got %s, want still reserved", c, got)
		}
	}
}
