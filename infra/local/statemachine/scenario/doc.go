// Package scenario reads test scenarios of state machines: what goes in, what
// the functions answer, and what has to come out. It knows no runner, so the same
// files prove an interpreter, an emulator and the service itself.
//
// A file is one JSON object:
//
//	{
//	  "definition": {…} or "definition_file": "path from the scenario file",
//	  "substitutions": {"Name": "value"},
//	  "scenarios": [{
//	    "name": "a plain claim, unique in the folder",
//	    "why": "the rule behind it, optional",
//	    "runners": ["interpreter"],
//	    "definition", "definition_file", "substitutions": instead of the file's,
//	    "input": {}, the default
//	    "functions": {"function name": [
//	      {"return": {…}},
//	      {"error": {"name": "CardDeclined", "message": "…"}},
//	      {"after_seconds": 3, "return": {…}, "repeat": true}
//	    ]},
//	    "expect": {
//	      "status": "SUCCEEDED", "FAILED", "TIMED_OUT" or "ABORTED",
//	      "output": {…}, "error": "States.Runtime", "cause": "a part of it",
//	      "states": ["every", "state", "entered", "in order"],
//	      "max_states": 5,
//	      "calls": [{"function": "…", "payload": {…}}],
//	      "elapsed_seconds": 4.5
//	    }
//	  }]
//	}
//
// Functions are named as FunctionName is after substitution. Each call takes the
// next answer; one with "repeat" stays for every later call; a call beyond the
// last answer is a failure of the scenario. "runners" lists who may run a
// scenario where the service itself is known or suspected to say something else
// than the specification; without it everybody can. In "output" and "payload" the
// string "{any}" stands for any value. What "expect" does not have is not compared,
// but "status" and "states" are required.
//
// # Runners
//
// The runner "interpreter" is package statemachine, in the tests of that package
// and of infra/statemachines: in fake time, and every scenario. The runner
// "emulator" is package infra/emulator/machines, in make e2e: in real time, so
// that "elapsed_seconds" is a minimum there and what takes long is left out, and
// with a list of the scenarios of which the emulator is known to make something else.
package scenario
