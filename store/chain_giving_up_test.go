package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// watchAt puts the watch over a network to a final block.
func watchAt(t *testing.T, s *store.Store, n exchange.Network, number uint64, at time.Time) {
	t.Helper()
	if _, err := s.StartDeposits(t.Context(), n, exchange.ChainBlock{Number: number, ID: "w", Parent: "v", Time: at}); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, s, fmt.Sprintf(`ALTER TABLE deposit_cursors DISABLE TRIGGER USER; UPDATE deposit_cursors SET final_number = %d, final_time = '%s' WHERE network = '%s';
		ALTER TABLE deposit_cursors ENABLE TRIGGER USER`, number, at.UTC().Format(time.RFC3339Nano), n))
}

// outlived has the watch read all that could be carried out of what was signed on TRON.
func outlived(t *testing.T, s *store.Store) {
	t.Helper()
	watchAt(t, s, exchange.Tron, 5000, time.Now().Add(100*24*time.Hour))
}

// wantUnread refuses to give a payment up that may have moved money, to the store and to each login that may change payments.
func wantUnread(t *testing.T, s *store.Store, p exchange.ChainPayment, giveUp func() error) {
	t.Helper()
	if err := giveUp(); exchange.CodeOf(err) != exchange.CodeUnavailable || !errors.Is(err, exchange.ErrUnread) {
		t.Errorf("the payment is given up: %v", err)
	}
	p, err := s.ChainPayment(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if p.Status != exchange.ChainParked {
		if p, err = s.ParkChainPayment(t.Context(), p.ID, "no energy"); err != nil {
			t.Fatal(err)
		}
	}
	for _, role := range []store.Role{store.RoleAPI, store.RoleFlows, store.RoleMomo, store.RoleChain, store.RoleSigner} {
		if _, err := storetest.As(t, s, role).ExecContext(t.Context(), `UPDATE chain_payments SET status = 'cancelled', version = version + 1 WHERE id = $1`, p.ID); sqlState(err) != "KV001" {
			t.Errorf("%s gives the payment up: %v", role, err)
		}
	}
}

// That a transaction failed is one node's word. Its payment is given up when the watch has read its block, all that was final when the node
// said so, and the whole life of the transaction, which each network counts its own way.
func TestFailedPaymentsAreGivenUpWhenTheyAreRead(t *testing.T) {
	t.Parallel()
	const soon, late = time.Minute, 11 * time.Minute
	type reading struct {
		number uint64
		ahead  time.Duration
	}
	for n, c := range map[exchange.Network]struct {
		tooFew []reading
		enough reading
	}{
		exchange.Tron:     {[]reading{{100, late}, {101, -time.Hour}, {101, soon}}, reading{101, late}},
		exchange.Ethereum: {[]reading{{100, late}, {101, -time.Hour}}, reading{101, soon}},
		exchange.Solana:   {[]reading{{100, late}, {101, late}, {1100, late}, {1101, -time.Hour}}, reading{1101, soon}},
	} {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			ctx, s := t.Context(), storetest.New(t)
			if n == exchange.Solana {
				storetest.Gas(t, s, storetest.GasWallet(t, s, n).ID, money.Must(money.SOL, "5"))
			}
			o, p := paid(t, s, storetest.NewMarketOn(t, s, n))
			id := storetest.NewID(t)
			a := exchange.ChainAttempt{ID: id, PaymentID: p.ID, Network: n, TxID: txID(id), Raw: []byte("signed")}
			switch n {
			case exchange.Tron:
				a.ExpiresAt, a.FeeLimit = time.Now().Add(10*time.Minute), trx("6")
			case exchange.Ethereum:
				a = numbered(t, p, 7)
			case exchange.Solana:
				a.LastValidHeight = 90
			}
			a, err := s.SaveSignedAttempt(ctx, a)
			if err == nil {
				_, err = s.RecordFinal(ctx, a.ID, false, 101, "a-101", money.Must(n.NativeCoin(), "0.001"), "REVERT")
			}
			if err != nil {
				t.Fatal(err)
			}
			giveUp := func() error {
				_, _, err := s.RefundOrder(ctx, o.ID, "it failed", storetest.By)
				return err
			}
			wantUnread(t, s, p, giveUp) // no watch reads the network
			for _, r := range c.tooFew {
				watchAt(t, s, n, r.number, time.Now().Add(r.ahead))
				wantUnread(t, s, p, giveUp)
			}
			watchAt(t, s, n, c.enough.number, time.Now().Add(c.enough.ahead))
			for range 2 {
				if err := giveUp(); err != nil {
					t.Fatal(err)
				}
			}
			if p, err = s.ChainPayment(ctx, p.ID); err != nil || p.Status != exchange.ChainCancelled {
				t.Errorf("the payment is %s, %v", p.Status, err)
			}
			wantBooks(t, s)
		})
	}
}

// A transaction that a node called failed is final after all: the customer keeps the crypto, and gets no refund beside it.
func TestPaymentsThatOneNodeCallsFailed(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), started(t)
	o, p := paid(t, s, storetest.NewMarket(t, s))
	id := storetest.NewID(t)
	tx, err := s.SaveSignedAttempt(ctx, exchange.ChainAttempt{
		ID: id, PaymentID: p.ID, Network: p.Network, TxID: txID(id), Raw: []byte("signed"), ExpiresAt: blockOf("a", 200).Time, FeeLimit: trx("6"),
	})
	if err != nil {
		t.Fatal(err)
	}
	finalBlock(t, s, scanOf(blockOf("a", 101)))
	if _, err := s.RecordFinal(ctx, tx.ID, false, 101, "a-101", trx("1"), "REVERT"); err != nil { // the node is wrong about the block too
		t.Fatal(err)
	}
	giveUp := func() error {
		_, _, err := s.RefundOrder(ctx, o.ID, "it failed", storetest.By)
		return err
	}
	wantUnread(t, s, p, giveUp)
	finalBlock(t, s, scanOf(blockOf("a", 102), moveOf(tx.TxID, p.FromAddress, p.ToAddress, p.Amount)))
	wantFault(t, giveUp(), exchange.CodeStateConflict)
	outlived(t, s)
	wantFault(t, giveUp(), exchange.CodeStateConflict)
}

// Each way by which the money of a failed payment goes elsewhere waits for the same.
func TestTransfersThatFailedAreGivenUpWhenTheyAreRead(t *testing.T) {
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
	if _, err := s.RecordFinal(ctx, sign(t, s, pay).ID, false, 101, "a-101", trx("1"), "REVERT"); err != nil {
		t.Fatal(err)
	}
	giveUp := func() error {
		_, err := s.GiveUpTransfer(ctx, f.ID, storetest.By)
		return err
	}
	wantUnread(t, s, pay, giveUp)
	outlived(t, s)
	if err := giveUp(); err != nil {
		t.Error(err)
	}
	wantBooks(t, s)
}

// What was never signed, or is proven impossible, is given up at once, whatever the watch has read.
func TestUnsignedPaymentsAreGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(s *store.Store, p exchange.ChainPayment) error{
		"never signed": func(*store.Store, exchange.ChainPayment) error { return nil },
		"parked": func(s *store.Store, p exchange.ChainPayment) error {
			_, err := s.ParkChainPayment(t.Context(), p.ID, "no energy")
			return err
		},
		"impossible": func(s *store.Store, p exchange.ChainPayment) error {
			_, err := s.RecordExpired(t.Context(), sign(t, s, p).ID, "absent")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			o, p := paid(t, s, storetest.NewMarket(t, s))
			if err := before(s, p); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.RefundOrder(t.Context(), o.ID, "it can't be sent", storetest.By); err != nil {
				t.Error(err)
			}
		})
	}
}

// A database that was put back does not know what it signed: it gives nothing up before two officers have released it, nor before the watch
// has read the network again.
func TestNothingIsGivenUpInADatabaseThatWasPutBack(t *testing.T) {
	t.Parallel()
	t.Run("not released", func(t *testing.T) {
		t.Parallel()
		s := storetest.New(t)
		payout(t, s, first(underpaid(t, s))) // the first request releases the database
		o, p := paid(t, s, storetest.NewMarket(t, s))
		giveUp := func() error {
			_, _, err := s.RefundOrder(t.Context(), o.ID, "put back", storetest.By)
			return err
		}
		storetest.PutBack(t, s)
		wantUnread(t, s, p, giveUp)
		released(t, s)
		if err := giveUp(); err != nil {
			t.Error(err)
		}
	})
	t.Run("not read", func(t *testing.T) {
		t.Parallel()
		s, c := timed(t)
		m := storetest.NewMarket(t, s)
		_, before := paid(t, s, m)
		look(t, s, 100, c.now())
		sign(t, s, before)
		o, p := paid(t, s, m)
		giveUp := func() error {
			_, _, err := s.RefundOrder(t.Context(), o.ID, "put back", storetest.By)
			return err
		}
		storetest.Exec(t, s, `UPDATE deposit_looks SET identity = 'before'`)
		wantUnread(t, s, p, giveUp)
		look(t, s, 101, c.now())
		wantUnread(t, s, p, giveUp) // what was signed may still come
		look(t, s, 101, c.now().Add(12*time.Minute))
		wantUnread(t, s, p, giveUp) // outlived, and not read up to there
		finalBlock(t, s, scanOf(blockOf("a", 101)))
		if err := giveUp(); err != nil {
			t.Error(err)
		}
	})
}
