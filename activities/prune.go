package activities

import (
	"context"

	"kivuko/exchange"
)

// pruneBatch is how many rows of a kind one step deletes, so that no transaction grows long.
const pruneBatch = 1000

// Pruned is how many old rows were deleted.
type Pruned struct {
	exchange.Pruned
	// More is set when there may be more of a kind.
	More bool `json:"more,omitempty"`
}

// Prune deletes a batch of every kind. A second run deletes the next batch, which is also old enough.
func (o *Orders) Prune(ctx context.Context) (Pruned, error) {
	p, err := o.Store.Prune(ctx, pruneBatch)
	more := max(p.Sessions, p.LoginFailures, p.IdempotencyKeys, p.ExpiredQuotes, p.WebhookDeliveries, p.Messages, p.Verifications, p.Challenges, p.Intents) >= pruneBatch
	return Pruned{Pruned: p, More: more}, Failure(ctx, err)
}
