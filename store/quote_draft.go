package store

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// draftQuote gathers the terms of a quote and computes its price.
func (t unitTx) draftQuote(ctx context.Context, r QuoteRequest, owner exchange.User) (exchange.FXQuote, error) {
	if _, err := t.Exec(ctx, keepRates, r.asset(), money.KES); err != nil {
		return exchange.FXQuote{}, err
	}
	now := t.s.now()
	q := exchange.FXQuote{
		ID: r.ID, OwnerID: owner.ID, Status: exchange.QuoteActive, CreatedAt: now, UpdatedAt: now, Version: 1,
		Terms: exchange.QuoteTerms{
			Purpose: r.Purpose, Side: r.Side, Given: r.Amount, Network: r.Network, Method: r.Method, Formula: cmp.Or(r.formula, exchange.QuoteFormula),
		},
	}
	switch owner.Role {
	case exchange.RoleVendor:
		q.VendorID = owner.ID
	case exchange.RoleSubvendor:
		q.VendorID = owner.VendorID
	case exchange.RoleCustomer, exchange.RoleUser, exchange.RoleAdmin, exchange.RoleOTCOfficer, exchange.RoleTreasury:
	}
	if !owner.IsActive {
		return q, exchange.Errorf(exchange.CodeForbidden, "Only an active account can ask for quotes.")
	}
	if err := r.check(owner); err != nil {
		return q, err
	}
	if err := t.setRate(ctx, r, &q); err != nil {
		return q, err
	}
	if err := t.setFees(ctx, r, &q, owner.Role); err != nil {
		return q, err
	}
	var err error
	if q.Price, err = q.Terms.Price(); err != nil {
		return q, err
	}
	if err := t.agreedPrice(ctx, q); err != nil {
		return q, err
	}
	if r.Purpose == exchange.QuoteForPurchase {
		if _, err := t.stocked(ctx, r.Network, q.Price.Crypto); err != nil {
			return q, err
		}
	}
	q.Hash = q.Fingerprint()
	return q, nil
}

// IndicativePrice is the price that a quote would have now, without a promise. Nothing is stored. It fails as OpenQuote does.
func (s *Store) IndicativePrice(ctx context.Context, r QuoteRequest, by exchange.Principal) (exchange.FXQuote, error) {
	var q exchange.FXQuote
	err := s.inTx(ctx, "quote", func(t unitTx) error {
		var owner exchange.User
		if err := t.Get(ctx, &owner, readUser, by.UserID); err != nil {
			return translate(err, "user")
		}
		var err error
		q, err = t.draftQuote(ctx, r, owner)
		return err
	})
	return q, err
}

// check refuses what no quote can be made for, whatever the rates and fees.
func (r QuoteRequest) check(owner exchange.User) error {
	atDesk := r.Purpose.AtDesk()
	for _, rule := range []struct {
		ok                     bool
		pointer, code, message string
	}{
		{r.Purpose.Valid(), "/purpose", "enum", "must be transfer, onramp, offramp, otc_deposit or otc_withdrawal"},
		{!atDesk || owner.Role.Merchant(), "/purpose", "enum", "must be transfer, onramp or offramp: only merchants have the desk's prices"},
		{r.Purpose != exchange.QuoteForPurchase || r.Side == exchange.QuoteBuy, "/side", "enum", "must be buy for an onramp"},
		{r.Purpose != exchange.QuoteForPurchase || r.Network != "", "/network", "required", "is required: the house sells what it has on a network"},
		{r.Purpose != exchange.QuoteForSale || r.Side == exchange.QuoteSell, "/side", "enum", "must be sell for an offramp"},
		{r.Purpose != exchange.QuoteForDeposit || r.Side == exchange.QuoteBuy, "/side", "enum", "must be buy for a deposit"},
		{r.Purpose != exchange.QuoteForWithdrawal || (r.Side == exchange.QuoteBuy) == (r.Method == exchange.FeeByChain), "/side", "enum", "must be buy for crypto by chain, and sell for shillings"},
		{r.asset().Stablecoin(), "/asset", "enum", "must be USDT or USDC"},
		{r.Amount.Positive(), "/amount", "out_of_range", "must be above zero"},
		{!r.Amount.Asset().Fiat() || r.Amount.Equal(r.Amount.FloorWhole()), "/amount", "precision", "must be whole shillings"},
		{!atDesk || r.Network != "", "/network", "required", "is required at the desk"},
		{!atDesk || r.Method != "", "/method", "required", "is required at the desk"},
	} {
		if err := require(rule.ok, rule.pointer, rule.code, rule.message); err != nil {
			return err
		}
	}
	line := exchange.FeeLine{Scope: r.Purpose.Scope(), Asset: r.asset(), Network: r.Network, Method: r.Method}
	return line.Validate()
}

// setRate freezes the newest rate, and until when the price holds: for some minutes while the rate is fresh, or over night.
func (t unitTx) setRate(ctx context.Context, r QuoteRequest, q *exchange.FXQuote) error {
	rate, fresh, err := t.freshRate(ctx, r.asset())
	if err != nil {
		return err
	}
	if !fresh || !rate.InForce(q.CreatedAt) {
		return exchange.Errorf(exchange.CodeStateConflict, "There is no fresh rate of %s in %s to price the quote.", r.asset(), money.KES)
	}
	// The quote keeps the rate's content, not its later history.
	rate.Replaces, rate.JumpConfirmed, rate.CreatedBy, rate.CreatedAt, rate.ReplacedAt = uuid.Nil, false, uuid.Nil, time.Time{}, time.Time{}
	q.Terms.Rate = rate
	if r.Purpose.Locked() {
		q.ExpiresAt, err = t.bankCutoff(ctx, q.CreatedAt)
		return err
	}
	if q.ExpiresAt = q.CreatedAt.Add(exchange.QuoteLife); rate.StaleAt.Before(q.ExpiresAt) {
		q.ExpiresAt = rate.StaleAt
	}
	return nil
}

// What the fees of an operation depend on besides its asset.
const feesDepend = `SELECT coalesce(bool_or(p.network IS NOT NULL), false) AS network, coalesce(bool_or(p.method IS NOT NULL), false) AS method
FROM fee_profiles p WHERE p.scope = $1 AND NOT p.retired AND p.valid_from <= $4 AND coalesce(fee_profile_end(p) > $4, true)
    AND (p.merchant_id IS NULL OR p.merchant_id = $2) AND (p.asset IS NULL OR p.asset = $3)`

// setFees freezes the profile of the operation. A request that leaves out what the fee depends on would get the price of another
// operation.
func (t unitTx) setFees(ctx context.Context, r QuoteRequest, q *exchange.FXQuote, role exchange.Role) error {
	op := exchange.FeeLine{Scope: r.Purpose.Scope(), MerchantID: q.VendorID, Asset: r.asset(), Network: r.Network, Method: r.Method}
	var depends struct{ Network, Method bool }
	if err := t.Get(ctx, &depends, feesDepend, op.Scope, nullID(op.MerchantID), op.Asset, q.CreatedAt); err != nil {
		return err
	}
	if err := require(!depends.Network || op.Network != "", "/network", "required", "is required: the price depends on it"); err != nil {
		return err
	}
	if err := require(!depends.Method || op.Method != "", "/method", "required", "is required: the price depends on it"); err != nil {
		return err
	}
	var err error
	q.Terms.Profile, err = t.feesFor(ctx, op, role, q.CreatedAt)
	if q.Terms.Formula == exchange.QuoteFormula1 && q.Terms.Profile.Currency() == money.KES { // it has amounts in crypto only
		q.Terms.Profile.Fixed, q.Terms.Profile.Minimum = money.Zero(op.Asset), money.Zero(op.Asset)
	}
	return err
}

const readAgreed = `SELECT agreed FROM valuations WHERE asset = $1 AND agreed IS NOT NULL`

// agreedPrice refuses a price at which the house would buy crypto above the value that two officers have agreed, or sell it below.
func (t unitTx) agreedPrice(ctx context.Context, q exchange.FXQuote) error {
	if q.Terms.Purpose == exchange.QuoteForTransfer {
		return nil // nothing is bought or sold
	}
	var found []decimal.Decimal
	if err := t.All(ctx, &found, readAgreed, q.Price.Crypto.Asset()); err != nil {
		return err
	}
	buys := q.Terms.Side == exchange.QuoteSell
	switch {
	case len(found) > 0 && buys && q.Price.Rate.LessThanOrEqual(exchange.MaxSaleRate(found[0])):
		return nil
	case len(found) > 0 && !buys && q.Price.Rate.GreaterThanOrEqual(exchange.MinPurchaseRate(found[0])):
		return nil
	case buys:
		return exchange.Errorf(exchange.CodeStateConflict, "The house does not buy %s at %s KES: that is above the value that two officers have agreed.",
			q.Price.Crypto.Asset(), q.Price.Rate)
	}
	return exchange.Errorf(exchange.CodeStateConflict, "The house does not sell %s at %s KES: that is below the value that two officers have agreed.",
		q.Price.Crypto.Asset(), q.Price.Rate)
}
