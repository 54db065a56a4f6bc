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
	asked_by, attempt_id, created_at`

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
}

func (r coldRow) draft() (exchange.ColdDraft, error) {
	d := exchange.ColdDraft{
		ID: r.ID, PaymentID: r.PaymentID, Network: r.Network, Body: r.Body, Payload: r.Payload, TxID: r.TxID, ExpiresAt: utc(r.ExpiresAt),
		Lane: r.Lane.UUID, Nonce: uint64(max(r.Nonce, 0)), RefBlock: r.RefBlock, Status: r.Status, ClosesAt: r.ClosesAt.UTC(),
		AskedBy: r.AskedBy, AttemptID: r.AttemptID.UUID, CreatedAt: r.CreatedAt.UTC(),
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

const readOpenDraft = `SELECT ` + coldColumns + ` FROM cold_drafts WHERE payment_id = $1 AND status = 'open' FOR UPDATE`

func (t unitTx) openDraft(ctx context.Context, paymentID uuid.UUID) (exchange.ColdDraft, bool, error) {
	var rows []coldRow
	if err := t.all(ctx, &rows, readOpenDraft, paymentID); err != nil || len(rows) == 0 {
		return exchange.ColdDraft{}, false, err
	}
	d, err := rows[0].draft()
	return d, err == nil, err
}

const moveDraft = `UPDATE cold_drafts SET status = $2, attempt_id = $3 WHERE id = $1 AND status <> 'signed'`

// over tells whether a draft can't pay any more: its time is over, or its number is another payment's.
func (t unitTx) over(ctx context.Context, d exchange.ColdDraft) (bool, error) {
	if !t.s.now().Before(d.ClosesAt) {
		return true, nil
	}
	if d.Lane == uuid.Nil {
		return false, nil
	}
	var rows []laneRow
	err := t.all(ctx, &rows, lockLane, d.Lane)
	return err == nil && len(rows) == 1 && rows[0].lane().Next > d.Nonce, err
}

// closeDraft ends what was handed out for a payment. CodeStateConflict while it may come back signed.
func (t unitTx) closeDraft(ctx context.Context, paymentID uuid.UUID) error {
	d, open, err := t.openDraft(ctx, paymentID)
	if err != nil || !open {
		return err
	}
	over, err := t.over(ctx, d)
	if err != nil {
		return err
	}
	if !over {
		return exchange.Errorf(exchange.CodeStateConflict,
			"A transaction was handed out and may come back signed until %s; until then nothing else can be done with the payment.", d.ClosesAt.Format(time.RFC3339))
	}
	return t.one(ctx, moveDraft, d.ID, exchange.ColdLapsed, nil)
}

const walletType = `SELECT type FROM wallets WHERE id = $1`

const insertDraft = `INSERT INTO cold_drafts (` + coldColumns + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'open', $14, $15, NULL, $16)`

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
			if over, err := t.over(ctx, open); err != nil || !over {
				return open, none, err
			}
			if err := t.closeDraft(ctx, p.ID); err != nil {
				return d, none, err
			}
		}
		d.Status, d.CreatedAt = exchange.ColdOpen, t.s.now()
		_, err = t.exec(ctx, insertDraft, d.ID, p.ID, d.Network, d.Body, d.Payload, d.TxID, nullTime(d.ExpiresAt), nullID(d.Lane), int64(d.Nonce), //nolint:gosec // G115: nonces are far from the limit
			d.RefBlock, d.Bid.Tip.Decimal(), d.Bid.Cap.Decimal(), d.FeeLimit.Decimal(), d.ClosesAt, d.AskedBy, d.CreatedAt)
		if err != nil {
			return d, none, err
		}
		owner, vendor := object.parties()
		return d, none, t.record(ctx, fact{
			by: by, object: "chain_payment", id: p.ID, name: "chain_payment.handed_out", owner: owner, vendor: vendor,
			after: map[string]any{"id": p.ID, "draft_id": d.ID, "tx_id": d.TxID, "nonce": d.Nonce, "closes_at": d.ClosesAt},
		})
	})
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
		return t.one(ctx, moveDraft, draftID, exchange.ColdSigned, a.ID)
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
