package store

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Deposits to an order's escrow address. The chain watch writes the movements and wakes the order's flow; this file
// assigns them to the order. The order is locked before the movement. Code that writes movements locks no orders, so
// they can't deadlock.

// depositOfOrder reads and locks a movement until the end of the transaction, with whether it came to the order's
// escrow wallet.
const depositOfOrder = `SELECT ` + depositColumns + `, coalesce(wallet_id = (SELECT wallet_id FROM escrow_leases WHERE order_id = $2), false) AS own
FROM chain_deposits WHERE id = $1 FOR SHARE`

// lockedDeposit reads and locks an order and a movement, and reports whether the movement came for the order.
func (t unitTx) lockedDeposit(ctx context.Context, order, deposit uuid.UUID) (o exchange.Order, d exchange.ChainDeposit, own bool, err error) {
	if o, err = t.lockedOrder(ctx, order); err != nil {
		return o, d, false, err
	}
	var r struct {
		exchange.ChainDeposit
		Own bool
	}
	if err := t.Get(ctx, &r, depositOfOrder, deposit, order); err != nil {
		return o, d, false, translate(err, "deposit of the order")
	}
	return o, r.ChainDeposit, r.Own, nil
}

// ownDeposit is lockedDeposit for a movement that must have come for the order.
func (t unitTx) ownDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.Order, exchange.ChainDeposit, error) {
	o, d, own, err := t.lockedDeposit(ctx, order, deposit)
	if err == nil && !own {
		err = exchange.Errorf(exchange.CodeNotFound, "The deposit is not for the order.")
	}
	return o, d, err
}

// errDepositMoved means that a movement no longer has the status that the caller expected.
func errDepositMoved(d exchange.ChainDeposit) error {
	return exchange.Errorf(exchange.CodeStateConflict, "The deposit is now %s.", d.Status)
}

// isExpected reports whether a movement is what an order waits for, before it is final. Another amount may be anybody's.
func isExpected(o exchange.Order, d exchange.ChainDeposit) bool {
	return d.Kind == exchange.DepositAwaited && d.Amount.Equal(o.Price.Crypto) && o.FundWalletID == uuid.Nil
}

// SeeDeposit shows on an order that its crypto is in a block. An order that does not wait for it stays as it is.
// CodeStateConflict when the movement is already final, or gone; CodeNotFound when it is not for the order.
func (s *Store) SeeDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.Order, error) {
	return change(ctx, s, "deposit of the order", order, func(ctx context.Context, t unitTx) (exchange.Order, exchange.Posting, error) {
		var none exchange.Posting
		before, d, err := t.ownDeposit(ctx, order, deposit)
		if err == nil && d.Status != exchange.DepositSeen {
			err = errDepositMoved(d)
		}
		if err != nil || before.Status != exchange.OrderPending || !isExpected(before, d) {
			return before, none, err
		}
		o, err := t.confirming(ctx, before, d)
		return o, none, err
	})
}

// confirming shows a deposit on its order.
func (t unitTx) confirming(ctx context.Context, before exchange.Order, d exchange.ChainDeposit) (exchange.Order, error) {
	o := before
	o.Status, o.StatusDetail = exchange.OrderConfirming, exchange.WaitDepositFinality
	o.DepositTxHash, o.DepositAt = d.TxID, d.BlockTime
	return t.saveOrder(ctx, "order.confirming", flow, before, o)
}

// The deposit that decides an order, if one does: one of exactly its amount, otherwise the greatest.
const bestDeposit = `SELECT ` + depositColumns + ` FROM chain_deposits d
WHERE d.wallet_id = (SELECT wallet_id FROM escrow_leases WHERE order_id = $1) AND d.asset = $2 AND d.kind = 'awaited' AND d.status IN ('seen', 'final')
    AND NOT EXISTS (SELECT FROM escrow_claims c WHERE c.deposit_id = d.id) AND EXISTS (SELECT FROM deposit_wakeups u WHERE u.deposit_id = d.id)
ORDER BY d.amount = $3 DESC, d.amount DESC, d.status, d.block, d.event_index LIMIT 1`

// LoseDeposit takes back what SeeDeposit showed, when the movement's block was reorganised away or the movement now
// goes elsewhere, and no other movement replaces it. The sale then waits as long again as an order does, and no other amount
// decides it before. CodeStateConflict when it is in a block again.
func (s *Store) LoseDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.Order, error) {
	return change(ctx, s, "deposit of the order", order, func(ctx context.Context, t unitTx) (exchange.Order, exchange.Posting, error) {
		var none exchange.Posting
		before, d, own, err := t.lockedDeposit(ctx, order, deposit)
		if err == nil && own && d.Status != exchange.DepositOrphaned {
			err = errDepositMoved(d)
		}
		if err != nil || before.Status != exchange.OrderConfirming {
			return before, none, err
		}
		var rows []exchange.ChainDeposit
		if err := t.All(ctx, &rows, bestDeposit, order, before.Asset, before.Price.Crypto.Decimal()); err != nil {
			return before, none, err
		}
		o := before
		name := "order.detail_changed"
		if len(rows) > 0 && isExpected(before, rows[0]) {
			o.DepositTxHash, o.DepositAt = rows[0].TxID, rows[0].BlockTime
		} else {
			name = "order.pending"
			o.Status, o.StatusDetail = exchange.OrderPending, exchange.WaitDeposit
			o.DepositTxHash, o.DepositAt, o.DepositConfirms = "", time.Time{}, 0
			if o, err = t.withOther(ctx, o); err != nil {
				return before, none, err
			}
		}
		o, err = t.saveOrder(ctx, name, flow, before, o)
		return o, none, err
	})
}

// arrivedCrypto is the state of a final deposit while one transaction processes it.
type arrivedCrypto struct {
	t    unitTx
	by   exchange.Principal // the seller, who decides about another amount, or the flow
	out  exchange.DepositTaken
	post exchange.Posting
}

// TakeDeposit processes a final deposit, once. The exact amount pays the order. Another amount may be anybody's, so it
// decides nothing while the order may still be paid (TakenWaits), also after a reorganisation: the order shows the greatest to its seller, who may decide
// (DecideDeposit). When the order has expired, the greatest reprices it at its rate or, where the offer does not allow that,
// ends it and is refunded in full. Every other deposit is set aside as a payment exception.
//
// A deposit that pays becomes the escrow wallet's balance, all of it held for the order until the sweep or the refund,
// and the order owes its payout. A repeated call returns TakenKnown and the current state. CodeStateConflict when the
// movement is not final; CodeNotFound when it is not for the order.
func (s *Store) TakeDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.DepositTaken, error) {
	return change(ctx, s, "deposit of the order", order, func(ctx context.Context, t unitTx) (exchange.DepositTaken, exchange.Posting, error) {
		var none exchange.Posting
		o, d, err := t.ownDeposit(ctx, order, deposit)
		if err != nil {
			return exchange.DepositTaken{}, none, err
		}
		if d.Status != exchange.DepositFinal {
			return exchange.DepositTaken{Order: o}, none, errDepositMoved(d)
		}
		a := &arrivedCrypto{t: t, by: flow, out: exchange.DepositTaken{Order: o}}
		err = a.place(ctx, d)
		return a.out, a.post, err
	})
}

const leaseOpen = `SELECT EXISTS (SELECT FROM escrow_leases WHERE order_id = $1 AND ended_at IS NULL)`

// place decides what a deposit is for the order.
func (a *arrivedCrypto) place(ctx context.Context, d exchange.ChainDeposit) error {
	known, err := a.recall(ctx, d)
	if err != nil || known {
		return err
	}
	var open, decided bool
	if err := a.t.Get(ctx, &open, leaseOpen, a.out.Order.ID); err != nil {
		return err
	}
	if !open || d.Kind != exchange.DepositAwaited {
		a.out.Verdict = exchange.TakenKnown // unclaimed deposits of the lease are already exceptions; a payment of ours is no deposit
		return nil
	}
	if err := a.t.Get(ctx, &decided, orderDecided, a.out.Order.ID); err != nil {
		return err
	}
	o := a.out.Order
	switch {
	case d.Amount.Asset() != o.Asset:
		return a.setAside(ctx, d, exchange.ClaimWrongAsset, exchange.TakenWrongAsset)
	case decided, o.FundWalletID != uuid.Nil: // an order funded from our wallet takes no deposit
		return a.setAside(ctx, d, exchange.ClaimDuplicate, exchange.TakenDuplicate)
	case o.Status != exchange.OrderPending && o.Status != exchange.OrderConfirming:
		return a.setAside(ctx, d, exchange.ClaimLate, exchange.TakenLate)
	}
	return a.takeBest(ctx, d)
}

// recall fills in the outcome of a deposit that was processed before.
func (a *arrivedCrypto) recall(ctx context.Context, d exchange.ChainDeposit) (bool, error) {
	var rows []exchange.EscrowClaim
	if err := a.t.All(ctx, &rows, claimOfSource, d.ID, uuid.NullUUID{}); err != nil || len(rows) == 0 {
		return false, err
	}
	c := rows[0]
	a.out.Verdict = exchange.TakenKnown
	return true, a.except(ctx, c)
}

// except reads the exception of a claim and its refund.
func (a *arrivedCrypto) except(ctx context.Context, c exchange.EscrowClaim) error {
	if c.ExceptionID == uuid.Nil {
		return nil
	}
	x, err := a.t.lockedException(ctx, c.ExceptionID)
	if err != nil {
		return err
	}
	a.out.Exception = x
	a.out.Refund, _, err = a.t.refundOf(ctx, x.ID)
	return err
}

// setAside makes a payment exception of a deposit that the order can't use. It stays in suspense.
func (a *arrivedCrypto) setAside(ctx context.Context, d exchange.ChainDeposit, kind exchange.ClaimKind, verdict exchange.DepositVerdict) error {
	c, err := a.t.claim(ctx, d, a.out.Order.ID, kind)
	if err != nil {
		return err
	}
	a.out.Verdict = verdict
	return a.except(ctx, c)
}

// takeBest takes the deposit that decides the order, whichever the caller asked about: the order of signals must not decide
// prices.
func (a *arrivedCrypto) takeBest(ctx context.Context, d exchange.ChainDeposit) error {
	o := a.out.Order
	var rows []exchange.ChainDeposit
	if err := a.t.All(ctx, &rows, bestDeposit, o.ID, o.Asset, o.Price.Crypto.Decimal()); err != nil {
		return err
	}
	best := d // too little to wake the flow
	if len(rows) > 0 {
		best = rows[0]
	}
	if best.Status != exchange.DepositFinal || !isExpected(o, best) && a.t.s.now().Before(o.DecidedAt()) {
		a.out.Verdict = exchange.TakenWaits
		return a.showOther(ctx)
	}
	if err := a.take(ctx, best); err != nil || best.ID == d.ID {
		return err
	}
	_, err := a.t.claim(ctx, d, o.ID, exchange.ClaimDuplicate)
	return err
}

// take applies the deposit to the order. One that the offer does not take goes back, unless the seller wants to be paid for
// it: then nothing changes.
func (a *arrivedCrypto) take(ctx context.Context, d exchange.ChainDeposit) error {
	if err := a.confirm(ctx, d); err != nil {
		return err
	}
	before, o := a.out.Order, a.out.Order
	kind, verdict := exchange.ClaimExact, exchange.TakenExact
	if !d.Amount.Equal(o.Price.Crypto) {
		anew, post, fits, err := a.t.repriced(ctx, o, d.Amount)
		if err != nil {
			return err
		}
		switch {
		case !fits && a.by.UserID != uuid.Nil:
			return errOtherDoesNotFit
		case !fits:
			return a.sendBack(ctx, d)
		}
		o, a.post, kind, verdict = anew, post, exchange.ClaimRepriced, exchange.TakenRepriced
	}
	c, err := a.t.claim(ctx, d, o.ID, kind)
	if err != nil {
		return err
	}
	o.DepositTxHash, o.DepositAt = d.TxID, d.BlockTime
	if o.DepositConfirms, err = a.t.confirms(ctx, d); err != nil {
		return err
	}
	if a.out.Order, err = a.t.owing(ctx, before, o, a.by); err != nil {
		return err
	}
	a.out.Verdict = verdict
	a.hold(c, fromSuspense(o, d))
	return nil
}

// confirm shows the deposit that decides the order, if it was final before SeeDeposit showed it.
func (a *arrivedCrypto) confirm(ctx context.Context, d exchange.ChainDeposit) (err error) {
	if a.out.Order.Status == exchange.OrderPending {
		a.out.Order, err = a.t.confirming(ctx, a.out.Order, d)
	}
	return err
}

// owing moves a sale with received crypto on to its payout.
func (t unitTx) owing(ctx context.Context, before, o exchange.Order, by exchange.Principal) (exchange.Order, error) {
	o.Status, o.StatusDetail = exchange.OrderProcessing, exchange.WaitScreening
	o, err := t.saveOrder(ctx, "order.processing", by, before, o)
	if err != nil {
		return before, err
	}
	return o, t.openOrderPayout(ctx, o)
}

// sendBack ends an order whose deposit its seller or its offer does not take, and opens the refund of all of it.
func (a *arrivedCrypto) sendBack(ctx context.Context, d exchange.ChainDeposit) error {
	before, o := a.out.Order, a.out.Order
	kind := exchange.ClaimUnder
	if d.Amount.Cmp(o.Price.Crypto) > 0 {
		kind = exchange.ClaimOver
	}
	c, err := a.t.claim(ctx, d, o.ID, kind)
	if err != nil {
		return err
	}
	o.DepositTxHash, o.DepositAt = d.TxID, d.BlockTime
	o.Status, o.StatusDetail = exchange.OrderFailed, exchange.DetailMismatch
	if o, err = a.t.saveOrder(ctx, "order.failed", a.by, before, o); err != nil {
		return err
	}
	a.out.Order, a.out.Verdict = o, exchange.TakenMismatch
	if a.post, err = a.t.returnReservation(ctx, o); err != nil {
		return err
	}
	a.hold(c, fromSuspense(o, d))
	if err := a.except(ctx, c); err != nil {
		return err
	}
	if a.out.Exception, err = a.t.moveException(ctx, a.out.Exception, exchange.ExcRefunding, "returned by policy", a.by); err != nil {
		return err
	}
	a.out.Refund, err = a.t.openCryptoRefund(ctx, cryptoRefund{
		order: o, exception: c.ExceptionID, deposit: d.ID, wallet: d.WalletID, network: d.Network, amount: d.Amount, hold: c.HoldID, reason: string(kind),
	}, a.by)
	return err
}

// hold credits the crypto to the escrow wallet, and holds all of it for the order.
func (a *arrivedCrypto) hold(c exchange.EscrowClaim, e exchange.Entry) {
	a.post.Entries = append(a.post.Entries, e)
	a.post.Holds = append(a.post.Holds, cryptoHold(a.out.Order, c))
}

// cryptoHold holds an order's received crypto on the escrow wallet's balance. The sweep and the refund of the order
// both use this hold, so that the crypto leaves only once.
func cryptoHold(o exchange.Order, c exchange.EscrowClaim) exchange.HoldOp {
	return exchange.HoldOp{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: c.HoldID, Key: "order:" + o.ID.String() + ":crypto", Account: exchange.Owned(exchange.AccWalletBalance, c.WalletID, c.Amount.Asset()),
		Amount: c.Amount, ObjectType: "order", ObjectID: o.ID,
	}}
}

// fromSuspense books a deposit out of suspense.
func fromSuspense(o exchange.Order, d exchange.ChainDeposit) exchange.Entry {
	asset := d.Amount.Asset()
	return exchange.Entry{
		Key: "order:" + o.ID.String() + ":deposit:" + d.ID.String(), Kind: "order.deposit", ObjectType: "order", ObjectID: o.ID,
		Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccSuspense, asset), d.Amount),
			exchange.Credit(exchange.Owned(exchange.AccWalletBalance, d.WalletID, asset), d.Amount),
		},
	}
}

// takePaid moves an order on whose crypto a completed payment of ours brought to its escrow wallet. The posting holds
// the crypto; the payment's entry, which the caller adds, credits it.
func (t unitTx) takePaid(ctx context.Context, before exchange.Order, p exchange.ChainPayment) (exchange.Order, exchange.Posting, error) {
	c, err := t.claimFunding(ctx, p, before.ID)
	if err != nil {
		return before, exchange.Posting{}, err
	}
	if before.Status == exchange.OrderPending {
		o := before
		o.Status, o.StatusDetail, o.DepositTxHash = exchange.OrderConfirming, exchange.WaitDepositFinality, p.TxID
		if before, err = t.saveOrder(ctx, "order.confirming", flow, before, o); err != nil {
			return before, exchange.Posting{}, err
		}
	}
	o := before
	o.DepositTxHash, o.DepositAt = p.TxID, t.s.now()
	if o, err = t.owing(ctx, before, o, flow); err != nil {
		return before, exchange.Posting{}, err
	}
	return o, exchange.Posting{Holds: []exchange.HoldOp{cryptoHold(o, c)}}, nil
}

const confirmationsOf = `
SELECT greatest(0, greatest(c.final_number, (SELECT max(b.number) FROM deposit_blocks b WHERE b.network = c.network)) - $2::bigint + 1)
FROM deposit_cursors c WHERE c.network = $1`

// confirms counts a deposit's confirmations, its own block included.
func (t unitTx) confirms(ctx context.Context, d exchange.ChainDeposit) (int, error) {
	var n int
	err := t.Get(ctx, &n, confirmationsOf, d.Network, blockNumber(d.Block))
	return n, err
}

// Shown movements that are gone, and unclaimed ones that exist. Those too small to wake the flow are excluded.
const offRampDeposits = `
SELECT d.id FROM escrow_leases l JOIN orders o ON o.id = l.order_id JOIN chain_deposits d ON d.wallet_id = l.wallet_id
WHERE l.order_id = $1 AND l.ended_at IS NULL AND d.kind = 'awaited'
    AND EXISTS (SELECT FROM deposit_wakeups u JOIN deposit_waits w ON w.id = u.wait_id WHERE u.deposit_id = d.id AND w.workflow_id = $2)
    AND (d.status = 'final' AND NOT EXISTS (SELECT FROM escrow_claims c WHERE c.deposit_id = d.id)
        OR d.status = 'seen' AND o.status = 'pending' AND d.asset = o.asset
        OR d.status = 'orphaned' AND o.status = 'confirming' AND d.tx_id = o.deposit_tx_hash)
ORDER BY d.block, d.event_index LIMIT 100`

// OffRampDeposits finds the movements that the flow of an order has to process, at most a hundred.
func (s *Store) OffRampDeposits(ctx context.Context, order uuid.UUID) ([]uuid.UUID, error) {
	return readAll[uuid.UUID](ctx, s.db, "deposit of the order", offRampDeposits, order, exchange.OffRampFlow(order))
}

const screenTerms = `
SELECT d.id, d.network, d.asset, d.amount, a.address FROM chain_deposits d, outside_senders(d) AS a (address)
WHERE d.id IN (SELECT c.deposit_id FROM escrow_claims c WHERE c.order_id = $1 AND c.kind IN ('exact', 'repriced', 'under', 'over')) AND NOT deposit_cleared(d)
ORDER BY d.id, a.address`

// ScreenTerms are all possible senders of the crypto that an order is paid out for or ends with, by deposit, whose latest screening
// does not accept the deposit or who have been put on the deny list since. Crypto from our own custody needs no
// screening.
func (s *Store) ScreenTerms(ctx context.Context, order uuid.UUID) ([]exchange.Counterparty, error) {
	type senderRow struct {
		ID      uuid.UUID
		Network exchange.Network
		Asset   money.Asset
		Amount  decimal.Decimal
		Address string
	}
	var rows []senderRow
	if err := s.db.All(ctx, &rows, screenTerms, order); err != nil {
		return nil, translate(err, "deposit of the order")
	}
	return convert(rows, func(r senderRow) (exchange.Counterparty, error) {
		m, err := amountOf(r.Asset, r.Amount)
		return exchange.Counterparty{DepositID: r.ID, Network: r.Network, Address: r.Address, Amount: m}, err
	})
}

const soldUncleared = `
SELECT EXISTS (SELECT FROM escrow_claims c JOIN chain_deposits d ON d.id = c.deposit_id
    WHERE c.order_id = $1 AND c.kind IN ('exact', 'repriced') AND NOT deposit_cleared(d))`

// sendersCleared refuses to begin a payout, with ErrUncleared as the cause, while a possible sender of the crypto is
// not cleared or is now on the deny list. The database refuses it too, without the reason.
func (t unitTx) sendersCleared(ctx context.Context, order uuid.UUID) error {
	var uncleared bool
	if err := t.Get(ctx, &uncleared, soldUncleared, order); err != nil || !uncleared {
		return err
	}
	return exchange.Wrap(exchange.CodeStateConflict, exchange.ErrUncleared, "The senders of the crypto have to be screened before the payout.")
}

const insertDepositScreening = `INSERT INTO screenings (id, deposit_id, screener, verdict, reference, at) VALUES ($1, $2, $3, $4, $5, $6)`

// RecordDepositScreening stores the screening results of all possible senders of a deposit; the worst result counts. A
// repeated call replaces earlier results, so all of them are stored together.
func (s *Store) RecordDepositScreening(ctx context.Context, deposit uuid.UUID, said []exchange.Screening) error {
	return s.inTx(ctx, "screening", func(t unitTx) error {
		worst := slices.SortedStableFunc(slices.Values(said), func(a, b exchange.Screening) int { return severity(a.Verdict) - severity(b.Verdict) })
		for _, v := range worst {
			id, err := uuid.NewV7()
			if err != nil {
				return err
			}
			if err := t.One(ctx, insertDepositScreening, id, deposit, clip(v.Screener, 80), v.Verdict, clip(v.Reference, 200), t.s.now()); err != nil {
				return err
			}
		}
		return nil
	})
}
