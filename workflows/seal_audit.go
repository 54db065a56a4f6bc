package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// SealAudit seals the audit rows written since the last run. A schedule starts it.
func SealAudit(ctx workflow.Context) (activities.Sealed, error) {
	sealed, err := fetch(ctx, database, "Seal the audit rows", orders.SealAudit)
	return sealed, err
}
