package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The house's money, in shillings. The sandbox's accounts at the operator open with the same amounts.
const (
	capital     = "100000000"
	payoutFloat = "50000000"
	collected   = "1000000"
	platformKES = "1000000" // for sales to the house itself
)

const (
	treasury   = "/api/v1/auth/treasury"
	allocation = "opening allocation"
	bankNumber = "0100200300"
)

// proposal is one of the house's openings: two officers agree on it.
type proposal struct {
	by   *client.Client
	path string
	name string // of the key, and where it is a journal entry, its note
	in   map[string]any
}

// house opens the house's account at a bank and its money there and at the operator, each by two officers.
func (s *seeder) house(ctx context.Context) error {
	first, second := s.officers[0], s.officers[1]
	bank, err := s.bankAccount(ctx, first)
	if err != nil {
		return err
	}
	booked, err := s.openings(ctx, first)
	if err != nil {
		return err
	}
	today := time.Now().UTC().Format(time.DateOnly)
	entry := func(kind exchange.JournalKind, amount, float string) proposal {
		in := map[string]any{"kind": kind, "bank_account_id": bank, "amount": amount, "value_date": today}
		name := "opening " + string(kind)
		if float != "" {
			in["float_account"], name = float, name+" "+float
		}
		in["note"] = name
		return proposal{first, treasury + "/journal-entries", name, in}
	}
	for _, p := range []proposal{
		entry(exchange.JournalCapitalIn, capital, ""),
		entry(exchange.JournalFloatTopUp, payoutFloat, exchange.FloatUtility),
		entry(exchange.JournalFloatTopUp, collected, exchange.FloatWorking),
		{first, treasury + "/allocations", allocation, map[string]any{"amount": platformKES, "direction": "in", "note": allocation}},
	} {
		if booked[p.name] {
			continue
		}
		if _, err := p.agree(ctx, second); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// agree has an officer propose and another confirm, and returns the id that the terms name, if they name one.
func (p proposal) agree(ctx context.Context, colleague *client.Client) (uuid.UUID, error) {
	var waits struct {
		Changes []struct {
			ID     uuid.UUID `json:"id"`
			Digest string    `json:"digest"`
			Terms  account   `json:"change"`
		} `json:"changes"`
	}
	if err := p.by.Post(ctx, p.path, "demo-"+strings.ReplaceAll(p.name, " ", "-"), p.in, &waits); err != nil {
		return uuid.Nil, err
	}
	if len(waits.Changes) == 0 { // one officer was enough
		return uuid.Nil, nil
	}
	c := waits.Changes[0]
	return c.Terms.ID, colleague.Post(ctx, "/api/v1/auth/approvals/changes/"+c.ID.String()+"/confirm", "demo-confirm-"+c.ID.String(), map[string]any{"digest": c.Digest}, nil)
}

// bankOf is the house's account at a bank; uuid.Nil when there is none.
func bankOf(ctx context.Context, officer *client.Client) (uuid.UUID, error) {
	var known struct {
		Accounts []account `json:"bank_accounts"`
	}
	err := officer.Get(ctx, treasury+"/bank-accounts?page_id=1&page_size=1", &known)
	if err != nil || len(known.Accounts) == 0 {
		return uuid.Nil, err
	}
	return known.Accounts[0].ID, nil
}

// bankAccount returns the house's account at a bank, which it opens when there is none.
func (s *seeder) bankAccount(ctx context.Context, officer *client.Client) (uuid.UUID, error) {
	if known, err := bankOf(ctx, officer); err != nil || known != uuid.Nil {
		return known, err
	}
	return proposal{s.admin, treasury + "/bank-accounts", "bank account", map[string]any{
		"bank_name": "Bank of Examples", "bank_code": "01", "branch": "Nairobi", "swift_code": "EXAMKENA", "account_name": "Kivuko Limited",
		"account_number": bankNumber, "currency": "KES",
	}}.agree(ctx, officer)
}

// openings returns the names of the openings that are booked.
func (s *seeder) openings(ctx context.Context, officer *client.Client) (map[string]bool, error) {
	booked, err := entriesOf(ctx, officer)
	if err != nil {
		return nil, err
	}
	platform, err := s.store.Account(ctx, exchange.Owned(exchange.AccFiatBalance, exchange.PlatformTreasury, money.KES))
	if err != nil {
		return nil, err
	}
	notes := map[string]bool{allocation: platform.Posted.Positive()}
	for _, e := range booked {
		notes[e.Note] = true
	}
	return notes, nil
}
