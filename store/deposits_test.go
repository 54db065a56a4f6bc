package store_test

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// testsBegan is the time of the first test block. It lies in the future, however long the tests run: an address of the
// escrow pool gets nothing from before its lease.
var testsBegan = time.Now().Add(time.Hour).UTC().Truncate(time.Second)

// blockOf is block n of a branch of a chain.
func blockOf(branch string, n uint64) exchange.ChainBlock {
	return exchange.ChainBlock{
		Number: n, ID: fmt.Sprintf("%s-%d", branch, n), Parent: fmt.Sprintf("%s-%d", branch, n-1),
		Time: testsBegan.Add(time.Duration(n) * time.Second),
	}
}

func scanOf(b exchange.ChainBlock, moved ...exchange.ChainMovement) exchange.BlockScan {
	return exchange.BlockScan{
		Network: exchange.Tron, Block: b, Movements: moved, Minimum: map[money.Asset]money.Amount{money.USDT: usdt("0.01"), money.TRX: trx("0.1")},
	}
}

func moveOf(tx string, from, to string, m money.Amount) exchange.ChainMovement {
	return exchange.ChainMovement{TxID: tx, From: from, To: to, Amount: m}
}

const stranger = "Tstranger0000000000000000000000000"

// started is a store whose deposits on TRON are read from after block 100 of branch a.
func started(t testing.TB) *store.Store {
	t.Helper()
	s := storetest.New(t)
	if _, err := s.StartDeposits(t.Context(), exchange.Tron, blockOf("a", 100)); err != nil {
		t.Fatal(err)
	}
	return s
}

func finalBlock(t testing.TB, s *store.Store, b exchange.BlockScan) exchange.DepositCursor {
	t.Helper()
	c, err := s.RecordFinalBlock(t.Context(), b)
	if err != nil {
		t.Fatalf("final block %d: %v", b.Block.Number, err)
	}
	return c
}

func seenBlock(t testing.TB, s *store.Store, b exchange.BlockScan) {
	t.Helper()
	if _, err := s.RecordSeenBlock(t.Context(), b); err != nil {
		t.Fatalf("seen block %d: %v", b.Block.Number, err)
	}
}

// deposits lists the movements of a transaction.
func deposits(t testing.TB, s *store.Store, tx string) []exchange.ChainDeposit {
	t.Helper()
	all, _, err := s.ListChainDeposits(t.Context(), store.ChainDepositFilter{TxID: tx}, store.Page{Number: 1, Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func wantDeposit(t testing.TB, s *store.Store, tx string, kind exchange.DepositKind, status exchange.ChainDepositStatus) exchange.ChainDeposit {
	t.Helper()
	all := deposits(t, s, tx)
	if len(all) != 1 || all[0].Kind != kind || all[0].Status != status {
		t.Fatalf("the deposit of %s is %+v, want %s and %s", tx, all, kind, status)
	}
	return all[0]
}

func houseWallet(t testing.TB, s *store.Store, purpose exchange.HousePurpose) exchange.Wallet {
	t.Helper()
	id := storetest.NewID(t)
	w, err := storetest.CreateWallet(t.Context(), s, exchange.WalletRequest{
		ID: id, OwnerType: exchange.OwnerTreasury, Purpose: purpose, Network: exchange.Tron, Asset: money.USDT, Type: exchange.Hot,
	}, "Thouse-"+id.String(), exchange.SealedKey{WalletID: id, Ciphertext: []byte("sealed"), MasterKey: "test", PublicKey: []byte("public"), Algorithm: "secp256k1"})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func custody(w exchange.Wallet) exchange.AccountRef {
	return exchange.Owned(exchange.AccCustody, w.ID, money.USDT)
}

func owed(w exchange.Wallet, a money.Asset) exchange.AccountRef {
	return exchange.Owned(exchange.AccWalletBalance, w.ID, a)
}

func eventsOf(t testing.TB, s *store.Store, id uuid.UUID) []string {
	t.Helper()
	rows, err := storetest.Owner(t, s).QueryContext(t.Context(), `SELECT type FROM events WHERE object_id = $1 ORDER BY cursor`, id)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return all
}

// A deposit is shown when it is seen, and booked when it is final, once.
func TestDepositIsBookedOnceAndOnlyWhenFinal(t *testing.T) {
	t.Parallel()
	s := started(t)
	customer := storetest.User(t, s, exchange.RoleCustomer)
	w := storetest.Wallet(t, s, customer)
	b := scanOf(blockOf("a", 101), moveOf("t1", stranger, w.Address, usdt("12.5")), moveOf("t2", stranger, "Telse", usdt("3")))
	for range 2 {
		seenBlock(t, s, b)
	}
	wantDeposit(t, s, "t1", exchange.DepositCredit, exchange.DepositSeen)
	wantBalance(t, s, custody(w), "0", "0")
	for range 2 {
		if c := finalBlock(t, s, b); c.Final.Number != 101 || c.LinkID != "a-101" {
			t.Errorf("the cursor is %+v", c)
		}
	}
	d := wantDeposit(t, s, "t1", exchange.DepositCredit, exchange.DepositFinal)
	if d.FinalAt.IsZero() || d.BlockID != "a-101" || d.WalletID != w.ID {
		t.Errorf("it is %+v", d)
	}
	wantBalance(t, s, custody(w), "12.5", "0")
	wantBalance(t, s, owed(w, money.USDT), "12.5", "0")
	if got := fmt.Sprint(eventsOf(t, s, d.ID)); got != "[chain_deposit.seen chain_deposit.final]" {
		t.Errorf("the events are %s", got)
	}
	var notices int
	err := storetest.Owner(t, s).QueryRowContext(t.Context(), `SELECT count(*) FROM events WHERE object_id = $1 AND owner_id = $2`, d.ID, customer.ID).Scan(&notices)
	if err != nil || notices != 2 {
		t.Errorf("the owner was notified %d times, %v", notices, err)
	}
	if n := len(deposits(t, s, "t2")); n != 0 {
		t.Errorf("a movement between strangers was stored %d times", n)
	}
	wantBooks(t, s)
}

// The kind of a movement depends on its wallet.
func TestDepositsByWallet(t *testing.T) {
	t.Parallel()
	s := started(t)
	vendor := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleVendor))
	gas, treasury, escrow := houseWallet(t, s, exchange.HouseGas), houseWallet(t, s, exchange.HouseTreasury), houseWallet(t, s, exchange.HouseEscrow)
	leased := houseWallet(t, s, exchange.HouseEscrow)
	if _, err := s.AwaitDeposits(t.Context(), exchange.Tron, leased.Address, "off-ramp:1", time.Now()); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		to   exchange.Wallet
		m    money.Amount
		kind exchange.DepositKind
		owed exchange.AccountRef
	}{
		{vendor, usdt("1"), exchange.DepositCredit, owed(vendor, money.USDT)},
		{vendor, trx("2"), exchange.DepositCredit, owed(vendor, money.TRX)},
		{treasury, usdt("4"), exchange.DepositHouse, owed(treasury, money.USDT)},
		{treasury, trx("4"), exchange.DepositHouse, exchange.House(exchange.AccCapital, money.TRX)},
		{gas, trx("8"), exchange.DepositHouse, exchange.House(exchange.AccCapital, money.TRX)},
		{gas, usdt("16"), exchange.DepositUnmatched, exchange.House(exchange.AccSuspense, money.USDT)},
		{escrow, usdt("32"), exchange.DepositUnmatched, exchange.House(exchange.AccSuspense, money.USDT)},
		{leased, usdt("64"), exchange.DepositAwaited, exchange.House(exchange.AccSuspense, money.USDT)},
		{vendor, usdt("0.000001"), exchange.DepositCredit, owed(vendor, money.USDT)},
		{vendor, usdt("0"), exchange.DepositEmpty, owed(vendor, money.USDT)},
	} {
		before, err := s.Account(t.Context(), c.owed)
		if err != nil {
			t.Fatal(err)
		}
		tx := fmt.Sprintf("t%d", i)
		finalBlock(t, s, scanOf(blockOf("a", 101+uint64(i)), moveOf(tx, stranger, c.to.Address, c.m)))
		d := wantDeposit(t, s, tx, c.kind, exchange.DepositFinal)
		after, err := s.Account(t.Context(), c.owed)
		if err != nil {
			t.Fatal(err)
		}
		if got := after.Posted.Sub(before.Posted); !got.Equal(c.m) {
			t.Errorf("%s: %s were booked of %s", tx, got, c.m)
		}
		if (d.ExceptionID != uuid.Nil) != (c.kind == exchange.DepositUnmatched) {
			t.Errorf("%s: the exception is %s", tx, d.ExceptionID)
		}
	}
	all, n, err := s.ListExceptions(t.Context(), store.ExceptionFilter{Kind: exchange.ExcUnmatched}, store.Page{Number: 1, Size: 10})
	if err != nil || n != 2 || all[0].Status != exchange.ExcOpen {
		t.Errorf("the exceptions are %+v, %v", all, err)
	}
	if _, err := s.ResolveException(t.Context(), all[0].ID, exchange.ExcAccepted, "a gift", storetest.By); err != nil {
		t.Errorf("an unmatched deposit can't be resolved: %v", err)
	}
	wantBooks(t, s)
}

// A reorganisation takes back what was seen, and the transaction may come again in another block.
func TestDepositThatWasReorganisedAway(t *testing.T) {
	t.Parallel()
	s := started(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	seenBlock(t, s, scanOf(blockOf("a", 101), moveOf("back", stranger, w.Address, usdt("5")), moveOf("gone", stranger, w.Address, usdt("7"))))
	if _, err := s.RecordSeenBlock(t.Context(), scanOf(blockOf("b", 102))); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("a block of another branch: %v", err)
	}
	for range 2 {
		if err := s.DropSeenBlock(t.Context(), exchange.Tron, blockOf("a", 101)); err != nil {
			t.Fatal(err)
		}
	}
	wantDeposit(t, s, "back", exchange.DepositCredit, exchange.DepositOrphaned)
	b := blockOf("b", 101)
	b.Parent = "a-100"
	seenBlock(t, s, scanOf(b))
	seenBlock(t, s, scanOf(blockOf("b", 102), moveOf("back", stranger, w.Address, usdt("6")))) // a contract may pay another amount
	wantDeposit(t, s, "back", exchange.DepositCredit, exchange.DepositSeen)
	finalBlock(t, s, scanOf(b))
	finalBlock(t, s, scanOf(blockOf("b", 102), moveOf("back", stranger, w.Address, usdt("6"))))
	d := wantDeposit(t, s, "back", exchange.DepositCredit, exchange.DepositFinal)
	wantDeposit(t, s, "gone", exchange.DepositCredit, exchange.DepositOrphaned)
	wantBalance(t, s, owed(w, money.USDT), "6", "0")
	if got := fmt.Sprint(eventsOf(t, s, d.ID)); got != "[chain_deposit.seen chain_deposit.orphaned chain_deposit.seen chain_deposit.final]" {
		t.Errorf("the events are %s", got)
	}
	wantBooks(t, s)
}

// A reorganisation noticed only after its blocks were final books nothing that vanished.
func TestFinalBlockOfAnotherBranch(t *testing.T) {
	t.Parallel()
	s := started(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	seenBlock(t, s, scanOf(blockOf("a", 101), moveOf("gone", stranger, w.Address, usdt("5"))))
	seenBlock(t, s, scanOf(blockOf("a", 102), moveOf("gone too", stranger, w.Address, usdt("5"))))
	b := blockOf("b", 101)
	b.Parent = "a-100"
	c := finalBlock(t, s, scanOf(b, moveOf("new", stranger, w.Address, usdt("3"))))
	if c.Tip.Number != 101 || c.TipLink != "b-101" {
		t.Errorf("the tip is %+v", c.Tip)
	}
	for _, tx := range []string{"gone", "gone too"} {
		wantDeposit(t, s, tx, exchange.DepositCredit, exchange.DepositOrphaned)
	}
	wantBalance(t, s, owed(w, money.USDT), "3", "0")
	_, err := s.RecordFinalBlock(t.Context(), scanOf(blockOf("a", 102)))
	wantFault(t, err, exchange.CodeConflict) // its parent is not what was final
	_, err = s.RecordFinalBlock(t.Context(), scanOf(blockOf("b", 103)))
	wantFault(t, err, exchange.CodeStateConflict) // a gap
	finalBlock(t, s, exchange.BlockScan{Network: exchange.Tron, Block: exchange.ChainBlock{Number: 102, Skipped: true}})
	next := blockOf("b", 103)
	next.Parent = "b-101"
	finalBlock(t, s, scanOf(next, moveOf("gone", stranger, w.Address, usdt("5"))))
	wantBalance(t, s, owed(w, money.USDT), "8", "0")
	wantBooks(t, s)
}

// One movement that can't be booked is set aside; the others of its block are booked.
func TestBadMovementsStopNothing(t *testing.T) {
	t.Parallel()
	s := started(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	units, _ := new(big.Int).SetString("9"+strings.Repeat("0", 30), 10)
	huge := money.FromUnits(money.TRX, units) // above what a column takes
	b := scanOf(blockOf("a", 101),
		moveOf("negative", stranger, w.Address, usdt("5").Neg()), moveOf("other coin", stranger, w.Address, money.Must(money.ETH, "1")),
		moveOf("good", stranger, w.Address, usdt("5")), moveOf("good", stranger, w.Address, usdt("5")),
		moveOf("huge", stranger, w.Address, huge), moveOf("good too", stranger, w.Address, usdt("6")))
	b.Unreadable = []exchange.UnreadableMovement{{TxID: "odd", Detail: "31 bytes of data"}}
	finalBlock(t, s, b)
	wantBalance(t, s, owed(w, money.USDT), "11", "0")
	open, err := s.OpenQuarantine(t.Context(), exchange.Tron)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]exchange.QuarantineReason{}
	for _, q := range open {
		got[q.TxID] = q.Reason
	}
	for tx, why := range map[string]exchange.QuarantineReason{
		"odd": exchange.QuarantineUnreadable, "negative": exchange.QuarantineInvalid, "other coin": exchange.QuarantineInvalid,
		"good": exchange.QuarantineInvalid, "huge": exchange.QuarantineRefused,
	} {
		if got[tx] != why {
			t.Errorf("%s was set aside as %q, want %q", tx, got[tx], why)
		}
	}
	if len(open) != 5 {
		t.Errorf("%d movements were set aside", len(open))
	}
	admin := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	waits, err := s.ProposeSettlement(t.Context(), open[0].ID, uuid.Nil, "looked at it", admin)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.ConfirmChange(t.Context(), waits.ID, "", admin)
	wantFault(t, err, exchange.CodeForbidden)
	if err := storetest.Agreed(t, s)(waits, nil); err != nil {
		t.Fatal(err)
	}
	for _, id := range []uuid.UUID{open[0].ID, storetest.NewID(t)} {
		_, err = s.ProposeSettlement(t.Context(), id, uuid.Nil, "x", admin)
		wantFault(t, err, exchange.CodeNotFound)
	}
	if _, err := storetest.Owner(t, s).ExecContext(t.Context(), `UPDATE deposit_quarantine SET settled_at = now(), note = 'x' WHERE settled_at IS NULL`); sqlState(err) != "KV006" {
		t.Errorf("settled by nobody: %v", err)
	}
	if left, err := s.OpenQuarantine(t.Context(), exchange.Tron); err != nil || len(left) != 4 {
		t.Errorf("%d are left, %v", len(left), err)
	}
	wantBooks(t, s)
}

// An unaccounted outgoing movement raises an alarm, and nothing is booked.
func TestMoneyThatLeavesWithoutUs(t *testing.T) {
	t.Parallel()
	s := started(t)
	from := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	to := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	storetest.Deposit(t, s, from.ID, usdt("10"))
	b := scanOf(blockOf("a", 101), moveOf("theft", from.Address, stranger, usdt("4")), moveOf("inside", from.Address, to.Address, usdt("3")),
		moveOf("poison", from.Address, stranger, usdt("0")))
	seenBlock(t, s, b)
	if open, err := s.OpenQuarantine(t.Context(), exchange.Tron); err != nil || len(open) != 2 || open[0].Reason != exchange.QuarantineOutgoing {
		t.Errorf("the alarms are %+v, %v", open, err)
	}
	finalBlock(t, s, b)
	wantDeposit(t, s, "theft", exchange.DepositOutgoing, exchange.DepositFinal)
	wantDeposit(t, s, "inside", exchange.DepositUnmatched, exchange.DepositFinal)
	wantDeposit(t, s, "poison", exchange.DepositEmpty, exchange.DepositFinal)
	wantBalance(t, s, custody(from), "10", "0") // reconciliation reports the difference
	wantBalance(t, s, custody(to), "3", "0")
	wantBalance(t, s, owed(to, money.USDT), "0", "0")
	if open, err := s.OpenQuarantine(t.Context(), exchange.Tron); err != nil || len(open) != 2 {
		t.Errorf("%d alarms, %v", len(open), err)
	}
	wantBooks(t, s)
}

// Only its completion books a payment between our wallets, whichever of completion and watch is first.
func TestOwnPaymentsAreBookedByTheirCompletion(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(t *testing.T, completion, watch func(context.Context) error){
		"watch first":      oneByOne(false),
		"completion first": oneByOne(true),
		"at once":          sideBySide,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := started(t)
			m := storetest.NewMarket(t, s)
			_, p := paid(t, s, m)
			tx := sign(t, s, p)
			b := scanOf(blockOf("a", 101), moveOf(tx.TxID, p.FromAddress, p.ToAddress, p.Amount))
			seenBlock(t, s, b)
			order(t, func(ctx context.Context) error {
				_, err := s.RecordFinal(ctx, tx.ID, true, 101, "a-101", trx("1"), "SUCCESS")
				return err
			}, func(ctx context.Context) error {
				_, err := s.RecordFinalBlock(ctx, b)
				return err
			})
			d := wantDeposit(t, s, tx.TxID, exchange.DepositOwn, exchange.DepositFinal)
			if d.PaymentID != p.ID {
				t.Errorf("it belongs to payment %s, want %s", d.PaymentID, p.ID)
			}
			wantBalance(t, s, custody(m.VendorWallet), "1490", "0")
			wantBalance(t, s, custody(m.CustomerWallet), "10", "0")
			wantBalance(t, s, owed(m.CustomerWallet, money.USDT), "10", "0")
			if open, err := s.OpenQuarantine(t.Context(), exchange.Tron); err != nil || len(open) != 0 {
				t.Errorf("alarms: %+v, %v", open, err)
			}
			wantBooks(t, s)
		})
	}
}

// A transaction that was given up for another one and pays all the same is a double payment: it must not be taken for
// its successor's payment.
func TestGivenUpTransactionThatPays(t *testing.T) {
	t.Parallel()
	for name, giveUp := range map[string]func(ctx context.Context, s *store.Store, tx exchange.ChainAttempt) error{
		"judged impossible": func(ctx context.Context, s *store.Store, tx exchange.ChainAttempt) error {
			_, err := s.RecordExpired(ctx, tx.ID, "absent")
			return err
		},
		"judged to have failed": func(ctx context.Context, s *store.Store, tx exchange.ChainAttempt) error {
			_, err := s.RecordFinal(ctx, tx.ID, false, 100, "a-100", trx("0"), "REVERT")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := started(t)
			m := storetest.NewMarket(t, s)
			_, p := paid(t, s, m)
			tx := sign(t, s, p)
			if err := giveUp(t.Context(), s, tx); err != nil {
				t.Fatal(err)
			}
			b := scanOf(blockOf("a", 101), moveOf(tx.TxID, p.FromAddress, stranger, p.Amount))
			seenBlock(t, s, b)
			finalBlock(t, s, b)
			wantDeposit(t, s, tx.TxID, exchange.DepositOutgoing, exchange.DepositFinal)
			open, err := s.OpenQuarantine(t.Context(), exchange.Tron)
			if err != nil || len(open) != 1 || open[0].Reason != exchange.QuarantineUnexpected || !strings.Contains(open[0].Detail, "second time") {
				t.Errorf("the alarms are %+v, %v", open, err)
			}
		})
	}
}

// A transaction that is on the chain before it is known as ours is booked only once.
func TestTransactionThatBecomesOursLater(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(t *testing.T, completion, watch func(context.Context) error){
		"watch first": oneByOne(false), "at once": sideBySide,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 5 {
				s := started(t)
				m := storetest.NewMarket(t, s)
				_, p := paid(t, s, m)
				id := storetest.NewID(t)
				b := scanOf(blockOf("a", 101), moveOf(txID(id), p.FromAddress, p.ToAddress, p.Amount))
				order(t, func(ctx context.Context) error {
					tx, err := s.SaveSignedAttempt(ctx, exchange.ChainAttempt{
						ID: id, PaymentID: p.ID, Network: p.Network, TxID: txID(id), Raw: []byte("signed"), ExpiresAt: time.Now().Add(time.Hour), FeeLimit: trx("50"),
					})
					if err == nil {
						_, err = s.RecordFinal(ctx, tx.ID, true, 101, "a-101", trx("1"), "SUCCESS")
					}
					return err
				}, func(ctx context.Context) error {
					_, err := s.RecordFinalBlock(ctx, b)
					return err
				})
				wantBalance(t, s, custody(m.VendorWallet), "1490", "0")
				wantBalance(t, s, custody(m.CustomerWallet), "10", "0")
				wantBooks(t, s)
			}
		})
	}
}

func oneByOne(completionFirst bool) func(*testing.T, func(context.Context) error, func(context.Context) error) {
	return func(t *testing.T, completion, watch func(context.Context) error) {
		t.Helper()
		steps := []func(context.Context) error{watch, completion}
		if completionFirst {
			steps[0], steps[1] = steps[1], steps[0]
		}
		for _, step := range steps {
			if err := step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func sideBySide(t *testing.T, completion, watch func(context.Context) error) {
	t.Helper()
	var wg sync.WaitGroup
	for _, step := range []func(context.Context) error{completion, watch} {
		wg.Go(func() {
			if err := step(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
