package inventory_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/inventory"
)

// sequences returns every sequence of the commands up to a length.
func sequences(length int) [][]inventory.Command {
	all := [][]inventory.Command{nil}
	for from := 0; length > 0; length-- {
		to := len(all)
		for _, s := range all[from:to] {
			for _, c := range []inventory.Command{inventory.Reserve, inventory.Release, inventory.Sell} {
				all = append(all, append(s[:len(s):len(s)], c))
			}
		}
		from = to
	}
	return all
}

func name(s []inventory.Command) string {
	words := make([]string, len(s))
	for i, c := range s {
		words[i] = string(c)
	}
	return strings.Join(words, " ")
}

// Every order and repetition of the commands ends in a legal state, gives each
// command the answer of the table in the package's description, and conserves stock.
func TestEveryOrderAndRepetitionIsLegal(t *testing.T) {
	const (
		absent, reserved, short = inventory.None, inventory.Reserved, inventory.OutOfStock
		released, sold          = inventory.Released, inventory.Sold
		illegal                 = inventory.Status("illegal")
	)
	type outcome struct{ to, answer inventory.Status }
	table := func(take inventory.Status) map[inventory.Command]map[inventory.Status]outcome {
		return map[inventory.Command]map[inventory.Status]outcome{
			inventory.Reserve: {
				absent: {take, take}, reserved: {reserved, reserved}, short: {short, short},
				released: {released, released}, sold: {sold, reserved},
			},
			inventory.Release: {
				absent: {released, released}, reserved: {released, released}, short: {short, released},
				released: {released, released}, sold: {sold, illegal},
			},
			inventory.Sell: {
				absent: {absent, illegal}, reserved: {sold, sold}, short: {short, illegal},
				released: {released, illegal}, sold: {sold, sold},
			},
		}
	}
	where := map[inventory.Status]inventory.Stock{
		absent: {SKU: "tee", Available: 5}, short: {SKU: "tee", Available: 5}, released: {SKU: "tee", Available: 5},
		reserved: {SKU: "tee", Available: 3, Reserved: 2}, sold: {SKU: "tee", Available: 3, Sold: 2},
	}
	for _, take := range []inventory.Status{reserved, short} {
		lines := []inventory.Line{{"tee", 2}}
		if take == short {
			lines = append(lines, inventory.Line{SKU: "hat", Quantity: 1})
		}
		for _, s := range sequences(5) {
			p := inventory.New(newTable(), clock)
			set(t, p, "tee", 5)
			at := absent
			for i, c := range s {
				want := table(take)[c][at]
				got, err := do(t.Context(), p, c, lines)
				if errors.Is(err, inventory.ErrIllegal) {
					got, err = illegal, nil
				}
				if err != nil || got != want.answer {
					t.Fatalf("%s, step %d: got %s %v, want %s", name(s), i, got, err, want.answer)
				}
				at = want.to
				if got := held(t, p, checkout); got != at {
					t.Fatalf("%s, step %d: got status %q, want %q", name(s), i, got, at)
				}
				if got := stock(t, p, "tee"); got != where[at] {
					t.Fatalf("%s, step %d: got %+v, want %+v", name(s), i, got, where[at])
				}
			}
		}
	}
}

// A command may be cut off at any call, with or without its effect; the same
// command again ends as if nothing had happened.
func TestACutOffCommandIsFinishedByItsRepeat(t *testing.T) {
	for _, lines := range [][]inventory.Line{{{"tee", 2}, {"mug", 1}}, {{"tee", 2}, {"hat", 1}}} {
		for _, s := range sequences(3) {
			whole := end(t, s, lines, nil)
			for at := 1; at <= whole.calls; at++ {
				for _, f := range []fault{unsent, unheard} {
					got := end(t, s, lines, func(call int) fault {
						if call == at {
							return f
						}
						return none
					})
					got.calls = whole.calls
					if got != whole {
						t.Errorf("%s %v cut at call %d (%d): got %+v, want %+v", name(s), lines, at, f, got, whole)
					}
				}
			}
		}
	}
}

type ending struct {
	answers string
	status  inventory.Status
	tee     inventory.Stock
	mug     inventory.Stock
	calls   int
}

// end carries out a sequence, repeating each command until it has an answer.
func end(t *testing.T, s []inventory.Command, lines []inventory.Line, lost func(int) fault) ending {
	t.Helper()
	table := newTable()
	sure := inventory.New(table, clock)
	set(t, sure, "tee", 5)
	set(t, sure, "mug", 1)
	cut := &tap{Table: table, lost: lost}
	p := inventory.New(cut, clock)
	var e ending
	for _, c := range s {
		answer, err := do(t.Context(), p, c, lines)
		for errors.Is(err, errCut) {
			answer, err = do(t.Context(), p, c, lines)
		}
		if err != nil && !errors.Is(err, inventory.ErrIllegal) {
			t.Fatalf("%s: %v", name(s), err)
		}
		e.answers += fmt.Sprintf("%s %t, ", answer, err == nil)
	}
	e.status, e.tee, e.mug, e.calls = held(t, sure, checkout), stock(t, sure, "tee"), stock(t, sure, "mug"), cut.calls
	return e
}

// Whatever slips in between two steps of a command, the end is one that the two
// commands have one after the other, in one order or the other.
func TestACommandBetweenAnothersStepsIsBeforeOrAfterIt(t *testing.T) {
	commands := []inventory.Command{inventory.Reserve, inventory.Release, inventory.Sell}
	lines := []inventory.Line{{"tee", 2}}
	for _, prefix := range sequences(1) {
		for _, available := range []int64{5, 1} {
			for _, first := range commands {
				for _, second := range commands {
					legal := []string{
						run(t, available, prefix, lines, first, second, 0),
						run(t, available, prefix, lines, second, first, 0),
					}
					for at := 1; at <= 4; at++ {
						got := run(t, available, prefix, lines, first, second, at)
						if got != legal[0] && got != legal[1] {
							t.Errorf("%s, then %s in call %d of %s, %d available: got %s, want one of %v",
								name(prefix), second, at, first, available, got, legal)
						}
					}
				}
			}
		}
	}
}

// run returns where stock and record end up when second runs before call at of
// first, or after it when first has fewer calls; at 0 is one after the other.
func run(t *testing.T, available int64, prefix []inventory.Command, lines []inventory.Line, first, second inventory.Command, at int) string {
	t.Helper()
	table := newTable()
	sure := inventory.New(table, clock)
	set(t, sure, "tee", available+3)
	others := inventory.Reservation{MerchantID: merchant, CheckoutID: "chk_other", Lines: []inventory.Line{{"tee", 3}}}
	if _, err := sure.Reserve(t.Context(), others); err != nil { // pieces that nobody else may move
		t.Fatal(err)
	}
	for _, c := range prefix {
		if _, err := do(t.Context(), sure, c, lines); err != nil && !errors.Is(err, inventory.ErrIllegal) {
			t.Fatal(err)
		}
	}
	slipped := false
	slip := func() {
		slipped = true
		if _, err := do(t.Context(), sure, second, lines); err != nil && !errors.Is(err, inventory.ErrIllegal) {
			t.Fatal(err)
		}
	}
	p := inventory.New(&tap{Table: table, before: func(call int) {
		if call == at {
			slip()
		}
	}}, clock)
	if _, err := do(t.Context(), p, first, lines); err != nil && !errors.Is(err, inventory.ErrIllegal) {
		t.Fatalf("%s with %s in call %d: %v", first, second, at, err)
	}
	if !slipped {
		slip()
	}
	return fmt.Sprintf("%s %+v", held(t, sure, checkout), stock(t, sure, "tee"))
}
