package psptest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
)

// Network joins one HTTP handler and a client without a network, so that both
// run in a testing/synctest bubble, where a minute of silence takes no time. The
// client and the server are those of net/http, connections included.
type Network struct {
	transport *http.Transport
	accepted  chan net.Conn
	closed    chan struct{}

	mu   sync.Mutex
	down bool
}

// Serve serves the handler until the test ends, to the client of the returned
// network, whatever host is asked for.
func Serve(t testing.TB, handler http.Handler) *Network {
	n := &Network{accepted: make(chan net.Conn), closed: make(chan struct{})}
	n.transport = &http.Transport{DialContext: n.dial}
	server := &http.Server{Handler: handler}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = server.Serve(n) // returns when the network is closed
	}()
	t.Cleanup(func() {
		_ = server.Close()
		n.transport.CloseIdleConnections()
		<-stopped
	})
	return n
}

// Client is a client of that server only.
func (n *Network) Client() *http.Client { return &http.Client{Transport: n.transport} }

// SetDown cuts idle connections and refuses new ones, or accepts them again.
func (n *Network) SetDown(down bool) {
	n.mu.Lock()
	n.down = down
	n.mu.Unlock()
	if down {
		n.transport.CloseIdleConnections()
	}
}

func (n *Network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	down := n.down
	n.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: name(address), Err: syscall.ECONNREFUSED}
	}
	client, server := net.Pipe()
	select {
	case n.accepted <- server:
		return client, nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept is net.Listener.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case conn := <-n.accepted:
		return conn, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close is net.Listener; the server calls it once.
func (n *Network) Close() error {
	close(n.closed)
	return nil
}

// Addr is net.Listener.
func (n *Network) Addr() net.Addr { return name("memory") }

// name is the address of an endpoint without a network.
type name string

func (n name) Network() string { return "memory" }
func (n name) String() string  { return string(n) }
