package bootstrap_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kessai/kessai/internal/bootstrap"
)

// starts are all functions, each with what only it needs.
func starts(ctx context.Context) map[string]struct {
	needs []string
	start func() error
} {
	type function = struct {
		needs []string
		start func() error
	}
	core := []string{"PAYMENTS_TABLE", "LOG_LEVEL", "PSP_TIMEOUT", "PAYMENT_EXPIRY"}
	with := func(more ...string) []string { return append(more, core...) }
	return map[string]function{
		"api":            {with("DEFAULT_PSP", "STATE_MACHINE_ARN", "INVENTORY_TABLE", "ORDERS_TABLE", "NOTIFICATIONS_TABLE"), func() error { _, err := bootstrap.API(); return err }},
		"authorizer":     {[]string{"PAYMENTS_TABLE", "SECRETS_ID", "LOG_LEVEL"}, func() error { _, err := bootstrap.Authorizer(ctx); return err }},
		"webhook-ingest": {with("SECRETS_ID"), func() error { _, err := bootstrap.WebhookIngest(ctx); return err }},
		"webhook-apply":  {core, func() error { _, err := bootstrap.WebhookApply(); return err }},
		"outbox-relay":   {with("EVENT_BUS_NAME", "STATE_MACHINE_ARN"), func() error { _, err := bootstrap.OutboxRelay(); return err }},
		"event-delivery": {core, func() error { _, err := bootstrap.EventDelivery(); return err }},
		"saga-step":      {with("INVENTORY_TABLE"), func() error { _, err := bootstrap.SagaStep(); return err }},
		"reconcile":      {with("NOTIFICATIONS_TABLE", "STATE_MACHINE_ARN"), func() error { _, err := bootstrap.Reconcile(); return err }},
		"console":        {with("SECRETS_ID", "STATE_MACHINE_ARN"), func() error { _, err := bootstrap.Console(ctx); return err }},
		"inventory":      {[]string{"INVENTORY_TABLE"}, func() error { _, err := bootstrap.Inventory(); return err }},
		"orders":         {[]string{"ORDERS_TABLE"}, func() error { _, err := bootstrap.Orders(); return err }},
		"notifications":  {[]string{"NOTIFICATIONS_TABLE", "LOG_LEVEL"}, func() error { _, err := bootstrap.Notifications(); return err }},
	}
}

// without takes every variable of a function out of the environment, and points
// whatever it might call at a server that counts.
func without(t *testing.T) (called *atomic.Int64) {
	called = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Add(1) }))
	t.Cleanup(server.Close)
	for _, v := range bootstrap.DurationVariables() {
		t.Setenv(v.Name, "")
	}
	for _, name := range []string{
		"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "PAYMENTS_TABLE", "INVENTORY_TABLE", "ORDERS_TABLE", "NOTIFICATIONS_TABLE",
		"SECRETS_ID", "STATE_MACHINE_ARN", "EVENT_BUS_NAME", "DEFAULT_PSP", "LOG_LEVEL", "SIMULATOR_URL",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	return called
}

func TestF14_AFunctionThatCannotStartNamesEverySettingAndCallsNobody(t *testing.T) {
	called := without(t)
	for name, f := range starts(t.Context()) {
		err := f.start()
		if err == nil {
			t.Errorf("%s: got no error", name)
			continue
		}
		for _, setting := range append(f.needs, "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY") {
			if !strings.Contains(err.Error(), setting) {
				t.Errorf("%s: got %q, want %s in it", name, err, setting)
			}
		}
	}
	if n := called.Load(); n != 0 {
		t.Errorf("got %d calls, want none", n)
	}
}

// child tells this program to be a function that starts.
const child = "KESSAI_TEST_START"

func TestF14_AFunctionThatCannotStartEndsWithOneLineThatSaysWhy(t *testing.T) {
	if os.Getenv(child) != "" {
		bootstrap.Must(bootstrap.SagaStep())
		return
	}
	called := without(t)
	t.Setenv(child, "1")
	program := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	out, err := program.Output()
	if program.ProcessState == nil || program.ProcessState.ExitCode() != 1 {
		t.Fatalf("got %v, want exit code 1", err)
	}
	if lines := bytes.Count(out, []byte("\n")); lines != 1 || !bytes.Contains(out, []byte("function cannot start")) || !bytes.Contains(out, []byte("INVENTORY_TABLE")) {
		t.Errorf("got %q, want one line that says why", out)
	}
	if n := called.Load(); n != 0 {
		t.Errorf("got %d calls, want none", n)
	}
}
