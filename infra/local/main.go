// Command local serves the whole product in one process: the real handler of
// every function on a store in memory, the saga from its state machine file, and
// a PSP simulator. Everything is bound to 127.0.0.1 and gone when it ends.
//
// It runs until Ctrl-C or SIGTERM. The environment moves its ports (API_PORT,
// WEBHOOK_PORT, PSP_PORT) and shortens its durations.
package main

import (
	"context"
	"errors"
	"fmt"
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
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	s, err := readSettings()
	if err != nil {
		return err
	}
	listeners, err := listen(s.apiPort, s.webhookPort, s.pspPort)
	if err != nil {
		return err
	}
	p, err := newProduct(ctx, s)
	if err != nil {
		return err
	}
	defer p.close()
	failed := make(chan error, len(listeners))
	servers := make([]*http.Server, len(listeners))
	for i, handler := range []http.Handler{p.api, p.webhooks, p.simulator} {
		servers[i] = &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout}
		go func() { failed <- servers[i].Serve(listeners[i]) }()
	}
	go p.sweep(ctx)
	fmt.Print(s.banner())
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	p.simulator.Close() // lets go of the calls that it never answers
	for _, server := range servers {
		shutdown, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		err = errors.Join(err, ignoreClosed(server.Shutdown(shutdown)))
		cancel()
	}
	return ignoreClosed(err)
}

const (
	headerTimeout   = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 2 * time.Second // what is under way then is in nobody's books anyway
)

// listen holds all addresses before anything starts, so that a port that is
// taken is told at once.
func listen(ports ...int) ([]net.Listener, error) {
	listeners := make([]net.Listener, 0, len(ports))
	for _, port := range ports {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			for _, open := range listeners {
				_ = open.Close()
			}
			return nil, fmt.Errorf("port %d: %w", port, err)
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
