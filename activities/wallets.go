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

// WalletStore stores wallets.
type WalletStore interface {
	// CreateWallet is idempotent by the request's id: a second call returns the first call's wallet, whatever its key.
	CreateWallet(ctx context.Context, r exchange.WalletRequest, address string, key exchange.SealedKey) (exchange.Wallet, error)
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

// MakeWallet creates a key and stores the wallet with it. In a repeated run the first key stays and the new one is dropped:
// its address was never returned.
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
