package activities

import "context"

// pruneBatch is how many rows of a kind one step deletes, so that no transaction grows long.
const pruneBatch = 1000

// Pruned is how many rows were deleted because they had outlived their use. Quotes are kept for ever; they
// are moved to their end.
type Pruned struct {
	Sessions        int `json:"sessions"`
	LoginFailures   int `json:"login_failures"`
	IdempotencyKeys int `json:"idempotency_keys"`
	ExpiredQuotes   int `json:"expired_quotes,omitempty"`
	// WebhookDeliveries are those that came to their end long ago.
	WebhookDeliveries int `json:"webhook_deliveries,omitempty"`
	// Parties are people whose order was never opened.
	Parties int `json:"parties,omitempty"`
	// More is set when there may be more of a kind.
	More bool `json:"more,omitempty"`
}

// Prune deletes a batch of every kind. Running twice deletes the next batch, which is as old.
func (o *Orders) Prune(ctx context.Context) (Pruned, error) {
	p, err := o.Store.Prune(ctx, pruneBatch)
	p.More = max(p.Sessions, p.LoginFailures, p.IdempotencyKeys, p.ExpiredQuotes, p.WebhookDeliveries, p.Parties) >= pruneBatch
	return p, Failure(ctx, err)
}
