package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Gas ahead of need is brought by a payment of purpose gas whose object is the wallet. The database decides which wallets get it and how much
// at most (gas_ahead_fault), so that no process fills a wallet without bound.

const readHolders = `
SELECT w.address, a.asset FROM ledger_accounts a JOIN wallets w ON w.id = a.owner_id
WHERE a.kind = 'custody' AND a.asset IN ('USDT', 'USDC') AND a.posted > 0 AND w.network = $1 AND w.counterpart_of IS NULL
ORDER BY a.posted DESC, w.id LIMIT $2`

// TokenHolders lists addresses of ours with stablecoins on a network, those with most first.
func (s *Store) TokenHolders(ctx context.Context, n exchange.Network, limit int) ([]exchange.TokenHolder, error) {
	return readAll[exchange.TokenHolder](ctx, s.db, "wallet", readHolders, n, limit)
}

// They come in no order, so that wallets which are refused keep no others from their turn.
const readLow = `
WITH chosen AS MATERIALIZED (
    SELECT w.id, w.address, gas_ahead_kind(w.id) AS kind FROM wallets w WHERE w.network = $1 AND w.id IN (
        SELECT o.wallet_id FROM offers o WHERE o.network = $1 AND o.status = 'active' AND o.offer_type = 'SELL'
        UNION SELECT l.wallet_id FROM escrow_leases l WHERE l.ended_at IS NULL
        UNION (SELECT a.id FROM escrow_addresses a WHERE a.network = $1 AND a.status = 'free'
            ORDER BY a.last_used_at NULLS FIRST, a.id LIMIT escrow_ahead($1))
        UNION SELECT b.owner_id FROM ledger_accounts b WHERE b.kind = 'wallet_balance' AND b.asset IN ('USDT', 'USDC') AND b.posted > 0)
), looked AS MATERIALIZED (
    SELECT c.id, c.address, c.kind, gas_share(c.id, NULL) AS share FROM chosen c WHERE c.kind IS NOT NULL
)
SELECT n.looked, l.id, coalesce(l.address, '') AS address, coalesce(l.kind, '') AS kind, l.share, coalesce((SELECT b.asset FROM ledger_accounts b
        WHERE b.owner_id = l.id AND b.kind = 'custody' AND b.asset IN ('USDT', 'USDC') AND b.posted > 0 ORDER BY b.posted DESC LIMIT 1)::text, '') AS asset
FROM (SELECT count(*) AS looked FROM looked) n LEFT JOIN LATERAL (
    SELECT k.* FROM looked k
    WHERE k.share < CASE k.kind WHEN 'vendor' THEN $2::numeric WHEN 'escrow' THEN $3::numeric ELSE $4::numeric END
        AND NOT EXISTS (SELECT FROM chain_payments g WHERE g.purpose = 'gas' AND g.network = $1 AND g.to_address = k.address
            AND g.status NOT IN ('completed', 'cancelled'))
    ORDER BY random() LIMIT $5) l ON true`

// GasLow lists the wallets of a network that get gas ahead of need and in which the house has less than below of their kind, with how many of
// them there are, low or not. A wallet to which gas is on its way is left out.
func (s *Store) GasLow(ctx context.Context, n exchange.Network, below map[exchange.GasKind]money.Amount, limit int) (int, []exchange.LowWallet, error) {
	var rows []struct {
		Looked  int
		ID      uuid.NullUUID
		Address string
		Kind    exchange.GasKind
		Share   decimal.NullDecimal
		Asset   money.Asset
	}
	err := s.db.All(ctx, &rows, readLow, n, below[exchange.GasForVendor].Decimal(), below[exchange.GasForEscrow].Decimal(),
		below[exchange.GasForCoins].Decimal(), limit)
	if err != nil {
		return 0, nil, translate(err, "wallet")
	}
	looked, all := 0, []exchange.LowWallet(nil)
	for _, r := range rows {
		looked = r.Looked
		if !r.ID.Valid {
			continue
		}
		share, err := amountOf(n.NativeCoin(), r.Share.Decimal)
		if err != nil {
			return 0, nil, err
		}
		all = append(all, exchange.LowWallet{ID: r.ID.UUID, Address: r.Address, Kind: r.Kind, Asset: r.Asset, Share: share})
	}
	return looked, all, nil
}

const lockAhead = `SELECT pg_advisory_xact_lock(hashtextextended('kivuko gas ahead ' || $1::text, 0)),
    pg_advisory_xact_lock(hashtextextended('kivuko gas ' || $2::text, 0))`

const readAheadFault = `SELECT gas_ahead_fault($1, $2, $3)`

const lastAhead = `SELECT coalesce(max(n), 0) FROM chain_payments WHERE purpose = 'gas' AND object_id = $1`

// ApproveGasAhead approves a top-up of a wallet ahead of need, or returns why there is none. A repeated call finds the first one under way.
func (s *Store) ApproveGasAhead(ctx context.Context, wallet uuid.UUID, amount money.Amount) (exchange.ChainPayment, exchange.GasRefusal, error) {
	type approval struct {
		payment exchange.ChainPayment
		refused exchange.GasRefusal
	}
	a, err := change(ctx, s, "chain payment", wallet, func(ctx context.Context, t unitTx) (approval, exchange.Posting, error) {
		var a approval
		var err error
		a.payment, a.refused, err = t.gasAhead(ctx, wallet, amount)
		return a, exchange.Posting{}, err
	})
	return a.payment, a.refused, err
}

func (t unitTx) gasAhead(ctx context.Context, wallet uuid.UUID, amount money.Amount) (none exchange.ChainPayment, refused exchange.GasRefusal, err error) {
	w, err := readOne[exchange.Wallet](ctx, t, "wallet", readWallet, wallet)
	if err != nil {
		return none, "", err
	}
	if amount.Asset() != w.Network.NativeCoin() || !amount.Positive() {
		return none, "", exchange.Errorf(exchange.CodeInternal, "%s %s is not the gas coin of %s", amount, amount.Asset(), w.Network)
	}
	source, found, err := t.gasWallet(ctx, w.Network)
	if err != nil || !found {
		return none, exchange.GasReserve, err
	}
	if _, err := t.Exec(ctx, lockAhead, w.Network, w.ID); err != nil {
		return none, "", err
	}
	if err := t.Get(ctx, &refused, readAheadFault, w.ID, amount.Decimal(), source.ID); err != nil || refused != "" {
		return none, refused, err
	}
	if low, err := t.feeBudgetLow(ctx, w.Network); err != nil || low {
		return none, exchange.GasFeeBudget, err
	}
	var n int
	if err := t.Get(ctx, &n, lastAhead, w.ID); err != nil {
		return none, "", err
	}
	p, err := t.addPayment(ctx, flow, &gasPayment{wallet: w.ID}, exchange.ChainPayment{
		Purpose: exchange.ForGas, ObjectID: w.ID, N: n + 1, Network: w.Network, Amount: amount, WalletID: source.ID, ToAddress: w.Address, ApprovedBy: byPolicy,
	})
	return p, "", err
}

// feeBudgetLow reports whether half of the house's daily budget for the network's fees is used up: gas ahead of need leaves the rest to
// payments.
func (t unitTx) feeBudgetLow(ctx context.Context, n exchange.Network) (bool, error) {
	var taken decimal.Decimal
	err := t.Get(ctx, &taken, feesOfOthers, n, exchange.DayOf(t.s.now()), uuid.Nil)
	const half = 2
	return taken.Mul(decimal.NewFromInt(half)).GreaterThanOrEqual(t.s.limits.HouseFees[n.NativeCoin()].Decimal()), err
}

// aheadPause is after how long a parked top-up is tried again, so that an empty gas wallet is not asked at every run.
const aheadPause = 10 * time.Minute

const openAhead = `
SELECT ` + paymentColumns + ` FROM chain_payments p JOIN gas_ahead g ON g.payment_id = p.id
WHERE p.network = $1 AND p.purpose = 'gas' AND (p.status = 'approved' OR p.status = 'parked' AND p.updated_at < $2) ORDER BY p.created_at, p.id LIMIT $3`

// OpenGasAhead lists top-ups ahead of need that have no transaction: approved ones, whose flow may have never begun, and ones that parked
// aheadPause ago.
func (s *Store) OpenGasAhead(ctx context.Context, n exchange.Network, limit int) ([]exchange.ChainPayment, error) {
	return readAll[exchange.ChainPayment](ctx, s.db, "chain payment", openAhead, n, s.now().Add(-aheadPause), limit)
}

const readAheadKind = `SELECT gas_ahead_kind($1) IS NOT NULL AND NOT EXISTS (SELECT FROM chain_attempts WHERE payment_id = $2 AND status = 'failed')`

// ReviveGasAhead makes an open top-up ahead of need ready to be signed, and reports whether it is. One that is not needed any more, or
// failed on the chain, is given up: nothing is sent to a wallet twice on the strength of one approval.
func (s *Store) ReviveGasAhead(ctx context.Context, paymentID uuid.UUID) (bool, error) {
	return change(ctx, s, "chain payment", paymentID, func(ctx context.Context, t unitTx) (bool, exchange.Posting, error) {
		var none exchange.Posting
		object, p, err := t.objectOf(ctx, paymentID)
		if err != nil || (p.Status != exchange.ChainApproved && p.Status != exchange.ChainParked) {
			return false, none, err
		}
		var needed bool
		if err := t.Get(ctx, &needed, readAheadKind, p.ObjectID, p.ID); err != nil {
			return false, none, err
		}
		if !needed {
			return false, none, t.abandonPayment(ctx, p.ID, "not_needed", flow)
		}
		if p.Status == exchange.ChainParked {
			again := p
			again.Status, again.Detail = exchange.ChainApproved, ""
			_, err = t.savePayment(ctx, flow, object, p, again)
		}
		return err == nil, none, err
	})
}

const openAheadOf = `SELECT ` + paymentColumns + ` FROM chain_payments p WHERE p.purpose = 'gas' AND p.object_id = $1 AND p.status NOT IN ('completed', 'cancelled')
    AND NOT gas_arrived(p.id)`

// makeWay gives up a top-up of a wallet ahead of need that has no transaction, because a payment asks for gas now. It returns one that has a
// transaction in no block yet, for which the payment waits, or a parked one that may have moved money.
func (t unitTx) makeWay(ctx context.Context, wallet uuid.UUID) (exchange.ChainPayment, bool, error) {
	p, found, err := readFound[exchange.ChainPayment](ctx, t, openAheadOf, wallet)
	if err != nil || !found {
		return p, false, err
	}
	switch p.Status {
	case exchange.ChainSigned, exchange.ChainBroadcast, exchange.ChainIncluded:
		return p, true, nil
	case exchange.ChainApproved, exchange.ChainParked, exchange.ChainCompleted, exchange.ChainCancelled:
	}
	err = t.abandonPayment(ctx, p.ID, "asked_for", flow)
	if exchange.CodeOf(err) == exchange.CodeStateConflict {
		return p, true, nil // an officer settles that
	}
	return p, false, err
}
