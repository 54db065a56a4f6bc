package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// WatchInventory compares what the treasury's wallets have for swaps with their water marks. A schedule starts it.
func WatchInventory(ctx workflow.Context) (activities.InventoryWatched, error) {
	return fetch(ctx, database, "Compare the treasury's wallets with their water marks", swaps.WatchInventory)
}
