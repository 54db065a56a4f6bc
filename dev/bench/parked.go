package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	temporal "go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"kivuko/dev/stack"
	"kivuko/workflows"
)

// starters is the number of parallel starts of flows to park.
const starters = 10

// calm is the pause before memory is read.
const calm = 5 * time.Second

// parked measures the memory of a waiting flow against a bare flow that waits for a signal. It runs before
// the heavy loads, whose freed memory would hide the growth.
func (w *harness) parked(ctx context.Context, t *table) error {
	if err := w.login(ctx); err != nil {
		return err
	}
	n := 500
	if w.Quick {
		n = 100
	}
	for _, k := range w.kinds() { // fills every pool and cache
		if _, err := w.loop(ctx, k, starters, 0, calm); err != nil {
			return err
		}
	}
	bareWorker, bareServer, err := w.grow(ctx, n, processBare, w.parkBare)
	if err != nil {
		return err
	}
	control := "http://" + w.stack.Addresses.Momo + "/control/"
	if err := post(ctx, control+"faults", map[string]any{"behaviour": "never", "op": "prompt", "times": -1}); err != nil {
		return err
	}
	ourWorker, ourServer, err := w.grow(ctx, n, stack.ProcessWorker("flows"), w.parkOnRamp)
	if err != nil {
		return err
	}
	if err := post(ctx, control+"reset", map[string]any{}); err != nil {
		return err
	}
	for _, f := range []struct {
		name       string
		ours, bare float64
	}{
		{"worker", ourWorker, bareWorker}, {"Temporal server", ourServer, bareServer}, {"worker and server", ourWorker + ourServer, bareWorker + bareServer},
	} {
		t.add(figure{name: "memory of a parked on-ramp: " + f.name, unit: "KiB", ratio: f.ours, note: fmt.Sprintf("a bare parked flow: %.0f KiB; %d of each", f.bare, n)})
	}
	return nil
}

// grow parks flows, returns the growth of a worker and the server in KiB per flow, and ends the flows.
func (w *harness) grow(ctx context.Context, n int, process string, park func(context.Context) (string, error)) (worker, server float64, err error) {
	pause(ctx, calm)
	workerBefore, serverBefore := w.resident(process), w.resident(stack.ProcessTemporal)
	ids := make([]string, n)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(starters)
	for i := range n {
		group.Go(func() (err error) {
			ids[i], err = park(groupCtx)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, 0, err
	}
	pause(ctx, calm)
	each := func(before, after int64) float64 { return float64(after-before) / float64(n) / 1024 }
	worker, server = each(workerBefore, w.resident(process)), each(serverBefore, w.resident(stack.ProcessTemporal))
	group, groupCtx = errgroup.WithContext(ctx)
	group.SetLimit(starters)
	for _, id := range ids {
		group.Go(func() error {
			return w.temporal.TerminateWorkflow(groupCtx, id, "", "the benchmark has finished its measurement")
		})
	}
	return worker, server, group.Wait()
}

func (w *harness) parkBare(ctx context.Context) (string, error) {
	o := temporal.StartWorkflowOptions{ID: "parked:" + uuid.NewString(), TaskQueue: bareFlows}
	_, err := w.temporal.ExecuteWorkflow(ctx, o, typePark, newStep())
	return o.ID, err
}

func (w *harness) parkOnRamp(ctx context.Context) (string, error) {
	id, err := w.openOrder(ctx)
	return workflows.OnRampID(id), err
}
