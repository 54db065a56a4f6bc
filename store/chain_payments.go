package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const paymentColumns = `p.id, p.purpose, p.object_id, p.n, p.network, p.amount||' '||p.asset AS amount, p.wallet_id, p.from_address, p.to_address, p.fee_wallet_id,
	p.fee_payer, p.hold_id, p.intent_hash, p.status, p.detail, p.tx_id, p.block, p.fee||' '||p.network AS fee, p.approved_by, p.created_at, p.updated_at, p.completed_at, p.version`

func paymentSnapshot(p exchange.ChainPayment) map[string]any {
	return map[string]any{
		"id": p.ID, "purpose": p.Purpose, "object_id": p.ObjectID, "network": p.Network, "asset": p.Amount.Asset(), "amount": p.Amount.String(),
		"from_address": p.FromAddress, "to_address": p.ToAddress, "status": p.Status, "detail": p.Detail, "tx_hash": p.TxID, "block": p.Block,
		"fee": p.Fee.String(), "approved_by": p.ApprovedBy, "version": p.Version,
	}
}

const readPayment = `SELECT ` + paymentColumns + ` FROM chain_payments p WHERE p.id = $1`

const readPaymentOf = `SELECT ` + paymentColumns + ` FROM chain_payments p WHERE p.purpose = $1 AND p.object_id = $2 ORDER BY p.n DESC LIMIT 1`

const lockPayment = `SELECT ` + paymentColumns + ` FROM chain_payments p WHERE p.id = $1 FOR NO KEY UPDATE`

// ChainPayment reads a chain payment.
func (s *Store) ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error) {
	return readOne[exchange.ChainPayment](ctx, s.db, "chain payment", readPayment, id)
}

// ChainPaymentOf reads the chain payment that carries out an object, the latest where there are several.
func (s *Store) ChainPaymentOf(ctx context.Context, purpose exchange.ChainPurpose, objectID uuid.UUID) (exchange.ChainPayment, error) {
	return readOne[exchange.ChainPayment](ctx, s.db, "chain payment", readPaymentOf, purpose, objectID)
}

func (t unitTx) paymentOf(ctx context.Context, purpose exchange.ChainPurpose, objectID uuid.UUID) (exchange.ChainPayment, bool, error) {
	return readFound[exchange.ChainPayment](ctx, t, readPaymentOf, purpose, objectID)
}

const insertPayment = `
INSERT INTO chain_payments (id, purpose, object_id, n, network, asset, amount, wallet_id, from_address, to_address, fee_wallet_id, fee_payer, hold_id,
    intent_hash, status, approved_by, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'approved', $15, $16, $16)`

// byPolicy approves payments whose money came in, without an officer.
const byPolicy = "policy"

// approvePayment writes the n-th payment that delivers a paid order's crypto; the earlier ones were given up.
func (t unitTx) approvePayment(ctx context.Context, o exchange.Order, n int, approvedBy string) (exchange.ChainPayment, error) {
	return t.addPayment(ctx, flow, &orderPayment{order: o}, exchange.ChainPayment{
		Purpose: exchange.ForOrder, ObjectID: o.ID, N: n, Network: o.Network, Amount: o.Price.Crypto, WalletID: o.WalletID,
		ToAddress: o.WalletAddress, HoldID: o.HoldID, ApprovedBy: approvedBy,
	})
}

// addPayment writes an approved payment of an object with its event. The caller sets purpose, object, network, amount,
// sending wallet, recipient, hold and approver; addPayment sets the sender's address, the fee payer and the hash. A
// zero N means 1.
func (t unitTx) addPayment(ctx context.Context, by exchange.Principal, object paymentObject, p exchange.ChainPayment) (exchange.ChainPayment, error) {
	var w exchange.Wallet
	if err := t.Get(ctx, &w, readWallet, p.WalletID); err != nil {
		return p, translate(err, "wallet")
	}
	if w.Network != p.Network {
		return p, exchange.Errorf(exchange.CodeInternal, "wallet %s is on %s, not on %s", w.ID, w.Network, p.Network)
	}
	var err error
	if p.ID, err = uuid.NewV7(); err != nil {
		return p, err
	}
	p.N, p.FromAddress, p.Status, p.Fee, p.Version = max(p.N, 1), w.Address, exchange.ChainApproved, money.Zero(p.Network.NativeCoin()), 1
	p.CreatedAt, p.UpdatedAt = t.s.now(), t.s.now()
	if p.Network.Sponsored() || p.Purpose == exchange.ForProposal && p.Network == exchange.Ethereum { // a Safe sends nothing itself
		if err := t.sponsor(ctx, &p); err != nil {
			return p, err
		}
	}
	p.IntentHash = p.Intent()
	_, err = t.Exec(ctx, insertPayment, p.ID, p.Purpose, p.ObjectID, p.N, p.Network, p.Amount.Asset(), p.Amount.Decimal(), p.WalletID, p.FromAddress,
		p.ToAddress, nullID(p.FeeWalletID), p.FeePayer, nullID(p.HoldID), p.IntentHash, p.ApprovedBy, p.CreatedAt)
	if err != nil {
		return p, err
	}
	return p, t.recordPayment(ctx, "approved", by, object, nil, p)
}

func (t unitTx) recordPayment(ctx context.Context, name string, by exchange.Principal, object paymentObject, before *exchange.ChainPayment, p exchange.ChainPayment) error {
	owner, vendor := object.parties()
	f := auditEvent{by: by, object: "chain_payment", id: p.ID, name: "chain_payment." + name, owner: owner, vendor: vendor, after: paymentSnapshot(p)}
	if before != nil {
		f.before = paymentSnapshot(*before)
	}
	return t.record(ctx, f)
}

const savePayment = `
UPDATE chain_payments SET status = $2, detail = $3, tx_id = $4, block = $5, fee = $6, completed_at = $7, updated_at = $8, version = version + 1
WHERE id = $1 AND version = $9 AND status = ANY ($10)`

// savePayment stores a payment that differs from before, with its event and audit row.
func (t unitTx) savePayment(ctx context.Context, by exchange.Principal, object paymentObject, before, p exchange.ChainPayment) (exchange.ChainPayment, error) {
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
	err := t.One(ctx, savePayment, p.ID, p.Status, p.Detail, p.TxID, int64(p.Block), p.Fee.Decimal(), nullTime(p.CompletedAt), p.UpdatedAt, //nolint:gosec // G115: block numbers are far from the limit
		before.Version, pq.Array(from))
	if err != nil {
		return before, err
	}
	p.Version++
	return p, t.recordPayment(ctx, string(p.Status), by, object, &before, p)
}

const readSealedKey = `
SELECT k.wallet_id, o.network, k.ciphertext, k.master_key, k.public_key, k.algorithm, CASE WHEN o.type = 'hot' THEN w.type ELSE o.type END AS type
FROM wallets w JOIN wallets o ON o.id = coalesce(w.counterpart_of, w.id) JOIN wallet_keys k ON k.wallet_id = o.id
WHERE w.id = $1 AND ` + newestSeal

// PaymentForSigning reads a payment with the sealed keys that sign it: the sending wallet's, then that of the
// fee-paying wallet if it is another one. CodeForbidden when one of them is cold: this process never signs with its
// key, whoever approved the payment. CodeForbidden too when the payment is not signed yet and its external recipient
// is now on the deny list.
func (s *Store) PaymentForSigning(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, []exchange.SealedKey, error) {
	p, err := s.ChainPayment(ctx, id)
	if err != nil {
		return p, nil, err
	}
	if p.Status == exchange.ChainApproved { // a signed one may need a replacement with a higher fee, to unblock its sequence
		var denied bool
		if err := s.db.Get(ctx, &denied, isDeniedOutside, p.Network, p.ToAddress); err != nil {
			return p, nil, translate(err, "denied address")
		}
		if denied {
			return p, nil, exchange.Errorf(exchange.CodeForbidden, "The recipient of payment %s is on the deny list.", p.ID)
		}
	}
	if p.Purpose == exchange.ForProposal { // its owners signed, see ExecutionForSigning
		return p, nil, nil
	}
	wallets := []uuid.UUID{p.WalletID}
	if p.FeeWalletID != uuid.Nil {
		wallets = append(wallets, p.FeeWalletID)
	}
	sealed := make([]exchange.SealedKey, len(wallets))
	for i, wallet := range wallets {
		if sealed[i], err = s.hotKey(ctx, wallet); err != nil {
			return p, nil, err
		}
	}
	return p, sealed, nil
}

// hotKey reads a sealed key that the signer opens: the wallet's own, or its counterpart's. CodeForbidden for a cold
// wallet's.
func (s *Store) hotKey(ctx context.Context, wallet uuid.UUID) (exchange.SealedKey, error) {
	var k struct {
		WalletID   uuid.UUID
		Network    exchange.Network
		Ciphertext []byte
		MasterKey  string
		PublicKey  []byte
		Algorithm  string
		Type       exchange.WalletType
	}
	if err := s.db.Get(ctx, &k, readSealedKey, wallet); err != nil {
		return exchange.SealedKey{}, translate(err, "wallet key")
	}
	if k.Type != exchange.Hot {
		return exchange.SealedKey{}, exchange.Errorf(exchange.CodeForbidden, "Wallet %s is cold. Its key signs only on the cold machine.", wallet)
	}
	return exchange.SealedKey{
		WalletID: k.WalletID, Network: k.Network, Ciphertext: k.Ciphertext, MasterKey: k.MasterKey, PublicKey: k.PublicKey, Algorithm: k.Algorithm,
	}, nil
}

// ParkChainPayment parks a payment for an officer because no transaction of it can be built. CodeStateConflict while a
// transaction may still move money. A parked one gets the new detail.
func (s *Store) ParkChainPayment(ctx context.Context, paymentID uuid.UUID, detail string) (exchange.ChainPayment, error) {
	return change(ctx, s, "chain payment", paymentID, func(ctx context.Context, t unitTx) (exchange.ChainPayment, exchange.Posting, error) {
		var none exchange.Posting
		object, before, err := t.objectOf(ctx, paymentID)
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
		if p, err = t.savePayment(ctx, flow, object, before, p); err != nil {
			return before, none, err
		}
		return p, none, object.follow(ctx, t, stageParked, "")
	})
}

// RetryChainPayment lets a parked payment be signed again. One that is approved or under way is returned as it is.
// CodeStateConflict when a transaction of it was carried out but moved something else, until an officer has settled
// that: paying again in full is not the remedy.
func (s *Store) RetryChainPayment(ctx context.Context, paymentID uuid.UUID, by exchange.Principal) (exchange.ChainPayment, error) {
	return change(ctx, s, "chain payment", paymentID, func(ctx context.Context, t unitTx) (exchange.ChainPayment, exchange.Posting, error) {
		var none exchange.Posting
		object, before, err := t.objectOf(ctx, paymentID)
		if err != nil {
			return before, none, err
		}
		switch before.Status {
		case exchange.ChainApproved, exchange.ChainSigned, exchange.ChainBroadcast, exchange.ChainIncluded:
			return before, none, nil
		case exchange.ChainParked, exchange.ChainCompleted, exchange.ChainCancelled:
		}
		if hold, err := t.hold(ctx, paymentID); err != nil || hold == exchange.HoldUnexpected {
			if err == nil {
				err = exchange.Errorf(exchange.CodeStateConflict, "A transaction of the payment moved something else than it should have. An officer has to settle that before the payment can be retried.")
			}
			return before, none, err
		}
		p := before
		p.Status, p.Detail = exchange.ChainApproved, ""
		if p, err = t.savePayment(ctx, by, object, before, p); err != nil {
			return before, none, err
		}
		return p, none, object.follow(ctx, t, stageApproved, "")
	})
}
