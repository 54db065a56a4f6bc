package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const claimColumns = `id, deposit_id, payment_id, order_id, wallet_id, kind, amount||' '||asset AS amount, hold_id, exception_id, taken||' '||asset AS taken,
	refunded||' '||asset AS refunded, kept||' '||asset AS kept, created_at`

const claimOfSource = `SELECT ` + claimColumns + ` FROM escrow_claims WHERE deposit_id = $1 OR payment_id = $2`

const orderDecided = `SELECT EXISTS (SELECT FROM escrow_claims WHERE order_id = $1 AND hold_id IS NOT NULL)`

const insertClaim = `
INSERT INTO escrow_claims (id, deposit_id, payment_id, order_id, wallet_id, kind, asset, amount, hold_id, exception_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING ` + claimColumns

// claim assigns a final movement to the order that has the address, once for each movement. A repeated claim of the
// same kind returns the existing one; another kind is CodeConflict.
//
// For a kind that holds, the caller has to place the named hold in the same transaction, on the address's balance and
// over the whole amount, with the entry that takes it out of suspense; the database refuses to commit otherwise. A
// claim of a kind that does not pay opens the payment exception.
func (t unitTx) claim(ctx context.Context, d exchange.ChainDeposit, order uuid.UUID, kind exchange.ClaimKind) (exchange.EscrowClaim, error) {
	return t.addClaim(ctx, exchange.EscrowClaim{DepositID: d.ID, OrderID: order, WalletID: d.WalletID, Kind: kind, Amount: d.Amount}, receiptOf(d))
}

// claimFunding records that a completed payment of ours has funded an order from a custodial wallet.
func (t unitTx) claimFunding(ctx context.Context, p exchange.ChainPayment, order uuid.UUID) (exchange.EscrowClaim, error) {
	var r exchange.Wallet
	if err := t.Get(ctx, &r, leasedWallet, order); err != nil {
		return exchange.EscrowClaim{}, translate(err, "escrow lease")
	}
	return t.addClaim(ctx, exchange.EscrowClaim{PaymentID: p.ID, OrderID: order, WalletID: r.ID, Kind: exchange.ClaimExact, Amount: p.Amount}, "")
}

// receiptOf is the permanent name of a movement on a chain, used as the receipt of a payment exception.
func receiptOf(d exchange.ChainDeposit) string {
	return fmt.Sprintf("%s:%s:%d", d.Network, d.TxID, d.Index)
}

func (t unitTx) addClaim(ctx context.Context, c exchange.EscrowClaim, receipt string) (exchange.EscrowClaim, error) {
	var rows []exchange.EscrowClaim
	if err := t.All(ctx, &rows, claimOfSource, nullID(c.DepositID), nullID(c.PaymentID)); err != nil {
		return c, err
	}
	if len(rows) == 1 {
		old := rows[0]
		var err error
		if old.OrderID != c.OrderID || old.Kind != c.Kind {
			err = exchange.Errorf(exchange.CodeConflict, "The deposit was already claimed, as %s of order %s.", old.Kind, old.OrderID)
		}
		return old, err
	}
	var err error
	if c.ID, err = uuid.NewV7(); err != nil {
		return c, err
	}
	if c.Kind.Holds() {
		if c.HoldID, err = uuid.NewV7(); err != nil {
			return c, err
		}
	}
	if kind := c.Kind.Exception(); kind != "" {
		if c.ExceptionID, err = t.exceptOf(ctx, c, kind, receipt); err != nil {
			return c, err
		}
	}
	err = t.Get(ctx, &c, insertClaim, c.ID, nullID(c.DepositID), nullID(c.PaymentID), c.OrderID, c.WalletID, c.Kind, c.Amount.Asset(), c.Amount.Decimal(),
		nullID(c.HoldID), nullID(c.ExceptionID), t.s.now())
	if err != nil {
		return c, err
	}
	return c, t.audit(ctx, flow, "escrow_claim.created", "escrow_claim", c.ID, nil, map[string]any{
		"id": c.ID, "order_id": c.OrderID, "deposit_id": nullID(c.DepositID), "payment_id": nullID(c.PaymentID), "kind": c.Kind,
		"asset": c.Amount.Asset(), "amount": c.Amount.String(), "exception_id": nullID(c.ExceptionID),
	})
}

// exceptOf opens the exception of a claim.
func (t unitTx) exceptOf(ctx context.Context, c exchange.EscrowClaim, kind exchange.ExceptionKind, receipt string) (uuid.UUID, error) {
	var owner uuid.UUID
	if err := t.Get(ctx, &owner, ownerOfOrder, c.OrderID); err != nil {
		return uuid.Nil, translate(err, "order")
	}
	x, err := t.openException(ctx, owner, exchange.PaymentException{
		Kind: kind, OrderID: c.OrderID, Receipt: receipt, Amount: c.Amount,
	})
	return x.ID, err
}

const claimsOfOrder = `SELECT ` + claimColumns + ` FROM escrow_claims WHERE order_id = $1 ORDER BY created_at, id`

// EscrowClaims reads the claims of an order, oldest first.
func (s *Store) EscrowClaims(ctx context.Context, order uuid.UUID) ([]exchange.EscrowClaim, error) {
	return readAll[exchange.EscrowClaim](ctx, s.db, "escrow claim", claimsOfOrder, order)
}
