package workflows

import (
	"slices"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"
)

// watchOthers hands every prompt that may still bring money to a watch of its own, now that the order
// needs none.
func (f *onRamp) watchOthers(ctx workflow.Context) {
	for _, p := range f.prompts {
		if p.id != f.payment.AttemptID && (p.open || p.soft) {
			f.watch(ctx, p.id, CallbackRef{})
		}
	}
}

// attendCallbacks deals with callbacks that come when the order is paid or over.
func (f *onRamp) attendCallbacks(ctx workflow.Context) {
	refs := f.callbacks
	f.callbacks = nil
	for _, ref := range refs {
		f.attendTo(ctx, ref)
	}
}

func (f *onRamp) attendTo(ctx workflow.Context, ref CallbackRef) {
	isPrompt := slices.ContainsFunc(f.prompts, func(p *prompt) bool { return p.id == ref.AttemptID })
	switch {
	case ref.AttemptID == f.payment.AttemptID && isPrompt:
		// The order is paid by it: a repetition.
	case isPrompt:
		f.watch(ctx, ref.AttemptID, ref)
	default:
		if f.back != nil {
			f.back.wake(ctx, ref)
		}
		if ref.AttemptID == uuid.Nil {
			for _, p := range f.prompts {
				if p.id != f.payment.AttemptID {
					f.watch(ctx, p.id, ref)
				}
			}
		}
	}
}

// watch starts the watch over a prompt, or wakes the one that is at work.
func (f *onRamp) watch(ctx workflow.Context, attempt uuid.UUID, ref CallbackRef) {
	if f.watched[attempt] && ref.CallbackID != uuid.Nil {
		err := workflow.SignalExternalWorkflow(ctx, LatePaymentID(attempt), "", SignalCallback, ref).Get(ctx, nil)
		if err == nil {
			return
		}
	}
	f.watched[attempt] = true
	startWatch(ctx, LatePaymentInput{AttemptID: attempt, OrderID: f.order.OrderID})
}

// startWatch starts the watch over an attempt and goes on when it runs.
func startWatch(ctx workflow.Context, in LatePaymentInput) {
	c := child{id: LatePaymentID(in.AttemptID), summary: LatePaymentSummary, shown: LatePaymentAttributes()}
	if _, err := start(ctx, c, LatePayment, in); err != nil {
		workflow.GetLogger(ctx).Error("a watch for late money was not started", "attempt", in.AttemptID, "error", err)
	}
}
