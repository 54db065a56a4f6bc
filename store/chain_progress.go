package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// step is one report of the network about one transaction.
type step struct {
	t       unitTx
	object  paymentObject
	payment exchange.ChainPayment
	tx      exchange.ChainAttempt
	posting exchange.Posting
}

const paymentOfTx = `SELECT payment_id FROM chain_attempts WHERE id = $1`

const lockTx = `SELECT ` + txColumns + ` FROM chain_attempts WHERE id = $1 FOR NO KEY UPDATE`

// chainStep locks a transaction with its payment and object, runs fn, and returns the payment.
func (s *Store) chainStep(ctx context.Context, attemptID uuid.UUID, fn func(context.Context, *step) error) (exchange.ChainPayment, error) {
	return change(ctx, s, "transaction", attemptID, func(ctx context.Context, t unitTx) (exchange.ChainPayment, exchange.Posting, error) {
		st := &step{t: t}
		var paymentID uuid.UUID
		if err := t.Get(ctx, &paymentID, paymentOfTx, attemptID); err != nil {
			return st.payment, st.posting, translate(err, "transaction")
		}
		var err error
		if st.object, st.payment, err = t.objectOf(ctx, paymentID); err != nil {
			return st.payment, st.posting, err
		}
		if err := t.Get(ctx, &st.tx, lockTx, attemptID); err != nil {
			return st.payment, st.posting, translate(err, "transaction")
		}
		err = fn(ctx, st)
		return st.payment, st.posting, err
	})
}

const saveTx = `
UPDATE chain_attempts SET status = $2, block = $3, block_id = $4, fee = $5, last_code = $6, broadcasts = $7, updated_at = $8
WHERE id = $1 AND status = ANY ($9)`

// moveTx stores a transaction that differs from before.
func (t unitTx) moveTx(ctx context.Context, before, a exchange.ChainAttempt) error {
	from := []exchange.ChainAttemptStatus{before.Status}
	if a.Status != before.Status {
		if err := exchange.ChainAttemptMachine.Allow(before.Status, a.Status); err != nil {
			return err
		}
		from = exchange.ChainAttemptMachine.Sources(a.Status)
	}
	return t.One(ctx, saveTx, a.ID, a.Status, int64(a.Block), a.BlockID, a.Fee.Decimal(), clip(a.LastCode, 500), a.Broadcasts, t.s.now(), pq.Array(from)) //nolint:gosec // G115: block numbers are far from the limit
}

// saveTx stores the network's report about the transaction.
func (st *step) saveTx(ctx context.Context, a exchange.ChainAttempt) error {
	err := st.t.moveTx(ctx, st.tx, a)
	st.tx = a
	return err
}

// pay moves the payment, unless it has that status already.
func (st *step) pay(ctx context.Context, to exchange.ChainPaymentStatus, edit func(*exchange.ChainPayment)) error {
	p := st.payment
	p.Status = to
	edit(&p)
	if p.Status == st.payment.Status && p.Detail == st.payment.Detail && p.TxID == st.payment.TxID && p.Block == st.payment.Block {
		return nil
	}
	var err error
	st.payment, err = st.t.savePayment(ctx, flow, st.object, st.payment, p)
	return err
}

// follow moves the payment's object along.
func (st *step) follow(ctx context.Context, to paymentStage) error {
	return st.object.follow(ctx, st.t, to, st.tx.TxID)
}

// RecordBroadcast stores a node's response to the signed bytes. Once a node accepted them, the payment is broadcast
// and its order confirming.
func (s *Store) RecordBroadcast(ctx context.Context, attemptID uuid.UUID, code string, accepted bool) (exchange.ChainPayment, error) {
	return s.chainStep(ctx, attemptID, func(ctx context.Context, st *step) error {
		a := st.tx
		if !a.Leads() {
			return nil // a late response about a transaction whose outcome is known or that was replaced
		}
		a.LastCode = code
		a.Broadcasts++
		if accepted && a.Status == exchange.TxSigned {
			a.Status = exchange.TxBroadcast
		}
		if err := st.saveTx(ctx, a); err != nil || !accepted {
			return err
		}
		if st.payment.Status == exchange.ChainSigned {
			if err := st.pay(ctx, exchange.ChainBroadcast, func(*exchange.ChainPayment) {}); err != nil {
				return err
			}
		}
		return st.follow(ctx, stageBroadcast)
	})
}

// RecordIncluded stores the block in which the transaction was seen; the block is not final yet. The transaction leads
// from now on, even if it was replaced before.
func (s *Store) RecordIncluded(ctx context.Context, attemptID uuid.UUID, block uint64, blockID string) (exchange.ChainPayment, error) {
	return s.chainStep(ctx, attemptID, func(ctx context.Context, st *step) error {
		a := st.tx
		if a.Status == exchange.TxSucceeded || a.Status == exchange.TxFailed {
			return nil // final already
		}
		if err := st.takeLead(ctx); err != nil {
			return err
		}
		a.Status, a.Block, a.BlockID = exchange.TxIncluded, block, blockID
		if err := st.saveTx(ctx, a); err != nil {
			return err
		}
		if err := st.pay(ctx, exchange.ChainIncluded, func(p *exchange.ChainPayment) { p.TxID, p.Block = a.TxID, block }); err != nil {
			return err
		}
		return st.follow(ctx, stageIncluded)
	})
}

// RecordVanished stores that the transaction's block was reorganised away. The transaction counts as broadcast again,
// or the one with the highest bid does where others share its number. The payment's object goes back.
func (s *Store) RecordVanished(ctx context.Context, attemptID uuid.UUID) (exchange.ChainPayment, error) {
	return s.chainStep(ctx, attemptID, func(ctx context.Context, st *step) error {
		a := st.tx
		if a.Status == exchange.TxBroadcast || a.Status == exchange.TxSigned || a.Status == exchange.TxReplaced {
			return nil // vanished before
		}
		if err := st.loseBlock(ctx); err != nil {
			return err
		}
		if err := st.pay(ctx, exchange.ChainBroadcast, func(p *exchange.ChainPayment) { p.TxID, p.Block = st.tx.TxID, 0 }); err != nil {
			return err
		}
		return st.follow(ctx, stageVanished)
	})
}

// RecordExpired stores the proof that the transaction can never be included any more. Only now may another one be
// signed. On a sequenced network the proof is that a foreign transaction used its number: then all with the number
// have expired, and the wallet's sequence is closed.
func (s *Store) RecordExpired(ctx context.Context, attemptID uuid.UUID, evidence string) (exchange.ChainPayment, error) {
	return s.chainStep(ctx, attemptID, func(ctx context.Context, st *step) error {
		a := st.tx
		if a.Status == exchange.TxExpired {
			return nil
		}
		a.Status, a.LastCode, a.Block, a.BlockID = exchange.TxExpired, evidence, 0, ""
		if err := st.saveTx(ctx, a); err != nil {
			return err
		}
		if err := st.doubt(ctx, st.tx, false); err != nil {
			return err
		}
		if err := st.expireOthers(ctx, evidence); err != nil {
			return err
		}
		if err := st.closeNonceSequence(ctx); err != nil {
			return err
		}
		if err := st.pay(ctx, exchange.ChainApproved, func(p *exchange.ChainPayment) { p.TxID, p.Block = "", 0 }); err != nil {
			return err
		}
		return st.follow(ctx, stageApproved)
	})
}

// carriedOut is the code on all networks for a transaction that was executed successfully.
const carriedOut = "SUCCESS"

// RecordFinal stores the outcome of a transaction in a final block, with the network's fee. One that made the expected
// transfer completes the payment: the reserved crypto is spent and has left custody. Otherwise the payment is parked
// for an officer; its fee is booked all the same. If such a transaction was carried out, or the watch has seen it move
// something, an alarm holds the payment up until an officer settles it. Others with its number expire. It may be
// called again with the same outcome.
func (s *Store) RecordFinal(ctx context.Context, attemptID uuid.UUID, ok bool, block uint64, blockID string, fee money.Amount, code string) (exchange.ChainPayment, error) {
	return s.recordFinal(ctx, attemptID, ok, block, blockID, fee, code, 0)
}

// RecordOutOfGas is RecordFinal for a transaction that failed because its fee did not suffice. It moved nothing, so the payment is
// approved again and not parked, unless that many of its transactions have failed so. Another one is signed when the watch has
// read all blocks that could take this one, see SigningHold.
func (s *Store) RecordOutOfGas(ctx context.Context, attemptID uuid.UUID, block uint64, blockID string, fee money.Amount, code string, limit int) (exchange.ChainPayment, error) {
	return s.recordFinal(ctx, attemptID, false, block, blockID, fee, code, limit)
}

func (s *Store) recordFinal(ctx context.Context, attemptID uuid.UUID, ok bool, block uint64, blockID string, fee money.Amount, code string, limit int) (exchange.ChainPayment, error) {
	to := exchange.TxFailed
	if ok {
		to = exchange.TxSucceeded
	}
	return s.chainStep(ctx, attemptID, func(ctx context.Context, st *step) error {
		a := st.tx
		if a.Status == to {
			return nil
		}
		if fee.Asset() == "" || st.sentByOther() {
			fee = money.Zero(st.payment.Network.NativeCoin())
		}
		if fee.Sign() < 0 || fee.Asset() != st.payment.Network.NativeCoin() {
			return exchange.Errorf(exchange.CodeInternal, "a fee of %s %s is not in the gas coin of %s", fee, fee.Asset(), st.payment.Network)
		}
		a.Status, a.Block, a.BlockID, a.Fee, a.LastCode = to, block, blockID, fee, code
		if err := st.saveTx(ctx, a); err != nil {
			return err
		}
		if err := st.expireOthers(ctx, "the number was used by "+a.TxID); err != nil {
			return err
		}
		if total := st.payment.Fee.Add(fee); ok {
			return st.complete(ctx, fee, total)
		}
		return st.fail(ctx, fee, code, limit)
	})
}

const countFailed = `SELECT count(*) FROM chain_attempts WHERE payment_id = $1 AND status = 'failed' AND last_code = $2`

// fail parks the payment of a transaction that did not make it, or approves it again while fewer than limit have failed with the
// code, and books the fee.
func (st *step) fail(ctx context.Context, fee money.Amount, code string, limit int) error {
	var failed int
	if err := st.t.Get(ctx, &failed, countFailed, st.payment.ID, st.tx.LastCode); err != nil {
		return err
	}
	to, stage := exchange.ChainParked, stageParked
	if failed < limit {
		to, stage = exchange.ChainApproved, stageApproved
	}
	err := st.pay(ctx, to, func(p *exchange.ChainPayment) {
		p.Fee = p.Fee.Add(fee)
		if p.Detail, p.TxID, p.Block = clip(code, 200), st.tx.TxID, st.tx.Block; to == exchange.ChainApproved {
			p.Detail, p.TxID, p.Block = "", "", 0
		}
	})
	if err != nil {
		return err
	}
	if err := st.doubt(ctx, st.tx, code == carriedOut); err != nil {
		return err
	}
	if fee.Positive() {
		if err := st.bookFee(ctx, "chain_attempt:"+st.tx.ID.String()+":fee", "chain_attempt.failed", fee, nil); err != nil {
			return err
		}
	}
	return st.follow(ctx, stage)
}
