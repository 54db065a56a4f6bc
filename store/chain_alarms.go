package store

import (
	"context"
	"database/sql"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Outgoing movements that are not accounted for. An alarm is a row of deposit_quarantine; the database function
// payment_hold returns which payments wait for an officer because of it.

// alarm is a movement set aside for an officer.
type alarm struct {
	network  exchange.Network
	block    exchange.ChainBlock
	movement exchange.ChainMovement
	why      exchange.QuarantineReason
	detail   string
	wallet   uuid.UUID // the sending wallet, when the alarm holds up the wallet or a payment
	payment  uuid.UUID // the payment whose transaction it is
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
		"tx_hash": clip(m.TxID, 500), "index": m.Index, "from": clip(m.From, 500), "to": clip(m.To, 500), "asset": m.Amount.Asset(),
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
	n, err := t.Exec(ctx, insertQuarantine, id, a.network, blockNumber(a.block.Number), clip(m.TxID, maxTxID), int64(m.Index), a.why,
		clip(a.detail, 500), raw, t.s.now(), nullID(a.wallet), to, asset, amount, nullID(a.payment))
	if err != nil || n == 0 {
		return err
	}
	t.s.log.ErrorContext(ctx, "a movement on a chain needs an officer", "network", a.network, "block", a.block.Number, "reason", a.why, "quarantine", id)
	payload["network"], payload["reason"] = a.network, a.why
	return t.record(ctx, auditEvent{by: watching, object: "deposit_quarantine", id: id, name: "deposit_quarantine.opened", after: payload})
}

// outgoing is the alarm about money that left a wallet without a payment that accounts for it. An unknown transaction
// blocks all signing of the wallet; a known one holds up only its payment.
func (sc *scan) outgoing(m exchange.ChainMovement, from uuid.UUID) alarm {
	a := alarm{
		network: sc.network, block: sc.block, movement: m, wallet: from, why: exchange.QuarantineOutgoing,
		detail: "no payment of ours made this transaction",
	}
	if payment, ours := sc.givenUp[m.TxID]; ours {
		a.why, a.payment = exchange.QuarantineUnexpected, payment
		a.detail = "this transaction of ours was recorded as paying nothing, so its payment may be carried out a second time"
	}
	return a
}

// refused is the alarm about a movement that the database rejected. An outgoing one holds up its wallet as if it had
// been stored.
func (sc *scan) refused(m exchange.ChainMovement, cause error) alarm {
	a := alarm{network: sc.network, block: sc.block, movement: m, why: exchange.QuarantineRefused, detail: cause.Error()}
	if from, leaves := sc.byAddress[m.From]; leaves && sc.payments[m.TxID] == uuid.Nil && sc.givenUp[m.TxID] == uuid.Nil && !m.Amount.IsZero() {
		a.wallet = from.ID
	}
	return a
}

const ownOfTx = `SELECT ` + depositColumns + ` FROM chain_deposits
WHERE network = $1 AND tx_id = $2 AND status = 'final' AND kind = 'own' AND amount > 0 ORDER BY event_index LIMIT 100`

// doubt raises the alarm about an ended transaction of the step's payment that made no payment but moved money: the
// network reports it as carried out, or the watch had seen it move money as an expected movement of ours. Movements
// that the watch sees later are checked against the given-up transaction there.
func (st *step) doubt(ctx context.Context, a exchange.ChainAttempt, carriedOut bool) error {
	if err := st.t.lockTransaction(ctx, a.Network, a.TxID); err != nil {
		return err
	}
	var seen []exchange.ChainDeposit
	if err := st.t.All(ctx, &seen, ownOfTx, a.Network, a.TxID); err != nil {
		return err
	}
	p := st.payment
	found := alarm{network: a.Network, why: exchange.QuarantineUnexpected, wallet: p.WalletID, payment: p.ID}
	for _, d := range seen {
		found.block = exchange.ChainBlock{Number: d.Block, ID: d.BlockID}
		found.movement = exchange.ChainMovement{TxID: d.TxID, Index: d.Index, From: d.From, To: d.To, Amount: d.Amount}
		found.detail = "this transaction of ours was recorded as paying nothing after the watch had seen it move money"
		if err := st.t.setAside(ctx, found); err != nil {
			return err
		}
	}
	if !carriedOut || len(seen) > 0 {
		return nil
	}
	found.block = exchange.ChainBlock{Number: a.Block, ID: a.BlockID}
	found.movement = exchange.ChainMovement{TxID: a.TxID, From: p.FromAddress, To: p.ToAddress, Amount: p.Amount}
	found.detail = "this transaction of ours was carried out but did not make the payment; what it moved instead is unknown"
	return st.t.setAside(ctx, found)
}

const settleAsOurs = `UPDATE deposit_quarantine SET settled_at = $3, note = $4
WHERE network = $1 AND tx_id = $2 AND reason = 'not_our_send' AND settled_at IS NULL AND event_index = coalesce($5, event_index) RETURNING id`

// becomesOurs settles the alarm about a transaction that the watch saw before it was stored here, as one that was imported: of
// all its movements, or of one. The
// caller has stored it: the signer may settle no other alarm.
func (t unitTx) becomesOurs(ctx context.Context, n exchange.Network, txID string, index sql.NullInt64, note string, by exchange.Principal) error {
	if err := t.lockTransaction(ctx, n, txID); err != nil {
		return err
	}
	var ids []uuid.UUID
	if err := t.All(ctx, &ids, settleAsOurs, n, txID, t.s.now(), note, index); err != nil {
		return err
	}
	for _, id := range ids {
		f := auditEvent{by: by, object: "deposit_quarantine", id: id, name: "deposit_quarantine.settled", after: map[string]any{"id": id, "note": note}}
		if err := t.record(ctx, f); err != nil {
			return err
		}
	}
	return nil
}
