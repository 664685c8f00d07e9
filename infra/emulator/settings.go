package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// region is where the emulator says it is. Nothing depends on which one.
const region = "us-east-1"

// stackName is the stage's name: function, bus and state machine names start with it.
const stackName = "kessai"

// settings is what the environment may change about a run.
type settings struct {
	awsPort, apiPort, webhookPort, pspPort int

	// parameters are the template's, as a deploy would pass them.
	parameters map[string]string

	// reconcileEvery is the sweep's schedule, which a test wants shorter than EventBridge Scheduler can.
	reconcileEvery time.Duration
}

// durations are the variables of the functions that a run passes through, with the template parameter of each.
var durations = []struct{ variable, parameter string }{
	{"IDEMPOTENCY_TTL", "IdempotencyTtl"},
	{"IN_PROGRESS_TTL", "InProgressTtl"},
	{"LEASE_TTL", "LeaseTtl"},
	{"PSP_TIMEOUT", "PspTimeout"},
	{"PAYMENT_EXPIRY", "PaymentExpiry"},
	{"RECONCILE_AFTER", "ReconcileAfter"},
	{"WEBHOOK_TOLERANCE", "WebhookTolerance"},
}

// readSettings reads the environment and names everything wrong with it at once.
func readSettings() (settings, error) {
	var faults []error
	port := func(name string, fallback int) int {
		text, set := os.LookupEnv(name)
		if !set {
			return fallback
		}
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 || number > 65535 {
			faults = append(faults, fmt.Errorf("%s=%q is no port", name, text))
		}
		return number
	}
	duration := func(name, fallback string) time.Duration {
		text, set := os.LookupEnv(name)
		if !set {
			text = fallback
		}
		length, err := time.ParseDuration(text)
		if err != nil || length <= 0 {
			faults = append(faults, fmt.Errorf("%s=%q is no length of time", name, text))
		}
		return length
	}
	s := settings{
		awsPort:        port("AWS_PORT", 4566),
		apiPort:        port("API_PORT", 3000),
		webhookPort:    port("WEBHOOK_PORT", 3001),
		pspPort:        port("PSP_PORT", 3002),
		reconcileEvery: duration("RECONCILE_EVERY", "1m"),
	}
	s.parameters = map[string]string{"DefaultPsp": "simulator", "SimulatorUrl": s.pspURL(), "LocalEndpoints": "true", "OrderRejectPrefix": "reject-"}
	for _, d := range durations {
		if text, set := os.LookupEnv(d.variable); set {
			duration(d.variable, "")
			s.parameters[d.parameter] = text
		}
	}
	for variable, parameter := range map[string]string{"LOG_LEVEL": "LogLevel", "WORKFLOW_TYPE": "WorkflowType"} {
		if text, set := os.LookupEnv(variable); set {
			s.parameters[parameter] = text
		}
	}
	return s, errors.Join(faults...)
}

func (s settings) awsURL() string     { return loopback(s.awsPort) }
func (s settings) apiURL() string     { return loopback(s.apiPort) }
func (s settings) webhookURL() string { return loopback(s.webhookPort) }
func (s settings) pspURL() string     { return loopback(s.pspPort) }

func loopback(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

// workDir holds what a run makes: zips and the emulator's log. It is named for the port, so that runs beside each
// other don't write into each other's files.
func (s settings) workDir() string { return fmt.Sprintf(".build/aws-%d", s.awsPort) }
