package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// ListMerchants pages through the master vendors, newest first, with their number.
func (s *Store) ListMerchants(ctx context.Context, v View, p Page) ([]exchange.User, int, error) {
	var w where
	w.eq("role", string(exchange.RoleVendor))
	w.add(`id <> ?`, exchange.PlatformTreasury) // the house itself
	w.scope(v, "id", "id")
	return readPage[exchange.User](ctx, s, "merchant", list{columns: userColumns, from: "users", where: w, order: "created_at DESC, id DESC"}, p)
}

const readMerchant = `SELECT ` + userColumns + ` FROM users WHERE id = $1 AND role = 'vendor' AND ($2 OR id = $3 OR id = $4) AND id <> platform_treasury()`

const readSubvendors = `SELECT ` + userColumns + ` FROM users WHERE vendor_id = $1 ORDER BY created_at, id`

const readVendorWallets = `SELECT ` + walletColumns + ` FROM wallets WHERE vendor_id = $1 ORDER BY created_at, id`

// Merchant reads a master vendor with its wallets, its subvendors with theirs, and its KES balance.
func (s *Store) Merchant(ctx context.Context, v View, id uuid.UUID) (exchange.Merchant, error) {
	all, owner, vendor := v.args()
	var r exchange.User
	if err := s.db.Get(ctx, &r, readMerchant, id, all, owner, vendor); err != nil {
		return exchange.Merchant{}, translate(err, "merchant")
	}
	m := exchange.Merchant{User: r}
	var subs []exchange.User
	if err := s.db.All(ctx, &subs, readSubvendors, id); err != nil {
		return m, translate(err, "merchant")
	}
	var wallets []exchange.Wallet
	if err := s.db.All(ctx, &wallets, readVendorWallets, id); err != nil {
		return m, translate(err, "merchant")
	}
	byOwner := map[uuid.UUID][]exchange.Wallet{}
	for _, w := range wallets {
		byOwner[w.OwnerID] = append(byOwner[w.OwnerID], w)
	}
	m.Wallets = byOwner[id]
	for _, u := range subs {
		m.Subvendors = append(m.Subvendors, exchange.Subvendor{User: u, Wallets: byOwner[u.ID]})
	}
	var err error
	m.FiatKES, err = s.Account(ctx, exchange.Owned(exchange.AccFiatBalance, id, money.KES))
	return m, err
}
