package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// sweepPayment moves crypto off an escrow address: to its buyer when the order is paid out, or to the treasury when
// the house keeps it. Its order or exception has ended before and does not change with it.
type sweepPayment struct{ order exchange.Order }

func (s *sweepPayment) parties() (owner, vendor uuid.UUID) {
	return s.order.CustomerID, s.order.VendorID
}

func (s *sweepPayment) follow(context.Context, unitTx, paymentStage, string) error { return nil }

func (s *sweepPayment) spend(ctx context.Context, t unitTx, p exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	return t.spendReserved(ctx, p)
}

const orderThere = `SELECT EXISTS (SELECT FROM orders WHERE id = $1)`

// lockedSweep finds the order or else the exception of a sweep.
func (t unitTx) lockedSweep(ctx context.Context, id uuid.UUID) (paymentObject, error) {
	var order bool
	if err := t.Get(ctx, &order, orderThere, id); err != nil {
		return nil, err
	}
	if !order {
		_, err := t.lockedException(ctx, id)
		return &sweepPayment{}, err
	}
	o, err := t.lockedOrder(ctx, id)
	return &sweepPayment{order: o}, err
}

// ApproveSweep moves the crypto of a paid-out order from its escrow address to its buyer. The database accepts either
// a sweep or a refund for an order, never both. CodeStateConflict for an order that is not paid out. A repeated call
// returns the existing payment.
func (s *Store) ApproveSweep(ctx context.Context, orderID uuid.UUID) (exchange.ChainPayment, error) {
	return change(ctx, s, "sweep", orderID, func(ctx context.Context, t unitTx) (exchange.ChainPayment, exchange.Posting, error) {
		var none exchange.Posting
		o, err := t.lockedOrder(ctx, orderID)
		if err != nil {
			return exchange.ChainPayment{}, none, err
		}
		if old, found, err := t.paymentOf(ctx, exchange.ForSweep, o.ID); err != nil || found {
			return old, none, err
		}
		if err := t.paidOut(ctx, o); err != nil {
			return exchange.ChainPayment{}, none, err
		}
		claim, err := t.claimOf(ctx, o.ID)
		if err != nil {
			return exchange.ChainPayment{}, none, err
		}
		var to exchange.Wallet
		if err := t.Get(ctx, &to, readWallet, o.WalletID); err != nil {
			return exchange.ChainPayment{}, none, translate(err, "wallet")
		}
		p, err := t.addPayment(ctx, flow, &sweepPayment{order: o}, exchange.ChainPayment{
			Purpose: exchange.ForSweep, ObjectID: o.ID, Network: o.Network, Amount: claim.Amount, WalletID: claim.WalletID, ToAddress: to.Address,
			HoldID: claim.HoldID, ApprovedBy: byPolicy,
		})
		return p, none, err
	})
}

// paidOut refuses an order whose payee has not received the shillings. A failed order counts as paid out when a payout
// recorded as refused was later proven to have paid.
func (t unitTx) paidOut(ctx context.Context, o exchange.Order) error {
	var rows []exchange.OrderPayout
	if err := t.All(ctx, &rows, readOrderPayout, o.ID); err != nil {
		return err
	}
	ended := o.Status == exchange.OrderCompleted || o.Status == exchange.OrderFailed
	if !ended || len(rows) == 0 || rows[0].Status != exchange.PayoutCompleted {
		return exchange.Errorf(exchange.CodeStateConflict, "The order is not paid out, so its crypto can't be swept.")
	}
	return nil
}

// The house's treasury wallet of a network, which keeps unassigned money; the oldest, if there are several.
const readTreasury = `SELECT ` + walletColumns + ` FROM wallets
WHERE owner_id IS NULL AND purpose = 'treasury' AND network = $1 AND custody = 'custodial' ORDER BY created_at, id LIMIT 1`

const keptHold = `SELECT id FROM holds WHERE key = $1 AND status = 'held'`

// keptHoldKey is the key of the hold that reserves, on an escrow address, the money of an exception that the house
// keeps.
func keptHoldKey(exceptionID uuid.UUID) string {
	return "exception:" + exceptionID.String() + ":crypto"
}

// keptOnEscrow books the money of an exception on an escrow address as the house's own there, all of it reserved until
// it has gone to the treasury. Booked as mere income it could never leave the address, which is lent again only when
// it is empty.
func keptOnEscrow(x exchange.PaymentException, wallet uuid.UUID) settlement {
	balance := exchange.Owned(exchange.AccWalletBalance, wallet, x.Amount.Asset())
	return settlement{
		lines: []exchange.Line{exchange.Debit(exchange.House(exchange.AccSuspense, x.Amount.Asset()), x.Amount), exchange.Credit(balance, x.Amount)},
		holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
			ID: uuid.NewSHA1(x.ID, []byte("kept")), Key: keptHoldKey(x.ID), Account: balance, Amount: x.Amount, ObjectType: "payment_exception", ObjectID: x.ID,
		}}},
	}
}

const keptNetwork = `
SELECT w.network FROM holds h JOIN ledger_accounts a ON a.id = h.account_id JOIN wallets w ON w.id = a.owner_id
WHERE h.key = $1 AND h.status = 'held'`

// KeptOnEscrow returns the network of an escrow address with an exception's crypto that the house keeps and has not
// moved to its treasury.
func (s *Store) KeptOnEscrow(ctx context.Context, exceptionID uuid.UUID) (exchange.Network, bool, error) {
	var found []exchange.Network
	if err := s.db.All(ctx, &found, keptNetwork, keptHoldKey(exceptionID)); err != nil || len(found) == 0 {
		return "", false, translate(err, "payment exception")
	}
	return found[0], true, nil
}

// ApproveKeptSweep moves an exception's kept crypto from its escrow address to the treasury, so that the address may
// be lent again. It returns the zero payment when nothing of the exception lies on an escrow address. CodeUnsupported
// where the network has no treasury wallet. A repeated call returns the existing payment.
func (s *Store) ApproveKeptSweep(ctx context.Context, exceptionID uuid.UUID) (exchange.ChainPayment, error) {
	return change(ctx, s, "sweep", exceptionID, func(ctx context.Context, t unitTx) (exchange.ChainPayment, exchange.Posting, error) {
		var none exchange.Posting
		x, err := t.lockedException(ctx, exceptionID)
		if err != nil {
			return exchange.ChainPayment{}, none, err
		}
		if old, found, err := t.paymentOf(ctx, exchange.ForSweep, x.ID); err != nil || found {
			return old, none, err
		}
		var holds []uuid.UUID
		if err := t.All(ctx, &holds, keptHold, keptHoldKey(x.ID)); err != nil || len(holds) == 0 {
			return exchange.ChainPayment{}, none, err
		}
		d, err := t.strayDeposit(ctx, x)
		if err != nil {
			return exchange.ChainPayment{}, none, err
		}
		var rows []exchange.Wallet
		if err := t.All(ctx, &rows, readTreasury, d.Network); err != nil {
			return exchange.ChainPayment{}, none, err
		}
		if len(rows) == 0 {
			return exchange.ChainPayment{}, none, exchange.Errorf(exchange.CodeUnsupported, "The house has no treasury wallet on %s.", d.Network)
		}
		p, err := t.addPayment(ctx, flow, &sweepPayment{}, exchange.ChainPayment{
			Purpose: exchange.ForSweep, ObjectID: x.ID, Network: d.Network, Amount: x.Amount, WalletID: d.WalletID, ToAddress: rows[0].Address,
			HoldID: holds[0], ApprovedBy: byPolicy,
		})
		return p, none, err
	})
}
