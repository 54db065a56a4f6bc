package store

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// maxHeight is above every block.
const maxHeight = math.MaxInt64

const depositColumns = `id, network, tx_id, event_index AS index, from_address AS "from", to_address AS "to", amount||' '||asset AS amount, wallet_id, from_wallet_id, kind, status, payment_id,
	exception_id, block, block_id, block_time, created_at, final_at, version, other_senders AS others, sender_accounts AS accounts`

func depositSnapshot(d exchange.ChainDeposit) map[string]any {
	return map[string]any{
		"id": d.ID, "network": d.Network, "tx_hash": d.TxID, "index": d.Index, "from_address": d.From, "to_address": d.To,
		"asset": d.Amount.Asset(), "amount": d.Amount.String(), "wallet_id": nullID(d.WalletID), "kind": d.Kind, "status": d.Status,
		"block": d.Block, "block_id": d.BlockID, "version": d.Version,
	}
}

// ChainDepositFilter narrows a list of movements.
type ChainDepositFilter struct {
	WalletID uuid.UUID // the receiving wallet
	TxID     string
}

const readDeposit = `SELECT ` + depositColumns + ` FROM chain_deposits WHERE id = $1`

// ChainDeposit reads one movement.
func (s *Store) ChainDeposit(ctx context.Context, id uuid.UUID) (exchange.ChainDeposit, error) {
	return readOne[exchange.ChainDeposit](ctx, s.db, "chain deposit", readDeposit, id)
}

// ListChainDeposits pages through the movements, newest first, with their number.
func (s *Store) ListChainDeposits(ctx context.Context, f ChainDepositFilter, p Page) ([]exchange.ChainDeposit, int, error) {
	var w where
	w.id("wallet_id", f.WalletID)
	w.eq("tx_id", f.TxID)
	return readPage[exchange.ChainDeposit](ctx, s, "chain deposit", list{columns: depositColumns, from: "chain_deposits", where: w, order: "created_at DESC, id DESC"}, p)
}

// MovementFilter narrows the history of a wallet.
type MovementFilter struct {
	Direction exchange.MovementDirection
	Kind      exchange.DepositKind
	Status    exchange.ChainDepositStatus
	Asset     money.Asset
	// CreatedFrom is inclusive and CreatedTo exclusive; zero is open.
	CreatedFrom, CreatedTo time.Time
}

var onSide = map[exchange.MovementDirection]string{
	"":                      `(wallet_id = ? OR from_wallet_id = ?)`,
	exchange.MovementIn:     `(wallet_id = ? AND from_wallet_id IS DISTINCT FROM ?)`,
	exchange.MovementOut:    `(from_wallet_id = ? AND wallet_id IS DISTINCT FROM ?)`,
	exchange.MovementWithin: `(wallet_id = ? AND from_wallet_id = ?)`,
}

const movementColumns = depositColumns + `,
	coalesce((SELECT p.purpose FROM chain_payments p WHERE p.id = payment_id), '') AS purpose, (SELECT p.object_id FROM chain_payments p WHERE p.id = payment_id) AS object_id`

// WalletMovements pages through the movements on a chain into and out of a wallet, newest first, with their number. CodeNotFound for a
// wallet that the view does not see.
func (s *Store) WalletMovements(ctx context.Context, v View, wallet uuid.UUID, f MovementFilter, p Page) ([]exchange.WalletMovement, int, error) {
	if _, err := s.Wallet(ctx, v, wallet); err != nil {
		return nil, 0, err
	}
	var w where
	w.add(onSide[f.Direction], wallet, wallet)
	w.eq("asset", string(f.Asset))
	w.eq("status", string(f.Status))
	w.eq("kind", string(f.Kind))
	w.between("created_at", f.CreatedFrom, f.CreatedTo)
	return readPage[exchange.WalletMovement](ctx, s, "chain deposit", list{columns: movementColumns, from: "chain_deposits", where: w, order: "created_at DESC, id DESC"}, p)
}

const insertDeposit = `
INSERT INTO chain_deposits (id, network, tx_id, event_index, from_address, to_address, asset, amount, wallet_id, from_wallet_id, kind, status,
    payment_id, block, block_id, block_time, created_at, updated_at, other_senders, sender_accounts)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'seen', $12, $13, $14, $15, $16, $16, $17, $18) RETURNING ` + depositColumns

// addDeposit writes a new movement. It starts as seen, even when its block is final.
func (t unitTx) addDeposit(ctx context.Context, d exchange.ChainDeposit) (exchange.ChainDeposit, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return d, err
	}
	var r exchange.ChainDeposit
	err = t.Get(ctx, &r, insertDeposit, id, d.Network, d.TxID, int64(d.Index), d.From, d.To, d.Amount.Asset(), d.Amount.Decimal(), nullID(d.WalletID),
		nullID(d.FromWalletID), d.Kind, nullID(d.PaymentID), blockNumber(d.Block), d.BlockID, nullTime(d.BlockTime), t.s.now(),
		pq.StringArray(notNil(d.Others)), pq.StringArray(notNil(d.Accounts)))
	if err != nil {
		return d, err
	}
	return r, nil
}

const saveDeposit = `
UPDATE chain_deposits SET from_address = $2, to_address = $3, asset = $4, amount = $5, wallet_id = $6, from_wallet_id = $7, kind = $8, status = $9,
    payment_id = $10, exception_id = $11, block = $12, block_id = $13, block_time = $14, updated_at = $15, final_at = $16, other_senders = $19,
    sender_accounts = $20, version = version + 1
WHERE id = $1 AND version = $17 AND status = ANY ($18) RETURNING ` + depositColumns

// saveDeposit stores a block's data for a known movement. A transaction that is included again in another block may
// have another effect there, so everything but its id may change until it is final.
func (t unitTx) saveDeposit(ctx context.Context, before, d exchange.ChainDeposit) (exchange.ChainDeposit, error) {
	from := []exchange.ChainDepositStatus{before.Status}
	if d.Status != before.Status {
		if err := exchange.ChainDepositMachine.Allow(before.Status, d.Status); err != nil {
			return before, err
		}
		from = exchange.ChainDepositMachine.Sources(d.Status)
	}
	var rows []exchange.ChainDeposit
	err := t.All(ctx, &rows, saveDeposit, before.ID, d.From, d.To, d.Amount.Asset(), d.Amount.Decimal(), nullID(d.WalletID), nullID(d.FromWalletID),
		d.Kind, d.Status, nullID(d.PaymentID), nullID(d.ExceptionID), blockNumber(d.Block), d.BlockID, nullTime(d.BlockTime), t.s.now(),
		nullTime(d.FinalAt), before.Version, pq.Array(from), pq.StringArray(notNil(d.Others)), pq.StringArray(notNil(d.Accounts)))
	if err == nil && len(rows) == 0 {
		err = pg.ErrChangedMeanwhile
	}
	if err != nil {
		return before, err
	}
	return rows[0], nil
}

const orphanDeposits = `
UPDATE chain_deposits SET status = 'orphaned', updated_at = $4, version = version + 1
WHERE network = $1 AND status = 'seen' AND block >= $2 AND block <= $3 RETURNING ` + depositColumns

// orphan takes back the movements of a range of blocks that the chain no longer has.
func (t unitTx) orphan(ctx context.Context, n exchange.Network, from uint64, to int64) error {
	var gone []exchange.ChainDeposit
	if err := t.All(ctx, &gone, orphanDeposits, n, blockNumber(from), to, t.s.now()); err != nil || len(gone) == 0 {
		return err
	}
	sc := &scan{t: t, network: n}
	if err := sc.loadEnds(ctx, gone); err != nil {
		return err
	}
	for _, d := range gone {
		if err := sc.publish(ctx, string(exchange.DepositOrphaned), d); err != nil {
			return err
		}
	}
	return nil
}
