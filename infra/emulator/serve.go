package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// closeLimit is how long requests under way may take once the program is told to stop.
const closeLimit = 2 * time.Second

// listen opens a port on the loopback address, before anything slow is begun, so that a port in use is found at once.
func listen(name string, port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return listener, nil
}

// serve answers on the listener until ctx ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) (stop func()) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) }}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.ErrorContext(ctx, "address no longer served", "address", listener.Addr().String(), "error", err)
		}
	}()
	return func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		if server.Shutdown(closing) != nil {
			_ = server.Close() // what is still under way is cut off
		}
	}
}

// forward sends every request to the emulator under the host name that AWS would give the API or the function URL,
// since that name is how the emulator finds it. Path, query and body pass unchanged.
func forward(s settings, place string) (http.Handler, error) {
	public, err := url.Parse(place)
	if err != nil || public.Host == "" {
		return nil, fmt.Errorf("address %q of the stack: %w", place, err)
	}
	target, err := url.Parse(s.awsURL())
	if err != nil {
		return nil, fmt.Errorf("address of the emulator: %w", err)
	}
	return &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(target)
			request.Out.Host = public.Host
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			slog.WarnContext(r.Context(), "emulator not reached", "error", err)
			w.WriteHeader(http.StatusBadGateway)
		},
	}, nil
}
