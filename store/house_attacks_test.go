package store_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// A worker that was taken over makes no money of statement lines, whatever became of them.
func TestNoWorkerMakesMoneyOfLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.imports(t, "1000", moved("CREDITED", "300"), moved("MATCHED", "200"), moved("ASIDE", "50"))
	d.book(t, d.entry(t, exchange.JournalCapitalIn, "200"))
	d.settle(t)
	credit := exchange.ExceptionDecision{
		ID: storetest.NewID(t), ExceptionID: d.line(t, "CREDITED").ExceptionID, Verdict: exchange.ExcCredited, MerchantID: storetest.User(t, d.s, exchange.RoleVendor).ID, Reason: "a top-up",
	}
	if _, _, err := d.s.DecideException(t.Context(), credit, d.two); err != nil {
		t.Fatal(err)
	}
	d.imports(t, "1550", moved("FRESH", "100"))
	const again = `
		WITH x AS (INSERT INTO payment_exceptions (id, kind, status, line_id, receipt, asset, amount, note, created_at, updated_at)
			SELECT gen_random_uuid(), 'unmatched', 'open', id, gen_random_uuid()::text, asset, amount, '', now(), now() FROM bank_lines WHERE bank_reference = $1 RETURNING id, amount),
		e AS (INSERT INTO ledger_entries (key, digest, kind, object_type, object_id, at)
			SELECT 'exception:' || id || ':aside', decode(repeat('00', 16), 'hex'), 'bank_line.aside', 'payment_exception', id, now() FROM x RETURNING id)
		INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT e.id, a.id, CASE a.kind WHEN 'bank' THEN x.amount ELSE -x.amount END FROM e, x, ledger_accounts a
		WHERE a.kind IN ('bank', 'suspense')`
	for _, reference := range []string{"CREDITED", "MATCHED", "ASIDE", "FRESH"} {
		for _, role := range []store.Role{store.RoleMomo, store.RoleChain, store.RoleFlows, store.RoleAPI} {
			if _, err := storetest.As(t, d.s, role).ExecContext(t.Context(), again, reference); err == nil {
				t.Errorf("%s books a line that is %s a second time", role, reference)
			}
		}
	}
	wantBalance(t, d.s, suspense(), "50", "0")
}

// A payment by bank takes money from the account at which it is reserved, when officers have confirmed it, and nothing else does.
func TestNoWorkerTakesMoneyFromABank(t *testing.T) {
	t.Parallel()
	x := banking(t)
	bank := storetest.BankAccount(t, x.s)
	for _, role := range []store.Role{store.RoleMomo, store.RoleChain, store.RoleFlows, store.RoleAPI} {
		_, err := storetest.As(t, x.s, role).ExecContext(t.Context(), `
			WITH e AS (INSERT INTO ledger_entries (key, digest, kind, object_type, object_id, at)
				VALUES ('order:`+x.order.ID.String()+`:completed', decode(repeat('00', 16), 'hex'), 'order.completed', 'order', '`+x.order.ID.String()+`', now()) RETURNING id)
			INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT e.id, a.id, CASE a.kind WHEN 'bank' THEN -1293 ELSE 1293 END FROM e, ledger_accounts a
			WHERE a.code IN ('`+bank.Ledger().Code()+`', 'capital:house:KES')`)
		if sqlState(err) != "KV002" {
			t.Errorf("%s takes money from the bank: %v", role, err)
		}
	}
	if done, err := x.confirm(t, x.word(t, storetest.User(t, x.s, exchange.RoleTreasury), "FT1")); err != nil || !done {
		t.Fatalf("confirmed: %t, %v", done, err)
	}
	x.wantBank(t, "298707", "0")
}

// Money that was booked before its line was matched counts twice until then. Where all of it is gone already, the match waits, and no
// other line waits for that.
func TestAMatchThatWaitsStopsNoOther(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.imports(t, "1000", moved("IN1", "300"))
	d.settle(t)
	in := d.book(t, d.entry(t, exchange.JournalCapitalIn, "300"))
	out := d.entry(t, exchange.JournalCapitalOut, "1400")
	out.ValueDate = march.AddDate(0, 0, -1)
	d.book(t, out)
	d.imports(t, "1300", moved("IN2", "40"))
	d.settle(t)
	d.wantLine(t, "IN2", exchange.LineAside, "", uuid.Nil)
	d.wantLine(t, "IN1", exchange.LineAside, "", uuid.Nil)
	d.imports(t, "1340", moved("IN3", "60"))
	d.settle(t)
	d.wantLine(t, "IN1", exchange.LineMatched, exchange.LineOfJournal, in.ID)
	wantBooks(t, d.s)
}

// When an entry is corrected while a line is being matched with it, the line is free in the end: the correction waits for the match, and
// a match that comes later is refused.
func TestNoLineIsMatchedWithAMistake(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, db := t.Context(), storetest.Owner(t, d.s)
	d.imports(t, "1000", moved("OUT1", "-40"))
	e := d.book(t, d.entry(t, exchange.JournalBankCharge, "40"))
	undo := d.propose(t, exchange.JournalEntry{ID: storetest.NewID(t), Kind: exchange.JournalCorrection, Corrects: e.ID, ValueDate: march, Note: "a slip"})
	matching, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = matching.Rollback() }()
	match := `UPDATE bank_lines SET status = 'matched', object_type = 'journal_entry', object_id = '` + e.ID.String() + `', matched_at = now(); SET CONSTRAINTS ALL IMMEDIATE`
	if _, err := matching.ExecContext(ctx, match); err != nil {
		t.Fatal(err)
	}
	corrected := make(chan error, 1)
	go func() {
		_, err := d.s.ConfirmChange(ctx, undo.ID, "", d.two)
		corrected <- err
	}()
	waitsFor(t, db, corrected)
	if err := errors.Join(matching.Commit(), <-corrected); err != nil {
		t.Fatal(err)
	}
	d.wantLine(t, "OUT1", exchange.LineNew, "", uuid.Nil)
	if err := inOne(t, db, match); sqlState(err) != "KV001" {
		t.Errorf("the line is matched with the mistake: %v", err)
	}
}

// An officer's word about a line is that of an active officer, and what was said stays.
func TestMatchesByHandAreOfOfficers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.imports(t, "1000", moved("IN1", "300"), moved("IN2", "300"))
	e, other := d.book(t, d.entry(t, exchange.JournalCapitalIn, "300")), d.book(t, d.entry(t, exchange.JournalCapitalIn, "300"))
	match := func(by, object string) string {
		return `UPDATE bank_lines SET status = 'matched', object_type = 'journal_entry', object_id = '` + object + `', matched_by = ` + by + `, matched_at = now() WHERE bank_reference = 'IN1'`
	}
	off := storetest.User(t, d.s, exchange.RoleTreasury)
	storetest.Exec(t, d.s, `UPDATE users SET is_active = false WHERE id = $1`, off.ID)
	for name, c := range map[string]struct {
		as store.Role
		by uuid.UUID
	}{
		"a merchant": {store.RoleAPI, storetest.User(t, d.s, exchange.RoleVendor).ID}, "an OTC officer": {store.RoleAPI, storetest.User(t, d.s, exchange.RoleOTCOfficer).ID},
		"who is switched off": {store.RoleAPI, off.ID}, "nobody, by a worker": {store.RoleFlows, d.one.UserID},
	} {
		if _, err := storetest.As(t, d.s, c.as).ExecContext(t.Context(), match(`'`+c.by.String()+`'`, e.ID.String())); sqlState(err) != "KV006" {
			t.Errorf("the word of %s: %v", name, err)
		}
	}
	if _, err := d.s.MatchLine(t.Context(), d.line(t, "IN1").ID, exchange.LineOfJournal, e.ID, d.one); err != nil {
		t.Fatal(err)
	}
	for name, query := range map[string]string{
		"something else": match(`matched_by`, other.ID.String()), "somebody else": match(`'`+d.two.UserID.String()+`'`, e.ID.String()),
		"nobody": match(`NULL`, e.ID.String()), "another type": `UPDATE bank_lines SET object_type = 'bank_payout' WHERE bank_reference = 'IN1'`,
	} {
		if _, err := storetest.As(t, d.s, store.RoleAPI).ExecContext(t.Context(), query); sqlState(err) != "KV001" {
			t.Errorf("%s afterwards: %v", name, err)
		}
	}
}

// Of the two who decide about much money that came in, neither brought the statement in.
func TestNeitherVoiceBroughtTheStatementIn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.imports(t, "1000", moved("IN1", "5000000"))
	d.settle(t)
	credit := exchange.ExceptionDecision{
		ID: storetest.NewID(t), ExceptionID: d.line(t, "IN1").ExceptionID, Verdict: exchange.ExcCredited, MerchantID: storetest.User(t, d.s, exchange.RoleVendor).ID, Reason: "a top-up",
	}
	_, _, err := d.s.DecideException(ctx, credit, d.two)
	wantFault(t, err, exchange.CodeLimitReached)
	c, err := d.s.ProposeDecision(ctx, credit, d.two)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.s.ConfirmChange(ctx, c.ID, "", d.one)
	wantFault(t, err, exchange.CodeForbidden)
	if _, err := d.s.ConfirmChange(ctx, c.ID, "", d.admin); err != nil {
		t.Error(err)
	}
}

// A file is the statement of one account, also where two banks gave their accounts the same number: its money came in once.
func TestAFileIsOfOneAccount(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.statement(t, "1000", moved("IN1", "300"))
	if _, err := d.s.BeginStatement(t.Context(), first, d.one); err != nil {
		t.Fatal(err)
	}
	other := d.bank
	other.ID, other.BankCode = storetest.NewID(t), "02"
	if err := storetest.Agreed(t, d.s)(d.s.ProposeBankAccount(t.Context(), other, d.admin)); err != nil {
		t.Fatal(err)
	}
	again := first
	again.ID, again.BankID = storetest.NewID(t), other.ID
	_, err := d.s.BeginStatement(t.Context(), again, d.two)
	wantFault(t, err, exchange.CodeConflict)
}

// A balance of a bank that is not the ledger's calls for somebody, and so do days that no statement shows.
func TestDifferencesCallForAnOperator(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := storetest.Open(t, storetest.URL(t), store.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	one := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	d := desk{s, one, storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury)), one, storetest.Bank(t, s, kes("1000"))}
	calls := func(name string, want bool) {
		t.Helper()
		d.settle(t)
		if called := strings.Contains(log.String(), "ALERT a bank's balance"); called != want {
			t.Errorf("%s: called %t: %s", name, called, log.String())
		}
		log.Reset()
	}
	d.imports(t, "1000", moved("IN1", "300"))
	calls("what came in is booked", false)
	d.imports(t, "1300", moved("OUT1", "-40"))
	calls("what went out is not", true)
	out := d.entry(t, exchange.JournalBankCharge, "40")
	d.book(t, out)
	d.settle(t)
	late := d.statement(t, "1270")
	late.From, late.To, late.Closing = march.AddDate(0, 0, 3), march.AddDate(0, 0, 3), kes("1270")
	late, err := d.s.BeginStatement(t.Context(), late, d.one)
	if err == nil {
		_, err = d.s.CloseStatement(t.Context(), late.ID, d.one)
	}
	if err != nil {
		t.Fatal(err)
	}
	calls("days are missing", true)
	d.imports(t, "900", moved("OUT0", "-1"))
	calls("an older statement", false)
}

// What a statement's balance was compared with is not written anew when the ledger has moved on.
func TestAComparisonStays(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.imports(t, "900")
	d.settle(t)
	d.book(t, d.entry(t, exchange.JournalCapitalOut, "100"))
	for _, role := range []store.Role{store.RoleFlows, store.RoleAPI} {
		if _, err := storetest.As(t, d.s, role).ExecContext(t.Context(), `UPDATE bank_statements SET ledger = 900`); sqlState(err) != "KV002" {
			t.Errorf("%s hides the difference: %v", role, err)
		}
	}
	if b, err := d.s.BankStatement(t.Context(), b.ID); err != nil || b.Difference.String() != "-100.00" {
		t.Errorf("compared %+v, %v", b, err)
	}
}

// House money is done with the rights of the two processes that do it.
func TestHouseMoneyByTheRightsOfItsProcesses(t *testing.T) {
	t.Parallel()
	dsn := storetest.URL(t)
	all := storetest.Open(t, dsn, store.Options{})
	who := func(r exchange.Role) exchange.Principal { return storetest.PrincipalOf(storetest.User(t, all, r)) }
	bank := storetest.Bank(t, all, kes("1000"))
	d := desk{storetest.OpenAs(t, dsn, store.RoleAPI, store.Options{}), who(exchange.RoleTreasury), who(exchange.RoleTreasury), who(exchange.RoleAdmin), bank}
	flows := desk{s: storetest.OpenAs(t, dsn, store.RoleFlows, store.Options{})}
	d.imports(t, "1000", moved("IN1", "300"), moved("IN2", "200"), moved("IN3", "100"), moved("OUT1", "-40"))
	flows.settle(t)
	in := d.entry(t, exchange.JournalCapitalIn, "300")
	in.LineID = d.line(t, "IN1").ID
	in = d.book(t, in)
	d.book(t, exchange.JournalEntry{ID: storetest.NewID(t), Kind: exchange.JournalCorrection, Corrects: in.ID, ValueDate: march, Note: "a slip"})
	credit := exchange.ExceptionDecision{
		ID: storetest.NewID(t), ExceptionID: d.line(t, "IN2").ExceptionID, Verdict: exchange.ExcCredited, MerchantID: storetest.User(t, all, exchange.RoleVendor).ID, Reason: "a top-up",
	}
	if _, _, err := d.s.DecideException(t.Context(), credit, d.two); err != nil {
		t.Fatal(err)
	}
	charge := d.book(t, d.entry(t, exchange.JournalBankCharge, "40"))
	if _, err := d.s.MatchLine(t.Context(), d.line(t, "OUT1").ID, exchange.LineOfJournal, charge.ID, d.one); err != nil {
		t.Fatal(err)
	}
	later := d.book(t, d.entry(t, exchange.JournalCapitalIn, "100"))
	flows.settle(t)
	d.wantLine(t, "IN3", exchange.LineMatched, exchange.LineOfJournal, later.ID)
	off := false
	if b, _, err := d.s.PatchBankAccount(t.Context(), bank.ID, store.BankAccountPatch{IsActive: &off}, d.admin); err != nil || b.IsActive {
		t.Errorf("switched off: %+v, %v", b, err)
	}
	wantBooks(t, d.s)
}
