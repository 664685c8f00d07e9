package e2e_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/kessai/kessai/infra/e2e"
)

// How many claims run at a time. They wait most of the time; but a slow product is
// busy with a few, and more would only wait for each other.
const (
	sideBySide     = "32"
	slowSideBySide = "10"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if !isSet("test.parallel") {
		n := sideBySide
		if slow() {
			n = slowSideBySide
		}
		if err := flag.Set("test.parallel", n); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func isSet(name string) bool {
	found := false
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

func slow() bool { return os.Getenv("E2E_SLOW") == "1" }

// TestProduct checks the product that the environment names.
func TestProduct(t *testing.T) {
	target := e2e.Local()
	if base, set := os.LookupEnv("E2E_BASE"); set {
		target.API = base
	} else {
		t.Skip("E2E_BASE is not set: there is no running product to check (make e2e starts one)")
	}
	for name, field := range map[string]*string{
		"E2E_WEBHOOK": &target.Webhook, "E2E_PSP": &target.PSP, "E2E_KEY_A": &target.KeyA, "E2E_KEY_B": &target.KeyB,
		"E2E_OPERATOR": &target.OperatorKey, "E2E_SIMULATOR_SECRET": &target.SimulatorSecret, "E2E_STRIPE_SECRET": &target.StripeSecret,
		"E2E_ADYEN_KEY": &target.AdyenKey, "E2E_ADYEN_ACCOUNT": &target.AdyenAccount,
	} {
		if value, set := os.LookupEnv(name); set {
			*field = value
		}
	}
	if slow() {
		target = target.Slow()
	}
	for name, field := range map[string]*time.Duration{
		"E2E_PAYMENT_EXPIRY": &target.Expiry, "E2E_PSP_TIMEOUT": &target.PSPTimeout, "E2E_WEBHOOK_TOLERANCE": &target.Tolerance,
		"E2E_PATIENCE": &target.Patience,
	} {
		value, set := os.LookupEnv(name)
		if !set {
			continue
		}
		length, err := time.ParseDuration(value)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		*field = length
	}
	e2e.Suite(t, target)
}
