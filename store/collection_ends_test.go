package store_test

import (
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// The signer acts on rows of chain_payments. The database refuses any that does not match its object.
func TestDatabaseGuardsPaymentEnds(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	gas := storetest.GasWallet(t, s, exchange.Tron)
	_, p := paid(t, s, m)
	const copyOf = `INSERT INTO chain_payments (id, purpose, object_id, n, network, asset, amount, wallet_id, from_address, to_address, fee_wallet_id,
		fee_payer, hold_id, intent_hash, status, approved_by, created_at, updated_at)
	SELECT '` // the id, and after it the rest with one thing changed
	insert := func(row string) error {
		_, err := storetest.Owner(t, s).ExecContext(t.Context(), copyOf+storetest.NewID(t).String()+`', `+row+
			`, repeat('0', 64), 'approved', 'test', now(), now() FROM chain_payments p JOIN orders o ON o.id = p.object_id WHERE p.id = '`+p.ID.String()+`'`)
		return err
	}
	top := func(asset, wallet, from, to string) string {
		return `'gas', p.id, 1, 'tron', '` + asset + `', 5, '` + wallet + `', '` + from + `', ` + to + `, NULL::uuid, '', NULL::uuid`
	}
	thief := "'Tthief00000000000000000000000000000'"
	for name, row := range map[string]string{
		"gas to somebody else":              top("TRX", gas.ID.String(), gas.Address, thief),
		"tokens as gas":                     top("USDT", gas.ID.String(), gas.Address, "p.from_address"),
		"gas out of a customer's wallet":    top("TRX", m.CustomerWallet.ID.String(), m.CustomerWallet.Address, "p.from_address"),
		"gas from another address":          top("TRX", gas.ID.String(), m.CustomerWallet.Address, "p.from_address"),
		"an order's money to somebody else": `'order', o.id, 1, 'tron', 'USDT', o.crypto_amount, p.wallet_id, p.from_address, ` + thief + `, NULL::uuid, '', p.hold_id`,
		"more than an order's money":        `'order', o.id, 1, 'tron', 'USDT', o.crypto_amount + 1, p.wallet_id, p.from_address, p.to_address, NULL::uuid, '', p.hold_id`,
		"for an order that does not exist":  `'order', p.id, 1, 'tron', 'USDT', o.crypto_amount, p.wallet_id, p.from_address, p.to_address, NULL::uuid, '', p.hold_id`,
		"at a customer's expense": `'order', o.id, 1, 'tron', 'USDT', o.crypto_amount, p.wallet_id, p.from_address, p.to_address, '` +
			m.CustomerWallet.ID.String() + `'::uuid, '` + m.CustomerWallet.Address + `', p.hold_id`,
	} {
		if err := insert(row); err == nil || !strings.Contains(err.Error(), "chain payment ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := insert(top("TRX", gas.ID.String(), gas.Address, "p.from_address")); err != nil {
		t.Errorf("gas as it should be: %v", err)
	}
}
