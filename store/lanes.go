package store

import (
	"context"
	"database/sql"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The sequences of wallets on networks that number transactions. The tables nonce_lanes and nonces hold
// them, and their triggers refuse a gap, a number of two payments, and a number without signed bytes.

type laneRow struct {
	WalletID uuid.UUID `db:"wallet_id"`
	Next     int64
	Foreign  sql.NullInt64 `db:"foreign_nonce"`
}

func (r laneRow) lane() exchange.NonceLane {
	return exchange.NonceLane{WalletID: r.WalletID, Next: uint64(max(r.Next, 0)), Foreign: r.Foreign.Valid}
}

const readLane = `SELECT wallet_id, next, foreign_nonce FROM nonce_lanes WHERE wallet_id = $1`

const lockLane = readLane + ` FOR NO KEY UPDATE`

// NonceLane reads a wallet's sequence; false when nothing was sent from the wallet yet.
func (s *Store) NonceLane(ctx context.Context, walletID uuid.UUID) (exchange.NonceLane, bool, error) {
	var rows []laneRow
	if err := s.readAll(ctx, &rows, readLane, walletID); err != nil || len(rows) == 0 {
		return exchange.NonceLane{WalletID: walletID}, false, translate(err, "nonce lane")
	}
	return rows[0].lane(), true, nil
}

const laneReserve = `
SELECT coalesce(sum(a.fee_limit + CASE WHEN p.asset = $3 THEN p.amount ELSE 0 END), 0) FROM chain_attempts a JOIN chain_payments p ON p.id = a.payment_id
WHERE a.lane = $1 AND a.nonce >= $2 AND a.status IN ('signed', 'broadcast', 'included')`

// LaneReserve is the most native coin that the wallet's transactions from a number on may still cost:
// their fees, and what they send of it.
func (s *Store) LaneReserve(ctx context.Context, walletID uuid.UUID, n exchange.Network, from uint64) (money.Amount, error) {
	native := n.NativeCoin()
	var sum decimal.Decimal
	if err := s.read(ctx, &sum, laneReserve, walletID, int64(from), native); err != nil { //nolint:gosec // G115: nonces are far from the limit
		return money.Zero(native), translate(err, "nonce lane")
	}
	return amountOf(native, sum)
}

const openLane = `INSERT INTO nonce_lanes (wallet_id, first, next, opened_at) VALUES ($1, $2, $2, $3) ON CONFLICT DO NOTHING`

const insertNonce = `INSERT INTO nonces (wallet_id, nonce, payment_id) VALUES ($1, $2, $3)`

// takeNonce gives the payment the number that its transaction was signed with, if it is still the lane's
// next one. CodeConflict says that another payment was faster; the signature is worth nothing then.
func (t unitTx) takeNonce(ctx context.Context, p exchange.ChainPayment, a exchange.ChainAttempt) error {
	if a.Lane != p.WalletID {
		return exchange.Errorf(exchange.CodeInternal, "a transaction of wallet %s has the lane of %s", p.WalletID, a.Lane)
	}
	var rows []laneRow
	if err := t.all(ctx, &rows, lockLane, a.Lane); err != nil {
		return err
	}
	nonce := int64(a.Nonce) //nolint:gosec // G115: nonces are far from the limit
	if len(rows) == 0 {
		if _, err := t.exec(ctx, openLane, a.Lane, nonce, t.s.now()); err != nil {
			return err
		}
		if err := t.all(ctx, &rows, lockLane, a.Lane); err != nil {
			return err
		}
	}
	if len(rows) != 1 || rows[0].Next != nonce || rows[0].Foreign.Valid {
		return exchange.Errorf(exchange.CodeConflict, "The number %d of wallet %s is not free.", nonce, a.Lane)
	}
	_, err := t.exec(ctx, insertNonce, a.Lane, nonce, p.ID)
	return err
}

const nextTxNumber = `SELECT coalesce(max(n), 0) + 1 FROM chain_attempts WHERE payment_id = $1`

const insertTx = `
INSERT INTO chain_attempts (id, payment_id, network, n, tx_id, raw, expires_at, last_valid_height, lane, nonce, ref_block, bid_tip, bid_cap, fee_limit,
    status, created_at, updated_at, nonce_account, nonce_block, adopted)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'signed', $15, $15, $16, $17, $18) RETURNING ` + txColumns

// insertTx stores a signed transaction as the last one of its payment.
func (t unitTx) insertTx(ctx context.Context, p exchange.ChainPayment, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	var n int
	if err := t.get(ctx, &n, nextTxNumber, a.PaymentID); err != nil {
		return exchange.ChainAttempt{}, err
	}
	limit := a.FeeLimit
	if limit.Asset() == "" {
		limit = money.Zero(p.Network.NativeCoin())
	}
	var r txRow
	err := t.get(ctx, &r, insertTx, a.ID, a.PaymentID, p.Network, n, a.TxID, a.Raw, nullTime(a.ExpiresAt), int64(a.LastValidHeight), nullID(a.Lane), int64(a.Nonce), //nolint:gosec // G115: heights and nonces are far from the limit
		a.RefBlock, a.Bid.Tip.Decimal(), a.Bid.Cap.Decimal(), limit.Decimal(), t.s.now(), a.NonceAccount, int64(a.NonceBlock), a.Adopted) //nolint:gosec // G115: slots are far from the limit
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	return r.attempt()
}

// SaveSignedAttempt stores signed bytes before they are first sent, and on a sequenced network takes their
// number in the same transaction. When a transaction of the payment is alive already, that one is
// returned and the given one is dropped unsent: only stored bytes are ever sent. CodeStateConflict unless
// the payment is approved; CodeConflict when another payment has the transaction id or took the number.
func (s *Store) SaveSignedAttempt(ctx context.Context, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	return s.saveSigned(ctx, a, flow, func(context.Context, unitTx) error { return nil })
}

// saveSigned stores signed bytes, in one transaction with what goes before them.
func (s *Store) saveSigned(ctx context.Context, a exchange.ChainAttempt, by exchange.Principal, first func(context.Context, unitTx) error) (exchange.ChainAttempt, error) {
	meet := a.PaymentID
	if a.Lane != uuid.Nil {
		meet = a.Lane
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
		if a.Lane != uuid.Nil {
			if err := t.takeNonce(ctx, p, a); err != nil {
				return exchange.ChainAttempt{}, none, err
			}
		}
		// It locks the transaction, and the guard of fees the wallet after it, as the watch over the chain does.
		if err := t.becomesOurs(ctx, p.Network, a.TxID, "payment "+p.ID.String()+" made it", by); err != nil {
			return exchange.ChainAttempt{}, none, err
		}
		saved, err := t.insertTx(ctx, p, a)
		if err != nil {
			return saved, none, err
		}
		return saved, none, object.follow(ctx, t, stageSigned, a.TxID)
	})
}

// SaveReplacement stores signed bytes that outbid the payment's leading transaction, whose id is outbids:
// the same number, the same transfer, a higher bid. From now on the new one leads, and both are watched.
// When another transaction leads, or the leading one came into a block, that one is returned and the given
// one is dropped unsent. CodeStateConflict when no transaction of the payment is alive.
func (s *Store) SaveReplacement(ctx context.Context, outbids uuid.UUID, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
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
		if leader.ID != outbids || leader.Status == exchange.TxIncluded {
			return leader, none, nil
		}
		if leader.Lane == uuid.Nil || a.Lane != leader.Lane || a.Nonce != leader.Nonce {
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

const readTurn = `SELECT ` + txColumns + ` FROM chain_attempts WHERE lane = $1 AND nonce = $2 AND status IN ('signed', 'broadcast', 'included')`

// AttemptAt finds the transaction that leads at a number of a wallet's sequence.
func (s *Store) AttemptAt(ctx context.Context, walletID uuid.UUID, nonce uint64) (exchange.ChainAttempt, bool, error) {
	var rows []txRow
	if err := s.readAll(ctx, &rows, readTurn, walletID, int64(nonce)); err != nil || len(rows) == 0 { //nolint:gosec // G115: nonces are far from the limit
		return exchange.ChainAttempt{}, false, translate(err, "transaction")
	}
	a, err := rows[0].attempt()
	return a, err == nil, err
}

// others are the live transactions of the payment beside the step's own.
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

// takeLead makes room for the step's transaction to lead.
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

// loseBlock takes the step's transaction out of its block. The one with the highest bid leads then, which
// is the last that was signed; the step goes on about that one.
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
	if st.tx.Lane == uuid.Nil {
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

const markForeign = `UPDATE nonce_lanes SET foreign_nonce = $2 WHERE wallet_id = $1 AND foreign_nonce IS NULL`

// closeLane notes that somebody else used a number of the lane.
func (st *step) closeLane(ctx context.Context) error {
	if st.tx.Lane == uuid.Nil {
		return nil
	}
	_, err := st.t.exec(ctx, markForeign, st.tx.Lane, int64(st.tx.Nonce)) //nolint:gosec // G115: nonces are far from the limit
	return err
}
