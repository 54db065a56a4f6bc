package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// sweepPayment moves crypto off an escrow address: to who bought it, when the order is paid out, or to the treasury,
// when the house keeps what came. Its order, or the exception, has ended before and does not change with it.
type sweepPayment struct{ order exchange.Order }

func (s *sweepPayment) parties() (owner, vendor uuid.UUID) {
	return s.order.CustomerID, s.order.VendorID
}

func (s *sweepPayment) follow(context.Context, unitTx, paymentStage, string) error { return nil }

func (s *sweepPayment) spend(ctx context.Context, t unitTx, p exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	return t.spendReserved(ctx, p)
}

const orderThere = `SELECT EXISTS (SELECT FROM orders WHERE id = $1)`

// lockedSweep finds what a sweep is of: an order, or else an exception.
func (t unitTx) lockedSweep(ctx context.Context, id uuid.UUID) (paymentObject, error) {
	var order bool
	if err := t.get(ctx, &order, orderThere, id); err != nil {
		return nil, err
	}
	if !order {
		_, err := t.lockedException(ctx, id)
		return &sweepPayment{}, err
	}
	o, err := t.lockedOrder(ctx, id)
	return &sweepPayment{order: o}, err
}

// ApproveSweep has the crypto of an order that is paid out go from its escrow address to who bought it. The database
// takes one such payment or one that gives the crypto back, never both. CodeStateConflict for an order that is not paid
// out. Called again it returns the payment that is there.
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
		var to walletRow
		if err := t.get(ctx, &to, readWallet, o.WalletID); err != nil {
			return exchange.ChainPayment{}, none, translate(err, "wallet")
		}
		p, err := t.addPayment(ctx, flow, &sweepPayment{order: o}, exchange.ChainPayment{
			Purpose: exchange.ForSweep, ObjectID: o.ID, Network: o.Network, Amount: claim.Amount, WalletID: claim.WalletID, ToAddress: to.Address,
			HoldID: claim.HoldID, ApprovedBy: byPolicy,
		})
		return p, none, err
	})
}

// paidOut refuses an order of which the payee has not got the shillings. One that failed is paid out when a payout that
// was taken for refused proved true.
func (t unitTx) paidOut(ctx context.Context, o exchange.Order) error {
	var rows []orderPayoutRow
	if err := t.all(ctx, &rows, readOrderPayout, o.ID); err != nil {
		return err
	}
	ended := o.Status == exchange.OrderCompleted || o.Status == exchange.OrderFailed
	if !ended || len(rows) == 0 || rows[0].Status != exchange.PayoutCompleted {
		return exchange.Errorf(exchange.CodeStateConflict, "The order is not paid out, so its crypto stays where it is.")
	}
	return nil
}

// The wallet of the house that keeps what belongs to nobody on a network; the oldest, if there are several.
const readTreasury = `SELECT ` + walletColumns + ` FROM wallets
WHERE owner_id IS NULL AND purpose = 'treasury' AND network = $1 AND custody = 'custodial' ORDER BY created_at, id LIMIT 1`

const keptHold = `SELECT id FROM holds WHERE key = $1 AND status = 'held'`

// keptHoldKey is the key of the hold that reserves, on an escrow address, what the house keeps of an exception.
func keptHoldKey(exceptionID uuid.UUID) string {
	return "exception:" + exceptionID.String() + ":crypto"
}

// keptOnEscrow books what the house keeps of what lies on an escrow address: the house owes it to itself there, all of
// it reserved, until it has gone to the treasury. As income of the house alone, nothing could move it off the address,
// which is lent again only when it is empty.
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

// KeptOnEscrow tells on which network crypto of an exception lies on an escrow address that the house keeps and has not
// brought to its treasury.
func (s *Store) KeptOnEscrow(ctx context.Context, exceptionID uuid.UUID) (exchange.Network, bool, error) {
	var found []exchange.Network
	if err := s.readAll(ctx, &found, keptNetwork, keptHoldKey(exceptionID)); err != nil || len(found) == 0 {
		return "", false, translate(err, "payment exception")
	}
	return found[0], true, nil
}

// ApproveKeptSweep has crypto of an exception that the house keeps go from the escrow address where it lies to the
// treasury, so that the address may be lent again. An exception of which nothing lies on an escrow address has no
// payment: the zero one is returned. CodeUnsupported where the network has no treasury wallet. Called again it returns
// the payment that is there.
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
		if err := t.all(ctx, &holds, keptHold, keptHoldKey(x.ID)); err != nil || len(holds) == 0 {
			return exchange.ChainPayment{}, none, err
		}
		d, err := t.strayDeposit(ctx, x)
		if err != nil {
			return exchange.ChainPayment{}, none, err
		}
		var rows []walletRow
		if err := t.all(ctx, &rows, readTreasury, d.Network); err != nil {
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
