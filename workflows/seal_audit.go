package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// SealAudit seals the audit rows written since the last time. A schedule starts it.
func SealAudit(ctx workflow.Context) (activities.Sealed, error) {
	var sealed activities.Sealed
	err := workflow.ExecuteActivity(record(ctx, "Seal the audit rows"), orders.SealAudit).Get(ctx, &sealed)
	return sealed, err
}
