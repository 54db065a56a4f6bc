package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Quotes of swaps. They never change: which swap used one is read from the swaps.

const swapQuoteColumns = `q.id, q.asked_by, q.vendor_id, q.wallet_id, q.network, q.from_asset, q.to_asset, q.amount_side, q.from_rate_id, q.from_bid, q.from_ask, q.from_rate_source,
	q.from_rate_valid_from, q.from_rate_stale_at, q.to_rate_id, q.to_bid, q.to_ask, q.to_rate_source, q.to_rate_valid_from, q.to_rate_stale_at, q.profile_id, q.profile_version,
	q.fee_fixed, q.fee_points, q.fee_minimum, q.fee_maximum, q.spread_points, q.formula, q.rate, q.from_amount, q.to_amount, q.fee, q.hash, q.created_at, q.expires_at, s.id AS swap_id`

const fromSwapQuotes = `swap_quotes q LEFT JOIN swaps s ON s.quote_id = q.id`

const (
	readSwapQuote       = `SELECT ` + swapQuoteColumns + ` FROM ` + fromSwapQuotes + ` WHERE q.id = $1`
	readScopedSwapQuote = readSwapQuote + ` AND ($2 OR q.asked_by = $3 OR q.vendor_id = $4)`
	countSwapQuotes     = `SELECT count(*) FROM ` + fromSwapQuotes + ` WHERE q.asked_by = $1 AND q.expires_at > $2 AND s.id IS NULL`
)

// swapQuoteRow is a row of swap_quotes, with the swap that used it.
type swapQuoteRow struct {
	ID                uuid.UUID
	AskedBy           uuid.UUID
	VendorID          uuid.UUID
	WalletID          uuid.UUID
	Network           exchange.Network
	FromAsset         money.Asset
	ToAsset           money.Asset
	AmountSide        exchange.AmountSide
	FromRateID        uuid.UUID
	FromBid           decimal.Decimal
	FromAsk           decimal.Decimal
	FromRateSource    string
	FromRateValidFrom time.Time
	FromRateStaleAt   time.Time
	ToRateID          uuid.UUID
	ToBid             decimal.Decimal
	ToAsk             decimal.Decimal
	ToRateSource      string
	ToRateValidFrom   time.Time
	ToRateStaleAt     time.Time
	ProfileID         uuid.UUID
	ProfileVersion    int
	FeeFixed          decimal.Decimal
	FeePoints         int64
	FeeMinimum        decimal.Decimal
	FeeMaximum        decimal.NullDecimal
	SpreadPoints      int64
	Formula           string
	Rate              decimal.Decimal
	FromAmount        decimal.Decimal
	ToAmount          decimal.Decimal
	Fee               decimal.Decimal
	Hash              string
	CreatedAt         time.Time
	ExpiresAt         time.Time
	SwapID            uuid.UUID
}

func (r swapQuoteRow) quote() (exchange.SwapQuote, error) {
	rate := func(id uuid.UUID, a money.Asset, bid, ask decimal.Decimal, source string, from, stale time.Time) exchange.FXRate {
		return exchange.FXRate{ID: id, Base: a, Quote: money.KES, Bid: bid, Ask: ask, Source: source, ValidFrom: from.UTC(), StaleAt: stale.UTC()}
	}
	q := exchange.SwapQuote{
		ID: r.ID, AskedBy: r.AskedBy, VendorID: r.VendorID, WalletID: r.WalletID, Hash: r.Hash, CreatedAt: r.CreatedAt.UTC(), ExpiresAt: r.ExpiresAt.UTC(), SwapID: r.SwapID,
		Price: exchange.SwapPrice{Rate: r.Rate},
		Terms: exchange.SwapTerms{
			From: r.FromAsset, To: r.ToAsset, Network: r.Network, Formula: r.Formula,
			FromRate: rate(r.FromRateID, r.FromAsset, r.FromBid, r.FromAsk, r.FromRateSource, r.FromRateValidFrom, r.FromRateStaleAt),
			ToRate:   rate(r.ToRateID, r.ToAsset, r.ToBid, r.ToAsk, r.ToRateSource, r.ToRateValidFrom, r.ToRateStaleAt),
			Profile: exchange.FeeProfile{
				ID: r.ProfileID, FeeLine: exchange.FeeLine{Scope: exchange.FeeSwap, Asset: r.ToAsset}, Version: r.ProfileVersion, BasisPoints: r.FeePoints, Spread: r.SpreadPoints,
			},
		},
	}
	err := fillFees(&q.Terms.Profile, r.ToAsset, r.FeeFixed, r.FeeMinimum, r.FeeMaximum)
	for _, f := range []struct {
		to    *money.Amount
		asset money.Asset
		value decimal.Decimal
	}{{&q.Price.From, r.FromAsset, r.FromAmount}, {&q.Price.To, r.ToAsset, r.ToAmount}, {&q.Price.Fee, r.ToAsset, r.Fee}} {
		if err == nil {
			*f.to, err = amountOf(f.asset, f.value)
		}
	}
	if q.Terms.Given = q.Price.From; r.AmountSide == exchange.AmountTo {
		q.Terms.Given = q.Price.To
	}
	return q, err
}

const insertSwapQuote = `
INSERT INTO swap_quotes (id, asked_by, vendor_id, wallet_id, network, from_asset, to_asset, amount_side, from_rate_id, from_bid, from_ask, from_rate_source, from_rate_valid_from,
    from_rate_stale_at, to_rate_id, to_bid, to_ask, to_rate_source, to_rate_valid_from, to_rate_stale_at, profile_id, profile_version, fee_fixed, fee_points, fee_minimum,
    fee_maximum, spread_points, formula, rate, from_amount, to_amount, fee, hash, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35)`

// OpenSwapQuote freezes the price of a swap in a wallet for a minute. CodeInvalid names the wrong field, with the rule unsupported_asset
// for an asset that is not swapped on the network; CodeStateConflict when a rate is not fresh, CodeInsufficientFunds when the wallet or the
// treasury has too little, CodeLimitReached for a swap above a limit or too many quotes. The request's id becomes the quote's: a repeated
// call returns the existing quote.
func (s *Store) OpenSwapQuote(ctx context.Context, r exchange.SwapQuoteRequest, by exchange.Principal) (exchange.SwapQuote, error) {
	var q exchange.SwapQuote
	if err := r.Check(); err != nil {
		return q, err
	}
	err := s.inTx(ctx, "quote", func(t unitTx) error {
		old, found, err := readFound[swapQuoteRow](ctx, t, readSwapQuote, r.ID)
		if err != nil {
			return err
		}
		if found {
			if q, err = old.quote(); err == nil && q.AskedBy != by.UserID {
				err = exchange.Errorf(exchange.CodeConflict, "The id belongs to another quote.")
			}
			return err
		}
		q, err = t.openSwapQuote(ctx, r, by)
		return err
	})
	return q, err
}

func (t unitTx) openSwapQuote(ctx context.Context, r exchange.SwapQuoteRequest, by exchange.Principal) (exchange.SwapQuote, error) {
	var asker exchange.User
	if err := t.Get(ctx, &asker, lockCustomer, by.UserID); err != nil {
		return exchange.SwapQuote{}, translate(err, "user")
	}
	q, err := t.draftSwapQuote(ctx, r, asker)
	if err != nil {
		return q, err
	}
	var active int
	if err := t.Get(ctx, &active, countSwapQuotes, asker.ID, q.CreatedAt); err != nil {
		return q, err
	}
	if active >= exchange.MaxActiveSwapQuotes {
		return q, exchange.Errorf(exchange.CodeLimitReached, "At most %d quotes of swaps may be active at a time.", exchange.MaxActiveSwapQuotes)
	}
	m, p, f := q.Terms, q.Price, q.Terms.Profile
	err = t.One(ctx, insertSwapQuote, q.ID, q.AskedBy, nullID(q.VendorID), q.WalletID, m.Network, m.From, m.To, m.AmountSide(), m.FromRate.ID, m.FromRate.Bid, m.FromRate.Ask,
		m.FromRate.Source, m.FromRate.ValidFrom, m.FromRate.StaleAt, m.ToRate.ID, m.ToRate.Bid, m.ToRate.Ask, m.ToRate.Source, m.ToRate.ValidFrom, m.ToRate.StaleAt, nullID(f.ID), f.Version,
		f.Fixed.Decimal(), f.BasisPoints, f.Minimum.Decimal(), nullAmount(f.Maximum), f.Spread, m.Formula, p.Rate, p.From.Decimal(), p.To.Decimal(), p.Fee.Decimal(), q.Hash, q.CreatedAt, q.ExpiresAt)
	if err != nil {
		return q, err
	}
	return q, t.audit(ctx, by, "swap_quote.created", "swap_quote", q.ID, nil, swapQuoteSnapshot(q))
}

func swapQuoteSnapshot(q exchange.SwapQuote) map[string]any {
	return map[string]any{
		"id": q.ID, "wallet_id": q.WalletID, "network": q.Terms.Network, "from_asset": q.Terms.From, "from_amount": q.Price.From.String(), "to_asset": q.Terms.To,
		"to_amount": q.Price.To.String(), "fee": q.Price.Fee.String(), "rate": q.Price.Rate.String(), "from_rate_id": q.Terms.FromRate.ID, "to_rate_id": q.Terms.ToRate.ID,
		"pricing_profile_id": nullID(q.Terms.Profile.ID), "hash": q.Hash, "expires_at": q.ExpiresAt,
	}
}

// draftSwapQuote gathers the terms of a quote and computes its price.
func (t unitTx) draftSwapQuote(ctx context.Context, r exchange.SwapQuoteRequest, asker exchange.User) (exchange.SwapQuote, error) {
	now := t.s.now()
	q := exchange.SwapQuote{ID: r.ID, AskedBy: asker.ID, WalletID: r.WalletID, CreatedAt: now, ExpiresAt: now.Add(exchange.SwapQuoteLife)}
	if !asker.IsActive {
		return q, exchange.Errorf(exchange.CodeForbidden, "Only an active account can ask for quotes.")
	}
	q.VendorID = exchange.VendorOf(asker)
	w, house, err := t.swapWallets(ctx, r.WalletID, asker)
	if err != nil {
		return q, err
	}
	q.Terms = exchange.SwapTerms{From: r.From, To: r.To, Network: w.Network, Given: r.Amount, Formula: exchange.SwapFormula1}
	for _, a := range []struct {
		asset   money.Asset
		pointer string
		rate    *exchange.FXRate
	}{{r.From, "/from_asset", &q.Terms.FromRate}, {r.To, "/to_asset", &q.Terms.ToRate}} {
		if err := require(t.s.limits.swapped(w.Network, a.asset), a.pointer, "unsupported_asset", "can't be "+string(a.asset)+" on "+string(w.Network)+": it is not swapped there"); err != nil {
			return q, err
		}
		if *a.rate, err = t.swapRate(ctx, a.asset); err != nil {
			return q, err
		}
		if a.rate.StaleAt.Before(q.ExpiresAt) {
			q.ExpiresAt = a.rate.StaleAt
		}
	}
	line := exchange.FeeLine{Scope: exchange.FeeSwap, MerchantID: q.VendorID, Asset: r.To, Network: w.Network}
	if q.Terms.Profile, err = t.feesFor(ctx, line, asker.Role, now); err != nil {
		return q, err
	}
	if q.Price, err = q.Terms.Price(); err != nil {
		return q, err
	}
	if err := t.agreedSwap(ctx, q.Terms); err != nil {
		return q, err
	}
	if err := t.bothHave(ctx, q.Price, w, house); err != nil {
		return q, err
	}
	q.Hash = q.Fingerprint()
	return q, nil
}

// swapped reports whether an asset is swapped on a network.
func (l Limits) swapped(n exchange.Network, a money.Asset) bool {
	return n != exchange.Tron || a != money.USDC || l.SwapUSDCOnTron
}

// swapWallets finds the wallet of a swap, in which its requester may spend, and the treasury wallet of the network. Another owner's
// wallet is reported as missing.
func (t unitTx) swapWallets(ctx context.Context, id uuid.UUID, asker exchange.User) (w, house exchange.Wallet, err error) {
	const pointer = "/wallet_id"
	w, found, err := readFound[exchange.Wallet](ctx, t, readWallet, id)
	if err != nil {
		return w, house, err
	}
	if err := require(found && maySpend(asker, w), pointer, "not_found", "must be the id of one of your wallets"); err != nil {
		return w, house, err
	}
	if err := require(w.Custody == exchange.Custodial && w.Type == exchange.Hot, pointer, "unsupported", "must be a hot wallet in our custody"); err != nil {
		return w, house, err
	}
	if house, err = t.treasuryOn(ctx, w.Network); err != nil {
		return w, house, err
	}
	if house.Type != exchange.Hot {
		return w, house, exchange.Errorf(exchange.CodeUnsupported, "The house has no hot treasury wallet on %s.", w.Network)
	}
	return w, house, require(house.ID != w.ID, pointer, "own_wallet", "must not be the wallet that swaps are paid from")
}

// swapRate freezes the newest rate of an asset, without its later history.
func (t unitTx) swapRate(ctx context.Context, a money.Asset) (exchange.FXRate, error) {
	if _, err := t.Exec(ctx, keepRates, a, money.KES); err != nil {
		return exchange.FXRate{}, err
	}
	rate, fresh, err := t.freshRate(ctx, a)
	if err == nil && !fresh {
		err = exchange.Errorf(exchange.CodeStateConflict, "There is no fresh rate of %s in %s to price the quote.", a, money.KES)
	}
	return exchange.FXRate{ID: rate.ID, Base: rate.Base, Quote: rate.Quote, Bid: rate.Bid, Ask: rate.Ask, Source: rate.Source, ValidFrom: rate.ValidFrom, StaleAt: rate.StaleAt}, err
}

// agreedSwap refuses a price at which the house would buy an asset above the value that two officers have agreed, or sell one below it.
func (t unitTx) agreedSwap(ctx context.Context, m exchange.SwapTerms) error {
	two := decimal.NewFromInt(2)
	for _, a := range []struct {
		rate exchange.FXRate
		fits func(mid, agreed decimal.Decimal) bool
	}{
		{m.FromRate, func(mid, agreed decimal.Decimal) bool { return mid.LessThanOrEqual(exchange.MaxSaleRate(agreed)) }},
		{m.ToRate, func(mid, agreed decimal.Decimal) bool {
			return mid.GreaterThanOrEqual(exchange.MinPurchaseRate(agreed))
		}},
	} {
		var found []decimal.Decimal
		if err := t.All(ctx, &found, readAgreed, a.rate.Base); err != nil {
			return err
		}
		mid := a.rate.Bid.Add(a.rate.Ask).Div(two)
		if len(found) == 0 || !a.fits(mid, found[0]) {
			return exchange.Errorf(exchange.CodeStateConflict, "The house does not swap %s at %s KES: that is too far from the value that two officers have agreed.", a.rate.Base, mid)
		}
	}
	return nil
}

const availableIn = `SELECT coalesce(sum(posted - held), 0) FROM ledger_accounts WHERE code = $1`

// bothHave refuses a quote for more than the wallet or the treasury has. Nothing is locked: opening the swap fails as well.
func (t unitTx) bothHave(ctx context.Context, p exchange.SwapPrice, w, house exchange.Wallet) error {
	for _, side := range []struct {
		wallet uuid.UUID
		amount money.Amount
		who    string
	}{{w.ID, p.From, "The wallet"}, {house.ID, p.To, "The house"}} {
		var free decimal.Decimal
		if err := t.Get(ctx, &free, availableIn, exchange.Owned(exchange.AccWalletBalance, side.wallet, side.amount.Asset()).Code()); err != nil {
			return err
		}
		if free.LessThan(side.amount.Decimal()) {
			return exchange.Errorf(exchange.CodeInsufficientFunds, "%s has less than %s %s available on %s.", side.who, side.amount, side.amount.Asset(), w.Network)
		}
	}
	return nil
}

// SwapQuote reads a quote that the view may see.
func (s *Store) SwapQuote(ctx context.Context, v View, id uuid.UUID) (exchange.SwapQuote, error) {
	all, owner, vendor := v.args()
	r, err := readOne[swapQuoteRow](ctx, s.db, "quote", readScopedSwapQuote, id, all, owner, vendor)
	if err != nil {
		return exchange.SwapQuote{}, err
	}
	return r.quote()
}

// SwapQuoteReplay is a recomputed quote of a swap. Differs names what does not match; see exchange.SwapQuote.Replay. In addition,
// "fx_rate" and "fee_profile" mean rows that differ from the frozen terms, and "audit" an audit log with another hash.
type SwapQuoteReplay struct {
	Quote   exchange.SwapQuote
	Price   exchange.SwapPrice
	Differs []string
}

// Compares the frozen terms with the rows that they were copied from, and the hash with the one in the chained audit log. Each column is
// true when they match.
const readSwapEvidence = `
SELECT (SELECT count(*) FROM fx_rates r WHERE r.quote = 'KES' AND (r.id, r.base, r.bid, r.ask, r.source, r.valid_from, r.stale_at) IN (
        (q.from_rate_id, q.from_asset, q.from_bid, q.from_ask, q.from_rate_source, q.from_rate_valid_from, q.from_rate_stale_at),
        (q.to_rate_id, q.to_asset, q.to_bid, q.to_ask, q.to_rate_source, q.to_rate_valid_from, q.to_rate_stale_at))) = 2 AS rate,
    q.profile_id IS NULL OR fee_profile_covers(q.profile_id, 'swap', q.vendor_id, q.to_asset, q.network, NULL)
        AND EXISTS (SELECT FROM fee_profiles p WHERE p.id = q.profile_id AND p.version = q.profile_version AND p.fixed = q.fee_fixed AND p.basis_points = q.fee_points AND p.minimum = q.fee_minimum
        AND p.maximum IS NOT DISTINCT FROM q.fee_maximum AND p.spread_basis_points = q.spread_points) AS profile,
    EXISTS (SELECT FROM audit_log a WHERE a.object_type = 'swap_quote' AND a.object_id = q.id AND a.action = 'swap_quote.created'
        AND a.after ->> 'hash' = q.hash) AS audit
FROM swap_quotes q WHERE q.id = $1`

// ReplaySwapQuote recomputes a quote from its frozen terms and compares the result, the hash and the terms with the stored ones. The
// request and its result are audited.
func (s *Store) ReplaySwapQuote(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (SwapQuoteReplay, error) {
	var out SwapQuoteReplay
	err := s.inTx(ctx, "quote", func(t unitTx) error {
		all, owner, vendor := v.args()
		r, err := readOne[swapQuoteRow](ctx, t, "quote", readScopedSwapQuote, id, all, owner, vendor)
		if err != nil {
			return err
		}
		if out.Quote, err = r.quote(); err != nil {
			return err
		}
		out.Price, out.Differs = out.Quote.Replay()
		var agree struct{ Rate, Profile, Audit bool }
		if err := t.Get(ctx, &agree, readSwapEvidence, id); err != nil {
			return err
		}
		for _, w := range []struct {
			name string
			ok   bool
		}{{"fx_rate", agree.Rate}, {"fee_profile", agree.Profile}, {"audit", agree.Audit}} {
			if !w.ok {
				out.Differs = append(out.Differs, w.name)
			}
		}
		return t.audit(ctx, by, "swap_quote.replayed", "swap_quote", id, nil, map[string]any{"agrees": len(out.Differs) == 0, "differs": out.Differs})
	})
	return out, err
}
