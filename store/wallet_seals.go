package store

import (
	"context"

	"kivuko/exchange"
)

// newestSeal is the condition that k is the seal of a wallet's key that counts.
const newestSeal = `NOT EXISTS (SELECT FROM wallet_keys later WHERE later.wallet_id = k.wallet_id AND later.seal > k.seal)`

// allSeals are the seals that count of all keys on a network: of wallets, of owners of accounts of several owners, and those with which such accounts begin.
const allSeals = `(
    SELECT k.wallet_id, '' AS purpose, w.network, k.ciphertext, k.master_key, k.public_key, k.algorithm, k.seal
    FROM wallet_keys k JOIN wallets w ON w.id = k.wallet_id WHERE ` + newestSeal + `
    UNION ALL
    SELECT k.account_id, 'owner-' || k.n, a.network, k.ciphertext, k.master_key, k.public_key, k.algorithm, k.seal
    FROM multisig_owner_keys k JOIN multisig_accounts a ON a.id = k.account_id
    WHERE NOT EXISTS (SELECT FROM multisig_owner_keys later WHERE (later.account_id, later.n) = (k.account_id, k.n) AND later.seal > k.seal)
    UNION ALL
    SELECT k.account_id, 'opening', a.network, k.ciphertext, k.master_key, k.public_key, k.algorithm, k.seal
    FROM multisig_opening_keys k JOIN multisig_accounts a ON a.id = k.account_id
    WHERE NOT EXISTS (SELECT FROM multisig_opening_keys later WHERE later.account_id = k.account_id AND later.seal > k.seal)
) k`

const readOtherSeals = `
SELECT k.wallet_id, k.purpose, k.network, k.ciphertext, k.master_key, k.public_key, k.algorithm FROM ` + allSeals + `
WHERE k.network = $1 AND (k.wallet_id, k.purpose) > ($2, $3) AND k.master_key <> $4 AND k.master_key NOT LIKE $5 ORDER BY k.wallet_id, k.purpose LIMIT $6`

// KeysOfOtherMasters reads the keys of a network that another master key seals than the given one, in a fixed order after a key. Keys that only
// the cold machine opens are left out.
func (s *Store) KeysOfOtherMasters(ctx context.Context, n exchange.Network, master string, after exchange.SealedKey, size int) ([]exchange.SealedKey, error) {
	return readAll[exchange.SealedKey](ctx, s.db, "key", readOtherSeals, n, after.WalletID, after.Purpose, master, exchange.ColdMasterPrefix+"%", size)
}

const readNewestSeal = `SELECT k.seal, k.master_key FROM ` + allSeals + ` WHERE k.wallet_id = $1 AND k.purpose = $2`

const (
	insertSeal      = `INSERT INTO wallet_keys (wallet_id, seal, ciphertext, master_key, public_key, algorithm) VALUES ($1, $2, $3, $4, $5, $6)`
	insertOwnerSeal = `
INSERT INTO multisig_owner_keys (account_id, seal, ciphertext, master_key, public_key, algorithm, n) VALUES ($1, $2, $3, $4, $5, $6, substr($7, 7)::int)`
	insertOpeningSeal = `
INSERT INTO multisig_opening_keys (account_id, seal, ciphertext, master_key, public_key, algorithm, address)
SELECT $1, $2, $3, $4, $5, $6, k.address FROM multisig_opening_keys k WHERE k.account_id = $1 AND k.seal = 1`
)

// SealKeyAnew stores the seal of a key under another master key; the earlier seal stays. A key that this master key seals already is left as
// it is.
func (s *Store) SealKeyAnew(ctx context.Context, k exchange.SealedKey, by exchange.Principal) error {
	return s.inTx(ctx, "key", func(t unitTx) error {
		var last struct {
			Seal      int
			MasterKey string
		}
		if err := t.Get(ctx, &last, readNewestSeal, k.WalletID, k.Purpose); err != nil || last.MasterKey == k.MasterKey {
			return err
		}
		query, object, args := insertSeal, "wallet", []any{k.WalletID, last.Seal + 1, k.Ciphertext, k.MasterKey, k.PublicKey, k.Algorithm}
		if k.Purpose == exchange.OpeningKeyPurpose {
			query, object = insertOpeningSeal, "multisig_account"
		} else if k.Purpose != "" {
			query, object, args = insertOwnerSeal, "multisig_account", append(args, k.Purpose)
		}
		if _, err := t.Exec(ctx, query, args...); err != nil {
			return err
		}
		return t.audit(ctx, by, object+".key_sealed_anew", object, k.WalletID, map[string]any{"master_key": last.MasterKey, "purpose": k.Purpose},
			map[string]any{"master_key": k.MasterKey, "purpose": k.Purpose, "seal": last.Seal + 1})
	})
}

const countSealMasters = `SELECT k.master_key, count(*) AS keys FROM ` + allSeals + ` WHERE k.network = $1 GROUP BY k.master_key ORDER BY k.master_key`

// KeysByMaster counts the keys of a network by the master key that seals them. One that seals none may be retired.
func (s *Store) KeysByMaster(ctx context.Context, n exchange.Network) ([]exchange.MasterKeyUse, error) {
	var rows []exchange.MasterKeyUse
	if err := s.db.All(ctx, &rows, countSealMasters, n); err != nil {
		return nil, translate(err, "wallet key")
	}
	return rows, nil
}
