package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"pgregory.net/rapid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

func TestPostKnowsItsOwnWork(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	wallet := storetest.NewID(t)
	storetest.Deposit(t, s, wallet, usdt("10"))
	for range 2 {
		if err := s.Post(ctx, spend(wallet, "once", "4")); err != nil {
			t.Fatal(err)
		}
	}
	wantFault(t, s.Post(ctx, spend(wallet, "once", "5")), exchange.CodeConflict)
	wantFault(t, s.Post(ctx, spend(wallet, "twice", "6.000001")), exchange.CodeInsufficientFunds)
	both := spend(wallet, "new", "1")
	both.Entries = append(both.Entries, spend(wallet, "once", "4").Entries...)
	wantFault(t, s.Post(ctx, both), exchange.CodeConflict) // half of it was booked by another posting
	wantBalance(t, s, exchange.Owned(exchange.AccWalletBalance, wallet, money.USDT), "6", "0")
	entries, err := s.ListEntries(ctx, store.EntryFilter{Account: &exchange.AccountRef{Kind: exchange.AccCustody, Owner: wallet, Asset: money.USDT}},
		10)
	if err != nil || len(entries) != 2 || entries[0].Key != "once" || len(entries[0].Lines) != 2 || !entries[0].Lines[0].Amount.Equal(usdt("4")) {
		t.Errorf("%d entries %+v, %v", len(entries), entries, err)
	}
	wantBooks(t, s)
}

func TestPostRefusesWhatDoesNotBalance(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	a, b := exchange.House(exchange.AccCapital, money.KES), exchange.House(exchange.AccMomoCollection, money.KES)
	for name, lines := range map[string][]exchange.Line{
		"off":       {exchange.Debit(b, kes("10")), exchange.Credit(a, kes("9.99"))},
		"one line":  {exchange.Debit(b, kes("10"))},
		"no amount": {exchange.Debit(b, kes("0")), exchange.Credit(a, kes("0"))},
		"mixed":     {exchange.Debit(b, usdt("1")), exchange.Credit(a, usdt("1"))},
	} {
		err := s.Post(t.Context(), exchange.Posting{Entries: []exchange.Entry{{Key: name, Kind: "test", Lines: lines}}})
		if exchange.CodeOf(err) != exchange.CodeInternal {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantBalance(t, s, b, "0", "0")
}

func hold(verb exchange.HoldVerb, id uuid.UUID, wallet uuid.UUID, amount string) exchange.Posting {
	h := exchange.Hold{ID: id}
	if amount != "" {
		h = exchange.Hold{
			ID: id, Key: "hold:" + id.String(), Account: exchange.Owned(exchange.AccWalletBalance, wallet, money.USDT), Amount: usdt(amount),
			ObjectType: "test", ObjectID: id,
		}
	}
	return exchange.Posting{Holds: []exchange.HoldOp{{Verb: verb, Hold: h}}}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	wallet, parent, child := storetest.NewID(t), storetest.NewID(t), storetest.NewID(t)
	balance := exchange.Owned(exchange.AccWalletBalance, wallet, money.USDT)
	storetest.Deposit(t, s, wallet, usdt("10"))
	split := hold(exchange.HoldSplit, child, wallet, "3")
	split.Holds[0].Hold.ParentID = parent
	for _, step := range []struct {
		name    string
		posting exchange.Posting
		code    exchange.Code
		held    string
	}{
		{"place", hold(exchange.HoldPlace, parent, wallet, "8"), "", "8"},
		{"place again", hold(exchange.HoldPlace, parent, wallet, "8"), "", "8"},
		{"place another amount", hold(exchange.HoldPlace, parent, wallet, "7"), exchange.CodeConflict, "8"},
		{"place too much", hold(exchange.HoldPlace, storetest.NewID(t), wallet, "2.000001"), exchange.CodeInsufficientFunds, "8"},
		{"spend what is held", spend(wallet, "held", "3"), exchange.CodeInsufficientFunds, "8"},
		{"split", split, "", "8"},
		{"split again", split, "", "8"},
		{"return", hold(exchange.HoldReturn, child, wallet, ""), "", "8"},
		{"return again", hold(exchange.HoldReturn, child, wallet, ""), "", "8"},
		{"capture what was returned", hold(exchange.HoldCapture, child, wallet, ""), exchange.CodeStateConflict, "8"},
		{"release", hold(exchange.HoldRelease, parent, wallet, ""), "", "0"},
		{"release again", hold(exchange.HoldRelease, parent, wallet, ""), "", "0"},
		{"release nothing", hold(exchange.HoldRelease, storetest.NewID(t), wallet, ""), exchange.CodeNotFound, "0"},
	} {
		if err := s.Post(ctx, step.posting); exchange.CodeOf(err) != step.code {
			t.Fatalf("%s: %v, want %q", step.name, err, step.code)
		}
		wantBalance(t, s, balance, "10", step.held)
	}
	wantBooks(t, s)
}

// A batch gives each of its units its own verdict, and the valid ones pass whatever the invalid ones do.
func TestBatchesJudgeEachUnit(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	wallet := storetest.NewID(t)
	storetest.Deposit(t, s, wallet, usdt("100"))
	codes := atOnce(300, func(i int) error {
		switch i % 3 {
		case 0: // 100 units of 1: what is there
			return s.Post(t.Context(), spend(wallet, fmt.Sprintf("good:%d", i), "1"))
		case 1: // more than there ever is
			return s.Post(t.Context(), spend(wallet, fmt.Sprintf("poor:%d", i), "101"))
		default: // one posting, a hundred times
			return s.Post(t.Context(), exchange.Posting{Entries: []exchange.Entry{{Key: "same", Kind: "test", Lines: []exchange.Line{
				exchange.Debit(exchange.House(exchange.AccMomoCollection, money.KES), kes("1")), exchange.Credit(exchange.House(exchange.AccCapital, money.KES), kes("1")),
			}}}})
		}
	})
	if codes[""] != 200 || codes[exchange.CodeInsufficientFunds] != 100 {
		t.Errorf("outcomes %v", codes)
	}
	wantBalance(t, s, exchange.Owned(exchange.AccWalletBalance, wallet, money.USDT), "0", "0")
	wantBalance(t, s, exchange.House(exchange.AccMomoCollection, money.KES), "1", "0")
	wantBooks(t, s)
}

// model is the ledger of one wallet as a few numbers.
type model struct {
	posted, held int64
	holds        map[uuid.UUID]int64 // live ones
	keys         map[string]int64
}

// Any sequence of spending, receiving and reserving gives the verdicts and balances of a simple model without SQL.
func TestLedgerAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	ctx := t.Context()
	rapid.Check(t, func(rt *rapid.T) {
		wallet := uuid.New()
		m := model{holds: map[uuid.UUID]int64{}, keys: map[string]int64{}}
		units := rapid.Int64Range(1, 20)
		check := func(err error, want exchange.Code) {
			if exchange.CodeOf(err) != want {
				rt.Fatalf("got %v, want %q, model %+v", err, want, m)
			}
		}
		move := func(key string, n int64) {
			p := spend(wallet, wallet.String()+key, fmt.Sprint(max(n, -n)))
			if n > 0 { // receive
				p.Entries[0].Lines[0].Amount, p.Entries[0].Lines[1].Amount = p.Entries[0].Lines[0].Amount.Neg(), p.Entries[0].Lines[1].Amount.Neg()
			}
			want := exchange.Code("")
			switch old, known := m.keys[key]; {
			case known && old != n:
				want = exchange.CodeConflict
			case known:
			case m.posted+n < m.held:
				want = exchange.CodeInsufficientFunds
			default:
				m.posted, m.keys[key] = m.posted+n, n
			}
			check(s.Post(ctx, p), want)
		}
		key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
		rt.Repeat(map[string]func(*rapid.T){
			"receive": func(rt *rapid.T) { move(key.Draw(rt, "key"), units.Draw(rt, "n")) },
			"spend":   func(rt *rapid.T) { move(key.Draw(rt, "key"), -units.Draw(rt, "n")) },
			"hold": func(rt *rapid.T) {
				n, id, want := units.Draw(rt, "n"), uuid.New(), exchange.CodeInsufficientFunds
				if m.posted-m.held >= n {
					m.held, m.holds[id], want = m.held+n, n, ""
				}
				check(s.Post(ctx, hold(exchange.HoldPlace, id, wallet, fmt.Sprint(n))), want)
			},
			"split": func(rt *rapid.T) {
				parent, n, id := oneHold(rt, m), units.Draw(rt, "n"), uuid.New()
				p := hold(exchange.HoldSplit, id, wallet, fmt.Sprint(n))
				p.Holds[0].Hold.ParentID = parent
				want := exchange.CodeInsufficientFunds
				if m.holds[parent] >= n {
					m.holds[parent], m.holds[id], want = m.holds[parent]-n, n, ""
				}
				check(s.Post(ctx, p), want)
			},
			"release": func(rt *rapid.T) {
				id := oneHold(rt, m)
				m.held -= m.holds[id]
				delete(m.holds, id)
				check(s.Post(ctx, hold(exchange.HoldRelease, id, wallet, "")), "")
			},
			"capture": func(rt *rapid.T) {
				id := oneHold(rt, m)
				n := m.holds[id]
				p := hold(exchange.HoldCapture, id, wallet, "")
				if n > 0 {
					p.Entries = spend(wallet, id.String(), fmt.Sprint(n)).Entries
				}
				m.held, m.posted = m.held-n, m.posted-n
				delete(m.holds, id)
				check(s.Post(ctx, p), "")
			},
			"": func(rt *rapid.T) {
				a, err := s.Account(ctx, exchange.Owned(exchange.AccWalletBalance, wallet, money.USDT))
				if err != nil || a.Posted.Decimal().IntPart() != m.posted || a.Held.Decimal().IntPart() != m.held {
					rt.Fatalf("%s posted and %s held, model %+v, %v", a.Posted, a.Held, m, err)
				}
			},
		})
	})
	wantBooks(t, s)
}

// oneHold picks a live hold, the same one for the same draw.
func oneHold(rt *rapid.T, m model) uuid.UUID {
	if len(m.holds) == 0 {
		rt.Skip("no holds")
	}
	ids := slices.SortedFunc(maps.Keys(m.holds), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return rapid.SampledFrom(ids).Draw(rt, "hold")
}

// The database enforces the rules by itself, for all kinds of writes.
func TestDatabaseGuards(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	o, p := paid(t, s, m)
	tx := sign(t, s, p)
	closed := m.Order(t, s, "5")
	if _, err := s.CloseOrder(t.Context(), closed.ID, exchange.OrderFailed, exchange.DetailDeclined, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	db := storetest.Owner(t, s)
	for _, c := range []struct{ name, code, query string }{
		{"change an entry", "KV002", `UPDATE ledger_entries SET kind = 'x'`},
		{"remove lines", "KV002", `DELETE FROM ledger_lines`},
		{"empty the lines", "KV002", `TRUNCATE ledger_lines`},
		{"write a balance", "KV002", `UPDATE ledger_accounts SET posted = posted + 1`},
		{"write a reservation", "KV002", `UPDATE ledger_accounts SET held = 0 WHERE held > 0`},
		{"open a full account", "KV002", `INSERT INTO ledger_accounts (code, kind, asset, debit_normal, may_go_below, posted) VALUES ('momo_collection:house:KES', 'momo_collection', 'KES', true, false, 5)`},
		{"add one line", "KV003", `INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT entry_id, account_id, 1 FROM ledger_lines LIMIT 1`},
		{"add too fine an amount", "KV003", `INSERT INTO ledger_lines (entry_id, account_id, amount)
			SELECT entry_id, account_id, v FROM (SELECT entry_id, account_id FROM ledger_lines LIMIT 1) l, (VALUES (0.0000001), (-0.0000001)) x (v)`},
		{"store not a number", "23514", `UPDATE holds SET amount = 'NaN'`},
		{"store infinity", "23514", `UPDATE holds SET amount = 'Infinity'`},
		{"hold less than nothing", "23514", `UPDATE holds SET amount = -1 WHERE status = 'held'`},
		{"hold more than there is", "23514", `UPDATE holds SET amount = amount + 1000000 WHERE status = 'held'`},
		{"change an event", "KV002", `UPDATE events SET payload = '{}'`},
		{"remove events", "KV002", `DELETE FROM events`},
		{"change the audit", "KV002", `UPDATE audit_log SET actor = 'nobody'`},
		{"reopen an order", "KV001", `UPDATE orders SET status = 'pending' WHERE id = '` + closed.ID.String() + `'`},
		{"skip a state", "KV001", `UPDATE orders SET status = 'pending' WHERE id = '` + o.ID.String() + `'`},
		{"change a price", "KV002", `UPDATE orders SET fiat_amount = 1, vendor_amount = 1, rounding_amount = 0`},
		{"pay somebody else", "KV002", `UPDATE chain_payments SET to_address = 'TElsewhere'`},
		{"change signed bytes", "KV002", `UPDATE chain_attempts SET raw = 'x'`},
		{"sign a second time", "23505", `INSERT INTO chain_attempts (id, payment_id, network, n, tx_id, raw, status, created_at, updated_at)
			VALUES (gen_random_uuid(), '` + p.ID.String() + `', 'tron', 9, 'other', 'x', 'signed', now(), now())`},
		{"use a transaction id again", "23505", `INSERT INTO chain_attempts (id, payment_id, network, n, tx_id, raw, status, created_at, updated_at)
			VALUES (gen_random_uuid(), '` + p.ID.String() + `', 'tron', 9, '` + tx.TxID + `', 'x', 'signed', now(), now())`},
		{"forget a collection", "KV002", `DELETE FROM collections`},
		{"collect twice for an order", "23505", `INSERT INTO collections SELECT 'OTHER', attempt_id, object_type, object_id, kind, asset, amount, 0, now() FROM collections`},
		{"refund more than came", "23514", `INSERT INTO refunds (id, order_id, attempt_id, collection, asset, amount, phone, reason, status, created_at, updated_at)
			SELECT gen_random_uuid(), object_id, attempt_id, receipt, asset, amount + 1, '254700000000', 'x', 'pending', now(), now() FROM collections`},
	} {
		_, err := db.ExecContext(t.Context(), c.query)
		pe, ok := errors.AsType[*pq.Error](err)
		if !ok || string(pe.Code) != c.code {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
	}
	wantBooks(t, s)
}

// The service's own role may not even try.
func TestServiceRoleIsRestricted(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	db := storetest.DB(t, storetest.WithRole(t, url))
	for _, query := range []string{
		`UPDATE ledger_entries SET kind = 'x'`, `DELETE FROM ledger_lines`, `UPDATE ledger_accounts SET posted = 1`, `UPDATE ledger_accounts SET held = 0`,
		`UPDATE holds SET account_id = 1`, `DELETE FROM holds`, `UPDATE events SET payload = '{}'`, `DELETE FROM audit_log`, `UPDATE audit_seals SET hash = ''`,
		`DELETE FROM state_transitions`, `UPDATE log_clock SET base = 5`, `DELETE FROM orders`, `UPDATE collections SET amount = 1`, `UPDATE wallet_keys SET ciphertext = ''`,
		`TRUNCATE events`, `ALTER TABLE events DISABLE TRIGGER ALL`, `DROP TABLE events`,
	} {
		_, err := db.ExecContext(t.Context(), query)
		if pe, ok := errors.AsType[*pq.Error](err); !ok || pe.Code != "42501" {
			t.Errorf("%s: %v, want insufficient_privilege", query, err)
		}
	}
}

// The transitions in the database are those of the code.
func TestMachinesInDatabaseAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	db := storetest.DB(t, storetest.URL(t))
	rows, err := db.QueryContext(t.Context(), `SELECT machine, from_state, to_state FROM state_transitions`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	got := map[[3]string]bool{}
	for rows.Next() {
		var k [3]string
		if err := rows.Scan(&k[0], &k[1], &k[2]); err != nil {
			t.Fatal(err)
		}
		got[k] = true
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	want := map[[3]string]bool{}
	for _, m := range exchange.Machines() {
		if m.Name == exchange.HoldMachine.Name {
			continue // its only end is guarded by a trigger of its own
		}
		want[[3]string{m.Name, "", m.Initial}] = true
		for _, tr := range m.Transitions {
			want[[3]string{m.Name, tr.From, tr.To}] = true
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("the database has %v\nthe code has %v", got, want)
	}
}

const readStatusColumns = `
SELECT c.table_name, coalesce((SELECT substring(pg_get_triggerdef(t.oid) FROM 'check_transition\(''([a-z_0-9]+)''\)')
    FROM pg_trigger t WHERE t.tgrelid = c.table_name::regclass AND t.tgname = c.table_name || '_' || $1), '')
FROM information_schema.columns c WHERE c.table_schema = 'public' AND c.column_name = 'status' AND c.data_type = 'text'`

// Each status of a table is guarded by a state machine of the code, when a row is written and when it changes.
func TestEveryStatusHasAMachine(t *testing.T) {
	t.Parallel()
	db := storetest.DB(t, storetest.URL(t))
	known := map[string]bool{"order": true} // one of two machines, by the order's type
	for _, m := range exchange.Machines() {
		known[m.Name] = true
	}
	for _, moment := range []string{"created", "moves"} {
		rows, err := db.QueryContext(t.Context(), readStatusColumns, moment)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		tables := 0
		for rows.Next() {
			var table, machine string
			if err := rows.Scan(&table, &machine); err != nil {
				t.Fatal(err)
			}
			// Holds and messages have triggers of their own: a machine with one state before the end needs no look-up.
			if tables++; !known[machine] && table != "holds" && table != "messages" {
				t.Errorf("the status of %s has the machine %q (%s)", table, machine, moment)
			}
		}
		if err := rows.Err(); err != nil || tables < 15 {
			t.Fatalf("%d tables have a status: %v", tables, err)
		}
	}
}

func TestStoreReportsAnUnreachableDatabase(t *testing.T) {
	t.Parallel()
	_, err := store.Open(t.Context(), "postgres://nobody@127.0.0.1:1/nothing?sslmode=disable", store.Options{})
	wantFault(t, err, exchange.CodeUnavailable)
	s := storetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantFault(t, s.Post(ctx, spend(storetest.NewID(t), "cancelled", "1")), exchange.CodeUnavailable)
}
