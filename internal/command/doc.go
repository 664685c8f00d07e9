// Package command is how the saga speaks to a participant: one JSON object in,
// one JSON object out, and an error whose Go type says what to do about it.
//
// A participant's "no" (out of stock, order rejected) is a result like any other.
// An error means that there is no answer, and Step Functions knows it only by the
// name of its outermost Go type, so Serve returns exactly two:
//
//   - InvalidCommandError: the same command can never succeed. Not to be retried;
//     a person has to look.
//   - UnavailableError: the outcome is unknown. To be retried as it is; every
//     participant's command is safe to repeat.
//
// Anything else that Step Functions may see (a time-out, a crash) says as little
// as UnavailableError and is retried like it.
package command
