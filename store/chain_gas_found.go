package store

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// A network takes its fee from a wallet's balance, whether or not the ledger has that balance. The excess over
// the ledger is recorded as found, in gas_found and in suspense. The deposit that brought it is read later, or the top-up
// that did is booked later; then the part that it explains is taken back, in gas_nettings, so that the wallet holds it
// only once.

// Fees and native deposits of one wallet are booked one after the other. The lock of its account row does not suffice:
// the first of them creates that row.
const lockGasOf = `SELECT pg_advisory_xact_lock(hashtextextended('kivuko gas ' || wallet, 0)) FROM unnest($1::text[]) AS wallet`

// lockGas is always taken after the locks of transactions.
func (t unitTx) lockGas(ctx context.Context, wallets ...uuid.UUID) error {
	ids := make([]string, 0, len(wallets))
	for _, w := range wallets {
		ids = append(ids, w.String())
	}
	slices.Sort(ids) // two transactions that lock the same ones can't deadlock
	_, err := t.Exec(ctx, lockGasOf, pq.Array(slices.Compact(ids)))
	return err
}

const insertFound = `INSERT INTO gas_found (attempt_id, wallet_id, asset, block, amount, found_at) VALUES ($1, $2, $3, $4, $5, $6)`

// find returns the entry for the part of a fee that the ledger does not have in the wallet.
func (st *step) find(ctx context.Context, wallet uuid.UUID, short money.Amount) (exchange.Entry, error) {
	_, err := st.t.Exec(ctx, insertFound, st.tx.ID, wallet, short.Asset(), blockNumber(st.tx.Block), short.Decimal(), st.t.s.now())
	return exchange.Entry{
		Key: "chain_attempt:" + st.tx.ID.String() + ":gas", Kind: "gas.found", ObjectType: "chain_payment", ObjectID: st.payment.ID,
		Lines: []exchange.Line{
			exchange.Debit(exchange.Owned(exchange.AccCustody, wallet, short.Asset()), short),
			exchange.Credit(exchange.House(exchange.AccSuspense, short.Asset()), short),
		},
	}, err
}

// lockPayers blocks fees of the wallets that receive native coins in the block, until those are booked.
func (sc *scan) lockPayers(ctx context.Context, ours []exchange.ChainMovement) error {
	var wallets []uuid.UUID
	for _, m := range ours {
		if to, arrives := sc.byAddress[m.To]; arrives && m.Amount.Asset() == sc.network.NativeCoin() {
			wallets = append(wallets, to.ID)
		}
	}
	if len(wallets) == 0 {
		return nil
	}
	return sc.t.lockGas(ctx, wallets...)
}

// The fees that a deposit may have paid: those of its block and later ones.
const openFound = `
SELECT attempt_id, amount - netted AS open FROM gas_found
WHERE wallet_id = $1 AND asset = $2 AND block >= $3 AND netted < amount ORDER BY block, attempt_id`

const insertNetting = `INSERT INTO gas_nettings (deposit_id, payment_id, attempt_id, amount, netted_at) VALUES ($1, $2, $3, $4, $5)`

// net takes back what the coins of a final deposit explain. Its wallet is locked by lockPayers.
func (sc *scan) net(ctx context.Context, d exchange.ChainDeposit) ([]exchange.Entry, error) {
	if d.Amount.Asset() != sc.network.NativeCoin() {
		return nil, nil
	}
	return sc.t.explain(ctx, nativeArrival{deposit: d.ID, wallet: d.WalletID, block: d.Block, amount: d.Amount})
}

// net takes back what the coins of a completed top-up explain. Its wallet is locked by bookFee.
func (g *gasPayment) net(ctx context.Context, t unitTx, p exchange.ChainPayment) ([]exchange.Entry, error) {
	return t.explain(ctx, nativeArrival{payment: p.ID, wallet: g.wallet, block: p.Block, amount: p.Amount})
}

// nativeArrival is native coins that came to a wallet of ours: by a final deposit, or by a completed payment from another
// wallet of ours. One of the ids is zero.
type nativeArrival struct {
	deposit, payment uuid.UUID
	wallet           uuid.UUID
	block            uint64
	amount           money.Amount
}

// explain takes back gas that was found in a wallet before the coins that paid it were booked, and returns the entries.
// The wallet is locked by lockGas.
func (t unitTx) explain(ctx context.Context, a nativeArrival) ([]exchange.Entry, error) {
	var found []struct {
		AttemptID uuid.UUID
		Open      decimal.Decimal
	}
	if err := t.All(ctx, &found, openFound, a.wallet, a.amount.Asset(), blockNumber(a.block)); err != nil {
		return nil, err
	}
	left := a.amount.Decimal()
	for _, f := range found {
		part := decimal.Min(f.Open, left)
		if !part.IsPositive() {
			break
		}
		if _, err := t.Exec(ctx, insertNetting, nullID(a.deposit), nullID(a.payment), f.AttemptID, part, t.s.now()); err != nil {
			return nil, err
		}
		left = left.Sub(part)
	}
	netted, err := amountOf(a.amount.Asset(), a.amount.Decimal().Sub(left))
	if err != nil || netted.IsZero() {
		return nil, err
	}
	object, id := "chain_deposit", a.deposit
	if a.payment != uuid.Nil {
		object, id = "chain_payment", a.payment
	}
	return []exchange.Entry{{
		Key: object + ":" + id.String() + ":gas", Kind: "gas.explained", ObjectType: object, ObjectID: id,
		Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccSuspense, netted.Asset()), netted),
			exchange.Credit(exchange.Owned(exchange.AccCustody, a.wallet, netted.Asset()), netted),
		},
	}}, nil
}
