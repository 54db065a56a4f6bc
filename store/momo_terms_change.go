package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// termsDoc are the provider's terms as stored in a control change. The guard of the table reads it.
type termsDoc struct {
	ValidFrom time.Time   `json:"valid_from"`
	MinPrompt string      `json:"min_prompt"`
	MaxPrompt string      `json:"max_prompt"`
	MinPayout string      `json:"min_payout"`
	MaxPayout string      `json:"max_payout"`
	PayeeDay  string      `json:"payee_day"`
	Tariff    []bandTerms `json:"tariff"`
}

func termsDocOf(t exchange.MomoTerms) termsDoc {
	d := termsDoc{
		ValidFrom: t.ValidFrom, MinPrompt: plain(t.MinPrompt), MaxPrompt: plain(t.MaxPrompt), MinPayout: plain(t.MinPayout),
		MaxPayout: plain(t.MaxPayout), PayeeDay: plain(t.PayeeDay),
	}
	for _, b := range t.Tariff {
		d.Tariff = append(d.Tariff, bandTerms{plain(b.UpTo), plain(b.Charge)})
	}
	return d
}

// plain is an amount without trailing zeros.
func plain(m money.Amount) string { return m.Decimal().String() }

func (d termsDoc) terms() (exchange.MomoTerms, error) {
	t := exchange.MomoTerms{ValidFrom: d.ValidFrom.UTC()}
	for _, f := range []struct {
		to   *money.Amount
		from string
	}{{&t.MinPrompt, d.MinPrompt}, {&t.MaxPrompt, d.MaxPrompt}, {&t.MinPayout, d.MinPayout}, {&t.MaxPayout, d.MaxPayout}, {&t.PayeeDay, d.PayeeDay}} {
		var err error
		if *f.to, err = money.Parse(money.KES, f.from); err != nil {
			return t, err
		}
	}
	var err error
	t.Tariff, err = convert(d.Tariff, bandTerms.band)
	return t, err
}

// ProposeTerms proposes new terms of the provider. They apply from their start if a second officer confirms them
// before it. CodeInvalid names what is wrong with them; CodeConflict when others begin at the same time.
func (s *Store) ProposeTerms(ctx context.Context, terms exchange.MomoTerms, by exchange.Principal) (exchange.ControlChange, error) {
	terms.ValidFrom = terms.ValidFrom.UTC().Truncate(time.Millisecond)
	if err := terms.Check(s.now()); err != nil {
		return exchange.ControlChange{}, err
	}
	var waits exchange.ControlChange
	err := s.inTx(ctx, "change", func(t unitTx) error {
		before, err := t.termsAt(ctx, terms.ValidFrom)
		if err != nil {
			return err
		}
		if before.ValidFrom.Equal(terms.ValidFrom) {
			return exchange.Errorf(exchange.CodeConflict, "Other terms begin at the same time. Agreed terms can't be changed; choose a later start.")
		}
		waits, err = t.propose(ctx, exchange.ControlMomoTerms, uuid.Nil, termsDocOf(before), termsDocOf(terms), by)
		return err
	})
	return waits, err
}

const insertTerms = `
INSERT INTO momo_terms (id, valid_from, min_prompt, max_prompt, min_payout, max_payout, payee_day, tariff, change_id, entered_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

// applyMomoTerms stores confirmed terms. They can't be retroactive: earlier payouts were promised and reserved under
// the earlier terms.
func (t unitTx) applyMomoTerms(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	var doc termsDoc
	if err := json.Unmarshal(c.Change, &doc); err != nil {
		return err
	}
	terms, err := doc.terms()
	if err != nil {
		return err
	}
	if terms.Check(c.DecidedAt) != nil {
		return exchange.Errorf(exchange.CodeExpired, "The start of the terms has passed. Propose them again.")
	}
	before, err := t.termsAt(ctx, terms.ValidFrom)
	if err != nil {
		return err
	}
	if err := unchanged(c, termsDocOf(before)); err != nil {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	tariff, err := json.Marshal(doc.Tariff)
	if err != nil {
		return err
	}
	_, err = t.Exec(ctx, insertTerms, id, terms.ValidFrom, terms.MinPrompt.Decimal(), terms.MaxPrompt.Decimal(), terms.MinPayout.Decimal(),
		terms.MaxPayout.Decimal(), terms.PayeeDay.Decimal(), string(tariff), c.ID, c.DecidedAt)
	if err != nil {
		return err
	}
	return t.audit(ctx, by, "momo_terms.entered", "momo_terms", id, termsDocOf(before), doc)
}

// ListTerms pages through the provider's terms, latest start first, with their number.
func (s *Store) ListTerms(ctx context.Context, p Page) ([]exchange.MomoTerms, int, error) {
	rows, total, err := readPage[termsRow](ctx, s, "terms of the provider", list{columns: termsColumns, from: "momo_terms", order: "valid_from DESC"}, p)
	if err != nil {
		return nil, 0, err
	}
	all, err := convert(rows, termsRow.terms)
	return all, total, err
}
