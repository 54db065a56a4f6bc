package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// haul is payments whose fees are paid by coins that the ledger does not know.
type haul struct {
	t    *testing.T
	s    *store.Store
	m    storetest.Market
	deck map[uint64][]exchange.ChainMovement // movements into the wallet, by block
}

func newHaul(t *testing.T) *haul {
	t.Helper()
	s := started(t)
	m := storetest.NewMarketWith(t, s, exchange.Tron, func(owner exchange.User) exchange.Wallet { return storetest.Wallet(t, s, owner) })
	return &haul{t: t, s: s, m: m, deck: map[uint64][]exchange.ChainMovement{}}
}

// sent is a transaction of a new payment from the vendor's wallet, with a zero fee limit.
func (h *haul) sent() exchange.ChainAttempt {
	h.t.Helper()
	_, p := paid(h.t, h.s, h.m)
	id := storetest.NewID(h.t)
	a, err := h.s.SaveSignedAttempt(h.t.Context(), exchange.ChainAttempt{
		ID: id, PaymentID: p.ID, Network: p.Network, TxID: txID(id), Raw: []byte("signed"), ExpiresAt: time.Now().Add(time.Hour),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

// costs books the outcome of a transaction, twice.
func (h *haul) costs(a exchange.ChainAttempt, ok bool, block uint64, fee string) {
	h.t.Helper()
	for range 2 {
		if _, err := h.s.RecordFinal(h.t.Context(), a.ID, ok, block, fmt.Sprintf("a-%d", block), trx(fee), "OUT_OF_ENERGY"); err != nil {
			h.t.Fatal(err)
		}
	}
}

// passed makes the watch read all blocks up to one, twice.
func (h *haul) passed(last uint64) {
	h.t.Helper()
	c, _, err := h.s.DepositCursor(h.t.Context(), exchange.Tron)
	if err != nil {
		h.t.Fatal(err)
	}
	for n := c.Final.Number + 1; n <= last; n++ {
		for range 2 {
			finalBlock(h.t, h.s, scanOf(blockOf("a", n), h.deck[n]...))
		}
	}
}

func (h *haul) brings(block uint64, tx string, to exchange.Wallet, amount string) {
	h.deck[block] = append(h.deck[block], moveOf(tx, stranger, to.Address, trx(amount)))
}

// wants compares the vendor's wallet with the chain's balance.
func (h *haul) wants(w exchange.Wallet, custody, suspense string, at map[uint64]string) {
	h.t.Helper()
	wantBalance(h.t, h.s, exchange.Owned(exchange.AccCustody, w.ID, money.TRX), custody, "0")
	wantBalance(h.t, h.s, exchange.House(exchange.AccSuspense, money.TRX), suspense, "0")
	for block, amount := range at {
		for _, c := range compare(h.t, h.s, readingAt(w, block, trx(amount))) {
			if !c.Agrees() {
				h.t.Errorf("at block %d the chain has %s and the ledger %s (deferred: %t)", block, c.Amount, c.Ledger, c.Deferred)
			}
		}
	}
	if open, err := h.s.OpenQuarantine(h.t.Context(), exchange.Tron); err != nil || len(open) != 0 {
		h.t.Errorf("alarms: %+v, %v", open, err)
	}
	wantBooks(h.t, h.s)
}

// A fee paid by coins that came before it is booked once, and so are the coins, whichever is first.
func TestFoundGasIsExplainedByItsDeposit(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(h *haul, a exchange.ChainAttempt, ok bool){
		"fee first":     func(h *haul, a exchange.ChainAttempt, ok bool) { h.costs(a, ok, 105, "3"); h.passed(110) },
		"deposit first": func(h *haul, a exchange.ChainAttempt, ok bool) { h.passed(110); h.costs(a, ok, 105, "3") },
		"between": func(h *haul, a exchange.ChainAttempt, ok bool) {
			h.passed(102)
			h.costs(a, ok, 105, "3")
			h.passed(110)
		},
		"at once": func(h *haul, a exchange.ChainAttempt, ok bool) {
			h.passed(102)
			done := make(chan struct{})
			go func() { defer close(done); h.passed(103) }()
			h.costs(a, ok, 105, "3")
			<-done
			h.passed(110)
		},
		"seen, gone and back": func(h *haul, a exchange.ChainAttempt, ok bool) {
			h.passed(101)
			early := scanOf(blockOf("b", 102), h.deck[103]...)
			early.Block.Parent = "a-101"
			seenBlock(h.t, h.s, early)
			h.costs(a, ok, 105, "3")
			if err := h.s.DropSeenBlock(h.t.Context(), exchange.Tron, early.Block); err != nil {
				h.t.Fatal(err)
			}
			h.passed(110)
		},
	} {
		for _, ok := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%t", name, ok), func(t *testing.T) {
				t.Parallel()
				h := newHaul(t)
				a := h.sent()
				h.brings(103, "coins", h.m.VendorWallet, "5")
				order(h, a, ok)
				h.wants(h.m.VendorWallet, "2", "0", map[uint64]string{102: "0", 103: "5", 104: "5", 105: "2", 110: "2"})
				wantBalance(t, h.s, owed(h.m.VendorWallet, money.TRX), "5", "0")
			})
		}
	}
}

// Each of several fees and deposits is counted once, in part where it does not suffice, and deposits after a fee
// explain nothing of it.
func TestFoundGasIsExplainedInParts(t *testing.T) {
	t.Parallel()
	h := newHaul(t)
	first, second := h.sent(), h.sent()
	w := h.m.VendorWallet
	h.brings(102, "two", w, "2")
	h.brings(104, "six", w, "6")
	h.brings(108, "late", w, "9")
	h.costs(first, true, 103, "1.5")
	h.costs(second, false, 105, "4")
	h.passed(101)
	h.wants(w, "0", "5.5", nil)
	h.passed(103) // two explain the first fee and half a coin of the second
	h.wants(w, "0", "3.5", map[uint64]string{101: "0", 102: "2", 103: "0.5"})
	h.passed(110)
	h.wants(w, "11.5", "0", map[uint64]string{101: "0", 102: "2", 103: "0.5", 104: "6.5", 105: "2.5", 107: "2.5", 108: "11.5"})

	third := h.sent()
	h.brings(112, "too late", w, "20")
	h.costs(third, true, 111, "12") // half a coin more than there was, of unknown origin
	h.passed(115)
	h.wants(w, "20", "0.5", nil)
}

// The house's gas wallet pays the coins that it sends, and the fee, from what it received.
func TestFoundGasOfTheHouse(t *testing.T) {
	t.Parallel()
	h := newHaul(t)
	gas := houseWallet(t, h.s, exchange.HouseGas)
	_, p := paid(t, h.s, h.m)
	top, err := h.s.ApproveTopUp(t.Context(), p.ID, trx("5"), 3)
	if err != nil {
		t.Fatal(err)
	}
	a := sign(t, h.s, top)
	h.brings(103, "coins", gas, "100")
	h.costs(a, true, 105, "1")
	h.wants(gas, "0", "6", nil)
	h.deck[105] = append(h.deck[105], moveOf(a.TxID, gas.Address, h.m.VendorWallet.Address, trx("5")))
	h.passed(110)
	h.wants(gas, "94", "0", map[uint64]string{102: "0", 103: "100", 105: "94"})
	wantBalance(t, h.s, exchange.House(exchange.AccCapital, money.TRX), "100", "0")
}

// A fee that a top-up paid, of a transaction that is booked before the top-up, is booked once, and so is the top-up.
func TestFoundGasIsExplainedByATopUp(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(pay, topUp func()){
		"fee first": func(pay, topUp func()) { pay(); topUp() }, "top-up first": func(pay, topUp func()) { topUp(); pay() },
		"at once": func(pay, topUp func()) {
			done := make(chan struct{})
			go func() { defer close(done); topUp() }()
			pay()
			<-done
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHaul(t)
			w, gas := h.m.VendorWallet, houseWallet(t, h.s, exchange.HouseGas)
			storetest.Gas(t, h.s, gas.ID, trx("100"))
			spends := h.sent()
			_, p := paid(t, h.s, h.m)
			top, err := h.s.ApproveTopUp(t.Context(), p.ID, trx("5"), 3)
			if err != nil {
				t.Fatal(err)
			}
			a := sign(t, h.s, top)
			h.deck[103] = append(h.deck[103], moveOf(a.TxID, gas.Address, w.Address, trx("5")))
			h.passed(102)
			order(func() { h.costs(spends, true, 105, "3") }, func() { h.costs(a, true, 103, "1") })
			h.passed(110)
			h.wants(w, "2", "0", map[uint64]string{102: "0", 103: "5", 105: "2"})
			h.wants(gas, "94", "0", nil)
		})
	}
}

// The same coins can't be taken back twice, nor other coins instead.
func TestFoundGasIsNeverTakenBackTwice(t *testing.T) {
	t.Parallel()
	h := newHaul(t)
	a := h.sent()
	h.brings(103, "coins", h.m.VendorWallet, "5")
	h.brings(103, "other coins", h.m.CustomerWallet, "5")
	h.brings(107, "later coins", h.m.VendorWallet, "5")
	h.costs(a, true, 105, "8")
	h.passed(110)
	h.wants(h.m.VendorWallet, "5", "3", nil)
	db := storetest.Owner(t, h.s)
	for _, query := range []string{
		`UPDATE gas_found SET netted = netted + 1`, `UPDATE gas_found SET netted = 0`, `UPDATE gas_found SET amount = amount + 1`, `DELETE FROM gas_found`,
		`UPDATE gas_nettings SET amount = 1`, `DELETE FROM gas_nettings`, `TRUNCATE gas_found CASCADE`,
		`INSERT INTO gas_nettings SELECT d.id, NULL, f.attempt_id, 1, now() FROM chain_deposits d, gas_found f WHERE d.tx_id = 'other coins'`,
		`INSERT INTO gas_nettings SELECT d.id, NULL, f.attempt_id, 1, now() FROM chain_deposits d, gas_found f WHERE d.tx_id = 'later coins'`,
		`INSERT INTO gas_nettings SELECT d.id, NULL, f.attempt_id, 1, now() FROM chain_deposits d, gas_found f WHERE d.tx_id = 'coins'`,
		`INSERT INTO gas_nettings SELECT NULL, p.id, f.attempt_id, 1, now() FROM chain_payments p, gas_found f`,
	} {
		_, err := db.ExecContext(t.Context(), query)
		if pe, ok := errors.AsType[*pq.Error](err); !ok || (pe.Code != "KV002" && pe.Constraint != "gas_found_netted") {
			t.Errorf("%s: %v, want a refusal", query, err)
		}
	}
}
