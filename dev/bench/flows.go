package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	temporal "go.temporal.io/sdk/client"

	"kivuko/exchange"
	"kivuko/workflows"
)

// flowLimit is how long one flow may take before the benchmark fails.
const flowLimit = 2 * time.Minute

// kind is a way to run one flow.
type kind struct {
	name string
	// start begins a flow and returns its id when a caller would get the response.
	start func(context.Context) (string, error)
	// check reads the result; nil: the end is enough.
	check func(context.Context, temporal.WorkflowRun) error
}

// The names of the kinds.
const (
	onRamp    = "on-ramp"
	bareSame  = "bare, same shape"
	barePlain = "bare, one queue"
)

// kinds returns the on-ramp and its floors. A flow that does not complete ends the benchmark.
func (w *harness) kinds() []kind {
	return []kind{
		{name: onRamp, start: func(ctx context.Context) (string, error) {
			id, err := w.openOrder(ctx)
			return workflows.OnRampID(id), err
		}, check: completed},
		{name: bareSame, start: w.startShape},
		{name: barePlain, start: w.startBare(typeFlat)},
	}
}

func completed(ctx context.Context, run temporal.WorkflowRun) error {
	var r workflows.OnRampResult
	if err := run.Get(ctx, &r); err != nil {
		return err
	}
	if r.Status != exchange.OrderCompleted {
		return fmt.Errorf("order %s ended %s (%s)", r.OrderID, r.Status, r.Detail)
	}
	return nil
}

func newStep() step { return step{ID: uuid.New(), Text: stepText, Wait: finality} }

func (w *harness) startBare(flow string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		s := newStep()
		o := temporal.StartWorkflowOptions{ID: "bare:" + s.ID.String(), TaskQueue: bareFlows}
		_, err := w.temporal.ExecuteWorkflow(ctx, o, flow, s)
		return o.ID, err
	}
}

// startShape starts a flow like the API starts an on-ramp: with an update that returns when the flow has begun.
func (w *harness) startShape(ctx context.Context) (string, error) {
	s := newStep()
	start := w.temporal.NewWithStartWorkflowOperation(temporal.StartWorkflowOptions{
		ID: "bare:" + s.ID.String(), TaskQueue: bareFlows, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, typeShape, s)
	handle, err := w.temporal.UpdateWithStartWorkflow(ctx, temporal.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start, UpdateOptions: temporal.UpdateWorkflowOptions{
			UpdateName: updateOpen, UpdateID: s.ID.String(), WaitForStage: temporal.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		return "", err
	}
	return "bare:" + s.ID.String(), handle.Get(ctx, nil)
}

// round is the result of one kind in one stretch.
type round struct {
	rate  float64         // flows per second
	took  []time.Duration // durations of the flows that ended in the stretch
	cpu   usage           // of the stretch
	flows int             // that ended in the stretch
	share float64         // our share of the machine's busy time; 0 where it is unknown
}

// loop keeps a number of flows in flight, lets them settle for a while and counts those that end within
// the stretch; both last at least until as many flows have ended as are in flight.
func (w *harness) loop(ctx context.Context, k kind, inFlight int, settle, stretch time.Duration) (round, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type sample struct {
		ended time.Time
		took  time.Duration
	}
	var mu sync.Mutex
	var samples []sample
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range inFlight {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-ctx.Done():
					return
				default:
				}
				began := time.Now()
				if err := w.once(ctx, k); err != nil {
					cancel(fmt.Errorf("%s: %w", k.name, err))
					return
				}
				mu.Lock()
				samples = append(samples, sample{time.Now(), time.Since(began)})
				mu.Unlock()
			}
		})
	}
	ended := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(samples)
	}
	generation(ctx, settle, inFlight, ended)
	from, before, busy := time.Now(), w.measure(), hostBusy()
	generation(ctx, stretch, ended()+inFlight, ended)
	to, cpu, busy := time.Now(), w.measure().since(before), hostBusy()-busy
	close(stop)
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return round{}, err
	}
	r := round{cpu: cpu}
	for _, s := range samples {
		if s.ended.After(from) && !s.ended.After(to) {
			r.took = append(r.took, s.took)
		}
	}
	r.flows = len(r.took)
	r.rate = float64(r.flows) / to.Sub(from).Seconds()
	if busy > 0 {
		r.share = min(1, float64(cpu.total())/float64(busy))
	}
	return r, nil
}

// generation waits for a time and until a number of flows have ended in total. Flows that begin together end
// together, so a stretch that is shorter than a flow would count none or all of them.
func generation(ctx context.Context, least time.Duration, flows int, ended func() int) {
	pause(ctx, least)
	const look, limit = 100 * time.Millisecond, flowLimit
	for began := time.Now(); ended() < flows && ctx.Err() == nil && time.Since(began) < limit; {
		pause(ctx, look)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// once runs one flow from its start to its end.
func (w *harness) once(ctx context.Context, k kind) error {
	ctx, cancel := context.WithTimeout(ctx, flowLimit)
	defer cancel()
	id, err := k.start(ctx)
	if err != nil {
		return err
	}
	run := w.temporal.GetWorkflow(ctx, id, "")
	if k.check != nil {
		return k.check(ctx, run)
	}
	return run.Get(ctx, nil)
}

// quantile returns the smallest value that a share of all values does not exceed.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
