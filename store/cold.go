package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
)

// Transactions of cold wallets. The table cold_drafts holds what was handed out to be signed elsewhere; its
// triggers refuse a second open one of a payment, bytes for a cold wallet that nobody was handed, and giving up
// a payment of which one may come back.

const coldColumns = `id, payment_id, network, body, payload, tx_id, expires_at, lane, nonce, ref_block, bid_tip, bid_cap, fee_limit, status, closes_at,
	asked_by, attempt_id, created_at, nonce_account, nonce_block, part, evidence`

type coldRow struct {
	ID        uuid.UUID
	PaymentID uuid.UUID `db:"payment_id"`
	Network   exchange.Network
	Body      []byte
	Payload   []byte
	TxID      string       `db:"tx_id"`
	ExpiresAt sql.NullTime `db:"expires_at"`
	Lane      uuid.NullUUID
	Nonce     int64
	RefBlock  string          `db:"ref_block"`
	BidTip    decimal.Decimal `db:"bid_tip"`
	BidCap    decimal.Decimal `db:"bid_cap"`
	FeeLimit  decimal.Decimal `db:"fee_limit"`
	Status    exchange.ColdDraftStatus
	ClosesAt  time.Time     `db:"closes_at"`
	AskedBy   uuid.UUID     `db:"asked_by"`
	AttemptID uuid.NullUUID `db:"attempt_id"`
	CreatedAt time.Time     `db:"created_at"`

	NonceAccount string `db:"nonce_account"`
	NonceBlock   int64  `db:"nonce_block"`
	Part         []byte
	Evidence     string
}

func (r coldRow) draft() (exchange.ColdDraft, error) {
	d := exchange.ColdDraft{
		ID: r.ID, PaymentID: r.PaymentID, Network: r.Network, Body: r.Body, Payload: r.Payload, TxID: r.TxID, ExpiresAt: utc(r.ExpiresAt),
		Lane: r.Lane.UUID, Nonce: uint64(max(r.Nonce, 0)), RefBlock: r.RefBlock, Status: r.Status, ClosesAt: r.ClosesAt.UTC(),
		AskedBy: r.AskedBy, AttemptID: r.AttemptID.UUID, CreatedAt: r.CreatedAt.UTC(),
		NonceAccount: r.NonceAccount, NonceBlock: uint64(max(r.NonceBlock, 0)), Part: r.Part, Evidence: r.Evidence,
	}
	native := r.Network.NativeCoin()
	var err error
	if d.FeeLimit, err = amountOf(native, r.FeeLimit); err != nil || !r.BidCap.IsPositive() { // the zero bid was never made
		return d, err
	}
	if d.Bid.Tip, err = amountOf(native, r.BidTip); err != nil {
		return d, err
	}
	d.Bid.Cap, err = amountOf(native, r.BidCap)
	return d, err
}

// maxColdDrafts bounds how many transactions of a payment are looked at; each stands for half a day.
const maxColdDrafts = 50

const readColdDrafts = `SELECT ` + coldColumns + ` FROM cold_drafts WHERE payment_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2`

// ColdDrafts reads what was handed out for a payment, the last one first.
func (s *Store) ColdDrafts(ctx context.Context, paymentID uuid.UUID) ([]exchange.ColdDraft, error) {
	var rows []coldRow
	if err := s.readAll(ctx, &rows, readColdDrafts, paymentID, maxColdDrafts); err != nil {
		return nil, translate(err, "cold draft")
	}
	out := make([]exchange.ColdDraft, len(rows))
	for i, r := range rows {
		var err error
		if out[i], err = r.draft(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

const readOpenDraft = `SELECT ` + coldColumns + ` FROM cold_drafts WHERE payment_id = $1 AND status IN ('open', 'closing') FOR UPDATE`

// openDraft is what was handed out for a payment and is not proven to be over.
func (t unitTx) openDraft(ctx context.Context, paymentID uuid.UUID) (exchange.ColdDraft, bool, error) {
	var rows []coldRow
	if err := t.all(ctx, &rows, readOpenDraft, paymentID); err != nil || len(rows) == 0 {
		return exchange.ColdDraft{}, false, err
	}
	d, err := rows[0].draft()
	return d, err == nil, err
}

const moveDraft = `UPDATE cold_drafts SET status = $2, attempt_id = $3, evidence = CASE WHEN $4 = '' THEN evidence ELSE $4 END WHERE id = $1 AND status <> 'signed'`

const finalAt = `SELECT tx_id FROM chain_attempts WHERE lane = $1 AND nonce = $2 AND status IN ('succeeded', 'failed')`

// spent finds the final transaction of ours that has the number of a draft, which therefore can't be included.
func (t unitTx) spent(ctx context.Context, d exchange.ColdDraft) (string, error) {
	var ids []string
	if d.Lane == uuid.Nil {
		return "", nil
	}
	err := t.all(ctx, &ids, finalAt, d.Lane, int64(d.Nonce)) //nolint:gosec // G115: nonces are far from the limit
	return spentBy(ids), err
}

// closeDraft refuses to go on while what was handed out for a payment may come back: CodeStateConflict. One whose
// number is used is over.
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
			"A transaction was handed out and may be signed and sent by anybody who has it. %s", stillPossible(d))
	}
	return t.one(ctx, moveDraft, d.ID, exchange.ColdLapsed, nil, evidence)
}

// stillPossible says when what was handed out is over.
func stillPossible(d exchange.ColdDraft) string {
	switch {
	case d.NonceAccount != "":
		return "It has to be withdrawn first, which the network takes a moment for."
	case d.Lane != uuid.Nil:
		return "It never expires: it is over when another transaction of the wallet with its number is final."
	}
	return "It is over when the network's final block is younger than " + d.ExpiresAt.Format(time.RFC3339) + "."
}

const walletType = `SELECT type FROM wallets WHERE id = $1`

const insertDraft = `INSERT INTO cold_drafts (` + coldColumns + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'open', $14, $15, NULL, $16, $17, $18, NULL, '')`

// One nonce account has one transaction at a time: of two that live by the same value one would die.
const nonceBusy = `
SELECT EXISTS (SELECT FROM cold_drafts WHERE nonce_account = $1 AND status IN ('open', 'closing'))
    OR EXISTS (SELECT FROM chain_attempts WHERE nonce_account = $1 AND status IN ('signed', 'broadcast', 'included'))`

// SaveColdDraft stores an unsigned transaction before it is handed out. While another one of the payment is
// open that one is returned, and the given one is dropped unseen. CodeStateConflict unless the payment is
// approved, its wallet is cold and no transaction of it is alive.
func (s *Store) SaveColdDraft(ctx context.Context, d exchange.ColdDraft, by exchange.Principal) (exchange.ColdDraft, error) {
	return change(ctx, s, "cold draft", d.PaymentID, func(ctx context.Context, t unitTx) (exchange.ColdDraft, exchange.Posting, error) {
		var none exchange.Posting
		object, p, err := t.objectOf(ctx, d.PaymentID)
		if err != nil {
			return d, none, err
		}
		if p.Status != exchange.ChainApproved {
			return d, none, exchange.Errorf(exchange.CodeStateConflict, "The payment is %s; nothing of it is to be signed now.", p.Status)
		}
		var kind exchange.WalletType
		if err := t.get(ctx, &kind, walletType, p.WalletID); err != nil {
			return d, none, err
		}
		if kind != exchange.Cold || p.Network != d.Network || (d.Lane != uuid.Nil && d.Lane != p.WalletID) {
			return d, none, exchange.Errorf(exchange.CodeStateConflict, "Only payments of cold wallets are signed elsewhere.")
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
			if err := t.get(ctx, &busy, nonceBusy, d.NonceAccount); err != nil || busy {
				if err == nil {
					err = exchange.Errorf(exchange.CodeStateConflict, "An earlier transaction of the wallet was handed out or is on its way; ask again when it is final.")
				}
				return d, none, err
			}
		}
		d.Status, d.CreatedAt = exchange.ColdOpen, t.s.now()
		_, err = t.exec(ctx, insertDraft, d.ID, p.ID, d.Network, d.Body, d.Payload, d.TxID, nullTime(d.ExpiresAt), nullID(d.Lane), int64(d.Nonce), //nolint:gosec // G115: nonces are far from the limit
			d.RefBlock, d.Bid.Tip.Decimal(), d.Bid.Cap.Decimal(), d.FeeLimit.Decimal(), d.ClosesAt, d.AskedBy, d.CreatedAt,
			d.NonceAccount, int64(d.NonceBlock)) //nolint:gosec // G115: slots are far from the limit
		if err != nil {
			return d, none, err
		}
		if err := object.follow(ctx, t, stageHandedOut, ""); err != nil {
			return d, none, err
		}
		owner, vendor := object.parties()
		return d, none, t.record(ctx, fact{
			by: by, object: "chain_payment", id: p.ID, name: "chain_payment.handed_out", owner: owner, vendor: vendor,
			after: map[string]any{"id": p.ID, "draft_id": d.ID, "tx_id": d.TxID, "nonce": d.Nonce, "closes_at": d.ClosesAt},
		})
	})
}

// handOutAgain decides what becomes of the draft that is open when another one is made: true when it is given
// again. One that can't be included any more makes room, and so does one of which the other has the number, when
// its time is over: of the two one can ever be included, and both pay the same.
func (t unitTx) handOutAgain(ctx context.Context, open, next exchange.ColdDraft) (bool, error) {
	if open.Status == exchange.ColdClosing {
		return false, exchange.Errorf(exchange.CodeStateConflict, "What was handed out is being withdrawn; ask again when that is over.")
	}
	if open.Lane == uuid.Nil || t.s.now().Before(open.ClosesAt) {
		evidence, err := t.spent(ctx, open)
		if err != nil || evidence == "" {
			return true, err
		}
		return false, t.one(ctx, moveDraft, open.ID, exchange.ColdLapsed, nil, evidence)
	}
	if open.Lane == next.Lane && open.Nonce == next.Nonce {
		return false, t.one(ctx, moveDraft, open.ID, exchange.ColdLapsed, nil, "handed out anew with the same number")
	}
	return false, t.closeDraft(ctx, open.PaymentID)
}

// SaveColdAttempt stores the signed bytes of a draft, as SaveSignedAttempt does those of a hot wallet. When a
// transaction of the payment is alive already it is returned. CodeConflict when the number was taken by another
// payment in the meantime.
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
			return exchange.Errorf(exchange.CodeStateConflict, "What was handed out is being withdrawn.")
		}
		return t.one(ctx, moveDraft, draftID, exchange.ColdSigned, a.ID, "")
	})
}

const readColdKey = `
SELECT k.ciphertext, k.master_key, k.public_key, k.algorithm FROM wallet_keys k JOIN wallets w ON w.id = k.wallet_id
WHERE k.wallet_id = $1 AND w.type = 'cold' AND k.master_key LIKE $2`

// ColdKey reads the sealed key of a cold wallet that only the cold machine opens. One that the signer's master
// key opens is not given: false.
func (s *Store) ColdKey(ctx context.Context, walletID uuid.UUID) (exchange.SealedKey, bool, error) {
	var rows []struct {
		Ciphertext []byte
		MasterKey  string `db:"master_key"`
		PublicKey  []byte `db:"public_key"`
		Algorithm  string
	}
	if err := s.readAll(ctx, &rows, readColdKey, walletID, exchange.ColdMasterPrefix+"%"); err != nil || len(rows) == 0 {
		return exchange.SealedKey{}, false, translate(err, "wallet key")
	}
	k := rows[0]
	return exchange.SealedKey{WalletID: walletID, Ciphertext: k.Ciphertext, MasterKey: k.MasterKey, PublicKey: k.PublicKey, Algorithm: k.Algorithm}, true, nil
}
