package money_test

import (
	"errors"
	"math"
	"testing"

	"github.com/bojanz/currency"

	"github.com/kessai/kessai/internal/money"
)

// Every currency of the reference list is known here with the same exponent.
func TestExponentsAgreeWithReference(t *testing.T) {
	codes := currency.GetCurrencyCodes()
	if len(codes) < 150 {
		t.Fatalf("got %d reference currencies, want the whole list", len(codes))
	}
	for _, code := range codes {
		want, _ := currency.GetDigits(code)
		got, ok := money.Currency(code).Exponent()
		if !ok || got != int(want) {
			t.Errorf("%s: got %d %v, want %d", code, got, ok, want)
		}
	}
	for _, code := range []money.Currency{"", "XXX", "jpy", "ABC", "JPYX"} {
		if code.Known() {
			t.Errorf("%q is known, want unknown", code)
		}
	}
}

func TestStringHasTheCurrencysDecimals(t *testing.T) {
	tests := []struct {
		amount money.Amount
		want   string
	}{
		{money.Amount{Minor: 500, Currency: "JPY"}, "500 JPY"},
		{money.Amount{Minor: 18600, Currency: "KWD"}, "18.600 KWD"},
		{money.Amount{Minor: 5, Currency: "USD"}, "0.05 USD"},
		{money.Amount{Minor: -105, Currency: "USD"}, "-1.05 USD"},
	}
	for _, tt := range tests {
		if got := tt.amount.String(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestArithmeticRefusesOverflow(t *testing.T) {
	if _, err := money.Add(math.MaxInt64, 1); !errors.Is(err, money.ErrOverflow) {
		t.Errorf("got %v, want ErrOverflow", err)
	}
	if _, err := money.Add(math.MinInt64, -1); !errors.Is(err, money.ErrOverflow) {
		t.Errorf("got %v, want ErrOverflow", err)
	}
	if _, err := money.Multiply(math.MaxInt64/2+1, 2); !errors.Is(err, money.ErrOverflow) {
		t.Errorf("got %v, want ErrOverflow", err)
	}
	if got, err := money.Multiply(9999, money.Max); err != nil || got != 9999*money.Max {
		t.Errorf("got %d %v, want the product", got, err)
	}
	if _, err := (money.Amount{Minor: 1, Currency: "JPY"}).Add(money.Amount{Minor: 1, Currency: "USD"}); !errors.Is(err, money.ErrCurrency) {
		t.Errorf("got %v, want ErrCurrency", err)
	}
}
