package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

func band(upTo, charge string) exchange.TariffBand {
	return exchange.TariffBand{UpTo: kes(upTo), Charge: kes(charge)}
}

func terms(from time.Time) exchange.MomoTerms {
	return exchange.MomoTerms{
		ValidFrom: from, MinPrompt: kes("1"), MaxPrompt: kes("150000"), MinPayout: kes("20"), MaxPayout: kes("150000"), PayeeDay: kes("300000"),
		Tariff: []exchange.TariffBand{band("1000", "5"), band("150000", "11.50")},
	}
}

// The provider's terms apply from their start, and a payout's reservation and booking follow the terms at its begin.
func TestTermsHoldFromTheirTime(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := newBoard(t, store.Options{Now: func() time.Time { return now }})
	ctx, s := t.Context(), b.store
	first, err := s.TermsAt(ctx, now)
	if err != nil || !first.MaxPayout.Equal(kes("250000")) || !first.MinPayout.Equal(exchange.MinMomoPayout()) {
		t.Fatalf("the first terms are %+v, %v", first, err)
	}
	for amount, want := range map[string]string{"10": "0", "100": "0", "101": "7", "1293": "23", "250000": "330"} {
		if got, err := first.Charge(kes(amount)); err != nil || !got.Equal(kes(want)) {
			t.Errorf("a payout of %s costs %s, %v; want %s", amount, got, err, want)
		}
	}
	from := now.Add(time.Hour).UTC().Truncate(time.Millisecond)
	c, err := s.ProposeTerms(ctx, terms(from), b.officer)
	if err != nil || c.Kind != exchange.ControlMomoTerms {
		t.Fatalf("%+v, %v", c, err)
	}
	_, err = s.ConfirmChange(ctx, c.ID, "", b.officer)
	b.wantForbidden(err) // the proposer can't confirm
	if _, err := s.ConfirmChange(ctx, c.ID, "signed contract", b.one); err != nil {
		t.Fatal(err)
	}
	refund, _ := underpaid(t, s) // of 1000
	a := payout(t, s, refund)
	if got, err := s.TermsAt(ctx, from.Add(-time.Millisecond)); err != nil || got.ID != first.ID {
		t.Errorf("just before: %+v, %v", got, err)
	}
	now = from
	later, err := s.TermsAt(ctx, now)
	if err != nil || !later.Equal(terms(from)) || later.ChangeID != c.ID {
		t.Fatalf("from then on: %+v, %v", later, err)
	}
	if _, err := completeRefund(t, s, refund.ID, a.ID, storetest.Paid(t, kes("1000"))); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, s, float(), "998987", "0") // 13, as it was when the payout began
	next, _ := underpaid(t, s)
	payout(t, s, next)
	wantBalance(t, s, float(), "1998987", "1005") // the float grew by what another market brought
	wantBooks(t, s)
	all, total, err := s.ListTerms(ctx, store.Page{Number: 1, Size: 10})
	if err != nil || total != 2 || all[0].ID != later.ID {
		t.Errorf("%d terms, %+v, %v", total, all, err)
	}
	_, err = s.ProposeTerms(ctx, terms(from.Add(time.Hour).Add(-time.Hour)), b.one)
	wantFault(t, err, exchange.CodeInvalid) // what holds is not changed
}

// Terms that a second officer confirms too late are not retroactive.
func TestTermsDoNotReachBack(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := newBoard(t, store.Options{Now: func() time.Time { return now }})
	c, err := b.store.ProposeTerms(t.Context(), terms(now.Add(time.Hour)), b.one)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Hour)
	_, err = b.store.ConfirmChange(t.Context(), c.ID, "", b.two)
	wantFault(t, err, exchange.CodeExpired)
	if _, err := b.store.RejectChange(t.Context(), c.ID, "too late", b.two); err != nil {
		t.Error(err)
	}
}

// At the table too: no one enters terms alone or changes entered ones.
func TestTermsAreGuarded(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	const insert = `INSERT INTO momo_terms (id, valid_from, min_prompt, max_prompt, min_payout, max_payout, payee_day, tariff, entered_at)
		SELECT gen_random_uuid(), now() + interval '1 hour', `
	for _, query := range []string{
		insert + `1, 250000, 10, 250000, 500000, tariff, now() FROM momo_terms`,
		`UPDATE momo_terms SET max_payout = 1`,
		`DELETE FROM momo_terms`,
		`TRUNCATE momo_terms`,
	} {
		if _, err := storetest.Owner(t, s).ExecContext(t.Context(), query); sqlState(err) != "KV006" && sqlState(err) != "KV002" {
			t.Errorf("%s: %v", query, err)
		}
	}
	for _, tariff := range []string{
		`[]`, `{}`, `[{"up_to": "100", "charge": "0"}]`, `[{"up_to": "300000", "charge": "-1"}]`, `[{"up_to": "300000"}]`,
		`[{"up_to": "500", "charge": "1"}, {"up_to": "400", "charge": "1"}, {"up_to": "300000", "charge": "1"}]`,
		`[{"up_to": "300000", "charge": "1", "more": 1}]`, `[{"up_to": 300000, "charge": "1.555"}]`,
	} {
		var fits bool
		if err := storetest.Owner(t, s).QueryRowContext(t.Context(), `SELECT momo_tariff_fits($1, 250000)`, tariff).Scan(&fits); err != nil || fits {
			t.Errorf("%s fits, %v", tariff, err)
		}
	}
}

// The platform's treasury gets its shillings, and returns them, when two officers agree.
func TestTreasuryAllocation(t *testing.T) {
	t.Parallel()
	b := newBoard(t, store.Options{})
	ctx, s := t.Context(), b.store
	treasury := exchange.Owned(exchange.AccFiatBalance, exchange.PlatformTreasury, "KES")
	propose := func(amount string, negative bool) exchange.ControlChange {
		t.Helper()
		m := kes(amount)
		if negative {
			m = m.Neg()
		}
		c, err := s.ProposeAllocation(ctx, m, "for sales without an offer", b.officer)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := propose("500000", false)
	_, err := s.ConfirmChange(ctx, c.ID, "", b.officer)
	b.wantForbidden(err)
	twice(t, func(a, b exchange.ControlChange) bool { return a.ID == b.ID && a.DecidedAt.Equal(b.DecidedAt) }, func() (exchange.ControlChange, error) {
		return s.ConfirmChange(ctx, c.ID, "", b.one)
	})
	wantBalance(t, s, treasury, "500000", "0")
	if _, err := s.ConfirmChange(ctx, propose("120000", true).ID, "", b.two); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, s, treasury, "380000", "0")
	_, err = s.ConfirmChange(ctx, propose("380000.01", true).ID, "", b.two)
	wantFault(t, err, exchange.CodeInsufficientFunds)
	// An allocation needs such a change and exactly its amount.
	for _, id := range []string{c.ID.String(), b.customer.ID.String()} {
		_, err = storetest.Owner(t, s).ExecContext(ctx, `
			WITH e AS (INSERT INTO ledger_entries (key, digest, kind, object_type, object_id, at)
				VALUES ('treasury.allocated:x' || $1, decode(md5('x'), 'hex'), 'treasury.allocated', 'control_change', $1::uuid, now()) RETURNING id)
			INSERT INTO ledger_lines (entry_id, account_id, amount)
			SELECT e.id, a.id, CASE a.kind WHEN 'capital' THEN 7 ELSE -7 END FROM e, ledger_accounts a WHERE a.code IN ('capital:house:KES', $2)`, id, treasury.Code())
		if sqlState(err) != "KV006" {
			t.Errorf("booked without a change: %v", err)
		}
	}
	wantBooks(t, s)
}

// The limits of prompts and refunds are those of the current terms.
func TestLimitsComeFromTheTerms(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := newBoard(t, store.Options{Now: func() time.Time { return now }})
	ctx, s := t.Context(), b.store
	m := storetest.NewMarket(t, s)
	attempt := storetest.Attempt(t, s, m.Order(t, s, "10"))
	strict := terms(now.Add(time.Minute))
	strict.MaxPrompt, strict.MinPayout = kes("1200"), kes("1001")
	c, err := s.ProposeTerms(ctx, strict, b.one)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ConfirmChange(ctx, c.ID, "", b.two); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Minute)
	out, err := s.AcceptPayment(ctx, attempt.ID, storetest.Listed(t, s, storetest.Paid(t, kes("1000"))), time.Time{})
	if err != nil || out.Refund.ID != uuid.Nil || out.Exception.Status != exchange.ExcAccepted {
		t.Errorf("too little to be sent back: %+v, %v", out, err)
	}
	wantBalance(t, s, exchange.House(exchange.AccUnclaimed, money.KES), "1000", "0")
	_, err = storetest.OpenOrder(ctx, s, exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: money.Must(money.USDT, "10"),
	}, storetest.PrincipalOf(m.Customer))
	wantFault(t, err, exchange.CodeInvalid)
	if e, ok := errors.AsType[*exchange.Error](err); !ok || len(e.Fields) != 1 || e.Fields[0].Pointer != "/crypto_amount" {
		t.Errorf("refused with %v", err)
	}
}
