package store_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// attempt is a statement under the service's own rights, and the database's refusal. Capitalised words are replaced by
// the ids of the case.
type attempt struct{ name, code, query string }

// tries runs each statement in a transaction of its own up to its commit, where deferred guards run.
func tries(t *testing.T, db *sql.DB, ids map[string]string, all ...attempt) {
	t.Helper()
	var pairs []string
	for name, id := range ids {
		pairs = append(pairs, name, id)
	}
	named := strings.NewReplacer(pairs...) // from left to right, so that a name within another one is none
	for _, a := range all {
		query := named.Replace(a.query)
		if err := commit(t.Context(), db, query); sqlState(err) != a.code {
			t.Errorf("%s: %v, want %s", a.name, err, a.code)
		}
	}
}

func commit(ctx context.Context, db *sql.DB, query string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, query); err != nil {
		_ = tx.Rollback() // the statement's error is the one to report
		return err
	}
	return tx.Commit()
}

// service is a connection with the service's own rights.
func (p *pool) service(t *testing.T) *sql.DB {
	t.Helper()
	return storetest.DB(t, storetest.WithRole(t, p.url))
}

// The database enforces by itself which order gets an address, and when it is returned.
func TestEscrowIsGuardedByTheDatabase(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	open, over, done := p.market.Sale(t, p.store, "10"), p.market.Sale(t, p.store, "10"), p.market.Sale(t, p.store, "10")
	p.cancel(t, over)
	p.cancel(t, done)
	purchase := storetest.NewMarket(t, p.store).Order(t, p.store, "10")
	seller := p.addresses(t, exchange.EscrowFree)[0]
	ids := map[string]string{
		"OPEN_ORDER": open.ID.String(), "OVER_ORDER": over.ID.String(), "PURCHASE": purchase.ID.String(),
		"LENT": p.escrowOf(t, open).ID.String(), "RESTING": p.escrowOf(t, over).ID.String(), "FREE": seller.ID.String(),
		"OUTSIDER": p.market.VendorWallet.ID.String(),
	}
	const lease = `INSERT INTO escrow_leases (id, wallet_id, order_id, leased_at) VALUES (gen_random_uuid(), `
	now := `'` + p.clock.now().UTC().Format(time.RFC3339) + `'`
	wait := `INSERT INTO deposit_waits (id, wallet_id, workflow_id, created_at) VALUES (gen_random_uuid(), 'FREE', 'x', now()); `
	tries(t, p.service(t), ids, []attempt{
		{"lend an address twice", "KV001", lease + `'LENT', 'PURCHASE', ` + now + `)`},
		{"lend an order two addresses", "23505", lease + `'FREE', 'OPEN_ORDER', ` + now + `)`},
		{"lend an address that rests", "KV001", lease + `'RESTING', 'PURCHASE', ` + now + `)`},
		{"lend a wallet that is none of the pool", "KV001", lease + `'OUTSIDER', 'PURCHASE', ` + now + `)`},
		{"lend an address to a purchase", "KV002", wait + lease + `'FREE', 'PURCHASE', ` + now + `)`},
		{"lend an address to no order", "23503", wait + lease + `'FREE', gen_random_uuid(), ` + now + `)`},
		{"begin a lease that is over", "KV001", `INSERT INTO escrow_leases (id, wallet_id, order_id, leased_at, ended_at, rest_until)
			VALUES (gen_random_uuid(), 'FREE', 'PURCHASE', ` + now + `, ` + now + `, now() + interval '1 day')`},
		{"end the lease of a pending order", "KV001", `UPDATE escrow_leases SET ended_at = leased_at WHERE order_id = 'OPEN_ORDER'`},
		{"open a lease again", "KV002", `UPDATE escrow_leases SET ended_at = NULL WHERE order_id = 'OVER_ORDER'`},
		{"end a lease again", "KV002", `UPDATE escrow_leases SET ended_at = now() WHERE order_id = 'OVER_ORDER'`},
		{"shorten a rest", "42501", `UPDATE escrow_leases SET rest_until = now() WHERE order_id = 'OVER_ORDER'`},
		{"shorten a rest at the address", "42501", `UPDATE escrow_addresses SET rest_until = NULL WHERE id = 'RESTING'`},
		{"forget a lease", "42501", `DELETE FROM escrow_leases`},
		{"free an address that is lent", "KV001", `UPDATE escrow_addresses SET status = 'free' WHERE id = 'LENT'`},
		{"rest an address that is lent", "KV001", `UPDATE escrow_addresses SET status = 'resting' WHERE id = 'LENT'`},
		{"disable an address that is lent", "KV001", `UPDATE escrow_addresses SET status = 'disabled', reason = 'x' WHERE id = 'LENT'`},
		{"free an address that rests", "KV001", `UPDATE escrow_addresses SET status = 'free', updated_at = ` + now + ` WHERE id = 'RESTING'`},
		{"call an address lent", "KV001", `UPDATE escrow_addresses SET status = 'leased' WHERE id = 'FREE'`},
		{"disable without a reason", "23514", `UPDATE escrow_addresses SET status = 'disabled' WHERE id = 'FREE'`},
		{"add an address", "42501", `INSERT INTO escrow_addresses (id, network, status, created_at, updated_at) VALUES ('OUTSIDER', 'tron', 'free', now(), now())`},
		{"make a cold address", "KV002", `UPDATE wallets SET type = 'cold' WHERE id = 'FREE'`},
		{"rest for a minute", "KV006", `UPDATE escrow_policy SET rest_seconds = 60`},
		{"rest for a quarter", "23514", `UPDATE escrow_policy SET rest_seconds = 7776001`},
		{"keep more than there may be", "23514", `UPDATE escrow_policy SET keep_free = 501`},
		{"forget a policy", "42501", `DELETE FROM escrow_policy`},
		{"show another address", "KV002", `UPDATE orders SET escrow_address = 'Tanother00000000000000000000000000' WHERE id = 'OPEN_ORDER'`},
		{"pay out without crypto", "KV002", `UPDATE orders SET status = 'confirming' WHERE id = 'OPEN_ORDER';
			UPDATE orders SET status = 'processing' WHERE id = 'OPEN_ORDER'`},
	}...)
	p.clock.advance(8 * 24 * time.Hour)
	if _, err := p.store.EscrowDemand(t.Context()); err != nil {
		t.Fatal(err)
	}
	tries(t, p.service(t), ids, attempt{"lend an address in the middle of its rest, by a time in the past", "KV001", lease + `'RESTING', 'PURCHASE', ` + now + `)`})
	wantBooks(t, p.store)
}

// An order is stored with exactly the address that it borrows.
func TestSalesShowTheirOwnAddress(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	o := p.market.Sale(t, p.store, "10")
	free := p.addresses(t, exchange.EscrowFree)
	const copied = `INSERT INTO holds SELECT (jsonb_populate_record(h, jsonb_build_object('id', 'NEW_HOLD'::uuid, 'key', 'copied', 'object_id', 'NEW_ORDER'::uuid))).*
			FROM holds h WHERE id = (SELECT hold_id FROM orders WHERE id = 'SOLD');
		INSERT INTO orders SELECT (jsonb_populate_record(o, jsonb_build_object('id', 'NEW_ORDER'::uuid, 'intent_id', 'NEW_INTENT'::uuid, 'hold_id', 'NEW_HOLD'::uuid, 'wallet_address', 'SHOWN'::text,
			'escrow_address', 'SHOWN'::text, 'payment_reference', 'KVK000000001'))).* FROM orders o WHERE id = 'SOLD';`
	const lent = `INSERT INTO deposit_waits (id, wallet_id, workflow_id, created_at) VALUES (gen_random_uuid(), 'BORROWED', 'x', now());
		INSERT INTO escrow_leases (id, wallet_id, order_id, leased_at) VALUES (gen_random_uuid(), 'BORROWED', 'NEW_ORDER', now());`
	ids := func(shown string) map[string]string {
		id := uuid.New()
		return map[string]string{
			"SOLD": o.ID.String(), "NEW_ORDER": id.String(), "NEW_INTENT": storetest.CopyIntent(t, p.store, "orders", o.ID, id).String(), "NEW_HOLD": uuid.NewString(), "BORROWED": free[0].ID.String(), "SHOWN": shown,
		}
	}
	db := p.service(t)
	tries(t, db, ids(free[1].Address), attempt{"show somebody else's address", "KV002", copied + lent})
	tries(t, db, ids(free[0].Address), attempt{"show an address without borrowing it", "KV002", copied})
	tries(t, db, ids(p.market.VendorWallet.Address), attempt{"show the vendor's wallet", "KV002", copied + lent})
	tries(t, db, ids(free[0].Address), attempt{"show its own", "", copied + lent})
}

// Only a final movement to an order's own address, in full, once, and held, counts for the order.
func TestClaimsAreGuardedByTheDatabase(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	o, other := p.market.Sale(t, p.store, "10"), p.market.Sale(t, p.store, "10")
	p.final(t, 0, moveOf("final", stranger, o.EscrowAddress, usdt("10")), moveOf("usdc", stranger, o.EscrowAddress, money.Must(money.USDC, "10")),
		moveOf("theirs", stranger, other.EscrowAddress, usdt("10")), moveOf("less", stranger, o.EscrowAddress, usdt("9.5")))
	seenBlock(t, p.store, p.at(0, moveOf("seen", stranger, o.EscrowAddress, usdt("10"))))
	of := func(tx string) string { return deposits(t, p.store, tx)[0].ID.String() }
	ids := map[string]string{
		"MINE": o.ID.String(), "WALLET": p.escrowOf(t, o).ID.String(), "HOLD_ID": uuid.NewString(), "FINAL": of("final"), "SEEN": of("seen"), "USDC_MOVE": of("usdc"),
		"THEIRS": of("theirs"), "LESS": of("less"), "THEIR_WALLET": p.escrowOf(t, other).ID.String(),
	}
	const into = `INSERT INTO escrow_claims (id, order_id, deposit_id, wallet_id, kind, asset, amount, hold_id, created_at) VALUES (gen_random_uuid(), 'MINE', `
	const held = `INSERT INTO ledger_accounts (code, kind, owner_id, asset, debit_normal, may_go_below) VALUES ('wallet_balance:WALLET:USDT', 'wallet_balance', 'WALLET', 'USDT', false, false);
		INSERT INTO ledger_entries (key, digest, kind, object_type, at) VALUES ('taken', '\x00112233445566778899aabbccddeeff', 'x', 'order', now());
		INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT e.id, a.id, v.amount FROM ledger_entries e, ledger_accounts a, (VALUES ('suspense:house:USDT', 10), ('wallet_balance:WALLET:USDT', -10)) v (code, amount)
			WHERE e.key = 'taken' AND a.code = v.code;
		INSERT INTO holds (id, key, account_id, placed, amount, status, object_type, object_id, created_at, updated_at)
			SELECT 'HOLD_ID', 'order:MINE:crypto', id, PLACED, PLACED, 'held', 'order', 'MINE', now(), now() FROM ledger_accounts WHERE code = 'wallet_balance:WALLET:USDT';`
	whole, part := strings.ReplaceAll(held, "PLACED", "10"), strings.ReplaceAll(held, "PLACED", "9")
	tries(t, p.service(t), ids, []attempt{
		{"claim what is not final", "KV002", into + `'SEEN', 'WALLET', 'exact', 'USDT', 10, 'HOLD_ID', now())`},
		{"claim what came to another order", "KV002", into + `'THEIRS', 'WALLET', 'exact', 'USDT', 10, 'HOLD_ID', now())`},
		{"claim at another order's address", "KV002", into + `'THEIRS', 'THEIR_WALLET', 'exact', 'USDT', 10, 'HOLD_ID', now())`},
		{"claim more than came", "KV002", into + `'FINAL', 'WALLET', 'exact', 'USDT', 11, 'HOLD_ID', now())`},
		{"claim another amount as what was asked for", "KV002", into + `'LESS', 'WALLET', 'exact', 'USDT', 9.5, 'HOLD_ID', now())`},
		{"claim another amount without its seller", "KV002", into + `'LESS', 'WALLET', 'repriced', 'USDT', 9.5, 'HOLD_ID', (SELECT created_at FROM orders WHERE id = 'MINE'))`},
		{"end the time of an order", "KV002", `UPDATE orders SET expires_at = now() - interval '1 second' WHERE id = 'MINE'`},
		{"claim another coin", "KV002", into + `'USDC_MOVE', 'WALLET', 'exact', 'USDC', 10, 'HOLD_ID', now())`},
		{"claim nothing", "KV002", into + `NULL, 'WALLET', 'exact', 'USDT', 10, 'HOLD_ID', now())`},
		{"claim without a hold", "23514", into + `'FINAL', 'WALLET', 'exact', 'USDT', 10, NULL, now())`},
		{"claim with a hold that is not there", "23503", into + `'FINAL', 'WALLET', 'exact', 'USDT', 10, 'HOLD_ID', now())`},
		{"hold less than was claimed", "KV002", part + into + `'FINAL', 'WALLET', 'exact', 'USDT', 10, 'HOLD_ID', now())`},
		{"except without an exception", "23514", into + `'USDC_MOVE', 'WALLET', 'wrong_asset', 'USDC', 10, NULL, now())`},
		{"stop to wait with money there", "KV001", `UPDATE deposit_waits SET ended_at = now() WHERE wallet_id = 'WALLET'`},
		{"claim all of it, and hold it", "", whole + into + `'FINAL', 'WALLET', 'exact', 'USDT', 10, 'HOLD_ID', now())`},
		{"claim it again", "23505", into + `'FINAL', 'WALLET', 'exact', 'USDT', 10, gen_random_uuid(), now())`},
		{"give back more than came", "23514", `UPDATE escrow_claims SET refunded = 11`},
		{"give back what was taken", "23514", `UPDATE escrow_claims SET refunded = 6, taken = 6`},
		{"claim another amount", "42501", `UPDATE escrow_claims SET amount = 9`},
		{"forget a claim", "42501", `DELETE FROM escrow_claims`},
		{"pay out another amount", "KV002", `UPDATE orders SET status = 'confirming' WHERE id = 'MINE'; UPDATE orders SET status = 'processing', crypto_amount = 20 WHERE id = 'MINE'`},
	}...)
	wantBooks(t, p.store)
}

// An address is not returned while its order's claimed crypto is on it.
func TestLeaseLastsUntilTheCryptoHasLeft(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	o := p.market.Sale(t, p.store, "10")
	p.final(t, 0, moveOf("final", stranger, o.EscrowAddress, usdt("10")))
	ids := map[string]string{"MINE": o.ID.String(), "WALLET": p.escrowOf(t, o).ID.String(), "CAME": deposits(t, p.store, "final")[0].ID.String()}
	hold := uuid.NewString()
	const end = `UPDATE deposit_waits SET ended_at = now() WHERE wallet_id = 'WALLET'; UPDATE escrow_leases SET ended_at = leased_at WHERE order_id = 'MINE';`
	storetest.Exec(t, p.store, strings.NewReplacer("MINE", ids["MINE"], "WALLET", ids["WALLET"], "CAME", ids["CAME"], "HOLD_ID", hold).Replace(`
		INSERT INTO ledger_accounts (code, kind, owner_id, asset, debit_normal, may_go_below) VALUES ('wallet_balance:WALLET:USDT', 'wallet_balance', 'WALLET', 'USDT', false, false);
		INSERT INTO ledger_entries (key, digest, kind, object_type, at) VALUES ('taken', '\x00112233445566778899aabbccddeeff', 'x', 'order', now());
		INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT e.id, a.id, v.amount FROM ledger_entries e, ledger_accounts a, (VALUES ('suspense:house:USDT', 10), ('wallet_balance:WALLET:USDT', -10)) v (code, amount)
			WHERE e.key = 'taken' AND a.code = v.code;
		INSERT INTO holds (id, key, account_id, placed, amount, status, object_type, object_id, created_at, updated_at)
			SELECT 'HOLD_ID', 'order:MINE:crypto', id, 10, 10, 'held', 'order', 'MINE', now(), now() FROM ledger_accounts WHERE code = 'wallet_balance:WALLET:USDT';
		INSERT INTO escrow_claims (id, order_id, deposit_id, wallet_id, kind, asset, amount, hold_id, created_at) VALUES (gen_random_uuid(), 'MINE', 'CAME', 'WALLET', 'exact', 'USDT', 10, 'HOLD_ID', now());
		ALTER TABLE orders DISABLE TRIGGER USER;
		UPDATE orders SET status = 'failed' WHERE id = 'MINE';
		ALTER TABLE orders ENABLE TRIGGER USER;`))
	db := p.service(t)
	tries(t, db, ids, attempt{"end a lease with crypto on it", "KV001", end})
	_, err := p.store.ReleaseEscrow(t.Context(), o.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	// Releasing a hold without a movement leaves the crypto on the address.
	tries(t, db, ids, attempt{"end a lease with crypto that is not held", "KV001", `UPDATE holds SET status = 'released' WHERE key = 'order:MINE:crypto'; ` + end})
	storetest.Exec(t, p.store, strings.NewReplacer("WALLET", ids["WALLET"], "MINE", ids["MINE"]).Replace(`
		UPDATE holds SET status = 'captured' WHERE key = 'order:MINE:crypto';
		INSERT INTO ledger_entries (key, digest, kind, object_type, at) VALUES ('left', '\x00112233445566778899aabbccddeeff', 'x', 'order', now());
		INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT e.id, a.id, v.amount FROM ledger_entries e, ledger_accounts a, (VALUES ('custody:WALLET:USDT', -10), ('wallet_balance:WALLET:USDT', 10)) v (code, amount)
			WHERE e.key = 'left' AND a.code = v.code;`))
	if _, err := p.store.ReleaseEscrow(t.Context(), o.ID); err != nil {
		t.Fatal(err)
	}
	if a := p.escrowOf(t, o); a.Status != exchange.EscrowResting || a.Trouble != exchange.EscrowNoTrouble {
		t.Errorf("the address is %+v", a)
	}
}
