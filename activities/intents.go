package activities

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// IntentStore reads intents and marks them as used.
type IntentStore interface {
	CheckIntent(ctx context.Context, a exchange.Asked, kind exchange.IntentKind) error
	UseIntent(ctx context.Context, a exchange.Asked, kind exchange.IntentKind) (exchange.Intent, error)
	AskedWallet(ctx context.Context, a exchange.Asked) (exchange.WalletRequest, error)
}

// Intents says what a flow must know of an intent before it can carry it out.
type Intents struct{ Store IntentStore }

// WalletAsked is on which network an intent asks for a wallet.
type WalletAsked struct {
	Network exchange.Network `json:"network"`
}

// ReadWalletIntent returns which signer makes the wallet. It uses nothing up.
func (i *Intents) ReadWalletIntent(ctx context.Context, in IntentInput) (WalletAsked, error) {
	r, err := i.Store.AskedWallet(ctx, in.asked(ctx))
	return WalletAsked{Network: r.Network}, Failure(ctx, err)
}

// IntentCheck asks whether a flow may use an intent of a kind.
type IntentCheck struct {
	IntentID uuid.UUID           `json:"intent_id"`
	Kind     exchange.IntentKind `json:"kind"`
}

// CheckIntent refuses an intent that is of another kind or for another flow, was refused before, or has lapsed. A flow checks
// the intent of a message before it does anything for it.
func (i *Intents) CheckIntent(ctx context.Context, in IntentCheck) error {
	return Failure(ctx, i.Store.CheckIntent(ctx, Behalf{IntentID: in.IntentID}.asked(ctx), in.Kind))
}

// UseIntent is CheckIntent for an intent whose effect is in other rows, and marks it as used.
func (i *Intents) UseIntent(ctx context.Context, in IntentCheck) error {
	_, err := i.Store.UseIntent(ctx, Behalf{IntentID: in.IntentID}.asked(ctx), in.Kind)
	return Failure(ctx, err)
}
