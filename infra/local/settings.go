package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/kessai/kessai/internal/bootstrap"
)

// Keys and secrets of a local run. They are public, and everything is bound to
// the loopback address.
const (
	operatorKey     = "sk_test_operator"
	simulatorSecret = "whsec_a2Vzc2FpLWxvY2FsLXNpbXVsYXRvci1zZWNyZXQ="
	stripeSecret    = "whsec_local_stripe"
	adyenHMACKey    = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
	adyenAccount    = "KessaiTest"
)

// merchants by id, with their keys.
var merchants = map[string]string{"alpha": "sk_test_alpha", "beta": "sk_test_beta"}

// rejectPrefix begins the SKUs that the order step refuses, so that compensation
// after the charge can be seen.
const rejectPrefix = "reject-"

// settings is what the environment may change about a run.
type settings struct {
	apiPort, webhookPort, pspPort int
	environment                   *bootstrap.Environment
	durations                     bootstrap.Durations
}

// readSettings names everything that is wrong at once.
func readSettings() (settings, error) {
	defaults := append(bootstrap.DurationVariables(),
		bootstrap.Variable{Name: "LOG_LEVEL", Local: "INFO"}, bootstrap.Variable{Name: "API_PORT", Local: "3000"},
		bootstrap.Variable{Name: "WEBHOOK_PORT", Local: "3001"}, bootstrap.Variable{Name: "PSP_PORT", Local: "3002"})
	s := settings{environment: bootstrap.NewEnvironment(os.LookupEnv, defaults...)}
	s.durations = s.environment.Durations()
	s.apiPort = s.environment.Port("API_PORT")
	s.webhookPort = s.environment.Port("WEBHOOK_PORT")
	s.pspPort = s.environment.Port("PSP_PORT")
	s.environment.LogLevel()
	return s, s.environment.Err()
}

func loopback(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }

func (s settings) banner() string {
	return fmt.Sprintf(`ready  merchant API %s  webhooks %s/{psp}  PSP simulator %s
       console %s/console  (operator key %s)

curl -s %s/v1/payments -H 'Authorization: Bearer %s' -H 'Idempotency-Key: first' -d '{"amount":5000,"currency":"JPY","payment_method":"tok_captured","reference":"order-42"}'
`, loopback(s.apiPort), loopback(s.webhookPort), loopback(s.pspPort), loopback(s.apiPort), operatorKey, loopback(s.apiPort), merchants["alpha"])
}
