package statemachine

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// lambdaInvoke is the one integration that a Task may use.
const lambdaInvoke = "arn:aws:states:::lambda:invoke"

// task is a Task state that invokes a Lambda function.
type task struct {
	name       string // of the function
	function   Function
	input      selection
	payload    template
	selector   *template
	result     placement
	output     selection
	timeout    time.Duration // of each attempt, 0 for none
	retriers   []retrier
	catchers   []catcher
	transition target
}

func parseTask(o *object, functions map[string]Function) *task {
	t := &task{
		input:      o.selection("InputPath"),
		result:     o.placement(),
		output:     o.selection("OutputPath"),
		retriers:   parseRetry(o),
		catchers:   parseCatch(o),
		transition: o.transition(),
	}
	if resource, ok := o.needText("Resource"); ok && resource != lambdaInvoke {
		o.fail("Resource", "only %s is supported, not %q", lambdaInvoke, resource)
	}
	if seconds, ok := o.integer("TimeoutSeconds", 1, maxSeconds); ok {
		t.timeout = time.Duration(seconds) * time.Second
	}
	if v, ok := o.need("Parameters"); ok {
		t.parseParameters(pointer(o.at, "Parameters"), v, o.problems, functions)
	}
	if v, ok := o.take("ResultSelector"); ok {
		at := pointer(o.at, "ResultSelector")
		t.selector = parseTemplate(at, v, o.problems)
		checkResultPaths(at, t.selector, o.problems)
	}
	return t
}

// parseParameters reads the arguments of the Invoke call: a fixed FunctionName,
// and a Payload in full or from a path.
func (t *task) parseParameters(at string, v any, p *problems, functions map[string]Function) {
	o, ok := newObject(at, v, p)
	if !ok {
		return
	}
	if t.name, ok = o.needText("FunctionName"); ok {
		if t.function = functions[t.name]; t.function == nil {
			o.fail("FunctionName", "there is no function %q", t.name)
		}
	}
	payload := map[string]any{}
	for _, field := range []string{"Payload", "Payload" + pathSuffix} {
		if v, ok := o.take(field); ok {
			payload[field] = v
		}
	}
	if len(payload) == 0 {
		o.fail("Payload", "is required")
	}
	t.payload = parseTemplateFields(at, payload, p)
	o.finish()
}

// invokeResult are the fields of an invocation's result that exist here. On AWS
// there are SdkHttpMetadata and SdkResponseMetadata too.
var invokeResult = []string{"ExecutedVersion", "Payload", "StatusCode"}

// checkResultPaths refuses a ResultSelector that reads what only AWS has.
func checkResultPaths(at string, t *template, p *problems) {
	if t == nil {
		return
	}
	if s := t.source; s != nil && !s.context && (s.root() || !slices.Contains(invokeResult, s.steps[0])) {
		p.add(at, "%s: only %v of an invocation's result are there", s.text, invokeResult)
	}
	for name, field := range t.fields {
		checkResultPaths(pointer(at, name), &field, p)
	}
	for i := range t.items {
		checkResultPaths(element(at, i), &t.items[i], p)
	}
}

func (t *task) collectErrorNames(names map[string]bool) {
	for _, r := range t.retriers {
		for _, name := range r.errorEquals {
			names[name] = true
		}
	}
	for _, c := range t.catchers {
		for _, name := range c.errorEquals {
			names[name] = true
		}
	}
}

func (*task) kind() string { return "Task" }

func (t *task) targets() []target {
	all := []target{t.transition}
	for _, c := range t.catchers {
		all = append(all, c.target)
	}
	return all
}

// run tries the task until it succeeds or its retries are used up, and then
// looks for a catcher. The counters of the retries live as long as this visit.
func (t *task) run(ctx context.Context, x *execution, in any) (step, error) {
	retries := newRetries(t.retriers)
	for {
		out, err := t.attempt(ctx, x, in)
		if err == nil {
			return step{output: out, next: t.transition.state}, nil
		}
		f, ok := err.(*failure) //nolint:errorlint // a wrapped failure would be a mistake of this package
		if !ok {
			return step{}, err
		}
		x.noteError(f)
		delay, again := retries.next(f.name, x.machine.jitter)
		if !again {
			return t.catch(x, in, f)
		}
		if err := sleep(ctx, delay); err != nil {
			return step{}, err
		}
		x.retryCount++
	}
}

// attempt is one try, from the raw input to the output of the state.
func (t *task) attempt(ctx context.Context, x *execution, in any) (any, error) {
	payload, err := t.arguments(x, in)
	if err != nil {
		return nil, err
	}
	result, err := t.invoke(ctx, x, payload)
	if err != nil {
		return nil, err
	}
	if t.selector != nil {
		if result, err = t.selector.fill(x, result); err != nil {
			return nil, err
		}
	}
	out, err := t.result.apply(x, in, result)
	if err != nil {
		return nil, err
	}
	if out, err = t.output.apply(x, out); err != nil {
		return nil, err
	}
	_, err = x.encode(out, "its output")
	return out, err
}

// arguments builds the payload; the quota counts all of the Parameters.
func (t *task) arguments(x *execution, in any) ([]byte, error) {
	effective, err := t.input.apply(x, in)
	if err != nil {
		return nil, err
	}
	filled, err := t.payload.fill(x, effective)
	if err != nil {
		return nil, err
	}
	fields := filled.(map[string]any)
	payload := fields["Payload"]
	fields["FunctionName"] = t.name
	if _, err := x.encode(fields, "its input after Parameters"); err != nil {
		return nil, err
	}
	return x.encode(payload, "its payload")
}

// invoke calls the function and waits for its answer, at most for the time
// that an attempt has.
func (t *task) invoke(ctx context.Context, x *execution, payload []byte) (any, error) {
	if err := x.countEvents(eventsPerAttempt); err != nil {
		return nil, err
	}
	x.noteAttempt()
	answered := x.invoke(t.function, payload)
	alarm, stop := alarmFor(ctx, t.timeout)
	defer stop()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-alarm:
		return nil, x.failf(errTimeout, "the function %s did not answer within %s", t.name, t.timeout)
	case a := <-answered:
		if ctx.Err() != nil { // the answer to an ended execution is not news
			return nil, context.Cause(ctx)
		}
		if a.failed != nil {
			return nil, functionFailure(*a.failed)
		}
		return t.resultOf(x, a.payload)
	}
}

// resultOf wraps an answer as the Invoke integration does.
func (t *task) resultOf(x *execution, answer []byte) (any, error) {
	var payload any
	if len(answer) > 0 {
		var err error
		if payload, err = decodeValue(answer); err != nil {
			return nil, x.failf(errRuntime, "the function %s answered with no valid JSON: %v", t.name, err)
		}
	}
	result := map[string]any{"ExecutedVersion": "$LATEST", "Payload": payload, "StatusCode": number("200")}
	_, err := x.encode(result, fmt.Sprintf("the result of the function %s", t.name))
	return result, err
}

// catch hands the failure to the first catcher that matches. OutputPath has no
// say in it, and a failure to build the input of the next state is final.
func (t *task) catch(x *execution, in any, f *failure) (step, error) {
	for _, c := range t.catchers {
		if !matches(c.errorEquals, f.name) {
			continue
		}
		out, err := c.result.apply(x, in, f.output())
		if err != nil {
			return step{}, err
		}
		return step{output: out, next: c.target.state}, nil
	}
	return step{}, f
}
