package activities

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// KeyMaker makes and seals the key of a new wallet and gives its address on the network.
type KeyMaker interface {
	CreateKey(ctx context.Context, walletID uuid.UUID, n exchange.Network) (address string, key exchange.SealedKey, err error)
}

// WalletStore is where wallets are written.
type WalletStore interface {
	// CreateWallet is idempotent on the request's id: a second call gives the first call's wallet,
	// whatever key it brings.
	CreateWallet(ctx context.Context, r exchange.WalletRequest, address string, key exchange.SealedKey) (exchange.Wallet, error)
}

// Wallets creates custodial wallets. It is registered on signer queues only.
type Wallets struct {
	Keys KeyMaker
	// ColdKeys seals the keys of cold wallets so that the signer can't open them. Without it they are sealed as
	// all others, and nothing is ever signed with them.
	ColdKeys KeyMaker
	Store    WalletStore
}

// MadeWallet is a wallet that exists.
type MadeWallet struct {
	WalletID uuid.UUID `json:"wallet_id"`
	Address  string    `json:"address"`
}

// MakeWallet makes a key and stores the wallet with it. When it runs again, the key of the run before
// wins and the new one is forgotten: nobody has seen its address.
func (w *Wallets) MakeWallet(ctx context.Context, r exchange.WalletRequest) (MadeWallet, error) {
	maker := w.Keys
	if r.Type == exchange.Cold && w.ColdKeys != nil {
		maker = w.ColdKeys
	}
	address, key, err := maker.CreateKey(ctx, r.ID, r.Network)
	if err != nil {
		return MadeWallet{}, Failure(ctx, err)
	}
	wallet, err := w.Store.CreateWallet(ctx, r, address, key)
	if err != nil {
		return MadeWallet{}, Failure(ctx, err)
	}
	return MadeWallet{WalletID: wallet.ID, Address: wallet.Address}, nil
}
