package workflows

import (
	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

const (
	// reuseAfterEnd lets a child that ended be started again under its id: each start is another try.
	reuseAfterEnd = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	// leaveAlone lets children live on when their parent is gone: they hold money that is on its way.
	leaveAlone = enumspb.PARENT_CLOSE_POLICY_ABANDON
)

// handlers registers every door before the first wait.
func (f *onRamp) handlers(ctx workflow.Context) error {
	f.watched = map[uuid.UUID]bool{}
	var err error
	f.desk, err = openDesk(ctx, f.id, func() []activities.ObjectRef {
		return []activities.ObjectRef{{Type: activities.ObjectOrder, ID: f.in.Request.ID}}
	})
	if err != nil {
		return err
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateOpen, f.onOpen, workflow.UpdateHandlerOptions{
		Description: "Answers when the order is stored, or refused.",
	}); err != nil {
		return err
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateCancel, f.onCancel, workflow.UpdateHandlerOptions{
		Validator: f.admitCancel, Description: "The customer gives the order up while nothing is paid.",
	}); err != nil {
		return err
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateRetryPayment, f.onRetry, workflow.UpdateHandlerOptions{
		Validator: f.admitRetry, Description: "The customer asks for another prompt.",
	}); err != nil {
		return err
	}
	workflow.GoNamed(ctx, "callbacks", func(ctx workflow.Context) {
		ch := workflow.GetSignalChannel(ctx, SignalCallback)
		for {
			var ref CallbackRef
			ch.Receive(ctx, &ref)
			f.callbacks = append(f.callbacks, ref)
		}
	})
	return nil
}

func (f *onRamp) onOpen(ctx workflow.Context) (Opened, error) {
	if err := workflow.Await(ctx, func() bool { return f.opened }); err != nil {
		return Opened{}, err
	}
	if f.refusal != nil {
		return Opened{}, passOn(f.refusal)
	}
	return Opened{OrderID: f.order.OrderID}, nil
}

// pending tells whether the order still waits for its payment.
func (f *onRamp) pending() bool { return f.order.Status == exchange.OrderPending }

func (f *onRamp) admitCancel(Actor) error {
	switch {
	case f.refusal != nil || (f.opened && !f.pending()):
		return refuse(exchange.CodeStateConflict, "The order can't be cancelled any more.")
	case f.cancel != nil:
		return refuse(exchange.CodeStateConflict, "The order is being cancelled already.")
	}
	return nil
}

func (f *onRamp) onCancel(ctx workflow.Context, a Actor) (Ack, error) {
	return f.ask(ctx, &f.cancel, a)
}

func (f *onRamp) admitRetry(Actor) error {
	switch {
	case f.refusal != nil || !f.opened || !f.pending():
		return refuse(exchange.CodeStateConflict, "The order does not wait for a payment.")
	case f.retry != nil || f.current() != nil || !f.repeatAt.IsZero():
		return refuse(exchange.CodeStateConflict, "The last prompt is still open.")
	case len(f.prompts) >= maxPrompts:
		return refuse(exchange.CodeStateConflict, "The order has had its last prompt.")
	}
	return nil
}

func (f *onRamp) onRetry(ctx workflow.Context, a Actor) (Ack, error) {
	return f.ask(ctx, &f.retry, a)
}

// ask puts a request before the story and waits until the story has answered it.
func (f *onRamp) ask(ctx workflow.Context, slot **request, a Actor) (Ack, error) {
	r := &request{actor: a}
	*slot = r
	if err := workflow.Await(ctx, func() bool { return r.done }); err != nil {
		return Ack{}, err
	}
	return Ack{Status: f.order.Status, Detail: f.order.Detail}, r.err
}

// answer ends a request, if there is one.
func (f *onRamp) answer(slot **request, err error) {
	if r := *slot; r != nil {
		r.done, r.err = true, err
		*slot = nil
	}
}

// must runs a step until it succeeds. Between tries that a person has to clear, the flow is parked.
func (f *onRamp) must(ctx workflow.Context, what string, step func() error) {
	for {
		err := step()
		if err == nil {
			return
		}
		workflow.GetLogger(ctx).Error("a step failed", "step", what, "error", err)
		f.parked(ctx, ReasonStepFailed, err)
		f.desk.unpark(ctx, WaitsForNobody)
	}
}

// parked waits for an operator, and attends to callbacks in the meantime.
func (f *onRamp) parked(ctx workflow.Context, r Reason, cause error) decision {
	f.desk.park(ctx, r, cause)
	f.mark(ctx, exchange.WaitOperator)
	f.until(ctx, f.desk.hasDecision)
	return f.desk.take()
}

// mark writes what the order waits for. The rows tell it to readers only, so that a failure is no
// reason to stop.
func (f *onRamp) mark(ctx workflow.Context, detail string) {
	over := f.order.Status == exchange.OrderFailed || f.order.Status == exchange.OrderCompleted
	if f.order.Detail == detail || f.order.OrderID == uuid.Nil || over {
		return
	}
	in := activities.MarkOrderInput{OrderID: f.order.OrderID, Detail: detail}
	if err := workflow.ExecuteActivity(record(ctx, "Say that the order waits for "+detail), orders.MarkOrder, in).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Error("the order's detail was not written", "error", err)
		return
	}
	f.order.Detail = detail
}

// until waits, and attends to callbacks in the meantime. Those that come while the order waits for its
// payment are left to the story, which goes on with them.
func (f *onRamp) until(ctx workflow.Context, ready func() bool) {
	for {
		// The context is never cancelled, so the wait can't fail.
		_ = workflow.Await(ctx, func() bool { return ready() || (len(f.callbacks) > 0 && !f.pending()) })
		if ready() {
			return
		}
		f.attend(ctx)
	}
}

// child runs a child to its end. One with the same id that is at work already is waited for.
func (f *onRamp) child(ctx workflow.Context, o workflow.ChildWorkflowOptions, flow, in, result any) error {
	return runChild(ctx, o, flow, in, result, f.until)
}

// runChild runs a child to its end, waiting as the flow that starts it waits.
func runChild(ctx workflow.Context, o workflow.ChildWorkflowOptions, flow, in, result any, until func(workflow.Context, func() bool)) error {
	return runWatchedChild(ctx, o, flow, in, result, until, nil)
}

// runWatchedChild runs a child to its end and tells when it can be spoken to: not before it was started, which the
// server says a moment after it was asked for.
func runWatchedChild(
	ctx workflow.Context, o workflow.ChildWorkflowOptions, flow, in, result any, until func(workflow.Context, func() bool), running func(bool),
) error {
	began := workflow.Now(ctx)
	for {
		future := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, o), flow, in)
		if running != nil {
			until(ctx, future.GetChildWorkflowExecution().IsReady)
			running(true)
		}
		until(ctx, future.IsReady)
		if running != nil {
			running(false)
		}
		err := future.Get(ctx, result)
		if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
			return err
		}
		await(ctx, slower(ctx, childBusyPause, began), "Wait for the earlier "+o.WorkflowID, func() bool { return false })
	}
}
