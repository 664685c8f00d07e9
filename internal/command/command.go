package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
)

// answerMargin is the part of an invocation's time kept for the answer: an error
// told by name is worth more to the caller than being cut off.
const answerMargin = 250 * time.Millisecond

// Serve decodes one command strictly, runs it within the time that is left minus
// a margin to answer in, and encodes its result. The error is nil, an
// *InvalidCommandError when the payload is malformed or run's error is one of the
// final ones, or else an *UnavailableError. It is safe for concurrent use if run is.
func Serve[Command, Result any](
	ctx context.Context,
	payload []byte,
	run func(context.Context, Command) (Result, error),
	final ...error,
) ([]byte, error) {
	var c Command
	if err := json.Unmarshal(payload, &c, json.RejectUnknownMembers(true)); err != nil {
		return nil, &InvalidCommandError{Err: malformed(err)}
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-answerMargin))
		defer cancel()
	}
	result, err := run(ctx, c)
	if err != nil {
		return nil, named(err, final)
	}
	answer, err := json.Marshal(result)
	if err != nil {
		return nil, &InvalidCommandError{Err: err}
	}
	return answer, nil
}

// InvalidCommandError says that the command can never succeed as it is.
type InvalidCommandError struct{ Err error }

func (e *InvalidCommandError) Error() string { return "invalid command: " + e.Err.Error() }

// Unwrap returns what was wrong.
func (e *InvalidCommandError) Unwrap() error { return e.Err }

// UnavailableError says that the outcome is unknown and the command may be sent again.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return "unavailable: " + e.Err.Error() }

// Unwrap returns what stood in the way.
func (e *UnavailableError) Unwrap() error { return e.Err }

func named(err error, final []error) error {
	for _, f := range final {
		if errors.Is(err, f) {
			return &InvalidCommandError{Err: err}
		}
	}
	return &UnavailableError{Err: err}
}

// malformed says where the payload is wrong without quoting it: it may hold a
// customer's address, and the text ends up in an execution's history.
func malformed(err error) error {
	if errors.Is(err, json.ErrUnknownName) {
		return errors.New("unknown member")
	}
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		return fmt.Errorf("malformed at %q", string(semantic.JSONPointer)) // of members that are known
	}
	return errors.New("malformed JSON")
}

// maxIDLength is far above a prefix and a ULID (30) and far below a key's limit.
const maxIDLength = 64

// ValidID reports whether s can be an identifier of ours: 1 to 64 letters,
// digits, "_" or "-". Keys join identifiers with "#"; that none can hold one is
// what keeps two merchants' keys from meeting.
func ValidID(s string) bool {
	if s == "" || len(s) > maxIDLength {
		return false
	}
	for _, c := range []byte(s) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
