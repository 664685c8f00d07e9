package inventory_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kessai/kessai/internal/inventory"
)

// model is what a shop with a notebook would write down.
type model struct {
	available, reserved, sold map[string]int64
	status                    map[string]inventory.Status
	lines                     map[string][]inventory.Line
}

func (m *model) reserve(id string, lines []inventory.Line) inventory.Status {
	switch m.status[id] {
	case inventory.None:
	case inventory.Sold:
		return inventory.Reserved
	case inventory.Reserved, inventory.OutOfStock, inventory.Released:
		return m.status[id]
	}
	m.lines[id] = lines
	m.status[id] = inventory.Reserved
	for _, l := range lines {
		if m.available[l.SKU] < l.Quantity {
			m.status[id] = inventory.OutOfStock
		}
	}
	if m.status[id] == inventory.Reserved {
		for _, l := range lines {
			m.available[l.SKU] -= l.Quantity
			m.reserved[l.SKU] += l.Quantity
		}
	}
	return m.status[id]
}

// finish moves what is held to where it goes and reports whether it was legal.
func (m *model) finish(id string, to inventory.Status, where map[string]int64) bool {
	switch m.status[id] {
	case to:
		return true
	case inventory.Reserved:
		for _, l := range m.lines[id] {
			m.reserved[l.SKU] -= l.Quantity
			where[l.SKU] += l.Quantity
		}
		m.status[id] = to
		return true
	case inventory.None:
		if to == inventory.Released {
			m.status[id] = to
			return true
		}
		return false
	case inventory.OutOfStock:
		return to == inventory.Released
	case inventory.Released, inventory.Sold:
		return false
	}
	return false
}

func TestStockBehavesLikeItsModel(t *testing.T) {
	skus := []string{"tee", "mug", "hat"}
	rapid.Check(t, func(rt *rapid.T) {
		p := inventory.New(newTable(), clock)
		m := &model{map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]inventory.Status{}, map[string][]inventory.Line{}}
		anySKU := rapid.SampledFrom(skus)
		anyID := rapid.SampledFrom([]string{"chk_1", "chk_2", "chk_3", "chk_4"})
		wanted := map[string][]inventory.Line{}
		rt.Repeat(map[string]func(*rapid.T){
			"set": func(rt *rapid.T) {
				sku, n := anySKU.Draw(rt, "sku"), rapid.Int64Range(0, 6).Draw(rt, "available")
				m.available[sku] = n
				if err := p.Set(t.Context(), merchant, sku, n); err != nil {
					rt.Fatal(err)
				}
			},
			"reserve": func(rt *rapid.T) {
				id := anyID.Draw(rt, "checkout")
				if wanted[id] == nil { // a checkout asks for the same lines each time
					for _, sku := range rapid.SliceOfNDistinct(anySKU, 1, 3, rapid.ID).Draw(rt, "skus") {
						wanted[id] = append(wanted[id], inventory.Line{SKU: sku, Quantity: rapid.Int64Range(1, 4).Draw(rt, "quantity")})
					}
				}
				got, err := p.Reserve(t.Context(), inventory.Reservation{MerchantID: merchant, CheckoutID: id, Lines: wanted[id]})
				if want := m.reserve(id, wanted[id]); err != nil || got.Status != want {
					rt.Fatalf("got %+v %v, want %s", got, err, want)
				}
			},
			"release": func(rt *rapid.T) {
				id := anyID.Draw(rt, "checkout")
				err := p.Release(t.Context(), merchant, id)
				if legal := m.finish(id, inventory.Released, m.available); legal != (err == nil) || err != nil && !errors.Is(err, inventory.ErrIllegal) {
					rt.Fatalf("got %v, want legal %t", err, legal)
				}
			},
			"sell": func(rt *rapid.T) {
				id := anyID.Draw(rt, "checkout")
				err := p.Sell(t.Context(), merchant, id)
				if legal := m.finish(id, inventory.Sold, m.sold); legal != (err == nil) || err != nil && !errors.Is(err, inventory.ErrIllegal) {
					rt.Fatalf("got %v, want legal %t", err, legal)
				}
			},
			"": func(rt *rapid.T) {
				for _, sku := range skus {
					got, err := p.Get(t.Context(), merchant, sku)
					want := inventory.Stock{SKU: sku, Available: m.available[sku], Reserved: m.reserved[sku], Sold: m.sold[sku]}
					if errors.Is(err, inventory.ErrNotFound) {
						got, err = inventory.Stock{SKU: sku}, nil
					}
					if err != nil || got != want {
						rt.Fatalf("got %+v %v, want %+v", got, err, want)
					}
				}
				for id, want := range m.status {
					if got, err := p.Held(t.Context(), merchant, id); err != nil || got != want {
						rt.Fatal(fmt.Sprintf("%s: got %s %v, want %s", id, got, err, want))
					}
				}
			},
		})
	})
}
