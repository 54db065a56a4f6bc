package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Where the treasury's wallets can get more from: wallets of several owners, by a payment that is proposed. What is shared with a merchant is
// left out, because its payments are agreed with the merchant.
const listSources = `
SELECT m.network, l.asset, m.id AS wallet_id, m.name, (l.posted - l.held)||' '||l.asset AS available
FROM multisig_accounts m JOIN ledger_accounts l ON l.kind = 'wallet_balance' AND l.owner_id = m.id
WHERE m.status = 'active' AND m.merchant_id IS NULL AND l.asset IN ('USDC', 'USDT') AND l.posted > l.held ORDER BY l.posted - l.held DESC, m.id`

// inventory reads what the treasury wallet of each network has, and where more is.
func inventory(ctx context.Context, q reader) ([]exchange.SwapInventory, error) {
	all, err := readAll[exchange.SwapInventory](ctx, q, "inventory", listSwapInventory)
	if err != nil {
		return nil, err
	}
	sources, err := readAll[exchange.InventorySource](ctx, q, "inventory", listSources)
	for i := range all {
		all[i].Sources = exchange.SourcesOf(sources, all[i].Network, all[i].Asset)
	}
	return all, err
}

const readTreasuryAvailable = `
SELECT w.network, w.address, coalesce(a.posted - a.held, 0) AS available FROM wallets w LEFT JOIN ledger_accounts a ON a.kind = 'wallet_balance' AND a.owner_id = w.id AND a.asset = $2
WHERE w.id = $1 AND w.owner_id IS NULL AND w.purpose = 'treasury'`

// short reports whether a treasury wallet has less available than an amount, and says where more is.
func (t unitTx) short(ctx context.Context, wallet uuid.UUID, m money.Amount) (short bool, source string, err error) {
	room, err := readOne[struct {
		Network   exchange.Network
		Address   string
		Available decimal.Decimal
	}](ctx, t, "wallet", readTreasuryAvailable, wallet, m.Asset())
	if err != nil || !room.Available.LessThan(m.Decimal()) {
		return false, "", err
	}
	all, err := readAll[exchange.InventorySource](ctx, t, "inventory", listSources)
	return true, exchange.SourceText(exchange.SourcesOf(all, room.Network, m.Asset()), room.Address), err
}
