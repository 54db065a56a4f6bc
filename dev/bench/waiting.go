package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"kivuko/dev/stack"
)

// Flows that wait, of which a few need an operator. The goals are the owner's.
const (
	waitingFlows, quickWaiting = 100_000, 500
	waitingStarters            = 32
	waitingSteps               = 5   // readings of memory on the way
	needOne                    = 100 // one of so many needs an operator
	mostSearch                 = 1   // seconds
	searches                   = 20
)

var needsAttention = sdk.NewSearchAttributeKeyBool("KivukoNeedsAttention")

// waiting parks a hundred thousand bare flows, and measures the memory of Temporal on the way and the search for those that need an
// operator. They are bare, because a server keeps the same of each flow that waits, and opening as many orders takes hours.
func (w *harness) waiting(ctx context.Context, t *table) error {
	n := waitingFlows
	if w.Quick {
		n = quickWaiting
	}
	began := time.Now()
	before := w.resident(stack.ProcessTemporal)
	for step := range waitingSteps {
		if err := w.gather(ctx, step*n/waitingSteps, (step+1)*n/waitingSteps); err != nil {
			return err
		}
		pause(ctx, calm)
		w.say("  %d flows wait after %.0f s: Temporal has %d MiB, the worker %d MiB", (step+1)*n/waitingSteps, time.Since(began).Seconds(),
			w.resident(stack.ProcessTemporal)>>20, w.resident(processBare)>>20)
	}
	t.add(figure{
		name: fmt.Sprintf("memory of Temporal with %d flows that wait", n), ratio: float64(w.resident(stack.ProcessTemporal)-before) / (1 << 20), unit: "MiB more",
		note: "its caches are bounded, so that most lie in the database alone",
	})
	var took []time.Duration
	for range searches {
		asked := time.Now()
		found, err := w.attention(ctx)
		if err != nil {
			return err
		}
		took = append(took, time.Since(asked))
		if found < n/needOne {
			return fmt.Errorf("%d of %d flows that need an operator were found", found, n/needOne)
		}
	}
	t.add(figure{
		name: fmt.Sprintf("the search of Temporal for those that need an operator, %d of %d: p95", n/needOne, n), ratio: quantile(took, 0.95).Seconds(), unit: "s",
		goal: atMost(mostSearch), note: fmt.Sprintf("p50 %.0f ms; the API's own list is rows: BenchmarkListParked", ms(quantile(took, 0.5))),
	})
	return nil
}

// gather parks the flows with these numbers.
func (w *harness) gather(ctx context.Context, from, to int) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(waitingStarters)
	for i := from; i < to; i++ {
		group.Go(func() error {
			o := temporal.StartWorkflowOptions{ID: "waiting:" + uuid.NewString(), TaskQueue: bareFlows}
			if i%needOne == 0 {
				o.TypedSearchAttributes = sdk.NewSearchAttributes(needsAttention.ValueSet(true))
			}
			_, err := w.temporal.ExecuteWorkflow(inner, o, typePark, newStep())
			return err
		})
	}
	return group.Wait()
}

// attention asks as the Web UI does: how many flows need an operator, and the first page of them.
func (w *harness) attention(ctx context.Context) (int, error) {
	query := needsAttention.GetName() + " = true AND ExecutionStatus = '" + enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING.String() + "'"
	count, err := w.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: query})
	if err != nil {
		return 0, err
	}
	_, err = w.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace, Query: query, PageSize: 100})
	return int(count.GetCount()), err
}
