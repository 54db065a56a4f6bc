package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const quoteColumns = `q.id, q.owner_id, q.vendor_id, q.purpose, q.side, q.asset, q.amount, q.fiat_currency, q.rate_id, q.bid, q.ask, q.rate_source,
	q.rate_valid_from, q.rate_stale_at, q.profile_id, q.profile_version, q.fee_fixed, q.fee_points, q.fee_minimum, q.fee_maximum, q.spread_points,
	q.fiat_given, q.network, q.method, q.fee_currency, q.formula, q.rate, q.fiat_amount, q.fee, q.total, q.hash, q.status, q.created_at, q.expires_at, q.consumed_at, q.object_type, q.object_id,
	q.superseded_by, q.updated_at, q.version`

// quoteRow is a row of fx_quotes.
type quoteRow struct {
	ID             uuid.UUID
	OwnerID        uuid.UUID
	VendorID       uuid.NullUUID
	Purpose        exchange.QuotePurpose
	Side           exchange.QuoteSide
	Asset          money.Asset
	Amount         decimal.Decimal
	FiatCurrency   money.Asset
	RateID         uuid.UUID
	Bid            decimal.Decimal
	Ask            decimal.Decimal
	RateSource     string
	RateValidFrom  time.Time
	RateStaleAt    time.Time
	ProfileID      uuid.NullUUID
	ProfileVersion int
	FeeFixed       decimal.Decimal
	FeePoints      int64
	FeeMinimum     decimal.Decimal
	FeeMaximum     decimal.NullDecimal
	SpreadPoints   int64
	FiatGiven      decimal.NullDecimal
	Network        sql.NullString
	Method         sql.NullString
	FeeCurrency    money.Asset
	Formula        string
	Rate           decimal.Decimal
	FiatAmount     decimal.Decimal
	Fee            decimal.Decimal
	Total          decimal.Decimal
	Hash           string
	Status         exchange.QuoteStatus
	CreatedAt      time.Time
	ExpiresAt      time.Time
	ConsumedAt     sql.NullTime
	ObjectType     sql.NullString
	ObjectID       uuid.NullUUID
	SupersededBy   uuid.NullUUID
	UpdatedAt      time.Time
	Version        int64
}

func (r quoteRow) quote() (exchange.FXQuote, error) {
	q := exchange.FXQuote{
		ID: r.ID, OwnerID: r.OwnerID, VendorID: r.VendorID.UUID, Hash: r.Hash, Status: r.Status, CreatedAt: r.CreatedAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(),
		ConsumedAt: utc(r.ConsumedAt), ObjectType: r.ObjectType.String, ObjectID: r.ObjectID.UUID, SupersededBy: r.SupersededBy.UUID,
		UpdatedAt: r.UpdatedAt.UTC(), Version: r.Version,
		Terms: exchange.QuoteTerms{
			Purpose: r.Purpose, Side: r.Side, Network: exchange.Network(r.Network.String), Method: r.Method.String, Formula: r.Formula,
			Rate: exchange.FXRate{
				ID: r.RateID, Base: r.Asset, Quote: r.FiatCurrency, Bid: r.Bid, Ask: r.Ask, Source: r.RateSource, ValidFrom: r.RateValidFrom.UTC(),
				StaleAt: r.RateStaleAt.UTC(),
			},
			Profile: exchange.FeeProfile{
				ID: r.ProfileID.UUID, FeeLine: exchange.FeeLine{Scope: r.Purpose.Scope(), Asset: r.Asset}, Version: r.ProfileVersion, BasisPoints: r.FeePoints,
				Spread: r.SpreadPoints,
			},
		},
		Price: exchange.QuotePrice{Rate: r.Rate},
	}
	if err := fillFees(&q.Terms.Profile, r.FeeCurrency, r.FeeFixed, r.FeeMinimum, r.FeeMaximum); err != nil {
		return q, err
	}
	for _, f := range []struct {
		to    *money.Amount
		asset money.Asset
		value decimal.Decimal
	}{
		{&q.Price.Crypto, r.Asset, r.Amount},
		{&q.Price.Fiat, r.FiatCurrency, r.FiatAmount},
		{&q.Price.Fee, r.FeeCurrency, r.Fee},
		{&q.Price.Total, r.Asset, r.Total},
	} {
		var err error
		if *f.to, err = amountOf(f.asset, f.value); err != nil {
			return q, err
		}
	}
	q.Terms.Given = q.Price.Crypto
	if r.FiatGiven.Valid {
		var err error
		if q.Terms.Given, err = amountOf(r.FiatCurrency, r.FiatGiven.Decimal); err != nil {
			return q, err
		}
	}
	return q, nil
}

func quoteSnapshot(q exchange.FXQuote) map[string]any {
	f := map[string]any{
		"id": q.ID, "purpose": q.Terms.Purpose, "offer_type": q.Terms.Side.OfferType(), "asset": q.Price.Crypto.Asset(), "amount": q.Price.Crypto.String(),
		"amount_side": q.Terms.AmountSide(), "fee_currency": q.Price.Fee.Asset(),
		"fiat_currency": q.Price.Fiat.Asset(), "fiat_amount": q.Price.Fiat.String(), "rate": q.Price.Rate.String(), "fee": q.Price.Fee.String(),
		"fx_rate_id": q.Terms.Rate.ID, "pricing_profile_id": nullID(q.Terms.Profile.ID), "hash": q.Hash, "status": q.Status, "expires_at": q.ExpiresAt,
		"object_type": q.ObjectType, "object_id": nullID(q.ObjectID), "superseded_by": nullID(q.SupersededBy), "version": q.Version,
	}
	if q.Terms.Network != "" {
		f["network"] = q.Terms.Network
	}
	if q.Terms.Method != "" {
		f["method"] = q.Terms.Method
	}
	return f
}

func quoteRecord(name string, by exchange.Principal, before *exchange.FXQuote, after exchange.FXQuote) auditEvent {
	f := auditEvent{by: by, object: "fx_quote", id: after.ID, name: name, owner: after.OwnerID, vendor: after.VendorID, after: quoteSnapshot(after)}
	if before != nil {
		f.before = quoteSnapshot(*before)
	}
	return f
}

// QuoteRequest is a request for a quote.
type QuoteRequest struct {
	ID         uuid.UUID
	Purpose    exchange.QuotePurpose
	Side       exchange.QuoteSide
	Amount     money.Amount     // of crypto, or of shillings that buy or that are wanted for it
	Asset      money.Asset      // the crypto, when the amount is in shillings
	Network    exchange.Network // required where the fee depends on it, as is Method
	Method     string
	Supersedes uuid.UUID // an active quote of the same owner that this one replaces
	formula    string    // another than the one of new quotes, for the tests of old ones
}

// asset is the crypto that the quote is about.
func (r QuoteRequest) asset() money.Asset {
	if r.Amount.Asset().Fiat() {
		return r.Asset
	}
	return r.Amount.Asset()
}

const (
	readQuote       = `SELECT ` + quoteColumns + ` FROM fx_quotes q WHERE q.id = $1`
	readScopedQuote = readQuote + ` AND ($2 OR q.owner_id = $3 OR q.vendor_id = $4)`
	lockOwnQuote    = readQuote + ` AND q.owner_id = $2 FOR NO KEY UPDATE`
	countQuotes     = `SELECT count(*) FROM fx_quotes WHERE owner_id = $1 AND status = 'active' AND expires_at > $2 AND id <> $3`
)

const insertQuote = `
INSERT INTO fx_quotes (id, owner_id, vendor_id, purpose, side, asset, amount, fiat_currency, rate_id, bid, ask, rate_source, rate_valid_from,
    rate_stale_at, profile_id, profile_version, fee_fixed, fee_points, fee_minimum, fee_maximum, spread_points, formula, rate, fiat_amount, fee, total,
    hash, status, created_at, expires_at, fiat_given, network, method, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32,
    $33, $29)`

// OpenQuote freezes a price for the requester. CodeInvalid names the wrong field, CodeStateConflict when no rate is
// fresh enough or the quote to supersede is not active, CodeExpired when that quote has expired, CodeLimitReached when
// the owner has the maximum of active quotes. The request's id becomes the quote's: a repeated call returns the
// existing quote.
func (s *Store) OpenQuote(ctx context.Context, r QuoteRequest, by exchange.Principal) (exchange.FXQuote, error) {
	var q exchange.FXQuote
	err := s.inTx(ctx, "quote", func(t unitTx) error {
		var old []quoteRow
		if err := t.All(ctx, &old, readQuote, r.ID); err != nil {
			return err
		}
		if len(old) > 0 {
			var err error
			if q, err = old[0].quote(); err == nil && q.OwnerID != by.UserID {
				err = exchange.Errorf(exchange.CodeConflict, "The id belongs to another quote.")
			}
			return err
		}
		var err error
		q, err = t.openQuote(ctx, r, by)
		return err
	})
	return q, err
}

func (t unitTx) openQuote(ctx context.Context, r QuoteRequest, by exchange.Principal) (exchange.FXQuote, error) {
	var owner exchange.User
	if err := t.Get(ctx, &owner, lockCustomer, by.UserID); err != nil {
		return exchange.FXQuote{}, translate(err, "user")
	}
	q, err := t.draftQuote(ctx, r, owner)
	if err != nil {
		return q, err
	}
	if err := t.supersedeQuote(ctx, r.Supersedes, q, by); err != nil {
		return q, err
	}
	var active int
	if err := t.Get(ctx, &active, countQuotes, owner.ID, q.CreatedAt, q.ID); err != nil {
		return q, err
	}
	if active >= exchange.MaxActiveQuotes {
		return q, exchange.Errorf(exchange.CodeLimitReached, "At most %d quotes may be active at a time.", exchange.MaxActiveQuotes)
	}
	terms := q.Terms
	given := money.Amount{}
	if terms.AmountSide() == exchange.AmountFiat {
		given = terms.Given
	}
	line := lineArgs(exchange.FeeLine{Network: terms.Network, Method: terms.Method})
	err = t.One(ctx, insertQuote, q.ID, q.OwnerID, nullID(q.VendorID), terms.Purpose, terms.Side, q.Price.Crypto.Asset(), q.Price.Crypto.Decimal(), terms.Rate.Quote,
		terms.Rate.ID, terms.Rate.Bid, terms.Rate.Ask, terms.Rate.Source, terms.Rate.ValidFrom, terms.Rate.StaleAt, nullID(terms.Profile.ID),
		terms.Profile.Version, terms.Profile.Fixed.Decimal(), terms.Profile.BasisPoints, terms.Profile.Minimum.Decimal(), nullAmount(terms.Profile.Maximum),
		terms.Profile.Spread, terms.Formula, q.Price.Rate, q.Price.Fiat.Decimal(), q.Price.Fee.Decimal(), q.Price.Total.Decimal(), q.Hash, q.Status,
		q.CreatedAt, q.ExpiresAt, nullAmount(given), line[3], line[4])
	if err != nil {
		return q, err
	}
	return q, t.record(ctx, quoteRecord("fx_quote.created", by, nil, q))
}

// supersedeQuote ends the active quote that another one replaces.
func (t unitTx) supersedeQuote(ctx context.Context, id uuid.UUID, by exchange.FXQuote, who exchange.Principal) error {
	if id == uuid.Nil {
		return nil
	}
	before, err := t.ownQuote(ctx, id, by.OwnerID, "/supersedes")
	if err != nil {
		return err
	}
	if before.Status == exchange.QuoteActive && before.Over(by.CreatedAt) {
		return exchange.Errorf(exchange.CodeExpired, "The quote in supersedes has expired. Leave it out.")
	}
	if before.Status != exchange.QuoteActive {
		return exchange.Errorf(exchange.CodeStateConflict, "The quote in supersedes is %s. Leave it out.", before.Status)
	}
	after := before
	after.Status, after.SupersededBy = exchange.QuoteSuperseded, by.ID
	return t.saveQuote(ctx, "fx_quote.superseded", who, before, after)
}

// ownQuote locks a quote of an owner. Another owner's quote is reported as missing.
func (t unitTx) ownQuote(ctx context.Context, id, owner uuid.UUID, pointer string) (exchange.FXQuote, error) {
	var found []quoteRow
	if err := t.All(ctx, &found, lockOwnQuote, id, owner); err != nil {
		return exchange.FXQuote{}, err
	}
	if len(found) == 0 {
		return exchange.FXQuote{}, require(false, pointer, "not_found", "must be the id of one of your quotes")
	}
	return found[0].quote()
}

const saveQuote = `
UPDATE fx_quotes SET status = $2, consumed_at = $3, object_type = $4, object_id = $5, superseded_by = $6, updated_at = $7, version = version + 1
WHERE id = $1 AND version = $8 AND status = 'active'`

func (t unitTx) saveQuote(ctx context.Context, name string, by exchange.Principal, before, q exchange.FXQuote) error {
	if err := exchange.QuoteMachine.Allow(before.Status, q.Status); err != nil {
		return err
	}
	q.UpdatedAt = t.s.now()
	err := t.One(ctx, saveQuote, q.ID, q.Status, nullTime(q.ConsumedAt), sql.NullString{String: q.ObjectType, Valid: q.ObjectType != ""}, nullID(q.ObjectID),
		nullID(q.SupersededBy), q.UpdatedAt, before.Version)
	if err != nil {
		return err
	}
	q.Version++
	return t.record(ctx, quoteRecord(name, by, &before, q))
}

// useQuote marks a quote as used by one object, in the transaction that opens the object.
func (t unitTx) useQuote(ctx context.Context, q exchange.FXQuote, objectType string, objectID uuid.UUID, by exchange.Principal) error {
	used := q
	used.Status, used.ConsumedAt, used.ObjectType, used.ObjectID = exchange.QuoteConsumed, t.s.now(), objectType, objectID
	return t.saveQuote(ctx, "fx_quote.consumed", by, q, used)
}

// Quote reads a quote that the view may see. An overdue one reads as expired, even before ExpireQuotes has stored
// that.
func (s *Store) Quote(ctx context.Context, v View, id uuid.UUID) (exchange.FXQuote, error) {
	all, owner, vendor := v.args()
	var r quoteRow
	if err := s.db.Get(ctx, &r, readScopedQuote, id, all, owner, vendor); err != nil {
		return exchange.FXQuote{}, translate(err, "quote")
	}
	q, err := r.quote()
	if q.Status == exchange.QuoteActive && q.Over(s.now()) {
		q.Status = exchange.QuoteExpired
	}
	return q, err
}

// QuoteFilter narrows a list of quotes.
type QuoteFilter struct {
	Status  exchange.QuoteStatus
	Purpose exchange.QuotePurpose
	OwnerID uuid.UUID
}

// Quotes pages through the quotes that the view may see, newest first, with their number. Overdue ones read as expired.
func (s *Store) Quotes(ctx context.Context, v View, f QuoteFilter, p Page) ([]exchange.FXQuote, int, error) {
	var w where
	w.scope(v, "q.owner_id", "q.vendor_id")
	w.eq("q.purpose", string(f.Purpose))
	w.id("q.owner_id", f.OwnerID)
	now := s.now()
	switch f.Status {
	case exchange.QuoteActive:
		w.add(`q.status = 'active' AND q.expires_at > ?`, now)
	case exchange.QuoteExpired:
		w.add(`(q.status = 'expired' OR q.status = 'active' AND q.expires_at <= ?)`, now)
	case exchange.QuoteConsumed, exchange.QuoteSuperseded:
		w.eq("q.status", string(f.Status))
	}
	rows, total, err := readPage[quoteRow](ctx, s, "quote", list{columns: quoteColumns, from: "fx_quotes q", where: w, order: "q.created_at DESC, q.id DESC"}, p)
	if err != nil {
		return nil, 0, err
	}
	all := make([]exchange.FXQuote, len(rows))
	for i, r := range rows {
		if all[i], err = r.quote(); err != nil {
			return nil, 0, err
		}
		if all[i].Status == exchange.QuoteActive && all[i].Over(now) {
			all[i].Status = exchange.QuoteExpired
		}
	}
	return all, total, nil
}

const overQuotes = `SELECT ` + quoteColumns + ` FROM fx_quotes q WHERE q.status = 'active' AND q.expires_at <= $1
ORDER BY q.expires_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED`

// ExpireQuotes marks at most limit unused overdue quotes as expired, and returns their number.
func (s *Store) ExpireQuotes(ctx context.Context, limit int) (int, error) {
	var n int
	err := s.inTx(ctx, "quote", func(t unitTx) error {
		var rows []quoteRow
		if err := t.All(ctx, &rows, overQuotes, t.s.now(), limit); err != nil {
			return err
		}
		n = len(rows)
		for _, r := range rows {
			before, err := r.quote()
			if err != nil {
				return err
			}
			after := before
			after.Status = exchange.QuoteExpired
			if err := t.saveQuote(ctx, "fx_quote.expired", flow, before, after); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}
