package exchange

import (
	"errors"
	"time"

	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// Price is the price of one order, fixed when it is opened.
type Price struct {
	Crypto   money.Amount
	Fiat     money.Amount // all that the customer pays or gets: whole shillings
	Vendor   money.Amount // what the vendor earns or owes: crypto times rate, rounded down to cents, less or with the fee
	Rounding money.Amount // what the parties' amounts leave, for the rounding account
	Fee      money.Amount // of the house, in shillings
}

// PurchaseFee takes the house's fee from what the vendor earns.
func (p Price) PurchaseFee(fee money.Amount) Price {
	p.Fee, p.Vendor = fee, p.Vendor.Sub(fee)
	return p
}

// PurchaseFeeInside takes the house's fee from what is paid beyond the worth of the crypto, as the price of a quote does.
func (p Price) PurchaseFeeInside(fee money.Amount) Price {
	p.Fee, p.Rounding = fee, p.Rounding.Sub(fee)
	return p
}

// SaleFee adds the house's fee to what the vendor owes.
func (p Price) SaleFee(fee money.Amount) Price {
	p.Fee, p.Vendor = fee, p.Vendor.Add(fee)
	return p
}

// SaleFeeInside takes the house's fee from what the customer gets, as the price of a quote does.
func (p Price) SaleFeeInside(fee money.Amount) Price {
	p.Fee, p.Fiat = fee, p.Vendor.Sub(fee).FloorWhole()
	p.Rounding = p.Fiat.Add(fee).Sub(p.Vendor)
	return p
}

// PriceByCrypto prices a purchase of an exact amount of crypto at a rate in KES per unit.
func PriceByCrypto(crypto money.Amount, rate decimal.Decimal) Price {
	exact := crypto.MulFloor(money.KES, rate)
	fiat := crypto.MulCeil(money.KES, rate).CeilWhole()
	return Price{Crypto: crypto, Fiat: fiat, Vendor: exact, Rounding: fiat.Sub(exact), Fee: money.Zero(money.KES)}
}

// PriceByFiat prices a purchase for a whole number of shillings. The crypto is rounded down to the asset's places,
// and the remainder goes to the rounding account.
func PriceByFiat(fiat money.Amount, asset money.Asset, rate decimal.Decimal) Price {
	crypto := fiat.DivFloor(asset, rate)
	exact := crypto.MulFloor(money.KES, rate)
	return Price{Crypto: crypto, Fiat: fiat, Vendor: exact, Rounding: fiat.Sub(exact), Fee: money.Zero(money.KES)}
}

// PriceByQuote prices a purchase of an exact amount of crypto for the shillings that a quote promised. Rounding has what they are
// more than the crypto's worth: the quote's fee, too.
func PriceByQuote(q QuotePrice) Price {
	exact := q.Crypto.MulFloor(money.KES, q.Rate)
	return Price{Crypto: q.Crypto, Fiat: q.Fiat, Vendor: exact, Rounding: q.Fiat.Sub(exact), Fee: money.Zero(money.KES)}
}

// SellByCrypto prices a sale of an exact amount of crypto at a rate in KES per unit. The vendor owes crypto times
// rate, rounded down to cents; the payee gets that rounded down to whole shillings. Rounding is zero or negative: the
// remainder stays with the house, in the rounding account.
func SellByCrypto(crypto money.Amount, rate decimal.Decimal) Price {
	exact := crypto.MulFloor(money.KES, rate)
	fiat := exact.FloorWhole()
	return Price{Crypto: crypto, Fiat: fiat, Vendor: exact, Rounding: fiat.Sub(exact), Fee: money.Zero(money.KES)}
}

// SellByFiat prices a sale for a whole number of shillings: it is the least crypto that brings at least as many. It
// brings more where one unit of the asset's last place is worth more than a shilling.
func SellByFiat(fiat money.Amount, asset money.Asset, rate decimal.Decimal) Price {
	return SellByCrypto(fiat.DivCeil(asset, rate), rate)
}

// AdmitOrder is Admit for an order.
func (q FXQuote) AdmitOrder(use QuoteUse, now time.Time) error {
	err := q.Admit(use, now)
	if e, ok := errors.AsType[*Error](err); ok {
		for i, f := range e.Fields {
			if f.Pointer == "/amount" {
				e.Fields[i].Pointer = "/crypto_amount"
			}
		}
	}
	return err
}
