package payment

import (
	"fmt"
	"strings"
)

// table is the whole state machine, a decision for every pair of event and
// status. A letter is the status that follows (Created, Processing,
// Requires_action, Authorized, capTured, Failed, canceLed, refunDed);
//
//	=  the status stays, the payment learns something
//	.  old news: a repeat or a late message, nothing changes
//	~  too early: it must wait until the payment has come further
//	-  illegal
//
// What an event does beside the status is in apply.go; it may turn "=" into "."
// when there is nothing to learn, and a refund that completes into refunDed.
var table = map[EventType]string{
	//                    created processing requires authorized captured failed canceled refunded
	EventSent:             "P       =          -        -          -        -      -        -",
	EventCaptureRequested: "-       -          -        =          -        -      -        -",
	EventCancelRequested:  "L       =          =        =          -        -      -        -",
	EventVoidSent:         "-       =          =        =          -        =      =        -",
	EventRefundRequested:  "-       -          -        -          =        =      =        =",
	EventRefundSent:       "-       -          -        -          =        =      =        =",

	EventPending:        "-       =          .        .          .        .      .        .",
	EventActionRequired: "-       R          .        .          .        .      .        .",
	EventAuthorized:     "-       A          A        .          .        =      =        .",
	EventCaptured:       "-       T          T        T          .        =      =        .",
	EventDeclined:       "-       F          F        .          .        .      =        .",
	EventVoided:         "-       L          L        L          .        =      =        .",
	EventAbsent:         "-       L          -        -          .        .      .        .",
	EventUnanswered:     "-       =          =        =          .        =      =        .",
	EventNotRun:         "-       =          =        =          .        =      =        .",
	EventMismatched:     "-       =          =        =          .        =      =        .",
	EventCaptureRefused: "-       .          .        =          .        .      .        .",
	EventVoidRefused:    "-       =          =        =          .        =      =        .",

	EventRefundPending:    "-       ~          ~        ~          =        =      =        =",
	EventRefundSucceeded:  "-       ~          ~        ~          =        =      =        =",
	EventRefundFailed:     "-       ~          ~        ~          =        =      =        =",
	EventRefundUnanswered: "-       -          -        -          =        =      =        =",
	EventDisputeOpened:    "-       ~          ~        ~          =        =      =        =",
	EventDisputeClosed:    "-       ~          ~        ~          =        =      =        =",
}

// Verdict is what the state machine says of an event in a status.
type Verdict int

// Verdicts. The zero value is Illegal, so that a forgotten pair is refused.
const (
	Illegal  Verdict = iota
	TooEarly         // wait for an earlier event of the same payment
	OldNews          // nothing changes, and that is a success
	Noted            // the status stays, the payment may change
	Moved            // the status changes
)

type transition struct {
	verdict Verdict
	to      Status
}

var transitions = parse()

func parse() map[EventType]map[Status]transition {
	letters := map[string]Status{
		"C": StatusCreated, "P": StatusProcessing, "R": StatusRequiresAction, "A": StatusAuthorized,
		"T": StatusCaptured, "F": StatusFailed, "L": StatusCanceled, "D": StatusRefunded,
	}
	signs := map[string]Verdict{"-": Illegal, "~": TooEarly, ".": OldNews, "=": Noted}
	all := make(map[EventType]map[Status]transition, len(table))
	for event, line := range table {
		cells := strings.Fields(line)
		all[event] = make(map[Status]transition, len(cells))
		for i, from := range Statuses() {
			t := transition{verdict: signs[cells[i]], to: from}
			if to, moves := letters[cells[i]]; moves {
				t = transition{verdict: Moved, to: to}
			}
			all[event][from] = t
		}
	}
	return all
}

// Next says what event means in status from, and the status that follows.
func Next(from Status, event EventType) (Status, Verdict) {
	t, known := transitions[event][from]
	if !known {
		return from, Illegal
	}
	return t.to, t.verdict
}

// TransitionError reports an event that cannot be applied in the payment's status.
type TransitionError struct {
	From  Status
	Event EventType
	Early bool // it may apply later; otherwise it never will
}

func (e *TransitionError) Error() string {
	if e.Early {
		return fmt.Sprintf("payment: %s comes too early in status %s", e.Event, e.From)
	}
	return fmt.Sprintf("payment: %s is illegal in status %s", e.Event, e.From)
}

// MismatchError reports what a PSP said that disagrees with the payment: money
// or references. It is never applied.
type MismatchError struct {
	Event EventType
	Field string // amount, currency, captured, psp_reference or refund
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("payment: %s disagrees about the %s", e.Event, e.Field)
}
