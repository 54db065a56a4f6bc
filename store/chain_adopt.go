package store

import (
	"context"
	"database/sql"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const lockQuarantine = `SELECT network, tx_id, event_index, reason, settled_at IS NOT NULL AS settled FROM deposit_quarantine WHERE id = $1 FOR UPDATE`

const finalMovement = `SELECT ` + depositColumns + ` FROM chain_deposits WHERE network = $1 AND tx_id = $2 AND event_index = $3 AND status = 'final'`

const attemptOfTx = `SELECT ` + txColumns + ` FROM chain_attempts WHERE network = $1 AND tx_id = $2`

// adopt settles an outgoing movement as a payment of ours whose transaction this database lost: two officers compared
// them. The transaction becomes the payment's, which completes by it as usual; nothing is signed. CodeStateConflict unless
// the movement is final and matches the payment exactly, and the payment is approved or parked without a live or
// handed-out transaction. CodeUnsupported for the house's own coins. On sequenced networks the wallet's sequence stays as
// it is; a reopening lets it continue. A repeated call with the same payment changes nothing.
func (t unitTx) adopt(ctx context.Context, quarantineID, paymentID uuid.UUID, note string, by exchange.Principal) (exchange.ChainPayment, error) {
	if p, err := readOne[exchange.ChainPayment](ctx, t, "chain payment", readPayment, paymentID); err != nil || p.Purpose == exchange.ForProposal {
		if err == nil { // its flow finds what owners signed, whoever sent it
			err = exchange.Errorf(exchange.CodeUnsupported, "A payment that owners of a wallet sign is completed by its own flow.")
		}
		return p, err
	}
	object, p, err := t.objectOf(ctx, paymentID)
	if err != nil {
		return p, err
	}
	var q struct {
		Network exchange.Network
		TxID    string
		Index   int64 `db:"event_index"`
		Reason  exchange.QuarantineReason
		Settled bool
	}
	if err := t.Get(ctx, &q, lockQuarantine, quarantineID); err != nil {
		return p, translate(err, "quarantined movement")
	}
	var known []exchange.ChainAttempt
	if err := t.All(ctx, &known, attemptOfTx, q.Network, q.TxID); err != nil {
		return p, err
	}
	switch {
	case len(known) == 1 && known[0].PaymentID == paymentID:
		return p, nil
	case len(known) > 0 || q.Settled || q.Reason != exchange.QuarantineOutgoing:
		return p, exchange.Errorf(exchange.CodeStateConflict, "The movement is already settled, or is not an unaccounted outgoing one.")
	case !p.Purpose.Owed(): // the house's own coins: sent twice, they stay in our custody
		return p, exchange.Errorf(exchange.CodeUnsupported, "A payment for %s can't be completed by a transaction that is not known here.", p.Purpose)
	}
	d, err := t.movementOf(ctx, p, q.Network, q.TxID, q.Index)
	if err != nil {
		return p, err
	}
	return t.takeOver(ctx, object, p, d, note, by)
}

// movementOf reads a final movement that matches a payment exactly.
func (t unitTx) movementOf(ctx context.Context, p exchange.ChainPayment, n exchange.Network, tx string, index int64) (exchange.ChainDeposit, error) {
	var rows []exchange.ChainDeposit
	if err := t.All(ctx, &rows, finalMovement, n, tx, index); err != nil {
		return exchange.ChainDeposit{}, err
	}
	if len(rows) == 0 {
		return exchange.ChainDeposit{}, exchange.Errorf(exchange.CodeStateConflict, "The movement is not final.")
	}
	d := rows[0]
	if d.Network != p.Network || d.FromWalletID != p.WalletID || d.To != p.ToAddress || d.Amount.Asset() != p.Amount.Asset() || !d.Amount.Equal(p.Amount) {
		return d, exchange.Errorf(exchange.CodeStateConflict, "The movement does not match the payment.")
	}
	return d, nil
}

// takeOver makes a transaction on the final chain the payment's live one. Its stored bytes are a placeholder: it is
// never broadcast, because the chain already has it.
func (t unitTx) takeOver(ctx context.Context, object paymentObject, p exchange.ChainPayment, d exchange.ChainDeposit, note string, by exchange.Principal) (exchange.ChainPayment, error) {
	if _, alive, err := t.liveAttempt(ctx, p.ID); err != nil || alive || (p.Status != exchange.ChainApproved && p.Status != exchange.ChainParked) {
		if err == nil {
			err = exchange.Errorf(exchange.CodeStateConflict, "A payment that is %s can't take another transaction.", p.Status)
		}
		return p, err
	}
	if err := t.closeDraft(ctx, p.ID); err != nil { // it could pay a second time; if it is the transaction found, it can be imported
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
	var index sql.NullInt64
	if p.Purpose == exchange.ForProposal { // its other movements may be those of other proposals
		index = sql.NullInt64{Int64: int64(d.Index), Valid: true}
	}
	if p.Amount.IsZero() { // nothing moved that the watch could have taken for an unknown movement
		return p, object.follow(ctx, t, stageIncluded, d.TxID)
	}
	if err := t.becomesOurs(ctx, d.Network, d.TxID, index, "payment "+p.ID.String()+": "+note, by); err != nil {
		return p, err
	}
	return p, object.follow(ctx, t, stageIncluded, d.TxID)
}

const unmatchedOf = `
SELECT exception_id FROM chain_deposits WHERE network = $1 AND tx_id = $2 AND wallet_id = $3 AND from_wallet_id = $4 AND asset = $5 AND amount = $6
    AND status = 'final' AND kind = 'unmatched'`

// outOfSuspense reports whether the payment's incoming money still lies in suspense, where the watch booked it before
// the transaction was known as ours, and ends its exception: the payment's completion moves it out. An exception that
// an officer settled otherwise stays as it is.
func (t unitTx) outOfSuspense(ctx context.Context, p exchange.ChainPayment, wallet uuid.UUID) (bool, error) {
	var ids []uuid.UUID
	if err := t.All(ctx, &ids, unmatchedOf, p.Network, p.TxID, wallet, p.WalletID, p.Amount.Asset(), p.Amount.Decimal()); err != nil || len(ids) == 0 {
		return false, err
	}
	x, err := t.lockedException(ctx, ids[0])
	if err != nil || x.Status != exchange.ExcOpen {
		return false, err
	}
	_, err = t.moveException(ctx, x, exchange.ExcCredited, "payment "+p.ID.String()+" brought it", flow)
	return err == nil, err
}
