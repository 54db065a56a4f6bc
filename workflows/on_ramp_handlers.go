package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// handlers registers the handlers of the order, before the first wait.
func (f *onRamp) handlers(ctx workflow.Context) error {
	f.watched, f.answered = map[uuid.UUID]bool{}, map[uuid.UUID]bool{}
	f.card = func(waits string, until time.Time) card { return orderCard(f.order, waits, until) }
	// Callbacks that come while the order waits for its payment are handled by collect.
	f.arrived = func() bool { return len(f.callbacks) > 0 && !f.pending() }
	f.attend = f.attendCallbacks
	h := f.ramp.handlers(ctx, onRampForm, exchange.IntendPurchaseCancel)
	h.update(UpdateRetryPayment, "The customer asks for another prompt.", apart(f.onRetry), f.admitRetry)
	signal(f.commands.ears, "callbacks", SignalCallback, func(_ workflow.Context, ref CallbackRef) { f.callbacks = append(f.callbacks, ref) })
	return h.err
}

func (f *onRamp) admitRetry(IntentRef) error {
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

// onRetry uses the customer's intent and hands it to the main coroutine. One that was answered already changes nothing more.
func (f *onRamp) onRetry(ctx workflow.Context, ref IntentRef) (Ack, error) {
	in := activities.IntentCheck{IntentID: ref.IntentID, Kind: exchange.IntendPrompt}
	if err := do(ctx, database, "Accept the customer's request", intents.UseIntent, in); err != nil {
		return Ack{}, passOn(err)
	}
	if f.answered[ref.IntentID] {
		return Ack{Status: f.order.Status, Detail: f.order.Detail}, nil
	}
	if err := f.admitRetry(ref); err != nil { // something happened meanwhile
		return Ack{}, err
	}
	f.answered[ref.IntentID] = true
	return f.ask(ctx, &f.retry, ref)
}
