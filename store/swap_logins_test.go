package store_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// together runs statements in one transaction with a login of a process.
func (b *swapDesk) together(t *testing.T, role store.Role, statements ...string) error {
	t.Helper()
	tx, err := storetest.As(t, b.s, role).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, s := range statements {
		if _, err := tx.ExecContext(t.Context(), s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// loginsOfSwaps are the logins of processes that write rows of money.
var loginsOfSwaps = []store.Role{store.RoleAPI, store.RoleFlows, store.RoleMomo, store.RoleChain, store.RoleSigner, store.RoleWebhooks, store.RoleCodec}

// refused reports whether the database refused a statement by a right or a rule of ours.
func refused(err error) bool {
	state := sqlState(err)
	return state == "42501" || strings.HasPrefix(state, "KV") || state == "23505" || state == "23514"
}

// every tries statements with every login, each of which must be refused.
func (b *swapDesk) every(t *testing.T, what string, statements ...string) {
	t.Helper()
	for _, role := range loginsOfSwaps {
		if err := b.together(t, role, statements...); !refused(err) {
			t.Errorf("%s: %s: %v", role, what, err)
		}
	}
}

func moves(id uuid.UUID, more string) string {
	return `UPDATE swaps SET version = version + 1, updated_at = now(), ` + more + ` WHERE id = ` + quotedID(id)
}

// No login completes a swap before both legs are final, or says that a leg is.
func TestTheDatabaseRefusesSwapsWithoutBothLegs(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	fresh, collected := b.open(t, usdt("10")), b.collected(t, usdt("10"))
	paying, _ := b.paying(t, usdt("10"))
	review, _ := b.paying(t, usdt("10"))
	if _, err := b.s.StallSwap(t.Context(), review.ID); err != nil {
		t.Fatal(err)
	}
	for _, id := range []uuid.UUID{fresh.ID, collected.ID, paying.ID, review.ID} {
		b.every(t, "completes it", moves(id, `status = 'completed', completed_at = now()`))
		b.every(t, "calls it synchronised", moves(id, `status = 'syncing'`), moves(id, `status = 'completed', completed_at = now()`))
	}
	differs := b.syncing(t, usdt("10"))
	if _, err := b.s.SyncSwap(t.Context(), differs.ID, b.read("4.5")); err != nil {
		t.Fatal(err)
	}
	same := b.syncing(t, usdt("10"))
	for _, role := range loginsOfSwaps {
		if role == store.RoleChain { // its worker compares
			continue
		}
		err := b.together(t, role, moves(differs.ID, `status = 'syncing', difference = NULL`), moves(differs.ID, `status = 'completed', completed_at = now()`))
		if alone := b.together(t, role, moves(same.ID, `status = 'completed', completed_at = now()`)); !refused(err) || !refused(alone) {
			t.Errorf("%s: completes what was not compared: %v, %v", role, err, alone)
		}
	}
	b.every(t, "calls it collected", moves(fresh.ID, `status = 'collecting'`))
	b.every(t, "calls it collected", moves(fresh.ID, `status = 'collecting'`), moves(fresh.ID, `status = 'collected', collected_at = now(), return_hold_id = hold_id`))
	b.every(t, "pays it out", moves(collected.ID, `status = 'paying_out'`))
	b.every(t, "frees what was collected", `UPDATE holds SET status = 'released' WHERE id = `+quotedID(collected.ReturnHoldID))
	b.every(t, "frees what is reserved", `UPDATE holds SET status = 'released' WHERE id = `+quotedID(collected.ReservationID))
	b.every(t, "uses what is given", `UPDATE holds SET status = 'captured' WHERE id = `+quotedID(fresh.HoldID))
	b.every(t, "frees half", `UPDATE holds SET amount = amount / 2 WHERE id = `+quotedID(fresh.ReservationID))
	b.every(t, "changes what is got", moves(fresh.ID, `to_amount = to_amount + 1`))
	b.every(t, "takes it away", `DELETE FROM swaps WHERE id = `+quotedID(fresh.ID))
}

const copyLeg = `INSERT INTO chain_payments (id, purpose, object_id, n, network, asset, amount, wallet_id, from_address, to_address, fee_wallet_id, fee_payer, hold_id, intent_hash, status,
	approved_by, created_at, updated_at) SELECT gen_random_uuid(), `

// refundOf approves a refund of a swap beside the flow.
func refundOf(o exchange.Swap) string {
	return copyLeg + `'swap_refund', id, 1, network, from_asset, from_amount, house_wallet_id, ` + quoted(o.HouseAddress) + `, ` + quoted(o.Address) +
		`, NULL, '', return_hold_id, 'x', 'approved', 'policy', now(), now() FROM swaps WHERE id = ` + quotedID(o.ID)
}

// payoutOf approves another payout.
func payoutOf(o exchange.Swap) string {
	return copyLeg + `'swap_payout', id, 2, network, to_asset, to_amount, house_wallet_id, ` + quoted(o.HouseAddress) + `, ` + quoted(o.Address) +
		`, NULL, '', reservation_id, 'x', 'approved', 'policy', now(), now() FROM swaps WHERE id = ` + quotedID(o.ID)
}

func quoted(s string) string { return `'` + s + `'` }

// No login refunds a swap that is paid out, or pays out one that is refunded.
func TestTheDatabaseRefusesToPayAndRefund(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	paid, waiting := b.syncing(t, usdt("10")), b.collected(t, usdt("10"))
	paying, _ := b.paying(t, usdt("10"))
	back := b.collected(t, usdt("10"))
	b.waits(t, back, "31")
	b.waits(t, paying, "31")
	b.waits(t, paid, "31")
	refund, err := b.s.RefundSwap(t.Context(), back.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.every(t, "refunds before its time", moves(waiting.ID, `status = 'refunding'`))
	b.every(t, "refunds what is being paid out", moves(paying.ID, `status = 'refunding'`))
	b.every(t, "refunds beside the payout", refundOf(paying))
	b.every(t, "refunds what is paid", refundOf(paid))
	b.every(t, "refunds what is paid", moves(paid.ID, `status = 'needs_review'`), moves(paid.ID, `status = 'refunding'`), refundOf(paid))
	b.every(t, "pays what goes back", payoutOf(back))
	b.every(t, "pays twice", payoutOf(paying))
	b.every(t, "pays before it is collected", payoutOf(b.open(t, usdt("10"))))
	b.final(t, sign(t, b.s, b.payment(t, refund.PaymentID)))
	b.every(t, "pays what went back", payoutOf(back))
	b.every(t, "refunds without two officers", moves(paying.ID, `status = 'needs_review'`), moves(paying.ID, `status = 'refunding'`))
}

// insertOf opens a swap at a quote beside the flow, with an intent of its own and holds of given amounts.
func (b *swapDesk) insertOf(t *testing.T, q exchange.SwapQuote, expires string) []string {
	t.Helper()
	id := storetest.NewID(t)
	a, err := storetest.Ask(t.Context(), b.s, exchange.IntendSwap, id, id, exchange.SwapRequest{QuoteID: q.ID}.Terms(), b.who)
	if err != nil {
		t.Fatal(err)
	}
	hold := func(hold uuid.UUID, wallet exchange.Wallet, asset, amount string) string {
		return `INSERT INTO holds (id, key, account_id, placed, amount, status, object_type, object_id, created_at, updated_at) SELECT ` + quotedID(hold) + `, ` + quotedID(hold) +
			`, id, ` + amount + `, ` + amount + `, 'held', 'swap', ` + quotedID(id) + `, now(), now() FROM ledger_accounts WHERE code = 'wallet_balance:` + wallet.ID.String() + `:` + asset + `'`
	}
	given, reserved := storetest.NewID(t), storetest.NewID(t)
	return []string{
		`UPDATE intents SET used_at = now(), used_by = 'swap:' || object_id WHERE id = ` + quotedID(a.IntentID),
		`INSERT INTO swaps (id, intent_id, quote_id, requested_by, owner_id, wallet_id, house_wallet_id, network, from_asset, from_amount, to_asset, to_amount, fee, rate, value, digest, status,
			status_detail, hold_id, reservation_id, created_at, expires_at, updated_at) SELECT ` + quotedID(id) + `, ` + quotedID(a.IntentID) + `, id, asked_by, asked_by, wallet_id, ` +
			quotedID(b.treasury.ID) + `, network, from_asset, from_amount, to_asset, to_amount, fee, rate, from_amount * 1000, repeat('0', 64), 'reserved', 'none', ` + quotedID(given) + `, ` +
			quotedID(reserved) + `, ` + expires + `, ` + expires + ` + interval '10 minutes', now() FROM swap_quotes WHERE id = ` + quotedID(q.ID),
		hold(given, b.wallet, "USDT", q.Price.From.String()),
		hold(reserved, b.treasury, "USDC", q.Price.To.String()),
	}
}

// No login uses a quote twice, or one that has expired, or opens what its intent does not say.
func TestTheDatabaseRefusesUsedQuotes(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	used := b.open(t, usdt("10"))
	q, err := b.s.SwapQuote(t.Context(), store.Everything(), used.QuoteID)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		b.every(t, "uses a quote twice", b.insertOf(t, q, "now()")...)
	}
	late := b.quote(t, usdt("10"))
	storetest.Exec(t, b.s, `ALTER TABLE swap_quotes DISABLE TRIGGER USER; UPDATE swap_quotes SET created_at = created_at - interval '2 minutes', expires_at = expires_at - interval '2 minutes' WHERE id = '`+
		late.ID.String()+`'; ALTER TABLE swap_quotes ENABLE TRIGGER USER`)
	b.every(t, "uses an expired quote", b.insertOf(t, late, "now()")...)
	b.every(t, "uses an expired quote in the past", b.insertOf(t, late, "now() - interval '90 seconds'")...)
	b.every(t, "changes a quote", `UPDATE swap_quotes SET to_amount = to_amount * 2 WHERE id = `+quotedID(q.ID))
	for name, better := range map[string]string{"a better rate": `rate + 0.01, from_amount, to_amount`, "more": `rate, from_amount, to_amount + 1`, "for less": `rate, from_amount - 1, to_amount`} {
		b.every(t, name, `INSERT INTO swap_quotes (id, asked_by, wallet_id, network, from_asset, to_asset, amount_side, from_rate_id, from_bid, from_ask, from_rate_source, from_rate_valid_from,
			from_rate_stale_at, to_rate_id, to_bid, to_ask, to_rate_source, to_rate_valid_from, to_rate_stale_at, profile_version, fee_fixed, fee_points, fee_minimum, spread_points, formula, rate,
			from_amount, to_amount, fee, hash, created_at, expires_at) SELECT gen_random_uuid(), asked_by, wallet_id, network, from_asset, to_asset, amount_side, from_rate_id, from_bid, from_ask,
			from_rate_source, from_rate_valid_from, from_rate_stale_at, to_rate_id, to_bid, to_ask, to_rate_source, to_rate_valid_from, to_rate_stale_at, profile_version, fee_fixed, fee_points,
			fee_minimum, spread_points, formula, `+better+`, fee, hash, created_at, expires_at FROM swap_quotes WHERE id = `+quotedID(q.ID))
	}
}

// No login oversells the treasury: what is not there can't be reserved.
func TestTheDatabaseRefusesToOversell(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	q := b.quote(t, usdc("300"))
	b.open(t, usdc("300"))
	for _, role := range loginsOfSwaps {
		if err := b.together(t, role, b.insertOf(t, q, "now()")...); !refused(err) {
			t.Errorf("%s oversells: %v", role, err)
		}
	}
	b.wants(t, [2]string{"1000", "300"}, [2]string{"0", "0"}, [2]string{"0", "0"}, [2]string{"500", "300"})
}

// No login ends a swap that may move money, or lets one begin that lacks officers, or sets marks alone.
func TestTheDatabaseRefusesOtherStepsOfSwaps(t *testing.T) {
	t.Parallel()
	b := newSwapDesk(t)
	storetest.Patch(t, b.s, store.LimitPatch{Rules: rule("100", "1000")})
	o := b.open(t, usdt("100"))
	if _, err := b.s.CollectSwap(t.Context(), o.ID); err != nil {
		t.Fatal(err)
	}
	free := []string{
		`UPDATE holds SET status = 'released' WHERE id IN (` + quotedID(o.HoldID) + `, ` + quotedID(o.ReservationID) + `)`,
		`UPDATE releases SET ended_at = now() WHERE object_id = ` + quotedID(o.ID),
	}
	b.every(t, "cancels it", append(free, moves(o.ID, `status = 'cancelled'`))...)
	b.every(t, "expires it", append(free, moves(o.ID, `status = 'expired'`))...)
	b.every(t, "collects it without officers", copyLeg+`'swap_collect', id, 1, network, from_asset, from_amount, wallet_id, `+quoted(o.Address)+`, `+quoted(o.HouseAddress)+
		`, NULL, '', hold_id, 'x', 'approved', 'policy', now(), now() FROM swaps WHERE id = `+quotedID(o.ID))
	b.every(t, "releases it without officers", `UPDATE releases SET passed_at = now() WHERE object_id = `+quotedID(o.ID))
	b.every(t, "takes it out of the sums", `UPDATE releases SET ended_at = now() WHERE object_id = `+quotedID(o.ID))
	b.every(t, "sets marks alone", `INSERT INTO swap_marks (id, network, asset, low, high, change_id, updated_at) SELECT gen_random_uuid(), 'tron', 'USDC', 0, 1, gen_random_uuid(), now()`)
}
