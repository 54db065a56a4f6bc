package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// maxPruneBatches bounds one run; the next run deletes the rest.
const maxPruneBatches = 100

// Prune deletes old sessions, counters of failed logins, idempotency keys and other rows, and expires unused quotes. A
// schedule starts it. It returns the numbers of rows, and whether some are left for the next run.
func Prune(ctx workflow.Context) (activities.Pruned, error) {
	var all activities.Pruned
	for range maxPruneBatches {
		p, err := fetch(ctx, database, "Delete old rows", orders.Prune)
		if err != nil {
			return all, err
		}
		all.Sessions += p.Sessions
		all.LoginFailures += p.LoginFailures
		all.IdempotencyKeys += p.IdempotencyKeys
		all.ExpiredQuotes += p.ExpiredQuotes
		all.WebhookDeliveries += p.WebhookDeliveries
		all.Messages += p.Messages
		all.Verifications += p.Verifications
		all.Challenges += p.Challenges
		all.Intents += p.Intents
		if all.More = p.More; !p.More {
			break
		}
	}
	return all, nil
}
