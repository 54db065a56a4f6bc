package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// part is one group of figures.
type part struct {
	name  string
	stack bool // it loads the running stack; the others need only the database, or start what they need
	run   func(context.Context, *harness, *table) error
	long  bool // only where it is asked for by its name
}

// parts are in the order in which they disturb each other least: those that need only the database run
// before anything else is started.
func parts() []part {
	return []part{
		{name: "suites", run: suitesOf(storeSuite, apiSuite, uploadSuite)},
		{name: "deposits", run: suitesOf(depositSuite)},
		{name: "sending", run: suitesOf(sendingSuite)},
		{name: "load", run: underLoad},
		{name: "history", stack: true, run: func(ctx context.Context, w *harness, t *table) error { return w.histories(ctx, t) }},
		{name: "parked", stack: true, run: func(ctx context.Context, w *harness, t *table) error { return w.parked(ctx, t) }},
		{name: "opening", stack: true, run: func(ctx context.Context, w *harness, t *table) error { return w.opening(ctx, t) }},
		{name: "throughput", stack: true, run: func(ctx context.Context, w *harness, t *table) error { return w.throughput(ctx, t) }},
		{name: "selling", stack: true, run: func(ctx context.Context, w *harness, t *table) error { return w.selling(ctx, t) }},
		{name: "waiting", stack: true, long: true, run: func(ctx context.Context, w *harness, t *table) error { return w.waiting(ctx, t) }},
	}
}

// PartNames returns the valid names of Options.Only.
func PartNames() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// Run measures everything and prints the table. A missed goal is shown in the table and is no error.
func Run(ctx context.Context, o Options) (err error) {
	for _, name := range o.Only {
		if !slices.Contains(PartNames(), name) {
			return fmt.Errorf("there is no part %q; the parts are %v", name, PartNames())
		}
	}
	if o.State == "" {
		if o.State, err = stateDir(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.State)) }()
	}
	began := time.Now()
	w, err := open(ctx, o, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	t := &table{}
	var errs []error
	for _, p := range parts() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, p.name) || len(o.Only) == 0 && p.long {
			continue
		}
		w.say("\n== %s (%.0f s after the start)", p.name, time.Since(began).Seconds())
		err := w.ready(ctx, p)
		if err == nil {
			err = p.run(ctx, w, t)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
			if p.stack || ctx.Err() != nil { // the others on the stack would fail too
				break
			}
		}
	}
	w.say("\nAll ratios are of this run, in turns on the same machine. It took %.0f s.\n", time.Since(began).Seconds())
	return errors.Join(append(errs, t.print(o.Out))...)
}

func (w *harness) say(format string, args ...any) { w.stack.Supervisor.Say(format, args...) }
