// Command kivuko-soak runs Kivuko for a while with random failures, and checks the result. `make soak` builds its
// binaries and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"kivuko/dev/soak"
)

const exitUsage = 2

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	o, err := options(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(exitUsage)
	}
	if err == nil {
		err = soak.Run(ctx, o)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "kivuko-soak: %v\n", err)
		os.Exit(1)
	}
}

func options(args []string) (soak.Options, error) {
	o := soak.Options{Out: os.Stdout}
	flags := flag.NewFlagSet("kivuko-soak", flag.ContinueOnError)
	flags.StringVar(&o.Root, "root", ".", "the checkout")
	flags.StringVar(&o.State, "state", "", "the directory of data and logs (default: a temporary one)")
	flags.DurationVar(&o.For, "for", 10*time.Minute, "how long the plan lasts")
	flags.Uint64Var(&o.Seed, "seed", uint64(rand.Uint32()), "seed of the plan (default: a new one)") //nolint:gosec // G404: it names a plan
	only := flags.String("only", "", "the kind of all actions, for example swap (default: all kinds)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.Only = soak.Kind(*only); *only != "" && !o.Only.Known() {
		return o, fmt.Errorf("-only %q is no kind of action", *only)
	}
	var err error
	o.Root, err = filepath.Abs(o.Root)
	o.Product, o.Dev = filepath.Join(o.Root, "bin", "kivuko"), filepath.Join(o.Root, "bin", "kivuko-dev")
	return o, err
}
