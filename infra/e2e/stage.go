package e2e

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stage is one run of the suite against one product.
type stage struct {
	Target
	http   *http.Client
	run    string // names the run
	serial atomic.Int64

	alpha, beta, operator, nobody client // callers of the merchant API
	psp                           client // caller of the simulator
}

// callLimit is longer than the longest answer that may be held, which is 29 s.
const callLimit = 60 * time.Second

func newStage(target Target) *stage {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	s := &stage{
		Target: target,
		http: &http.Client{Transport: transport, Timeout: callLimit, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a redirect is an answer
		}},
		run: strconv.FormatInt(time.Now().Unix(), 36) + strings.ToLower(rand.Text()[:4]),
	}
	s.alpha = client{s, target.API, target.KeyA}
	s.beta = client{s, target.API, target.KeyB}
	s.operator = client{s, target.API, target.OperatorKey}
	s.nobody = client{s, target.API, ""}
	s.psp = client{s, target.PSP, ""}
	return s
}

// unique is a name that no other run and no other caller has: a reference, a key
// or a SKU.
func (s *stage) unique(kind string) string {
	return fmt.Sprintf("%s-%s-%d", kind, s.run, s.serial.Add(1))
}

// eventually looks again and again until look says that it has seen it, and fails
// the test when patience ends.
func (s *stage) eventually(t *testing.T, what string, look func() (seen bool, last any)) {
	t.Helper()
	var last any
	if !s.awaited(func() (seen bool) {
		seen, last = look()
		return seen
	}) {
		t.Fatalf("not within %s: %s; last seen: %+v", s.Patience, what, last)
	}
}

// awaited looks again and again until look has seen it, or patience ends.
func (s *stage) awaited(look func() bool) bool {
	deadline := time.NewTimer(s.Patience)
	defer deadline.Stop()
	ticker := time.NewTicker(s.Pause)
	defer ticker.Stop()
	for !look() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}

// shortExpiry skips a claim that would wait too long.
func (s *stage) shortExpiry(t *testing.T) {
	t.Helper()
	if s.Expiry > time.Minute {
		t.Skipf("PAYMENT_EXPIRY is %s, too long to wait for", s.Expiry)
	}
}

// atOnce calls do from n goroutines that start together, and returns what each
// came to. It must not be given anything that ends a test.
func atOnce[T any](n int, do func(i int) T) []T {
	results := make([]T, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			results[i] = do(i)
		})
	}
	close(start)
	all.Wait()
	return results
}

// count is how many of list hold.
func count[T any](list []T, holds func(T) bool) int {
	n := 0
	for _, one := range list {
		if holds(one) {
			n++
		}
	}
	return n
}
