// Command emulator serves the product from an AWS that runs on this machine: the real template, the real function
// binaries, DynamoDB with its stream, Step Functions, EventBridge, and IAM in force. Everything is bound to 127.0.0.1.
//
// It needs Go and Python 3, and the network once, to install the emulator into .venv. It is started from the
// repository's root and runs until Ctrl-C or SIGTERM, then leaves no process and no data behind. The environment moves
// its ports (AWS_PORT, API_PORT, WEBHOOK_PORT, PSP_PORT) and shortens the durations of the template; runs with other
// ports don't see each other.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "run-aws:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	s, err := readSettings()
	if err != nil {
		return err
	}
	doors, err := openDoors(s)
	if err != nil {
		return err
	}
	defer doors.close()
	if err := os.MkdirAll(s.workDir(), 0o755); err != nil {
		return fmt.Errorf("folder of the run: %w", err)
	}
	python, err := ensurePython(ctx)
	if err != nil {
		return err
	}
	fmt.Println("building functions")
	zips, err := buildFunctions(ctx, s.workDir())
	if err != nil {
		return err
	}
	aws, err := startEmulator(ctx, python, s)
	if err != nil {
		return err
	}
	defer aws.stop()
	fmt.Println("deploying", templateFile, "to", s.awsURL())
	deployed, err := deploy(ctx, s, zips)
	if err != nil {
		return err
	}

	running, stop := context.WithCancel(ctx)
	defer stop() // before the emulator, so that nothing calls it while it goes
	if err := prepare(running, s, deployed); err != nil {
		return err
	}
	closeDoors, err := openToPublic(running, s, deployed, doors)
	if err != nil {
		return err
	}
	defer closeDoors()
	if err := awaitHealth(running, s.apiURL()); err != nil {
		return err
	}
	banner(s)

	select {
	case <-ctx.Done():
		return keepLogs(context.WithoutCancel(ctx), s)
	case <-aws.ended:
		return fmt.Errorf("the emulator ended by itself (log in %s)", aws.logPath)
	}
}

// prepare brings the fresh stack to the state that users find: gaps made up for, secrets and merchants there.
func prepare(ctx context.Context, s settings, deployed stack) error {
	if err := enableExpiry(ctx, s, deployed); err != nil {
		return err
	}
	if err := clearIdentitySource(ctx, s, deployed); err != nil {
		return err
	}
	if err := seed(ctx, s, deployed); err != nil {
		return err
	}
	carrier := newCarrier(s)
	if err := carrier.takeOver(ctx); err != nil {
		return err
	}
	if !wholeMinutes(s.reconcileEvery) {
		for _, schedule := range deployed.schedules {
			go callEvery(ctx, s.reconcileEvery, schedule, carrier)
		}
	}
	return nil
}

// doors are the addresses of the product. They are held from the start and answer only at the end.
type doors struct {
	api, webhook, psp net.Listener
}

func openDoors(s settings) (doors, error) {
	var d doors
	for _, door := range []struct {
		name     string
		port     int
		listener *net.Listener
	}{{"API_PORT", s.apiPort, &d.api}, {"WEBHOOK_PORT", s.webhookPort, &d.webhook}, {"PSP_PORT", s.pspPort, &d.psp}} {
		listener, err := listen(door.name, door.port)
		if err != nil {
			d.close()
			return doors{}, err
		}
		*door.listener = listener
	}
	return d, nil
}

func (d doors) close() {
	for _, listener := range []net.Listener{d.api, d.webhook, d.psp} {
		if listener != nil {
			_ = listener.Close() // a server may have closed it
		}
	}
}

// openToPublic serves API, webhooks and the PSP simulator.
func openToPublic(ctx context.Context, s settings, deployed stack, d doors) (stop func(), err error) {
	api, err := forward(s, deployed.outputs["ApiUrl"])
	if err != nil {
		return nil, err
	}
	webhook, err := forward(s, deployed.outputs["WebhookUrl"])
	if err != nil {
		return nil, err
	}
	psp, closePSP, err := newPSP(s)
	if err != nil {
		return nil, err
	}
	stops := []func(){serve(ctx, d.api, api), serve(ctx, d.webhook, webhook), serve(ctx, d.psp, psp)}
	return func() {
		closePSP() // ends the calls that it never answers
		for _, stop := range stops {
			stop()
		}
	}, nil
}

// awaitHealth asks the API function itself, through everything in front of it.
func awaitHealth(ctx context.Context, apiURL string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	last := "no answer"
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, apiURL+"/healthz", nil)
		if err != nil {
			return fmt.Errorf("health: %w", err)
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			body, _ := io.ReadAll(io.LimitReader(answer.Body, 1000)) // a part of it is better than nothing
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			last = answer.Status + " " + string(body) // the emulator tells here why a function can't start
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("GET /healthz: %s", last)
		case <-time.After(time.Second):
		}
	}
}
