package e2e

import (
	"net/http"
	"testing"
	"time"
)

// Target is a running product, and what a test may know of it.
type Target struct {
	API     string // address of the merchant API, without a slash at its end
	Webhook string // address of the webhook intake, without one too
	PSP     string // address of the PSP simulator, without one too

	KeyA, KeyB  string // API keys of two merchants
	OperatorKey string

	SimulatorSecret string // Standard Webhooks secret of the simulator
	StripeSecret    string
	AdyenKey        string // hexadecimal HMAC key
	AdyenAccount    string

	// Durations that the product runs with.
	Expiry, PSPTimeout, Tolerance time.Duration

	// Patience is how long to wait for what must come.
	Patience time.Duration
	// Pause is the time between two looks at what must come.
	Pause time.Duration
	// Buyers is how many come at once for the hot SKU.
	Buyers int
	// Crowd is how many requests a race has.
	Crowd int

	// Judge, when not nil, is shown every request to the merchant API and the
	// webhook address that its document describes, and its answer, each with its
	// body. It is called from several goroutines.
	Judge func(request *http.Request, sent []byte, response *http.Response, received []byte)
}

// Local is a product on its default addresses, with the keys and secrets of every
// local run and default durations.
func Local() Target {
	return Target{
		API: "http://127.0.0.1:3000", Webhook: "http://127.0.0.1:3001", PSP: "http://127.0.0.1:3002",
		KeyA: "sk_test_alpha", KeyB: "sk_test_beta", OperatorKey: "sk_test_operator",
		SimulatorSecret: "whsec_a2Vzc2FpLWxvY2FsLXNpbXVsYXRvci1zZWNyZXQ=", StripeSecret: "whsec_local_stripe",
		AdyenKey: "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056", AdyenAccount: "KessaiTest",
		Expiry: 30 * time.Minute, PSPTimeout: 10 * time.Second, Tolerance: 5 * time.Minute,
		Patience: 20 * time.Second, Pause: 25 * time.Millisecond, Buyers: 64, Crowd: 20,
	}
}

// Slow is t with the patience and the crowds for a product that takes half a
// second for each call of a function.
func (t Target) Slow() Target {
	t.Patience, t.Pause, t.Buyers, t.Crowd = 3*time.Minute, time.Second, 6, 6
	return t
}

// claim is one thing that must be so.
type claim struct {
	name  string
	check func(*testing.T, *stage)
}

// subject is claims about one thing.
type subject struct {
	name   string
	claims []claim
}

// lanes run side by side, the claims of each in sequence: each lane has switches
// of the simulator to itself.
var lanes = []subject{
	{"capture faults", captureFaults},
	{"cancel faults", cancelFaults},
	{"refund faults", refundFaults},
}

// alone are claims whose switches concern everybody.
var alone = []subject{
	{"held webhooks", heldWebhooks},
	{"charge faults", chargeFaults},
}

// together run side by side, all claims of all of them.
var together = []subject{
	{"idempotency", idempotency},
	{"payments", payments},
	{"tokens", tokens},
	{"capture", captures},
	{"cancel", cancels},
	{"refunds", refunds},
	{"disputes", disputes},
	{"late money", lateMoney},
	{"expiry", expiry},
	{"lists", lists},
	{"journal", journals},
	{"signatures", signatures},
	{"webhooks", webhooks},
	{"other PSPs", otherPSPs},
	{"operator", operators},
	{"secrets", secrets},
	{"bad input", badInput},
	{"access", access},
	{"races", races},
	{"stock", stocks},
	{"checkouts", checkouts},
	{"compensation", compensation},
	{"crowds", crowds},
	{"simulator", simulators},
	{"hygiene", hygiene},
}

// Suite checks all of it against one product.
func Suite(t *testing.T, target Target) {
	s := newStage(target)
	s.alpha.get(t, "/healthz").want(t, http.StatusOK)
	t.Run("lanes", func(t *testing.T) {
		for _, lane := range lanes {
			t.Run(lane.name, func(t *testing.T) {
				t.Parallel()
				lane.inSequence(t, s)
			})
		}
	})
	for _, one := range alone {
		t.Run(one.name, func(t *testing.T) { one.inSequence(t, s) })
	}
	t.Run("together", func(t *testing.T) {
		for _, one := range together {
			t.Run(one.name, func(t *testing.T) {
				t.Parallel()
				one.sideBySide(t, s)
			})
		}
	})
	t.Run("reset", func(t *testing.T) { resetForgets(t, s) })
}

func (o subject) inSequence(t *testing.T, s *stage) {
	for _, c := range o.claims {
		t.Run(c.name, func(t *testing.T) { c.check(t, s) })
	}
}

func (o subject) sideBySide(t *testing.T, s *stage) {
	for _, c := range o.claims {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t, s)
		})
	}
}
