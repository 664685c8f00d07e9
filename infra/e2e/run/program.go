package main

import (
	"fmt"
	"net"
	"strings"
)

// program is a way to run the product.
type program struct {
	source    string
	durations []string // for the product, short enough to see what they bound
	suite     []string // for the suite, beside addresses and durations
	aws       bool     // it has a DynamoDB
}

var programs = map[string]program{
	"local": {
		source: "./infra/local",
		durations: []string{
			"PAYMENT_EXPIRY=12s", "PSP_TIMEOUT=2s", "RECONCILE_AFTER=500ms", "RECONCILE_EVERY=500ms", "LEASE_TTL=8s", "IN_PROGRESS_TTL=8s",
		},
	},
	// A call of a function takes up to half a second there, and the suite has many at a time.
	"aws": {
		source: "./infra/emulator",
		durations: []string{
			"PAYMENT_EXPIRY=45s", "PSP_TIMEOUT=3s", "RECONCILE_AFTER=3s", "RECONCILE_EVERY=3s", "LEASE_TTL=15s", "IN_PROGRESS_TTL=15s",
		},
		suite: []string{"E2E_SLOW=1"},
		aws:   true,
	},
}

// suiteEnvironment tells the suite where the product is and how it runs.
func (p program) suiteEnvironment(ports ports) []string {
	environment := append([]string{
		"E2E_BASE=" + ports.address("API_PORT"), "E2E_WEBHOOK=" + ports.address("WEBHOOK_PORT"), "E2E_PSP=" + ports.address("PSP_PORT"),
	}, p.suite...)
	for _, d := range p.durations {
		if strings.HasPrefix(d, "PAYMENT_EXPIRY=") || strings.HasPrefix(d, "PSP_TIMEOUT=") {
			environment = append(environment, "E2E_"+d)
		}
	}
	return environment
}

// ports by the variables that set them.
type ports map[string]int

// freePorts are ports that were free a moment ago.
func freePorts() (ports, error) {
	all := ports{}
	for _, name := range []string{"API_PORT", "WEBHOOK_PORT", "PSP_PORT", "AWS_PORT"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer func() { _ = l.Close() }() // held until all are found, so that they differ
		all[name] = l.Addr().(*net.TCPAddr).Port
	}
	return all, nil
}

func (p ports) address(name string) string { return fmt.Sprintf("http://127.0.0.1:%d", p[name]) }

func (p ports) environment() []string {
	var all []string
	for name, port := range p {
		all = append(all, fmt.Sprintf("%s=%d", name, port))
	}
	return all
}
