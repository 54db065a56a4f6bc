package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// The keys of owners that our key store holds. Only the signer reads and writes them.

const readMultisigOwner = `SELECT n, coalesce(address, '') AS address, user_id, weight, label, held FROM multisig_owners WHERE account_id = $1 AND n = $2`

const lockMultisigOwner = readMultisigOwner + ` FOR NO KEY UPDATE`

const (
	setOwnerAddress = `UPDATE multisig_owners SET address = $3 WHERE account_id = $1 AND n = $2 AND address IS NULL`
	insertOwnerKey  = `INSERT INTO multisig_owner_keys (account_id, n, ciphertext, master_key, public_key, algorithm) VALUES ($1, $2, $3, $4, $5, $6)`
)

// StoreOwnerKey stores the key that was made for an owner, and its address. The key is sealed for the account's id with the purpose
// exchange.OwnerKeyPurpose(n). A repeated call returns the owner with its first key. CodeStateConflict when the owner holds the key itself.
func (s *Store) StoreOwnerKey(ctx context.Context, account uuid.UUID, n int, address string, key exchange.SealedKey) (exchange.MultisigOwner, error) {
	var owner exchange.MultisigOwner
	err := s.inTx(ctx, "owner of an account", func(t unitTx) error {
		var err error
		if owner, err = readOne[exchange.MultisigOwner](ctx, t, "owner of an account", lockMultisigOwner, account, n); err != nil {
			return err
		}
		if !owner.Held {
			return exchange.Errorf(exchange.CodeStateConflict, "The owner %d of the account holds the key itself.", n)
		}
		if owner.Address != "" {
			return nil
		}
		if _, err := t.Exec(ctx, insertOwnerKey, account, n, key.Ciphertext, key.MasterKey, key.PublicKey, key.Algorithm); err != nil {
			return err
		}
		owner.Address = address
		return t.One(ctx, setOwnerAddress, account, n, address)
	})
	return owner, err
}

const readOwnerKey = `
SELECT k.account_id AS wallet_id, 'owner-' || k.n AS purpose, a.network, k.ciphertext, k.master_key, k.public_key, k.algorithm
FROM multisig_owner_keys k JOIN multisig_accounts a ON a.id = k.account_id WHERE k.account_id = $1 AND k.n = $2 ORDER BY k.seal DESC LIMIT 1`

// OwnerKey reads the sealed key of an owner, for the signer. CodeNotFound when our key store does not hold it.
func (s *Store) OwnerKey(ctx context.Context, account uuid.UUID, n int) (exchange.SealedKey, error) {
	return readOne[exchange.SealedKey](ctx, s.db, "key of an owner", readOwnerKey, account, n)
}
