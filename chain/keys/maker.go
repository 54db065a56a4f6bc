package keys

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Sealer makes a key and seals it: Vault for hot wallets, ColdSealer for cold ones.
type Sealer interface {
	Create(ctx context.Context, ref Ref) (Sealed, error)
}

// Maker creates wallet keys in a vault. It is the only place where keys are created.
type Maker struct {
	Vault    Sealer
	Networks map[exchange.Network]Addresser
}

// Addresser is the part of a network's driver that turns public keys into addresses.
type Addresser interface {
	Address(publicKey []byte) (string, error)
}

// CreateKey creates and seals the key of a new wallet.
func (m Maker) CreateKey(ctx context.Context, walletID uuid.UUID, n exchange.Network) (string, exchange.SealedKey, error) {
	return m.create(ctx, Ref{WalletID: walletID, Network: n})
}

// CreateOwnerKey creates and seals the key of one owner of an account of several owners.
func (m Maker) CreateOwnerKey(ctx context.Context, account uuid.UUID, n exchange.Network, owner int) (string, exchange.SealedKey, error) {
	return m.create(ctx, OwnerRef(account, n, owner))
}

// OwnerRef is the reference of the key of one owner of an account of several owners, by the owner's number.
func OwnerRef(account uuid.UUID, n exchange.Network, owner int) Ref {
	return Ref{WalletID: account, Network: n, Purpose: exchange.OwnerKeyPurpose(owner)}
}

func (m Maker) create(ctx context.Context, ref Ref) (string, exchange.SealedKey, error) {
	network := m.Networks[ref.Network]
	if network == nil {
		return "", exchange.SealedKey{}, exchange.Errorf(exchange.CodeUnsupported, "Wallets on %s are not supported by this signer.", ref.Network)
	}
	sealed, err := m.Vault.Create(ctx, ref)
	if err != nil {
		return "", exchange.SealedKey{}, err
	}
	address, err := network.Address(sealed.PublicKey)
	if err != nil {
		return "", exchange.SealedKey{}, err
	}
	return address, exchange.SealedKey{
		WalletID: ref.WalletID, Ciphertext: sealed.Ciphertext, MasterKey: sealed.MasterKey, PublicKey: sealed.PublicKey,
		Algorithm: string(sealed.Algorithm),
	}, nil
}
