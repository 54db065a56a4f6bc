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

// A network takes its fee from what is in a wallet, whether the ledger knows of it or not. What it took
// beyond the ledger's knowledge is found, in gas_found and in suspense. The deposit that brought it is read
// later, or was on its way; what it explains of the found is taken back when it is booked, in gas_nettings, so
// that the wallet holds it once.

// Fees and native deposits of one wallet are booked one after the other. The row of its account alone can't
// see to that: the first of them opens it.
const lockGasOf = `SELECT pg_advisory_xact_lock(hashtextextended('kivuko gas ' || wallet, 0)) FROM unnest($1::text[]) AS wallet`

// lockGas is taken after the locks of transactions, by everybody.
func (t unitTx) lockGas(ctx context.Context, wallets ...uuid.UUID) error {
	ids := make([]string, 0, len(wallets))
	for _, w := range wallets {
		ids = append(ids, w.String())
	}
	slices.Sort(ids) // two transactions that lock the same ones can't wait for each other
	_, err := t.exec(ctx, lockGasOf, pq.Array(slices.Compact(ids)))
	return err
}

const insertFound = `INSERT INTO gas_found (attempt_id, wallet_id, asset, block, amount, found_at) VALUES ($1, $2, $3, $4, $5, $6)`

// find says what to book of the part of a fee that the ledger does not have in the wallet.
func (st *step) find(ctx context.Context, wallet uuid.UUID, short money.Amount) (exchange.Entry, error) {
	_, err := st.t.exec(ctx, insertFound, st.tx.ID, wallet, short.Asset(), blockNumber(st.tx.Block), short.Decimal(), st.t.s.now())
	return exchange.Entry{
		Key: "chain_attempt:" + st.tx.ID.String() + ":gas", Kind: "gas.found", ObjectType: "chain_payment", ObjectID: st.payment.ID,
		Lines: []exchange.Line{
			exchange.Debit(exchange.Owned(exchange.AccCustody, wallet, short.Asset()), short),
			exchange.Credit(exchange.House(exchange.AccSuspense, short.Asset()), short),
		},
	}, err
}

// lockPayers keeps fees out of the wallets that native coins of the block came to, until they are booked.
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

const insertNetting = `INSERT INTO gas_nettings (deposit_id, attempt_id, amount, netted_at) VALUES ($1, $2, $3, $4)`

// net takes back what was found in a wallet before the deposit that brought it was read, and says what is to
// be booked of it. The deposit is final and its wallet locked.
func (sc *scan) net(ctx context.Context, d exchange.ChainDeposit) ([]exchange.Entry, error) {
	if d.Amount.Asset() != sc.network.NativeCoin() {
		return nil, nil
	}
	var found []struct {
		AttemptID uuid.UUID `db:"attempt_id"`
		Open      decimal.Decimal
	}
	if err := sc.t.all(ctx, &found, openFound, d.WalletID, d.Amount.Asset(), blockNumber(d.Block)); err != nil {
		return nil, err
	}
	left := d.Amount.Decimal()
	for _, f := range found {
		part := decimal.Min(f.Open, left)
		if !part.IsPositive() {
			break
		}
		if _, err := sc.t.exec(ctx, insertNetting, d.ID, f.AttemptID, part, sc.t.s.now()); err != nil {
			return nil, err
		}
		left = left.Sub(part)
	}
	netted, err := amountOf(d.Amount.Asset(), d.Amount.Decimal().Sub(left))
	if err != nil || netted.IsZero() {
		return nil, err
	}
	return []exchange.Entry{{
		Key: "chain_deposit:" + d.ID.String() + ":gas", Kind: "gas.explained", ObjectType: "chain_deposit", ObjectID: d.ID,
		Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccSuspense, netted.Asset()), netted),
			exchange.Credit(exchange.Owned(exchange.AccCustody, d.WalletID, netted.Asset()), netted),
		},
	}}, nil
}
