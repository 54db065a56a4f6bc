package worker

import (
	"context"

	"github.com/google/uuid"

	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/store"
)

var (
	_ keys.PaymentStore = SigningRows{}
	_ keys.ColdStore    = SigningRows{}
)

// SigningRows adapts the store to the interfaces of the signer.
type SigningRows struct{ *store.Store }

// PaymentForSigning reads a payment and the sealed keys that sign it.
func (r SigningRows) PaymentForSigning(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, []keys.Sealed, error) {
	p, stored, err := r.Store.PaymentForSigning(ctx, id)
	sealed := make([]keys.Sealed, len(stored))
	for i, k := range stored {
		sealed[i] = keys.Sealed{Ciphertext: k.Ciphertext, MasterKey: k.MasterKey, PublicKey: k.PublicKey, Algorithm: keys.Algorithm(k.Algorithm)}
		if k.Network != p.Network { // the wallet is the counterpart of the one that the key was sealed for
			sealed[i].For = keys.Ref{WalletID: k.WalletID, Network: k.Network}
		}
	}
	return p, sealed, err
}

// ColdForCompletion reads the transaction that a cold wallet's owner signed, and the sealed key that signs after that.
func (r SigningRows) ColdForCompletion(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, exchange.ColdDraft, keys.Sealed, error) {
	p, d, k, err := r.Store.ColdForCompletion(ctx, id)
	return p, d, keys.Sealed{Ciphertext: k.Ciphertext, MasterKey: k.MasterKey, PublicKey: k.PublicKey, Algorithm: keys.Algorithm(k.Algorithm)}, err
}
