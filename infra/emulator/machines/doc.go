// Package machines holds the emulator's Step Functions to the scenarios of state machines: the same table that the
// embedded interpreter has to pass, and what the checkout machine must do. It is part of make e2e.
//
// # What is done
//
// For each scenario its definition is created as a state machine, each function that it names as a Lambda function of
// its own (program scripted), and an execution is started. The functions ask the script of their scenario over the
// loopback address what to answer. Status, output, error, cause, the states entered in the history and the payloads of
// the calls are compared; elapsed time is held as a minimum only. Afterwards everything is deleted, so that Run can be
// repeated on an emulator that goes on living.
//
// # What is left out
//
// Scenarios that take longer than LongestSeconds in real time, and those whose runners don't have "emulator". How many
// is said in the report.
//
// # Gaps
//
// Where the emulator is not what the specification says, gaps.go says so, scenario by scenario, with the reason and the
// difference that is seen. A scenario of that list has to fail in that way: one that holds, or that fails in another way,
// is reported just like one that is not listed and fails.
package machines
