package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/exchange"
)

// handlers registers the handlers of the order, before the first wait.
func (f *onRamp) handlers(ctx workflow.Context) error {
	f.watched = map[uuid.UUID]bool{}
	f.card = func(waits string, until time.Time) card { return orderCard(f.order, waits, until) }
	// Callbacks that come while the order waits for its payment are handled by collect.
	f.arrived = func() bool { return len(f.callbacks) > 0 && !f.pending() }
	f.attend = f.attendCallbacks
	h := f.ramp.handlers(ctx, OnRampID(f.in.Request.ID), f.in.Request.ID)
	h.update(UpdateRetryPayment, "The customer asks for another prompt.", f.onRetry, f.admitRetry)
	signal(ctx, "callbacks", SignalCallback, func(_ workflow.Context, ref CallbackRef) { f.callbacks = append(f.callbacks, ref) })
	return h.err
}

func (f *onRamp) admitRetry(Actor) error {
	switch {
	case f.refusal != nil || !f.opened || !f.pending():
		return refuse(exchange.CodeStateConflict, "The order does not wait for a payment.")
	case f.retry != nil || f.current() != nil || !f.repeatAt.IsZero():
		return refuse(exchange.CodeStateConflict, "The last prompt is still open.")
	case len(f.prompts) >= maxPrompts:
		return refuse(exchange.CodeStateConflict, "The order has reached its limit of prompts.")
	}
	return nil
}

func (f *onRamp) onRetry(ctx workflow.Context, a Actor) (Ack, error) {
	return f.ask(ctx, &f.retry, a)
}
