package storetest

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// BankAccount is an account of the house at a bank, which two officers agree on when there is none yet.
func BankAccount(t testing.TB, s *store.Store) exchange.HouseBankAccount {
	t.Helper()
	if all := bankAccounts(t, s); len(all) > 0 {
		return all[0]
	}
	return AddBankAccount(t, s, "0100200300")
}

// AddBankAccount is another account of the house at a bank.
func AddBankAccount(t testing.TB, s *store.Store, number string) exchange.HouseBankAccount {
	t.Helper()
	b := exchange.HouseBankAccount{
		ID: NewID(t), BankName: "Bank of Examples", BankCode: "01", Branch: "Nairobi", SwiftCode: "EXAMKENA", AccountName: "Kivuko Limited", AccountNumber: number,
		Currency: money.KES, IsActive: true,
	}
	if err := Agreed(t, s)(s.ProposeBankAccount(t.Context(), b, PrincipalOf(User(t, s, exchange.RoleAdmin)))); err != nil {
		t.Fatalf("seed a bank account: %v", err)
	}
	b, err := s.BankAccount(t.Context(), b.ID)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func bankAccounts(t testing.TB, s *store.Store) []exchange.HouseBankAccount {
	t.Helper()
	all, _, err := s.BankAccounts(t.Context(), store.BankAccountFilter{}, store.Page{Number: 1, Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Journal books an entry that two treasury officers agree on.
func Journal(t testing.TB, s *store.Store, e exchange.JournalEntry) exchange.JournalEntry {
	t.Helper()
	e.ID = NewID(t)
	if e.Note == "" {
		e.Note = "a test"
	}
	if e.ValueDate.IsZero() {
		e.ValueDate = time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC)
	}
	if err := Agreed(t, s)(s.ProposeJournalEntry(t.Context(), e, PrincipalOf(User(t, s, exchange.RoleTreasury)))); err != nil {
		t.Fatalf("seed a journal entry: %v", err)
	}
	e, err := s.JournalEntry(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Bank puts the house's own money into its account at a bank.
func Bank(t testing.TB, s *store.Store, m money.Amount) exchange.HouseBankAccount {
	t.Helper()
	b := BankAccount(t, s)
	Journal(t, s, exchange.JournalEntry{Kind: exchange.JournalCapitalIn, BankID: b.ID, Amount: m})
	return b
}

// Statement imports a statement of a bank account that begins with nothing, by a new treasury officer, and settles its lines.
func Statement(t testing.TB, s *store.Store, bank exchange.HouseBankAccount, lines ...exchange.StatementLine) exchange.BankStatement {
	t.Helper()
	ctx, by := t.Context(), PrincipalOf(User(t, s, exchange.RoleTreasury))
	id := NewID(t)
	f := StatementFile(t, s, by, id[:])
	b := exchange.BankStatement{
		ID: id, BankID: bank.ID, FileID: f.ID, Format: exchange.StatementCSV, Digest: hex.EncodeToString(f.SHA256), Reference: "S", AccountNumber: bank.AccountNumber,
		From: lines[0].ValueDate, To: lines[0].ValueDate, Opening: money.Zero(bank.Currency), Closing: money.Zero(bank.Currency), Lines: len(lines),
	}
	for i, l := range lines {
		lines[i].Number, lines[i].Copy, b.Closing = i+1, max(l.Copy, 1), b.Closing.Add(l.Signed())
	}
	b, err := s.BeginStatement(ctx, b, by)
	if err == nil {
		err = s.SaveStatementLines(ctx, b, lines)
	}
	if err == nil {
		_, err = s.CloseStatement(ctx, b.ID, by)
	}
	for settled := 1; err == nil && settled > 0; {
		settled, err = s.MatchLines(ctx)
	}
	if err == nil {
		b, err = s.BankStatement(ctx, b.ID)
	}
	if err != nil {
		t.Fatalf("seed a bank statement: %v", err)
	}
	return b
}

// StatementFile is the row of a CSV with a bank's statement.
func StatementFile(t testing.TB, s *store.Store, by exchange.Principal, content []byte) exchange.File {
	t.Helper()
	return statementFile(t, s, by, content, exchange.FileCSV)
}

// StatementXML is the row of an XML file with a bank's statement.
func StatementXML(t testing.TB, s *store.Store, by exchange.Principal, content []byte) exchange.File {
	t.Helper()
	return statementFile(t, s, by, content, exchange.FileXML)
}

func statementFile(t testing.TB, s *store.Store, by exchange.Principal, content []byte, kind exchange.FileType) exchange.File {
	t.Helper()
	id, sum := NewID(t), sha256.Sum256(content)
	f, err := s.AddFile(t.Context(), []exchange.NewFile{{File: exchange.File{
		ID: id, Purpose: exchange.FileBankStatement, UploadedBy: by.UserID, Name: "statement", Type: kind, Size: int64(len(content)), SHA256: sum[:], SourceSHA256: sum[:],
	}, Key: exchange.SealedFileKey{FileID: id, Ciphertext: []byte("sealed"), MasterKey: "first"}}}, by)
	if err != nil {
		t.Fatalf("seed a statement's file: %v", err)
	}
	return f
}

// Line is a line of a statement about money that came in on 2 March 2026.
func Line(t testing.TB, reference string, m money.Amount) exchange.StatementLine {
	t.Helper()
	day := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	return exchange.StatementLine{BankReference: reference, ValueDate: day, BookedOn: day, Side: exchange.SideCredit, Amount: m, Reference: "rent", PartyName: "Jane Roe"}
}
