package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const rateColumns = `r.id, r.base, r.quote, r.bid, r.ask, r.source, r.valid_from, r.stale_at, r.replaces, r.jump_confirmed, r.created_by, r.created_at,
	(SELECT n.valid_from FROM fx_rates n WHERE n.base = r.base AND n.quote = r.quote AND n.replaces = r.id) AS replaced_at`

func rateSnapshot(r exchange.FXRate) map[string]any {
	return map[string]any{
		"id": r.ID, "base": r.Base, "quote": r.Quote, "bid": r.Bid.String(), "ask": r.Ask.String(), "source": r.Source, "valid_from": r.ValidFrom,
		"stale_at": r.StaleAt, "replaces": nullID(r.Replaces), "jump_confirmed": r.JumpConfirmed,
	}
}

// RateEntry is a request for a new rate.
type RateEntry struct {
	ID        uuid.UUID
	Base      money.Asset
	Quote     money.Asset
	Bid, Ask  decimal.Decimal
	Source    string        // exchange.RateSourceAdmin, or a configured source
	ValidFrom time.Time     // zero: now
	Life      time.Duration // from ValidFrom until no price uses it any more
	agreed    uuid.UUID     // who proposed it, when two officers agreed; otherwise zero
}

const readRate = `SELECT ` + rateColumns + ` FROM fx_rates r WHERE r.id = $1`

const lastRate = `SELECT ` + rateColumns + ` FROM fx_rates r WHERE r.base = $1 AND r.quote = $2 ORDER BY r.valid_from DESC LIMIT 1`

// sourceRate is the last rate of a pair that a source gave.
const sourceRate = `SELECT ` + rateColumns + ` FROM fx_rates r WHERE r.base = $1 AND r.quote = $2 AND r.source <> 'admin' ORDER BY r.valid_from DESC LIMIT 1`

// agreedRate is the last rate of a pair that two officers agreed.
const agreedRate = `SELECT ` + rateColumns + ` FROM fx_rates r WHERE r.base = $1 AND r.quote = $2 AND r.jump_confirmed ORDER BY r.valid_from DESC LIMIT 1`

// lockRates serialises additions to the rates of a pair; a read after it sees the newest rate.
const lockRates = `SELECT pg_advisory_xact_lock(hashtextextended('kivuko fx rates ' || $1::text || ' ' || $2::text, 0))`

// keepRates keeps the newest rate of a pair until the transaction ends, so that the database finds the same one in force.
const keepRates = `SELECT pg_advisory_xact_lock_shared(hashtextextended('kivuko fx rates ' || $1::text || ' ' || $2::text, 0))`

const insertRate = `
INSERT INTO fx_rates (id, base, quote, bid, ask, source, valid_from, stale_at, replaces, jump_confirmed, created_by, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`

// EnterSourcedRate enters a rate of the configured source, see EnterRate.
func (s *Store) EnterSourcedRate(ctx context.Context, rate exchange.FXRate) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	_, err = s.EnterRate(ctx, RateEntry{
		ID: id, Base: rate.Base, Quote: rate.Quote, Bid: rate.Bid, Ask: rate.Ask, Source: rate.Source, ValidFrom: rate.ValidFrom,
		Life: rate.StaleAt.Sub(rate.ValidFrom),
	}, exchange.System("rates"))
	return err
}

// EnterRate stores a rate as the newest of its pair. CodeInvalid names the wrong field. One person's rate must stay
// within exchange.MaxManualStray of the last that a source gave, within exchange.SourceSilence: otherwise, and while there is no
// source, CodeLimitReached with the cause ErrRateStrays, and ProposeRate asks a second officer. A source stays within
// exchange.MaxRateJump of the last rate, and within exchange.MaxRateDrift of the last that two officers agreed. It can't enter
// the first rate of a pair (CodeStateConflict), because there is nothing to compare it with. A
// repeated call with the same id returns the existing rate.
func (s *Store) EnterRate(ctx context.Context, e RateEntry, by exchange.Principal) (exchange.FXRate, error) {
	var entered exchange.FXRate
	err := s.inTx(ctx, "rate", func(t unitTx) error {
		var old []exchange.FXRate
		if err := t.All(ctx, &old, readRate, e.ID); err != nil {
			return err
		}
		if len(old) > 0 {
			var err error
			if entered = old[0]; entered.CreatedBy != by.UserID || entered.Base != e.Base {
				err = exchange.Errorf(exchange.CodeConflict, "The id belongs to another rate.")
			}
			return err
		}
		var err error
		entered, err = t.enterRate(ctx, e, by)
		return err
	})
	return entered, err
}

func (t unitTx) enterRate(ctx context.Context, e RateEntry, by exchange.Principal) (exchange.FXRate, error) {
	if _, err := t.Exec(ctx, lockRates, e.Base, e.Quote); err != nil {
		return exchange.FXRate{}, err
	}
	now := t.s.now()
	r := exchange.FXRate{
		ID: e.ID, Base: e.Base, Quote: e.Quote, Bid: e.Bid, Ask: e.Ask, Source: e.Source, ValidFrom: e.ValidFrom.UTC().Truncate(time.Millisecond), CreatedAt: now,
	}
	if e.ValidFrom.IsZero() {
		r.ValidFrom = now
	}
	if r.StaleAt = r.ValidFrom.Add(e.Life); e.Source == exchange.RateSourceAdmin {
		r.CreatedBy, r.JumpConfirmed = cmp.Or(e.agreed, by.UserID), e.agreed != uuid.Nil
	}
	if err := r.Validate(now); err != nil {
		return r, err
	}
	var found []exchange.FXRate
	if err := t.All(ctx, &found, lastRate, r.Base, r.Quote); err != nil {
		return r, err
	}
	switch {
	case len(found) > 0:
		if err := followRate(&r, found[0]); err != nil {
			return r, err
		}
	case r.Source != exchange.RateSourceAdmin:
		return r, exchange.Errorf(exchange.CodeStateConflict, "Two officers must agree the first rate of %s in %s.", r.Base, r.Quote)
	}
	if err := t.mayEnter(ctx, r); err != nil {
		return r, err
	}
	err := t.One(ctx, insertRate, r.ID, r.Base, r.Quote, r.Bid, r.Ask, r.Source, r.ValidFrom, r.StaleAt, nullID(r.Replaces), r.JumpConfirmed,
		nullID(r.CreatedBy), r.CreatedAt)
	if err != nil {
		return r, err
	}
	return r, t.record(ctx, auditEvent{by: by, object: "fx_rate", id: r.ID, name: "fx_rate.entered", after: rateSnapshot(r)})
}

// followRate makes a rate the successor of the last one of its pair. It refuses one that is not newer, and a jump of the source.
func followRate(r *exchange.FXRate, last exchange.FXRate) error {
	r.Replaces = last.ID
	if err := require(r.ValidFrom.After(last.ValidFrom), "/valid_from", exchange.RateNotNewer,
		"must be later than the last rate's, "+last.ValidFrom.Format(time.RFC3339Nano)); err != nil || r.Source == exchange.RateSourceAdmin {
		return err
	}
	jump := r.Jump(last)
	return require(jump <= exchange.MaxRateJump, "/bid", "jump", fmt.Sprintf("lies %s from the rate %s (bid %s, ask %s); two officers must agree to more than %s",
		exchange.Percent(jump), last.ID, last.Bid, last.Ask, exchange.Percent(exchange.MaxRateJump)))
}

// mayEnter refuses a rate that nobody may enter without two officers. Theirs may be any.
func (t unitTx) mayEnter(ctx context.Context, r exchange.FXRate) error {
	switch {
	case r.Source != exchange.RateSourceAdmin:
		return t.nearAgreed(ctx, r)
	case !r.JumpConfirmed:
		return t.nearSource(ctx, r)
	}
	return nil
}

// nearAgreed refuses a rate of the source that lies too far from the last one that two officers agreed, in however many steps it came
// there.
func (t unitTx) nearAgreed(ctx context.Context, r exchange.FXRate) error {
	var found []exchange.FXRate
	if err := t.All(ctx, &found, agreedRate, r.Base, r.Quote); err != nil {
		return err
	}
	if len(found) == 0 {
		return exchange.Errorf(exchange.CodeStateConflict, "Two officers must agree a rate of %s in %s.", r.Base, r.Quote)
	}
	drift := r.Jump(found[0])
	return require(drift <= exchange.MaxRateDrift, "/bid", "drift", fmt.Sprintf("lies %s from the rate %s (bid %s, ask %s), the last that two officers agreed; they must agree to more than %s",
		exchange.Percent(drift), found[0].ID, found[0].Bid, found[0].Ask, exchange.Percent(exchange.MaxRateDrift)))
}

// nearSource refuses a rate of one person that strays from the source's, or that there is no source to hold against.
func (t unitTx) nearSource(ctx context.Context, r exchange.FXRate) error {
	var found []exchange.FXRate
	if err := t.All(ctx, &found, sourceRate, r.Base, r.Quote); err != nil {
		return err
	}
	if len(found) == 0 || found[0].ValidFrom.Before(r.CreatedAt.Add(-exchange.SourceSilence)) {
		return exchange.Wrap(exchange.CodeLimitReached, exchange.ErrRateStrays, "No source has given a rate of %s within an hour. A second officer has to confirm this one.", r.Base)
	}
	if stray := r.Jump(found[0]); stray > exchange.MaxManualStray {
		return exchange.Wrap(exchange.CodeLimitReached, exchange.ErrRateStrays, "The rate lies %s from the source's (bid %s, ask %s). A second officer has to confirm it.",
			exchange.Percent(stray), found[0].Bid, found[0].Ask)
	}
	return nil
}

// RateFilter narrows a list of rates.
type RateFilter struct {
	Base   money.Asset
	Source string
}

// FXRates pages through the rates, newest first, with their number.
func (s *Store) FXRates(ctx context.Context, f RateFilter, p Page) ([]exchange.FXRate, int, error) {
	var w where
	w.eq("r.base", string(f.Base))
	w.eq("r.source", f.Source)
	return readPage[exchange.FXRate](ctx, s, "rate", list{columns: rateColumns, from: "fx_rates r", where: w, order: "r.created_at DESC, r.id DESC"}, p)
}

// freshRate finds the newest rate of an asset in shillings; false when it is stale.
func (t unitTx) freshRate(ctx context.Context, base money.Asset) (exchange.FXRate, bool, error) {
	var found []exchange.FXRate
	if err := t.All(ctx, &found, lastRate, base, money.KES); err != nil || len(found) == 0 {
		return exchange.FXRate{}, false, err
	}
	return found[0], found[0].InForce(t.s.now()), nil
}
