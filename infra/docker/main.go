// Command docker is what `sam local` needs beside Docker's own images.
//
//	docker companion            makes tables and merchants, hands out the secrets, plays the PSP
//	docker template IN OUT      writes a built template for `sam local` from the one that `sam build` leaves
//
// What `sam local` does not run, nothing here pretends to: there is no function URL, no stream and no state machine.
// So payments take their outcome from the PSP's answer, those that end by a webhook stay as they are until somebody
// asks the PSP, and checkouts can't be started. `make run-aws` runs all of that.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "docker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	switch {
	case len(arguments) == 1 && arguments[0] == "companion":
		return accompany(ctx)
	case len(arguments) == 3 && arguments[0] == "template":
		return writeTemplate(arguments[1], arguments[2])
	}
	return errors.New("usage: docker companion | docker template IN OUT")
}
