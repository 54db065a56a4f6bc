package store

import (
	"context"
	"database/sql"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The sequences of wallets on networks that number transactions. They are stored in the tables nonce_sequences and
// nonces, whose triggers refuse a gap, one number for two payments, and a number without signed bytes.

type nonceSequenceRow struct {
	WalletID uuid.UUID
	Next     int64
	Foreign  sql.NullInt64 `db:"foreign_nonce"`
}

func (r nonceSequenceRow) sequence() exchange.NonceSequence {
	return exchange.NonceSequence{WalletID: r.WalletID, Next: uint64(max(r.Next, 0)), Foreign: r.Foreign.Valid}
}

const readNonceSequence = `SELECT wallet_id, next, foreign_nonce FROM nonce_sequences WHERE wallet_id = $1`

const lockNonceSequence = readNonceSequence + ` FOR NO KEY UPDATE`

// NonceSequence reads a wallet's sequence; false when nothing was sent from the wallet yet.
func (s *Store) NonceSequence(ctx context.Context, walletID uuid.UUID) (exchange.NonceSequence, bool, error) {
	var rows []nonceSequenceRow
	if err := s.db.All(ctx, &rows, readNonceSequence, walletID); err != nil || len(rows) == 0 {
		return exchange.NonceSequence{WalletID: walletID}, false, translate(err, "nonce sequence")
	}
	return rows[0].sequence(), true, nil
}

const nonceReserve = `
SELECT coalesce(sum(a.fee_limit + CASE WHEN p.asset = $3 THEN p.amount ELSE 0 END), 0) FROM chain_attempts a JOIN chain_payments p ON p.id = a.payment_id
WHERE a.nonce_wallet = $1 AND a.nonce >= $2 AND a.status IN ('signed', 'broadcast', 'included')`

// NonceReserve is the most native coin that the wallet's transactions from a number on may still cost: their fees, and
// the amounts that they send.
func (s *Store) NonceReserve(ctx context.Context, walletID uuid.UUID, n exchange.Network, from uint64) (money.Amount, error) {
	native := n.NativeCoin()
	var sum decimal.Decimal
	if err := s.db.Get(ctx, &sum, nonceReserve, walletID, int64(from), native); err != nil { //nolint:gosec // G115: nonces are far from the limit
		return money.Zero(native), translate(err, "nonce sequence")
	}
	return amountOf(native, sum)
}

const openNonceSequence = `INSERT INTO nonce_sequences (wallet_id, first, next, opened_at) VALUES ($1, $2, $2, $3) ON CONFLICT DO NOTHING`

const insertNonce = `INSERT INTO nonces (wallet_id, nonce, payment_id) VALUES ($1, $2, $3)`

// takeNonce assigns to the payment the number that its transaction was signed with, if it is still the sequence's next
// one. CodeConflict means that another payment was faster; the signature is then worthless.
func (t unitTx) takeNonce(ctx context.Context, p exchange.ChainPayment, a exchange.ChainAttempt) error {
	if a.NonceWallet != p.FeeCustody() {
		return exchange.Errorf(exchange.CodeInternal, "a transaction of wallet %s has the sequence of %s", p.FeeCustody(), a.NonceWallet)
	}
	var rows []nonceSequenceRow
	if err := t.All(ctx, &rows, lockNonceSequence, a.NonceWallet); err != nil {
		return err
	}
	nonce := int64(a.Nonce) //nolint:gosec // G115: nonces are far from the limit
	if len(rows) == 0 {
		if _, err := t.Exec(ctx, openNonceSequence, a.NonceWallet, nonce, t.s.now()); err != nil {
			return err
		}
		if err := t.All(ctx, &rows, lockNonceSequence, a.NonceWallet); err != nil {
			return err
		}
	}
	if len(rows) != 1 || rows[0].Next != nonce || rows[0].Foreign.Valid {
		return exchange.Errorf(exchange.CodeConflict, "The nonce %d of wallet %s is not free.", nonce, a.NonceWallet)
	}
	_, err := t.Exec(ctx, insertNonce, a.NonceWallet, nonce, p.ID)
	return err
}

const nextTxNumber = `SELECT coalesce(max(n), 0) + 1 FROM chain_attempts WHERE payment_id = $1`

const insertTx = `
INSERT INTO chain_attempts (id, payment_id, network, n, tx_id, raw, expires_at, last_valid_height, nonce_wallet, nonce, ref_block, bid_tip, bid_cap, fee_limit,
    status, created_at, updated_at, nonce_account, nonce_block, adopted)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'signed', $15, $15, $16, $17, $18) RETURNING ` + txColumns

// insertTx stores a signed transaction as the latest one of its payment.
func (t unitTx) insertTx(ctx context.Context, p exchange.ChainPayment, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	var n int
	if err := t.Get(ctx, &n, nextTxNumber, a.PaymentID); err != nil {
		return exchange.ChainAttempt{}, err
	}
	limit := a.FeeLimit
	if limit.Asset() == "" {
		limit = money.Zero(p.Network.NativeCoin())
	}
	var r exchange.ChainAttempt
	err := t.Get(ctx, &r, insertTx, a.ID, a.PaymentID, p.Network, n, a.TxID, a.Raw, nullTime(a.ExpiresAt), int64(a.LastValidHeight), nullID(a.NonceWallet), int64(a.Nonce), //nolint:gosec // G115: heights and nonces are far from the limit
		a.RefBlock, a.Bid.Tip.Decimal(), a.Bid.Cap.Decimal(), limit.Decimal(), t.s.now(), a.NonceAccount, int64(a.NonceBlock), a.Adopted) //nolint:gosec // G115: slots are far from the limit
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	return r, nil
}

// SaveSignedAttempt stores signed bytes before they are first sent, and on a sequenced network takes their number in
// the same transaction. If the payment already has a live transaction, that one is returned and the given one is
// dropped unsent: only stored bytes are ever sent. CodeStateConflict unless the payment is approved; CodeConflict when
// another payment has the transaction id or took the number.
func (s *Store) SaveSignedAttempt(ctx context.Context, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	return s.saveSigned(ctx, a, flow, func(context.Context, unitTx) error { return nil })
}

// saveSigned stores signed bytes, in one transaction with the work of first.
func (s *Store) saveSigned(ctx context.Context, a exchange.ChainAttempt, by exchange.Principal, first func(context.Context, unitTx) error) (exchange.ChainAttempt, error) {
	meet := a.PaymentID
	if a.NonceWallet != uuid.Nil {
		meet = a.NonceWallet
	}
	return change(ctx, s, "transaction", meet, func(ctx context.Context, t unitTx) (exchange.ChainAttempt, exchange.Posting, error) {
		var none exchange.Posting
		object, before, err := t.objectOf(ctx, a.PaymentID)
		if err != nil {
			return exchange.ChainAttempt{}, none, err
		}
		if live, alive, err := t.liveAttempt(ctx, a.PaymentID); err != nil || alive {
			return live, none, err
		}
		if err := first(ctx, t); err != nil {
			return exchange.ChainAttempt{}, none, err
		}
		p := before
		p.Status, p.TxID, p.Detail, p.Block = exchange.ChainSigned, a.TxID, "", 0
		if _, err := t.savePayment(ctx, by, object, before, p); err != nil {
			return exchange.ChainAttempt{}, none, err
		}
		if a.NonceWallet != uuid.Nil {
			if err := t.takeNonce(ctx, p, a); err != nil {
				return exchange.ChainAttempt{}, none, err
			}
		}
		// The transaction is locked here, and the fee guard locks the wallet after it, in the same order as the watch.
		if err := t.lockTransaction(ctx, p.Network, a.TxID); err != nil {
			return exchange.ChainAttempt{}, none, err
		}
		saved, err := t.insertTx(ctx, p, a)
		if err == nil {
			err = t.becomesOurs(ctx, p.Network, a.TxID, sql.NullInt64{}, "payment "+p.ID.String()+" made it", by)
		}
		if err != nil {
			return saved, none, err
		}
		return saved, none, object.follow(ctx, t, stageSigned, a.TxID)
	})
}

// SaveReplacement stores signed bytes that replace the payment's leading transaction, whose id is bumps: the same
// number, the same transfer, a higher bid. From now on the new one leads, and both are watched. When another
// transaction leads, or the leading one was included in a block, that one is returned and the given one is dropped
// unsent. CodeStateConflict when the payment has no live transaction.
func (s *Store) SaveReplacement(ctx context.Context, bumps uuid.UUID, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	return change(ctx, s, "transaction", a.PaymentID, func(ctx context.Context, t unitTx) (exchange.ChainAttempt, exchange.Posting, error) {
		var none exchange.Posting
		object, before, err := t.objectOf(ctx, a.PaymentID)
		if err != nil {
			return exchange.ChainAttempt{}, none, err
		}
		leader, alive, err := t.liveAttempt(ctx, a.PaymentID)
		if err != nil {
			return leader, none, err
		}
		if !alive {
			return leader, none, exchange.Errorf(exchange.CodeStateConflict, "The payment is %s and has no live transaction.", before.Status)
		}
		if leader.ID != bumps || leader.Status == exchange.TxIncluded {
			return leader, none, nil
		}
		if leader.NonceWallet == uuid.Nil || a.NonceWallet != leader.NonceWallet || a.Nonce != leader.Nonce {
			return leader, none, exchange.Errorf(exchange.CodeInternal, "a replacement has the number %d, not %d", a.Nonce, leader.Nonce)
		}
		old := leader
		old.Status = exchange.TxReplaced
		if err := t.moveTx(ctx, leader, old); err != nil {
			return leader, none, err
		}
		saved, err := t.insertTx(ctx, before, a)
		if err != nil {
			return saved, none, err
		}
		p := before
		p.TxID = a.TxID
		_, err = t.savePayment(ctx, flow, object, before, p)
		return saved, none, err
	})
}

const readTurn = `SELECT ` + txColumns + ` FROM chain_attempts WHERE nonce_wallet = $1 AND nonce = $2 AND status IN ('signed', 'broadcast', 'included')`

// AttemptAt finds the leading transaction at a number of a wallet's sequence.
func (s *Store) AttemptAt(ctx context.Context, walletID uuid.UUID, nonce uint64) (exchange.ChainAttempt, bool, error) {
	var rows []exchange.ChainAttempt
	if err := s.db.All(ctx, &rows, readTurn, walletID, int64(nonce)); err != nil || len(rows) == 0 { //nolint:gosec // G115: nonces are far from the limit
		return exchange.ChainAttempt{}, false, translate(err, "transaction")
	}
	return rows[0], true, nil
}

// others are the live transactions of the payment besides the step's own.
func (st *step) others(ctx context.Context) ([]exchange.ChainAttempt, error) {
	live, err := st.t.liveAttempts(ctx, st.payment.ID)
	var out []exchange.ChainAttempt
	for _, a := range live {
		if a.ID != st.tx.ID {
			out = append(out, a)
		}
	}
	return out, err
}

// takeLead makes the step's transaction the leading one.
func (st *step) takeLead(ctx context.Context) error {
	if st.tx.Status != exchange.TxReplaced {
		return nil
	}
	others, err := st.others(ctx)
	if err != nil {
		return err
	}
	for _, a := range others {
		if !a.Leads() {
			continue
		}
		after := a
		after.Status, after.Block, after.BlockID = exchange.TxReplaced, 0, ""
		if err := st.t.moveTx(ctx, a, after); err != nil {
			return err
		}
	}
	return nil
}

// loseBlock takes the step's transaction out of its block. The one with the highest bid then leads, which is the last
// one signed; the step continues with it.
func (st *step) loseBlock(ctx context.Context) error {
	others, err := st.others(ctx)
	if err != nil {
		return err
	}
	a := st.tx
	a.Status, a.Block, a.BlockID = exchange.TxBroadcast, 0, ""
	if len(others) == 0 || others[0].N < a.N {
		return st.saveTx(ctx, a)
	}
	a.Status = exchange.TxReplaced
	if err := st.saveTx(ctx, a); err != nil {
		return err
	}
	best := others[0]
	best.Status = exchange.TxBroadcast
	if err := st.t.moveTx(ctx, others[0], best); err != nil {
		return err
	}
	st.tx = best
	return nil
}

// expireOthers ends the transactions that share the number of the step's own.
func (st *step) expireOthers(ctx context.Context, evidence string) error {
	if st.tx.NonceWallet == uuid.Nil {
		return nil
	}
	others, err := st.others(ctx)
	if err != nil {
		return err
	}
	for _, a := range others {
		after := a
		after.Status, after.LastCode, after.Block, after.BlockID = exchange.TxExpired, evidence, 0, ""
		if err := st.t.moveTx(ctx, a, after); err != nil {
			return err
		}
		if err := st.doubt(ctx, a, false); err != nil {
			return err
		}
	}
	return nil
}

const markForeign = `UPDATE nonce_sequences SET foreign_nonce = $2 WHERE wallet_id = $1 AND foreign_nonce IS NULL`

// closeNonceSequence closes the sequence because a foreign transaction used one of its numbers.
func (st *step) closeNonceSequence(ctx context.Context) error {
	if st.tx.NonceWallet == uuid.Nil {
		return nil
	}
	_, err := st.t.Exec(ctx, markForeign, st.tx.NonceWallet, int64(st.tx.Nonce)) //nolint:gosec // G115: nonces are far from the limit
	return err
}
