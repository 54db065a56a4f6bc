package store_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// moved is a movement at the bank on 2 March: a debit when the amount is below zero.
func moved(reference, amount string) exchange.StatementLine {
	l := exchange.StatementLine{BankReference: reference, Copy: 1, ValueDate: march, BookedOn: march, Side: exchange.SideCredit, Reference: "for " + reference, PartyName: "Jane Roe"}
	if amount[0] == '-' {
		l.Side, amount = exchange.SideDebit, amount[1:]
	}
	l.Amount = kes(amount)
	return l
}

// statement is a statement of the desk's account that begins with what the ledger has.
func (d desk) statement(t *testing.T, opening string, lines ...exchange.StatementLine) exchange.BankStatement {
	t.Helper()
	b := exchange.BankStatement{
		ID: storetest.NewID(t), BankID: d.bank.ID, Format: exchange.StatementCSV, Reference: "S", AccountNumber: d.bank.AccountNumber, From: march, To: march,
		Opening: kes("0"), Lines: len(lines),
	}
	if opening[0] == '-' {
		b.Opening = kes(opening[1:]).Neg()
	} else {
		b.Opening = kes(opening)
	}
	b.Closing = b.Opening
	file := opening
	for _, l := range lines {
		b.Closing, file = b.Closing.Add(l.Signed()), file+fmt.Sprint(l.Key())
	}
	f := storetest.StatementFile(t, d.s, d.one, []byte(file))
	b.FileID, b.Digest = f.ID, hex.EncodeToString(f.SHA256)
	return b
}

// imports stores a statement as the API does, by the first treasury officer.
func (d desk) imports(t *testing.T, opening string, lines ...exchange.StatementLine) exchange.BankStatement {
	t.Helper()
	b, err := d.s.BeginStatement(t.Context(), d.statement(t, opening, lines...), d.one)
	if err != nil {
		t.Fatal(err)
	}
	if b.Status == exchange.StatementStoring {
		for i := range lines {
			lines[i].Number = i + 1
		}
		if err := d.s.SaveStatementLines(t.Context(), b, lines); err != nil {
			t.Fatal(err)
		}
		if b, err = d.s.CloseStatement(t.Context(), b.ID, d.one); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// settle runs the matching until nothing is left.
func (d desk) settle(t *testing.T) {
	t.Helper()
	for {
		n, err := d.s.MatchLines(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// line is the line with a reference of the bank.
func (d desk) line(t *testing.T, reference string) exchange.StatementLine {
	t.Helper()
	all, total, err := d.s.StatementLines(t.Context(), store.LineFilter{BankID: d.bank.ID, Reference: reference}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 1 {
		t.Fatalf("%d lines have the reference %s, %v", total, reference, err)
	}
	return all[0]
}

func (d desk) wantLine(t *testing.T, reference string, status exchange.LineStatus, object string, id uuid.UUID) exchange.StatementLine {
	t.Helper()
	l := d.line(t, reference)
	if l.Status != status || l.ObjectType != object || l.ObjectID != id {
		t.Errorf("line %s is %s with %s %s, want %s with %s %s", reference, l.Status, l.ObjectType, l.ObjectID, status, object, id)
	}
	return l
}

// What nothing explains is set aside: money that came in lies in suspense, and money that went out is not booked.
func TestUnexplainedLinesAreSetAside(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	b := d.imports(t, "1000", moved("IN1", "300"), moved("OUT1", "-40"))
	if b.Status != exchange.StatementMatching || b.Fresh != 2 || b.WaitsFor() != exchange.WaitMatching {
		t.Errorf("imported %+v", b)
	}
	d.settle(t)
	wantBalance(t, d.s, d.bank.Ledger(), "1300", "0")
	wantBalance(t, d.s, suspense(), "300", "0")
	wantBooks(t, d.s)
	b, err := d.s.BankStatement(ctx, b.ID)
	if err != nil || b.Status != exchange.StatementCompared || b.Unmatched != 2 || b.Ledger.String() != "1300.00" || b.Closing.String() != "1260.00" || b.Difference.String() != "-40.00" || b.Unexplained.String() != "-40.00" || b.Gap != nil {
		t.Errorf("compared %+v, %v", b, err)
	}
	in, out := d.wantLine(t, "IN1", exchange.LineAside, "", uuid.Nil), d.wantLine(t, "OUT1", exchange.LineAside, "", uuid.Nil)
	list, total, err := d.s.ListExceptions(ctx, store.ExceptionFilter{Rail: exchange.RailBank, Status: exchange.ExcOpen}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 2 || list[0].Kind != exchange.ExcUnmatched || list[0].Rail() != exchange.RailBank {
		t.Errorf("%d exceptions: %+v, %v", total, list, err)
	}

	// Who imported a statement can't make somebody's money of its lines.
	vendor := storetest.User(t, d.s, exchange.RoleVendor)
	credit := exchange.ExceptionDecision{ID: storetest.NewID(t), ExceptionID: in.ExceptionID, Verdict: exchange.ExcCredited, MerchantID: vendor.ID, Reason: "a top-up"}
	_, _, err = d.s.DecideException(ctx, credit, d.one)
	wantFault(t, err, exchange.CodeForbidden)
	_, err = d.s.ProposeDecision(ctx, credit, d.one)
	wantFault(t, err, exchange.CodeForbidden)
	if x, _, err := d.s.DecideException(ctx, credit, d.two); err != nil || x.Status != exchange.ExcCredited || x.LineID != in.ID {
		t.Fatalf("credited %+v, %v", x, err)
	}
	wantBalance(t, d.s, exchange.Owned(exchange.AccFiatBalance, vendor.ID, money.KES), "300", "0")
	wantBalance(t, d.s, suspense(), "0", "0")
	_, err = d.s.MatchLine(ctx, in.ID, exchange.LineOfJournal, d.book(t, d.entry(t, exchange.JournalCapitalIn, "300")).ID, d.two)
	wantFault(t, err, exchange.CodeStateConflict)

	// Money that went out is not decided about; what it was for is booked.
	for _, verdict := range []exchange.ExceptionStatus{exchange.ExcAccepted, exchange.ExcWrittenOff, exchange.ExcCredited} {
		_, _, err = d.s.DecideException(ctx, exchange.ExceptionDecision{ID: storetest.NewID(t), ExceptionID: out.ExceptionID, Verdict: verdict, MerchantID: vendor.ID, Reason: "x"}, d.two)
		wantFault(t, err, exchange.CodeStateConflict)
	}
	_, err = d.s.RefundException(ctx, out.ExceptionID, d.two)
	wantFault(t, err, exchange.CodeStateConflict)
	charge := d.entry(t, exchange.JournalBankCharge, "40")
	charge.LineID, charge.Note = out.ID, ""
	charge = d.book(t, charge)
	d.wantLine(t, "OUT1", exchange.LineMatched, exchange.LineOfJournal, charge.ID)
	if x, err := d.s.Exception(ctx, out.ExceptionID); err != nil || x.Status != exchange.ExcMatched {
		t.Errorf("its exception is %+v, %v", x, err)
	}
	wantBooks(t, d.s)
}

// A journal entry that names a line takes its money out of suspense. When it was a mistake, all is as before.
func TestEntriesNameTheirLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.imports(t, "1000", moved("IN1", "300"), moved("IN2", "300"))
	d.settle(t)
	wantBalance(t, d.s, suspense(), "600", "0")
	one := d.line(t, "IN1")
	for name, change := range map[string]func(*exchange.JournalEntry){
		"another amount": func(e *exchange.JournalEntry) { e.Amount = kes("299") },
		"another side":   func(e *exchange.JournalEntry) { e.Kind = exchange.JournalCapitalOut },
		"another day":    func(e *exchange.JournalEntry) { e.ValueDate = march.AddDate(0, 0, 1) },
		"another bank":   func(e *exchange.JournalEntry) { e.BankID = storetest.AddBankAccount(t, d.s, "77").ID },
		"no line":        func(e *exchange.JournalEntry) { e.LineID = storetest.NewID(t) },
	} {
		e := d.entry(t, exchange.JournalCapitalIn, "300")
		e.LineID = one.ID
		change(&e)
		if _, err := d.s.ProposeJournalEntry(ctx, e, d.one); exchange.CodeOf(err) != exchange.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	e, rival := d.entry(t, exchange.JournalCapitalIn, "300"), d.entry(t, exchange.JournalCapitalIn, "300")
	e.LineID, rival.LineID = one.ID, one.ID
	waits := d.propose(t, rival)
	e = d.book(t, e)
	_, err := d.s.ConfirmChange(ctx, waits.ID, "", d.two)
	wantFault(t, err, exchange.CodeStateConflict)
	d.wantLine(t, "IN1", exchange.LineMatched, exchange.LineOfJournal, e.ID)
	wantBalance(t, d.s, d.bank.Ledger(), "1600", "0")
	wantBalance(t, d.s, suspense(), "300", "0")

	// It was somebody else's money: the entry is corrected, and the line waits again.
	d.book(t, exchange.JournalEntry{ID: storetest.NewID(t), Kind: exchange.JournalCorrection, Corrects: e.ID, ValueDate: march, Note: "not the owners'"})
	if l := d.wantLine(t, "IN1", exchange.LineNew, "", uuid.Nil); l.ExceptionID != uuid.Nil {
		t.Errorf("its exception is %s", l.ExceptionID)
	}
	wantBalance(t, d.s, d.bank.Ledger(), "1300", "0")
	d.settle(t)
	if again := d.wantLine(t, "IN1", exchange.LineAside, "", uuid.Nil); again.ExceptionID == one.ExceptionID || again.ExceptionID == uuid.Nil {
		t.Errorf("its exception is %s", again.ExceptionID)
	}
	wantBalance(t, d.s, d.bank.Ledger(), "1600", "0")
	wantBalance(t, d.s, suspense(), "600", "0")

	// A charge that the bank gave back is corrected by its own line.
	d.imports(t, "1600", moved("CHG", "-20"), moved("BACK", "20"))
	charge := d.entry(t, exchange.JournalBankCharge, "20")
	charge.LineID = d.line(t, "CHG").ID
	charge = d.book(t, charge)
	back := d.book(t, exchange.JournalEntry{ID: storetest.NewID(t), Kind: exchange.JournalCorrection, Corrects: charge.ID, LineID: d.line(t, "BACK").ID, ValueDate: march})
	d.settle(t)
	d.wantLine(t, "CHG", exchange.LineMatched, exchange.LineOfJournal, charge.ID)
	d.wantLine(t, "BACK", exchange.LineMatched, exchange.LineOfJournal, back.ID)
	wantBalance(t, d.s, d.bank.Ledger(), "1600", "0")
	wantBooks(t, d.s)
}

// A line is matched with the one entry that has its account, side, amount and day, whichever comes first; two of a kind are left
// to an officer.
func TestLinesFindTheirEntries(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	before := d.book(t, d.entry(t, exchange.JournalCapitalOut, "60"))
	d.imports(t, "1000", moved("A", "-60"), moved("B", "70"), moved("C", "-5"), moved("D", "-5"))
	d.settle(t)
	d.wantLine(t, "A", exchange.LineMatched, exchange.LineOfJournal, before.ID)
	wantBalance(t, d.s, suspense(), "70", "0")
	later := d.book(t, d.entry(t, exchange.JournalCapitalIn, "70"))
	wantBalance(t, d.s, d.bank.Ledger(), "1080", "0") // for now twice
	d.settle(t)
	if l := d.wantLine(t, "B", exchange.LineMatched, exchange.LineOfJournal, later.ID); l.MatchedBy != uuid.Nil {
		t.Errorf("matched by %s", l.MatchedBy)
	}
	wantBalance(t, d.s, d.bank.Ledger(), "1010", "0")
	wantBalance(t, d.s, suspense(), "0", "0")

	five := d.book(t, d.entry(t, exchange.JournalBankCharge, "5"))
	d.settle(t)
	c, dd := d.wantLine(t, "C", exchange.LineAside, "", uuid.Nil), d.wantLine(t, "D", exchange.LineAside, "", uuid.Nil)
	_, err := d.s.MatchLine(ctx, c.ID, exchange.LineOfJournal, later.ID, d.one)
	wantFault(t, err, exchange.CodeInvalid)
	for _, none := range []uuid.UUID{storetest.NewID(t), uuid.Nil} {
		_, err = d.s.MatchLine(ctx, c.ID, exchange.LineOfPayout, none, d.one)
		wantFault(t, err, exchange.CodeInvalid)
	}
	for range 2 {
		if l, err := d.s.MatchLine(ctx, c.ID, exchange.LineOfJournal, five.ID, d.one); err != nil || l.Status != exchange.LineMatched || l.MatchedBy != d.one.UserID {
			t.Fatalf("by hand: %+v, %v", l, err)
		}
	}
	_, err = d.s.MatchLine(ctx, dd.ID, exchange.LineOfJournal, five.ID, d.one)
	wantFault(t, err, exchange.CodeConflict)
	wantBooks(t, d.s)
}

// A payout by bank is found by its reference, before and after an officer has confirmed it.
func TestLinesFindPayouts(t *testing.T) {
	t.Parallel()
	x := banking(t)
	officer := storetest.User(t, x.s, exchange.RoleTreasury)
	d := desk{s: x.s, one: storetest.PrincipalOf(officer), bank: storetest.BankAccount(t, x.s)}
	paid, elsewhere, early := moved("FT26325XYZ", "-1293"), moved("FT26325XYZ", "-1292"), moved("FT26325XYZ", "-1293")
	paid.ValueDate, early.ValueDate = exchange.DateOf(x.order.CreatedAt), exchange.DateOf(x.order.CreatedAt).AddDate(0, 0, -1)
	d.imports(t, "300000", paid, elsewhere, early)
	d.settle(t)
	aside := d.lineOf(t, paid)
	if aside.Status != exchange.LineAside {
		t.Errorf("before it is confirmed the line is %s", aside.Status)
	}
	if done, err := x.confirm(t, x.word(t, storetest.User(t, x.s, exchange.RoleTreasury), "ft 26325 xyz")); err != nil || !done {
		t.Fatalf("confirmed: %t, %v", done, err)
	}
	d.settle(t)
	if l := d.lineOf(t, paid); l.Status != exchange.LineMatched || l.ObjectType != exchange.LineOfPayout || l.ObjectID != x.order.ID {
		t.Errorf("the line is %+v", l)
	}
	if l := d.lineOf(t, elsewhere); l.Status != exchange.LineAside {
		t.Errorf("a line of another amount is %s", l.Status)
	}
	before := d.lineOf(t, early)
	if before.Status != exchange.LineAside {
		t.Errorf("a line from before the order is %s", before.Status)
	}
	_, err := d.s.MatchLine(t.Context(), before.ID, exchange.LineOfPayout, x.order.ID, d.one)
	wantFault(t, err, exchange.CodeInvalid)
	if e, err := x.s.Exception(t.Context(), aside.ExceptionID); err != nil || e.Status != exchange.ExcMatched {
		t.Errorf("its exception is %s, %v", e.Status, err)
	}
	x.wantBank(t, "298707", "0")
}

// A line that an officer named for the wrong payout is freed by two, none of whom brought its statement in, and what explains it is found.
func TestTwoOfficersFreeALine(t *testing.T) {
	t.Parallel()
	x := banking(t)
	who := func() exchange.Principal { return storetest.PrincipalOf(storetest.User(t, x.s, exchange.RoleTreasury)) }
	d := desk{s: x.s, one: who(), bank: storetest.BankAccount(t, x.s)}
	first, second := who(), who()
	wrong, right := moved("FT1", "-1293"), moved("FT2", "-1293")
	wrong.ValueDate, right.ValueDate = exchange.DateOf(x.order.CreatedAt), exchange.DateOf(x.order.CreatedAt)
	d.imports(t, "300000", wrong)
	d.settle(t)
	if done, err := x.confirm(t, x.word(t, storetest.User(t, x.s, exchange.RoleTreasury), "FT2")); err != nil || !done {
		t.Fatalf("confirmed: %t, %v", done, err)
	}
	l, err := d.s.MatchLine(t.Context(), d.lineOf(t, wrong).ID, exchange.LineOfPayout, x.order.ID, first)
	if err != nil {
		t.Fatal(err)
	}
	d.imports(t, "298707", right)
	d.settle(t)
	if l := d.lineOf(t, right); l.Status != exchange.LineAside {
		t.Errorf("the payout's own line is %s", l.Status)
	}
	_, err = d.s.ProposeFreeLine(t.Context(), l.ID, "another payment", d.one)
	wantFault(t, err, exchange.CodeForbidden)
	_, err = d.s.ProposeFreeLine(t.Context(), d.lineOf(t, right).ID, "not matched", first)
	wantFault(t, err, exchange.CodeStateConflict)
	c, err := d.s.ProposeFreeLine(t.Context(), l.ID, "another payment", first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.As(t, d.s, store.RoleAPI).ExecContext(t.Context(), `UPDATE bank_lines SET status = 'new', object_type = NULL, object_id = NULL, matched_by = NULL,
		matched_at = NULL, version = version + 1 WHERE id = $1`, l.ID); err == nil {
		t.Error("the database freed a line for one officer")
	}
	for _, by := range []exchange.Principal{first, d.one} {
		_, err := d.s.ConfirmChange(t.Context(), c.ID, "", by)
		wantFault(t, err, exchange.CodeForbidden)
	}
	if _, err := d.s.ConfirmChange(t.Context(), c.ID, "", second); err != nil {
		t.Fatal(err)
	}
	d.settle(t)
	if l := d.lineOf(t, right); l.Status != exchange.LineMatched || l.ObjectID != x.order.ID {
		t.Errorf("the payout's own line is %+v", l)
	}
	if l := d.lineOf(t, wrong); l.Status != exchange.LineAside || l.ExceptionID == uuid.Nil {
		t.Errorf("the freed line is %+v", l)
	}
	x.wantBank(t, "298707", "0")
}

func (d desk) lineOf(t *testing.T, like exchange.StatementLine) exchange.StatementLine {
	t.Helper()
	all, _, err := d.s.StatementLines(t.Context(), store.LineFilter{BankID: d.bank.ID}, store.Page{Number: 1, Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if l.Key() == like.Key() {
			return l
		}
	}
	t.Fatalf("there is no line %+v", like.Key())
	return exchange.StatementLine{}
}

// The same file and the same line do nothing twice, and what was interrupted is continued.
func TestStatementsAreStoredOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	one, two := moved("IN1", "300"), moved("IN2", "200")
	first := d.imports(t, "1000", one)
	d.settle(t)
	if again := d.imports(t, "1000", one); again.ID != first.ID || again.Status != exchange.StatementCompared || again.Fresh != 1 {
		t.Errorf("the same file: %+v", again)
	}
	longer := d.imports(t, "1000", one, two)
	d.settle(t)
	if longer.Lines != 2 || longer.Fresh != 1 || d.line(t, "IN1").StatementID != first.ID || d.line(t, "IN2").StatementID != longer.ID {
		t.Errorf("a longer statement: %+v", longer)
	}
	wantBalance(t, d.s, suspense(), "500", "0")

	// The process died after some lines; another officer sends the file again.
	three, four := moved("IN3", "100"), moved("IN4", "50")
	three.Number, four.Number = 1, 2
	cut := d.statement(t, "1500", three, four)
	began, err := d.s.BeginStatement(ctx, cut, d.one)
	if err == nil {
		err = d.s.SaveStatementLines(ctx, began, []exchange.StatementLine{three})
	}
	if err != nil {
		t.Fatal(err)
	}
	d.settle(t)
	d.wantLine(t, "IN3", exchange.LineAside, "", uuid.Nil) // the bank has moved it
	if b, err := d.s.BankStatement(ctx, began.ID); err != nil || b.Status != exchange.StatementStoring || b.WaitsFor() != exchange.WaitStoring {
		t.Errorf("interrupted: %+v, %v", b, err)
	}
	cut.ID = storetest.NewID(t)
	known, err := d.s.BeginStatement(ctx, cut, d.two)
	if err != nil || known.ID != began.ID || known.Status != exchange.StatementStoring || known.ImportedBy != d.one.UserID {
		t.Fatalf("continued: %+v, %v", known, err)
	}
	if err := d.s.SaveStatementLines(ctx, known, []exchange.StatementLine{three, four}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if b, err := d.s.CloseStatement(ctx, known.ID, d.two); err != nil || b.Fresh != 2 {
			t.Fatalf("closed: %+v, %v", b, err)
		}
	}
	d.settle(t)
	if b, err := d.s.BankStatement(ctx, known.ID); err != nil || !b.Difference.IsZero() || b.Ledger.String() != "1650.00" {
		t.Errorf("compared %+v, %v", b, err)
	}
	err = d.s.SaveStatementLines(ctx, known, []exchange.StatementLine{moved("IN5", "1")})
	if err == nil {
		t.Error("a line was added to a statement that is stored")
	}
	other := d.statement(t, "1")
	other.AccountNumber = "1"
	_, err = d.s.BeginStatement(ctx, other, d.one)
	wantFault(t, err, exchange.CodeInvalid)
	list, total, err := d.s.BankStatements(ctx, store.StatementFilter{BankID: d.bank.ID, Status: exchange.StatementCompared}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 3 || list[0].ID != known.ID {
		t.Errorf("listed %d: %+v, %v", total, list, err)
	}
}

// Two movements that the bank tells apart by nothing count twice, however many files show both.
func TestTwinsAreStoredOnceEach(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	one, twin := moved("CASH", "300"), moved("CASH", "300")
	twin.Copy = 2
	d.imports(t, "1000", one)
	d.settle(t)
	if b := d.imports(t, "1000", one, twin); b.Fresh != 1 {
		t.Errorf("the second file brings %d", b.Fresh)
	}
	if b := d.imports(t, "1000", one, twin, moved("IN1", "1")); b.Fresh != 1 {
		t.Errorf("the third file brings %d", b.Fresh)
	}
	d.settle(t)
	wantBalance(t, d.s, suspense(), "601", "0")
	wantBooks(t, d.s)
}

// A statement is compared with what all files say, also one whose storing was interrupted. Missing days are seen.
func TestStatementsOverlap(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	one, two := moved("IN1", "300"), moved("IN2", "200")
	one.Number = 1
	cut, err := d.s.BeginStatement(ctx, d.statement(t, "1000", one, moved("LOST", "5")), d.one)
	if err == nil {
		err = d.s.SaveStatementLines(ctx, cut, []exchange.StatementLine{one})
	}
	if err != nil {
		t.Fatal(err)
	}
	whole := d.imports(t, "1000", one, two)
	d.settle(t)
	if b, err := d.s.BankStatement(ctx, whole.ID); err != nil || b.Fresh != 1 || b.Status != exchange.StatementCompared || !b.Difference.IsZero() || b.Gap != nil {
		t.Errorf("compared %+v, %v", b, err)
	}
	next := d.statement(t, "1510", moved("IN3", "1"))
	next.From, next.To = march.AddDate(0, 0, 3), march.AddDate(0, 0, 3)
	if next, err = d.s.BeginStatement(ctx, next, d.one); err != nil || next.Gap == nil || next.Gap.String() != "10.00" {
		t.Errorf("after missing days %+v, %v", next, err)
	}
}

// A statement is what its file says, and the file is kept because of it.
func TestStatementsHaveTheirFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, change := range map[string]func(*exchange.BankStatement){
		"another digest": func(b *exchange.BankStatement) { b.Digest = strings.Repeat("0", 64) },
		"another format": func(b *exchange.BankStatement) { b.Format = exchange.StatementCAMT },
		"another file":   func(b *exchange.BankStatement) { b.FileID = storetest.StatementFile(t, d.s, d.one, []byte("other")).ID },
	} {
		b := d.statement(t, "1000")
		change(&b)
		if _, err := d.s.BeginStatement(t.Context(), b, d.one); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	b := d.imports(t, "1000")
	var uses int
	err := storetest.Owner(t, d.s).QueryRowContext(t.Context(), `SELECT count(*) FROM file_uses WHERE object_type = 'bank_statement' AND object_id = $1 AND file_id = $2`, b.ID, b.FileID).Scan(&uses)
	if err != nil || uses != 1 {
		t.Errorf("its file has %d uses, %v", uses, err)
	}

	// One has uploaded the file, another has imported it: neither decides about its lines.
	line := moved("IN1", "5")
	line.Number = 1
	of, err := d.s.BeginStatement(t.Context(), d.statement(t, "1000", line), d.admin)
	if err == nil {
		err = d.s.SaveStatementLines(t.Context(), of, []exchange.StatementLine{line})
	}
	if err == nil {
		_, err = d.s.CloseStatement(t.Context(), of.ID, d.admin)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.settle(t)
	credit := exchange.ExceptionDecision{
		ID: storetest.NewID(t), ExceptionID: d.line(t, "IN1").ExceptionID, Verdict: exchange.ExcCredited, MerchantID: storetest.User(t, d.s, exchange.RoleVendor).ID, Reason: "a top-up",
	}
	for _, by := range []exchange.Principal{d.one, d.admin} {
		_, _, err := d.s.DecideException(t.Context(), credit, by)
		wantFault(t, err, exchange.CodeForbidden)
	}
	if _, _, err := d.s.DecideException(t.Context(), credit, d.two); err != nil {
		t.Fatal(err)
	}
}

// The database lets no line move money by itself.
func TestLinesAreGuardedByTheDatabase(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.imports(t, "1000", moved("IN1", "300"), moved("OUT1", "-40"), moved("NEW", "7"))
	if n, err := d.s.MatchLines(t.Context()); err != nil || n != 3 {
		t.Fatalf("%d set aside, %v", n, err)
	}
	d.imports(t, "1267", moved("FRESH", "9"))
	e, like := d.book(t, d.entry(t, exchange.JournalCapitalIn, "8")), d.book(t, d.entry(t, exchange.JournalCapitalIn, "300"))
	db := storetest.Owner(t, d.s)
	match := func(reference, object, id string) string {
		return `UPDATE bank_lines SET status = 'matched', object_type = '` + object + `', object_id = '` + id + `', matched_at = now() WHERE bank_reference = '` + reference + `'`
	}
	entry := func(key, kind, debit, credit, amount string) string {
		return `; WITH e AS (INSERT INTO ledger_entries (key, digest, kind, object_type, object_id, at) SELECT replace('` + key + `', 'X', x.id::text), decode(repeat('00', 16), 'hex'), '` + kind + `',
			'payment_exception', x.id, now() FROM payment_exceptions x JOIN bank_lines l ON l.id = x.line_id WHERE l.bank_reference = 'IN1' RETURNING id)
			INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT e.id, a.id, CASE a.code WHEN '` + debit + `' THEN ` + amount + ` ELSE -` + amount + ` END
			FROM e, ledger_accounts a WHERE a.code IN ('` + debit + `', '` + credit + `')`
	}
	bank, aside := d.bank.Ledger().Code(), suspense().Code()
	for name, c := range map[string]struct{ code, query string }{
		"matched with another amount":    {"KV002", match("FRESH", "journal_entry", e.ID.String())},
		"matched with nothing":           {"KV002", match("FRESH", "bank_payout", uuid.NewString())},
		"matched beside its exception":   {"KV002", match("IN1", "journal_entry", like.ID.String())},
		"aside without an exception":     {"KV002", `UPDATE bank_lines SET status = 'aside' WHERE bank_reference = 'FRESH'`},
		"freed":                          {"KV001", `UPDATE bank_lines SET status = 'new' WHERE bank_reference = 'IN1'`},
		"another amount":                 {"KV002", `UPDATE bank_lines SET amount = amount + 1`},
		"removed":                        {"KV002", `DELETE FROM bank_lines`},
		"a line of a stored statement":   {"KV001", `INSERT INTO bank_lines SELECT gen_random_uuid(), statement_id, bank_account_id, number, 'X', value_date, booked_on, side, copy, asset, amount, reference, reference_code, party_name, party_account, description, 'new', NULL, NULL, NULL, NULL, now(), now() FROM bank_lines WHERE bank_reference = 'FRESH'`},
		"compared too early":             {"KV001", `UPDATE bank_statements SET status = 'compared', compared_at = now(), ledger = 1308, unexplained = -40 WHERE status = 'matching' AND id = (SELECT statement_id FROM bank_lines WHERE bank_reference = 'FRESH')`},
		"an exception is just over":      {"KV002", `UPDATE payment_exceptions SET status = 'matched' WHERE line_id = (SELECT id FROM bank_lines WHERE bank_reference = 'IN1')`},
		"accepted by nobody":             {"KV006", `UPDATE payment_exceptions SET status = 'accepted' WHERE line_id = (SELECT id FROM bank_lines WHERE bank_reference = 'IN1')`},
		"what went out is written off":   {"KV006", `UPDATE payment_exceptions SET status = 'written_off' WHERE line_id = (SELECT id FROM bank_lines WHERE bank_reference = 'OUT1')`},
		"twice into suspense":            {"KV006", entry("again:X", "bank_line.aside", bank, aside, "300")},
		"out of suspense without a word": {"KV006", entry("exception:X:matched", "bank_line.matched", aside, bank, "300")},
		"an exception without its entry": {"KV002", `INSERT INTO payment_exceptions (id, kind, status, line_id, receipt, asset, amount, note, created_at, updated_at)
			SELECT gen_random_uuid(), 'unmatched', 'open', id, 'r', asset, amount, '', now(), now() FROM bank_lines WHERE bank_reference = 'FRESH'`},
		"an exception of another amount": {"KV002", `INSERT INTO payment_exceptions (id, kind, status, line_id, receipt, asset, amount, note, created_at, updated_at)
			SELECT gen_random_uuid(), 'unmatched', 'open', id, 'r', asset, amount + 1, '', now(), now() FROM bank_lines WHERE bank_reference = 'FRESH'`},
	} {
		if err := inOne(t, db, c.query); sqlState(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	d.settle(t)
	wantBooks(t, d.s)
}

// Many lines in one batch: each is stored and settled once.
func TestManyLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	lines := make([]exchange.StatementLine, 250)
	for i := range lines {
		lines[i] = moved(fmt.Sprintf("R%d", i), "1")
	}
	d.imports(t, "1000", lines...)
	if codes := atOnce(4, func(int) error { // two workers may run at once
		for {
			if n, err := d.s.MatchLines(t.Context()); n == 0 || err != nil {
				return err
			}
		}
	}); codes[""] != 4 {
		t.Errorf("outcomes %v", codes)
	}
	wantBalance(t, d.s, suspense(), "250", "0")
	wantBooks(t, d.s)
	if _, total, err := d.s.StatementLines(t.Context(), store.LineFilter{Status: exchange.LineAside, Side: exchange.SideCredit, FromDay: march, ToDay: march.AddDate(0, 0, 1)}, store.Page{Number: 1, Size: 1}); err != nil || total != 250 {
		t.Errorf("%d are aside, %v", total, err)
	}
}
