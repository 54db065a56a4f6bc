package exchange

// Pruned is how many old rows of each kind were deleted. Quotes are kept for ever; unused ones are only marked as expired.
type Pruned struct {
	Sessions        int `json:"sessions"`
	LoginFailures   int `json:"login_failures"`
	IdempotencyKeys int `json:"idempotency_keys"`
	ExpiredQuotes   int `json:"expired_quotes,omitempty"`
	// WebhookDeliveries are deliveries that ended long ago.
	WebhookDeliveries int `json:"webhook_deliveries,omitempty"`
	// Messages, Verifications and Challenges are messages to people that ended, one-time codes, and challenges of passkeys.
	Messages      int `json:"messages,omitempty"`
	Verifications int `json:"verifications,omitempty"`
	Challenges    int `json:"challenges,omitempty"`
	// Intents are those that were not used in time.
	Intents int `json:"intents,omitempty"`
}
