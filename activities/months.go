package activities

import (
	"context"

	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// KeepMonths makes the parts of the event log and of the ledger for the months ahead, and archives old events. A second run does what is left.
func (o *Orders) KeepMonths(ctx context.Context) (exchange.Months, error) {
	m, err := o.Store.KeepMonths(ctx, o.EventsKept)
	if err != nil {
		return m, Failure(ctx, err)
	}
	gauge(ctx, "kivuko_months_ahead", int64(m.Ahead))
	if m.Outside {
		activity.GetLogger(ctx).Error("ALERT what is written now belongs to no month of the event log or of the ledger")
	}
	if m.Needed {
		activity.GetLogger(ctx).Warn("ALERT old events can't leave the log, because webhook deliveries still need them")
	}
	return m, nil
}
