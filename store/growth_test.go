package store_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// TestGrowth prints the rows and bytes that each kind of operation adds to each table, from its first row to its end, for docs/capacity.md. It runs
// only where KIVUKO_GROWTH says how many operations of a kind are measured, after ten that are not:
//
//	KIVUKO_GROWTH=40 bin/with-postgres -- go test ./store -run TestGrowth -v
func TestGrowth(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("KIVUKO_GROWTH"))
	if n == 0 {
		t.Skip("KIVUKO_GROWTH is not set")
	}
	s := storetest.New(t)
	m, p := storetest.NewMarket(t, s), newPurseIn(t, s, "1000")
	purchase := func(t *testing.T, _ int) { bought(t, s, m) }
	transfer := func(t *testing.T, _ int) {
		f := p.open(t, "5", exchange.Recipient{Email: p.other.Email})
		f, err := s.AdvanceTransfer(t.Context(), f.ID)
		if err != nil {
			t.Fatal(err)
		}
		p.carry(t, f)
	}
	grown(t, s, "purchase", n, purchase)
	grown(t, s, "transfer", n, transfer)

	x := sold(t)
	storetest.EscrowPool(t, x.s, exchange.Tron, n+20)
	storetest.Shillings(t, x.s, x.m.Vendor.ID, kes("1000000"))
	storetest.Float(t, x.s, kes("1000000"))
	grown(t, x.s, "sale", n, func(t *testing.T, i int) {
		y := soldIn(t, x.s, x.m)
		y.block = x.block + uint64(i) - 1
		d := y.final(t, y.to(fmt.Sprintf("tx-%d", i), usdt("10")))
		y.order = y.take(t, d, exchange.TakenExact).Order
		if err := y.s.RecordDepositScreening(t.Context(), d.ID, []exchange.Screening{{Screener: "test", Verdict: exchange.VerdictClear}}); err != nil {
			t.Fatal(err)
		}
		y.paysOut(t)
		sweep, err := y.s.ApproveSweep(t.Context(), y.order.ID)
		if err != nil {
			t.Fatal(err)
		}
		y.carriedOut(t, sweep)
		if _, err := y.s.ReleaseEscrow(t.Context(), y.order.ID); err != nil {
			t.Fatal(err)
		}
	})

	b := newSwapDesk(t)
	grown(t, b.s, "swap", n, func(t *testing.T, _ int) {
		o := b.syncing(t, usdt("10"))
		if _, err := b.s.SyncSwap(t.Context(), o.ID, b.read("5")); err != nil {
			t.Fatal(err)
		}
		b.is(t, o, exchange.SwapCompleted, exchange.WaitNothing)
	})
}

// bought is a purchase from its order to its end.
func bought(t *testing.T, s *store.Store, m storetest.Market) {
	t.Helper()
	ctx := t.Context()
	o, p := paid(t, s, m)
	tx := sign(t, s, p)
	if _, err := s.RecordBroadcast(ctx, tx.ID, "SUCCESS", true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RecordIncluded(ctx, tx.ID, 100, "aa"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RecordFinal(ctx, tx.ID, true, 100, "aa", trx("1"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CompleteOrder(ctx, o.ID); err != nil {
		t.Fatal(err)
	}
}

const sizes = `
SELECT coalesce(i.inhparent, c.oid)::regclass || ' ' || sum(pg_total_relation_size(c.oid)) || ' ' || sum(pg_relation_size(c.oid)) || ' '
    || sum((xpath('/row/n/text()', query_to_xml('SELECT count(*) AS n FROM ' || c.oid::regclass, false, true, '')))[1]::text::bigint)
FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' GROUP BY coalesce(i.inhparent, c.oid)`

// grown runs an operation and prints by how much each table grew for one of them.
func grown(t *testing.T, s *store.Store, kind string, n int, operation func(*testing.T, int)) {
	t.Helper()
	const first = 10
	read := func() map[string][3]int {
		all := map[string][3]int{}
		for _, line := range texts(t, storetest.Owner(t, s), sizes) {
			cells := strings.Fields(line)
			var of [3]int
			for i := range of {
				of[i], _ = strconv.Atoi(cells[i+1])
			}
			all[cells[0]] = of
		}
		return all
	}
	var before map[string][3]int
	for i := range first + n {
		if i == first {
			before = read()
		}
		operation(t, i+1)
	}
	after := read()
	var total, rows int
	for _, table := range slices.Sorted(maps.Keys(after)) {
		now, was := after[table], before[table]
		if now == was {
			continue
		}
		total, rows = total+now[0]-was[0], rows+now[2]-was[2]
		fmt.Printf("growth %s: %s %.1f rows, %d bytes (%d without indexes)\n", kind, table, float64(now[2]-was[2])/float64(n), (now[0]-was[0])/n, (now[1]-was[1])/n) //nolint:forbidigo // no money
	}
	fmt.Printf("growth %s: all %.1f rows, %d bytes\n", kind, float64(rows)/float64(n), total/n) //nolint:forbidigo // no money
}
