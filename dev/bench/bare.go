package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"kivuko/worker"
)

// The bare flows measure Temporal's own cost of as many activities as an on-ramp has, without any work in them.
const (
	typeEmpty = "BareEmpty" // ends at once
	typeFlat  = "BareFlat"  // the on-ramp's activities and its signal, in one flow on one queue
	typeShape = "BareShape" // the same with the on-ramp's update, timer and four queues
	typePark  = "BarePark"  // waits for a signal

	bareFlows  = "bare-flows"
	bareMomo   = "bare-momo"
	bareChain  = "bare-chain"
	bareSigner = "bare-signer"

	signalCallback = "callback"
	updateOpen     = "open"
	stepTimeout    = 30 * time.Second
	localTimeout   = 3 * time.Second
	payerTimeout   = 15 * time.Second
)

// step is the argument of the bare flows and activities, about as large as an on-ramp's.
type step struct {
	ID   uuid.UUID     `json:"id"`
	Text string        `json:"text"`
	Wait time.Duration `json:"wait"` // of the last activity, instead of the network's finality
}

// stepText makes the bare payloads about as large as the product's.
const stepText = "10 USDT on tron for 1294 KES to TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY"

type bareActivities struct{ temporal client.Client }

// Local stands for a short transaction.
func (*bareActivities) Local(_ context.Context, s step) (step, error) { return s, nil }

// Work does nothing.
func (*bareActivities) Work(_ context.Context, s step) (step, error) { return s, nil }

// Prompt does nothing and gets its callback at once, like a payer who answers immediately.
func (b *bareActivities) Prompt(ctx context.Context, s step) (step, error) {
	e := activity.GetInfo(ctx).WorkflowExecution
	go func() {
		// A lost signal shows as a flow that does not end.
		_ = b.temporal.SignalWorkflow(context.WithoutCancel(ctx), e.ID, e.RunID, signalCallback, s)
	}()
	return s, nil
}

// Deliver waits like the delivery of a transaction: it is called again after the wait.
func (*bareActivities) Deliver(ctx context.Context, s step) (step, error) {
	if s.Wait > 0 && activity.GetInfo(ctx).Attempt == 1 {
		return s, temporal.NewApplicationErrorWithOptions("not yet", "NotYet", temporal.ApplicationErrorOptions{NextRetryDelay: s.Wait})
	}
	return s, nil
}

// Sleep waits within the activity.
func (*bareActivities) Sleep(_ context.Context, s step) (step, error) {
	time.Sleep(s.Wait)
	return s, nil
}

var bare *bareActivities

func on(ctx workflow.Context, queue string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: queue, StartToCloseTimeout: stepTimeout})
}

func run(ctx workflow.Context, fn any, s step) error {
	return workflow.ExecuteActivity(ctx, fn, s).Get(ctx, &s)
}

func runLocal(ctx workflow.Context, s step) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: localTimeout})
	return workflow.ExecuteLocalActivity(ctx, bare.Local, s).Get(ctx, &s)
}

func empty(workflow.Context) error { return nil }

func park(ctx workflow.Context, s step) error {
	workflow.GetSignalChannel(ctx, signalCallback).Receive(ctx, &s)
	return nil
}

// flat has two local and four regular activities in the on-ramp's order, and waits for one signal.
func flat(ctx workflow.Context, s step) error {
	ctx = on(ctx, bareFlows)
	if err := runLocal(ctx, s); err != nil {
		return err
	}
	if err := run(ctx, bare.Prompt, s); err != nil {
		return err
	}
	workflow.GetSignalChannel(ctx, signalCallback).Receive(ctx, nil)
	for _, fn := range []any{bare.Work, bare.Work, bare.Sleep} {
		if err := run(ctx, fn, s); err != nil {
			return err
		}
	}
	return runLocal(ctx, s)
}

// shape has exactly the waits, calls and queues of an on-ramp.
func shape(ctx workflow.Context, s step) error {
	opened := false
	err := workflow.SetUpdateHandler(ctx, updateOpen, func(ctx workflow.Context) (step, error) {
		return s, workflow.Await(ctx, func() bool { return opened })
	})
	if err != nil {
		return err
	}
	if err := runLocal(ctx, s); err != nil {
		return err
	}
	opened = true
	called := false
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, signalCallback).Receive(ctx, nil)
		called = true
	})
	if err := run(on(ctx, bareMomo), bare.Prompt, s); err != nil {
		return err
	}
	if ok, err := workflow.AwaitWithTimeout(ctx, payerTimeout, func() bool { return called }); err != nil || !ok {
		return fmt.Errorf("no callback: %w", err)
	}
	if err := run(on(ctx, bareMomo), bare.Work, s); err != nil {
		return err
	}
	if err := run(on(ctx, bareSigner), bare.Work, s); err != nil {
		return err
	}
	if err := run(on(ctx, bareChain), bare.Deliver, s); err != nil {
		return err
	}
	return runLocal(ctx, s)
}

// Serve runs the worker of the bare flows until ctx ends.
func Serve(ctx context.Context, c client.Client) error {
	activities := &bareActivities{temporal: c}
	for _, queue := range []string{bareFlows, bareMomo, bareChain, bareSigner} {
		w := sdk.New(c, queue, sdk.Options{
			DisableWorkflowWorker: queue != bareFlows, WorkflowTaskPollerBehavior: worker.PollsOfFlows(), MaxConcurrentActivityTaskPollers: worker.ActivityPolls,
		})
		if queue == bareFlows {
			for name, flow := range map[string]any{typeEmpty: empty, typeFlat: flat, typeShape: shape, typePark: park} {
				w.RegisterWorkflowWithOptions(flow, workflow.RegisterOptions{Name: name})
			}
		}
		w.RegisterActivity(activities)
		if err := w.Start(); err != nil {
			return fmt.Errorf("bare worker: queue %s: %w", queue, err)
		}
		defer w.Stop()
	}
	<-ctx.Done()
	return nil
}
