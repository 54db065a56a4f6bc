package store_test

import (
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

const earnedBySwaps = `SELECT coalesce(string_agg(e.kind || ' ' || trim_scale(l.amount), ', ' ORDER BY e.id), '') FROM ledger_entries e JOIN ledger_lines l ON l.entry_id = e.id
	JOIN ledger_accounts a ON a.id = l.account_id WHERE a.kind = 'wallet_fees' AND a.owner_id = $1 AND e.object_id = $2`

// The fee of a swap is a posting of its own when its second leg is final, and only then. It is earned in the treasury, so it becomes the
// house's own there at once. What goes back costs nothing.
func TestFeesOfSwapsAreBooked(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newSwapDesk(t)
	profile := exchange.FeeProfile{ID: storetest.NewID(t), FeeLine: exchange.FeeLine{Scope: exchange.FeeSwap, Asset: money.USDC}, Fixed: usdc("0.1"), Minimum: usdc("0"), BasisPoints: 10, Spread: 50}
	if err := storetest.Agreed(t, b.s)(b.s.ProposeProfile(ctx, profile, b.boss)); err != nil {
		t.Fatal(err)
	}
	wants := func(o exchange.Swap, want string) {
		t.Helper()
		if got := decides[string](t, b.s, earnedBySwaps, b.treasury.ID, o.ID); got != want {
			t.Errorf("a swap that is %s earned %q, want %q", o.Status, got, want)
		}
	}
	o := b.collected(t, usdt("100"))
	wants(o, "")
	out, err := b.s.PayOutSwap(ctx, o.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.final(t, sign(t, b.s, b.payment(t, out.PaymentID)))
	wants(b.is(t, o, exchange.SwapSyncing, exchange.WaitSync), "swap.fee -0.1995, swap.fee_kept 0.1995")
	b.wants(t, [2]string{"900", "0"}, [2]string{"99.3005", "0"}, [2]string{"100", "0"}, [2]string{"400.6995", "0"})
	back := b.collected(t, usdt("10"))
	b.waits(t, back, "31")
	if out, err = b.s.RefundSwap(ctx, back.ID); err != nil {
		t.Fatal(err)
	}
	b.final(t, sign(t, b.s, b.payment(t, out.PaymentID)))
	wants(b.is(t, back, exchange.SwapRefunded, exchange.WaitNothing), "")
	b.wants(t, [2]string{"900", "0"}, [2]string{"99.3005", "0"}, [2]string{"100", "0"}, [2]string{"400.6995", "0"})
	waiting := b.collected(t, usdt("10"))
	b.every(t, "earns the fee of one that is not paid", `WITH e AS (INSERT INTO ledger_entries (key, digest, kind, object_type, object_id, at)
			VALUES ('swap:`+waiting.ID.String()+`:fee', decode(repeat('00', 16), 'hex'), 'swap.fee', 'swap', `+quotedID(waiting.ID)+`, now()) RETURNING id)
		INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT e.id, a.id, CASE a.kind WHEN 'wallet_fees' THEN -`+waiting.Fee.String()+` ELSE `+waiting.Fee.String()+` END FROM e, ledger_accounts a
		WHERE a.owner_id = `+quotedID(b.treasury.ID)+` AND a.asset = 'USDC' AND a.kind IN ('wallet_fees', 'wallet_balance')`)
}
