// Command solananode runs Kivuko's Solana development node on its own.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"kivuko/dev/nodes/solana"
	"kivuko/dev/nodes/solana/programs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := solana.Command(ctx, os.Args[1:])
	var unavailable *programs.UnavailableError
	switch {
	case errors.As(err, &unavailable):
		slog.Error("no Solana node", "error", err)
		os.Exit(solana.ExitUnavailable)
	case err != nil && !errors.Is(err, flag.ErrHelp):
		slog.Error("solana node", "error", err)
		os.Exit(1)
	}
}
