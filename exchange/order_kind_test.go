package exchange_test

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Every pair of type and subtype outside the table is not a kind; the default subtype is the standard one.
func TestKinds(t *testing.T) {
	t.Parallel()
	known := 0
	types := []exchange.OrderType{exchange.OnRampBuy, exchange.OnRampSell, exchange.OffRampBuy, exchange.OffRampSell}
	for _, ty := range types {
		for _, st := range exchange.OrderSubtypes() {
			if k, ok := exchange.KindOf(ty, st); ok {
				known++
				if k.Type != ty || k.Subtype != st || (k.Offer == "") != k.Quote || k.VendorOpens && k.MayOpen(exchange.RoleCustomer) {
					t.Errorf("%s is %+v", k.Name(), k)
				}
			}
		}
	}
	if known != len(exchange.OrderKinds()) || known != 8 {
		t.Errorf("%d kinds are found", known)
	}
	for ty, want := range map[exchange.OrderType]exchange.OrderSubtype{"": exchange.StandardOnRamp, exchange.OnRampSell: exchange.StandardOnRamp, exchange.OffRampBuy: exchange.StandardOffRamp, exchange.OffRampSell: exchange.StandardOffRamp} {
		if k, ok := exchange.KindOf(ty, ""); !ok || k.Subtype != want {
			t.Errorf("%q is by default %q", ty, k.Subtype)
		}
	}
}

// Merchants open their own kinds and orders with the house, customers the others, staff none.
func TestWhoOpens(t *testing.T) {
	t.Parallel()
	for _, k := range exchange.OrderKinds() {
		for _, r := range exchange.Roles() {
			want := !k.VendorOpens
			if r.Merchant() {
				want = k.VendorOpens || k.Subtype.Treasury()
			}
			if want = want && !r.Staff(); k.MayOpen(r) != want {
				t.Errorf("%s may open %s: %v", r, k.Name(), !want)
			}
		}
	}
}

// complete returns a valid request of a kind, by mobile money.
func complete(k exchange.OrderKind) exchange.OrderRequest {
	r := exchange.OrderRequest{ID: uuid.New(), CustomerID: uuid.New(), Type: k.Type, Subtype: k.Subtype, Crypto: money.Must(money.USDT, "10")}
	if k.Offer != "" {
		r.OfferID = uuid.New()
	}
	if k.Quote {
		r.QuoteID, r.Network = uuid.New(), exchange.Tron
	}
	if k.VendorOpens {
		r.OpenerID = uuid.New()
	}
	if k.Custodial {
		r.FundWalletID = uuid.New()
	}
	if k.Sender {
		r.Sender = exchange.Sender{Name: "Jane Roe", Country: "GB", Phone: "447700900123"}
		r.Beneficiary = exchange.Beneficiary{AccountName: "Amina Otieno"}
		r.Phone = "254712345678"
	}
	return r
}

func TestCompleteRequestsPass(t *testing.T) {
	t.Parallel()
	for _, k := range exchange.OrderKinds() {
		r := complete(k)
		if err := r.Check(k); err != nil {
			t.Errorf("%s: %v", k.Name(), err)
		}
		if !k.Bank {
			continue
		}
		r.PayoutMethod, r.Phone = exchange.PaymentMethodBank, ""
		r.Beneficiary = exchange.Beneficiary{AccountName: "Amina Otieno", BankName: "Equity", AccountNumber: "0123456789", SwiftCode: "EQBLKENA"}
		if err := r.Check(k); err != nil {
			t.Errorf("%s by bank: %v", k.Name(), err)
		}
	}
}

// Each rule of the table, broken alone, is reported with the pointer of its field.
func TestBrokenRequestsAreNamed(t *testing.T) {
	t.Parallel()
	bank := func(r *exchange.OrderRequest) {
		r.PayoutMethod, r.Phone = exchange.PaymentMethodBank, ""
		r.Beneficiary = exchange.Beneficiary{AccountName: "Amina Otieno", BankName: "Equity", AccountNumber: "0123456789", BankCode: "68"}
	}
	standard, remittance, custodial := kind(exchange.OffRampSell, exchange.StandardOffRamp), kind(exchange.OffRampSell, exchange.RemittanceOffRamp), kind(exchange.OffRampSell, exchange.CustodialRemittanceOffRamp)
	treasury, bought, sold := kind(exchange.OffRampSell, exchange.TreasuryOffRamp), kind(exchange.OffRampBuy, ""), kind(exchange.OnRampSell, "")
	purchase, fromHouse := kind(exchange.OnRampBuy, ""), kind(exchange.OnRampBuy, exchange.TreasuryOnRamp)
	for name, c := range map[string]struct {
		kind  exchange.OrderKind
		spoil func(*exchange.OrderRequest)
		want  string
	}{
		"no amount":                    {standard, func(r *exchange.OrderRequest) { r.Crypto = money.Amount{} }, "/crypto_amount required"},
		"two amounts":                  {standard, func(r *exchange.OrderRequest) { r.Fiat = money.Must(money.KES, "10") }, "/crypto_amount required"},
		"cents":                        {standard, func(r *exchange.OrderRequest) { r.Crypto, r.Fiat = money.Amount{}, money.Must(money.KES, "10.50") }, "/fiat_amount precision"},
		"shillings by a quote":         {treasury, func(r *exchange.OrderRequest) { r.Crypto, r.Fiat = money.Amount{}, money.Must(money.KES, "10") }, "/fiat_amount forbidden"},
		"no stablecoin":                {standard, func(r *exchange.OrderRequest) { r.Crypto = money.Must(money.TRX, "10") }, "/asset enum"},
		"no offer":                     {standard, func(r *exchange.OrderRequest) { r.OfferID = uuid.Nil }, "/offer_id required"},
		"an offer":                     {treasury, func(r *exchange.OrderRequest) { r.OfferID = uuid.New() }, "/offer_id forbidden"},
		"no quote":                     {custodial, func(r *exchange.OrderRequest) { r.QuoteID = uuid.Nil }, "/fx_rate_quote_id required"},
		"a quote":                      {remittance, func(r *exchange.OrderRequest) { r.QuoteID = uuid.New() }, "/fx_rate_quote_id forbidden"},
		"no network":                   {treasury, func(r *exchange.OrderRequest) { r.Network = "" }, "/network required"},
		"no customer":                  {bought, func(r *exchange.OrderRequest) { r.CustomerID = uuid.Nil }, "/customer required"},
		"no wallet":                    {custodial, func(r *exchange.OrderRequest) { r.FundWalletID = uuid.Nil }, "/wallet_id required"},
		"the customer's wallet":        {bought, func(r *exchange.OrderRequest) { r.FundWalletID = uuid.New() }, "/wallet_id forbidden"},
		"a wallet for a purchase":      {purchase, func(r *exchange.OrderRequest) { r.FundWalletID = uuid.New() }, "/wallet_id forbidden"},
		"an address of a sale":         {standard, func(r *exchange.OrderRequest) { r.WalletAddress = "T" }, "/wallet_address forbidden"},
		"an address for a customer":    {sold, func(r *exchange.OrderRequest) { r.WalletAddress = "T" }, "/wallet_address forbidden"},
		"a phone for a customer":       {bought, func(r *exchange.OrderRequest) { r.Phone = "254712345678" }, "/payment_phone_number forbidden"},
		"a refund for a customer":      {bought, func(r *exchange.OrderRequest) { r.RefundAddress = "T" }, "/refund_address forbidden"},
		"no quote for the house":       {fromHouse, func(r *exchange.OrderRequest) { r.QuoteID = uuid.Nil }, "/fx_rate_quote_id required"},
		"an offer of the house":        {fromHouse, func(r *exchange.OrderRequest) { r.OfferID = uuid.New() }, "/offer_id forbidden"},
		"no network for the house":     {fromHouse, func(r *exchange.OrderRequest) { r.Network = "" }, "/network required"},
		"a wallet for the house":       {fromHouse, func(r *exchange.OrderRequest) { r.FundWalletID = uuid.New() }, "/wallet_id forbidden"},
		"a bank that pays the house":   {fromHouse, func(r *exchange.OrderRequest) { r.PayoutMethod = "bank" }, "/payment_method enum"},
		"a refund of a purchase":       {purchase, func(r *exchange.OrderRequest) { r.RefundAddress = "T" }, "/refund_address forbidden"},
		"a refund beside the wallet":   {custodial, func(r *exchange.OrderRequest) { r.RefundAddress = "T" }, "/refund_address forbidden"},
		"a bank":                       {standard, func(r *exchange.OrderRequest) { r.PayoutMethod = "bank" }, "/payment_method enum"},
		"a pigeon":                     {remittance, func(r *exchange.OrderRequest) { r.PayoutMethod = "pigeon" }, "/payment_method enum"},
		"a phone beside the bank":      {remittance, func(r *exchange.OrderRequest) { bank(r); r.Phone = "254712345678" }, "/payment_phone_number forbidden"},
		"no phone":                     {remittance, func(r *exchange.OrderRequest) { r.Phone = "" }, "/payment_phone_number required"},
		"no sender":                    {remittance, func(r *exchange.OrderRequest) { r.Sender.Name = "" }, "/sender_name required"},
		"a sender":                     {standard, func(r *exchange.OrderRequest) { r.Sender.Name = "Jane" }, "/sender_name forbidden"},
		"a long name":                  {remittance, func(r *exchange.OrderRequest) { r.Sender.Name = strings.Repeat("ä", 121) }, "/sender_name format"},
		"two lines":                    {remittance, func(r *exchange.OrderRequest) { r.Sender.Name = "Jane\nRoe" }, "/sender_name format"},
		"a country in small letters":   {remittance, func(r *exchange.OrderRequest) { r.Sender.Country = "gb" }, "/sender_country format"},
		"a short phone":                {remittance, func(r *exchange.OrderRequest) { r.Sender.Phone = "447700" }, "/sender_phone format"},
		"a long phone":                 {remittance, func(r *exchange.OrderRequest) { r.Sender.Phone = strings.Repeat("4", 16) }, "/sender_phone format"},
		"letters":                      {remittance, func(r *exchange.OrderRequest) { r.Sender.Phone = "44770090012x" }, "/sender_phone format"},
		"no payee":                     {remittance, func(r *exchange.OrderRequest) { r.Beneficiary.AccountName = "" }, "/beneficiary_account_name required"},
		"somebody to pay":              {standard, func(r *exchange.OrderRequest) { r.Beneficiary.AccountName = "Amina" }, "/beneficiary_account_name forbidden"},
		"a bank's name by phone":       {remittance, func(r *exchange.OrderRequest) { r.Beneficiary.BankName = "Equity" }, "/beneficiary_bank_name forbidden"},
		"no bank":                      {remittance, func(r *exchange.OrderRequest) { bank(r); r.Beneficiary.BankName = "" }, "/beneficiary_bank_name required"},
		"no account":                   {treasury, func(r *exchange.OrderRequest) { bank(r); r.Beneficiary.AccountNumber = "" }, "/beneficiary_account_number required"},
		"a long account":               {treasury, func(r *exchange.OrderRequest) { bank(r); r.Beneficiary.AccountNumber = strings.Repeat("1", 35) }, "/beneficiary_account_number format"},
		"signs in the account":         {treasury, func(r *exchange.OrderRequest) { bank(r); r.Beneficiary.AccountNumber = "12-3" }, "/beneficiary_account_number format"},
		"no code":                      {remittance, func(r *exchange.OrderRequest) { bank(r); r.Beneficiary.BankCode = "" }, "/beneficiary_bank_code required"},
		"a SWIFT code of nine signs":   {remittance, func(r *exchange.OrderRequest) { bank(r); r.Beneficiary.SwiftCode = "EQBLKENA1" }, "/beneficiary_swift_code format"},
		"no payee at the bank":         {treasury, func(r *exchange.OrderRequest) { bank(r); r.Beneficiary.AccountName = "" }, "/beneficiary_account_name required"},
		"a branch of more than a line": {remittance, func(r *exchange.OrderRequest) { bank(r); r.Beneficiary.BankBranch = "a\nb" }, "/beneficiary_bank_branch format"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := complete(c.kind)
			c.spoil(&r)
			err := r.Check(c.kind)
			e, ok := errors.AsType[*exchange.Error](err)
			if !ok || len(e.Fields) != 1 || e.Fields[0].Pointer+" "+e.Fields[0].Code != c.want {
				t.Errorf("%v, want %s alone", err, c.want)
			}
		})
	}
}

func kind(t exchange.OrderType, s exchange.OrderSubtype) exchange.OrderKind {
	k, _ := exchange.KindOf(t, s)
	return k
}

// In a sale the payee gets whole shillings, rounded down; the vendor owes the crypto times the rate to the cent, rounded
// down; the house keeps the difference, less than a shilling.
func TestSalesByCrypto(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		crypto := usdtUnits(rapid.Int64Range(1, 1e12).Draw(rt, "units"))
		rate := decimal.New(rapid.Int64Range(1, 1e9).Draw(rt, "rate"), -exchange.RatePlaces)
		p := exchange.SellByCrypto(crypto, rate)
		exact := crypto.Decimal().Mul(rate)
		kept := p.Rounding.Decimal().Neg()
		switch {
		case !p.Crypto.Equal(crypto):
			rt.Fatalf("%s became %s", crypto, p.Crypto)
		case p.Vendor.Decimal().GreaterThan(exact) || exact.Sub(p.Vendor.Decimal()).GreaterThanOrEqual(decimal.New(1, -2)):
			rt.Fatalf("%s at %s costs the vendor %s", crypto, rate, p.Vendor)
		case !p.Fiat.Equal(p.Fiat.FloorWhole()) || p.Fiat.Cmp(p.Vendor) > 0 || !p.Fiat.Equal(p.Vendor.Add(p.Rounding)):
			rt.Fatalf("%s at %s brings %s of %s", crypto, rate, p.Fiat, p.Vendor)
		case kept.IsNegative() || kept.GreaterThanOrEqual(decimal.NewFromInt(1)):
			rt.Fatalf("the house keeps %s", kept)
		}
	})
}

// A sale by shillings brings the requested amount, and one unit of crypto less would not.
func TestSalesByFiat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		fiat := money.Must(money.KES, decimal.NewFromInt(rapid.Int64Range(1, 1e9).Draw(rt, "shillings")).String())
		rate := decimal.New(rapid.Int64Range(1, 1e9).Draw(rt, "rate"), -exchange.RatePlaces)
		p := exchange.SellByFiat(fiat, money.USDT, rate)
		less := exchange.SellByCrypto(p.Crypto.Sub(money.Must(money.USDT, "0.000001")), rate)
		if p.Fiat.Cmp(fiat) < 0 || less.Fiat.Cmp(fiat) >= 0 {
			rt.Fatalf("%s at %s: %s brings %s, one unit less %s", fiat, rate, p.Crypto, p.Fiat, less.Fiat)
		}
	})
}

// A purchase at a quote costs what was promised: the fee is inside, the treasury gets the worth of the crypto to the cent, and the
// house keeps about a shilling at most besides.
func TestPurchasesByQuote(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		profile := exchange.FeeProfile{
			FeeLine: exchange.FeeLine{Scope: exchange.FeePurchase, Asset: money.USDT}, Fixed: money.FromUnits(money.KES, big.NewInt(rapid.Int64Range(0, 10_000).Draw(rt, "fixed"))),
			BasisPoints: rapid.Int64Range(0, 1000).Draw(rt, "points"), Minimum: money.FromUnits(money.KES, big.NewInt(rapid.Int64Range(0, 10_000).Draw(rt, "minimum"))),
			Spread: rapid.Int64Range(0, 500).Draw(rt, "spread"),
		}
		given := usdtUnits(rapid.Int64Range(10_000_000, 1e12).Draw(rt, "units"))
		if rapid.Bool().Draw(rt, "shillings") {
			given = money.Must(money.KES, fmt.Sprint(rapid.Int64Range(1000, 1e9).Draw(rt, "fiat")))
		}
		ask := decimal.New(rapid.Int64Range(100e6, 200e6).Draw(rt, "ask"), -exchange.RatePlaces)
		terms := exchange.QuoteTerms{
			Purpose: exchange.QuoteForPurchase, Side: exchange.QuoteBuy, Given: given, Network: exchange.Tron, Profile: profile, Formula: exchange.QuoteFormula,
			Rate: exchange.FXRate{Base: money.USDT, Quote: money.KES, Bid: ask, Ask: ask},
		}
		promised, err := terms.Price()
		if err != nil {
			rt.Fatal(err)
		}
		o := exchange.Order{Type: exchange.OnRampBuy, Subtype: exchange.TreasuryOnRamp, QuoteID: uuid.New(), Price: exchange.PriceByQuote(promised)}
		p := o.Charged(profile)
		switch {
		case !p.Fiat.Equal(promised.Fiat) || !p.Fee.Equal(promised.Fee) || !p.Crypto.Equal(promised.Crypto):
			rt.Fatalf("it costs %+v, promised were %+v", p, promised)
		case !p.Vendor.Equal(p.Crypto.MulFloor(money.KES, promised.Rate)) || !p.Fiat.Equal(p.Vendor.Add(p.Rounding).Add(p.Fee)):
			rt.Fatalf("the parts are %+v at %s", p, promised.Rate)
		case p.Rounding.Decimal().IsNegative() || p.Rounding.Decimal().GreaterThan(decimal.New(102, -2)):
			rt.Fatalf("the house keeps %s besides", p.Rounding)
		}
	})
}
