package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// handlers registers every door before the first wait.
func (f *offRamp) handlers(ctx workflow.Context) error {
	var err error
	f.desk, err = openDesk(ctx, f.id, func() []activities.ObjectRef {
		return []activities.ObjectRef{{Type: activities.ObjectOrder, ID: f.in.Request.ID}}
	})
	if err != nil {
		return err
	}
	f.desk.about = "order " + f.in.Request.ID.String()
	if err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateOpen, f.onOpen, workflow.UpdateHandlerOptions{
		Description: "Answers when the order is stored, or refused.",
	}); err != nil {
		return err
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateCancel, f.onCancel, workflow.UpdateHandlerOptions{
		Validator: f.admitCancel, Description: "The order is given up while no crypto was seen.",
	}); err != nil {
		return err
	}
	workflow.GoNamed(ctx, "deposits", func(ctx workflow.Context) {
		for {
			var ref DepositRef
			workflow.GetSignalChannel(ctx, SignalDeposit).Receive(ctx, &ref)
			f.deposits = append(f.deposits, ref.DepositID)
		}
	})
	workflow.GoNamed(ctx, "callbacks", func(ctx workflow.Context) {
		for {
			var ref CallbackRef
			workflow.GetSignalChannel(ctx, SignalCallback).Receive(ctx, &ref)
			f.passCallback(ctx, ref)
		}
	})
	workflow.GoNamed(ctx, "refund address", func(ctx workflow.Context) {
		for {
			workflow.GetSignalChannel(ctx, SignalRefundAddress).Receive(ctx, nil)
			if f.back != nil {
				f.back.wake()
			}
		}
	})
	workflow.GoNamed(ctx, "float", func(ctx workflow.Context) {
		for {
			workflow.GetSignalChannel(ctx, SignalFloat).Receive(ctx, nil)
			f.floated = true
		}
	})
	if err := f.openBank(ctx); err != nil {
		return err
	}
	f.door = &refundDoor{}
	return openRefundDoor(ctx, f.door)
}

func (f *offRamp) onOpen(ctx workflow.Context) (Opened, error) {
	if err := workflow.Await(ctx, func() bool { return f.opened }); err != nil {
		return Opened{}, err
	}
	if f.refusal != nil {
		return Opened{}, passOn(f.refusal)
	}
	return Opened{OrderID: f.order.OrderID}, nil
}

func (f *offRamp) admitCancel(Actor) error {
	switch {
	case f.refusal != nil || (f.opened && f.order.Status != exchange.OrderPending):
		return refuse(exchange.CodeStateConflict, "The order can't be cancelled any more.")
	case f.cancel != nil:
		return refuse(exchange.CodeStateConflict, "The order is being cancelled already.")
	}
	return nil
}

func (f *offRamp) onCancel(ctx workflow.Context, a Actor) (Ack, error) {
	r := &request{actor: a}
	f.cancel = r
	if err := workflow.Await(ctx, func() bool { return r.done }); err != nil {
		return Ack{}, err
	}
	return Ack{Status: f.order.Status, Detail: f.order.Detail}, r.err
}

// answer ends the wish to cancel, if there is one.
func (f *offRamp) answer(err error) {
	if r := f.cancel; r != nil {
		r.done, r.err = true, err
		f.cancel = nil
	}
}

// must runs a step until it succeeds. Between tries that a person has to clear, the flow is parked.
func (f *offRamp) must(ctx workflow.Context, what string, step func() error) {
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

// parked waits for an operator, and attends to deposits in the meantime.
func (f *offRamp) parked(ctx workflow.Context, r Reason, cause error) decision {
	f.desk.park(ctx, r, cause)
	f.mark(ctx, exchange.WaitOperator)
	f.until(ctx, f.desk.hasDecision)
	return f.desk.take()
}

// mark writes what the order waits for. The rows tell it to readers only, so that a failure is no
// reason to stop.
func (f *offRamp) mark(ctx workflow.Context, detail string) {
	if f.order.Detail == detail || f.order.OrderID == uuid.Nil || exchange.OffRampMachine.Terminal(f.order.Status) {
		return
	}
	in := activities.MarkOrderInput{OrderID: f.order.OrderID, Detail: detail}
	if err := workflow.ExecuteActivity(record(ctx, "Say that the order waits for "+detail), orders.MarkOrder, in).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Error("the order's detail was not written", "error", err)
		return
	}
	f.order.Detail = detail
}

// until waits, and attends to deposits in the meantime. Those that come while the order waits for its crypto are left
// to the story, which goes on with them.
func (f *offRamp) until(ctx workflow.Context, ready func() bool) {
	for {
		// The context is never cancelled, so the wait can't fail.
		_ = workflow.Await(ctx, func() bool { return ready() || f.surplus() })
		if ready() {
			return
		}
		f.heed(ctx)
	}
}

// surplus tells that something came to the address although the order has its crypto, or is over.
func (f *offRamp) surplus() bool {
	return len(f.deposits) > 0 && f.opened && !f.waiting() && !f.heeding
}

// pause waits for a while or until something happens, as until does.
func (f *offRamp) pause(ctx workflow.Context, d time.Duration, what string, ready func() bool) {
	end := workflow.Now(ctx).Add(d)
	for {
		left := end.Sub(workflow.Now(ctx))
		if left <= 0 || ready() {
			return
		}
		await(ctx, left, what, func() bool { return ready() || f.surplus() })
		if f.surplus() {
			f.heed(ctx)
		}
	}
}
