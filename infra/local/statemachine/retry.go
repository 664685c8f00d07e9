package statemachine

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Ranges and defaults of the fields of a retrier, as the service documents them.
const (
	maxSeconds          = 99_999_999 // also of every other duration of a definition
	maxRetryAttempts    = 99_999_999
	maxMaxDelaySeconds  = 31_622_400 // 366 days
	defaultInterval     = 1
	defaultMaxAttempts  = 3
	defaultBackoffRate  = 2.0
	jitterFull          = "FULL"
	jitterNone          = "NONE"
	lowestBackoffRate   = 1.0
	lowestRetryInterval = 1
)

// retrier is one element of Retry.
type retrier struct {
	errorEquals []string
	interval    int64 // seconds before the first retry
	maxAttempts int64 // retries, not counting the first try
	maxDelay    int64 // seconds, 0 for no limit
	backoffRate float64
	jitter      bool
}

// catcher is one element of Catch.
type catcher struct {
	errorEquals []string
	result      placement
	target      target
}

func parseRetry(o *object) []retrier {
	if !o.has("Retry") {
		return nil
	}
	items := o.list("Retry")
	retriers := make([]retrier, 0, len(items))
	seen := map[string]bool{}
	for i, item := range items {
		child, ok := newObject(element(pointer(o.at, "Retry"), i), item, o.problems)
		if !ok {
			continue
		}
		r := parseRetrier(child)
		r.errorEquals = parseErrorEquals(child, i == len(items)-1, seen)
		child.finish()
		retriers = append(retriers, r)
	}
	return retriers
}

func parseRetrier(o *object) retrier {
	o.comment()
	r := retrier{interval: defaultInterval, maxAttempts: defaultMaxAttempts, backoffRate: defaultBackoffRate}
	if n, ok := o.integer("IntervalSeconds", lowestRetryInterval, maxSeconds); ok {
		r.interval = n
	}
	if n, ok := o.integer("MaxAttempts", 0, maxRetryAttempts); ok {
		r.maxAttempts = n
	}
	if n, ok := o.integer("MaxDelaySeconds", 1, maxMaxDelaySeconds); ok {
		r.maxDelay = n
		if n <= r.interval {
			o.fail("MaxDelaySeconds", "must be greater than IntervalSeconds (%d)", r.interval)
		}
	}
	if v, ok := o.take("BackoffRate"); ok {
		r.backoffRate = parseBackoffRate(o, v)
	}
	if s, ok := o.text("JitterStrategy"); ok {
		r.jitter = s == jitterFull
		if s != jitterFull && s != jitterNone {
			o.fail("JitterStrategy", "must be %q or %q", jitterFull, jitterNone)
		}
	}
	return r
}

func parseBackoffRate(o *object, v any) float64 {
	text, ok := v.(number)
	rate, err := strconv.ParseFloat(string(text), 64)
	if !ok || err != nil || rate < lowestBackoffRate {
		o.fail("BackoffRate", "must be a number of at least %g", lowestBackoffRate)
		return defaultBackoffRate
	}
	return rate
}

func parseCatch(o *object) []catcher {
	if !o.has("Catch") {
		return nil
	}
	items := o.list("Catch")
	catchers := make([]catcher, 0, len(items))
	seen := map[string]bool{}
	for i, item := range items {
		child, ok := newObject(element(pointer(o.at, "Catch"), i), item, o.problems)
		if !ok {
			continue
		}
		child.comment()
		c := catcher{
			errorEquals: parseErrorEquals(child, i == len(items)-1, seen),
			result:      child.placement(),
			target:      child.target("Next"),
		}
		child.finish()
		catchers = append(catchers, c)
	}
	return catchers
}

// parseErrorEquals reads the names of one retrier or catcher. A name that an
// earlier one of the same list has is refused, since it could never be used.
func parseErrorEquals(o *object, last bool, seen map[string]bool) []string {
	const field = "ErrorEquals"
	items := o.list(field)
	names := make([]string, 0, len(items))
	for i, item := range items {
		at := element(pointer(o.at, field), i)
		name, ok := item.(string)
		switch {
		case !ok || name == "":
			o.problems.add(at, "must be a non-empty string")
		case name == errAll && (len(items) > 1 || !last):
			o.problems.add(at, "%s must be alone and in the last element", errAll)
		case name == errRuntime:
			o.problems.add(at, "%s can be neither retried nor caught", errRuntime)
		case strings.HasPrefix(name, reservedErrorPrefix) && !slices.Contains(nameableErrors, name):
			o.problems.add(at, "%q is no error that a Task can have here", name)
		case seen[name]:
			o.problems.add(at, "%q is already covered by an earlier element", name)
		}
		seen[name] = true
		names = append(names, name)
	}
	return names
}

// retries counts the retries of one visit of a state, per retrier.
type retries struct {
	retriers []retrier
	used     []int64
}

func newRetries(retriers []retrier) *retries {
	return &retries{retriers: retriers, used: make([]int64, len(retriers))}
}

// next says how long to wait before trying again, or that there is no retry:
// the first retrier that matches decides, even when it is used up.
func (r *retries) next(name string, jitter func(time.Duration) time.Duration) (time.Duration, bool) {
	for i, retrier := range r.retriers {
		if !matches(retrier.errorEquals, name) {
			continue
		}
		if r.used[i] >= retrier.maxAttempts {
			return 0, false
		}
		delay := retrier.delay(r.used[i])
		r.used[i]++
		if retrier.jitter {
			delay = min(max(jitter(delay), 0), delay)
		}
		return delay, true
	}
	return 0, false
}

// delay is the back-off before the next retry, of which there were done before.
func (r retrier) delay(done int64) time.Duration {
	limit := float64(maxSeconds)
	if r.maxDelay > 0 {
		limit = float64(r.maxDelay)
	}
	seconds := float64(r.interval) * math.Pow(r.backoffRate, float64(done))
	return time.Duration(min(seconds, limit) * float64(time.Second))
}
