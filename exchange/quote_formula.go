package exchange

import (
	"math/big"

	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// The methods of computing a quote. A new method gets a new name, and the old ones stay, because stored quotes are replayed for
// ever.
const (
	// QuoteFormula1 prices an amount of crypto, with a fee in the crypto on top of it.
	QuoteFormula1 = "kivuko-price-1"
	// QuoteFormula2 prices an amount of crypto or of shillings. A fee in shillings is inside of what is paid or got.
	QuoteFormula2 = "kivuko-price-2"
	// QuoteFormula is the method of new quotes.
	QuoteFormula = QuoteFormula2
)

// QuoteFormulas lists every method that was ever used.
func QuoteFormulas() []string { return []string{QuoteFormula1, QuoteFormula2} }

// QuoteTerms are all inputs of a quote, frozen.
type QuoteTerms struct {
	Purpose QuotePurpose
	Side    QuoteSide
	Given   money.Amount // of crypto, or whole shillings
	Network Network      // empty where the fee does not depend on it
	Method  string       // likewise
	Rate    FXRate       // the rate's id and values; only what affects the price
	Profile FeeProfile
	Formula string
}

// AmountSide is which amount was given.
func (t QuoteTerms) AmountSide() AmountSide {
	if t.Given.Asset().Fiat() {
		return AmountFiat
	}
	return AmountCrypto
}

// QuotePrice is the result of the terms.
type QuotePrice struct {
	Rate   decimal.Decimal // in the currency per unit, with the spread, rounded to FXRatePlaces against the owner
	Crypto money.Amount
	Fiat   money.Amount // whole shillings: all that a buyer pays, or a seller gets
	Fee    money.Amount // in crypto on top of the amount, or in shillings inside of Fiat
	Total  money.Amount // of crypto: the amount, and a fee in crypto
}

// Price computes a quote from its terms alone. CodeInvalid names the field that makes a price impossible.
func (t QuoteTerms) Price() (QuotePrice, error) {
	var p QuotePrice
	if t.Formula != QuoteFormula1 && t.Formula != QuoteFormula2 {
		return p, Errorf(CodeInternal, "there is no formula %q", t.Formula)
	}
	asset, currency := t.Rate.Base, t.Profile.Currency()
	inFiat := t.Formula == QuoteFormula2 && currency == money.KES
	if t.Rate.Quote != money.KES || currency != asset && !inFiat || t.Given.Asset() != asset && (t.Formula == QuoteFormula1 || t.AmountSide() != AmountFiat) {
		return p, Errorf(CodeInternal, "%s can't be priced by a rate of %s and fees in %s", t.Given.Asset(), asset, currency)
	}
	switch t.Side {
	case QuoteBuy:
		p.Rate = t.Rate.Ask.Mul(decimal.New(basisPoints+t.Profile.Spread, -4)).RoundCeil(FXRatePlaces)
		p.buy(t, asset, inFiat)
	case QuoteSell:
		p.Rate = t.Rate.Bid.Mul(decimal.New(basisPoints-t.Profile.Spread, -4)).RoundFloor(FXRatePlaces)
		p.sell(t, asset, inFiat)
	default:
		return p, Errorf(CodeInternal, "there is no side %q", t.Side)
	}
	switch {
	case !p.Fiat.Positive():
		return p, Invalid(FieldError{Pointer: "/amount", Code: "out_of_range", Message: "must be worth at least one shilling more than the fee"})
	case !p.Crypto.Positive():
		return p, Invalid(FieldError{Pointer: "/amount", Code: "out_of_range", Message: "must buy more than nothing after the fee"})
	}
	if p.Total = p.Crypto; !inFiat {
		p.Fee = t.Profile.Fee(p.Crypto)
		p.Total = p.Crypto.Add(p.Fee)
	}
	return p, nil
}

// buy sets what a buyer pays and what it buys. A fee in shillings is a part of what is paid.
func (p *QuotePrice) buy(t QuoteTerms, asset money.Asset, inFiat bool) {
	none := money.Zero(money.KES)
	if t.AmountSide() == AmountFiat {
		if p.Fiat, p.Fee = t.Given, none; inFiat {
			p.Fee = t.Profile.Fee(p.Fiat)
		}
		if p.Crypto = money.Zero(asset); p.Fiat.Cmp(p.Fee) > 0 {
			p.Crypto = p.Fiat.Sub(p.Fee).DivFloor(asset, p.Rate)
		}
		return
	}
	p.Crypto = t.Given
	net := p.Crypto.MulCeil(money.KES, p.Rate)
	if p.Fiat, p.Fee = net.CeilWhole(), none; inFiat {
		p.Fiat = t.Profile.Gross(net, true)
		p.Fee = t.Profile.Fee(p.Fiat)
	}
}

// sell sets what a seller sends and what it gets. A fee in shillings is taken from what the crypto brings.
func (p *QuotePrice) sell(t QuoteTerms, asset money.Asset, inFiat bool) {
	if p.Crypto = t.Given; t.AmountSide() == AmountFiat {
		gross := t.Given
		if inFiat {
			gross = t.Profile.Gross(gross, false)
		}
		p.Crypto = gross.DivCeil(asset, p.Rate)
	}
	gross := p.Crypto.MulFloor(money.KES, p.Rate)
	if p.Fee = money.Zero(money.KES); inFiat {
		p.Fee = t.Profile.Fee(gross)
	}
	if p.Fiat = money.Zero(money.KES); gross.Cmp(p.Fee) > 0 {
		p.Fiat = gross.Sub(p.Fee).FloorWhole()
	}
}

// Gross is the least amount of which net is left after the profile's fee on it, in whole shillings or in the places of the asset.
func (p FeeProfile) Gross(net money.Amount, whole bool) money.Amount {
	step := money.FromUnits(net.Asset(), big.NewInt(1))
	round := func(m money.Amount) money.Amount { return m }
	if whole {
		step, round = money.Must(net.Asset(), "1"), money.Amount.CeilWhole
	}
	// The fee grows with the amount and never faster than it, so the bounds of the fee are bounds of the solution too.
	share := net.Add(p.Fixed).DivCeil(net.Asset(), decimal.New(basisPoints-p.BasisPoints, -4))
	gross := round(share)
	if least := round(net.Add(p.Minimum)); gross.Cmp(least) < 0 {
		gross = least
	}
	if p.Maximum.Asset() != "" {
		if most := round(net.Add(p.Maximum)); gross.Cmp(most) > 0 {
			gross = most
		}
	}
	for gross.Sub(p.Fee(gross)).Cmp(net) < 0 {
		gross = gross.Add(step)
	}
	return gross
}
