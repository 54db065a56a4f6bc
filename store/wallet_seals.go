package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// newestSeal is the condition that k is the seal of a wallet's key that counts.
const newestSeal = `NOT EXISTS (SELECT FROM wallet_keys later WHERE later.wallet_id = k.wallet_id AND later.seal > k.seal)`

const readOtherSeals = `
SELECT k.wallet_id, w.network, k.ciphertext, k.master_key, k.public_key, k.algorithm
FROM wallet_keys k JOIN wallets w ON w.id = k.wallet_id
WHERE w.network = $1 AND k.wallet_id > $2 AND k.master_key <> $3 AND k.master_key NOT LIKE $4 AND ` + newestSeal + `
ORDER BY k.wallet_id LIMIT $5`

// KeysOfOtherMasters reads the keys of a network's wallets that another master key seals than the given one, ordered by wallet. Keys
// that only the cold machine opens are left out.
func (s *Store) KeysOfOtherMasters(ctx context.Context, n exchange.Network, master string, after uuid.UUID, size int) ([]exchange.SealedKey, error) {
	var rows []exchange.SealedKey
	if err := s.db.All(ctx, &rows, readOtherSeals, n, after, master, exchange.ColdMasterPrefix+"%", size); err != nil {
		return nil, translate(err, "wallet key")
	}
	return rows, nil
}

const readNewestSeal = `SELECT k.seal, k.master_key FROM wallet_keys k WHERE k.wallet_id = $1 AND ` + newestSeal

const insertSeal = `
INSERT INTO wallet_keys (wallet_id, seal, ciphertext, master_key, public_key, algorithm) VALUES ($1, $2, $3, $4, $5, $6)`

// SealKeyAnew stores the seal of a wallet's key under another master key; the earlier seal stays. A key that this master key seals
// already is left as it is.
func (s *Store) SealKeyAnew(ctx context.Context, k exchange.SealedKey, by exchange.Principal) error {
	return s.inTx(ctx, "wallet key", func(t unitTx) error {
		var last struct {
			Seal      int
			MasterKey string
		}
		if err := t.Get(ctx, &last, readNewestSeal, k.WalletID); err != nil || last.MasterKey == k.MasterKey {
			return err
		}
		if _, err := t.Exec(ctx, insertSeal, k.WalletID, last.Seal+1, k.Ciphertext, k.MasterKey, k.PublicKey, k.Algorithm); err != nil {
			return err
		}
		return t.audit(ctx, by, "wallet.key_sealed_anew", "wallet", k.WalletID,
			map[string]any{"master_key": last.MasterKey}, map[string]any{"master_key": k.MasterKey, "seal": last.Seal + 1})
	})
}

const countSealMasters = `
SELECT k.master_key, count(*) AS keys FROM wallet_keys k JOIN wallets w ON w.id = k.wallet_id
WHERE w.network = $1 AND ` + newestSeal + ` GROUP BY k.master_key ORDER BY k.master_key`

// KeysByMaster counts the keys of a network's wallets by the master key that seals them. One that seals none may be retired.
func (s *Store) KeysByMaster(ctx context.Context, n exchange.Network) ([]exchange.MasterKeyUse, error) {
	var rows []exchange.MasterKeyUse
	if err := s.db.All(ctx, &rows, countSealMasters, n); err != nil {
		return nil, translate(err, "wallet key")
	}
	return rows, nil
}
