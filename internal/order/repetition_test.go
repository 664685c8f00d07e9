package order_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kessai/kessai/internal/order"
)

// sequences returns every sequence of the two commands up to a length.
func sequences(length int) [][]order.Command {
	all := [][]order.Command{nil}
	for from := 0; length > 0; length-- {
		to := len(all)
		for _, s := range all[from:to] {
			for _, c := range []order.Command{order.CommandCreate, order.CommandCancel} {
				all = append(all, append(s[:len(s):len(s)], c))
			}
		}
		from = to
	}
	return all
}

func do(t *testing.T, p *order.Participant, c order.Command) (order.Status, error) {
	t.Helper()
	if c == order.CommandCancel {
		return order.Canceled, p.Cancel(t.Context(), merchant, checkout)
	}
	a, err := p.Create(t.Context(), purchase())
	return a.Status, err
}

// seen is what the merchant finds: the order's status, None for no order, and how
// many the list has.
func seen(t *testing.T, p *order.Participant) (order.Status, int) {
	t.Helper()
	o, err := p.Get(t.Context(), merchant, "ord_1")
	if err != nil && !errors.Is(err, order.ErrNotFound) {
		t.Fatal(err)
	}
	list, err := p.ListByReference(t.Context(), merchant, "order-42", "", 20)
	if err != nil {
		t.Fatal(err)
	}
	return o.Status, len(list.Orders)
}

// Every order and repetition of the commands gives the answers of the table in the
// package's description, and shows an order only where there is one.
func TestEveryOrderAndRepetitionIsLegal(t *testing.T) {
	type outcome struct{ to, answer order.Status }
	for _, take := range []order.Status{order.Confirmed, order.Rejected} {
		table := map[order.Command]map[order.Status]outcome{
			order.CommandCreate: {
				order.None: {take, take}, order.Confirmed: {order.Confirmed, order.Confirmed}, order.Rejected: {order.Rejected, order.Rejected},
				order.Canceled: {order.Canceled, order.Canceled}, order.Prevented: {order.Prevented, order.Canceled},
			},
			order.CommandCancel: {
				order.None: {order.Prevented, order.Canceled}, order.Confirmed: {order.Canceled, order.Canceled}, order.Rejected: {order.Rejected, order.Canceled},
				order.Canceled: {order.Canceled, order.Canceled}, order.Prevented: {order.Prevented, order.Canceled},
			},
		}
		for _, s := range sequences(6) {
			p := order.New(newTable(), clock, func(order.Order) (string, bool) { return "no", take == order.Rejected })
			at := order.None
			for i, c := range s {
				want := table[c][at]
				if got, err := do(t, p, c); err != nil || got != want.answer {
					t.Fatalf("%v, step %d: got %s %v, want %s", s, i, got, err, want.answer)
				}
				at = want.to
				wantSeen, wantListed := order.None, 0
				if at == order.Confirmed || at == order.Canceled {
					wantSeen, wantListed = at, 1
				}
				if got, listed := seen(t, p); got != wantSeen || listed != wantListed {
					t.Fatalf("%v, step %d: got %q and %d listed, want %q and %d", s, i, got, listed, wantSeen, wantListed)
				}
			}
		}
	}
}

// A command may be cut off at any call, with or without its effect; the same
// command again ends as if nothing had happened.
func TestACutOffCommandIsFinishedByItsRepeat(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		for _, s := range sequences(3) {
			want, calls := end(t, s, refuse, nil)
			for at := 1; at <= calls; at++ {
				for _, f := range []fault{unsent, unheard} {
					got, _ := end(t, s, refuse, func(call int) fault {
						if call == at {
							return f
						}
						return none
					})
					if got != want {
						t.Errorf("%v cut at call %d (%d): got %s, want %s", s, at, f, got, want)
					}
				}
			}
		}
	}
}

func end(t *testing.T, s []order.Command, refuse bool, lost func(int) fault) (ending string, calls int) {
	t.Helper()
	cut := &tap{Table: newTable(), lost: lost}
	p := order.New(cut, clock, func(order.Order) (string, bool) { return "no", refuse })
	for _, c := range s {
		answer, err := do(t, p, c)
		for errors.Is(err, errCut) {
			answer, err = do(t, p, c)
		}
		if err != nil {
			t.Fatalf("%v: %v", s, err)
		}
		ending += string(answer) + ", "
	}
	status, listed := seen(t, order.New(cut.Table, clock, nil))
	return fmt.Sprintf("%s%s, %d listed", ending, status, listed), cut.calls
}

// Whatever slips in between two steps of a command, the end is one that the two
// commands have one after the other, in one order or the other.
func TestACommandBetweenAnothersStepsIsBeforeOrAfterIt(t *testing.T) {
	commands := []order.Command{order.CommandCreate, order.CommandCancel}
	for _, prefix := range sequences(1) {
		for _, first := range commands {
			for _, second := range commands {
				legal := [2]string{run(t, prefix, first, second, 0), run(t, prefix, second, first, 0)}
				for at := 1; at <= 3; at++ {
					if got := run(t, prefix, first, second, at); got != legal[0] && got != legal[1] {
						t.Errorf("%v, then %s in call %d of %s: got %s, want one of %v", prefix, second, at, first, got, legal)
					}
				}
			}
		}
	}
}

// run returns where it ends when second runs before call at of first, or after it
// when first has fewer calls; at 0 is one after the other.
func run(t *testing.T, prefix []order.Command, first, second order.Command, at int) string {
	t.Helper()
	table := newTable()
	sure := order.New(table, clock, nil)
	must := func(p *order.Participant, c order.Command) {
		if _, err := do(t, p, c); err != nil {
			t.Fatalf("%s: %v", c, err)
		}
	}
	for _, c := range prefix {
		must(sure, c)
	}
	slipped := false
	must(order.New(&tap{Table: table, before: func(call int) {
		if call == at {
			slipped = true
			must(sure, second)
		}
	}}, clock, nil), first)
	if !slipped {
		must(sure, second)
	}
	status, listed := seen(t, sure)
	return fmt.Sprintf("%q, %d listed", status, listed)
}
