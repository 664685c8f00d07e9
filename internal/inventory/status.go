package inventory

import "fmt"

// Status is how far a checkout's reservation is, and what a command answers.
type Status string

// Statuses of a reservation. None is the absence of a record.
const (
	None       Status = ""
	Reserved   Status = "reserved"
	OutOfStock Status = "out_of_stock"
	Released   Status = "released"
	Sold       Status = "sold"
)

// Command is what can be asked of a reservation.
type Command string

// Commands of a reservation.
const (
	Reserve Command = "reserve"
	Release Command = "release"
	Sell    Command = "sell"
)

// move is where a command leads. One that stays writes nothing.
type move struct{ to, answer Status }

// moves is the table in the package's description; a pair that is absent is illegal.
var moves = map[Command]map[Status]move{
	Reserve: {
		None:       {Reserved, Reserved}, // or OutOfStock, if the stock says so
		Reserved:   {Reserved, Reserved},
		OutOfStock: {OutOfStock, OutOfStock},
		Released:   {Released, Released},
		Sold:       {Sold, Reserved},
	},
	Release: {
		None:       {Released, Released},
		Reserved:   {Released, Released},
		OutOfStock: {OutOfStock, Released},
		Released:   {Released, Released},
	},
	Sell: {
		Reserved: {Sold, Sold},
		Sold:     {Sold, Sold},
	},
}

// next returns the move of a command on a status, or an *IllegalError.
func next(c Command, at Status) (move, error) {
	m, ok := moves[c][at]
	if !ok {
		return move{}, &IllegalError{Command: c, Status: at}
	}
	return m, nil
}

// IllegalError says that a command can't follow what already happened: stock sold
// without being held, or given back after the sale. No repeat will heal it.
type IllegalError struct {
	Command Command
	Status  Status
}

func (e *IllegalError) Error() string {
	status := e.Status
	if status == None {
		status = "absent"
	}
	return fmt.Sprintf("inventory: %s of a reservation that is %s", e.Command, status)
}

// Is makes every IllegalError match ErrIllegal.
func (e *IllegalError) Is(target error) bool { return target == ErrIllegal }
