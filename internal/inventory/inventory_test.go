package inventory_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/inventory"
)

func TestReservingTakesAllLinesOrNone(t *testing.T) {
	tests := []struct {
		name    string
		lines   []inventory.Line
		want    inventory.Status
		lacking []string
		tee     inventory.Stock
	}{
		{
			"all there",
			[]inventory.Line{{"tee", 2}, {"mug", 1}},
			inventory.Reserved, nil,
			inventory.Stock{SKU: "tee", Available: 1, Reserved: 2},
		},
		{
			"the last piece",
			[]inventory.Line{{"tee", 3}},
			inventory.Reserved, nil,
			inventory.Stock{SKU: "tee", Reserved: 3},
		},
		{
			"one line short",
			[]inventory.Line{{"tee", 2}, {"mug", 2}},
			inventory.OutOfStock,
			[]string{"mug"},
			inventory.Stock{SKU: "tee", Available: 3},
		},
		{
			"both lines short",
			[]inventory.Line{{"tee", 4}, {"mug", 2}},
			inventory.OutOfStock,
			[]string{"mug", "tee"},
			inventory.Stock{SKU: "tee", Available: 3},
		},
		{
			"an unknown sku",
			[]inventory.Line{{"tee", 1}, {"hat", 1}},
			inventory.OutOfStock,
			[]string{"hat"},
			inventory.Stock{SKU: "tee", Available: 3},
		},
		{
			"equal skus are one line",
			[]inventory.Line{{"tee", 2}, {"mug", 1}, {"tee", 1}},
			inventory.Reserved, nil,
			inventory.Stock{SKU: "tee", Reserved: 3},
		},
		{
			"equal skus together short",
			[]inventory.Line{{"tee", 2}, {"tee", 2}},
			inventory.OutOfStock,
			[]string{"tee"},
			inventory.Stock{SKU: "tee", Available: 3},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := inventory.New(newTable(), clock)
			set(t, p, "tee", 3)
			set(t, p, "mug", 1)
			for range 2 {
				got, err := p.Reserve(t.Context(), inventory.Reservation{MerchantID: merchant, CheckoutID: checkout, Lines: tt.lines})
				if err != nil || got.Status != tt.want || !slices.Equal(got.Lacking, tt.lacking) {
					t.Errorf("got %+v %v, want %s lacking %v", got, err, tt.want, tt.lacking)
				}
				wantStock(t, p, tt.tee)
			}
		})
	}
}

// Schedule "opposite directions": a refusal is kept, though stock came back.
func TestARefusedCheckoutStaysRefused(t *testing.T) {
	p := inventory.New(newTable(), clock)
	set(t, p, "tee", 0)
	lines := []inventory.Line{{"tee", 1}}
	for range 2 {
		got, err := do(t.Context(), p, inventory.Reserve, lines)
		if err != nil || got != inventory.OutOfStock {
			t.Fatalf("got %s %v, want out_of_stock", got, err)
		}
		set(t, p, "tee", 1)
	}
	if err := p.Release(t.Context(), merchant, checkout); err != nil {
		t.Fatal(err)
	}
	if got, err := do(t.Context(), p, inventory.Reserve, lines); err != nil || got != inventory.OutOfStock {
		t.Errorf("after its release: got %s %v, want out_of_stock", got, err)
	}
	wantStock(t, p, inventory.Stock{SKU: "tee", Available: 1})
}

// Schedule "setting stock": what buyers hold and bought is not counted anew.
func TestSettingStockLeavesReservedAndSold(t *testing.T) {
	p := inventory.New(newTable(), clock)
	set(t, p, "tee", 5)
	for id, quantity := range map[string]int64{"chk_sold": 1, "chk_held": 2} {
		r := inventory.Reservation{MerchantID: merchant, CheckoutID: id, Lines: []inventory.Line{{"tee", quantity}}}
		if a, err := p.Reserve(t.Context(), r); err != nil || a.Status != inventory.Reserved {
			t.Fatalf("got %+v %v, want reserved", a, err)
		}
	}
	if err := p.Sell(t.Context(), merchant, "chk_sold"); err != nil {
		t.Fatal(err)
	}
	set(t, p, "tee", 10)
	wantStock(t, p, inventory.Stock{SKU: "tee", Available: 10, Reserved: 2, Sold: 1})
	set(t, p, "tee", 0)
	if err := p.Release(t.Context(), merchant, "chk_held"); err != nil {
		t.Fatal(err)
	}
	wantStock(t, p, inventory.Stock{SKU: "tee", Available: 2, Sold: 1})
}

func TestAMerchantNeverMeetsAnothersStock(t *testing.T) {
	p := inventory.New(newTable(), clock)
	set(t, p, "tee", 5)
	if _, err := p.Get(t.Context(), "beta", "tee"); !errors.Is(err, inventory.ErrNotFound) {
		t.Errorf("foreign stock: got %v, want ErrNotFound", err)
	}
	if _, err := p.Get(t.Context(), merchant, "hat"); !errors.Is(err, inventory.ErrNotFound) {
		t.Errorf("unknown sku: got %v, want ErrNotFound", err)
	}
	lines := []inventory.Line{{"tee", 1}}
	if got, err := do(t.Context(), p, inventory.Reserve, lines); err != nil || got != inventory.Reserved {
		t.Fatalf("got %s %v, want reserved", got, err)
	}
	// The same checkout id under another merchant is another checkout.
	if err := p.Release(t.Context(), "beta", checkout); err != nil {
		t.Errorf("got %v, want a tombstone of its own", err)
	}
	if err := p.Sell(t.Context(), "beta", checkout); !errors.Is(err, inventory.ErrIllegal) {
		t.Errorf("got %v, want ErrIllegal", err)
	}
	got, err := p.Reserve(t.Context(), inventory.Reservation{MerchantID: "beta", CheckoutID: "chk_2", Lines: lines})
	if err != nil || got.Status != inventory.OutOfStock {
		t.Errorf("got %+v %v, want out_of_stock", got, err)
	}
	wantStock(t, p, inventory.Stock{SKU: "tee", Available: 4, Reserved: 1})
	if _, err := p.Get(t.Context(), "alpha#tee", "x"); !errors.Is(err, inventory.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound for a merchant that no key can hold", err)
	}
}

func TestMalformedCommandsDoNothing(t *testing.T) {
	many := make([]inventory.Line, 51)
	for i := range many {
		many[i] = inventory.Line{SKU: "tee", Quantity: 1}
	}
	tests := []struct {
		name     string
		merchant string
		checkout string
		lines    []inventory.Line
	}{
		{"no lines", merchant, checkout, nil},
		{"51 lines", merchant, checkout, many},
		{"quantity 0", merchant, checkout, []inventory.Line{{"tee", 0}}},
		{"negative quantity", merchant, checkout, []inventory.Line{{"tee", -1}}},
		{"a quantity that would overflow", merchant, checkout, []inventory.Line{{"tee", math.MaxInt64}, {"tee", math.MaxInt64}}},
		{"no sku", merchant, checkout, []inventory.Line{{"", 1}}},
		{"a sku of 65", merchant, checkout, []inventory.Line{{strings.Repeat("x", 65), 1}}},
		{"a sku with a line break", merchant, checkout, []inventory.Line{{"tee\n", 1}}},
		{"a sku that is no UTF-8", merchant, checkout, []inventory.Line{{"tee\xff", 1}}},
		{"no merchant", "", checkout, []inventory.Line{{"tee", 1}}},
		{"a separator in the merchant", "al#pha", checkout, []inventory.Line{{"tee", 1}}},
		{"no checkout", merchant, "", []inventory.Line{{"tee", 1}}},
	}
	p := inventory.New(newTable(), clock)
	set(t, p, "tee", 1_000_000)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := inventory.Reservation{MerchantID: tt.merchant, CheckoutID: tt.checkout, Lines: tt.lines}
			if got, err := p.Reserve(t.Context(), r); !errors.Is(err, inventory.ErrInvalid) {
				t.Errorf("got %+v %v, want ErrInvalid", got, err)
			}
		})
	}
	for _, available := range []int64{-1, 1_000_000_001, math.MinInt64} {
		if err := p.Set(t.Context(), merchant, "tee", available); !errors.Is(err, inventory.ErrInvalid) {
			t.Errorf("set %d: got %v, want ErrInvalid", available, err)
		}
	}
	wantStock(t, p, inventory.Stock{SKU: "tee", Available: 1_000_000})
}

func TestFiftyItemsOfOneSKUAreOneLine(t *testing.T) {
	p := inventory.New(newTable(), clock)
	set(t, p, "tee", 499_950)
	lines := []inventory.Line{{"tee", 499_950}} // as a checkout that merged them asks for them
	if got, err := do(t.Context(), p, inventory.Reserve, lines); err != nil || got != inventory.Reserved {
		t.Errorf("got %s %v, want reserved", got, err)
	}
}

func TestAnotherReservationOfTheSameCheckoutIsInvalid(t *testing.T) {
	p := inventory.New(newTable(), clock)
	set(t, p, "tee", 5)
	if got, err := do(t.Context(), p, inventory.Reserve, []inventory.Line{{"tee", 1}}); err != nil || got != inventory.Reserved {
		t.Fatalf("got %s %v, want reserved", got, err)
	}
	for _, lines := range [][]inventory.Line{{{"tee", 2}}, {{"mug", 1}}, {{"tee", 1}, {"mug", 1}}} {
		if got, err := do(t.Context(), p, inventory.Reserve, lines); !errors.Is(err, inventory.ErrInvalid) {
			t.Errorf("%v: got %s %v, want ErrInvalid", lines, got, err)
		}
	}
	wantStock(t, p, inventory.Stock{SKU: "tee", Available: 4, Reserved: 1})
}
