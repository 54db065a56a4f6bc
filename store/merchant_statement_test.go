package store_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// movementsOf reads all movements of a statement and checks that each leads to the next balance, and all to the closing one.
func movementsOf(ctx context.Context, s *store.Store, st exchange.MerchantStatement) ([]exchange.StatementMovement, error) {
	var all []exchange.StatementMovement
	after, balance := st.Lines.After, st.Opening
	for {
		found, err := s.StatementMovements(ctx, st, after, balance)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			if balance = balance.Add(m.Credit).Sub(m.Debit); !m.Balance.Equal(balance) || m.Credit.Positive() == m.Debit.Positive() || m.Credit.Sign() < 0 || m.Debit.Sign() < 0 {
				return nil, fmt.Errorf("movement %+v leads to %s", m, balance)
			}
			after = m.Line
		}
		if all = append(all, found...); len(found) == 0 {
			break
		}
	}
	if len(all) != st.Movements || !balance.Equal(st.Closing) {
		return nil, fmt.Errorf("%d movements lead to %s, want %d and %s", len(all), balance, st.Movements, st.Closing)
	}
	return all, nil
}

// wantLastMovements compares the newest movements of a merchant's statement, written as "reason reference crypto credit debit".
func wantLastMovements(t *testing.T, s *store.Store, merchant uuid.UUID, want ...string) {
	t.Helper()
	day := func(year int) time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
	st, err := s.MerchantStatement(t.Context(), store.Everything(), merchant, day(2000), day(2100))
	if err != nil {
		t.Fatal(err)
	}
	all, err := movementsOf(t.Context(), s, st)
	if err != nil || len(all) < len(want) {
		t.Fatalf("%d movements, want %d: %v", len(all), len(want), err)
	}
	for i, m := range all[len(all)-len(want):] {
		crypto := "-"
		if m.Crypto.Asset() != "" {
			crypto = m.Crypto.String()
		}
		if got := strings.Join([]string{string(m.Reason), cmp.Or(m.Reference, "-"), crypto, m.Credit.String(), m.Debit.String()}, " "); got != want[i] {
			t.Errorf("movement %d is %q, want %q", i, got, want[i])
		}
	}
}

// Whatever is booked and when, the statement of any period is what the ledger has: the opening balance is the sum of what was booked
// before, and each movement is a booked line. Days are those of Kenya.
func TestStatementsAreTheLedgers(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: func() time.Time { return time.UnixMilli(now.Load()).UTC() }})
	first := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	now.Store(first.UnixMilli())
	viewer := store.ViewOf(exchange.Principal{Role: exchange.RoleAdmin}, exchange.ActReadMerchantBooks)
	const days = 5
	rapid.Check(t, func(rt *rapid.T) {
		merchant := storetest.User(t, s, exchange.RoleVendor)
		account := exchange.Owned(exchange.AccFiatBalance, merchant.ID, money.KES)
		type booking struct {
			day    int
			amount money.Amount // a debit is below zero
		}
		var booked []booking
		balance := kes("0")
		for n := range rapid.IntRange(0, 12).Draw(rt, "bookings") {
			// A booking may be late: the clocks of processes differ.
			minute := rapid.IntRange(0, days*24*60-1).Draw(rt, "minute")
			cents := rapid.Int64Range(1, 500).Draw(rt, "cents")
			m := money.Must(money.KES, fmt.Sprintf("%d.%02d", cents/100, cents%100))
			if rapid.Bool().Draw(rt, "debit") && balance.Cmp(m) >= 0 {
				m = m.Neg()
			}
			now.Store(first.Add(time.Duration(minute)*time.Minute - 3*time.Hour).UnixMilli())
			lines := []exchange.Line{exchange.Debit(exchange.House(exchange.AccCapital, money.KES), m), exchange.Credit(account, m)}
			if err := s.Post(rt.Context(), exchange.Posting{Entries: []exchange.Entry{{Key: fmt.Sprint(merchant.ID, n), Kind: "test", Lines: lines}}}); err != nil {
				rt.Fatal(err)
			}
			balance, booked = balance.Add(m), append(booked, booking{minute / (24 * 60), m})
		}
		from := rapid.IntRange(-1, days).Draw(rt, "from")
		to := rapid.IntRange(from+1, days+1).Draw(rt, "to")
		st, err := s.MerchantStatement(rt.Context(), viewer, merchant.ID, first.AddDate(0, 0, from), first.AddDate(0, 0, to))
		if err != nil {
			rt.Fatal(err)
		}
		all, err := movementsOf(rt.Context(), s, st)
		if err != nil {
			rt.Fatal(err)
		}
		opening, n := kes("0"), 0
		for _, b := range booked {
			switch {
			case b.day < from:
				opening = opening.Add(b.amount)
			case b.day < to:
				if n >= len(all) || !all[n].Credit.Sub(all[n].Debit).Equal(b.amount) {
					rt.Fatalf("movement %d of %+v is not %s", n, all, b.amount)
				}
				n++
			}
		}
		if !st.Opening.Equal(opening) || n != len(all) {
			rt.Fatalf("it opens with %s and has %d movements, want %s and %d", st.Opening, len(all), opening, n)
		}
		if ledger, err := s.Account(rt.Context(), account); err != nil || to > days-1 && !st.Closing.Equal(ledger.Posted) {
			rt.Fatalf("it closes with %s, the ledger has %s, %v", st.Closing, ledger.Posted, err)
		}
	})
}

// A statement is that of one moment, however long its reader takes and whatever is booked meanwhile; and it is read in pages.
func TestStatementsAreOfOneMoment(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	merchant := storetest.User(t, s, exchange.RoleVendor)
	account := exchange.Owned(exchange.AccFiatBalance, merchant.ID, money.KES)
	book := func(key string, count int) {
		t.Helper()
		var entries []exchange.Entry
		for n := range count {
			lines := []exchange.Line{exchange.Debit(exchange.House(exchange.AccCapital, money.KES), kes("1")), exchange.Credit(account, kes("1"))}
			entries = append(entries, exchange.Entry{Key: fmt.Sprint(key, n), Kind: "test", Lines: lines})
		}
		if err := s.Post(ctx, exchange.Posting{Entries: entries}); err != nil {
			t.Fatal(err)
		}
	}
	const several = store.MerchantStatementBatch + 1
	book("a", several)
	view := store.ViewOf(storetest.PrincipalOf(merchant), exchange.ActReadMerchantBooks)
	today := exchange.KenyanDay(time.Now())
	st, err := s.MerchantStatement(ctx, view, merchant.ID, today.AddDate(0, 0, -1), today.AddDate(0, 0, 2))
	if err != nil {
		t.Fatal(err)
	}
	book("b", 2)
	if all, err := movementsOf(ctx, s, st); err != nil || len(all) != several {
		t.Errorf("%d movements, %v", len(all), err)
	}
}

// The statement says what each movement was for. Only the merchant's side and staff read it.
func TestStatementsSayWhatMovementsWereFor(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	o, p := paid(t, s, m)
	if _, err := s.RecordFinal(ctx, sign(t, s, p).ID, true, 9, "bb", trx("2"), ""); err != nil {
		t.Fatal(err)
	}
	o, err := s.CompleteOrder(ctx, o.ID)
	if err != nil {
		t.Fatal(err)
	}
	x := latePayment(t, s, m)
	d := decide(t, x, exchange.ExcCredited)
	d.MerchantID = m.Vendor.ID
	if _, _, err := s.DecideException(ctx, d, officer(t, s)); err != nil {
		t.Fatal(err)
	}
	storetest.Shillings(t, s, m.Vendor.ID, kes("7"))
	today := exchange.KenyanDay(time.Now())
	read := func(by exchange.Principal) ([]exchange.StatementMovement, error) {
		st, err := s.MerchantStatement(ctx, store.ViewOf(by, exchange.ActReadMerchantBooks), m.Vendor.ID, today.AddDate(0, 0, -1), today.AddDate(0, 0, 2))
		if err != nil {
			return nil, err
		}
		return movementsOf(ctx, s, st)
	}
	sub := storetest.Subvendor(t, s, m.Vendor)
	for _, by := range []exchange.User{m.Vendor, sub, storetest.User(t, s, exchange.RoleOTCOfficer), storetest.User(t, s, exchange.RoleTreasury), storetest.User(t, s, exchange.RoleAdmin)} {
		all, err := read(storetest.PrincipalOf(by))
		if err != nil || len(all) != 3 {
			t.Fatalf("the %s reads %d movements, %v", by.Role, len(all), err)
		}
		if a := all[0]; a.Reason != exchange.ReasonPurchase || a.ObjectType != "order" || a.ObjectID != o.ID || a.Reference != o.MomoReceipt || !a.Crypto.Equal(usdt("10")) || !a.Credit.Equal(kes("1295")) {
			t.Errorf("the purchase is %+v", a)
		}
		if a := all[1]; a.Reason != exchange.ReasonException || a.ObjectType != "payment_exception" || a.ObjectID != x.ID || a.Reference != x.Receipt || a.Crypto.Asset() != "" {
			t.Errorf("the credited money is %+v", a)
		}
		if a := all[2]; a.Reason != exchange.ReasonOther || a.ObjectType != "" || a.ObjectID != uuid.Nil || a.Reference != "" || a.Balance.String() != "2597.00" {
			t.Errorf("the last is %+v", a)
		}
	}
	for _, by := range []exchange.User{m.Customer, storetest.User(t, s, exchange.RoleVendor), storetest.Subvendor(t, s, storetest.User(t, s, exchange.RoleVendor))} {
		_, err := read(storetest.PrincipalOf(by))
		wantFault(t, err, exchange.CodeNotFound)
	}
}

// A sale's shillings are a debit, with the payout's receipt.
func TestStatementOfASale(t *testing.T) {
	t.Parallel()
	x := taken(t)
	x.paysOut(t)
	o, err := x.s.OrderByID(t.Context(), x.order.ID)
	if err != nil {
		t.Fatal(err)
	}
	today := exchange.KenyanDay(time.Now())
	st, err := x.s.MerchantStatement(t.Context(), store.Everything(), o.VendorID, today.AddDate(0, 0, -1), today.AddDate(0, 0, 2))
	if err != nil {
		t.Fatal(err)
	}
	all, err := movementsOf(t.Context(), x.s, st)
	if err != nil || len(all) != 2 || all[1].Reason != exchange.ReasonSale || !all[1].Debit.Equal(o.Price.Vendor) || all[1].Reference != o.MomoReceipt || o.MomoReceipt == "" {
		t.Errorf("%+v, %v", all, err)
	}
}
