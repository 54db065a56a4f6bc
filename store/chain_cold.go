package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Transactions of cold wallets. The table cold_drafts holds the drafts exported for signing on the cold machine. Its
// triggers refuse a second open draft of a payment, signed bytes for a cold wallet without a draft, and giving up a
// payment whose draft may still return.

const coldColumns = `id, payment_id, network, body, payload, tx_id, expires_at, nonce_wallet, nonce, ref_block, CASE WHEN bid_cap > 0 THEN bid_tip||' '||network END AS "bid.tip",
	CASE WHEN bid_cap > 0 THEN bid_cap||' '||network END AS "bid.cap", fee_limit||' '||network AS fee_limit, status, closes_at,
	asked_by, attempt_id, created_at, nonce_account, nonce_block, part, evidence`

// maxColdDrafts bounds how many drafts of a payment are read; each is valid for half a day.
const maxColdDrafts = 50

const readColdDrafts = `SELECT ` + coldColumns + ` FROM cold_drafts WHERE payment_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2`

// ColdDrafts reads the drafts of a payment, newest first.
func (s *Store) ColdDrafts(ctx context.Context, paymentID uuid.UUID) ([]exchange.ColdDraft, error) {
	return readAll[exchange.ColdDraft](ctx, s.db, "cold draft", readColdDrafts, paymentID, maxColdDrafts)
}

const readOpenDraft = `SELECT ` + coldColumns + ` FROM cold_drafts WHERE payment_id = $1 AND status IN ('open', 'closing') FOR UPDATE`

// openDraft is the draft of a payment that is not proven to be invalid.
func (t unitTx) openDraft(ctx context.Context, paymentID uuid.UUID) (exchange.ColdDraft, bool, error) {
	return readFound[exchange.ColdDraft](ctx, t, readOpenDraft, paymentID)
}

const moveDraft = `UPDATE cold_drafts SET status = $2, attempt_id = $3, evidence = CASE WHEN $4 = '' THEN evidence ELSE $4 END WHERE id = $1 AND status <> 'signed'`

const finalAt = `SELECT tx_id FROM chain_attempts WHERE nonce_wallet = $1 AND nonce = $2 AND status IN ('succeeded', 'failed')`

// spent finds our final transaction with the number of a draft, which therefore can't be included.
func (t unitTx) spent(ctx context.Context, d exchange.ColdDraft) (string, error) {
	var ids []string
	if d.NonceWallet == uuid.Nil {
		return "", nil
	}
	err := t.All(ctx, &ids, finalAt, d.NonceWallet, int64(d.Nonce)) //nolint:gosec // G115: nonces are far from the limit
	return spentBy(ids), err
}

// closeDraft returns CodeStateConflict while a payment's draft may still return. It ends a draft whose number is used.
func (t unitTx) closeDraft(ctx context.Context, paymentID uuid.UUID) error {
	d, open, err := t.openDraft(ctx, paymentID)
	if err != nil || !open {
		return err
	}
	evidence, err := t.spent(ctx, d)
	if err != nil {
		return err
	}
	if evidence == "" {
		return exchange.Errorf(exchange.CodeStateConflict,
			"A transaction was handed out and may still be signed and sent. %s", stillPossible(d))
	}
	return t.One(ctx, moveDraft, d.ID, exchange.ColdLapsed, nil, evidence)
}

// stillPossible describes when a draft can no longer be included.
func stillPossible(d exchange.ColdDraft) string {
	switch {
	case d.NonceAccount != "":
		return "Withdraw it first; the network takes a moment to confirm that."
	case d.NonceWallet != uuid.Nil:
		return "It never expires; it becomes invalid when another transaction of the wallet with its number is final."
	}
	return "It expires when the network's final block is later than " + d.ExpiresAt.Format(time.RFC3339) + "."
}

const walletType = `SELECT type FROM wallets WHERE id = $1`

const insertDraft = `INSERT INTO cold_drafts (id, payment_id, network, body, payload, tx_id, expires_at, nonce_wallet, nonce, ref_block, bid_tip, bid_cap, fee_limit,
    status, closes_at, asked_by, attempt_id, created_at, nonce_account, nonce_block, part, evidence)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'open', $14, $15, NULL, $16, $17, $18, NULL, '')`

// A nonce account serves one transaction at a time: of two with the same nonce value one would become invalid.
const nonceBusy = `
SELECT EXISTS (SELECT FROM cold_drafts WHERE nonce_account = $1 AND status IN ('open', 'closing'))
    OR EXISTS (SELECT FROM chain_attempts WHERE nonce_account = $1 AND status IN ('signed', 'broadcast', 'included'))`

// SaveColdDraft stores an unsigned transaction before it is handed out. If the payment has an open draft, that one is
// returned and the given one is dropped. CodeStateConflict unless the payment is approved, its wallet is cold and no
// transaction of it is alive.
func (s *Store) SaveColdDraft(ctx context.Context, d exchange.ColdDraft, by exchange.Principal) (exchange.ColdDraft, error) {
	return change(ctx, s, "cold draft", d.PaymentID, func(ctx context.Context, t unitTx) (exchange.ColdDraft, exchange.Posting, error) {
		var none exchange.Posting
		object, p, err := t.objectOf(ctx, d.PaymentID)
		if err != nil {
			return d, none, err
		}
		if p.Status != exchange.ChainApproved {
			return d, none, exchange.Errorf(exchange.CodeStateConflict, "A payment that is %s can't be signed now.", p.Status)
		}
		var kind exchange.WalletType
		if err := t.Get(ctx, &kind, walletType, p.WalletID); err != nil {
			return d, none, err
		}
		if kind != exchange.Cold || p.Network != d.Network || (d.NonceWallet != uuid.Nil && d.NonceWallet != p.WalletID) {
			return d, none, exchange.Errorf(exchange.CodeStateConflict, "Only payments of cold wallets are signed on the cold machine.")
		}
		open, found, err := t.openDraft(ctx, p.ID)
		if err != nil {
			return d, none, err
		}
		if found {
			if again, err := t.handOutAgain(ctx, open, d); err != nil || again {
				return open, none, err
			}
		}
		if d.NonceAccount != "" {
			var busy bool
			if err := t.Get(ctx, &busy, nonceBusy, d.NonceAccount); err != nil || busy {
				if err == nil {
					err = exchange.Errorf(exchange.CodeStateConflict, "An earlier transaction of the wallet was handed out or is on its way. Try again when it is final.")
				}
				return d, none, err
			}
		}
		d.Status, d.CreatedAt = exchange.ColdOpen, t.s.now()
		_, err = t.Exec(ctx, insertDraft, d.ID, p.ID, d.Network, d.Body, d.Payload, d.TxID, nullTime(d.ExpiresAt), nullID(d.NonceWallet), int64(d.Nonce), //nolint:gosec // G115: nonces are far from the limit
			d.RefBlock, d.Bid.Tip.Decimal(), d.Bid.Cap.Decimal(), d.FeeLimit.Decimal(), d.ClosesAt, d.AskedBy, d.CreatedAt,
			d.NonceAccount, int64(d.NonceBlock)) //nolint:gosec // G115: slots are far from the limit
		if err != nil {
			return d, none, err
		}
		if err := object.follow(ctx, t, stageHandedOut, ""); err != nil {
			return d, none, err
		}
		owner, vendor := object.parties()
		return d, none, t.record(ctx, auditEvent{
			by: by, object: "chain_payment", id: p.ID, name: "chain_payment.handed_out", owner: owner, vendor: vendor,
			after: map[string]any{"id": p.ID, "draft_id": d.ID, "tx_hash": d.TxID, "nonce": d.Nonce, "closes_at": d.ClosesAt},
		})
	})
}

// handOutAgain handles an open draft when another one is made. It returns true when the open one is to be handed out
// again. The open draft ends when it can't be included any more, or when its time is over and the new one has its
// number: only one of the two can ever be included, and both pay the same.
func (t unitTx) handOutAgain(ctx context.Context, open, next exchange.ColdDraft) (bool, error) {
	if open.Status == exchange.ColdClosing {
		return false, exchange.Errorf(exchange.CodeStateConflict, "The transaction that was handed out is being withdrawn. Try again when that is completed.")
	}
	if open.NonceWallet == uuid.Nil || t.s.now().Before(open.ClosesAt) {
		evidence, err := t.spent(ctx, open)
		if err != nil || evidence == "" {
			return true, err
		}
		return false, t.One(ctx, moveDraft, open.ID, exchange.ColdLapsed, nil, evidence)
	}
	if open.NonceWallet == next.NonceWallet && open.Nonce == next.Nonce {
		return false, t.One(ctx, moveDraft, open.ID, exchange.ColdLapsed, nil, "handed out anew with the same number")
	}
	return false, t.closeDraft(ctx, open.PaymentID)
}

// SaveColdAttempt stores the signed bytes of a draft, as SaveSignedAttempt does for a hot wallet. It returns a
// transaction of the payment that is already alive. CodeConflict when another payment has taken the number in the
// meantime.
func (s *Store) SaveColdAttempt(ctx context.Context, draftID uuid.UUID, a exchange.ChainAttempt, by exchange.Principal) (exchange.ChainAttempt, error) {
	return s.saveSigned(ctx, a, by, func(ctx context.Context, t unitTx) error {
		open, found, err := t.openDraft(ctx, a.PaymentID)
		if err != nil {
			return err
		}
		if found && open.ID != draftID {
			return exchange.Errorf(exchange.CodeStateConflict, "Another transaction of the payment was handed out since.")
		}
		if found && open.Status == exchange.ColdClosing {
			return exchange.Errorf(exchange.CodeStateConflict, "The transaction that was handed out is being withdrawn.")
		}
		return t.One(ctx, moveDraft, draftID, exchange.ColdSigned, a.ID, "")
	})
}

const readColdKey = `
SELECT k.ciphertext, k.master_key, k.public_key, k.algorithm FROM wallet_keys k JOIN wallets w ON w.id = k.wallet_id
WHERE k.wallet_id = $1 AND w.type = 'cold' AND k.master_key LIKE $2 AND ` + newestSeal

// ColdKey reads the sealed key of a cold wallet that only the cold machine opens. It returns false for a key sealed
// for the signer.
func (s *Store) ColdKey(ctx context.Context, walletID uuid.UUID) (exchange.SealedKey, bool, error) {
	var rows []struct {
		Ciphertext []byte
		MasterKey  string
		PublicKey  []byte
		Algorithm  string
	}
	if err := s.db.All(ctx, &rows, readColdKey, walletID, exchange.ColdMasterPrefix+"%"); err != nil || len(rows) == 0 {
		return exchange.SealedKey{}, false, translate(err, "wallet key")
	}
	k := rows[0]
	return exchange.SealedKey{WalletID: walletID, Ciphertext: k.Ciphertext, MasterKey: k.MasterKey, PublicKey: k.PublicKey, Algorithm: k.Algorithm}, true, nil
}
