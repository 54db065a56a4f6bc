package exchange

import (
	"errors"
	"time"

	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// Price is what one order costs, fixed when it is opened.
type Price struct {
	Crypto   money.Amount
	Fiat     money.Amount // what the payer pays: whole shillings, rounded up
	Vendor   money.Amount // what the vendor earns: crypto times rate, rounded down to cents
	Rounding money.Amount // Fiat - Vendor, for the rounding account
}

// PriceByCrypto prices a purchase of an exact amount of crypto at a rate in KES per unit.
func PriceByCrypto(crypto money.Amount, rate decimal.Decimal) Price {
	exact := crypto.MulFloor(money.KES, rate)
	fiat := crypto.MulCeil(money.KES, rate).CeilWhole()
	return Price{Crypto: crypto, Fiat: fiat, Vendor: exact, Rounding: fiat.Sub(exact)}
}

// PriceByFiat prices a purchase for a whole number of shillings: the crypto is rounded down to the
// asset's places, and what that leaves over goes to the rounding account.
func PriceByFiat(fiat money.Amount, asset money.Asset, rate decimal.Decimal) Price {
	crypto := fiat.DivFloor(asset, rate)
	exact := crypto.MulFloor(money.KES, rate)
	return Price{Crypto: crypto, Fiat: fiat, Vendor: exact, Rounding: fiat.Sub(exact)}
}

// SellByCrypto prices a sale of an exact amount of crypto at a rate in KES per unit. The vendor owes crypto times
// rate, rounded down to cents; the payee gets whole shillings of it, rounded down. Rounding is zero or below:
// its opposite stays with the house, in the rounding account.
func SellByCrypto(crypto money.Amount, rate decimal.Decimal) Price {
	exact := crypto.MulFloor(money.KES, rate)
	fiat := exact.FloorWhole()
	return Price{Crypto: crypto, Fiat: fiat, Vendor: exact, Rounding: fiat.Sub(exact)}
}

// SellByFiat prices the sale that brings a whole number of shillings: of the least crypto that does. Where one
// unit of the asset's last place is worth more than a shilling, it brings more.
func SellByFiat(fiat money.Amount, asset money.Asset, rate decimal.Decimal) Price {
	return SellByCrypto(fiat.DivCeil(asset, rate), rate)
}

// QuoteForSale is the purpose of quotes that sales without an offer are opened with.
const QuoteForSale QuotePurpose = "offramp"

// FeeSale is the scope of those sales. Its profiles have a spread and no fee: a fee in crypto would have to be sent
// beside the amount.
const FeeSale FeeScope = "offramp"

// Valid tells whether p is a known purpose.
func (p QuotePurpose) Valid() bool { return p == QuoteForTransfer || p == QuoteForSale }

// AdmitSale is Admit for a sale that is about to be opened with the quote.
func (q FXQuote) AdmitSale(crypto money.Amount, now time.Time) error {
	err := q.Admit(QuoteForSale, crypto, now)
	if e, ok := errors.AsType[*Error](err); ok {
		for i, f := range e.Fields {
			if f.Pointer == "/amount" {
				e.Fields[i].Pointer = "/crypto_amount"
			}
		}
	}
	return err
}
