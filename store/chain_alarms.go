package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
)

// What left a wallet of ours and is not accounted for. An alarm is a row of deposit_quarantine; the function
// payment_hold of the database says which payments wait for a person because of it.

// alarm is what is set aside for a person.
type alarm struct {
	network  exchange.Network
	block    exchange.ChainBlock
	movement exchange.ChainMovement
	why      exchange.QuarantineReason
	detail   string
	wallet   uuid.UUID // that the money left, where that holds up the wallet or a payment
	payment  uuid.UUID // whose transaction it is
}

const insertQuarantine = `
INSERT INTO deposit_quarantine (id, network, block, tx_id, event_index, reason, detail, payload, created_at, wallet_id, to_address, asset, amount, payment_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT ON CONSTRAINT deposit_quarantine_key DO NOTHING`

// setAside writes an alarm, once for each movement and reason.
func (t unitTx) setAside(ctx context.Context, a alarm) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	m := a.movement
	payload := map[string]any{
		"tx_id": clip(m.TxID, 500), "index": m.Index, "from": clip(m.From, 500), "to": clip(m.To, 500), "asset": m.Amount.Asset(),
		"amount": m.Amount.Decimal().String(), "block": a.block.Number, "block_id": a.block.ID,
	}
	if a.payment != uuid.Nil {
		payload["payment_id"] = a.payment
	}
	raw, err := document(payload)
	if err != nil {
		return err
	}
	var to string
	var asset, amount any
	if a.why == exchange.QuarantineOutgoing || a.why == exchange.QuarantineUnexpected { // what was refused may be what no column takes
		to, asset, amount = m.To, m.Amount.Asset(), m.Amount.Decimal()
	}
	n, err := t.exec(ctx, insertQuarantine, id, a.network, blockNumber(a.block.Number), clip(m.TxID, maxTxID), int64(m.Index), a.why,
		clip(a.detail, 500), raw, t.s.now(), nullID(a.wallet), to, asset, amount, nullID(a.payment))
	if err != nil || n == 0 {
		return err
	}
	t.s.log.ErrorContext(ctx, "a movement on a chain needs a person", "network", a.network, "block", a.block.Number, "reason", a.why, "quarantine", id)
	payload["network"], payload["reason"] = a.network, a.why
	return t.record(ctx, fact{by: watching, object: "deposit_quarantine", id: id, name: "deposit_quarantine.opened", after: payload})
}

// outgoing is the alarm about money that left a wallet without a payment that accounts for it. The wallet signs
// nothing more when nobody here knows the transaction; otherwise it is the transaction's payment that waits.
func (sc *scan) outgoing(m exchange.ChainMovement, from uuid.UUID) alarm {
	a := alarm{
		network: sc.network, block: sc.block, movement: m, wallet: from, why: exchange.QuarantineOutgoing,
		detail: "no payment of ours made this transaction",
	}
	if payment, ours := sc.givenUp[m.TxID]; ours {
		a.why, a.payment = exchange.QuarantineUnexpected, payment
		a.detail = "this transaction of ours was judged to pay nothing, and its payment may be carried out a second time"
	}
	return a
}

// refused is the alarm about a movement that the database did not take. One that left a wallet holds the wallet
// up as if it had been taken.
func (sc *scan) refused(m exchange.ChainMovement, cause error) alarm {
	a := alarm{network: sc.network, block: sc.block, movement: m, why: exchange.QuarantineRefused, detail: cause.Error()}
	if from, leaves := sc.byAddress[m.From]; leaves && sc.payments[m.TxID] == uuid.Nil && sc.givenUp[m.TxID] == uuid.Nil && !m.Amount.IsZero() {
		a.wallet = from.ID
	}
	return a
}

const ownOfTx = `SELECT ` + depositColumns + ` FROM chain_deposits
WHERE network = $1 AND tx_id = $2 AND status = 'final' AND kind = 'own' AND amount > 0 ORDER BY event_index LIMIT 100`

// doubt raises the alarm about a transaction of the step's payment that is over and made no payment, when it
// moved something all the same: carried out tells that the network says so, and the watch may have seen it
// before, as a movement of ours that needs no attention. Movements that the watch meets later, it finds given up.
func (st *step) doubt(ctx context.Context, a exchange.ChainAttempt, carriedOut bool) error {
	if _, err := st.t.exec(ctx, lockTransactions, a.Network, pq.Array([]string{a.TxID})); err != nil {
		return err
	}
	var rows []depositRow
	if err := st.t.all(ctx, &rows, ownOfTx, a.Network, a.TxID); err != nil {
		return err
	}
	seen, err := convert(rows, depositRow.deposit)
	if err != nil {
		return err
	}
	p := st.payment
	found := alarm{network: a.Network, why: exchange.QuarantineUnexpected, wallet: p.WalletID, payment: p.ID}
	for _, d := range seen {
		found.block = exchange.ChainBlock{Number: d.Block, ID: d.BlockID}
		found.movement = exchange.ChainMovement{TxID: d.TxID, Index: d.Index, From: d.From, To: d.To, Amount: d.Amount}
		found.detail = "this transaction of ours was judged to pay nothing after the watch had seen it move money"
		if err := st.t.setAside(ctx, found); err != nil {
			return err
		}
	}
	if !carriedOut || len(seen) > 0 {
		return nil
	}
	found.block = exchange.ChainBlock{Number: a.Block, ID: a.BlockID}
	found.movement = exchange.ChainMovement{TxID: a.TxID, From: p.FromAddress, To: p.ToAddress, Amount: p.Amount}
	found.detail = "this transaction of ours was carried out and did not make the payment; what it moved instead is not known"
	return st.t.setAside(ctx, found)
}

const settleAsOurs = `UPDATE deposit_quarantine SET settled_at = $3, note = $4
WHERE network = $1 AND tx_id = $2 AND reason = 'not_our_send' AND settled_at IS NULL RETURNING id`

// becomesOurs settles the alarm about a transaction that the watch met before it was handed to us.
func (t unitTx) becomesOurs(ctx context.Context, n exchange.Network, txID, note string, by exchange.Principal) error {
	if _, err := t.exec(ctx, lockTransactions, n, pq.Array([]string{txID})); err != nil {
		return err
	}
	var ids []uuid.UUID
	if err := t.all(ctx, &ids, settleAsOurs, n, txID, t.s.now(), note); err != nil {
		return err
	}
	for _, id := range ids {
		f := fact{by: by, object: "deposit_quarantine", id: id, name: "deposit_quarantine.settled", after: map[string]any{"id": id, "note": note}}
		if err := t.record(ctx, f); err != nil {
			return err
		}
	}
	return nil
}
