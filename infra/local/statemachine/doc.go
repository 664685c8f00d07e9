// Package statemachine runs a state machine definition in the Amazon States
// Language inside one process: the same file that AWS Step Functions runs in
// production, with Go functions in the place of Lambda functions.
//
// # Guarantees
//
// The interpreter is strict. Load refuses everything that it does not know,
// and everything that could not run, with the JSON Pointer of each offender; so a
// definition that loads here means the same on AWS, apart from the differences
// listed below. It refuses some things that AWS accepts but that are dead or
// doubtful: an error name that an earlier element of the list already has, an
// empty Retry or Catch, Result beside Parameters, States.Runtime in ErrorEquals,
// a state from which no end can be reached, a placeholder without a value.
//
// What it knows, all with the query language JSONPath: the states Task (only
// arn:aws:states:::lambda:invoke with a fixed FunctionName), Choice, Wait, Pass,
// Succeed and Fail; InputPath, Parameters, ResultSelector, ResultPath,
// OutputPath, Retry, Catch, TimeoutSeconds of a Task and of the machine; the
// choice operators And, Or, Not, StringEquals, BooleanEquals, IsNull, IsPresent
// and the five Numeric ones; the paths "$", "$.a.b", and "$$." with Execution.Id,
// Execution.Name, Execution.Input, Execution.StartTime, State.Name,
// State.EnteredTime and, in a Task, State.RetryCount.
//
// # Errors
//
// The semantics follow https://states-language.net/spec.html and the page
// "Handling errors in Step Functions workflows" of the AWS documentation:
//
//   - An error goes to the first retrier that matches, which decides even when
//     it is used up, and then to the first catcher that matches. The counters of the
//     retriers live as long as one visit of the state.
//   - States.TaskFailed matches everything but States.Timeout. Neither it nor
//     States.ALL matches States.DataLimitExceeded, which has to be named.
//     States.Runtime is never retried or caught.
//   - A path that leads nowhere is States.Runtime, as on the service, in
//     Parameters too, where the specification has States.ParameterPathFailure. A
//     ResultPath that does not fit the input is States.ResultPathMatchFailure.
//   - A TimeoutSeconds of a Task applies to each attempt and has no default; that
//     of the machine ends the execution as TIMED_OUT, and nothing catches it.
//   - Input, arguments, results and outputs have at most 262,144 bytes; more is
//     States.DataLimitExceeded.
//
// A Task that timed out, was stopped, or belongs to an execution whose machine
// timed out is only no longer waited for. Its function goes on, exactly as a
// Lambda function does, and whatever it writes after that is written: every
// function must expect that a zombie of itself is still at work.
//
// The name of a function's error is the name of the Go type of the outermost
// error, without package and pointer, because that is what aws-lambda-go reports:
// fmt.Errorf with %w makes it "wrapError", errors.New "errorString". A function
// converts last, to a named type. A panic is named after the type of its value in
// the same way ("string", "errorString", "boundsError"); there the process then
// exits, here it goes on. A function that ends its goroutine is
// "Runtime.ExitError", one that runs longer than Options.FunctionTimeout
// "Sandbox.Timedout", and an error of a type without a name "Lambda.Unknown". An
// error that has a method ErrorName() string, or is a messages.InvokeResponse_Error,
// is called what it says: this is for whoever stands in for Lambda itself
// ("Lambda.TooManyRequestsException"). On AWS a function cannot use ErrorName. The
// cause is Lambda's error response: errorMessage, errorType and, after a panic,
// stackTrace.
//
// # Differences from AWS
//
//   - A Choice where nothing holds and without Default fails with
//     States.NoChoiceMatched, the name in the specification and the documentation;
//     the service has been seen to report States.Runtime. Nothing can catch either.
//   - The documentation says that States.ALL does not catch
//     States.DataLimitExceeded; the service has been seen to catch that of a function's
//     result. A definition that needs it must name it, and then works everywhere.
//   - The result of an invocation has Payload, StatusCode and ExecutedVersion,
//     not the metadata of the SDK. Load refuses a ResultSelector that reads more.
//   - Load is told about every function, so Lambda.ResourceNotFoundException
//     cannot happen.
//   - There is no redrive, and executions do not survive the process.
//
// A Service adds the naming rules of STANDARD workflows: a name that is taken by
// a running execution with the same input is a success without effect, and every
// other use of a name within 90 days is ErrExecutionAlreadyExists.
package statemachine
