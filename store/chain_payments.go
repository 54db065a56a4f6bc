package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const paymentColumns = `p.id, p.purpose, p.object_id, p.network, p.asset, p.amount, p.wallet_id, p.from_address, p.to_address, p.hold_id, p.intent_hash,
	p.status, p.detail, p.tx_id, p.block, p.fee, p.approved_by, p.created_at, p.updated_at, p.completed_at, p.version`

// paymentRow is a row of chain_payments.
type paymentRow struct {
	ID          uuid.UUID
	Purpose     exchange.ChainPurpose
	ObjectID    uuid.UUID `db:"object_id"`
	Network     exchange.Network
	Asset       money.Asset
	Amount      decimal.Decimal
	WalletID    uuid.UUID `db:"wallet_id"`
	FromAddress string    `db:"from_address"`
	ToAddress   string    `db:"to_address"`
	HoldID      uuid.UUID `db:"hold_id"`
	IntentHash  string    `db:"intent_hash"`
	Status      exchange.ChainPaymentStatus
	Detail      string
	TxID        string `db:"tx_id"`
	Block       int64
	Fee         decimal.Decimal
	ApprovedBy  string       `db:"approved_by"`
	CreatedAt   time.Time    `db:"created_at"`
	UpdatedAt   time.Time    `db:"updated_at"`
	CompletedAt sql.NullTime `db:"completed_at"`
	Version     int64
}

func (r paymentRow) payment() (exchange.ChainPayment, error) {
	p := exchange.ChainPayment{
		ID: r.ID, Purpose: r.Purpose, ObjectID: r.ObjectID, Network: r.Network, WalletID: r.WalletID, FromAddress: r.FromAddress,
		ToAddress: r.ToAddress, HoldID: r.HoldID, IntentHash: r.IntentHash, Status: r.Status, Detail: r.Detail, TxID: r.TxID,
		Block: uint64(max(r.Block, 0)), ApprovedBy: r.ApprovedBy, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
		CompletedAt: utc(r.CompletedAt), Version: r.Version,
	}
	var err error
	if p.Amount, err = amountOf(r.Asset, r.Amount); err != nil {
		return p, err
	}
	p.Fee, err = amountOf(r.Network.NativeCoin(), r.Fee)
	return p, err
}

func paymentFact(p exchange.ChainPayment) map[string]any {
	return map[string]any{
		"id": p.ID, "purpose": p.Purpose, "object_id": p.ObjectID, "network": p.Network, "asset": p.Amount.Asset(), "amount": p.Amount.String(),
		"from_address": p.FromAddress, "to_address": p.ToAddress, "status": p.Status, "detail": p.Detail, "tx_id": p.TxID, "block": p.Block,
		"fee": p.Fee.String(), "approved_by": p.ApprovedBy, "version": p.Version,
	}
}

const readPayment = `SELECT ` + paymentColumns + ` FROM chain_payments p WHERE p.id = $1`

const readPaymentOf = `SELECT ` + paymentColumns + ` FROM chain_payments p WHERE p.purpose = $1 AND p.object_id = $2`

const lockPayment = `SELECT ` + paymentColumns + ` FROM chain_payments p WHERE p.id = $1 FOR NO KEY UPDATE`

// ChainPayment reads a chain payment.
func (s *Store) ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error) {
	var r paymentRow
	if err := s.read(ctx, &r, readPayment, id); err != nil {
		return exchange.ChainPayment{}, translate(err, "chain payment")
	}
	return r.payment()
}

// ChainPaymentOf reads the chain payment that carries out an object.
func (s *Store) ChainPaymentOf(ctx context.Context, purpose exchange.ChainPurpose, objectID uuid.UUID) (exchange.ChainPayment, error) {
	var r paymentRow
	if err := s.read(ctx, &r, readPaymentOf, purpose, objectID); err != nil {
		return exchange.ChainPayment{}, translate(err, "chain payment")
	}
	return r.payment()
}

func (t unitTx) paymentOf(ctx context.Context, purpose exchange.ChainPurpose, objectID uuid.UUID) (exchange.ChainPayment, bool, error) {
	var rows []paymentRow
	if err := t.all(ctx, &rows, readPaymentOf, purpose, objectID); err != nil || len(rows) == 0 {
		return exchange.ChainPayment{}, false, err
	}
	p, err := rows[0].payment()
	return p, true, err
}

const insertPayment = `
INSERT INTO chain_payments (id, purpose, object_id, network, asset, amount, wallet_id, from_address, to_address, hold_id, intent_hash, status,
    approved_by, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'approved', $12, $13, $13)`

// byPolicy approves payments whose money came in; nobody has to.
const byPolicy = "policy"

// approvePayment writes the payment that delivers a paid order's crypto.
func (t unitTx) approvePayment(ctx context.Context, o exchange.Order) (exchange.ChainPayment, error) {
	var w walletRow
	if err := t.get(ctx, &w, readWallet, o.WalletID); err != nil {
		return exchange.ChainPayment{}, translate(err, "wallet")
	}
	id, err := uuid.NewV7()
	if err != nil {
		return exchange.ChainPayment{}, err
	}
	p := exchange.ChainPayment{
		ID: id, Purpose: exchange.ForOrder, ObjectID: o.ID, Network: o.Network, Amount: o.Price.Crypto, WalletID: w.ID, FromAddress: w.Address,
		ToAddress: o.WalletAddress, HoldID: o.HoldID, Status: exchange.ChainApproved, Fee: money.Zero(o.Network.NativeCoin()),
		ApprovedBy: byPolicy, CreatedAt: t.s.now(), UpdatedAt: t.s.now(), Version: 1,
	}
	p.IntentHash = p.Intent()
	_, err = t.exec(ctx, insertPayment, p.ID, p.Purpose, p.ObjectID, p.Network, p.Amount.Asset(), p.Amount.Decimal(), p.WalletID, p.FromAddress,
		p.ToAddress, p.HoldID, p.IntentHash, p.ApprovedBy, p.CreatedAt)
	if err != nil {
		return p, err
	}
	return p, t.recordPayment(ctx, "approved", flow, o, nil, p)
}

func (t unitTx) recordPayment(ctx context.Context, name string, by exchange.Principal, o exchange.Order, before *exchange.ChainPayment, p exchange.ChainPayment) error {
	f := fact{by: by, object: "chain_payment", id: p.ID, name: "chain_payment." + name, owner: o.CustomerID, vendor: o.VendorID, after: paymentFact(p)}
	if before != nil {
		f.before = paymentFact(*before)
	}
	return t.record(ctx, f)
}

const savePayment = `
UPDATE chain_payments SET status = $2, detail = $3, tx_id = $4, block = $5, fee = $6, completed_at = $7, updated_at = $8, version = version + 1
WHERE id = $1 AND version = $9 AND status = ANY ($10)`

// savePayment stores a payment that differs from before, with its event and audit row.
func (t unitTx) savePayment(ctx context.Context, by exchange.Principal, o exchange.Order, before, p exchange.ChainPayment) (exchange.ChainPayment, error) {
	from := []exchange.ChainPaymentStatus{before.Status}
	if p.Status != before.Status {
		if err := exchange.ChainPaymentMachine.Allow(before.Status, p.Status); err != nil {
			return before, err
		}
		from = exchange.ChainPaymentMachine.Sources(p.Status)
	}
	p.UpdatedAt = t.s.now()
	if p.Status == exchange.ChainCompleted {
		p.CompletedAt = p.UpdatedAt
	}
	err := t.one(ctx, savePayment, p.ID, p.Status, p.Detail, p.TxID, int64(p.Block), p.Fee.Decimal(), nullTime(p.CompletedAt), p.UpdatedAt, //nolint:gosec // G115: block numbers are far from the limit
		before.Version, pq.Array(from))
	if err != nil {
		return before, err
	}
	p.Version++
	return p, t.recordPayment(ctx, string(p.Status), by, o, &before, p)
}

const readSealedKey = `SELECT wallet_id, ciphertext, master_key, public_key, algorithm FROM wallet_keys WHERE wallet_id = $1`

// PaymentForSigning reads a payment with the sealed key of its sending wallet, for the signer.
func (s *Store) PaymentForSigning(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, exchange.SealedKey, error) {
	p, err := s.ChainPayment(ctx, id)
	if err != nil {
		return p, exchange.SealedKey{}, err
	}
	var k struct {
		WalletID   uuid.UUID `db:"wallet_id"`
		Ciphertext []byte
		MasterKey  string `db:"master_key"`
		PublicKey  []byte `db:"public_key"`
		Algorithm  string
	}
	if err := s.read(ctx, &k, readSealedKey, p.WalletID); err != nil {
		return p, exchange.SealedKey{}, translate(err, "wallet key")
	}
	return p, exchange.SealedKey{WalletID: k.WalletID, Ciphertext: k.Ciphertext, MasterKey: k.MasterKey, PublicKey: k.PublicKey, Algorithm: k.Algorithm}, nil
}

// objectOf finds the order behind a payment, locked. Only orders have chain payments so far.
func (t unitTx) objectOf(ctx context.Context, paymentID uuid.UUID) (exchange.Order, exchange.ChainPayment, error) {
	var r paymentRow
	if err := t.get(ctx, &r, readPayment, paymentID); err != nil {
		return exchange.Order{}, exchange.ChainPayment{}, translate(err, "chain payment")
	}
	if r.Purpose != exchange.ForOrder {
		return exchange.Order{}, exchange.ChainPayment{}, exchange.Errorf(exchange.CodeUnsupported, "A chain payment for a %s is not known here.", r.Purpose)
	}
	o, err := t.lockedOrder(ctx, r.ObjectID)
	if err != nil {
		return o, exchange.ChainPayment{}, err
	}
	if err := t.get(ctx, &r, lockPayment, paymentID); err != nil {
		return o, exchange.ChainPayment{}, translate(err, "chain payment")
	}
	p, err := r.payment()
	return o, p, err
}

// ParkChainPayment sets a payment aside for a person because no transaction of it can be built. While
// one may still move money it is CodeStateConflict; one that is parked already gets the new detail.
func (s *Store) ParkChainPayment(ctx context.Context, paymentID uuid.UUID, detail string) (exchange.ChainPayment, error) {
	return change(ctx, s, "chain payment", paymentID, func(ctx context.Context, t unitTx) (exchange.ChainPayment, exchange.Posting, error) {
		var none exchange.Posting
		o, before, err := t.objectOf(ctx, paymentID)
		if err != nil || (before.Status == exchange.ChainParked && before.Detail == detail) {
			return before, none, err
		}
		if _, alive, err := t.liveAttempt(ctx, paymentID); err != nil || alive {
			if err == nil {
				err = exchange.Errorf(exchange.CodeStateConflict, "A transaction of the payment may still move money.")
			}
			return before, none, err
		}
		p := before
		p.Status, p.Detail = exchange.ChainParked, clip(detail, 200)
		if p, err = t.savePayment(ctx, flow, o, before, p); err != nil {
			return before, none, err
		}
		_, err = t.orderFollows(ctx, o, o.Status, exchange.WaitOperator, o.TxHash)
		return p, none, err
	})
}

// RetryChainPayment lets a parked payment be signed again. One that is approved or under way already is
// returned as it is.
func (s *Store) RetryChainPayment(ctx context.Context, paymentID uuid.UUID, by exchange.Principal) (exchange.ChainPayment, error) {
	return change(ctx, s, "chain payment", paymentID, func(ctx context.Context, t unitTx) (exchange.ChainPayment, exchange.Posting, error) {
		var none exchange.Posting
		o, before, err := t.objectOf(ctx, paymentID)
		if err != nil {
			return before, none, err
		}
		switch before.Status {
		case exchange.ChainApproved, exchange.ChainSigned, exchange.ChainBroadcast, exchange.ChainIncluded:
			return before, none, nil
		case exchange.ChainParked, exchange.ChainCompleted, exchange.ChainCancelled:
		}
		p := before
		p.Status, p.Detail = exchange.ChainApproved, ""
		if p, err = t.savePayment(ctx, by, o, before, p); err != nil {
			return before, none, err
		}
		to := o.Status
		if to == exchange.OrderConfirming {
			to = exchange.OrderProcessing // nothing of it is on the chain any more
		}
		_, err = t.orderFollows(ctx, o, to, exchange.WaitSignature, "")
		return p, none, err
	})
}

// orderFollows moves a payment's order along with it. An order that has ended, or is there already,
// stays as it is.
func (t unitTx) orderFollows(ctx context.Context, before exchange.Order, to exchange.OrderStatus, detail, txHash string) (exchange.Order, error) {
	if before.Machine().Terminal(before.Status) || (before.Status == to && before.StatusDetail == detail && before.TxHash == txHash) {
		return before, nil
	}
	o := before
	o.Status, o.StatusDetail, o.TxHash = to, detail, txHash
	name := "order.detail_changed"
	if to != before.Status {
		name = "order." + string(to)
	}
	return t.saveOrder(ctx, name, flow, before, o)
}
