package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Prices of deposits. The fee is in shillings, out of what comes; what is left buys crypto at the quote's rate.

// clearPrice takes a deposit's price away.
func (w *otcWork) clearPrice() {
	d := &w.d
	d.RequestedCrypto, d.QuoteID, d.ProfileID, d.Rate, d.QuotedFiat, d.QuoteEndsAt, d.Crypto = money.Amount{}, uuid.Nil, uuid.Nil, decimal.Decimal{}, money.Amount{}, time.Time{}, money.Amount{}
	d.Fee = money.Zero(money.KES)
	w.anew = true
}

// price sets the fee for an amount of shillings, and the crypto that the rest buys at the deposit's rate. The fee profile is that of the
// deposit, and where it has none yet the one in force. CodeInvalid for an amount that the fee would use up.
func (w *otcWork) price(ctx context.Context, fiat money.Amount) error {
	profile, err := w.profile(ctx)
	if err != nil {
		return err
	}
	fee := profile.Fee(fiat)
	rest := fiat.Sub(fee)
	if err := require(rest.Positive(), "/fiat_amount", "out_of_range", "must be above the fee, "+fee.String()); err != nil {
		return err
	}
	w.d.Fee, w.d.ProfileID = fee, profile.ID
	if !w.d.Sells() {
		return nil
	}
	w.d.Crypto = rest.DivFloor(w.d.Asset, w.d.Rate)
	return require(w.d.Crypto.Positive(), "/fiat_amount", "out_of_range", "must buy some "+string(w.d.Asset))
}

// profile is the fee profile of the deposit: the one that it was priced by, which may be none, or else the one in force.
func (w *otcWork) profile(ctx context.Context) (exchange.FeeProfile, error) {
	if w.d.ProfileID != uuid.Nil {
		return readOne[exchange.FeeProfile](ctx, w, "fee profile", profileByID, w.d.ProfileID)
	}
	if !w.d.SubmittedAt.IsZero() && !w.anew {
		return exchange.ZeroProfile(exchange.FeeDeposit, w.d.Asset), nil
	}
	line := exchange.FeeLine{Scope: exchange.FeeDeposit, MerchantID: w.d.MerchantID, Asset: w.d.Asset, Network: w.d.Network, Method: string(w.d.Method)}
	return w.feesFor(ctx, line, exchange.RoleVendor, w.now)
}

// quoteOTC prices a deposit by a quote. One whose money is proven and not covered by its quote takes another quote for what came, or
// shillings in place of crypto; then it goes on to its settlement.
func quoteOTC(ctx context.Context, w *otcWork) error {
	requote := w.d.Status == exchange.OTCInfo
	if requote && w.d.Detail != exchange.WaitRequote {
		return exchange.Errorf(exchange.CodeStateConflict, "The deposit waits for an answer, not for a quote.")
	}
	w.clearPrice()
	if w.step.TakeKES {
		if !requote {
			return exchange.Errorf(exchange.CodeStateConflict, "Edit the draft to ask for shillings.")
		}
		w.d.Asset, w.d.Network, w.d.ToWalletID, w.d.ToAddress = money.KES, "", uuid.Nil, ""
		return w.priceReceived(ctx)
	}
	if err := w.bindQuote(ctx); err != nil {
		return err
	}
	if !requote {
		return w.move(ctx, exchange.OTCQuoted, exchange.WaitSubmit)
	}
	if err := w.consumeQuote(ctx); err != nil {
		return err
	}
	return w.priceReceived(ctx)
}

// bindQuote gives a deposit the terms of the quote that the merchant's request names.
func (w *otcWork) bindQuote(ctx context.Context) error {
	d := &w.d
	if err := w.quotable(); err != nil {
		return err
	}
	q, err := w.quoteFor(ctx)
	if err != nil {
		return err
	}
	use := exchange.QuoteUse{Purpose: exchange.QuoteForDeposit, Amount: q.Price.Crypto, Network: d.Network, Method: string(d.Method)}
	if q.Price.Crypto.Asset() != d.Asset {
		return require(false, "/fx_rate_quote_id", "mismatch", "must be a quote for "+string(d.Asset))
	}
	if err := q.Admit(use, w.now); err != nil {
		return err
	}
	if counted := d.Counted().FloorWhole(); !q.Price.Fiat.Equal(counted) {
		return require(false, "/fx_rate_quote_id", "mismatch", "must be a quote for "+counted.String()+" KES")
	}
	d.QuoteID, d.ProfileID, d.Rate, d.QuotedFiat, d.QuoteEndsAt = q.ID, q.Terms.Profile.ID, q.Price.Rate, q.Price.Fiat, q.ExpiresAt
	d.RequestedCrypto, d.Crypto, d.Fee, w.anew = q.Price.Crypto, q.Price.Crypto, q.Price.Fee, false
	return nil
}

// quotable refuses a deposit that says too little for a price.
func (w *otcWork) quotable() error {
	if err := require(w.d.Sells(), "/requested_asset", "enum", "must be USDT or USDC: shillings need no quote"); err != nil {
		return err
	}
	r := exchange.OTCRequest{Method: w.d.Method, Fiat: w.d.Fiat, Asset: w.d.Asset, Network: w.d.Network}
	return r.Check(false)
}

const lockQuote = readQuote + ` FOR NO KEY UPDATE`

// QuoteForOTC is the request for a quote of what a deposit pays.
func QuoteForOTC(id uuid.UUID, d exchange.OTCDeposit) QuoteRequest {
	return QuoteRequest{
		ID: id, Purpose: exchange.QuoteForDeposit, Side: exchange.QuoteBuy, Amount: d.Counted().FloorWhole(), Asset: d.Asset, Network: d.Network, Method: string(d.Method),
	}
}

// quoteFor is the quote that the caller names, which is its own or its merchant's.
func (w *otcWork) quoteFor(ctx context.Context) (exchange.FXQuote, error) {
	if err := require(w.step.QuoteID != uuid.Nil, "/fx_rate_quote_id", "required", "is required"); err != nil {
		return exchange.FXQuote{}, err
	}
	found, known, err := readFound[quoteRow](ctx, w, lockQuote, w.step.QuoteID)
	if err != nil {
		return exchange.FXQuote{}, err
	}
	if err := require(known && found.VendorID.UUID == w.d.MerchantID, "/fx_rate_quote_id", "not_found", "must be the id of one of your quotes"); err != nil {
		return exchange.FXQuote{}, err
	}
	return found.quote()
}

// consumeQuote uses the deposit's quote up, which must still be open.
func (w *otcWork) consumeQuote(ctx context.Context) error {
	r, err := readOne[quoteRow](ctx, w, "quote", lockQuote, w.d.QuoteID)
	if err != nil {
		return err
	}
	q, err := r.quote()
	if err != nil {
		return err
	}
	use := exchange.QuoteUse{Purpose: exchange.QuoteForDeposit, Amount: q.Price.Crypto, Network: w.d.Network, Method: string(w.d.Method)}
	if err := q.Admit(use, w.now); err != nil {
		return err
	}
	return w.useQuote(ctx, q, "otc_deposit", w.d.ID, w.by)
}
