package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// timed is a store with a clock of its own whose deposits on TRON are read from after block 100.
func timed(t *testing.T) (*store.Store, *clock) {
	t.Helper()
	return timedAt(t, storetest.URL(t))
}

func timedAt(t *testing.T, url string) (*store.Store, *clock) {
	t.Helper()
	c := newClock()
	s := storetest.Open(t, url, store.Options{Now: c.now})
	if _, err := s.StartDeposits(t.Context(), exchange.Tron, blockOf("a", 100)); err != nil {
		t.Fatal(err)
	}
	return s, c
}

// look is the watch's look at TRON when its final block has a number and a time.
func look(t *testing.T, s *store.Store, number uint64, at time.Time) {
	t.Helper()
	if err := s.WatchAlive(t.Context(), exchange.Tron); err != nil {
		t.Fatal(err)
	}
	l := exchange.WatchLook{Network: exchange.Tron, Final: exchange.ChainBlock{Number: number, Time: at}, Life: 10 * time.Minute}
	if err := s.RecordLook(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

func wantHold(t *testing.T, s *store.Store, p exchange.ChainPayment, want exchange.SigningHold) {
	t.Helper()
	if got, err := s.SigningHold(t.Context(), p.ID); err != nil || got != want {
		t.Errorf("the hold is %q, %v; want %q", got, err, want)
	}
}

// signing is what the signer stores.
func signing(t *testing.T, s *store.Store, p exchange.ChainPayment) error {
	t.Helper()
	id := storetest.NewID(t)
	_, err := s.SaveSignedAttempt(t.Context(), exchange.ChainAttempt{
		ID: id, PaymentID: p.ID, Network: p.Network, TxID: txID(id), Raw: []byte("signed"), ExpiresAt: time.Now().Add(time.Hour), FeeLimit: trx("50"),
	})
	return err
}

// alarmOf is the one open alarm on TRON.
func alarmOf(t *testing.T, s *store.Store, why exchange.QuarantineReason) exchange.QuarantinedMovement {
	t.Helper()
	open, err := s.OpenQuarantine(t.Context(), exchange.Tron)
	if err != nil || len(open) != 1 || open[0].Reason != why {
		t.Fatalf("the alarms are %+v, %v; want one %s", open, err, why)
	}
	return open[0]
}

func settled(t *testing.T, s *store.Store, q exchange.QuarantinedMovement) {
	t.Helper()
	if err := adopted(t, s, q.ID, uuid.Nil); err != nil {
		t.Fatal(err)
	}
}

// adopted settles a movement by two officers, as a payment of ours if one is named.
func adopted(t *testing.T, s *store.Store, movement, payment uuid.UUID) error {
	t.Helper()
	by := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	return storetest.Agreed(t, s)(s.ProposeSettlement(t.Context(), movement, payment, "compared on the explorer", by))
}

// An unknown outgoing transaction blocks signing with the wallet's key, and above all the payment that it may have
// been.
func TestForeignSendsWithholdSignatures(t *testing.T) {
	t.Parallel()
	s, c := timed(t)
	m, elsewhere := storetest.NewMarket(t, s), storetest.NewMarket(t, s)
	o, same := paid(t, s, m)
	other := func() exchange.ChainPayment { // of the same wallet
		order := m.Order(t, s, "20")
		out, err := s.AcceptPayment(t.Context(), storetest.Attempt(t, s, order).ID, storetest.Paid(t, order.Price.Fiat), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return out.ChainPayment
	}()
	_, unrelated := paid(t, s, elsewhere)
	look(t, s, 100, c.now())
	for _, p := range []exchange.ChainPayment{same, other, unrelated} {
		wantHold(t, s, p, exchange.HoldNone)
	}
	b := scanOf(blockOf("a", 101), moveOf("lost", same.FromAddress, same.ToAddress, same.Amount))
	seenBlock(t, s, b) // the moment that it is seen
	for range 2 {
		wantHold(t, s, same, exchange.HoldSentBefore)
		wantHold(t, s, other, exchange.HoldForeign)
		wantHold(t, s, unrelated, exchange.HoldNone)
		wantFault(t, signing(t, s, same), exchange.CodeStateConflict)
		wantFault(t, signing(t, s, other), exchange.CodeStateConflict)
		_, _, err := s.RefundOrder(t.Context(), o.ID, "impatient", storetest.By)
		wantFault(t, err, exchange.CodeStateConflict)
		finalBlock(t, s, b)
	}
	if err := signing(t, s, unrelated); err != nil {
		t.Errorf("another wallet's payment: %v", err)
	}
	settled(t, s, alarmOf(t, s, exchange.QuarantineOutgoing))
	wantHold(t, s, same, exchange.HoldNone)
	for _, p := range []exchange.ChainPayment{same, other} {
		if err := signing(t, s, p); err != nil {
			t.Errorf("after it was settled: %v", err)
		}
	}
	wantBooks(t, s)
}

// A movement of another wallet, or one settled before, does not hold the payment.
func TestForeignSendsAreOfTheirWallet(t *testing.T) {
	t.Parallel()
	s, c := timed(t)
	m, thief := storetest.NewMarket(t, s), storetest.NewMarket(t, s)
	_, p := paid(t, s, m)
	look(t, s, 100, c.now())
	finalBlock(t, s, scanOf(blockOf("a", 101), moveOf("theirs", thief.VendorWallet.Address, p.ToAddress, p.Amount), moveOf("poison", p.FromAddress, p.ToAddress, usdt("0"))))
	wantHold(t, s, p, exchange.HoldNone)
	if err := signing(t, s, p); err != nil {
		t.Error(err)
	}
}

// The alarm about a payment that was carried out differently is raised in the transaction that parks it. Until an
// officer has settled it the payment is neither retried nor given up.
func TestPaymentsThatMovedSomethingElse(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), started(t)
	o, p := paid(t, s, storetest.NewMarket(t, s))
	tx := sign(t, s, p)
	if _, err := s.RecordFinal(ctx, tx.ID, false, 101, "a-101", trx("1"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	q := alarmOf(t, s, exchange.QuarantineUnexpected)
	wantHold(t, s, p, exchange.HoldUnexpected)
	_, _, err := s.RefundOrder(ctx, o.ID, "nothing came", storetest.By)
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = s.RetryChainPayment(ctx, p.ID, storetest.By)
	wantFault(t, err, exchange.CodeStateConflict)
	for _, to := range []string{"cancelled", "approved"} {
		_, err := storetest.Owner(t, s).ExecContext(ctx, `UPDATE chain_payments SET status = $2 WHERE id = $1`, p.ID, to)
		if sqlState(err) != "KV001" {
			t.Errorf("the database lets it become %s: %v", to, err)
		}
	}
	settled(t, s, q)
	outlived(t, s)
	if _, _, err := s.RefundOrder(ctx, o.ID, "it went to nobody", storetest.By); err != nil {
		t.Errorf("after it was settled: %v", err)
	}
	wantBooks(t, s)
}

func TestTransfersThatMovedSomethingElse(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	ctx, s := t.Context(), p.store
	f, err := s.AdvanceTransfer(ctx, p.open(t, "10", exchange.Recipient{UserID: p.other.ID}).ID)
	if err == nil {
		_, err = s.SignTransfer(ctx, f.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	pay, err := s.ChainPayment(ctx, f.PaymentID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RecordFinal(ctx, sign(t, s, pay).ID, false, 101, "a-101", trx("1"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	_, err = s.GiveUpTransfer(ctx, f.ID, storetest.By)
	wantFault(t, err, exchange.CodeStateConflict)
	settled(t, s, alarmOf(t, s, exchange.QuarantineUnexpected))
	outlived(t, s)
	if _, err := s.GiveUpTransfer(ctx, f.ID, storetest.By); err != nil {
		t.Errorf("after it was settled: %v", err)
	}
	wantBooks(t, s)
}

// The code for "carried out" can't be stored without the alarm.
func TestNoSilentTransaction(t *testing.T) {
	t.Parallel()
	s := started(t)
	_, p := paid(t, s, storetest.NewMarket(t, s))
	tx := sign(t, s, p)
	_, err := storetest.Owner(t, s).ExecContext(t.Context(), `UPDATE chain_attempts SET status = 'failed', last_code = 'SUCCESS' WHERE id = $1`, tx.ID)
	if sqlState(err) != "KV002" {
		t.Errorf("a transaction that moved something was written down silently: %v", err)
	}
}

// The watch may see a transaction before it is recorded as paying nothing. Whichever is second raises the alarm.
func TestJudgedToPayNothingAfterItWasSeen(t *testing.T) {
	t.Parallel()
	for name, judge := range map[string]func(s *store.Store, tx uuid.UUID) error{
		"failed": func(s *store.Store, tx uuid.UUID) error {
			_, err := s.RecordFinal(t.Context(), tx, false, 101, "a-101", trx("0"), "REVERT")
			return err
		},
		"carried out otherwise": func(s *store.Store, tx uuid.UUID) error {
			_, err := s.RecordFinal(t.Context(), tx, false, 101, "a-101", trx("0"), "SUCCESS")
			return err
		},
		"impossible": func(s *store.Store, tx uuid.UUID) error {
			_, err := s.RecordExpired(t.Context(), tx, "absent")
			return err
		},
	} {
		for _, watchFirst := range []bool{true, false} {
			s := started(t)
			o, p := paid(t, s, storetest.NewMarket(t, s))
			tx := sign(t, s, p)
			b := scanOf(blockOf("a", 101), moveOf(tx.TxID, p.FromAddress, stranger, p.Amount))
			steps := []func(){func() { finalBlock(t, s, b) }, func() {
				for range 2 {
					if err := judge(s, tx.ID); err != nil {
						t.Fatal(err)
					}
				}
			}}
			if !watchFirst {
				steps[0], steps[1] = steps[1], steps[0]
			}
			steps[0]()
			steps[1]()
			alarmOf(t, s, exchange.QuarantineUnexpected)
			wantHold(t, s, p, exchange.HoldUnexpected)
			wantFault(t, signing(t, s, p), exchange.CodeStateConflict)
			if _, _, err := s.RefundOrder(t.Context(), o.ID, "x", storetest.By); exchange.CodeOf(err) != exchange.CodeStateConflict {
				t.Errorf("%s, watch first %v: the order was refunded: %v", name, watchFirst, err)
			}
			wantBooks(t, s)
		}
	}
}

// A reverted transaction moved nothing and raises no alarm.
func TestRevertedTransactionsRaiseNoAlarm(t *testing.T) {
	t.Parallel()
	s := started(t)
	o, p := paid(t, s, storetest.NewMarket(t, s))
	tx := sign(t, s, p)
	if _, err := s.RecordFinal(t.Context(), tx.ID, false, 101, "a-101", trx("1"), "REVERT"); err != nil {
		t.Fatal(err)
	}
	if open, err := s.OpenQuarantine(t.Context(), exchange.Tron); err != nil || len(open) != 0 {
		t.Errorf("the alarms are %+v, %v", open, err)
	}
	outlived(t, s)
	if _, _, err := s.RefundOrder(t.Context(), o.ID, "it reverted", storetest.By); err != nil {
		t.Error(err)
	}
}

// Nothing is signed while it is unknown what has left the wallets.
func TestSigningWaitsForTheWatch(t *testing.T) {
	t.Parallel()
	s, c := timed(t)
	_, p := paid(t, s, storetest.NewMarket(t, s))
	wantHold(t, s, p, exchange.HoldWatch) // the watch has not looked yet
	look(t, s, 100, c.now())
	wantHold(t, s, p, exchange.HoldNone)
	look(t, s, 101+store.MaxSigningLag, c.now())
	wantHold(t, s, p, exchange.HoldWatch)
	finalBlock(t, s, scanOf(blockOf("a", 101)))
	wantHold(t, s, p, exchange.HoldNone)
	c.advance(store.MaxLookAge + time.Second)
	wantHold(t, s, p, exchange.HoldWatch)
	if err := s.AwaitSignature(t.Context(), p.ID, exchange.HoldWatch); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Order(t.Context(), store.Everything(), p.ObjectID); err != nil || o.StatusDetail != exchange.WaitWatch {
		t.Errorf("the order waits for %q, %v", o.StatusDetail, err)
	}
	look(t, s, 101, c.now())
	wantHold(t, s, p, exchange.HoldNone)
	tx := sign(t, s, p)
	c.advance(time.Hour)
	wantHold(t, s, p, exchange.HoldNone) // what is signed goes on
	if err := s.AwaitSignature(t.Context(), p.ID, exchange.HoldWatch); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Order(t.Context(), store.Everything(), p.ObjectID); err != nil || o.StatusDetail != exchange.WaitBroadcast {
		t.Errorf("the order of %s waits for %q, %v", tx.ID, o.StatusDetail, err)
	}
}

// A restored database, or a watch after a pause, signs nothing until earlier signed transactions can no longer reach
// the chain unseen. The database enforces that too.
func TestSigningWaitsAfterTheWatchWasAway(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(s *store.Store, c *clock){
		"away":             func(_ *store.Store, c *clock) { c.advance(store.MaxWatchGap + time.Second) },
		"another database": func(s *store.Store, _ *clock) { storetest.Exec(t, s, `UPDATE deposit_looks SET identity = 'before'`) },
		"an older build":   func(s *store.Store, _ *clock) { storetest.Exec(t, s, `DELETE FROM deposit_looks`) },
	} {
		s, c := timed(t)
		m := storetest.NewMarket(t, s)
		_, before := paid(t, s, m)
		look(t, s, 100, c.now())
		sign(t, s, before)
		_, p := paid(t, s, m)
		wantHold(t, s, p, exchange.HoldNone)
		away(s, c)
		wantHold(t, s, p, exchange.HoldWatch)
		resumed := c.now().UTC()
		look(t, s, 100, c.now().Add(-time.Minute))
		c.advance(time.Minute)
		for _, final := range []time.Time{resumed, resumed.Add(10 * time.Minute)} { // within the life of what was signed, and our clock's fault
			look(t, s, 101, final)
			wantHold(t, s, p, exchange.HoldWatch)
			if err := signing(t, s, p); exchange.CodeOf(err) != exchange.CodeStateConflict {
				t.Errorf("%s: the database lets it be signed: %v", name, err)
			}
		}
		look(t, s, 101, resumed.Add(11*time.Minute))
		wantHold(t, s, p, exchange.HoldWatch) // outlived, and not read up to there
		finalBlock(t, s, scanOf(blockOf("a", 101)))
		wantHold(t, s, p, exchange.HoldNone)
		look(t, s, 102, resumed.Add(12*time.Minute)) // once is enough
		wantHold(t, s, p, exchange.HoldNone)
		if err := signing(t, s, p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A lifetime in blocks is measured by height, and where transactions have numbers there is nothing to outlive.
func TestWhatIsOutlived(t *testing.T) {
	t.Parallel()
	s, c := timed(t)
	m := storetest.NewMarket(t, s)
	_, before := paid(t, s, m)
	look(t, s, 100, c.now())
	sign(t, s, before)
	_, p := paid(t, s, m)
	resume := func(l exchange.WatchLook) {
		t.Helper()
		if err := s.WatchAlive(t.Context(), exchange.Tron); err != nil {
			t.Fatal(err)
		}
		l.Network, l.Final = exchange.Tron, exchange.ChainBlock{Number: 100, Time: c.now().Add(-time.Hour)}
		if err := s.RecordLook(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	c.advance(store.MaxWatchGap + time.Second)
	resume(exchange.WatchLook{FinalHeight: 7000, LatestHeight: 7030, LifeBlocks: 200})
	wantHold(t, s, p, exchange.HoldWatch)
	resume(exchange.WatchLook{FinalHeight: 7230, LatestHeight: 7260, LifeBlocks: 200})
	wantHold(t, s, p, exchange.HoldWatch)
	resume(exchange.WatchLook{FinalHeight: 7231, LatestHeight: 7261, LifeBlocks: 200})
	wantHold(t, s, p, exchange.HoldNone)
	c.advance(store.MaxWatchGap + time.Second)
	wantHold(t, s, p, exchange.HoldWatch)
	resume(exchange.WatchLook{})
	wantHold(t, s, p, exchange.HoldNone)
}

// A payment whose transaction the database lost completes by it, and is not made a second time. The API, which applies what two
// officers confirm, may write it down.
func TestPaymentsThatWereSentBefore(t *testing.T) {
	t.Parallel()
	ctx, url := t.Context(), storetest.URL(t)
	s, c := timedAt(t, url)
	api := storetest.OpenAs(t, url, store.RoleAPI, store.Options{Now: c.now})
	m := storetest.NewMarket(t, s)
	_, p := paid(t, s, m)
	look(t, s, 100, c.now())
	b := scanOf(blockOf("a", 101), moveOf("lost", p.FromAddress, p.ToAddress, p.Amount), moveOf("lost too", p.FromAddress, stranger, usdt("1")))
	seenBlock(t, s, b)
	open, err := s.OpenQuarantine(ctx, exchange.Tron)
	if err != nil || len(open) != 2 {
		t.Fatalf("the alarms are %+v, %v", open, err)
	}
	adopt := func(i int) error {
		return adopted(t, api, open[i].ID, p.ID)
	}
	if open[0].TxID != "lost" {
		open[0], open[1] = open[1], open[0]
	}
	wantFault(t, adopt(0), exchange.CodeStateConflict) // not final
	finalBlock(t, s, b)
	wantFault(t, adopt(1), exchange.CodeStateConflict) // something else
	if _, err := s.ParkChainPayment(ctx, p.ID, string(exchange.HoldSentBefore)); err != nil {
		t.Fatal(err)
	}
	if err := adopt(0); err != nil {
		t.Fatal(err)
	}
	wantFault(t, adopt(0), exchange.CodeNotFound) // it waits no more
	alarmOf(t, s, exchange.QuarantineOutgoing)    // the other one
	live, found, err := s.LiveAttempt(ctx, p.ID)
	if err != nil || !found || live.TxID != "lost" || live.Status != exchange.TxIncluded || live.Block != 101 {
		t.Fatalf("the transaction is %+v, %v", live, err)
	}
	for range 2 {
		if _, err := s.RecordFinal(ctx, live.ID, true, 101, "a-101", trx("1"), "SUCCESS"); err != nil {
			t.Fatal(err)
		}
	}
	done, err := s.ChainPayment(ctx, p.ID)
	if err != nil || done.Status != exchange.ChainCompleted || done.TxID != "lost" {
		t.Errorf("the payment is %+v, %v", done, err)
	}
	wantBalance(t, s, custody(m.VendorWallet), "1490", "0")
	wantBalance(t, s, custody(m.CustomerWallet), "10", "0")
	wantBalance(t, s, owed(m.CustomerWallet, money.USDT), "10", "0")
	wantBalance(t, s, exchange.House(exchange.AccSuspense, money.USDT), "0", "0")
	x, n, err := s.ListExceptions(ctx, store.ExceptionFilter{Kind: exchange.ExcUnmatched}, store.Page{Number: 1, Size: 10})
	if err != nil || n != 1 || x[0].Status != exchange.ExcCredited {
		t.Errorf("the exceptions are %+v, %v", x, err)
	}
	wantBooks(t, s)
}

// Money that an officer has taken out of suspense is not taken out again.
func TestSuspenseIsEmptiedOnce(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), started(t)
	m := storetest.NewMarket(t, s)
	_, p := paid(t, s, m)
	finalBlock(t, s, scanOf(blockOf("a", 101), moveOf("lost", p.FromAddress, p.ToAddress, p.Amount)))
	d := wantDeposit(t, s, "lost", exchange.DepositUnmatched, exchange.DepositFinal)
	if _, err := s.ResolveException(ctx, d.ExceptionID, exchange.ExcAccepted, "kept", storetest.By); err != nil {
		t.Fatal(err)
	}
	if err := adopted(t, s, alarmOf(t, s, exchange.QuarantineOutgoing).ID, p.ID); err != nil {
		t.Fatal(err)
	}
	live, _, err := s.LiveAttempt(ctx, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RecordFinal(ctx, live.ID, true, 101, "a-101", trx("1"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, s, custody(m.CustomerWallet), "10", "0")
	wantBalance(t, s, owed(m.CustomerWallet, money.USDT), "0", "0")
	wantBalance(t, s, walletFees(m.CustomerWallet), "10", "0")
	wantBooks(t, s)
}
