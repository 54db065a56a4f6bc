package api

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// strayLine is a line of a statement that nothing explains.
func strayLine(t testing.TB, e *env) exchange.StatementLine {
	t.Helper()
	bank := storetest.BankAccount(t, e.store)
	l := storetest.Line(t, strings.ToUpper(newID().String()[26:]), money.Must(money.KES, "100"))
	storetest.Statement(t, e.store, bank, l)
	return lineWith(t, e, l.BankReference)
}

func lineWith(t testing.TB, e *env, reference string) exchange.StatementLine {
	t.Helper()
	var all []exchange.StatementLine
	rows := e.do(get, treasuryPath+"/statement-lines?reference="+reference, nil, e.person(exchange.RoleOTCOfficer).auth()).want(http.StatusOK).object()["statement_lines"].([]any)
	for _, r := range rows {
		id := uuid.MustParse(r.(map[string]any)["id"].(string))
		l, err := e.store.StatementLine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	if len(all) != 1 {
		t.Fatalf("%d lines have the reference %s", len(all), reference)
	}
	return all[0]
}

// Staff read statements and their lines; an officer says what explains one.
func TestStatementLinesAreMatchedByHand(t *testing.T) {
	e := start(t)
	const path = treasuryPath + "/statement-lines"
	officer, merchant := e.person(exchange.RoleTreasury), e.person(exchange.RoleVendor)
	l := strayLine(t, e)
	statement := e.do(get, treasuryPath+"/bank-statements/"+l.StatementID.String(), nil, officer.auth()).want(http.StatusOK).object()
	if statement["status"] != "compared" || statement["closing_balance"] != "100.00" || statement["difference"] != "0.00" || statement["unmatched_lines"] != 1.0 {
		t.Errorf("the statement is %v", statement)
	}
	if list := e.do(get, treasuryPath+"/bank-statements?bank_account_id="+l.BankID.String()+"&status=compared", nil, officer.auth()).want(http.StatusOK).object(); list["total"] != 1.0 {
		t.Errorf("listed %v", list)
	}
	e.do(get, path, nil, merchant.auth()).refused(exchange.CodeForbidden)
	seen := e.do(get, path+"/"+l.ID.String(), nil, officer.auth()).want(http.StatusOK).object()
	if seen["status"] != "aside" || seen["status_detail"] != "operator" || seen["payment_exception_id"] != l.ExceptionID.String() || seen["side"] != "credit" {
		t.Errorf("the line is %v", seen)
	}
	x := e.do(get, "/api/v1/auth/payment-exceptions?rail=bank&statement_line_id="+l.ID.String(), nil, officer.auth()).want(http.StatusOK).object()["payment_exceptions"].([]any)
	if len(x) != 1 || x[0].(map[string]any)["rail"] != "bank" || x[0].(map[string]any)["statement_line_id"] != l.ID.String() {
		t.Errorf("its exception is %v", x)
	}
	entry := storetest.Journal(t, e.store, exchange.JournalEntry{Kind: exchange.JournalCapitalIn, BankID: l.BankID, Amount: l.Amount, ValueDate: l.ValueDate.AddDate(0, 0, -1)})
	match := func(who person, body map[string]any) *reply {
		return e.do(post, path+"/"+l.ID.String()+"/match", body, who.auth(), freshKey())
	}
	match(e.person(exchange.RoleOTCOfficer), map[string]any{"object_type": "journal_entry", "object_id": entry.ID}).refused(exchange.CodeForbidden)
	match(officer, map[string]any{"object_type": "order"}).blames("/object_type enum", "/object_id required")
	match(officer, map[string]any{"object_type": "bank_payout", "object_id": entry.ID}).blames("/object_id mismatch")
	done := match(officer, map[string]any{"object_type": "journal_entry", "object_id": entry.ID}).want(http.StatusOK).object()
	if done["status"] != "matched" || done["object_id"] != entry.ID.String() || done["matched_by"] != officer.ID.String() || done["payment_exception_id"] != nil {
		t.Errorf("matched %v", done)
	}
	for query, want := range map[string]float64{"?status=matched&side=credit": 1, "?status=aside": 0, "?from_day=2026-03-02&to_day=2026-03-03": 1, "?from_day=2026-03-03": 0, "?statement_id=" + newID().String(): 0} {
		if list := e.do(get, path+query, nil, officer.auth()).want(http.StatusOK).object(); list["total"] != want {
			t.Errorf("%s: %v", query, list["total"])
		}
	}
	if a, err := e.store.Account(t.Context(), exchange.House(exchange.AccSuspense, money.KES)); err != nil || !a.Posted.IsZero() {
		t.Errorf("suspense has %s, %v", a.Posted, err)
	}
}

// A file is checked as a whole before anything of it is stored, and stored once in whatever format and under whatever name.
func TestStatementsAreImported(t *testing.T) {
	e := start(t)
	const path = treasuryPath + "/bank-statements"
	officer, colleague, merchant := e.person(exchange.RoleTreasury), e.person(exchange.RoleTreasury), e.person(exchange.RoleVendor)
	account := storetest.BankAccount(t, e.store)
	upload := func(name string, change ...string) any {
		content, err := os.ReadFile("../bank/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return e.upload(officer, exchange.FileBankStatement, name, []byte(strings.NewReplacer(change...).Replace(string(content)))).want(http.StatusCreated).object()["id"]
	}
	take := func(who person, file any) *reply {
		return e.do(post, path, map[string]any{"bank_account_id": account.ID, "file_id": file}, who.auth(), freshKey())
	}
	csv := upload("march.csv")
	take(merchant, csv).refused(exchange.CodeForbidden)
	take(e.person(exchange.RoleOTCOfficer), csv).refused(exchange.CodeForbidden)
	take(officer, newID()).blames("/file_id not_found")
	take(officer, e.file(merchant)).blames("/file_id purpose")
	e.do(post, path, map[string]any{"bank_account_id": newID(), "file_id": csv}, officer.auth(), freshKey()).blames("/bank_account_id not_found")
	take(officer, upload("march.csv", "0.50", "0.51")).blames("/statement/closing_balance balance")
	take(officer, upload("march.csv", "0.50", "0,50")).blames("/file columns")
	take(officer, upload("march.csv", account.AccountNumber, "1", "0100-200-300", "1")).blames("/statement/account mismatch")
	if list := e.do(get, treasuryPath+"/statement-lines", nil, officer.auth()).want(http.StatusOK).object(); list["total"] != 0.0 {
		t.Errorf("%v lines of refused files are stored", list["total"])
	}
	first := take(officer, csv).want(http.StatusOK).object()
	if first["new_lines"] != 3.0 || first["status"] != "matching" || first["status_detail"] != "matching" || first["file_id"] != csv || first["gap"] != nil || first["difference"] != nil {
		t.Errorf("taken %v", first)
	}
	for who, file := range map[*person]any{&officer: csv, &colleague: upload("march.csv")} {
		if again := take(*who, file).want(http.StatusOK).object(); again["id"] != first["id"] || again["imported_by"] != officer.ID.String() {
			t.Errorf("again %v", again)
		}
	}
	if other := take(colleague, upload("march.xml")).want(http.StatusOK).object(); other["id"] == first["id"] || other["new_lines"] != 0.0 || other["lines"] != 3.0 || other["format"] != "camt053" {
		t.Errorf("in the other format %v", other)
	}
}

// What was interrupted while it was stored is continued by the next request, and nothing of it is stored twice.
func TestImportsContinueAfterACrash(t *testing.T) {
	e := start(t)
	account, by := storetest.BankAccount(t, e.store), principalOf(e.person(exchange.RoleTreasury))
	var content bytes.Buffer
	const lines = 2500
	fmt.Fprintf(&content, "statement,S\naccount,%s\ncurrency,KES\nfrom,2026-03-01\nto,2026-03-31\nopening_balance,0\nclosing_balance,%d\nbank_reference,value_date,side,amount\n", account.AccountNumber, lines)
	for n := range lines {
		fmt.Fprintf(&content, "FT%d,2026-03-02,credit,1\n", n)
	}
	file := storetest.StatementFile(t, e.store, by, content.Bytes())
	b := exchange.BankStatement{ID: newID(), BankID: account.ID, FileID: file.ID, Format: exchange.StatementCSV, Digest: hex.EncodeToString(file.SHA256)}
	opened := 0
	dies := func() (io.ReadCloser, error) {
		if opened++; opened == 1 {
			return io.NopCloser(bytes.NewReader(content.Bytes())), nil
		}
		return io.NopCloser(io.MultiReader(bytes.NewReader(content.Bytes()[:content.Len()*2/3]), brokenReader{})), nil // the process dies
	}
	if _, err := e.server.takeStatement(t.Context(), b, dies, by); err == nil {
		t.Fatal("a file that breaks off is taken")
	}
	cut, err := e.store.BankStatement(t.Context(), b.ID)
	if err != nil || cut.Status != exchange.StatementStoring {
		t.Fatalf("interrupted: %+v, %v", cut, err)
	}
	whole := b
	whole.ID = newID()
	for range 2 {
		done, err := e.server.takeStatement(t.Context(), whole, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }, by)
		if err != nil || done.ID != b.ID || done.Status != exchange.StatementMatching || done.Fresh != lines {
			t.Errorf("continued: %+v, %v", done, err)
		}
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// statementCells are the rows of the matrix about statements.
func statementCells() map[string]cell {
	const lines = treasuryPath + "/statement-lines"
	line := func(s scene) uuid.UUID { return strayLine(s.w.t, s.w.env).ID }
	return map[string]cell{
		"GET " + treasuryPath + "/bank-statements/{id}": {id: func(s scene) uuid.UUID { return strayLine(s.w.t, s.w.env).StatementID }, shared: true},
		"GET " + lines + "/{id}":                        {id: line, shared: true},
		"POST " + lines + "/{id}/free":                  {id: line, shared: true, body: fixed(map[string]any{"note": "another payment"})},
		"POST " + lines + "/{id}/match":                 {id: line, shared: true, body: fixed(map[string]any{"object_type": "journal_entry", "object_id": uuid.Nil})},
	}
}

// longFile is a statement with as many entries as a file may have, as long as banks write them.
func longFile(account string) []byte {
	var b bytes.Buffer
	day := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	balance := func(code string, amount int) {
		fmt.Fprintf(&b, `<Bal><Tp><CdOrPrtry><Cd>%s</Cd></CdOrPrtry></Tp><Amt Ccy="KES">%d</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>%s</Dt></Dt></Bal>`, code, amount, day)
	}
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><Stmt><Id>S</Id><Acct><Id><Othr><Id>` + account +
		`</Id></Othr></Id><Ccy>KES</Ccy></Acct>`)
	balance("OPBD", 0)
	balance("CLBD", exchange.MaxStatementLines)
	for n := range exchange.MaxStatementLines {
		fmt.Fprintf(&b, `<Ntry><NtryRef>%[1]d</NtryRef><Amt Ccy="KES">1.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>%[2]s</Dt></BookgDt><ValDt><Dt>%[2]s</Dt></ValDt>`+
			`<AcctSvcrRef>FT%010[1]d</AcctSvcrRef><BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>RCDT</Cd><SubFmlyCd>DMCT</SubFmlyCd></Fmly></Domn></BkTxCd><NtryDtls><TxDtls><Refs><EndToEndId>KVD%09[1]d</EndToEndId></Refs>`+
			`<RltdPties><Dbtr><Pty><Nm>Customer number %[1]d</Nm></Pty></Dbtr><DbtrAcct><Id><Othr><Id>00%08[1]d</Id></Othr></Id></DbtrAcct></RltdPties><RmtInf><Ustrd>payment for goods and services as agreed</Ustrd></RmtInf>`+
			`</TxDtls></NtryDtls></Ntry>`, n, day)
	}
	b.WriteString(`</Stmt></BkToCstmrStmt></Document>`)
	return b.Bytes()
}

// highest measures the memory that Go holds while fn runs, in MiB.
func highest(fn func()) float64 {
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		var high uint64
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				high = max(high, m.HeapInuse+m.StackInuse)
			case <-done:
				most <- high
				return
			}
		}
	}()
	fn()
	close(done)
	return float64(<-most) / (1 << 20)
}

// opener opens a file that is in memory.
func opener(file []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file)), nil }
}

// BenchmarkStatement imports a statement of 100,000 lines, whose file takes memory too, and sets the lines aside.
func BenchmarkStatement(b *testing.B) {
	st := storetest.New(b)
	s, bank := &server{Deps: Deps{Store: st}}, storetest.BankAccount(b, st)
	by := storetest.PrincipalOf(storetest.User(b, st, exchange.RoleTreasury))
	file := longFile(bank.AccountNumber)
	b.SetBytes(int64(len(file)))
	for n := 0; b.Loop(); n++ {
		var err error
		row := storetest.StatementXML(b, st, by, fmt.Append(nil, n))
		said := exchange.BankStatement{ID: newID(), BankID: bank.ID, FileID: row.ID, Format: exchange.StatementCAMT, Digest: hex.EncodeToString(row.SHA256)}
		mib := highest(func() { said, err = s.takeStatement(context.Background(), said, opener(file), by) })
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(mib-float64(len(file))/(1<<20), "MiB")
		b.ReportMetric(float64(said.Lines)/b.Elapsed().Seconds()*float64(n+1), "lines/s")
		began, settled := time.Now(), 0
		for more := 1; more > 0; settled += more {
			if more, err = st.MatchLines(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(settled)/time.Since(began).Seconds(), "settled/s")
	}
}
