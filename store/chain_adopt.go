package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const lockQuarantine = `SELECT network, tx_id, event_index, reason, settled_at IS NOT NULL AS settled FROM deposit_quarantine WHERE id = $1 FOR UPDATE`

const finalMovement = `SELECT ` + depositColumns + ` FROM chain_deposits WHERE network = $1 AND tx_id = $2 AND event_index = $3 AND status = 'final'`

const attemptOfTx = `SELECT ` + txColumns + ` FROM chain_attempts WHERE network = $1 AND tx_id = $2`

// AdoptSend settles money that left a wallet as having been a payment of ours, whose transaction this database has
// lost: a person compared the two. The transaction becomes the payment's, and the payment completes by it like
// any other; nothing is signed. The movement must be final and exactly what the payment says, and the payment
// approved or parked without a live transaction or one that was handed out; otherwise it is CodeStateConflict.
// CodeUnsupported for the house's own coins. Where transactions have numbers the wallet's lane stays as it is, and
// ReopenLane lets it go on. Called again with the same payment it changes nothing.
func (s *Store) AdoptSend(ctx context.Context, quarantineID, paymentID uuid.UUID, note string, by exchange.Principal) (exchange.ChainPayment, error) {
	if err := require(note != "" && len([]rune(note)) <= 400, "/note", "required", "must say why, in at most 400 characters"); err != nil {
		return exchange.ChainPayment{}, err
	}
	return change(ctx, s, "chain payment", paymentID, func(ctx context.Context, t unitTx) (exchange.ChainPayment, exchange.Posting, error) {
		p, err := t.adopt(ctx, quarantineID, paymentID, note, by)
		return p, exchange.Posting{}, err
	})
}

func (t unitTx) adopt(ctx context.Context, quarantineID, paymentID uuid.UUID, note string, by exchange.Principal) (exchange.ChainPayment, error) {
	object, p, err := t.objectOf(ctx, paymentID)
	if err != nil {
		return p, err
	}
	var q struct {
		Network exchange.Network
		TxID    string `db:"tx_id"`
		Index   int64  `db:"event_index"`
		Reason  exchange.QuarantineReason
		Settled bool
	}
	if err := t.get(ctx, &q, lockQuarantine, quarantineID); err != nil {
		return p, translate(err, "quarantined movement")
	}
	var known []txRow
	if err := t.all(ctx, &known, attemptOfTx, q.Network, q.TxID); err != nil {
		return p, err
	}
	switch {
	case len(known) == 1 && known[0].PaymentID == paymentID:
		return p, nil
	case len(known) > 0 || q.Settled || q.Reason != exchange.QuarantineOutgoing:
		return p, exchange.Errorf(exchange.CodeStateConflict, "The movement is settled, or is none that left without us.")
	case !p.Purpose.Owed(): // the house's own coins: what is sent twice stays in our custody
		return p, exchange.Errorf(exchange.CodeUnsupported, "A payment for %s can't be completed by a transaction that is not known here.", p.Purpose)
	}
	d, err := t.movementOf(ctx, p, q.Network, q.TxID, q.Index)
	if err != nil {
		return p, err
	}
	return t.takeOver(ctx, object, p, d, note, by)
}

// movementOf reads a final movement that is exactly what a payment was to make.
func (t unitTx) movementOf(ctx context.Context, p exchange.ChainPayment, n exchange.Network, tx string, index int64) (exchange.ChainDeposit, error) {
	var rows []depositRow
	if err := t.all(ctx, &rows, finalMovement, n, tx, index); err != nil {
		return exchange.ChainDeposit{}, err
	}
	if len(rows) == 0 {
		return exchange.ChainDeposit{}, exchange.Errorf(exchange.CodeStateConflict, "The movement is not final.")
	}
	d, err := rows[0].deposit()
	if err != nil {
		return d, err
	}
	if d.Network != p.Network || d.FromWalletID != p.WalletID || d.To != p.ToAddress || d.Amount.Asset() != p.Amount.Asset() || !d.Amount.Equal(p.Amount) {
		return d, exchange.Errorf(exchange.CodeStateConflict, "The movement is not what the payment says.")
	}
	return d, nil
}

// takeOver makes a transaction that is on the final chain the payment's live one. What stands for its bytes is no
// transaction: it is never offered, because the chain has it.
func (t unitTx) takeOver(ctx context.Context, object paymentObject, p exchange.ChainPayment, d exchange.ChainDeposit, note string, by exchange.Principal) (exchange.ChainPayment, error) {
	if _, alive, err := t.liveAttempt(ctx, p.ID); err != nil || alive || (p.Status != exchange.ChainApproved && p.Status != exchange.ChainParked) {
		if err == nil {
			err = exchange.Errorf(exchange.CodeStateConflict, "A payment that is %s takes no other transaction.", p.Status)
		}
		return p, err
	}
	if err := t.closeDraft(ctx, p.ID); err != nil { // it could pay beside what was found; if it is that, it can be imported
		return p, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return p, err
	}
	signed, err := t.insertTx(ctx, p, exchange.ChainAttempt{ID: id, PaymentID: p.ID, TxID: d.TxID, Raw: []byte("found on the chain: " + d.TxID), Adopted: true})
	if err != nil {
		return p, err
	}
	included := signed
	included.Status, included.Block, included.BlockID = exchange.TxIncluded, d.Block, d.BlockID
	if err := t.moveTx(ctx, signed, included); err != nil {
		return p, err
	}
	for _, to := range []exchange.ChainPaymentStatus{exchange.ChainApproved, exchange.ChainSigned, exchange.ChainIncluded} {
		if p.Status == to {
			continue
		}
		next := p
		next.Status, next.Detail, next.TxID, next.Block = to, "", d.TxID, d.Block
		if p, err = t.savePayment(ctx, by, object, p, next); err != nil {
			return p, err
		}
	}
	if err := t.becomesOurs(ctx, d.Network, d.TxID, "payment "+p.ID.String()+": "+note, by); err != nil {
		return p, err
	}
	return p, object.follow(ctx, t, stageIncluded, d.TxID)
}

const unmatchedOf = `
SELECT exception_id FROM chain_deposits WHERE network = $1 AND tx_id = $2 AND wallet_id = $3 AND from_wallet_id = $4 AND asset = $5 AND amount = $6
    AND status = 'final' AND kind = 'unmatched'`

// outOfSuspense tells whether what a payment brought into a wallet of ours still lies in suspense, where the watch
// booked it before anybody knew the transaction as ours, and ends the exception that says so: the payment's
// completion takes it out. What a person has settled otherwise stays as it was settled.
func (t unitTx) outOfSuspense(ctx context.Context, p exchange.ChainPayment, wallet uuid.UUID) (bool, error) {
	var ids []uuid.UUID
	if err := t.all(ctx, &ids, unmatchedOf, p.Network, p.TxID, wallet, p.WalletID, p.Amount.Asset(), p.Amount.Decimal()); err != nil || len(ids) == 0 {
		return false, err
	}
	x, err := t.lockedException(ctx, ids[0])
	if err != nil || x.Status != exchange.ExcOpen {
		return false, err
	}
	_, err = t.moveException(ctx, x, exchange.ExcCredited, "payment "+p.ID.String()+" brought it", flow)
	return err == nil, err
}
