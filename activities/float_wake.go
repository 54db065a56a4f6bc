package activities

import (
	"context"

	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// FloatWaker signals the flow of a sale or a refund that waits for float to try again. A flow that has ended is no error.
type FloatWaker interface {
	WakeForFloat(ctx context.Context, w exchange.FloatWaiter) error
}

// arrived wakes the flows that wait for float after a completed movement.
func (f *Float) arrived(ctx context.Context, m exchange.FloatMove) {
	if m.Status != exchange.FloatCompleted {
		return
	}
	state, err := f.Store.FloatState(ctx, f.Provider)
	if err != nil {
		activity.GetLogger(ctx).Warn("the flows that wait for float could not be notified of a movement", "move", m.ID, "error", err)
		return
	}
	f.wake(ctx, state, state.Payout.Available())
}

// wake signals sales and refunds that wait for float to try again: the oldest ones for which the room is enough. It never
// fails its caller, because sales and refunds also check by themselves. A second signal only causes another try.
// While the mobile money operator refuses our credential no flow is woken, because its try would park it.
func (f *Float) wake(ctx context.Context, state exchange.FloatState, room money.Amount) {
	if state.Breaker.State() != exchange.BreakerClosed {
		return
	}
	waiting, err := f.Store.WaitingForFloat(ctx, room, exchange.FloatWakeups)
	if err != nil {
		activity.GetLogger(ctx).Warn("the flows that wait for float could not be read", "error", err)
		return
	}
	for _, w := range waiting {
		if err := f.Waker.WakeForFloat(ctx, w); err != nil {
			activity.GetLogger(ctx).Warn("a flow that waits for float could not be notified", "order", w.OrderID, "error", err)
		}
	}
}

// wakeSuspended signals flows that parked because our credential was refused to try again after the breaker was closed: one
// while a payout is on trial, and all after the operator accepted it. A flow whose payout is refused again parks later than the
// breaker was closed, so it is not woken again and waits for an operator.
func (f *Float) wakeSuspended(ctx context.Context, b exchange.Breaker) {
	waiting, err := f.Store.SuspendedFlows(ctx, b)
	if err != nil {
		activity.GetLogger(ctx).Warn("the flows that the breaker parked could not be read", "error", err)
	}
	for _, w := range waiting {
		if err := f.Waker.WakeForFloat(ctx, w); err != nil {
			activity.GetLogger(ctx).Warn("a flow could not be notified that the breaker is closed", "flow", w.WorkflowID, "error", err)
		}
	}
}
