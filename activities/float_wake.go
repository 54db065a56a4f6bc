package activities

import (
	"context"

	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// FloatWaker tells the flow of a sale or a refund that waits for float to try again. A flow that is over is no error.
type FloatWaker interface {
	WakeForFloat(ctx context.Context, w exchange.FloatWaiter) error
}

// arrived tells those who wait for float of a movement that brought some.
func (f *Float) arrived(ctx context.Context, m exchange.FloatMove) {
	if m.Status != exchange.FloatCompleted {
		return
	}
	state, err := f.Store.FloatState(ctx, f.Provider)
	if err != nil {
		activity.GetLogger(ctx).Warn("who waits for float was not told of a movement", "move", m.ID, "error", err)
		return
	}
	f.wake(ctx, state, state.Payout.Available())
}

// wake tells sales and refunds that wait for float to try again: the oldest that the room is enough for. It never fails what it
// is called from: a sale looks by itself too, and a refund has called for a person. Told twice, one tries once more and finds
// what the database lets it find.
// While the operator refuses our credential nobody is told: a try would need a person then.
func (f *Float) wake(ctx context.Context, state exchange.FloatState, room money.Amount) {
	if state.Breaker.State() != exchange.BreakerClosed {
		return
	}
	waiting, err := f.Store.WaitingForFloat(ctx, room, exchange.FloatWakeups)
	if err != nil {
		activity.GetLogger(ctx).Warn("who waits for float is not known", "error", err)
		return
	}
	for _, w := range waiting {
		if err := f.Waker.WakeForFloat(ctx, w); err != nil {
			activity.GetLogger(ctx).Warn("who waits for float was not told", "order", w.OrderID, "error", err)
		}
	}
}

// wakeSuspended tells flows that parked because our credential was refused to try again after the breaker was closed: one while a
// payout is on trial, and all when it was taken. Whoever is told once parks later than that when it is refused again, and is
// left to an officer.
func (f *Float) wakeSuspended(ctx context.Context, b exchange.Breaker) {
	waiting, err := f.Store.SuspendedBefore(ctx, b.ClosedAt, b.Wakeups())
	if err != nil {
		activity.GetLogger(ctx).Warn("which flows were parked by the breaker is not known", "error", err)
	}
	for _, w := range waiting {
		if err := f.Waker.WakeForFloat(ctx, w); err != nil {
			activity.GetLogger(ctx).Warn("a flow was not told that the breaker is closed", "flow", w.WorkflowID, "error", err)
		}
	}
}
