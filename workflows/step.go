package workflows

import (
	"cmp"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// step has an activity carried out and returns its answer. The summary is what the Web UI shows of it. The compiler holds
// the input against the activity; C is the context of activities, which flows have no other use for.
func step[C, In, Out any](ctx workflow.Context, k kind, summary string, activity func(C, In) (Out, error), in In) (Out, error) {
	var out Out
	err := k.execute(ctx, summary, activity, in).Get(ctx, &out)
	return out, err
}

// fetch is step for an activity without an input.
func fetch[C, Out any](ctx workflow.Context, k kind, summary string, activity func(C) (Out, error)) (Out, error) {
	var out Out
	err := k.execute(ctx, summary, activity).Get(ctx, &out)
	return out, err
}

// do is step for an activity that returns nothing but an error.
func do[C, In any](ctx workflow.Context, k kind, summary string, activity func(C, In) error, in In) error {
	return k.execute(ctx, summary, activity, in).Get(ctx, nil)
}

// execute is the one place where activities are called.
func (k kind) execute(ctx workflow.Context, summary string, activity any, in ...any) workflow.Future {
	timeout, budget := cmp.Or(k.timeout, k.limits.Timeout), cmp.Or(k.budget, k.limits.Budget)
	if k.queue == "" {
		ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
			StartToCloseTimeout: timeout, ScheduleToCloseTimeout: budget, RetryPolicy: k.limits.policy(), Summary: summary,
		})
		return workflow.ExecuteLocalActivity(ctx, activity, in...)
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: k.queue, StartToCloseTimeout: timeout, ScheduleToCloseTimeout: budget, HeartbeatTimeout: k.limits.Heartbeat,
		RetryPolicy: k.limits.policy(), Summary: summary,
	})
	return workflow.ExecuteActivity(ctx, activity, in...)
}

// child is a flow that another flow starts. It lives on when its parent is gone, because it holds money that is on its
// way; one that ended may be started again under its id, which is another try.
type child struct {
	id       string
	summary  string // what the Web UI shows of it
	priority temporal.Priority
	shown    temporal.SearchAttributes
}

func (c child) execute(ctx workflow.Context, flow, in any) workflow.ChildWorkflowFuture {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: c.id, TaskQueue: QueueFlows, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON, StaticSummary: c.summary, Priority: c.priority, TypedSearchAttributes: c.shown,
	})
	return workflow.ExecuteChildWorkflow(ctx, flow, in)
}

// start starts a child and goes on when it runs. It reports whether it was started: one that runs already is no error.
func start[In, Out any](ctx workflow.Context, c child, flow func(workflow.Context, In) (Out, error), in In) (bool, error) {
	err := c.execute(ctx, flow, in).GetChildWorkflowExecution().Get(ctx, nil)
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return false, nil
	}
	return err == nil, err
}

// waiting is how a flow waits for something: it attends to what comes in meanwhile.
type waiting func(ctx workflow.Context, ready func() bool)

// patiently waits and does nothing else. The context is never cancelled, so the wait can't fail.
func patiently(ctx workflow.Context, ready func() bool) { _ = workflow.Await(ctx, ready) }

// run runs a child to its end. One with the same id that is at work already is waited for: after a reset of its parent an
// earlier child may be, whose result a new one returns.
func run[In, Out any](ctx workflow.Context, c child, flow func(workflow.Context, In) (Out, error), in In, until waiting) (Out, error) {
	return runWatched(ctx, c, flow, in, until, nil)
}

// runWatched is run, and tells when the child can be spoken to: not before it was started, which the server says a moment
// after it was asked for.
func runWatched[In, Out any](
	ctx workflow.Context, c child, flow func(workflow.Context, In) (Out, error), in In, until waiting, running func(bool),
) (Out, error) {
	began := workflow.Now(ctx)
	for {
		future := c.execute(ctx, flow, in)
		if running != nil {
			until(ctx, future.GetChildWorkflowExecution().IsReady)
			running(true)
		}
		until(ctx, future.IsReady)
		if running != nil {
			running(false)
		}
		var out Out
		err := future.Get(ctx, &out)
		if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
			return out, err
		}
		await(ctx, slower(ctx, childBusyPause, began), "Wait for the earlier "+c.id, func() bool { return false })
	}
}

// carry runs the child that carries a chain payment out.
func carry(ctx workflow.Context, in CryptoPayoutInput, c child, until waiting) (CryptoPayoutResult, error) {
	c.id = CryptoPayoutID(in.PaymentID)
	return run(ctx, c, CryptoPayout, in, until)
}

// attributes are the search attributes with which a flow starts that needs no operator yet.
func attributes(stage, waitsFor string, more ...temporal.SearchAttributeUpdate) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(append(more, AttrStage.ValueSet(stage), AttrNeedsAttention.ValueSet(false), AttrWaitingFor.ValueSet(waitsFor))...)
}
