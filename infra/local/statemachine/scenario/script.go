package scenario

import (
	"bytes"
	"fmt"
	"sync"
)

// Script gives the answers of a scenario's functions and writes down their
// calls. It is safe for concurrent use.
type Script struct {
	mu      sync.Mutex
	answers map[string][]Answer
	calls   []Call
}

// Script returns a fresh script of the scenario.
func (s *Scenario) Script() *Script {
	answers := make(map[string][]Answer, len(s.Functions))
	for function, list := range s.Functions {
		answers[function] = list
	}
	return &Script{answers: answers}
}

// Call takes the next answer of a function. It is an error when there is none
// left. Waiting for AfterSeconds is the caller's part.
func (p *Script) Call(function string, payload []byte) (Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, Call{Function: function, Payload: bytes.Clone(payload)})
	left := p.answers[function]
	if len(left) == 0 {
		return Answer{}, fmt.Errorf("the scenario has no answer left for the function %s", function)
	}
	if !left[0].Repeat {
		p.answers[function] = left[1:]
	}
	return left[0], nil
}

// Calls lists the calls so far, in order.
func (p *Script) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Call(nil), p.calls...)
}

// Left tells how many answers no call has taken; those that repeat do not count.
func (p *Script) Left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, answers := range p.answers {
		for _, a := range answers {
			if !a.Repeat {
				n++
			}
		}
	}
	return n
}
