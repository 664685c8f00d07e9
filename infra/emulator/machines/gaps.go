package machines

import "strings"

// gap is a known difference between the emulator and the specification.
type gap struct {
	reason string
	shows  string // in the differences of the scenario, if it is this gap that makes them
}

// What the emulator does differently.
const (
	// nowhere is most of it: a path that leads nowhere is null instead of States.Runtime.
	nowhere = "a path that leads nowhere is null"
	// isNull follows from it: what is there and null counts as what is not there.
	isNull = "IsPresent is false of what is null"
	// endless is the machine's own TimeoutSeconds, which nobody looks at.
	endless = "the machine's TimeoutSeconds is not enforced"
	// version is the metadata of an invocation, of which only StatusCode and Payload are there.
	version = "the result of an invocation has no ExecutedVersion"
	// replaces is a ResultPath on an input that is no object: the input gives way to an object.
	replaces = "a ResultPath that does not fit the input replaces it"
	// seconds are checked by nobody: a wait for anything but a positive number is over at once.
	seconds = "a wait takes every value for its seconds"
	// floats are Python's, so digits beyond the seventeenth are lost. Amounts are integers, which keep theirs.
	floats = "a number with a fraction goes through a float"
)

// gaps by the name of the scenario. What no scenario can show, since time is held as a minimum: MaxDelaySeconds and
// JitterStrategy of a retrier are ignored, and no wait before a retry is longer than a minute.
var gaps = map[string]gap{
	"a Choice whose InputPath leads nowhere fails":                                        {nowhere, "status: got SUCCEEDED"},
	"a comparison of what is not there ends the execution":                                {nowhere, "status: got SUCCEEDED"},
	"IsNull of what is not there ends the execution":                                      {nowhere, "status: got SUCCEEDED"},
	"a Succeed state whose InputPath leads nowhere fails":                                 {nowhere, "status: got SUCCEEDED"},
	"a path in Parameters that leads nowhere ends the execution and is not caught":        {nowhere, `work({"id": null})`},
	"a path in ResultSelector that leads nowhere ends the execution":                      {nowhere, "status: got SUCCEEDED"},
	"an InputPath that leads nowhere ends the execution":                                  {nowhere, "status: got SUCCEEDED"},
	"an OutputPath that leads nowhere ends the execution":                                 {nowhere, "status: got SUCCEEDED"},
	"no path is applied to null":                                                          {nowhere, "status: got SUCCEEDED"},
	"a Wait state whose InputPath leads nowhere does not wait":                            {nowhere, "status: got SUCCEEDED"},
	"a wait for something that is not there is a runtime error":                           {nowhere, "status: got SUCCEEDED"},
	"null is present and null":                                                            {isNull, "states entered: got [Pick Default]"},
	"the machine's time-out ends the execution in a Wait state":                           {endless, "status: got SUCCEEDED"},
	"the machine's time-out ends the execution while it waits for a retry":                {endless, "status: got ABORTED"},
	"nothing catches the machine's time-out, not even at the moment of a task's own":      {endless, "states entered: got [Work Caught]"},
	"the five paths are applied in the order of the language":                             {version, `"version": null`},
	"the counters start anew when the state is entered again":                             {version, `"result": {"StatusCode": 200, "Payload": "at last"}`},
	"a catcher whose ResultPath does not fit the input fails the execution":               {replaces, "states entered: got [Work Kept]"},
	"a ResultPath that does not fit the input is a failure of its own that can be caught": {replaces, "states entered: got [Text Work]"},
	"a negative wait is a runtime error":                                                  {seconds, "status: got SUCCEEDED"},
	"a wait of part of a second is a runtime error":                                       {seconds, "status: got SUCCEEDED"},
	"a number of seconds in a string is a runtime error":                                  {seconds, "status: got SUCCEEDED"},
	"numbers go through as they were written":                                             {floats, `"exact": 1.2345678901234567e+19`},
}

// judge turns what a scenario came to into what is wrong, "" for nothing.
func judge(name string, differences []string) string {
	all := strings.Join(differences, "; ")
	known, listed := gaps[name]
	switch {
	case !listed:
		return all
	case all == "":
		return "holds, and is still listed as a gap (" + known.reason + "): take it off the list"
	case !strings.Contains(all, known.shows):
		return "differs in another way than its gap does (" + known.reason + "): " + all
	}
	return ""
}
