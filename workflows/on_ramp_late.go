package workflows

import (
	"slices"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"
)

// watchOthers starts a watch for every other prompt that may still bring money, now that the order needs none.
func (f *onRamp) watchOthers(ctx workflow.Context) {
	for _, p := range f.prompts {
		if p.id != f.payment.AttemptID && (p.open || p.soft) {
			f.watch(ctx, p.id, CallbackRef{})
		}
	}
}

// attendCallbacks handles callbacks that come after the order was paid or has ended.
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
		// a repeated callback of the prompt that paid the order
	case isPrompt:
		f.watch(ctx, ref.AttemptID, ref)
	default:
		f.wakePayout(ctx, ref)
		if ref.AttemptID == uuid.Nil {
			for _, p := range f.prompts {
				if p.id != f.payment.AttemptID {
					f.watch(ctx, p.id, ref)
				}
			}
		}
	}
}

// watch starts the watch over a prompt, or signals the running one.
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

// startWatch starts the watch over an attempt and returns once it runs.
func startWatch(ctx workflow.Context, in LatePaymentInput) {
	c := child{id: LatePaymentID(in.AttemptID), summary: LatePaymentSummary, shown: LatePaymentAttributes()}
	if _, err := start(ctx, c, LatePayment, in); err != nil {
		workflow.GetLogger(ctx).Error("a watch for late money could not be started", "attempt", in.AttemptID, "error", err)
	}
}
