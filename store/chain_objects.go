package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// paymentStage is the progress of a chain payment, as its object sees it.
type paymentStage int

// The stages. A payment may go back from any of them to stageApproved, when its transaction is proven
// impossible, and between stageIncluded and stageVanished.
const (
	stageApproved  paymentStage = iota // waits for a first or another signature; nothing of it is on the chain
	stageWaiting                       // approved, and the signature waits for the watch over the chain
	stageFrozen                        // approved, and an officer has frozen all outgoing payments
	stageSigned                        // bytes are stored
	stageBroadcast                     // a node accepted them
	stageIncluded                      // in a block that is not final yet
	stageVanished                      // that block was reorganised away
	stageParked                        // waits for an officer
	stageCompleted                     // final, with the expected transfer
	stageHandedOut                     // approved, and exported to be signed on the cold machine
	stageWithdrawn                     // approved, and the exported transaction is being invalidated
)

// paymentObject is what a chain payment carries out: an order, a transfer, gas for another payment. The sending code
// uses objects only through this interface. Each purpose has one file that implements it, and a case in lockObject. A
// value belongs to one database transaction, in which its rows are locked before those of its payment, so that two
// transactions can't deadlock.
type paymentObject interface {
	// parties are the owner and the master merchant who may read the payment's events; zero for none.
	parties() (owner, vendor uuid.UUID)
	// follow moves the object along with its payment, whose transaction is txID (empty when there is none). It may be
	// called again for the object's current stage. It leaves alone an object that has ended or does not depend on the
	// stage.
	follow(ctx context.Context, t unitTx, to paymentStage, txID string) error
	// spend returns the ledger effects of the completed payment: lines that sum to zero without the network's fee, and
	// the holds that are used up or placed. It is called once, when the payment completes.
	spend(ctx context.Context, t unitTx, p exchange.ChainPayment) (exchange.Posting, []exchange.Line, error)
}

// lockObject reads and locks the object of a payment.
func (t unitTx) lockObject(ctx context.Context, purpose exchange.ChainPurpose, id uuid.UUID) (paymentObject, error) {
	switch purpose {
	case exchange.ForOrder:
		o, err := t.lockedOrder(ctx, id)
		return &orderPayment{order: o}, err
	case exchange.ForGas:
		return t.lockedGas(ctx, id)
	case exchange.ForTransfer:
		f, err := t.lockedTransfer(ctx, id)
		return &transferPayment{transfer: f}, err
	case exchange.ForNonceAccount:
		return &noncePayment{}, nil
	case exchange.ForMultisigOpen:
		_, err := t.lockedMultisig(ctx, id)
		return multisigPayment{}, err
	case exchange.ForNonceAdvance:
		return t.lockedAdvance(ctx, id)
	case exchange.ForRefund:
		o, f, err := t.lockedCryptoRefund(ctx, id)
		return &refundPayment{order: o, refund: f}, err
	case exchange.ForSweep:
		return t.lockedSweep(ctx, id)
	case exchange.ForWithdrawal:
		w, err := t.startWithdrawal(ctx, id)
		return &withdrawalPayment{w}, err
	case exchange.ForFeeSweep:
		f, err := t.lockedFeeSweep(ctx, id)
		return &feeSweepPayment{sweep: f}, err
	case exchange.ForSwapCollect, exchange.ForSwapPayout, exchange.ForSwapRefund:
		return t.lockedSwapLeg(ctx, purpose, id)
	case exchange.ForProposal:
		w, err := t.startProposal(ctx, id)
		return &proposalPayment{w}, err
	case exchange.ForFunding:
		o, err := t.lockedOrder(ctx, id)
		return &fundingPayment{order: o}, err
	}
	return nil, exchange.Errorf(exchange.CodeUnsupported, "Chain payments for a %s are not supported.", purpose)
}

// objectOf finds a payment with its object, both locked.
func (t unitTx) objectOf(ctx context.Context, paymentID uuid.UUID) (paymentObject, exchange.ChainPayment, error) {
	var r exchange.ChainPayment
	if err := t.Get(ctx, &r, readPayment, paymentID); err != nil {
		return nil, exchange.ChainPayment{}, translate(err, "chain payment")
	}
	object, err := t.lockObject(ctx, r.Purpose, r.ObjectID)
	if err != nil {
		return nil, exchange.ChainPayment{}, err
	}
	if err := t.Get(ctx, &r, lockPayment, paymentID); err != nil {
		return nil, exchange.ChainPayment{}, translate(err, "chain payment")
	}
	return object, r, nil
}

// orderPayment is an order whose crypto a payment delivers.
type orderPayment struct{ order exchange.Order }

func (o *orderPayment) parties() (owner, vendor uuid.UUID) {
	return o.order.CustomerID, o.order.VendorID
}

func (o *orderPayment) follow(ctx context.Context, t unitTx, to paymentStage, txID string) error {
	status, detail := o.order.Status, ""
	switch to {
	case stageApproved:
		detail, txID = exchange.WaitSignature, ""
		if status == exchange.OrderConfirming {
			status = exchange.OrderProcessing // it is no longer on the chain
		}
	case stageWaiting:
		detail, txID = exchange.WaitWatch, o.order.TxHash
	case stageFrozen:
		detail, txID = exchange.WaitFrozen, o.order.TxHash
	case stageHandedOut, stageWithdrawn:
		return nil // an order's payment is never handed out
	case stageSigned:
		detail, txID = exchange.WaitBroadcast, o.order.TxHash
	case stageBroadcast, stageIncluded:
		status, detail = exchange.OrderConfirming, exchange.WaitFinality
	case stageVanished:
		status, detail, txID = exchange.OrderProcessing, exchange.WaitBroadcast, o.order.TxHash
	case stageParked:
		detail, txID = exchange.WaitOperator, o.order.TxHash
	case stageCompleted:
		detail = exchange.WaitFinality
	}
	var err error
	o.order, err = t.orderFollows(ctx, o.order, status, detail, txID)
	return err
}

func (o *orderPayment) spend(ctx context.Context, t unitTx, p exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	return t.spendReserved(ctx, p)
}

// spendReserved is spend for a payment from a wallet's balance: the reserved money is used up, the sending wallet's
// custody and liability decrease, and those of a receiving wallet of ours increase.
func (t unitTx) spendReserved(ctx context.Context, p exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	used := exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldCapture, Hold: exchange.Hold{ID: p.HoldID}}}}
	lines := []exchange.Line{
		exchange.Debit(exchange.Owned(exchange.AccWalletBalance, p.WalletID, p.Amount.Asset()), p.Amount),
		exchange.Credit(exchange.Owned(exchange.AccCustody, p.WalletID, p.Amount.Asset()), p.Amount),
	}
	arrival, err := t.arrivalLines(ctx, p)
	return used, append(lines, arrival...), err
}

const readWalletAt = `
SELECT w.id AS wallet, a.id AS account, coalesce(a.opened_block, 0) AS opened FROM (SELECT $1::network AS network, $2::text AS address) x
LEFT JOIN wallets w ON w.network = x.network AND w.address = x.address
LEFT JOIN multisig_accounts a ON a.network = x.network AND a.address = x.address AND a.status <> 'refused'
WHERE num_nonnulls(w.id, a.id) > 0`

// lockOpening keeps an account of several owners from becoming a wallet until the transaction ends; becoming one takes the lock alone.
const (
	lockOpening      = `SELECT pg_advisory_xact_lock_shared(hashtextextended('kivuko opening ' || $1::text, 0))`
	lockOpeningAlone = `SELECT pg_advisory_xact_lock(hashtextextended('kivuko opening ' || $1::text, 0))`
)

// walletAt finds the wallet in our custody that a payment went to; false for an address outside. What an account of several owners got before
// it became a wallet is part of its opening balance, so that is outside too.
func (t unitTx) walletAt(ctx context.Context, p exchange.ChainPayment) (uuid.UUID, bool, error) {
	type place struct {
		Wallet, Account uuid.NullUUID
		Opened          int64
	}
	at, found, err := readFound[place](ctx, t, readWalletAt, p.Network, p.ToAddress)
	if err == nil && found && !at.Wallet.Valid {
		if _, err := t.Exec(ctx, lockOpening, at.Account.UUID); err != nil {
			return uuid.Nil, false, err
		}
		at, found, err = readFound[place](ctx, t, readWalletAt, p.Network, p.ToAddress)
	}
	known := found && at.Wallet.Valid && (at.Opened == 0 || p.Block > height(at.Opened))
	return at.Wallet.UUID, known, err
}

// arrivalLines book the receiving side of a payment to a wallet in our custody: the received money belongs to the
// wallet's owner. Money that the watch booked to suspense before it knew the payment is moved out. Payments to
// external addresses have no receiving side in our books.
func (t unitTx) arrivalLines(ctx context.Context, p exchange.ChainPayment) ([]exchange.Line, error) {
	ours, found, err := t.walletAt(ctx, p)
	if err != nil || !found {
		return nil, err
	}
	from := exchange.Owned(exchange.AccCustody, ours, p.Amount.Asset())
	if booked, err := t.bookedBefore(ctx, p.Network, p.TxID, ours); err != nil {
		return nil, err
	} else if booked {
		if found, err := t.outOfSuspense(ctx, p, ours); err != nil || !found {
			return nil, err
		}
		from = exchange.House(exchange.AccSuspense, p.Amount.Asset())
	}
	return []exchange.Line{
		exchange.Debit(from, p.Amount),
		exchange.Credit(exchange.Owned(exchange.AccWalletBalance, ours, p.Amount.Asset()), p.Amount),
	}, nil
}

// orderFollows moves a payment's order along with it. An order that has ended, or has the status already, stays as it
// is.
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
