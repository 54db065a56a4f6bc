package exchange_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

func kesCents(n int64) money.Amount { return money.Must(money.KES, decimal.New(n, -2).String()) }

// deskTerms generates terms of a price with a fee in shillings, of either side and by either amount.
func deskTerms(rt *rapid.T) exchange.QuoteTerms {
	q := terms(rt)
	p := exchange.ZeroProfile(exchange.FeeDeposit, money.USDT)
	p.Fixed, p.Minimum = kesCents(rapid.Int64Range(0, 1e6).Draw(rt, "fixed cents")), kesCents(rapid.Int64Range(0, 1e6).Draw(rt, "minimum cents"))
	p.BasisPoints, p.Spread = rapid.Int64Range(0, exchange.MaxFeePoints).Draw(rt, "fee points"), q.Profile.Spread
	if rapid.Bool().Draw(rt, "limited") {
		p.Maximum = p.Minimum.Add(kesCents(rapid.Int64Range(0, 1e7).Draw(rt, "cents of room")))
	}
	q.Purpose, q.Profile, q.Formula = exchange.QuoteForDeposit, p, exchange.QuoteFormula2
	if rapid.Bool().Draw(rt, "by shillings") {
		q.Given = kesCents(rapid.Int64Range(1, 1e11).Draw(rt, "shillings") * 100)
	}
	return q
}

// What the fee and the rate leave never rounds in the owner's favour, whichever amount was given, and a fee in shillings is inside of
// what is paid or got.
func TestFeesInShillingsAreInside(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		q := deskTerms(rt)
		p, err := q.Price()
		if err != nil {
			if exchange.CodeOf(err) != exchange.CodeInvalid {
				rt.Fatal(err)
			}
			return
		}
		value := p.Crypto.Decimal().Mul(p.Rate)
		switch {
		case !p.Total.Equal(p.Crypto) || p.Fee.Asset() != money.KES || !p.Fiat.Equal(p.Fiat.FloorWhole()):
			rt.Fatalf("%s and %s in all, for %s with a fee of %s %s", p.Crypto, p.Total, p.Fiat, p.Fee, p.Fee.Asset())
		case q.Side == exchange.QuoteBuy && p.Fiat.Sub(p.Fee).Decimal().LessThan(value):
			rt.Fatalf("%s less a fee of %s buys %s, which is worth %s", p.Fiat, p.Fee, p.Crypto, value)
		case q.Side == exchange.QuoteSell && p.Fiat.Add(p.Fee).Decimal().GreaterThan(value):
			rt.Fatalf("%s and a fee of %s are paid for %s, which is worth %s", p.Fiat, p.Fee, p.Crypto, value)
		case q.AmountSide() == exchange.AmountCrypto && !p.Crypto.Equal(q.Given):
			rt.Fatalf("of %s given, %s are priced", q.Given, p.Crypto)
		case q.AmountSide() == exchange.AmountFiat && q.Side == exchange.QuoteBuy && !p.Fiat.Equal(q.Given):
			rt.Fatalf("of %s given, %s are paid", q.Given, p.Fiat)
		case q.AmountSide() == exchange.AmountFiat && p.Fiat.Cmp(q.Given) < 0:
			rt.Fatalf("of %s wanted, %s are got", q.Given, p.Fiat)
		}
		if q.Side == exchange.QuoteBuy && !p.Fee.Equal(q.Profile.Fee(p.Fiat)) {
			rt.Fatalf("the fee of %s is %s, not %s", p.Fiat, p.Fee, q.Profile.Fee(p.Fiat))
		}
	})
}

// Gross is the least amount that leaves the net after the fee.
func TestGrossIsTheLeast(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		q, whole := deskTerms(rt), rapid.Bool().Draw(rt, "whole")
		net, step := kesCents(rapid.Int64Range(1, 1e11).Draw(rt, "net")), kesCents(1)
		if whole {
			step = kesCents(100)
		}
		gross := q.Profile.Gross(net, whole)
		left := func(m money.Amount) money.Amount { return m.Sub(q.Profile.Fee(m)) }
		if left(gross).Cmp(net) < 0 || left(gross.Sub(step)).Cmp(net) >= 0 || whole && !gross.Equal(gross.FloorWhole()) {
			rt.Fatalf("%s leaves %s of the wanted %s; %s would leave %s", gross, left(gross), net, gross.Sub(step), left(gross.Sub(step)))
		}
	})
}

func TestPricesByEitherAmount(t *testing.T) {
	t.Parallel()
	p := exchange.ZeroProfile(exchange.FeeDeposit, money.USDT)
	p.Fixed, p.BasisPoints, p.Spread = kesCents(5000), 100, 50
	q := exchange.QuoteTerms{
		Purpose: exchange.QuoteForDeposit, Profile: p, Formula: exchange.QuoteFormula2,
		Rate: exchange.FXRate{Base: money.USDT, Quote: money.KES, Bid: decimal.RequireFromString("128"), Ask: decimal.RequireFromString("130")},
	}
	for _, c := range []struct {
		side                     exchange.QuoteSide
		given                    money.Amount
		rate, crypto, fiat, fees string
	}{
		// 130.65 a unit; 10000 less 1 % and 50 is 9850.
		{exchange.QuoteBuy, kesCents(10000_00), "130.65", "75.392269", "10000.00", "150.00"},
		{exchange.QuoteBuy, money.Must(money.USDT, "100"), "130.65", "100.000000", "13248.00", "182.48"},
		{exchange.QuoteSell, money.Must(money.USDT, "100"), "127.36", "100.000000", "12558.00", "177.36"},
		{exchange.QuoteSell, kesCents(12558_00), "127.36", "99.994975", "12558.00", "177.36"},
	} {
		q.Side, q.Given = c.side, c.given
		got, err := q.Price()
		if err != nil || got.Rate.String() != c.rate || got.Crypto.String() != c.crypto || got.Fiat.String() != c.fiat || got.Fee.String() != c.fees {
			t.Errorf("%s %s %s: %s at %s for %s with %s, %v; want %+v", c.side, c.given, c.given.Asset(), got.Crypto, got.Rate, got.Fiat, got.Fee, err, c)
		}
	}
	q.Side, q.Given = exchange.QuoteBuy, kesCents(50_00)
	if _, err := q.Price(); blamed(err) != "/amount" {
		t.Errorf("no more than the fee: %v", err)
	}
	// A fee in crypto is on top of the crypto that the shillings buy.
	q.Purpose, q.Profile = exchange.QuoteForTransfer, exchange.ZeroProfile(exchange.FeeTransfer, money.USDT)
	q.Profile.Fixed, q.Given = usdtUnits(500_000), kesCents(1300_00)
	if got, err := q.Price(); err != nil || got.Crypto.String() != "10.000000" || got.Fee.String() != "0.500000" || got.Total.String() != "10.500000" {
		t.Errorf("priced %+v, %v", got, err)
	}
}

// The second encoding never changes either.
func TestCanonicalQuote2(t *testing.T) {
	t.Parallel()
	id := uuid.Must(uuid.Parse("019a9f5e-0000-7000-8000-000000000000"))
	q := exchange.FXQuote{
		ID: id, OwnerID: id, VendorID: id, CreatedAt: noon, ExpiresAt: noon.Add(exchange.QuoteLife),
		Terms: exchange.QuoteTerms{
			Purpose: exchange.QuoteForDeposit, Side: exchange.QuoteBuy, Given: kesCents(1300_00), Network: exchange.Tron, Method: exchange.FeeByBank,
			Formula: exchange.QuoteFormula2, Profile: exchange.ZeroProfile(exchange.FeeDeposit, money.USDT),
			Rate: exchange.FXRate{
				ID: id, Base: money.USDT, Quote: money.KES, Bid: decimal.RequireFromString("130"), Ask: decimal.RequireFromString("130"),
				Source: "admin", ValidFrom: noon, StaleAt: noon,
			},
		},
	}
	var err error
	if q.Price, err = q.Terms.Price(); err != nil {
		t.Fatal(err)
	}
	if got := q.Fingerprint(); got != "bcdbaf0ec63591994f04fb903f064ecd2ec3cc46187224938ce2b0f4d4d66a9a" {
		t.Errorf("hashes to %s of\n%s", got, q.Canonical())
	}
	for name, change := range map[string]func(*exchange.FXQuote){
		"merchant": func(q *exchange.FXQuote) { q.VendorID = uuid.Nil },
		"network":  func(q *exchange.FXQuote) { q.Terms.Network = exchange.Solana },
		"method":   func(q *exchange.FXQuote) { q.Terms.Method = exchange.FeeByMomo },
		"given":    func(q *exchange.FXQuote) { q.Terms.Given = usdtUnits(10_000_000) },
	} {
		bad := q
		change(&bad)
		if bad.Fingerprint() == q.Fingerprint() {
			t.Errorf("the hash does not depend on the %s", name)
		}
	}
}
