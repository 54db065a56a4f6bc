package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/exchange"
)

// KeepMonths makes the parts of the event log and of the ledger for the months ahead, begins a new month, and archives old events. A
// schedule starts it.
func KeepMonths(ctx workflow.Context) (exchange.Months, error) {
	return fetch(ctx, database, "Make the parts of months", orders.KeepMonths)
}
