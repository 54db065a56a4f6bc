package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	temporal "go.temporal.io/sdk/client"

	"kivuko/workflows"
)

// maxOpening is the owner's goal: the median of opening an order, in medians of starting an empty flow.
const maxOpening = 2

// waits explains why opening an order takes longer than a start call.
const waits = "the response waits for the stored order: the flow's first task (the third line's floor), its transaction, and both writes of the idempotency key"

// opening compares the time of POST /orders with the start of an empty flow, one at a time and in turns.
// The order's time includes the check of the login, the claim of the idempotency key, the flow's first task
// with its transaction, and the read of the row.
func (w *harness) opening(ctx context.Context, t *table) error {
	if err := w.login(ctx); err != nil {
		return err
	}
	times := 40
	if w.Quick {
		times = 10
	}
	var orders, starts, ends, updates []time.Duration
	for range times {
		began := time.Now()
		id, err := w.openOrder(ctx)
		if err != nil {
			return err
		}
		orders = append(orders, time.Since(began))
		// Wait for the end, so that the rest of this flow does not slow the next ones.
		if err := completed(ctx, w.temporal.GetWorkflow(ctx, workflows.OnRampID(id), "")); err != nil {
			return err
		}
		start, end, err := w.startEmpty(ctx)
		if err != nil {
			return err
		}
		starts, ends = append(starts, start), append(ends, end)
		began = time.Now()
		run, err := w.startShape(ctx)
		if err != nil {
			return err
		}
		updates = append(updates, time.Since(began))
		if err := w.temporal.GetWorkflow(ctx, run, "").Get(ctx, nil); err != nil {
			return err
		}
	}
	for _, floor := range []struct {
		name string
		took []time.Duration
		goal goal
	}{
		{"the start call of an empty flow", starts, atMost(maxOpening)},
		{"an empty flow from its start to its end", ends, goal{}},
		{"a bare start that waits for the flow's first answer", updates, goal{}},
	} {
		ours, bare := quantile(orders, 0.5), quantile(floor.took, 0.5)
		t.add(figure{
			name: "opening an order against " + floor.name + ": p50", why: waits, ratio: ours.Seconds() / bare.Seconds(), goal: floor.goal,
			note: fmt.Sprintf("%.1f ms to %.1f ms; p99 %.1f ms to %.1f ms; %d times", ms(ours), ms(bare),
				ms(quantile(orders, 0.99)), ms(quantile(floor.took, 0.99)), times),
		})
	}
	return nil
}

// startEmpty starts an empty flow and returns the durations of its start and of the whole flow.
func (w *harness) startEmpty(ctx context.Context) (start, end time.Duration, err error) {
	began := time.Now()
	run, err := w.temporal.ExecuteWorkflow(ctx, temporal.StartWorkflowOptions{ID: "empty:" + uuid.NewString(), TaskQueue: bareFlows}, typeEmpty)
	if err != nil {
		return 0, 0, err
	}
	start = time.Since(began)
	err = run.Get(ctx, nil)
	return start, time.Since(began), err
}
