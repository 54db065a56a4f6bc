package demo

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// vendorKES is what a vendor who buys crypto pays to the house's bank, in shillings. Each of its offers reserves a part.
const vendorKES = "3000000"

// shillings brings the bank's statement in, which shows the openings and what the vendors have paid. What nothing explains is theirs:
// one officer proposes to credit it and another agrees, neither of whom brought the statement in.
func (s *seeder) shillings(ctx context.Context) error {
	var unpaid []string
	for _, email := range slices.Sorted(maps.Keys(s.vendors)) {
		a, err := s.store.Account(ctx, exchange.Owned(exchange.AccFiatBalance, s.ids[email], money.KES))
		if err != nil {
			return err
		}
		if !a.Posted.Positive() {
			unpaid = append(unpaid, email)
		}
	}
	if len(unpaid) == 0 {
		return nil
	}
	if err := s.statement(ctx); err != nil {
		return fmt.Errorf("the bank's statement: %w", err)
	}
	for _, email := range unpaid {
		if err := s.credit(ctx, s.ids[email]); err != nil {
			return fmt.Errorf("the shillings of %s: %w", email, err)
		}
	}
	return nil
}

// paymentOf is the bank's reference of what a vendor has paid.
func paymentOf(vendor uuid.UUID) string {
	return "PAY" + strings.ToUpper(strings.ReplaceAll(vendor.String(), "-", ""))
}

// statement has an admin bring in the statement of the bank account.
func (s *seeder) statement(ctx context.Context) error {
	entries, err := entriesOf(ctx, s.officers[0])
	if err != nil {
		return err
	}
	content, err := s.statementFile(entries)
	if err != nil {
		return err
	}
	var file account
	if err := s.admin.Upload(ctx, "/api/v1/auth/files", string(exchange.FileBankStatement), "statement.csv", content, &file); err != nil {
		return err
	}
	in := map[string]any{"bank_account_id": entries[0].BankID, "file_id": file.ID}
	return s.admin.Post(ctx, treasury+"/bank-statements", "demo-statement-"+file.ID.String(), in, nil)
}

// statementFile is the statement as the bank writes it: it began with nothing.
func (s *seeder) statementFile(entries []journalEntry) ([]byte, error) {
	balance := money.Zero(money.KES)
	var lines [][]string
	add := func(reference, day, amount string, side exchange.StatementSide, party string) error {
		m, err := money.Parse(money.KES, amount)
		if err != nil {
			return err
		}
		lines = append(lines, []string{reference, day, string(side), amount, party})
		if side == exchange.SideDebit {
			m = m.Neg()
		}
		balance = balance.Add(m)
		return nil
	}
	for _, e := range entries {
		if err := add("FT"+strings.ToUpper(strings.ReplaceAll(e.ID.String(), "-", "")), e.ValueDate, e.Amount, e.Kind.Side(), "Kivuko Limited"); err != nil {
			return nil, err
		}
	}
	day := entries[0].ValueDate
	for _, email := range slices.Sorted(maps.Keys(s.vendors)) {
		if err := add(paymentOf(s.ids[email]), day, vendorKES, exchange.SideCredit, person(email).First+" "+person(email).Last); err != nil {
			return nil, err
		}
	}
	var file bytes.Buffer
	w := csv.NewWriter(&file)
	err := w.WriteAll(slices.Concat([][]string{
		{"statement", "STMT-1"},
		{"account", bankNumber},
		{"currency", "KES"},
		{"from", day},
		{"to", day},
		{"opening_balance", "0.00"},
		{"closing_balance", balance.String()},
		{"bank_reference", "value_date", "side", "amount", "party_name"},
	}, lines))
	return file.Bytes(), err
}

// PaidAtBank brings in a statement of the house's bank account that shows one payment of today, which names a reference. A repeated call
// changes nothing.
func PaidAtBank(ctx context.Context, importer *client.Client, reference, shillings string) error {
	bank, err := bankOf(ctx, importer)
	if err != nil {
		return err
	}
	today := time.Now().In(time.FixedZone("EAT", 3*60*60)).Format(time.DateOnly)
	content := fmt.Sprintf("statement,S%[1]s\naccount,%[2]s\ncurrency,KES\nfrom,%[3]s\nto,%[3]s\nopening_balance,0\nclosing_balance,%[4]s\n"+
		"bank_reference,value_date,side,amount,reference,party_name\nFT%[1]s,%[3]s,credit,%[4]s,for %[1]s,Baraka Exchange\n", reference, bankNumber, today, shillings)
	var file account
	if err := importer.Upload(ctx, "/api/v1/auth/files", string(exchange.FileBankStatement), "today.csv", []byte(content), &file); err != nil {
		return err
	}
	return importer.Post(ctx, treasury+"/bank-statements", "paid-"+file.ID.String(), map[string]any{"bank_account_id": bank, "file_id": file.ID}, nil)
}

// credit waits until a vendor's payment is set aside, and credits it.
func (s *seeder) credit(ctx context.Context, vendor uuid.UUID) error {
	var exception uuid.UUID
	err := patiently(ctx, "the line of the bank's statement", func() (bool, error) {
		var found struct {
			Lines []struct {
				ExceptionID *uuid.UUID `json:"payment_exception_id"`
			} `json:"statement_lines"`
		}
		err := s.officers[0].Get(ctx, treasury+"/statement-lines?page_id=1&page_size=1&reference="+paymentOf(vendor), &found)
		if err != nil || len(found.Lines) == 0 || found.Lines[0].ExceptionID == nil {
			return false, err
		}
		exception = *found.Lines[0].ExceptionID
		return true, nil
	})
	if err != nil {
		return err
	}
	in := map[string]any{"merchant_id": vendor, "note": "paid to our bank"}
	_, err = proposal{s.officers[0], "/api/v1/auth/payment-exceptions/" + exception.String() + "/credit", "credit " + vendor.String(), in}.agree(ctx, s.officers[1])
	return err
}

// journalEntry has the fields of a journal entry that the demo reads.
type journalEntry struct {
	ID        uuid.UUID            `json:"id"`
	Kind      exchange.JournalKind `json:"kind"`
	BankID    uuid.UUID            `json:"bank_account_id"`
	Amount    string               `json:"amount"`
	ValueDate string               `json:"value_date"`
	Note      string               `json:"note"`
}

// entriesOf returns the openings that are booked, the newest first.
func entriesOf(ctx context.Context, officer *client.Client) ([]journalEntry, error) {
	var booked struct {
		Entries []journalEntry `json:"journal_entries"`
	}
	err := officer.Get(ctx, treasury+"/journal-entries?page_id=1&page_size=100", &booked)
	return booked.Entries, err
}
