package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// maxPruneBatches bounds one run; the next one goes on.
const maxPruneBatches = 100

// Prune deletes sessions, counters of failed logins, idempotency keys and other rows that have outlived their use, and
// ends quotes that nobody used. A schedule starts it. It answers how many rows went, and whether it left some for the next run.
func Prune(ctx workflow.Context) (activities.Pruned, error) {
	var all activities.Pruned
	for range maxPruneBatches {
		p, err := fetch(ctx, database, "Delete rows that have outlived their use", orders.Prune)
		if err != nil {
			return all, err
		}
		all.Sessions += p.Sessions
		all.LoginFailures += p.LoginFailures
		all.IdempotencyKeys += p.IdempotencyKeys
		all.ExpiredQuotes += p.ExpiredQuotes
		all.WebhookDeliveries += p.WebhookDeliveries
		all.Parties += p.Parties
		if all.More = p.More; !p.More {
			break
		}
	}
	return all, nil
}
