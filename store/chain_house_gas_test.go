package store_test

import (
	"sync"
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// signFor stores a transaction with a given fee limit.
func signFor(t *testing.T, s *store.Store, p exchange.ChainPayment, limit string) (exchange.ChainAttempt, error) {
	t.Helper()
	id := storetest.NewID(t)
	return s.SaveSignedAttempt(t.Context(), exchange.ChainAttempt{
		ID: id, PaymentID: p.ID, Network: p.Network, TxID: txID(id), Raw: []byte("signed"), ExpiresAt: testsBegan, FeeLimit: trx(limit),
	})
}

func wantShare(t *testing.T, s *store.Store, p exchange.ChainPayment, want string) {
	t.Helper()
	got, bounded, err := s.HouseGas(t.Context(), p)
	if err != nil || !bounded || !got.Equal(trx(want)) {
		t.Errorf("the house has %s (bounded: %t), want %s: %v", got, bounded, want, err)
	}
}

// Coins of a wallet's owner pay no fee. The house's coins do, and their rest stays the house's.
func TestFeesOutOfTheHousesShareAlone(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), started(t)
	m := storetest.NewMarketWith(t, s, exchange.Tron, func(owner exchange.User) exchange.Wallet { return storetest.Wallet(t, s, owner) })
	gas := houseWallet(t, s, exchange.HouseGas)
	storetest.Gas(t, s, gas.ID, trx("100"))
	_, p := paid(t, s, m)
	_, other := paid(t, s, m)
	finalBlock(t, s, scanOf(blockOf("a", 101), moveOf("own coins", stranger, m.VendorWallet.Address, trx("50"))))
	wantShare(t, s, p, "0")
	_, err := signFor(t, s, p, "0.000001")
	wantFault(t, err, exchange.CodeConflict)

	top, err := s.ApproveTopUp(ctx, p.ID, trx("10"), 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, bounded, err := s.HouseGas(ctx, top); err != nil || bounded {
		t.Errorf("the house's own wallet is bounded: %t, %v", bounded, err)
	}
	brought, err := signFor(t, s, top, "2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RecordFinal(ctx, brought.ID, true, 102, "a-102", trx("1"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	wantShare(t, s, p, "10")
	_, err = signFor(t, s, p, "10.000001")
	wantFault(t, err, exchange.CodeConflict)
	a, err := signFor(t, s, p, "6")
	if err != nil {
		t.Fatal(err)
	}
	wantShare(t, s, p, "10") // its own transaction is not in its way
	wantShare(t, s, other, "4")
	_, err = signFor(t, s, other, "5")
	wantFault(t, err, exchange.CodeConflict)
	if _, err := s.RecordFinal(ctx, a.ID, true, 103, "a-103", trx("3"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	wantShare(t, s, other, "7")
	if o, err := s.Order(ctx, store.Everything(), p.ObjectID); err != nil || !o.NetworkFee.Equal(trx("4")) {
		t.Errorf("with the gas that was brought the networks took %s, %v", o.NetworkFee, err)
	}
	if _, err := signFor(t, s, other, "5"); err != nil {
		t.Error(err)
	}
	wantBalance(t, s, exchange.Owned(exchange.AccCustody, m.VendorWallet.ID, money.TRX), "57", "0")
	wantBalance(t, s, owed(m.VendorWallet, money.TRX), "50", "0")
	wantBooks(t, s)
}

// Of two concurrently signed payments, one gets the coins that suffice for one.
func TestFeesOfPaymentsSignedAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarketWith(t, s, exchange.Tron, func(owner exchange.User) exchange.Wallet { return storetest.Wallet(t, s, owner) })
	storetest.Gas(t, s, m.VendorWallet.ID, trx("10"))
	const payments = 4
	var wg sync.WaitGroup
	results := make(chan error, payments)
	for range payments {
		_, p := paid(t, s, m)
		wg.Go(func() {
			_, err := signFor(t, s, p, "6")
			results <- err
		})
	}
	wg.Wait()
	close(results)
	signed := 0
	for err := range results {
		if err == nil {
			signed++
			continue
		}
		wantFault(t, err, exchange.CodeConflict)
	}
	if signed != 1 {
		t.Errorf("%d payments were signed, want 1", signed)
	}
}

// If coins of the owner paid a fee anyway, the house owes them to the wallet.
func TestTheHouseOwesWhatItTook(t *testing.T) {
	t.Parallel()
	h := newHaul(t)
	a := h.sent()
	h.brings(103, "coins", h.m.VendorWallet, "5")
	h.passed(104)
	h.costs(a, true, 105, "3")
	h.passed(106)
	h.wants(h.m.VendorWallet, "2", "0", map[uint64]string{106: "2"})
	_, p := paid(t, h.s, h.m)
	wantShare(t, h.s, p, "-3")
}
