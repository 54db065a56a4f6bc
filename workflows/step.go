package workflows

import (
	"cmp"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// step executes an activity and returns its result. The Web UI shows the summary. The compiler checks the input against
// the activity; C is the context type of activities, which flows don't use otherwise.
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
		RetryPolicy: k.limits.policy(), Summary: summary, Priority: k.priority,
	})
	return workflow.ExecuteActivity(ctx, activity, in...)
}

// child is a flow that another flow starts. It keeps running when its parent ends, because it moves money. After it has
// ended it may be started again under its id, for another try.
type child struct {
	id       string
	summary  string // shown in the Web UI
	priority temporal.Priority
	shown    temporal.SearchAttributes
	// resumed is set by a signal to look again whether the child runs; nil where none comes.
	resumed *bool
}

// lookAgain reports whether the signal came.
func (c child) lookAgain() bool { return c.resumed != nil && *c.resumed }

func (c child) execute(ctx workflow.Context, flow, in any) workflow.ChildWorkflowFuture {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: c.id, TaskQueue: QueueFlows, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON, StaticSummary: c.summary, Priority: c.priority, TypedSearchAttributes: c.shown,
	})
	return workflow.ExecuteChildWorkflow(ctx, flow, in)
}

// start starts a child, returns once it runs, and reports whether it was started: one that already runs is no error.
func start[In, Out any](ctx workflow.Context, c child, flow func(workflow.Context, In) (Out, error), in In) (bool, error) {
	err := c.execute(ctx, flow, in).GetChildWorkflowExecution().Get(ctx, nil)
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return false, nil
	}
	return err == nil, err
}

// waiting waits until ready and handles messages that arrive meanwhile.
type waiting func(ctx workflow.Context, ready func() bool)

// pause waits for a time, or until ready.
func (w waiting) pause(ctx workflow.Context, d time.Duration, summary string, ready func() bool) {
	if ready() {
		return
	}
	timed, cancel := workflow.WithCancel(ctx)
	defer cancel()
	timer := workflow.NewTimerWithOptions(timed, d, workflow.TimerOptions{Summary: summary})
	w(ctx, func() bool { return timer.IsReady() || ready() })
}

// beside does work in a coroutine of its own, and handles messages that arrive meanwhile.
func (w waiting) beside(ctx workflow.Context, name string, work func(workflow.Context)) {
	done := false
	workflow.GoNamed(ctx, name, func(ctx workflow.Context) {
		work(ctx)
		done = true
	})
	w(ctx, func() bool { return done })
}

// patiently waits and handles nothing meanwhile. The context is never cancelled, so the wait can't fail.
func patiently(ctx workflow.Context, ready func() bool) { _ = workflow.Await(ctx, ready) }

// looking waits for a child that opens an object, and looks at that soon after it is open. look reports whether it is, or never will be.
func looking(summary string, look func(workflow.Context) bool) waiting {
	return func(ctx workflow.Context, ready func() bool) {
		began := workflow.Now(ctx)
		for open := false; !open && !ready(); {
			if await(ctx, slower(ctx, time.Second, began), summary, ready); !ready() {
				open = look(ctx)
			}
		}
		patiently(ctx, ready)
	}
}

// run runs a child to its end. If a child with the same id already runs, as after a reset of the parent, run waits for it
// and then starts a new one, which returns its result.
func run[In, Out any](ctx workflow.Context, c child, flow func(workflow.Context, In) (Out, error), in In, until waiting) (Out, error) {
	return runWatched(ctx, c, flow, in, until, nil)
}

// runWatched is run, and reports when the child can receive signals: only after the server confirmed its start, or said
// that an earlier one runs.
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
		future = join(ctx, c, flow, in, until, future)
		var out Out
		err := future.Get(ctx, &out)
		busy := temporal.IsWorkflowExecutionAlreadyStartedError(err)
		if running != nil {
			running(busy)
		}
		if !busy {
			return out, err
		}
		await(ctx, slower(ctx, childBusyPause, began), "Wait for the earlier "+c.id, func() bool { return false })
	}
}

// join waits for a child. After a signal to look again it starts the child once more: one that has ended unseen, as after a reset
// of the parent, runs again and returns what it finds, and one that still runs is waited for further.
func join[In, Out any](
	ctx workflow.Context, c child, flow func(workflow.Context, In) (Out, error), in In, until waiting, future workflow.ChildWorkflowFuture,
) workflow.ChildWorkflowFuture {
	for {
		until(ctx, func() bool { return future.IsReady() || c.lookAgain() })
		if future.IsReady() {
			return future
		}
		*c.resumed = false
		again := c.execute(ctx, flow, in)
		until(ctx, again.GetChildWorkflowExecution().IsReady)
		if again.GetChildWorkflowExecution().Get(ctx, nil) == nil {
			future = again
		}
	}
}

// attributes are the search attributes with which a flow starts that needs no operator yet.
func attributes(stage, waitsFor string, more ...temporal.SearchAttributeUpdate) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(append(more, AttrStage.ValueSet(stage), AttrNeedsAttention.ValueSet(false), AttrWaitingFor.ValueSet(waitsFor))...)
}
