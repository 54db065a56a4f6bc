package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// How an account on TRON begins with a key of ours, and is given to its owners. The key is used for that alone: the database makes the bytes again
// that it may sign (check_handover). When they are final the key can do nothing, so that it is kept as the keys of wallets are.

const (
	readOpeningKey = `
SELECT k.account_id AS wallet_id, 'opening' AS purpose, a.network, k.ciphertext, k.master_key, k.public_key, k.algorithm
FROM multisig_opening_keys k JOIN multisig_accounts a ON a.id = k.account_id WHERE k.account_id = $1 ORDER BY k.seal DESC LIMIT 1`
	insertOpeningKey = `INSERT INTO multisig_opening_keys (account_id, address, ciphertext, master_key, public_key, algorithm) VALUES ($1, $2, $3, $4, $5, $6)`
)

// StoreOpeningKey stores the key with which an account on TRON begins, and its address. The key is sealed for the account's id with the purpose
// exchange.OpeningKeyPurpose. A repeated call returns the account with its first key.
func (s *Store) StoreOpeningKey(ctx context.Context, account uuid.UUID, address string, key exchange.SealedKey) (exchange.MultisigAccount, error) {
	return s.moveMultisig(ctx, account, func(ctx context.Context, t unitTx, a exchange.MultisigAccount) (exchange.MultisigAccount, error) {
		if !a.Given() {
			return a, exchange.Errorf(exchange.CodeStateConflict, "The account begins with no key of ours.")
		}
		if a.OpeningAddress != "" {
			return a, nil
		}
		_, err := t.Exec(ctx, insertOpeningKey, account, address, key.Ciphertext, key.MasterKey, key.PublicKey, key.Algorithm)
		a.OpeningAddress = address
		return a, err
	})
}

const (
	handoverColumns = `h.id, h.account_id, h.n, h.tx_id, h.joint, h.body, h.raw, h.expires_at, h.status, h.evidence, h.created_at, h.updated_at`
	readHandover    = `SELECT ` + handoverColumns + ` FROM multisig_handovers h WHERE h.account_id = $1 ORDER BY h.n DESC LIMIT 1`
	insertHandover  = `
INSERT INTO multisig_handovers (id, account_id, n, tx_id, joint, body, raw, expires_at, status, created_at, updated_at) VALUES ($1, $2, $3, $4, $5::jsonb, $6, $7, $8, 'signed', $9, $9)`
	endHandover     = `UPDATE multisig_handovers SET status = $2, evidence = $3, updated_at = $4 WHERE id = $1 AND status = 'signed'`
	handoverIsOver  = `SELECT EXISTS (SELECT FROM deposit_cursors c WHERE c.network = 'tron' AND c.final_time >= $1)`
	readSendingHold = `SELECT CASE WHEN frozen() THEN 'frozen' WHEN put_back() THEN 'put_back' ELSE '' END`
)

// Handover reads the last transaction that gives an account to its owners; false when none was signed yet.
func (s *Store) Handover(ctx context.Context, account uuid.UUID) (exchange.MultisigHandover, bool, error) {
	var rows []exchange.MultisigHandover
	if err := s.db.All(ctx, &rows, readHandover, account); err != nil || len(rows) == 0 {
		return exchange.MultisigHandover{}, false, translate(err, "handover")
	}
	return rows[0], true, nil
}

// HandoverForSigning reads what the signer needs to give an account to its owners.
func (s *Store) HandoverForSigning(ctx context.Context, account uuid.UUID) (exchange.HandoverSigning, error) {
	var h exchange.HandoverSigning
	var err error
	if h.Account, err = s.MultisigAccountByID(ctx, account); err != nil {
		return h, err
	}
	if h.Key, err = readOne[exchange.SealedKey](ctx, s.db, "key with which an account begins", readOpeningKey, account); err != nil {
		return h, err
	}
	if h.Last, _, err = s.Handover(ctx, account); err != nil {
		return h, err
	}
	h.Hold, err = readOne[exchange.SigningHold](ctx, s.db, "freeze", readSendingHold)
	return h, err
}

// StoreHandover stores the signed transaction that gives an account to its owners, before it is sent. While one may be executed, or was, that one is
// returned and the given one dropped. CodeStateConflict when its bytes say anything but what two officers agreed to, when the account is not being
// opened or not paid for, and in a freeze.
func (s *Store) StoreHandover(ctx context.Context, h exchange.MultisigHandover) (exchange.MultisigHandover, error) {
	err := s.inTx(ctx, "handover", func(t unitTx) error {
		if _, err := t.lockedMultisig(ctx, h.AccountID); err != nil {
			return err
		}
		last, found, err := readFound[exchange.MultisigHandover](ctx, t, readHandover, h.AccountID)
		if err != nil {
			return err
		}
		if found && last.Status != exchange.HandoverExpired {
			h = last
			return nil
		}
		h.N, h.Status, h.Evidence, h.CreatedAt, h.UpdatedAt = last.N+1, exchange.HandoverSigned, "", t.s.now(), t.s.now()
		if _, err = t.Exec(ctx, insertHandover, h.ID, h.AccountID, h.N, h.TxID, h.Joint, h.Body, h.Raw, h.ExpiresAt, h.CreatedAt); err != nil {
			return err
		}
		return t.auditHandover(ctx, flow, h)
	})
	return h, err
}

func (t unitTx) auditHandover(ctx context.Context, by exchange.Principal, h exchange.MultisigHandover) error {
	return t.audit(ctx, by, "multisig_account.handover_"+string(h.Status), "multisig_account", h.AccountID, nil,
		map[string]any{"n": h.N, "tx_id": h.TxID, "expires_at": h.ExpiresAt, "evidence": h.Evidence})
}

// EndHandover records what the final chain says about the transaction that gives an account to its owners. A repeated call changes nothing.
// CodeUnavailable while the deposit watch has not read the chain up to the moment after which an expired one can't be executed.
func (s *Store) EndHandover(ctx context.Context, h exchange.MultisigHandover, end exchange.HandoverStatus, evidence string) error {
	return s.inTx(ctx, "handover", func(t unitTx) error {
		if _, err := t.lockedMultisig(ctx, h.AccountID); err != nil {
			return err
		}
		last, err := readOne[exchange.MultisigHandover](ctx, t, "handover", readHandover, h.AccountID)
		if err != nil || last.ID == h.ID && last.Status == end {
			return err
		}
		if last.ID != h.ID {
			return exchange.Errorf(exchange.CodeStateConflict, "Another transaction gives the account to its owners by now.")
		}
		if err := exchange.HandoverMachine.Allow(last.Status, end); err != nil {
			return err
		}
		if end == exchange.HandoverExpired {
			var over bool
			if err := t.Get(ctx, &over, handoverIsOver, last.ExpiresAt); err != nil {
				return err
			}
			if !over {
				return exchange.Errorf(exchange.CodeUnavailable, "The deposit watch has not read the chain up to %s.", last.ExpiresAt)
			}
		}
		last.Status, last.Evidence, last.UpdatedAt = end, clip(evidence, maxMultisigDetail), t.s.now()
		if err := t.One(ctx, endHandover, last.ID, last.Status, last.Evidence, last.UpdatedAt); err != nil {
			return err
		}
		return t.auditHandover(ctx, watching, last)
	})
}

// FundMultisig approves a further payment to an account on TRON that lacks coins to be given to its owners, because the network's fees rose after
// the payment before. A repeated call returns the account with the payment that is on its way. CodeStateConflict when there were
// exchange.MostFundings already, and while the account is not being opened.
func (s *Store) FundMultisig(ctx context.Context, account uuid.UUID, missing money.Amount) (exchange.MultisigAccount, error) {
	return s.moveMultisig(ctx, account, func(ctx context.Context, t unitTx, a exchange.MultisigAccount) (exchange.MultisigAccount, error) {
		last, found, err := t.paymentOf(ctx, exchange.ForMultisigOpen, a.ID)
		switch {
		case err != nil:
			return a, err
		case !a.Given() || a.Status != exchange.MultisigOpening || !found:
			return a, exchange.Errorf(exchange.CodeStateConflict, "An account that is %s needs no coins to be given to its owners.", a.Status)
		case last.Status != exchange.ChainCompleted:
			return a, nil
		case last.N >= exchange.MostFundings:
			return a, exchange.Errorf(exchange.CodeStateConflict, "%d payments have not sufficed to give the account to its owners: it lacks %s %s.", last.N, missing, missing.Asset())
		}
		p, err := t.addPayment(ctx, flow, multisigPayment{}, exchange.ChainPayment{
			Purpose: exchange.ForMultisigOpen, ObjectID: a.ID, N: last.N + 1, Network: a.Network, Amount: missing, WalletID: last.WalletID, ToAddress: a.Address, ApprovedBy: byPolicy,
		})
		a.PaymentID = p.ID
		return a, err
	})
}
