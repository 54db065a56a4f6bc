package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Money on the wrong network: sent to the TRON form of an Ethereum address of ours, or the other way round. We have
// the key on both networks, so the money is in our custody, but in no wallet that was given to anyone. It gets one:
// the counterpart, which belongs to the house and signs with the key of the original wallet. The other form of an account of several owners is
// not ours: a contract is not there, and neither are permissions.

const walletsOfCounterparts = `
SELECT w.id, w.counterpart, w.address, w.network, w.asset, w.type, w.custody FROM wallets w
WHERE w.counterpart = ANY ($1) AND w.purpose <> 'counterpart' AND w.custody = 'custodial' AND w.network <> $2 AND NOT EXISTS (SELECT FROM wallets t WHERE t.counterpart_of = w.id)`

// counterpartRow is a wallet whose counterpart on the other network does not exist yet.
type counterpartRow struct {
	ID          uuid.UUID
	Counterpart string
	Address     string
	Network     exchange.Network
	Asset       money.Asset
	Type        exchange.WalletType
	Custody     exchange.Custody
}

// counterparts creates the counterparts of our wallets that money moved to or from in a final block. Nothing waits for
// such money, so non-final blocks are ignored. Events of zero create none: anyone can produce them.
func (sc *scan) counterparts(ctx context.Context, all []exchange.ChainMovement) ([]walletEnd, error) {
	if !sc.final || !sc.network.Counterparts() {
		return nil, nil
	}
	spelt := map[string]string{} // addresses by their form for comparison
	for _, m := range all {
		if m.Amount.Positive() {
			spelt[sc.network.Compared(m.From)], spelt[sc.network.Compared(m.To)] = m.From, m.To
		}
	}
	asked := make([]string, 0, len(spelt))
	for address := range spelt {
		asked = append(asked, address)
	}
	var rows []counterpartRow
	if err := sc.t.All(ctx, &rows, walletsOfCounterparts, pq.Array(asked), sc.network); err != nil {
		return nil, err
	}
	ends := make([]walletEnd, 0, len(rows))
	for _, r := range rows {
		end, err := sc.t.addCounterpart(ctx, r, sc.network, spelt[r.Counterpart])
		if err != nil {
			return nil, err
		}
		ends = append(ends, end)
	}
	return ends, nil
}

const insertCounterpart = `
INSERT INTO wallets (id, owner_type, purpose, network, address, asset, type, custody, label, is_default, counterpart_of, created_at, updated_at)
VALUES ($1, 'treasury', 'counterpart', $2, $3, $4, $5, $6, $7, false, $8, $9, $9) RETURNING ` + walletColumns

// addCounterpart creates a counterpart wallet. Its id derives from the wallet whose key it has.
func (t unitTx) addCounterpart(ctx context.Context, of counterpartRow, n exchange.Network, address string) (walletEnd, error) {
	label := "The " + string(n) + " side of " + string(of.Network) + " wallet " + of.Address
	var row exchange.Wallet
	err := t.Get(ctx, &row, insertCounterpart, uuid.NewSHA1(of.ID, []byte("counterpart")), n, address, of.Asset, of.Type, of.Custody, clip(label, 200), of.ID, t.s.now())
	if err != nil {
		return walletEnd{}, err
	}
	end := walletEnd{ID: row.ID, Address: row.Address, Purpose: row.Purpose, CounterpartOf: nullID(row.CounterpartOf)}
	return end, t.record(ctx, auditEvent{by: watching, object: "wallet", id: row.ID, name: "wallet.created", after: walletSnapshot(row)})
}

const isCounterpart = `SELECT is_counterpart($1, $2)`

// notOnWrongNetwork refuses an address that is the wrong network's form of one of ours: the requester has most
// probably mixed up networks, and money sent there would not reach its recipient.
func (t unitTx) notOnWrongNetwork(ctx context.Context, n exchange.Network, address, pointer string) error {
	var counterpart bool
	if err := t.Get(ctx, &counterpart, isCounterpart, n, address); err != nil {
		return err
	}
	return require(!counterpart, pointer, "own_wallet", "must not be the address of a wallet of ours on another network")
}
