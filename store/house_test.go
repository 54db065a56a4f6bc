package store_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// desk is a store with two treasury officers, an admin, and an account of the house with 1000 KES at its bank.
type desk struct {
	s        *store.Store
	one, two exchange.Principal
	admin    exchange.Principal
	bank     exchange.HouseBankAccount
}

func newDesk(t *testing.T) desk {
	t.Helper()
	s := storetest.New(t)
	who := func(r exchange.Role) exchange.Principal { return storetest.PrincipalOf(storetest.User(t, s, r)) }
	return desk{s, who(exchange.RoleTreasury), who(exchange.RoleTreasury), who(exchange.RoleAdmin), storetest.Bank(t, s, kes("1000"))}
}

var march = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func (d desk) entry(t *testing.T, kind exchange.JournalKind, amount string) exchange.JournalEntry {
	t.Helper()
	e := exchange.JournalEntry{ID: storetest.NewID(t), Kind: kind, Amount: kes(amount), ValueDate: march, Note: "as the letter says"}
	if kind.Side() != "" {
		e.BankID = d.bank.ID
	}
	if kind.MovesFloat() {
		e.FloatAccount = exchange.FloatUtility
	}
	return e
}

func (d desk) propose(t *testing.T, e exchange.JournalEntry) exchange.ControlChange {
	t.Helper()
	c, err := d.s.ProposeJournalEntry(t.Context(), e, d.one)
	if err != nil {
		t.Fatalf("propose %s: %v", e.Kind, err)
	}
	return c
}

func (d desk) proposeBy(t *testing.T, by exchange.Principal) exchange.ControlChange {
	t.Helper()
	d.one = by
	return d.propose(t, d.entry(t, exchange.JournalCapitalOut, "10"))
}

func (d desk) book(t *testing.T, e exchange.JournalEntry) exchange.JournalEntry {
	t.Helper()
	if _, err := d.s.ConfirmChange(t.Context(), d.propose(t, e).ID, "", d.two); err != nil {
		t.Fatalf("confirm %s: %v", e.Kind, err)
	}
	e, err := d.s.JournalEntry(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Every kind moves the accounts that it means, and its correction moves all of it back.
func TestJournalEntriesMoveWhatTheyMean(t *testing.T) {
	t.Parallel()
	house := func(k exchange.AccountKind) exchange.AccountRef { return exchange.House(k, money.KES) }
	for kind, want := range map[exchange.JournalKind]struct {
		bank, other string
		account     exchange.AccountRef
	}{
		exchange.JournalCapitalIn:       {"1100", "1400", house(exchange.AccCapital)},
		exchange.JournalCapitalOut:      {"900", "1200", house(exchange.AccCapital)},
		exchange.JournalBankCharge:      {"900", "100", house(exchange.AccBankFees)},
		exchange.JournalFloatTopUp:      {"900", "400", house(exchange.AccMomoPayout)},
		exchange.JournalFloatWithdrawal: {"1100", "200", house(exchange.AccMomoPayout)},
		exchange.JournalOperatorCharge:  {"1000", "100", house(exchange.AccMomoFees)},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			storetest.Float(t, d.s, kes("300"))
			before, err := d.s.Account(t.Context(), want.account)
			if err != nil {
				t.Fatal(err)
			}
			e := d.book(t, d.entry(t, kind, "100"))
			if e.ProposedBy != d.one.UserID || e.ConfirmedBy != d.two.UserID || !e.ValueDate.Equal(march) || e.Amount.String() != "100.00" || e.Note == "" {
				t.Errorf("booked %+v", e)
			}
			wantBalance(t, d.s, d.bank.Ledger(), want.bank, "0")
			wantBalance(t, d.s, want.account, want.other, "0")
			undo := exchange.JournalEntry{ID: storetest.NewID(t), Kind: exchange.JournalCorrection, Corrects: e.ID, ValueDate: march, Note: "a slip"}
			undo = d.book(t, undo)
			if undo.Amount.String() != "100.00" || undo.BankID != e.BankID {
				t.Errorf("corrected by %+v", undo)
			}
			wantBalance(t, d.s, d.bank.Ledger(), "1000", "0")
			wantBalance(t, d.s, want.account, before.Posted.String(), "0")
			wantBooks(t, d.s)
			if e, err = d.s.JournalEntry(t.Context(), e.ID); err != nil || e.CorrectedBy != undo.ID {
				t.Errorf("the entry is corrected by %s, %v", e.CorrectedBy, err)
			}
			_, err = d.s.ProposeJournalEntry(t.Context(), exchange.JournalEntry{ID: storetest.NewID(t), Kind: exchange.JournalCorrection, Corrects: e.ID, ValueDate: march}, d.one)
			wantFault(t, err, exchange.CodeStateConflict)
			_, err = d.s.ProposeJournalEntry(t.Context(), exchange.JournalEntry{ID: storetest.NewID(t), Kind: exchange.JournalCorrection, Corrects: undo.ID, ValueDate: march}, d.one)
			wantFault(t, err, exchange.CodeInvalid)
		})
	}
}

// Two treasury officers book, and nobody else; the money must be there when it is booked.
func TestJournalEntriesNeedTwoTreasuryOfficers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, e := t.Context(), d.entry(t, exchange.JournalCapitalOut, "1000")
	_, err := d.s.ProposeJournalEntry(ctx, e, d.admin)
	wantFault(t, err, exchange.CodeForbidden)
	c := d.propose(t, e)
	if again := d.propose(t, e); again.ID != c.ID {
		t.Error("a repeated proposal is another one")
	}
	for _, by := range []exchange.Principal{d.one, d.admin} {
		_, err := d.s.ConfirmChange(ctx, c.ID, "", by)
		wantFault(t, err, exchange.CodeForbidden)
	}
	if waits, err := d.s.ChangesFor(ctx, d.admin.UserID); err != nil || len(waits) != 0 {
		t.Errorf("an admin is asked about %d, %v", len(waits), err)
	}
	if waits, err := d.s.ChangesFor(ctx, d.two.UserID); err != nil || len(waits) != 1 {
		t.Errorf("the other treasury officer is asked about %d, %v", len(waits), err)
	}
	second := d.entry(t, exchange.JournalBankCharge, "0.01")
	short := d.propose(t, second)
	for range 2 {
		if _, err := d.s.ConfirmChange(ctx, c.ID, "", d.two); err != nil {
			t.Fatal(err)
		}
	}
	_, err = d.s.ConfirmChange(ctx, short.ID, "", d.two)
	wantFault(t, err, exchange.CodeInsufficientFunds)
	wantBalance(t, d.s, d.bank.Ledger(), "0", "0")
	_, err = d.s.ProposeJournalEntry(ctx, e, d.one)
	wantFault(t, err, exchange.CodeConflict)
	late := d.entry(t, exchange.JournalCapitalIn, "1")
	late.ValueDate = time.Now().AddDate(0, 0, 2)
	_, err = d.s.ProposeJournalEntry(ctx, late, d.one)
	wantFault(t, err, exchange.CodeInvalid)
	late.ValueDate, late.BankID = march, storetest.NewID(t)
	_, err = d.s.ProposeJournalEntry(ctx, late, d.one)
	wantFault(t, err, exchange.CodeInvalid)
	list, total, err := d.s.JournalEntries(ctx, store.JournalFilter{Kind: exchange.JournalCapitalOut, BankID: d.bank.ID, FromDay: march, ToDay: march.AddDate(0, 0, 1)}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 1 || list[0].ID != e.ID {
		t.Errorf("listed %d: %+v, %v", total, list, err)
	}
}

// Who proposed an entry confirms it under no other role, and both count only while they are active.
func TestJournalEntriesNeedTwoPersons(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	c := d.propose(t, d.entry(t, exchange.JournalCapitalOut, "10"))
	same := d.one
	same.Role = exchange.RoleAdmin
	_, err := d.s.ConfirmChange(ctx, c.ID, "", same)
	wantFault(t, err, exchange.CodeForbidden)
	storetest.Exec(t, d.s, `UPDATE users SET is_active = false WHERE id = '`+d.one.UserID.String()+`'`)
	_, err = d.s.ConfirmChange(ctx, c.ID, "", d.two)
	wantFault(t, err, exchange.CodeStateConflict)
	wantBalance(t, d.s, d.bank.Ledger(), "1000", "0")
	storetest.Exec(t, d.s, `UPDATE users SET is_active = false WHERE id = '`+d.two.UserID.String()+`'`)
	_, err = d.s.ConfirmChange(ctx, d.proposeBy(t, storetest.PrincipalOf(storetest.User(t, d.s, exchange.RoleTreasury))).ID, "", d.two)
	wantFault(t, err, exchange.CodeForbidden)
}

// The database books nothing about the house's money that two officers did not agree on, whoever writes it.
func TestJournalIsGuardedByTheDatabase(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	storetest.Float(t, d.s, kes("300"))
	db := storetest.Owner(t, d.s)
	change := d.propose(t, d.entry(t, exchange.JournalCapitalIn, "70"))
	insert := func(of string) string {
		return `INSERT INTO journal_entries (id, kind, bank_account_id, float_account, asset, amount, value_date, corrects, note, proposed_by, confirmed_by, change_id, booked_at)
			SELECT ` + of + `, proposed_by, '` + d.two.UserID.String() + `', id, now() FROM control_changes WHERE id = '` + change.ID.String() + `'`
	}
	good := `(change ->> 'id')::uuid, 'capital_in', (change ->> 'bank_account_id')::uuid, NULL, 'KES', 70, '2026-03-02', NULL, change ->> 'note'`
	confirm := `UPDATE control_changes SET status = 'confirmed', decided_by = '` + d.two.UserID.String() + `', decided_at = now() WHERE id = '` + change.ID.String() + `';`
	lines := func(key, kind, debit, credit, amount string) string {
		return `; WITH e AS (INSERT INTO ledger_entries (key, digest, kind, object_type, object_id, at) SELECT '` + key + `' || (change ->> 'id'), decode(repeat('00', 16), 'hex'), '` + kind + `',
			'journal_entry', (change ->> 'id')::uuid, now() FROM control_changes WHERE id = '` + change.ID.String() + `' RETURNING id)
			INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT e.id, a.id, CASE a.code WHEN '` + debit + `' THEN ` + amount + ` ELSE -` + amount + ` END
			FROM e, ledger_accounts a WHERE a.code IN ('` + debit + `', '` + credit + `')`
	}
	bank := d.bank.Ledger().Code()
	for name, c := range map[string]struct{ code, query string }{
		"unconfirmed":           {"KV006", insert(good)},
		"another amount":        {"KV006", confirm + insert(`(change ->> 'id')::uuid, 'capital_in', (change ->> 'bank_account_id')::uuid, NULL, 'KES', 71, '2026-03-02', NULL, change ->> 'note'`)},
		"another kind":          {"KV006", confirm + insert(`(change ->> 'id')::uuid, 'capital_out', (change ->> 'bank_account_id')::uuid, NULL, 'KES', 70, '2026-03-02', NULL, change ->> 'note'`)},
		"another day":           {"KV006", confirm + insert(`(change ->> 'id')::uuid, 'capital_in', (change ->> 'bank_account_id')::uuid, NULL, 'KES', 70, '2026-03-03', NULL, change ->> 'note'`)},
		"another id":            {"KV006", confirm + insert(`gen_random_uuid(), 'capital_in', (change ->> 'bank_account_id')::uuid, NULL, 'KES', 70, '2026-03-02', NULL, change ->> 'note'`)},
		"not booked":            {"KV002", confirm + insert(good)},
		"booked with less":      {"KV002", confirm + insert(good) + lines("journal:", "journal.capital_in", bank, "capital:house:KES", "69")},
		"booked the other way":  {"KV002", confirm + insert(good) + lines("journal:", "journal.capital_in", "capital:house:KES", bank, "70")},
		"booked elsewhere":      {"KV002", confirm + insert(good) + lines("journal:", "journal.capital_in", bank, "momo_payout:house:KES", "70")},
		"an entry without one":  {"KV006", lines("journal:", "journal.capital_in", bank, "capital:house:KES", "70")},
		"an entry of the like":  {"KV006", confirm + insert(good) + lines("journal:", "journal.capital_in", bank, "capital:house:KES", "70") + lines("again:", "journal.capital_in", bank, "capital:house:KES", "70")},
		"money from nowhere":    {"KV002", lines("seed:", "seed.bank", bank, "capital:house:KES", "70")},
		"a house account":       {"KV002", `INSERT INTO ledger_accounts (code, kind, asset, debit_normal, may_go_below) VALUES ('bank:house:KES', 'bank', 'KES', true, false)`},
		"a changed entry":       {"KV002", `UPDATE journal_entries SET amount = amount + 1`},
		"a bank account":        {"KV006", `INSERT INTO bank_accounts SELECT gen_random_uuid(), bank_name, bank_code, branch, swift_code, account_name, '1', currency, is_active, created_at, updated_at FROM bank_accounts`},
		"another name":          {"KV006", `UPDATE bank_accounts SET account_name = 'Mallory'`},
		"another number":        {"KV006", `UPDATE bank_accounts SET account_number = '1'`},
		"another name on close": {"KV006", `UPDATE bank_accounts SET account_name = 'Mallory', is_active = false`},
		"an admin's proposal": {"KV006", `INSERT INTO control_changes (id, kind, was, change, proposed_by, proposed_at, expires_at, status)
			VALUES (gen_random_uuid(), 'journal_entry', '{}', '{}', '` + d.admin.UserID.String() + `', now(), now() + interval '1 hour', 'pending')`},
		"an admin's word": {"KV006", `UPDATE control_changes SET status = 'confirmed', decided_by = '` + d.admin.UserID.String() + `', decided_at = now() WHERE id = '` + change.ID.String() + `'`},
	} {
		if err := inOne(t, db, c.query); sqlState(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantBalance(t, d.s, d.bank.Ledger(), "1000", "0")
}

// A file proves an entry too: it is kept because of it, and both officers see what it is.
func TestFilesProveJournalEntries(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	letter, picture := d.evidence(t, false), d.evidence(t, true)
	for name, id := range map[string]uuid.UUID{
		"none": storetest.NewID(t), "a statement": storetest.StatementFile(t, d.s, d.one, []byte("x")).ID, "a picture": picture.OriginalID,
		"a merchant's proof": addFile(t, d.s, storetest.User(t, d.s, exchange.RoleVendor), "slip", false).ID,
	} {
		e := d.entry(t, exchange.JournalCapitalIn, "70")
		e.FileID = id
		if _, err := d.s.ProposeJournalEntry(t.Context(), e, d.one); exchange.CodeOf(err) != exchange.CodeInvalid {
			t.Errorf("%s proves it: %v", name, err)
		}
	}
	e := d.entry(t, exchange.JournalCapitalIn, "70")
	e.FileID, e.Note = letter.ID, ""
	if e = d.book(t, e); e.FileID != letter.ID || e.Note != "" {
		t.Errorf("booked %+v", e)
	}
	var uses int
	err := storetest.Owner(t, d.s).QueryRowContext(t.Context(), `SELECT count(*) FROM file_uses WHERE object_type = 'journal_entry' AND object_id = $1 AND file_id = $2`, e.ID, letter.ID).Scan(&uses)
	if err != nil || uses != 1 {
		t.Errorf("its file has %d uses, %v", uses, err)
	}
}

// evidence is a file for a decision of the house, by the first officer.
func (d desk) evidence(t *testing.T, picture bool) exchange.File {
	t.Helper()
	files := uploaded(t, exchange.User{ID: d.one.UserID, Role: exchange.RoleTreasury}, storetest.NewID(t).String(), picture)
	for i := range files {
		files[i].Purpose, files[i].OwnerID = exchange.FileExceptionEvidence, uuid.Nil
	}
	f, err := d.s.AddFile(t.Context(), files, d.one)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// inOne runs statements in one transaction, and returns its error.
func inOne(t *testing.T, db *sql.DB, query string) error {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), query); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Two officers agree on what others pay to; one may close it.
func TestBankAccountsNeedTwoOfficers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	name := "Kivuko Payments Limited"
	_, c, err := d.s.PatchBankAccount(ctx, d.bank.ID, store.BankAccountPatch{AccountName: &name}, d.admin)
	if err != nil || c.ID == uuid.Nil {
		t.Fatalf("another name waits as %v, %v", c.ID, err)
	}
	_, err = d.s.ConfirmChange(ctx, c.ID, "", d.admin)
	wantFault(t, err, exchange.CodeForbidden)
	if _, err := d.s.ConfirmChange(ctx, c.ID, "", d.one); err != nil {
		t.Fatal(err)
	}
	off, on := false, true
	b, c, err := d.s.PatchBankAccount(ctx, d.bank.ID, store.BankAccountPatch{IsActive: &off}, d.admin)
	if err != nil || c.ID != uuid.Nil || b.IsActive || b.AccountName != name || b.Balance.String() != "1000.00" {
		t.Errorf("closed: %+v, waits %v, %v", b, c.ID, err)
	}
	if b, c, err = d.s.PatchBankAccount(ctx, d.bank.ID, store.BankAccountPatch{IsActive: &on}, d.admin); err != nil || c.ID == uuid.Nil || b.IsActive {
		t.Errorf("opened by one: %+v, %v", b, err)
	}
	_, _, err = d.s.PatchBankAccount(ctx, d.bank.ID, store.BankAccountPatch{IsActive: &on, Versions: []int64{1}}, d.admin)
	wantFault(t, err, exchange.CodePrecondition)
	_, err = d.s.ProposeBankAccount(ctx, exchange.HouseBankAccount{ID: storetest.NewID(t), BankCode: b.BankCode, AccountNumber: b.AccountNumber, Currency: money.KES}, d.admin)
	wantFault(t, err, exchange.CodeConflict)
	if list, total, err := d.s.BankAccounts(ctx, store.BankAccountFilter{Currency: money.KES, ActiveOnly: true}, store.Page{Number: 1, Size: 10}); err != nil || total != 0 {
		t.Errorf("active are %+v, %v", list, err)
	}
}
