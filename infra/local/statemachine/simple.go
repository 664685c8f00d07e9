package statemachine

import (
	"context"
	"time"
)

// wait is a Wait state of a fixed number of seconds, or of one from the input.
type wait struct {
	input, output selection
	seconds       int64
	secondsPath   *path
	transition    target
}

func parseWait(o *object) *wait {
	w := &wait{input: o.selection("InputPath"), output: o.selection("OutputPath"), transition: o.transition()}
	if o.has("Seconds") == o.has("SecondsPath") {
		o.problems.add(o.at, "needs either Seconds or SecondsPath")
	}
	w.seconds, _ = o.integer("Seconds", 0, maxSeconds)
	if p, ok := o.path("SecondsPath", false); ok {
		w.secondsPath = &p
	}
	return w
}

func (*wait) kind() string        { return "Wait" }
func (w *wait) targets() []target { return []target{w.transition} }

func (w *wait) run(ctx context.Context, x *execution, in any) (step, error) {
	effective, err := w.input.apply(x, in)
	if err != nil {
		return step{}, err
	}
	seconds := w.seconds
	if w.secondsPath != nil {
		v, err := x.resolve(*w.secondsPath, effective)
		if err != nil {
			return step{}, err
		}
		var ok bool
		if seconds, ok = wholeNumber(v); !ok || seconds < 0 || seconds > maxSeconds {
			return step{}, x.failf(errRuntime, "SecondsPath %s must lead to a whole number from 0 to %d", w.secondsPath.text, maxSeconds)
		}
	}
	if err := sleep(ctx, time.Duration(seconds)*time.Second); err != nil {
		return step{}, err
	}
	out, err := w.output.apply(x, effective)
	return step{output: out, next: w.transition.state}, err
}

// pass is a Pass state: its result is Result, the filled Parameters, or its input.
type pass struct {
	input, output selection
	hasResult     bool
	fixed         any
	parameters    *template
	result        placement
	transition    target
}

func parsePass(o *object) *pass {
	s := &pass{
		input:      o.selection("InputPath"),
		output:     o.selection("OutputPath"),
		result:     o.placement(),
		transition: o.transition(),
	}
	s.fixed, s.hasResult = o.take("Result")
	if v, ok := o.take("Parameters"); ok {
		s.parameters = parseTemplate(pointer(o.at, "Parameters"), v, o.problems)
		if s.hasResult {
			o.fail("Parameters", "must not be beside Result")
		}
	}
	return s
}

func (*pass) kind() string        { return "Pass" }
func (s *pass) targets() []target { return []target{s.transition} }

func (s *pass) run(_ context.Context, x *execution, in any) (step, error) {
	result, err := s.input.apply(x, in)
	if err != nil {
		return step{}, err
	}
	if s.hasResult {
		result = s.fixed
	}
	if s.parameters != nil {
		if result, err = s.parameters.fill(x, result); err != nil {
			return step{}, err
		}
	}
	out, err := s.result.apply(x, in, result)
	if err != nil {
		return step{}, err
	}
	out, err = s.output.apply(x, out)
	return step{output: out, next: s.transition.state}, err
}

// succeed is a Succeed state.
type succeed struct{ input, output selection }

func parseSucceed(o *object) *succeed {
	return &succeed{input: o.selection("InputPath"), output: o.selection("OutputPath")}
}

func (*succeed) kind() string      { return "Succeed" }
func (*succeed) targets() []target { return []target{{}} }

func (s *succeed) run(_ context.Context, x *execution, in any) (step, error) {
	out, err := s.input.apply(x, in)
	if err != nil {
		return step{}, err
	}
	out, err = s.output.apply(x, out)
	return step{output: out}, err
}

// fail is a Fail state. Both of its texts may be fixed, come from a path, or be
// absent.
type fail struct{ name, cause failText }

type failText struct {
	fixed string
	field string
	path  *path
}

func parseFail(o *object) *fail {
	return &fail{name: o.failText("Error"), cause: o.failText("Cause")}
}

func (o *object) failText(field string) failText {
	pathField := field + "Path"
	t := failText{field: pathField}
	t.fixed, _ = o.text(field)
	if p, ok := o.path(pathField, true); ok {
		t.path = &p
	}
	if o.has(field) && o.has(pathField) {
		o.fail(pathField, "must not be beside %s", field)
	}
	return t
}

func (*fail) kind() string      { return "Fail" }
func (*fail) targets() []target { return []target{{}} }

func (s *fail) run(_ context.Context, x *execution, in any) (step, error) {
	name, err := s.name.from(x, in)
	if err != nil {
		return step{}, err
	}
	cause, err := s.cause.from(x, in)
	if err != nil {
		return step{}, err
	}
	return step{}, newFailure(name, cause)
}

func (t failText) from(x *execution, in any) (string, error) {
	if t.path == nil {
		return t.fixed, nil
	}
	v, err := x.resolve(*t.path, in)
	if err != nil {
		return "", err
	}
	text, ok := v.(string)
	if !ok {
		return "", x.failf(errRuntime, "%s %s must lead to a string", t.field, t.path.text)
	}
	return text, nil
}
