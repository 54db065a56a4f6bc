package bank_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"kivuko/bank"
	"kivuko/exchange"
)

// readAll reads a file as it is handed out.
func readAll(t testing.TB, format exchange.StatementFormat, text string) (exchange.BankStatement, []exchange.StatementLine, error) {
	t.Helper()
	var lines []exchange.StatementLine
	b, err := bank.Read(strings.NewReader(text), format, func(l exchange.StatementLine) error {
		lines = append(lines, l)
		return nil
	})
	return b, lines, err
}

func sample(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func march(day int) time.Time { return time.Date(2026, 3, day, 0, 0, 0, 0, time.UTC) }

// Both formats say the same of the same statement.
func TestBothFormatsAreRead(t *testing.T) {
	t.Parallel()
	for name, format := range map[string]exchange.StatementFormat{"march.xml": exchange.StatementCAMT, "march-13.xml": exchange.StatementCAMT, "march.csv": exchange.StatementCSV} {
		b, lines, err := readAll(t, format, sample(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if b.Reference != "STMT-2026-03" || b.AccountNumber != "0100200300" || !b.From.Equal(march(1)) || !b.To.Equal(march(31)) || b.Opening.String() != "1000.00" ||
			b.Closing.String() != "1149.50" || b.Lines != len(lines) || len(lines) != 3 || b.Format != format {
			t.Errorf("%s says %+v with %d lines", name, b, len(lines))
			continue
		}
		want := []exchange.StatementLine{
			{Number: 1, BankReference: "FT26061AAAA1", Side: exchange.SideCredit, Reference: "KVD123456789", PartyName: "Jane Roe", PartyAccount: "0099887766", Description: "goods"},
			{Number: 2, BankReference: "FT26062BBBB2", Side: exchange.SideDebit, Reference: "KVK000000001", PartyName: "Amina Otieno", PartyAccount: "0011223344"},
			{Number: 3, BankReference: "CHG20260331", Side: exchange.SideDebit, Description: "Monthly fee"},
		}
		for i, amount := range []string{"200.00", "50.00", "0.50"} {
			l := lines[i]
			if l.Amount.String() != amount {
				t.Errorf("%s: line %d is %s", name, i+1, l.Amount)
			}
			want[i].Copy, want[i].ValueDate, want[i].BookedOn, want[i].Amount = 1, []time.Time{march(2), march(3), march(31)}[i], []time.Time{march(2), march(4), march(31)}[i], l.Amount
			if l != want[i] {
				t.Errorf("%s: line %d is\n%+v, want\n%+v", name, i+1, l, want[i])
			}
		}
	}
}

// A file may have several statements of one account, one after the other.
func TestStatementsOfOneFileFollowEachOther(t *testing.T) {
	t.Parallel()
	stmt := func(id, account, day, opening, closing, entries string) string {
		return `<Stmt><Id>` + id + `</Id><Acct><Id><Othr><Id>` + account + `</Id></Othr></Id><Ccy>KES</Ccy></Acct>` +
			balance("OPBD", opening, day) + balance("CLBD", closing, day) + entries + `</Stmt>`
	}
	two := func(account, opening string) string {
		return camt(stmt("1", "123", "2026-03-02", "10", "15", entry("A1", "5", "CRDT")) + stmt("2", account, "2026-03-03", opening, "12", entry("A2", "3", "DBIT")))
	}
	b, lines, err := readAll(t, exchange.StatementCAMT, two("123", "15"))
	if err != nil || b.Reference != "1" || len(lines) != 2 || b.Opening.String() != "10.00" || b.Closing.String() != "12.00" || !b.From.Equal(march(2)) || !b.To.Equal(march(3)) {
		t.Errorf("two statements are %+v with %d lines, %v", b, len(lines), err)
	}
	wantRule(t, "another account", two("124", "15"), exchange.StatementCAMT, "/statement/account mismatch")
	wantRule(t, "days the other way", strings.ReplaceAll(two("123", "15"), "2026-03-03", "2026-03-01"), exchange.StatementCAMT, "/statement/from range")
	wantRule(t, "a gap", two("123", "14"), exchange.StatementCAMT, "/statement/opening_balance balance")
}

func camt(statements string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt>` + statements + `</BkToCstmrStmt></Document>`
}

func balance(code, amount, day string) string {
	side := "CRDT"
	if bare, below := strings.CutPrefix(amount, "-"); below {
		amount, side = bare, "DBIT"
	}
	return `<Bal><Tp><CdOrPrtry><Cd>` + code + `</Cd></CdOrPrtry></Tp><Amt Ccy="KES">` + amount + `</Amt><CdtDbtInd>` + side + `</CdtDbtInd><Dt><Dt>` + day + `</Dt></Dt></Bal>`
}

func entry(reference, amount, side string) string {
	return `<Ntry><Amt Ccy="KES">` + amount + `</Amt><CdtDbtInd>` + side + `</CdtDbtInd><Sts>BOOK</Sts><BookgDt><Dt>2026-03-02</Dt></BookgDt><AcctSvcrRef>` + reference + `</AcctSvcrRef></Ntry>`
}

func statement(opening, closing, entries string) string {
	return camt(`<Stmt><Id>S</Id><Acct><Id><IBAN>KE12</IBAN></Id><Ccy>KES</Ccy></Acct>` + balance("OPBD", opening, "2026-03-01") + balance("CLBD", closing, "2026-03-31") + entries + `</Stmt>`)
}

func wantRule(t *testing.T, name, text string, format exchange.StatementFormat, want string) {
	t.Helper()
	_, _, err := readAll(t, format, text)
	e, ok := errors.AsType[*exchange.Error](err)
	if !ok || e.Code != exchange.CodeInvalid || len(e.Fields) != 1 || e.Fields[0].Pointer+" "+e.Fields[0].Code != want {
		t.Errorf("%s: %v, want %s", name, err, want)
	}
}

// The first fault of a file is named by line, field and rule.
func TestFaultsAreNamed(t *testing.T) {
	t.Parallel()
	good := entry("A1", "5", "CRDT")
	for name, c := range map[string]struct{ text, want string }{
		"no XML":               {"<Document", "/file format"},
		"another document":     {`<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.054.001.02"/>`, "/file format"},
		"a document type":      {`<!DOCTYPE x [<!ENTITY a "b">]>` + statement("1", "1", ""), "/file markup"},
		"an entity":            {strings.Replace(statement("1", "1", ""), "<Id>S", "<Id>&secret;", 1), "/file format"},
		"another encoding":     {strings.Replace(statement("1", "1", ""), "UTF-8", "ISO-8859-1", 1), "/file format"},
		"no statement":         {camt(""), "/statement required"},
		"no opening balance":   {strings.Replace(statement("1", "1", ""), "OPBD", "ITBD", 1), "/statement/opening_balance required"},
		"no account":           {strings.Replace(statement("1", "1", ""), "KE12", "-", 1), "/statement/account required"},
		"another currency":     {strings.ReplaceAll(statement("1", "1", ""), "KES", "USD"), "/statement/currency enum"},
		"no sum":               {statement("1", "7", good), "/statement/closing_balance balance"},
		"no sum of nothing":    {statement("1", "2", ""), "/statement/closing_balance balance"},
		"the currency":         {statement("1", "6", strings.ReplaceAll(good, "KES", "USD")), "/lines/1/currency mismatch"},
		"the amount":           {statement("1", "6", good+entry("A2", "5,00", "CRDT")), "/lines/2/amount format"},
		"a negative amount":    {statement("1", "6", entry("A1", "-5", "CRDT")), "/lines/1/amount format"},
		"a too fine amount":    {statement("1", "6", entry("A1", "5.001", "CRDT")), "/lines/1/amount precision"},
		"the side":             {statement("1", "6", entry("A1", "5", "C")), "/lines/1/side enum"},
		"no reference":         {statement("1", "6", entry("", "5", "CRDT")), "/lines/1/bank_reference required"},
		"only a number":        {statement("1", "6", strings.ReplaceAll(entry("000017", "5", "CRDT"), "AcctSvcrRef", "NtryRef")), "/lines/1/bank_reference required"},
		"booked or not":        {statement("1", "6", strings.Replace(good, "<Sts>BOOK</Sts>", "", 1)), "/lines/1/status required"},
		"a balance elsewhere":  {strings.Replace(statement("1", "6", good), `"KES">6`, `"USD">6`, 1), "/statement/closing_balance mismatch"},
		"a balance of no side": {strings.Replace(statement("1", "6", good), "<CdtDbtInd>CRDT</CdtDbtInd>", "", 1), "/statement/opening_balance enum"},
		"another message":      {strings.ReplaceAll(statement("1", "6", good), "BkToCstmrStmt", "BkToCstmrAcctRpt"), "/statement required"},
		"a long reference":     {statement("1", "6", entry(strings.Repeat("A", 65), "5", "CRDT")), "/lines/1/bank_reference too_long"},
		"a line twice":         {statement("1", "6", good+good), "/statement/closing_balance balance"},
		"two signs":            {strings.ReplaceAll(statement("-1", "-1", ""), `">1<`, `">-1<`), "/statement/opening_balance format"},
		"a decimal comma":      {statement("1,00", "1", ""), "/statement/opening_balance format"},
		"thousands apart":      {statement("1", "1,001.00", entry("A1", "1000", "CRDT")), "/statement/closing_balance format"},
		"the day":              {statement("1", "6", strings.Replace(good, "2026-03-02", "02.03.2026", 1)), "/lines/1/value_date format"},
		"an endless name":      {statement("1", "6", "<!--"+strings.Repeat("x", 70<<10)+"-->"), "/file too_long"},
		"an endless comment":   {statement("1", "6", "<!--"+strings.Repeat("<x>", 30<<10)+"-->"), "/file too_long"},
		"endless data":         {statement("1", "6", "<![CDATA["+strings.Repeat("<x>", 30<<10)+"]]>"), "/file too_long"},
		"a deep tree":          {strings.Repeat("<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.02\">", 40), "/file format"},
		"the days the way":     {strings.Replace(statement("1", "1", ""), "2026-03-31", "2026-02-28", 1), "/statement/to range"},
		"no reference of bank": {strings.Replace(statement("1", "1", ""), "<Id>S</Id>", "<Id> </Id>", 1), "/statement/reference required"},
	} {
		wantRule(t, name, c.text, exchange.StatementCAMT, c.want)
	}
	head := "statement,S\naccount,KE12\ncurrency,KES\nfrom,2026-03-01\nto,2026-03-31\nopening_balance,1\nclosing_balance,6\n"
	const columns = "bank_reference,value_date,side,amount\n"
	for name, c := range map[string]struct{ text, want string }{
		"nothing":            {"", "/file columns"},
		"no columns":         {head, "/file columns"},
		"an unknown column":  {head + "bank_reference,value_date,side,amount,colour\n", "/file columns"},
		"a column is absent": {head + "bank_reference,value_date,amount\n", "/file columns"},
		"a column twice":     {head + "bank_reference,value_date,side,amount,side\n", "/file columns"},
		"a field too many":   {head + columns + "A1,2026-03-02,credit,5,x\n", "/file columns"},
		"a quote":            {head + columns + "A1,2026-03-02,credit,5\"\n", "/file format"},
		"no UTF-8":           {head + columns + "A1\xff,2026-03-02,credit,5\n", "/file encoding"},
		"an endless row":     {head + columns + strings.Repeat("x", 20<<10), "/file too_long"},
		"an endless field":   {head + columns + `"` + strings.Repeat("x\n", 10<<10), "/file too_long"},
		"the side":           {head + columns + "A1,2026-03-02,CRDT,5\n", "/lines/1/side enum"},
		"the day":            {head + columns + "A1,,credit,5\n", "/lines/1/value_date required"},
		"the sum":            {head + columns + "A1,2026-03-02,debit,5\n", "/statement/closing_balance balance"},
		"no balance":         {strings.Replace(head, "opening_balance,1\n", "", 1) + columns, "/statement/opening_balance required"},
		"a decimal comma":    {head + columns + "A1,2026-03-02,credit,\"5,00\"\n", "/lines/1/amount format"},
		"a thousand or one":  {head + columns + "A1,2026-03-02,credit,5.000\n", "/lines/1/amount precision"},
		"semicolons":         {head + strings.ReplaceAll(columns, ",", ";"), "/file columns"},
		"too large":          {head + columns + "A1,2026-03-02,credit,1" + strings.Repeat("0", 30) + "\n", "/lines/1/amount out_of_range"},
	} {
		wantRule(t, name, c.text, exchange.StatementCSV, c.want)
	}
}

// Entries that are not booked, and lines of nothing, are left out; an overdrawn account has a balance below zero.
func TestOnlyBookedEntriesCount(t *testing.T) {
	t.Parallel()
	pending := strings.Replace(entry("P1", "9", "CRDT"), "<Sts>BOOK</Sts>", "<Sts><Cd>PDNG</Cd></Sts>", 1)
	for reference, side := range map[string]string{"P2": "CRDT", "P3": "DBIT"} { // the balance does not tell
		pending += strings.Replace(entry(reference, "9", side), "<Sts>BOOK</Sts>", "<Sts><Prtry>RESERVED</Prtry></Sts>", 1)
	}
	b, lines, err := readAll(t, exchange.StatementCAMT, statement("-10", "-15", pending+entry("N1", "0.00", "CRDT")+entry("A1", "5", "DBIT")))
	if err != nil || len(lines) != 1 || lines[0].BankReference != "A1" || b.Opening.String() != "-10.00" || b.Closing.String() != "-15.00" {
		t.Errorf("%+v with %+v, %v", b, lines, err)
	}
}

// Two movements that the bank tells apart by nothing are two when the balance says so. XML has amounts with any number of zeros.
func TestTwinsAreCounted(t *testing.T) {
	t.Parallel()
	_, lines, err := readAll(t, exchange.StatementCAMT, statement("1.0000", "12", entry("A1", "5.000", "CRDT")+entry("A2", "1", "CRDT")+entry("A1", "5", "CRDT")))
	if err != nil || len(lines) != 3 || lines[0].Copy != 1 || lines[1].Copy != 1 || lines[2].Copy != 2 || lines[2].Number != 3 || lines[0].Amount.String() != "5.00" {
		t.Errorf("%+v, %v", lines, err)
	}
}

// What a payer wrote shows nothing else than it is.
func TestTextsAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	text := strings.Replace(entry("A1", "5", "CRDT"), "</Ntry>", "<AddtlNtryInf>pay\u202e 001 \u200bto\u00ad\n Jane</AddtlNtryInf></Ntry>", 1)
	if _, lines, err := readAll(t, exchange.StatementCAMT, statement("1", "6", text)); err != nil || lines[0].Description != "pay 001 to  Jane" {
		t.Errorf("%+v, %v", lines, err)
	}
}

// An error of who takes the lines ends the reading.
func TestReadingEndsWithItsTaker(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	_, err := bank.Read(strings.NewReader(sample(t, "march.csv")), exchange.StatementCSV, func(exchange.StatementLine) error { return full })
	if !errors.Is(err, full) {
		t.Error(err)
	}
	broken := errors.New("broken")
	_, err = bank.Read(io.MultiReader(strings.NewReader(sample(t, "march.xml")[:900]), failing{broken}), exchange.StatementCAMT, func(exchange.StatementLine) error { return nil })
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// FuzzRead reads anything without a panic, and whatever is accepted adds up.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"march.xml", "march-13.xml", "march.csv"} {
		f.Add([]byte(sample(f, name)), strings.HasSuffix(name, ".csv"))
	}
	f.Fuzz(func(t *testing.T, file []byte, csv bool) {
		format := exchange.StatementCAMT
		if csv {
			format = exchange.StatementCSV
		}
		var sum []exchange.StatementLine
		b, err := bank.Read(bytes.NewReader(file), format, func(l exchange.StatementLine) error {
			sum = append(sum, l)
			return nil
		})
		if err != nil {
			return
		}
		at := b.Opening
		for _, l := range sum {
			at = at.Add(l.Signed())
		}
		if !at.Equal(b.Closing) {
			t.Fatalf("%s and its lines make %s, not %s", b.Opening, at, b.Closing)
		}
	})
}

// writeLong writes a statement with many entries, as large as banks write them.
func writeLong(lines int) []byte {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><Stmt><Id>S</Id><Acct><Id><Othr><Id>0100200300</Id></Othr></Id><Ccy>KES</Ccy></Acct>`)
	b.WriteString(balance("OPBD", "0", "2026-03-01") + balance("CLBD", fmt.Sprint(lines), "2026-03-31"))
	for n := range lines {
		fmt.Fprintf(&b, `<Ntry><NtryRef>%d</NtryRef><Amt Ccy="KES">1.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-03-02</Dt></BookgDt><ValDt><Dt>2026-03-02</Dt></ValDt><AcctSvcrRef>FT%010d</AcctSvcrRef><BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>RCDT</Cd><SubFmlyCd>DMCT</SubFmlyCd></Fmly></Domn></BkTxCd><NtryDtls><TxDtls><Refs><EndToEndId>KVD%09d</EndToEndId></Refs><RltdPties><Dbtr><Pty><Nm>Customer number %d</Nm></Pty></Dbtr><DbtrAcct><Id><Othr><Id>00%08d</Id></Othr></Id></DbtrAcct></RltdPties><RmtInf><Ustrd>payment for goods and services as agreed</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>`, n, n, n, n, n)
	}
	b.WriteString(`</Stmt></BkToCstmrStmt></Document>`)
	return b.Bytes()
}

// BenchmarkRead reads a statement of 100,000 entries.
func BenchmarkRead(b *testing.B) {
	file := writeLong(exchange.MaxStatementLines)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := bank.Read(bytes.NewReader(file), exchange.StatementCAMT, func(exchange.StatementLine) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
