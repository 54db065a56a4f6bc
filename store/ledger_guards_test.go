package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Agreed terms are immutable, even for the owner of the tables. Each statement would redirect money, or let it move
// twice.
func TestWhatIsAgreedStays(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	o := m.Order(t, s, "10")
	a := storetest.Attempt(t, s, o)
	if _, err := s.AcceptPayment(ctx, a.ID, storetest.Listed(t, s, storetest.Paid(t, o.Price.Fiat.Add(kes("17")))), a.CreatedAt); err != nil {
		t.Fatal(err)
	}
	admin := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	command := exchange.OperatorCommand{ID: storetest.NewID(t), ObjectType: "order", ObjectID: o.ID, Verb: "refund", Note: "why", ActorID: admin.UserID}
	if err := s.SaveCommand(ctx, command, admin); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UseCommand(ctx, command.ID, "order", o.ID); err != nil {
		t.Fatal(err)
	}
	db := storetest.Owner(t, s)
	for _, query := range []string{
		`INSERT INTO ledger_lines (entry_id, account_id, amount)
			SELECT l.entry_id, l.account_id, x.v FROM (SELECT entry_id, account_id FROM ledger_lines LIMIT 1) l, (VALUES (1), (-1)) x (v)`,
		`UPDATE wallets SET address = 'TAnotherAddressOfSomebodyElse00000'`,
		`UPDATE wallets SET owner_id = '` + m.Vendor.ID.String() + `'`,
		`TRUNCATE wallet_keys`,
		`UPDATE offers SET wallet_id = '` + m.CustomerWallet.ID.String() + `'`,
		`UPDATE offers SET hold_id = NULL, status = 'closed'`,
		`UPDATE payment_attempts SET amount = 1`,
		`UPDATE payment_attempts SET phone = '254700000001'`,
		`UPDATE payment_attempts SET receipt = 'OTHER'`,
		`UPDATE collections SET kind = 'late'`,
		`UPDATE payment_exceptions SET amount = amount + 1`,
		`UPDATE refunds SET attempt_id = gen_random_uuid()`,
		`UPDATE operator_commands SET verb = 'resolve'`,
		`UPDATE operator_commands SET used_at = NULL`,
	} {
		_, err := db.ExecContext(ctx, query)
		if pe, ok := errors.AsType[*pq.Error](err); !ok || pe.Code != "KV002" {
			t.Errorf("%s: %v, want KV002", query, err)
		}
	}
	wantBooks(t, s)
}

// An officer can't settle two refunds with one payment of the provider.
func TestOnePaymentSettlesOneRefund(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	stuck := func() exchange.Refund {
		o, _ := paid(t, s, m)
		_, r, err := s.RefundOrder(ctx, o.ID, "nothing works", officer)
		if err != nil {
			t.Fatal(err)
		}
		p := payout(t, s, r)
		if _, err := s.RecordFailure(ctx, p.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2001", Class: exchange.ClassCredential}); err != nil {
			t.Fatal(err)
		}
		if r, err = failRefund(t, s, r.ID, "refused"); err != nil {
			t.Fatal(err)
		}
		return r
	}
	first, second := stuck(), stuck()
	if _, err := s.ResolveRefund(ctx, first.ID, "SKX1234567", officer); err != nil {
		t.Fatal(err)
	}
	_, err := s.ResolveRefund(ctx, second.ID, "SKX1234567", officer)
	wantFault(t, err, exchange.CodeConflict)
	if again, err := s.Refund(ctx, second.ID); err != nil || again.Status != exchange.RefundNeedsReview {
		t.Errorf("the second refund is %s, %v", again.Status, err)
	}
	wantBooks(t, s)
}

// A subvendor acts for its vendor, so it loses access with it.
func TestSubvendorsFallWithTheirVendor(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	vendor := storetest.User(t, s, exchange.RoleVendor)
	sub := storetest.Subvendor(t, s, vendor)
	now := time.Now().UTC()
	session := store.Session{ID: storetest.NewID(t), FamilyID: storetest.NewID(t), UserID: sub.ID, TokenHash: [32]byte{1}, Assurance: exchange.AssurancePassword, CreatedAt: now, ExpiresAt: now.AddDate(0, 0, 1)}
	if err := s.CreateSession(ctx, session); err != nil {
		t.Fatal(err)
	}
	live := func() bool {
		t.Helper()
		state, err := s.AuthState(ctx, sub.ID, session.FamilyID)
		if err != nil {
			t.Fatal(err)
		}
		return state.SessionLive
	}
	if !live() {
		t.Fatal("the session is dead from the beginning")
	}
	off := false
	if _, err := s.UpdateUser(ctx, vendor.ID, store.UserPatch{IsActive: &off}, storetest.By); err != nil {
		t.Fatal(err)
	}
	if live() {
		t.Error("the subvendor of a deactivated vendor still acts for it")
	}
	_, _, err := s.RotateSession(ctx, session, store.Session{ID: storetest.NewID(t), TokenHash: [32]byte{2}})
	wantFault(t, err, exchange.CodeUnauthenticated)
}

// The lines of an account have their ids in the order in which they were committed: a posting takes all its locks before it
// writes, so that what is read up to a line is complete.
func TestLinesAreInTheOrderOfTheirCommits(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	first, second := exchange.House(exchange.AccCapital, money.KES), exchange.House(exchange.AccMomoCollection, money.KES)
	entry := func(key, amount string) exchange.Posting {
		lines := []exchange.Line{exchange.Debit(second, kes(amount)), exchange.Credit(first, kes(amount))}
		return exchange.Posting{Entries: []exchange.Entry{{Key: key, Kind: "test", Lines: lines}}}
	}
	other := exchange.House(exchange.AccFees, money.KES)
	before := entry("before", "1")
	before.Entries[0].Lines = append(before.Entries[0].Lines, exchange.Debit(other, kes("1")), exchange.Credit(first, kes("1")))
	if err := s.Post(ctx, before); err != nil {
		t.Fatal(err)
	}
	db := storetest.Owner(t, s)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	run := func(query string, args ...any) {
		t.Helper()
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			t.Fatal(err)
		}
	}
	run(`SELECT FROM ledger_accounts WHERE code = $1 FOR NO KEY UPDATE`, second.Code())
	posted := make(chan error, 1)
	go func() { posted <- s.Post(ctx, entry("waits", "2")) }()
	waitsFor(t, db, posted)
	run(`WITH e AS (INSERT INTO ledger_entries (key, digest, kind, object_type, at) VALUES ('between', decode(repeat('00', 16), 'hex'), 'test', '', now()) RETURNING id)
		INSERT INTO ledger_lines (entry_id, account_id, amount)
		SELECT e.id, a.id, x.amount FROM e, (VALUES ($1, 4), ($2, -4)) AS x (code, amount) JOIN ledger_accounts a ON a.code = x.code`,
		second.Code(), other.Code())
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-posted; err != nil {
		t.Fatal(err)
	}
	var order string
	const keys = `SELECT string_agg(e.key, ' ' ORDER BY l.id) FROM ledger_lines l JOIN ledger_entries e ON e.id = l.entry_id
		JOIN ledger_accounts a ON a.id = l.account_id WHERE a.code = $1`
	if err := db.QueryRowContext(ctx, keys, second.Code()).Scan(&order); err != nil || order != "before between waits" {
		t.Errorf("the lines are of %q, %v", order, err)
	}
	wantBooks(t, s)
}
