// Package money is amounts of ISO 4217 currencies in minor units. It is pure
// and exact: int64 throughout, checked arithmetic, no floating point.
package money

import (
	"errors"
	"fmt"
	"math"
)

// Max is the largest amount of one payment in minor units: twelve digits, what
// card schemes carry (ISO 8583 field 4).
const Max int64 = 999_999_999_999

var (
	// ErrOverflow says that a sum or product does not fit in an int64.
	ErrOverflow = errors.New("money: overflow")
	// ErrCurrency says that two amounts have different currencies.
	ErrCurrency = errors.New("money: currencies differ")
)

// Amount is a number of minor units of one currency: {500, "JPY"} is 500 yen,
// {18600, "KWD"} is 18.600 dinar.
type Amount struct {
	Minor    int64
	Currency Currency
}

// Add returns a + b, or ErrCurrency, or ErrOverflow.
func (a Amount) Add(b Amount) (Amount, error) {
	if a.Currency != b.Currency {
		return Amount{}, ErrCurrency
	}
	sum, err := Add(a.Minor, b.Minor)
	return Amount{sum, a.Currency}, err
}

// String is the amount as people write it, with the currency's own number of
// decimals: "18.600 KWD". For logs and pages, never for arithmetic.
func (a Amount) String() string {
	e, ok := a.Currency.Exponent()
	if !ok || e == 0 {
		return fmt.Sprintf("%d %s", a.Minor, a.Currency)
	}
	sign, minor := "", a.Minor
	if minor < 0 {
		sign, minor = "-", -minor
	}
	unit := int64(1)
	for range e {
		unit *= 10
	}
	return fmt.Sprintf("%s%d.%0*d %s", sign, minor/unit, e, minor%unit, a.Currency)
}

// Add returns a + b, or ErrOverflow.
func Add(a, b int64) (int64, error) {
	if (b > 0 && a > math.MaxInt64-b) || (b < 0 && a < math.MinInt64-b) {
		return 0, ErrOverflow
	}
	return a + b, nil
}

// Multiply returns amount times quantity, both not negative, or ErrOverflow.
func Multiply(amount, quantity int64) (int64, error) {
	if amount < 0 || quantity < 0 || (quantity > 0 && amount > math.MaxInt64/quantity) {
		return 0, ErrOverflow
	}
	return amount * quantity, nil
}
