package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// topped is a market whose vendor has no coins for fees, with two payments and a top-up of 10 TRX for the first of them.
type topped struct {
	s        *store.Store
	m        storetest.Market
	p, other exchange.ChainPayment
	top      exchange.ChainPayment
	tx       exchange.ChainAttempt // of the top-up
}

func newTopped(t *testing.T) topped {
	t.Helper()
	s := started(t)
	x := topped{s: s, m: storetest.NewMarketWith(t, s, exchange.Tron, func(owner exchange.User) exchange.Wallet { return storetest.Wallet(t, s, owner) })}
	storetest.Gas(t, s, houseWallet(t, s, exchange.HouseGas).ID, trx("100"))
	_, x.p = paid(t, s, x.m)
	_, x.other = paid(t, s, x.m)
	var err error
	if x.top, err = s.ApproveTopUp(t.Context(), x.p.ID, trx("10"), 3); err != nil {
		t.Fatal(err)
	}
	if x.tx, err = signFor(t, s, x.top, "2"); err != nil {
		t.Fatal(err)
	}
	return x
}

// arrives puts the top-up into a block that may be undone.
func (x topped) arrives(t *testing.T, block uint64, id string) {
	t.Helper()
	if _, err := x.s.RecordIncluded(t.Context(), x.tx.ID, block, id); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a repeated step
		if err := x.s.RecordGasArrival(t.Context(), x.tx.ID, id); err != nil {
			t.Fatal(err)
		}
	}
}

// A payment is signed as soon as a block has its top-up. When that block is undone, the gas counts no more until another has it,
// and when it is final, it counts once.
func TestGasThatArrivedIsSpent(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), newTopped(t)
	if _, err := x.s.RecordIncluded(ctx, x.tx.ID, 101, "a-101"); err != nil {
		t.Fatal(err)
	}
	wantShare(t, x.s, x.p, "0") // it may have failed there
	_, err := signFor(t, x.s, x.p, "6")
	wantFault(t, err, exchange.CodeConflict)
	x.arrives(t, 101, "a-101")
	wantShare(t, x.s, x.p, "10")
	_, err = signFor(t, x.s, x.p, "10.000001")
	wantFault(t, err, exchange.CodeConflict)
	a, err := signFor(t, x.s, x.p, "6")
	if err != nil {
		t.Fatal(err)
	}
	wantShare(t, x.s, x.other, "4")

	if _, err := x.s.RecordVanished(ctx, x.tx.ID); err != nil {
		t.Fatal(err)
	}
	wantShare(t, x.s, x.other, "-6")
	if err := x.s.RecordGasArrival(ctx, x.tx.ID, "a-101"); err != nil { // it comes late, and says nothing now
		t.Fatal(err)
	}
	wantShare(t, x.s, x.other, "-6")
	if _, err := x.s.RecordIncluded(ctx, x.tx.ID, 102, "b-102"); err != nil {
		t.Fatal(err)
	}
	wantShare(t, x.s, x.other, "-6")
	x.arrives(t, 102, "b-102")
	wantShare(t, x.s, x.other, "4")
	if _, err := x.s.RecordFinal(ctx, x.tx.ID, true, 102, "b-102", trx("1"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	wantShare(t, x.s, x.other, "4")
	if _, err := x.s.RecordFinal(ctx, a.ID, true, 103, "b-103", trx("3"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	wantShare(t, x.s, x.other, "7")
	wantBalance(t, x.s, exchange.Owned(exchange.AccCustody, x.m.VendorWallet.ID, money.TRX), "7", "0")
	wantBooks(t, x.s)
}

// A fee that is booked before the top-up that paid it does not leave its coins to the next payment.
func TestGasThatIsBookedAfterItsFee(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), newTopped(t)
	x.arrives(t, 101, "a-101")
	a, err := signFor(t, x.s, x.p, "6")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.s.RecordFinal(ctx, a.ID, true, 102, "a-102", trx("3"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	wantShare(t, x.s, x.other, "7")
	// The flow of a payment that ended does not look after its top-up any more.
	live, err := x.s.LiveRows(ctx, time.Now().Add(time.Hour), exchange.LivePlace{Kind: exchange.LiveTopUp}, 10)
	if err != nil || len(live) != 1 || live[0].ObjectID != x.top.ID || live[0].Network != exchange.Tron {
		t.Errorf("live are %+v, %v", live, err)
	}
	if _, err := x.s.RecordFinal(ctx, x.tx.ID, true, 101, "a-101", trx("1"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	wantShare(t, x.s, x.other, "7")
	wantBalance(t, x.s, exchange.House(exchange.AccSuspense, money.TRX), "0", "0")
	wantBooks(t, x.s)
}

// Only the process that reads the chain says that gas arrived, of a top-up, and of the block that has it now.
func TestOnlyTheChainSaysThatGasArrived(t *testing.T) {
	t.Parallel()
	x := newTopped(t)
	const says = `INSERT INTO gas_arrivals (attempt_id, block, block_id, seen_at) VALUES ($1, $2, $3, now())`
	chain := storetest.As(t, x.s, store.RoleChain)
	if _, err := chain.ExecContext(t.Context(), says, x.tx.ID, 101, "a-101"); sqlState(err) != "KV002" {
		t.Errorf("gas that is in no block arrived: %v", err)
	}
	if _, err := x.s.RecordIncluded(t.Context(), x.tx.ID, 101, "a-101"); err != nil {
		t.Fatal(err)
	}
	for _, role := range store.Roles() {
		if role == store.RoleChain {
			continue
		}
		if _, err := storetest.As(t, x.s, role).ExecContext(t.Context(), says, x.tx.ID, 101, "a-101"); sqlState(err) != "42501" {
			t.Errorf("%s says that gas arrived: %v", role, err)
		}
	}
	if _, err := chain.ExecContext(t.Context(), says, x.tx.ID, 101, "b-101"); sqlState(err) != "KV002" {
		t.Errorf("gas arrived in another block: %v", err)
	}
	if _, err := chain.ExecContext(t.Context(), says, x.tx.ID, 101, "a-101"); err != nil {
		t.Error(err)
	}
	if _, err := storetest.Owner(t, x.s).ExecContext(t.Context(), `UPDATE gas_arrivals SET block_id = 'b-101'`); sqlState(err) != "KV002" {
		t.Errorf("an arrival was changed: %v", err)
	}
	storetest.Gas(t, x.s, x.m.VendorWallet.ID, trx("100"))
	a := sign(t, x.s, x.p)
	if _, err := x.s.RecordIncluded(t.Context(), a.ID, 102, "a-102"); err != nil {
		t.Fatal(err)
	}
	if _, err := chain.ExecContext(t.Context(), says, a.ID, 102, "a-102"); sqlState(err) != "KV002" {
		t.Errorf("a payment that is no top-up brought gas: %v", err)
	}
}

// A payment whose transaction is final and lacked gas is signed again, but not before the watch has read that block: what moved
// nothing is then known from two readings. Its third failure parks it. Each fee is booked.
func TestOutOfGas(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), started(t)
	m := storetest.NewMarket(t, s)
	o, p := paid(t, s, m)
	for n := uint64(1); n <= 3; n++ {
		a, err := signFor(t, s, p, "6")
		if err != nil {
			t.Fatal(err)
		}
		block := blockOf("a", 100+n)
		if _, err := s.RecordIncluded(ctx, a.ID, block.Number, block.ID); err != nil {
			t.Fatal(err)
		}
		out := twice(t, func(a, b exchange.ChainPayment) bool { return a.Version == b.Version }, func() (exchange.ChainPayment, error) {
			return s.RecordOutOfGas(ctx, a.ID, block.Number, block.ID, trx("2"), "OUT_OF_ENERGY", 3)
		})
		want := exchange.ChainApproved
		if n == 3 {
			want = exchange.ChainParked
		}
		if out.Status != want || !out.Fee.Equal(trx(fmt.Sprint(2*n))) {
			t.Errorf("after failure %d the payment is %s with fees of %s", n, out.Status, out.Fee)
		}
		if n < 3 {
			_, err = signFor(t, s, p, "6")
			wantFault(t, err, exchange.CodeStateConflict)
			lookedAgain(t, s, p, exchange.HoldWatch)
		}
		finalBlock(t, s, scanOf(block))
	}
	lookedAgain(t, s, p, exchange.HoldNone)
	if order, err := s.Order(ctx, store.Everything(), o.ID); err != nil || order.Status != exchange.OrderConfirming || order.StatusDetail != exchange.WaitOperator || !order.NetworkFee.Equal(trx("6")) {
		t.Errorf("the order is %s, waits for %s and cost %s, %v", order.Status, order.StatusDetail, order.NetworkFee, err)
	}
	if _, err := s.RetryChainPayment(ctx, p.ID, storetest.By); err != nil {
		t.Fatal(err)
	}
	if _, err := signFor(t, s, p, "6"); err != nil {
		t.Error(err)
	}
	wantBalance(t, s, exchange.Owned(exchange.AccCustody, m.VendorWallet.ID, money.TRX), "994", "0")
	wantBooks(t, s)
}

// lookedAgain is wantHold after the watch has looked at the network, which it did all the time.
func lookedAgain(t *testing.T, s *store.Store, p exchange.ChainPayment, want exchange.SigningHold) {
	t.Helper()
	look(t, s, 104, time.Now())
	storetest.Exec(t, s, `UPDATE deposit_looks SET resumed_at = NULL`)
	wantHold(t, s, p, want)
}

// What moved money after all is not paid again, although it was reported to have lacked gas.
func TestOutOfGasThatMoved(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), started(t)
	m := storetest.NewMarket(t, s)
	_, p := paid(t, s, m)
	a := sign(t, s, p)
	if _, err := s.RecordOutOfGas(ctx, a.ID, 101, "a-101", trx("2"), "OUT_OF_ENERGY", 3); err != nil {
		t.Fatal(err)
	}
	finalBlock(t, s, scanOf(blockOf("a", 101), moveOf(a.TxID, p.FromAddress, p.ToAddress, p.Amount)))
	lookedAgain(t, s, p, exchange.HoldUnexpected)
	_, err := signFor(t, s, p, "6")
	wantFault(t, err, exchange.CodeStateConflict)
	open, err := s.OpenQuarantine(ctx, exchange.Tron)
	if err != nil || !slices.ContainsFunc(open, func(q exchange.QuarantinedMovement) bool {
		return q.TxID == a.TxID && q.Reason == exchange.QuarantineUnexpected
	}) {
		t.Errorf("alarms: %+v, %v", open, err)
	}
}

// A node that says that a transaction lacked gas may be wrong about the block too, which the watch has read long ago. The payment is
// signed again only when the watch has read all blocks that could take the transaction.
func TestOutOfGasThatWasNotTrue(t *testing.T) {
	t.Parallel()
	for name, moved := range map[string]bool{"it moved later": true, "it lapsed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, s := t.Context(), started(t)
			_, p := paid(t, s, storetest.NewMarket(t, s))
			finalBlock(t, s, scanOf(blockOf("a", 101)))
			id := storetest.NewID(t)
			a, err := s.SaveSignedAttempt(ctx, exchange.ChainAttempt{
				ID: id, PaymentID: p.ID, Network: p.Network, TxID: txID(id), Raw: []byte("signed"), ExpiresAt: blockOf("a", 103).Time, FeeLimit: trx("6"),
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.RecordOutOfGas(ctx, a.ID, 101, "a-101", trx("2"), "OUT_OF_ENERGY", 3); err != nil {
				t.Fatal(err)
			}
			lookedAgain(t, s, p, exchange.HoldWatch)
			_, err = signFor(t, s, p, "6")
			wantFault(t, err, exchange.CodeStateConflict)
			last := scanOf(blockOf("a", 102))
			if moved {
				last.Movements = []exchange.ChainMovement{moveOf(a.TxID, p.FromAddress, p.ToAddress, p.Amount)}
			}
			finalBlock(t, s, last)
			if _, err = signFor(t, s, p, "6"); err == nil {
				t.Error("signed again while a block may take the first transaction")
			}
			finalBlock(t, s, scanOf(blockOf("a", 103)))
			want := exchange.HoldNone
			if moved {
				want = exchange.HoldUnexpected
			}
			lookedAgain(t, s, p, want)
			if _, err = signFor(t, s, p, "6"); (err == nil) == moved {
				t.Errorf("signed again: %v", err)
			}
		})
	}
}
