package store

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Money on the wrong network: sent to TRON's spelling of an Ethereum address of ours, or the other way round. The key
// is ours on both, so that the money is in our custody, and yet in no wallet that anybody was told of. It gets one: the
// twin, which belongs to the house and signs with the key of the wallet whose other side it is.

const walletsOfTwins = `
SELECT w.id, w.twin, w.address, w.network, w.asset, w.type, w.custody FROM wallets w
WHERE w.twin = ANY ($1) AND w.purpose <> 'twin' AND w.network <> $2 AND NOT EXISTS (SELECT FROM wallets t WHERE t.twin_of = w.id)`

// twinRow is a wallet of the other network whose twin is no wallet yet.
type twinRow struct {
	ID      uuid.UUID
	Twin    string
	Address string
	Network exchange.Network
	Asset   money.Asset
	Type    exchange.WalletType
	Custody exchange.Custody
}

// twins makes wallets of the twins of ours that money moved to or from in a block that can't be undone. Before that
// nothing is made of it, because nobody waits there. Events of zero make none: anybody can have them written.
func (sc *scan) twins(ctx context.Context, all []exchange.ChainMovement) ([]walletEnd, error) {
	if !sc.final || sc.network == exchange.Solana {
		return nil, nil
	}
	spelt := map[string]string{} // addresses by the spelling in which they are compared
	for _, m := range all {
		if m.Amount.Positive() {
			spelt[comparedAs(sc.network, m.From)], spelt[comparedAs(sc.network, m.To)] = m.From, m.To
		}
	}
	asked := make([]string, 0, len(spelt))
	for address := range spelt {
		asked = append(asked, address)
	}
	var rows []twinRow
	if err := sc.t.all(ctx, &rows, walletsOfTwins, pq.Array(asked), sc.network); err != nil {
		return nil, err
	}
	ends := make([]walletEnd, 0, len(rows))
	for _, r := range rows {
		end, err := sc.t.addTwin(ctx, r, sc.network, spelt[r.Twin])
		if err != nil {
			return nil, err
		}
		ends = append(ends, end)
	}
	return ends, nil
}

// comparedAs is the spelling of an address in which twins are looked up: on Ethereum the case of letters means nothing.
func comparedAs(n exchange.Network, address string) string {
	if n == exchange.Ethereum {
		return strings.ToLower(address)
	}
	return address
}

const insertTwin = `
INSERT INTO wallets (id, owner_type, purpose, network, address, asset, type, custody, label, is_default, twin_of, created_at, updated_at)
VALUES ($1, 'treasury', 'twin', $2, $3, $4, $5, $6, $7, false, $8, $9, $9) RETURNING ` + walletColumns

// addTwin makes the wallet of a twin. Its id follows from the wallet whose key it has.
func (t unitTx) addTwin(ctx context.Context, of twinRow, n exchange.Network, address string) (walletEnd, error) {
	label := "The " + string(n) + " side of " + string(of.Network) + " wallet " + of.Address
	var row walletRow
	err := t.get(ctx, &row, insertTwin, uuid.NewSHA1(of.ID, []byte("twin")), n, address, of.Asset, of.Type, of.Custody, clip(label, 200), of.ID, t.s.now())
	if err != nil {
		return walletEnd{}, err
	}
	w, err := row.wallet()
	if err != nil {
		return walletEnd{}, err
	}
	end := walletEnd{ID: w.ID, Address: w.Address, Purpose: w.Purpose, TwinOf: row.TwinOf}
	return end, t.record(ctx, fact{by: watching, object: "wallet", id: w.ID, name: "wallet.created", after: walletFact(w)})
}

const isTwin = `SELECT is_twin($1, $2)`

// notOnWrongNetwork refuses an address that is the wrong network's spelling of one of ours: who asks for it has most
// probably mixed up networks, and what went there would reach nobody.
func (t unitTx) notOnWrongNetwork(ctx context.Context, n exchange.Network, address, pointer string) error {
	var twin bool
	if err := t.get(ctx, &twin, isTwin, n, address); err != nil {
		return err
	}
	return require(!twin, pointer, "own_wallet", "must not be the address of a wallet of ours on another network")
}
