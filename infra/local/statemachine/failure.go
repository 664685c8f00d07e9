package statemachine

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Error names of the States Language that this interpreter raises or treats
// specially (https://states-language.net/spec.html, Appendix A, and "Handling
// errors in Step Functions workflows" in the AWS documentation).
const (
	errAll              = "States.ALL"
	errDataLimit        = "States.DataLimitExceeded"
	errNoChoiceMatched  = "States.NoChoiceMatched"
	errResultPathMatch  = "States.ResultPathMatchFailure"
	errRuntime          = "States.Runtime"
	errTaskFailed       = "States.TaskFailed"
	errTimeout          = "States.Timeout"
	reservedErrorPrefix = "States."
)

// nameableErrors are the reserved names which a Retry or Catch of a Task may
// list. States.Runtime is not one of them: nothing ever retries or catches it.
var nameableErrors = []string{
	errAll, errDataLimit, errResultPathMatch, errTaskFailed, errTimeout,
	"States.ParameterPathFailure", "States.Permissions",
}

// Quotas of the service on the two texts of an error, in bytes here.
const (
	maxErrorNameBytes = 256
	maxCauseBytes     = 32_768
)

// failure is a States Language error: what Retry and Catch see.
type failure struct{ name, cause string }

// Error makes a failure an error; the name comes first.
func (f *failure) Error() string { return f.name + ": " + f.cause }

func failf(name, format string, args ...any) *failure {
	return newFailure(name, fmt.Sprintf(format, args...))
}

func newFailure(name, cause string) *failure {
	return &failure{name: cut(name, maxErrorNameBytes), cause: cut(cause, maxCauseBytes)}
}

// cut shortens s to at most limit bytes of valid UTF-8.
func cut(s string, limit int) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return s
}

// output is the error output which a catcher hands to its next state.
func (f *failure) output() any {
	return map[string]any{"Error": f.name, "Cause": f.cause}
}

// matches reports whether an ErrorEquals list covers a failure's name.
// States.ALL covers all but States.DataLimitExceeded, States.TaskFailed all
// but that and States.Timeout, and nothing covers States.Runtime.
func matches(errorEquals []string, name string) bool {
	switch name {
	case errRuntime:
		return false
	case errDataLimit:
		return slices.Contains(errorEquals, name)
	}
	for _, e := range errorEquals {
		if e == name || e == errAll || e == errTaskFailed && name != errTimeout {
			return true
		}
	}
	return false
}
