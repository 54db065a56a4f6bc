// Command kivuko-bench measures Kivuko against the same Temporal server without Kivuko, against plain SQL
// and against bare HTTP, and prints one table. `make bench` builds what it needs and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"kivuko/dev/bench"
	"kivuko/dev/stack"
)

const exitUsage = 2

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := run(ctx, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(exitUsage)
	case err != nil:
		fmt.Fprintf(os.Stderr, "kivuko-bench: %v\n", err)
		os.Exit(1)
	}
}

// bareWorker is the argument with which this program runs the worker of the bare flows.
const bareWorker = "bare-worker"

func run(ctx context.Context, args []string) error {
	if len(args) == 1 && args[0] == bareWorker {
		c, err := stack.Dial(os.Getenv, "bench")
		if err != nil {
			return err
		}
		defer c.Close()
		return bench.Serve(ctx, c)
	}
	o, err := options(args)
	if err != nil {
		return err
	}
	// Keep as many connections open as the heaviest load has callers. With the default of two, each request would pay
	// for a connection.
	const callers = 100
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t.MaxIdleConnsPerHost = callers
	}
	return bench.Run(ctx, o)
}

func options(args []string) (bench.Options, error) {
	o := bench.Options{Out: os.Stdout, Env: os.Environ()}
	flags := flag.NewFlagSet("kivuko-bench", flag.ContinueOnError)
	flags.StringVar(&o.Root, "root", ".", "the checkout")
	flags.StringVar(&o.State, "state", "", "the directory of data and logs (default: a temporary one)")
	flags.BoolVar(&o.Quick, "quick", false, "one short round of everything")
	only := flags.String("only", "", "parts to run, with commas between: "+strings.Join(bench.PartNames(), ", "))
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	var err error
	if o.Root, err = filepath.Abs(o.Root); err != nil {
		return o, err
	}
	o.Product, o.Dev = filepath.Join(o.Root, "bin", "kivuko"), filepath.Join(o.Root, "bin", "kivuko-dev")
	o.Self, err = os.Executable()
	return o, err
}
