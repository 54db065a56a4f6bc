package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const termsColumns = `id, valid_from, min_prompt||' KES' AS min_prompt, max_prompt||' KES' AS max_prompt, min_payout||' KES' AS min_payout,
	max_payout||' KES' AS max_payout, payee_day||' KES' AS payee_day, tariff, change_id, entered_at`

// termsRow is a row of momo_terms.
type termsRow struct {
	exchange.MomoTerms
	Tariff []byte
}

func (r termsRow) terms() (exchange.MomoTerms, error) {
	var bands []bandTerms
	if err := json.Unmarshal(r.Tariff, &bands); err != nil {
		return r.MomoTerms, err
	}
	var err error
	r.MomoTerms.Tariff, err = convert(bands, bandTerms.band)
	return r.MomoTerms, err
}

// bandTerms is a band of the tariff as stored and shown.
type bandTerms struct {
	UpTo   string `json:"up_to"`
	Charge string `json:"charge"`
}

func (b bandTerms) band() (exchange.TariffBand, error) {
	upTo, err := money.Parse(money.KES, b.UpTo)
	if err != nil {
		return exchange.TariffBand{}, err
	}
	charge, err := money.Parse(money.KES, b.Charge)
	return exchange.TariffBand{UpTo: upTo, Charge: charge}, err
}

// The terms that apply at a time: those with the latest start before it.
const readTermsAt = `SELECT ` + termsColumns + ` FROM momo_terms WHERE valid_from <= $1 ORDER BY valid_from DESC LIMIT 1`

// TermsAt are the mobile money provider's limits and tariff that apply at a time.
func (s *Store) TermsAt(ctx context.Context, at time.Time) (exchange.MomoTerms, error) {
	var r termsRow
	if err := s.db.Get(ctx, &r, readTermsAt, at); err != nil {
		return exchange.MomoTerms{}, translate(err, "terms of the provider")
	}
	return r.terms()
}

// termsAt is TermsAt within a transaction.
func (t unitTx) termsAt(ctx context.Context, at time.Time) (exchange.MomoTerms, error) {
	var r termsRow
	if err := t.Get(ctx, &r, readTermsAt, at); err != nil {
		return exchange.MomoTerms{}, translate(err, "terms of the provider")
	}
	return r.terms()
}

// charge is the provider's charge for a payout of that amount that begins now. The payout reserves float for the
// amount and the charge.
func (t unitTx) charge(ctx context.Context, amount money.Amount) (money.Amount, error) {
	terms, err := t.termsAt(ctx, t.s.now())
	if err != nil {
		return money.Amount{}, err
	}
	return terms.Charge(amount)
}

const insertCharge = `INSERT INTO payout_charges (attempt_id, expected, reported, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (attempt_id) DO NOTHING`

// charged books the provider's charge for a proven payout: the charge by its terms when the payout began, for which
// float was held. It belongs in the posting that captures the payout's hold. The charge that the provider itself
// reports (obs.Charge) is stored, and a difference is booked later (FixCharges), so that booking a payout never fails
// for lack of float. There is no entry where there is no charge.
func (t unitTx) charged(ctx context.Context, a exchange.PaymentAttempt, obs exchange.Observation) ([]exchange.Entry, error) {
	terms, err := t.termsAt(ctx, a.CreatedAt)
	if err != nil {
		return nil, err
	}
	expected, err := terms.Charge(a.Amount)
	if err != nil {
		return nil, err
	}
	n, err := t.Exec(ctx, insertCharge, a.ID, expected.Decimal(), nullAmount(obs.Charge), t.s.now())
	if err != nil || n == 0 || expected.IsZero() {
		return nil, err // the provider reports no second charge for a double payout
	}
	return []exchange.Entry{chargeEntry(a.ID, "payout:"+a.ID.String()+":charge", expected)}, nil
}

// chargeEntry books a charge for a payout, or returns part of it where it is negative.
func chargeEntry(attempt uuid.UUID, key string, charge money.Amount) exchange.Entry {
	return exchange.Entry{
		Key: key, Kind: "payout.charged", ObjectType: "payment_attempt", ObjectID: attempt,
		Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccMomoFees, charge.Asset()), charge),
			exchange.Credit(exchange.House(exchange.AccMomoPayout, charge.Asset()), charge),
		},
	}
}
