package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// readingAt is a wallet's balance on a chain at a block.
func readingAt(w exchange.Wallet, block uint64, m money.Amount) exchange.WalletReading {
	return exchange.WalletReading{WalletID: w.ID, ChainBalance: exchange.ChainBalance{Amount: m, Block: blockOf("a", block)}}
}

func compare(t *testing.T, s *store.Store, readings ...exchange.WalletReading) []exchange.Comparison {
	t.Helper()
	all, err := s.CompareReadings(t.Context(), exchange.Tron, readings)
	if err != nil || len(all) != len(readings) {
		t.Fatalf("%d comparisons of %d readings, %v", len(all), len(readings), err)
	}
	return all
}

// emptyUpTo makes the watch pass blocks without movements of ours.
func emptyUpTo(t *testing.T, s *store.Store, last uint64) {
	t.Helper()
	c, _, err := s.DepositCursor(t.Context(), exchange.Tron)
	if err != nil {
		t.Fatal(err)
	}
	for n := c.Final.Number + 1; n <= last; n++ {
		finalBlock(t, s, scanOf(blockOf("a", n)))
	}
}

// shipment is a payment of 10 USDT between two wallets of ours, in block 105, for a fee of 1 TRX.
type shipment struct {
	t     *testing.T
	store *store.Store
	m     storetest.Market
	p     exchange.ChainPayment
	tx    exchange.ChainAttempt
}

func newShipment(t *testing.T) *shipment {
	t.Helper()
	sh := &shipment{t: t, store: started(t)}
	sh.m = storetest.NewMarket(t, sh.store)
	_, sh.p = paid(t, sh.store, sh.m)
	return sh
}

func (sh *shipment) must(_ any, err error) {
	sh.t.Helper()
	if err != nil {
		sh.t.Fatal(err)
	}
}

// truth is the chain's balances of all ends at a block.
func (sh *shipment) truth(block uint64) []exchange.WalletReading {
	from, to, gas := "1500", "0", "1000"
	if block >= 105 {
		from, to, gas = "1490", "10", "999"
	}
	return []exchange.WalletReading{
		readingAt(sh.m.VendorWallet, block, usdt(from)), readingAt(sh.m.CustomerWallet, block, usdt(to)), readingAt(sh.m.VendorWallet, block, trx(gas)),
		readingAt(sh.m.CustomerWallet, block, trx("0")), readingAt(sh.m.VendorWallet, block, money.Zero(money.USDC)),
	}
}

func (sh *shipment) move() exchange.BlockScan {
	return scanOf(blockOf("a", 105), moveOf(sh.tx.TxID, sh.m.VendorWallet.Address, sh.m.CustomerWallet.Address, usdt("10")))
}

// The steps of a payment and of the watch, in one possible order.
func (sh *shipment) steps() []struct {
	name string
	do   func(ctx context.Context)
} {
	s := sh.store
	return []struct {
		name string
		do   func(ctx context.Context)
	}{
		{"approved", func(context.Context) {}},
		{"signed", func(context.Context) { sh.tx = sign(sh.t, s, sh.p) }},
		{"broadcast", func(ctx context.Context) { sh.must(s.RecordBroadcast(ctx, sh.tx.ID, "SUCCESS", true)) }},
		{"in a block", func(ctx context.Context) { sh.must(s.RecordIncluded(ctx, sh.tx.ID, 105, "a-105")) }},
		{"the watch is at the block", func(context.Context) { emptyUpTo(sh.t, s, 104); finalBlock(sh.t, s, sh.move()) }},
		{"the watch is past it", func(context.Context) { emptyUpTo(sh.t, s, 108) }},
		{"booked", func(ctx context.Context) {
			sh.must(s.RecordFinal(ctx, sh.tx.ID, true, 105, "a-105", trx("1"), "SUCCESS"))
		}},
		{"later", func(context.Context) { emptyUpTo(sh.t, s, 110) }},
	}
}

// At every step of a payment and every final block, the comparison finds no difference, or is deferred while the
// ledger has not reached the block; one unit more or less on the chain is found.
func TestMoneyInFlightIsNoDifference(t *testing.T) {
	t.Parallel()
	sh := newShipment(t)
	unit := usdt("0.000001")
	for _, step := range sh.steps() {
		step.do(t.Context())
		c, _, err := sh.store.DepositCursor(t.Context(), exchange.Tron)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range []uint64{100, 104, 105, 107, 110} {
			truth := sh.truth(block)
			for i, got := range compare(t, sh.store, truth...) {
				at := fmt.Sprintf("%s, reading %d at block %d of %d", step.name, i, block, c.Final.Number)
				if got.Deferred != (block > c.Final.Number) {
					t.Errorf("%s: deferred is %t", at, got.Deferred)
				}
				if !got.Deferred && (!got.Agrees() || got.Differs()) {
					t.Errorf("%s: the chain has %s, the ledger %s and %s of fees", at, got.Amount, got.Ledger, got.Fees)
				}
			}
			for _, off := range []money.Amount{unit, unit.Neg()} {
				wrong := readingAt(sh.m.VendorWallet, block, truth[0].Amount.Add(off))
				if got := compare(t, sh.store, wrong)[0]; got.Differs() == got.Deferred {
					t.Errorf("%s: %s off at block %d is not seen: %+v", step.name, off, block, got)
				}
			}
		}
	}
	if left := compare(t, sh.store, sh.truth(110)...); !left[2].Fees.IsZero() {
		t.Errorf("fees of %s are still on their way", left[2].Fees)
	}
}

// A fee that is not booked yet may be missing, but no more than the transaction's limit.
func TestFeesInFlightAreBounded(t *testing.T) {
	t.Parallel()
	sh := newShipment(t)
	for _, step := range sh.steps()[:6] {
		step.do(t.Context())
	}
	for text, differs := range map[string]bool{"1000.000001": true, "1000": false, "999": false, "950": false, "949.999999": true} {
		if got := compare(t, sh.store, readingAt(sh.m.VendorWallet, 107, trx(text)))[0]; got.Differs() != differs || !got.Fees.Equal(trx("50")) {
			t.Errorf("%s TRX on the chain with %s of fees: differs is %t", text, got.Fees, got.Differs())
		}
	}
	sh.steps()[6].do(t.Context())
	if got := compare(t, sh.store, readingAt(sh.m.VendorWallet, 107, trx("1000")))[0]; !got.Differs() {
		t.Errorf("a booked fee that the chain does not have is not seen: %+v", got)
	}
}

// A failed transaction takes its fee and moves nothing.
func TestFailedTransactionsAreAsOfTheirBlock(t *testing.T) {
	t.Parallel()
	sh := newShipment(t)
	sh.tx = sign(t, sh.store, sh.p)
	emptyUpTo(t, sh.store, 110)
	sh.must(sh.store.RecordFinal(t.Context(), sh.tx.ID, false, 105, "a-105", trx("3"), "REVERT"))
	for block, gas := range map[uint64]string{104: "1000", 105: "997", 110: "997"} {
		for _, got := range compare(t, sh.store, readingAt(sh.m.VendorWallet, block, trx(gas)), readingAt(sh.m.VendorWallet, block, usdt("1500"))) {
			if !got.Agrees() {
				t.Errorf("at block %d the chain has %s %s, the ledger %s", block, got.Amount, got.Amount.Asset(), got.Ledger)
			}
		}
	}
}

// Deposits count from their block on.
func TestDepositsAreAsOfTheirBlock(t *testing.T) {
	t.Parallel()
	s := started(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	emptyUpTo(t, s, 104)
	finalBlock(t, s, scanOf(blockOf("a", 105), moveOf("in-one", stranger, w.Address, usdt("7"))))
	finalBlock(t, s, scanOf(blockOf("a", 106), moveOf("in-two", stranger, w.Address, usdt("5"))))
	for block, m := range map[uint64]string{100: "0", 104: "0", 105: "7", 106: "12"} {
		if got := compare(t, s, readingAt(w, block, usdt(m)))[0]; !got.Agrees() {
			t.Errorf("at block %d the ledger says %s, want %s", block, got.Ledger, m)
		}
	}
	if got := compare(t, s, readingAt(w, 99, usdt("0")))[0]; !got.Deferred {
		t.Error("something is said of a block from before the watch began")
	}
	// A movement by a foreign transaction is not booked, so it shows as a difference.
	finalBlock(t, s, scanOf(blockOf("a", 107), moveOf("stolen", w.Address, stranger, usdt("12"))))
	if got := compare(t, s, readingAt(w, 107, usdt("0")))[0]; !got.Differs() || !got.Difference().Equal(usdt("-12")) {
		t.Errorf("stolen money is no difference: %+v", got)
	}
}

// audit is a store with a wallet that should hold 7 USDT.
type audit struct {
	t      *testing.T
	store  *store.Store
	wallet exchange.Wallet
}

func newAudit(t *testing.T) *audit {
	t.Helper()
	a := &audit{t: t, store: started(t)}
	a.wallet = storetest.Wallet(t, a.store, storetest.User(t, a.store, exchange.RoleCustomer))
	finalBlock(t, a.store, scanOf(blockOf("a", 101), moveOf("in", stranger, a.wallet.Address, usdt("7"))))
	return a
}

// run compares the wallet once, in a separate run, with the chain's balance.
func (a *audit) run(chain string) exchange.Reconciliation {
	a.t.Helper()
	ctx := a.t.Context()
	r, err := a.store.BeginReconciliation(ctx, storetest.NewID(a.t), exchange.Tron)
	if err != nil {
		a.t.Fatal(err)
	}
	batch := exchange.ReconciledBatch{RunID: r.ID, Last: a.wallet.ID, Unread: 1, Comparisons: compare(a.t, a.store, readingAt(a.wallet, 101, usdt(chain)))}
	for range 2 { // the second time the batch is recorded already
		if _, err = a.store.RecordComparisons(ctx, batch); err != nil {
			a.t.Fatal(err)
		}
	}
	r = twice(a.t, func(x, y exchange.Reconciliation) bool { return x == y }, func() (exchange.Reconciliation, error) {
		return a.store.FinishReconciliation(ctx, r.ID, exchange.ReconciliationCompleted, "")
	})
	if r.Compared != 1 || r.Deferred != 1 || r.Cursor != a.wallet.ID || r.Status != exchange.ReconciliationCompleted {
		a.t.Errorf("the run is %+v", r)
	}
	return r
}

func (a *audit) differences() []exchange.ReconciliationDifference {
	a.t.Helper()
	all, _, err := a.store.ListDifferences(a.t.Context(), store.DifferenceFilter{WalletID: a.wallet.ID}, store.Page{Number: 1, Size: 100})
	if err != nil {
		a.t.Fatal(err)
	}
	return all
}

func (a *audit) exceptions() []exchange.PaymentException {
	a.t.Helper()
	all, _, err := a.store.ListExceptions(a.t.Context(), store.ExceptionFilter{Kind: exchange.ExcReconciliation}, store.Page{Number: 1, Size: 100})
	if err != nil {
		a.t.Fatal(err)
	}
	return all
}

// A difference is reported once however many runs find it, and its alarm ends when it is gone.
func TestOneAlarmForAStandingDifference(t *testing.T) {
	t.Parallel()
	a := newAudit(t)
	if r := a.run("7"); r.Differences != 0 || len(a.exceptions()) != 0 {
		t.Fatalf("a difference out of nothing: %+v", r)
	}
	for _, chain := range []string{"6", "6", "5.5"} {
		if r := a.run(chain); r.Differences != 1 {
			t.Errorf("the run is %+v", r)
		}
	}
	d, x := a.differences(), a.exceptions()
	if len(d) != 1 || d[0].Status != exchange.DifferenceOpen || d[0].Runs != 3 || !d[0].Latest.Difference().Equal(usdt("-1.5")) {
		t.Fatalf("the differences are %+v", d)
	}
	if len(x) != 1 || x[0].Status != exchange.ExcOpen || !x[0].Amount.Equal(usdt("1")) || x[0].ID != d[0].ExceptionID {
		t.Fatalf("the exceptions are %+v", x)
	}
	items, total, err := a.store.ListReconciliationItems(t.Context(), d[0].LastRun, store.Page{Number: 1, Size: 10})
	if err != nil || total != 1 || items[0].DifferenceID != d[0].ID || !items[0].Amount.Equal(usdt("5.5")) || items[0].Block.Number != 101 {
		t.Errorf("the last run's items are %+v, %v", items, err)
	}
	if n, err := a.store.OpenDifferences(t.Context(), exchange.Tron); err != nil || n != 1 {
		t.Errorf("%d differences stand, %v", n, err)
	}
	a.run("7")
	if d, x = a.differences(), a.exceptions(); d[0].Status != exchange.DifferenceClosed || d[0].ClosedAt.IsZero() || x[0].Status != exchange.ExcAccepted {
		t.Errorf("nothing is left of it, and there are %+v and %+v", d, x)
	}
	if got := eventsOf(t, a.store, d[0].ID); fmt.Sprint(got) != "[reconciliation_difference.opened reconciliation_difference.changed reconciliation_difference.closed]" {
		t.Errorf("the events are %v", got)
	}
	a.run("8")
	if d, x = a.differences(), a.exceptions(); len(d) != 2 || len(x) != 2 {
		t.Errorf("another difference is no alarm of its own: %+v, %+v", d, x)
	}
	wantBooks(t, a.store)
}

// An officer who settles the exception moves no money by it, gets no new report of the same difference, and can't have
// it refunded.
func TestPeopleDealWithDifferences(t *testing.T) {
	t.Parallel()
	a := newAudit(t)
	a.run("6")
	x := a.exceptions()[0]
	_, err := a.store.RefundException(t.Context(), x.ID, storetest.By)
	wantFault(t, err, exchange.CodeStateConflict)
	before, err := a.store.Account(t.Context(), exchange.House(exchange.AccFees, money.USDT))
	if err != nil {
		t.Fatal(err)
	}
	if x, err = a.store.ResolveException(t.Context(), x.ID, exchange.ExcWrittenOff, "known to the auditor", storetest.By); err != nil || x.Status != exchange.ExcWrittenOff {
		t.Fatalf("%+v, %v", x, err)
	}
	if after, err := a.store.Account(t.Context(), before.Ref); err != nil || !after.Posted.Equal(before.Posted) {
		t.Errorf("fees went from %s to %s, %v", before.Posted, after.Posted, err)
	}
	a.run("6")
	a.run("7")
	if all := a.exceptions(); len(all) != 1 || all[0].Status != exchange.ExcWrittenOff {
		t.Errorf("the exceptions are %+v", all)
	}
	if d := a.differences(); len(d) != 1 || d[0].Status != exchange.DifferenceClosed {
		t.Errorf("the differences are %+v", d)
	}
}

// A network has one run at a time: a run whose flow was terminated fails when the next begins, and can record nothing
// more.
func TestRunsTakeTurns(t *testing.T) {
	t.Parallel()
	a := newAudit(t)
	first, err := a.store.BeginReconciliation(t.Context(), storetest.NewID(t), exchange.Tron)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.store.BeginReconciliation(t.Context(), first.ID, exchange.Tron); err != nil || again != first {
		t.Fatalf("again: %+v, %v", again, err)
	}
	_, err = a.store.BeginReconciliation(t.Context(), first.ID, exchange.Solana)
	wantFault(t, err, exchange.CodeConflict)
	a.run("7")
	stale := exchange.ReconciledBatch{RunID: first.ID, Last: a.wallet.ID, Comparisons: compare(t, a.store, readingAt(a.wallet, 101, usdt("3")))}
	if r, err := a.store.RecordComparisons(t.Context(), stale); err != nil || r.Status != exchange.ReconciliationFailed || r.Detail != "superseded" || r.Compared != 0 {
		t.Errorf("the run that lost its flow is %+v, %v", r, err)
	}
	if d := a.differences(); len(d) != 0 {
		t.Errorf("it recorded %+v", d)
	}
}

// Wallets are listed in order, each once, and only those of the network.
func TestWalletsAfter(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	u := storetest.User(t, s, exchange.RoleCustomer)
	storetest.WalletOn(t, s, u, exchange.Solana)
	want := map[uuid.UUID]bool{}
	for range 5 {
		want[storetest.Wallet(t, s, u).ID] = true
	}
	var last uuid.UUID
	for len(want) > 0 {
		all, err := s.WalletsAfter(t.Context(), exchange.Tron, last, 2)
		if err != nil || len(all) == 0 {
			t.Fatalf("%d wallets are left out, %v", len(want), err)
		}
		for _, w := range all {
			if !want[w.ID] {
				t.Fatalf("wallet %s came twice or is of another network", w.ID)
			}
			delete(want, w.ID)
			last = w.ID
		}
	}
}

// The day's report compares liabilities with assets by the last runs, and is immutable.
func TestReserves(t *testing.T) {
	t.Parallel()
	a := newAudit(t)
	storetest.Float(t, a.store, money.Must(money.KES, "1000"))
	day := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	line := func(asset money.Asset, day time.Time) exchange.ReserveLine {
		t.Helper()
		all, err := a.store.WriteReserves(t.Context(), day)
		if err != nil || len(all) != len(money.Assets()) {
			t.Fatalf("%d lines, %v", len(all), err)
		}
		var found exchange.ReserveLine
		for _, l := range all {
			if l.Asset == asset {
				found = l
			}
			if !l.Owed.Add(l.Equity).Equal(l.Custody.Add(l.Float)) {
				t.Errorf("of %s %s is owed and %s our own, of %s and %s", l.Asset, l.Owed, l.Equity, l.Custody, l.Float)
			}
		}
		return found
	}
	if l := line(money.USDT, day); !l.Owed.Equal(usdt("7")) || !l.Surplus().IsZero() || !l.ComparedAt.IsZero() || l.Day.Hour() != 0 {
		t.Errorf("before any run: %+v", l)
	}
	a.run("5")
	if l := line(money.USDT, day); !l.Discrepancy.IsZero() {
		t.Errorf("the report of the day changed: %+v", l)
	}
	next := day.Add(24 * time.Hour)
	if l := line(money.USDT, next); !l.Reserves().Equal(usdt("5")) || !l.Surplus().Equal(usdt("-2")) || l.ComparedAt.IsZero() {
		t.Errorf("after a run that found less: %+v", l)
	}
	if l := line(money.KES, next); !l.Reserves().Equal(money.Must(money.KES, "1000")) || !l.Surplus().Equal(money.Must(money.KES, "1000")) || !l.Equity.Equal(money.Must(money.KES, "1000")) || !l.Owed.IsZero() {
		t.Errorf("the float: %+v", l)
	}
	all, total, err := a.store.ListReserves(t.Context(), money.USDT, next, time.Time{}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 1 || !all[0].Surplus().Equal(usdt("-2")) {
		t.Errorf("listed %+v, %v", all, err)
	}
	// The house's own assets count as assets, without a liability.
	storetest.Deposit(t, a.store, storetest.TreasuryWallet(t, a.store, exchange.Tron).ID, usdt("3"))
	if l := line(money.USDT, next.Add(24*time.Hour)); !l.Owed.Equal(usdt("7")) || !l.Custody.Equal(usdt("10")) || !l.Equity.Equal(usdt("3")) {
		t.Errorf("with coins of the house: %+v", l)
	}
}

// The database itself protects found differences and cold wallets.
func TestReconciliationGuards(t *testing.T) {
	t.Parallel()
	a := newAudit(t)
	a.run("6")
	if _, err := a.store.WriteReserves(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	db := storetest.Owner(t, a.store)
	for _, query := range []string{
		`UPDATE reconciliation_items SET chain = 7`, `DELETE FROM reconciliation_items`, `DELETE FROM reconciliation_differences`,
		`UPDATE reconciliation_differences SET wallet_id = (SELECT id FROM wallets WHERE id <> wallet_id LIMIT 1)`,
		`UPDATE reconciliation_runs SET differences = 0`, `DELETE FROM reconciliation_runs`, `UPDATE reserve_reports SET owed = 0`,
		`DELETE FROM reconciliation_totals`,
	} {
		if _, err := db.ExecContext(t.Context(), query); sqlState(err) != "KV002" && sqlState(err) != "23502" {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// Bytes signed with a cold wallet's key can't be stored, and so never sent, even by the tables' owner; and a cold
// wallet stays cold.
func TestColdWalletsSignNothingHere(t *testing.T) {
	t.Parallel()
	sh := newShipment(t)
	storetest.Exec(t, sh.store, `UPDATE wallets SET type = 'cold' WHERE id = $1`, sh.m.VendorWallet.ID)
	id := storetest.NewID(t)
	_, err := sh.store.SaveSignedAttempt(t.Context(), exchange.ChainAttempt{
		ID: id, PaymentID: sh.p.ID, Network: sh.p.Network, TxID: txID(id), Raw: []byte("signed"), ExpiresAt: time.Now().Add(time.Hour), FeeLimit: trx("50"),
	})
	wantFault(t, err, exchange.CodeStateConflict)
	if live, alive, err := sh.store.LiveAttempt(t.Context(), sh.p.ID); alive || err != nil {
		t.Errorf("it was stored: %+v, %v", live, err)
	}
	if p, err := sh.store.ChainPayment(t.Context(), sh.p.ID); err != nil || p.Status != exchange.ChainApproved {
		t.Errorf("the payment is %s, %v", p.Status, err)
	}
	if _, err := storetest.Owner(t, sh.store).ExecContext(t.Context(), `UPDATE wallets SET type = 'hot' WHERE id = $1`, sh.m.VendorWallet.ID); sqlState(err) != "KV002" {
		t.Errorf("a cold wallet was made hot: %v", err)
	}
}
