package activities

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// KeyMaker creates and seals the key of a new wallet and returns its address on the network.
type KeyMaker interface {
	CreateKey(ctx context.Context, walletID uuid.UUID, n exchange.Network) (address string, key exchange.SealedKey, err error)
}

// WalletStore stores wallets. Both ways to create one are idempotent: a second call returns the first call's wallet, whatever
// its key.
type WalletStore interface {
	// AskedWallet reads what an intent asks for, and CreateWallet carries it out.
	AskedWallet(ctx context.Context, a exchange.Asked) (exchange.WalletRequest, error)
	CreateWallet(ctx context.Context, a exchange.Asked, address string, key exchange.SealedKey) (exchange.Wallet, error)
	EscrowRequestNetwork(ctx context.Context, request uuid.UUID) (exchange.Network, error)
	CreateEscrowWallet(ctx context.Context, request uuid.UUID, address string, key exchange.SealedKey) (exchange.Wallet, error)
}

// Wallets creates custodial wallets. It is registered on signer queues only.
type Wallets struct {
	Keys KeyMaker
	// ColdKeys seals the keys of cold wallets so that the signer can't open them. Without it they are sealed like all others,
	// and nothing is ever signed with them.
	ColdKeys KeyMaker
	Store    WalletStore
}

// MadeWallet is a wallet that exists.
type MadeWallet struct {
	WalletID uuid.UUID `json:"wallet_id"`
	Address  string    `json:"address"`
}

// MakeWallet creates a key and stores the wallet that an intent asks for with it. In a repeated run the first key stays and
// the new one is dropped: its address was never returned.
func (w *Wallets) MakeWallet(ctx context.Context, in IntentInput) (MadeWallet, error) {
	r, err := w.Store.AskedWallet(ctx, in.asked(ctx))
	if err != nil {
		return MadeWallet{}, Failure(ctx, err)
	}
	maker := w.Keys
	if r.Type == exchange.Cold && w.ColdKeys != nil {
		maker = w.ColdKeys
	}
	address, key, err := maker.CreateKey(ctx, r.ID, r.Network)
	if err != nil {
		return MadeWallet{}, Failure(ctx, err)
	}
	wallet, err := w.Store.CreateWallet(ctx, in.asked(ctx), address, key)
	return MadeWallet{WalletID: wallet.ID, Address: wallet.Address}, Failure(ctx, err)
}

// EscrowWalletInput names a request for the pool of escrow addresses.
type EscrowWalletInput struct {
	RequestID uuid.UUID `json:"request_id"`
}

// MakeEscrowWallet is MakeWallet for a wallet that a request for the pool asks for.
func (w *Wallets) MakeEscrowWallet(ctx context.Context, in EscrowWalletInput) (MadeWallet, error) {
	network, err := w.Store.EscrowRequestNetwork(ctx, in.RequestID)
	if err != nil {
		return MadeWallet{}, Failure(ctx, err)
	}
	address, key, err := w.Keys.CreateKey(ctx, in.RequestID, network)
	if err != nil {
		return MadeWallet{}, Failure(ctx, err)
	}
	wallet, err := w.Store.CreateEscrowWallet(ctx, in.RequestID, address, key)
	return MadeWallet{WalletID: wallet.ID, Address: wallet.Address}, Failure(ctx, err)
}
