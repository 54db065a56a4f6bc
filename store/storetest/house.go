package storetest

import (
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
