package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Two officers set crypto of the treasury aside, add to it and take back what no order has.
func TestInventoriesTakeTwoOfficers(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), openShop(t)
	one := storetest.PrincipalOf(storetest.User(t, h.Store, exchange.RoleTreasury))
	propose := func(wallet uuid.UUID, m money.Amount) (exchange.ControlChange, error) {
		return h.ProposeInventory(ctx, wallet, m, "to sell", one)
	}
	c, err := propose(h.treasury.ID, usdt("100"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.ConfirmChange(ctx, c.ID, "", one)
	wantFault(t, err, exchange.CodeForbidden)
	h.wants(t, "300", "0", "0")
	two := storetest.PrincipalOf(storetest.User(t, h.Store, exchange.RoleAdmin))
	twice(t, func(a, b exchange.ControlChange) bool { return a.ID == b.ID && a.DecidedAt.Equal(b.DecidedAt) }, func() (exchange.ControlChange, error) {
		return h.ConfirmChange(ctx, c.ID, "", two)
	})
	h.wants(t, "400", "0", "0")
	agree := storetest.Agreed(t, h.Store)
	h.bought(t, usdt("150"))
	if err := agree(propose(h.treasury.ID, usdt("200").Neg())); err != nil {
		t.Fatal(err)
	}
	h.wants(t, "50", "150", "0")
	wantBalance(t, h.Store, h.coffer(), "1000", "200")
	wantFault(t, agree(propose(h.treasury.ID, usdt("50.000001").Neg())), exchange.CodeInsufficientFunds) // the rest is an order's
	wantFault(t, agree(propose(h.treasury.ID, usdt("800.000001"))), exchange.CodeInsufficientFunds)      // the wallet has no more
	wantFault(t, agree(propose(h.treasury.ID, money.Must(money.USDC, "1").Neg())), exchange.CodeInsufficientFunds)
	h.wants(t, "50", "150", "0")
	for name, wallet := range map[string]uuid.UUID{
		"a customer's": h.wallet.ID, "of gas": storetest.GasWallet(t, h.Store, exchange.Tron).ID, "of the pool": storetest.EscrowPool(t, h.Store, exchange.Tron, 1)[0].ID, "none": storetest.NewID(t),
	} {
		if _, err := propose(wallet, usdt("1")); blames(err) != "/wallet_id not_found" {
			t.Errorf("a wallet %s: %v", name, err)
		}
	}
	if _, err := propose(h.treasury.ID, usdt("0")); blames(err) != "/amount out_of_range" {
		t.Errorf("nothing: %v", err)
	}
	wantBooks(t, h.Store)
}

// No process alone makes an inventory, adds to one, or lets anything leave one but for an order.
func TestInventoriesCantBeInvented(t *testing.T) {
	t.Parallel()
	h := openShop(t)
	o := h.bought(t, usdt("10"))
	rich := storetest.TreasuryWallet(t, h.Store, exchange.Tron)
	storetest.Deposit(t, h.Store, rich.ID, usdt("500"))
	all, err := h.Inventories(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := all[0]
	var account string
	if err := storetest.Owner(t, h.Store).QueryRowContext(t.Context(), `SELECT id FROM ledger_accounts WHERE code = $1`, h.coffer().Code()).Scan(&account); err != nil {
		t.Fatal(err)
	}
	place := func(object, parent, amount string) string {
		return `INSERT INTO holds (id, key, account_id, parent_id, placed, amount, status, object_type, object_id, created_at, updated_at)
			VALUES (gen_random_uuid(), 'mine' || gen_random_uuid(), ` + account + `, ` + parent + `, ` + amount + `, ` + amount + `, 'held', '` + object + `', gen_random_uuid(), now(), now())`
	}
	parent := `'` + i.HoldID.String() + `'`
	for name, query := range map[string]string{
		"an inventory": `INSERT INTO inventories (id, wallet_id, network, asset, hold_id, created_at)
			VALUES (gen_random_uuid(), '` + rich.ID.String() + `', 'tron', 'USDT', '` + o.HoldID.String() + `', now())`,
		"a hold of none":            place("inventory", "NULL", "5"),
		"more of it":                `UPDATE holds SET amount = amount + 1 WHERE id = ` + parent,
		"less of it":                `UPDATE holds SET amount = amount - 1 WHERE id = ` + parent,
		"its end":                   `UPDATE holds SET status = 'released' WHERE id = ` + parent,
		"its use":                   `UPDATE holds SET status = 'captured' WHERE id = ` + parent,
		"a part that it never had":  place("order", parent, "5"),
		"a part for no order":       `WITH p AS (UPDATE holds SET amount = amount - 5 WHERE id = ` + parent + `) ` + place("order", parent, "5"),
		"a part that goes back":     `WITH p AS (UPDATE holds SET amount = amount + 10 WHERE id = ` + parent + `) UPDATE holds SET status = 'released' WHERE id = '` + o.HoldID.String() + `'`,
		"a part of a part":          `WITH p AS (UPDATE holds SET amount = amount + 9 WHERE id = ` + parent + `) UPDATE holds SET amount = 1 WHERE id = '` + o.HoldID.String() + `'`,
		"a part without delivery":   `UPDATE holds SET status = 'captured' WHERE id = '` + o.HoldID.String() + `'`,
		"a part that comes back":    `UPDATE holds SET status = 'released' WHERE id = '` + o.HoldID.String() + `'`,
		"a smaller part":            `UPDATE holds SET amount = 1 WHERE id = '` + o.HoldID.String() + `'`,
		"less taken":                `UPDATE inventories SET taken = 0`,
		"another wallet":            `UPDATE inventories SET wallet_id = '` + rich.ID.String() + `'`,
		"another hold":              `UPDATE inventories SET hold_id = '` + o.HoldID.String() + `'`,
		"no inventory":              `DELETE FROM inventories`,
		"a hold of another's":       `UPDATE holds SET parent_id = NULL WHERE id = '` + o.HoldID.String() + `'`,
		"a hold for another object": `UPDATE holds SET object_type = 'inventory' WHERE id = '` + o.HoldID.String() + `'`,
	} {
		for _, role := range append(store.Roles(), "") {
			db := storetest.Owner(t, h.Store)
			var err error
			if role == "" {
				_, err = db.ExecContext(t.Context(), query)
			} else {
				_, err = storetest.As(t, h.Store, role).ExecContext(t.Context(), query)
			}
			if state := sqlState(err); !strings.HasPrefix(state, "KV") && state != "42501" && state != "23505" {
				t.Errorf("%s by %q: %v", name, role, err)
			}
		}
	}
	h.wants(t, "290", "10", "0")
	wantBooks(t, h.Store)
}

// The database opens no purchase from the house but by its owner's quote, at its price, out of the inventory.
func TestPurchasesFromTheHouseAreGuarded(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), openShop(t)
	o := h.bought(t, usdt("10"))
	other := storetest.User(t, h.Store, exchange.RoleCustomer)
	theirs, mine := h.promised(t, other, usdt("10")), h.promised(t, h.customer, usdt("10"))
	for name, c := range map[string]struct {
		change string
		want   string
	}{
		"another's quote":         {`"quote_id": "` + theirs.ID.String() + `"`, "another owner or price"},
		"the same quote again":    {``, "orders_quote_key"},
		"no quote":                {`"quote_id": null`, "a quote, opener or source"},
		"another price":           {`"quote_id": "` + mine.ID.String() + `", "fiat_amount": 1299, "rounding_amount": -1`, "an address or a price"},
		"another rate":            {`"quote_id": "` + mine.ID.String() + `", "rate": 129, "vendor_amount": 1290, "rounding_amount": 10`, "another owner or price"},
		"a fee of none":           {`"quote_id": "` + mine.ID.String() + `", "fee_amount": 5, "vendor_amount": 1295`, "another fee"},
		"less for the treasury":   {`"quote_id": "` + mine.ID.String() + `", "vendor_amount": 1290, "rounding_amount": 10`, "another part"},
		"another vendor":          {`"quote_id": "` + mine.ID.String() + `", "vendor_id": "` + other.ID.String() + `"`, "a vendor beside the house"},
		"a price for a day":       {`"quote_id": "` + mine.ID.String() + `", "expires_at": "` + time.Now().Add(24*time.Hour).Format(time.RFC3339) + `"`, "holds its price for too long"},
		"a quote that stays free": {`"quote_id": "` + mine.ID.String() + `"`, "is not consumed by it in time"},
	} {
		id := storetest.NewID(t)
		change := `{"id": "` + id.String() + `", "hold_id": null, "payment_reference": "KVK000000001", "intent_id": "` + storetest.CopyIntent(t, h.Store, "orders", o.ID, id).String() + `"`
		if c.change != "" {
			change += ", " + c.change
		}
		tx, err := storetest.Owner(t, h.Store).BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{`ALTER TABLE orders DISABLE TRIGGER orders_wanted`, `ALTER TABLE orders DISABLE TRIGGER orders_from_inventory`} {
			if _, err := tx.ExecContext(ctx, query); err != nil {
				t.Fatal(err)
			}
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO orders SELECT (jsonb_populate_record(o, $2::jsonb)).* FROM orders o WHERE id = $1`, o.ID, change+"}")
		if err == nil {
			err = tx.Commit()
		}
		_ = tx.Rollback()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	// Consumed by an order that does not exist.
	_, err := storetest.Owner(t, h.Store).ExecContext(ctx, `UPDATE fx_quotes SET status = 'consumed', consumed_at = now(), object_type = 'order', object_id = $2, version = version + 1 WHERE id = $1`, mine.ID, storetest.NewID(t))
	if sqlState(err) != "KV002" {
		t.Errorf("a quote that no order uses: %v", err)
	}
	h.wants(t, "290", "10", "0")
}
