package exchange_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

func usdcUnits(n int64) money.Amount {
	return money.Must(money.USDC, decimal.New(n, -money.USDC.Scale()).String())
}

func rateOf(a money.Asset, bid, ask string) exchange.FXRate {
	return exchange.FXRate{Base: a, Quote: money.KES, Bid: decimal.RequireFromString(bid), Ask: decimal.RequireFromString(ask), Source: "admin", ValidFrom: noon, StaleAt: noon.Add(time.Hour)}
}

// USDT at a mid of 129 and USDC at one of 129.5, without a fee.
func swapOf(given money.Amount) exchange.SwapTerms {
	return exchange.SwapTerms{
		From: money.USDT, To: money.USDC, Network: exchange.Tron, Given: given, FromRate: rateOf(money.USDT, "128", "130"), ToRate: rateOf(money.USDC, "129.5", "129.5"),
		Profile: exchange.ZeroProfile(exchange.FeeSwap, money.USDC), Formula: exchange.SwapFormula1,
	}
}

func TestSwapPrices(t *testing.T) {
	t.Parallel()
	usdt, usdc := func(s string) money.Amount { return money.Must(money.USDT, s) }, func(s string) money.Amount { return money.Must(money.USDC, s) }
	spread := func(p *exchange.FeeProfile) { p.Spread = 50 }
	fee := func(p *exchange.FeeProfile) { p.Fixed, p.BasisPoints = usdc("0.5"), 30 }
	for name, c := range map[string]struct {
		given              money.Amount
		change             func(*exchange.FeeProfile)
		rate, from, to, of string
	}{
		"given, plain":         {usdt("100"), func(*exchange.FeeProfile) {}, "0.996138", "100.000000", "99.613800", "0.000000"},
		"got, plain":           {usdc("99.6138"), func(*exchange.FeeProfile) {}, "0.996138", "100.000000", "99.613800", "0.000000"},
		"got, rounded up":      {usdc("1"), func(*exchange.FeeProfile) {}, "0.996138", "1.003877", "1.000000", "0.000000"},
		"given, one unit":      {usdt("0.000002"), func(*exchange.FeeProfile) {}, "0.996138", "0.000002", "0.000001", "0.000000"},
		"given, with a spread": {usdt("100"), spread, "0.991158", "100.000000", "99.115800", "0.000000"},
		"given, with a fee":    {usdt("100"), fee, "0.996138", "100.000000", "98.814958", "0.798842"},
		"got, with a fee":      {usdc("98.814958"), fee, "0.996138", "100.000000", "98.814958", "0.798842"},
	} {
		terms := swapOf(c.given)
		c.change(&terms.Profile)
		got, err := terms.Price()
		if err != nil || got.Rate.String() != c.rate || got.From.String() != c.from || got.To.String() != c.to || got.Fee.String() != c.of {
			t.Errorf("%s: %s for %s at %s with a fee of %s, %v; want %+v", name, got.From, got.To, got.Rate, got.Fee, err, c)
		}
	}
}

func TestSwapsThatHaveNoPrice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*exchange.SwapTerms)
		want   exchange.Code
	}{
		"another formula":     {func(s *exchange.SwapTerms) { s.Formula = exchange.QuoteFormula2 }, exchange.CodeInternal},
		"the same asset":      {func(s *exchange.SwapTerms) { s.To = s.From }, exchange.CodeInternal},
		"another amount":      {func(s *exchange.SwapTerms) { s.Given = money.Must(money.KES, "1") }, exchange.CodeInternal},
		"another rate":        {func(s *exchange.SwapTerms) { s.ToRate.Base = money.USDT }, exchange.CodeInternal},
		"fees in the given":   {func(s *exchange.SwapTerms) { s.Profile = exchange.ZeroProfile(exchange.FeeSwap, money.USDT) }, exchange.CodeInternal},
		"nothing":             {func(s *exchange.SwapTerms) { s.Given = money.Zero(money.USDT) }, exchange.CodeInvalid},
		"less than the fee":   {func(s *exchange.SwapTerms) { s.Profile.Fixed = usdcUnits(1e9) }, exchange.CodeInvalid},
		"worth less than one": {func(s *exchange.SwapTerms) { s.Given = usdtUnits(1) }, exchange.CodeInvalid},
	} {
		terms := swapOf(usdtUnits(1e8))
		c.change(&terms)
		if _, err := terms.Price(); exchange.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// swapTerms generates terms of a swap, by either amount.
func swapTerms(rt *rapid.T) exchange.SwapTerms {
	rate := func(a money.Asset, name string) exchange.FXRate {
		bid := rapid.Int64Range(100_000_000, 160_000_000).Draw(rt, name+" bid")
		ask := bid + rapid.Int64Range(0, 2_000_000).Draw(rt, name+" width")
		return rateOf(a, decimal.New(bid, -6).String(), decimal.New(ask, -6).String())
	}
	p := exchange.ZeroProfile(exchange.FeeSwap, money.USDC)
	p.Spread, p.BasisPoints = rapid.Int64Range(0, exchange.MaxSpreadPoints).Draw(rt, "spread"), rapid.Int64Range(0, exchange.MaxFeePoints).Draw(rt, "points")
	p.Fixed, p.Minimum = usdcUnits(rapid.Int64Range(0, 1e7).Draw(rt, "fixed")), usdcUnits(rapid.Int64Range(0, 1e7).Draw(rt, "minimum"))
	if rapid.Bool().Draw(rt, "limited") {
		p.Maximum = p.Minimum.Add(usdcUnits(rapid.Int64Range(0, 1e8).Draw(rt, "room")))
	}
	s := exchange.SwapTerms{
		From: money.USDT, To: money.USDC, Network: exchange.Solana, FromRate: rate(money.USDT, "from"), ToRate: rate(money.USDC, "to"), Profile: p, Formula: exchange.SwapFormula1,
		Given: usdtUnits(rapid.Int64Range(1, 1e14).Draw(rt, "given")),
	}
	if rapid.Bool().Draw(rt, "by what is got") {
		s.Given = usdcUnits(rapid.Int64Range(1, 1e14).Draw(rt, "got"))
	}
	return s
}

// A swap never gives more than the mids make, with the fee in it, and its fee is the profile's.
func TestSwapsNeverGiveMoreThanTheMids(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := swapTerms(rt)
		p, err := s.Price()
		if err != nil {
			if exchange.CodeOf(err) != exchange.CodeInvalid {
				rt.Fatal(err)
			}
			return
		}
		gross := p.To.Add(p.Fee)
		paid := p.From.Decimal().Mul(s.FromRate.Bid.Add(s.FromRate.Ask)).Mul(decimal.New(10000-s.Profile.Spread, -4))
		switch {
		case gross.Decimal().Mul(s.ToRate.Bid.Add(s.ToRate.Ask)).GreaterThan(paid):
			rt.Fatalf("%s brings %s and a fee of %s", p.From, p.To, p.Fee)
		case !p.Fee.Equal(s.Profile.Fee(gross)):
			rt.Fatalf("the fee of %s is %s, not %s", gross, p.Fee, s.Profile.Fee(gross))
		case s.AmountSide() == exchange.AmountFrom && !p.From.Equal(s.Given), s.AmountSide() == exchange.AmountTo && !p.To.Equal(s.Given):
			rt.Fatalf("of %s %s given, %s becomes %s", s.Given, s.Given.Asset(), p.From, p.To)
		}
	})
}

// Both sides agree: what is asked for what a swap brings is no more than was given for it, and brings the same; one unit less would
// not.
func TestBothSidesOfASwapAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := swapTerms(rt)
		p, err := s.Price()
		if err != nil {
			return
		}
		s.Given = p.To
		wanted, err := s.Price()
		if err != nil || wanted.From.Cmp(p.From) > 0 || !wanted.To.Equal(p.To) {
			rt.Fatalf("%s brings %s, for which %s is asked, %v", p.From, p.To, wanted.From, err)
		}
		s.Given = wanted.From
		if again, err := s.Price(); err != nil || again.To.Cmp(p.To) < 0 {
			rt.Fatalf("%s brings %s, and not %s, %v", wanted.From, again.To, p.To, err)
		}
		s.Given = wanted.From.Sub(usdtUnits(1))
		if less, err := s.Price(); err == nil && less.To.Cmp(p.To) >= 0 {
			rt.Fatalf("%s brings %s too", s.Given, less.To)
		}
	})
}

// There and back never makes a profit.
func TestSwapsHaveNoRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := swapTerms(rt)
		there, err := s.Price()
		if err != nil {
			return
		}
		back := exchange.SwapTerms{
			From: s.To, To: s.From, Network: s.Network, Given: there.To, FromRate: s.ToRate, ToRate: s.FromRate, Profile: exchange.ZeroProfile(exchange.FeeSwap, money.USDT), Formula: s.Formula,
		}
		if home, err := back.Price(); err == nil && home.To.Cmp(there.From) > 0 {
			rt.Fatalf("%s becomes %s and then %s", there.From, there.To, home.To)
		}
	})
}

func swapQuote(rt *rapid.T) (exchange.SwapQuote, bool) {
	q := exchange.SwapQuote{ID: uuid.Max, AskedBy: uuid.Max, WalletID: uuid.Max, Terms: swapTerms(rt), CreatedAt: noon, ExpiresAt: noon.Add(exchange.SwapQuoteLife)}
	var err error
	q.Price, err = q.Terms.Price()
	q.Hash = q.Fingerprint()
	return q, err == nil
}

// Replay reports any changed field of a swap's quote.
func TestReplayFindsEveryChangeOfASwap(t *testing.T) {
	t.Parallel()
	one := decimal.New(1, -exchange.FXRatePlaces)
	changes := []func(*exchange.SwapQuote){
		func(q *exchange.SwapQuote) { q.ID = uuid.Nil },
		func(q *exchange.SwapQuote) { q.AskedBy = uuid.Nil },
		func(q *exchange.SwapQuote) { q.VendorID = uuid.Max },
		func(q *exchange.SwapQuote) { q.WalletID = uuid.Nil },
		func(q *exchange.SwapQuote) { q.Terms.Network = exchange.Ethereum },
		func(q *exchange.SwapQuote) { q.Terms.Given = q.Terms.Given.Add(q.Terms.Given) },
		func(q *exchange.SwapQuote) { q.Terms.FromRate.ID = uuid.Max },
		func(q *exchange.SwapQuote) { q.Terms.FromRate.Bid = q.Terms.FromRate.Bid.Add(one) },
		func(q *exchange.SwapQuote) { q.Terms.ToRate.Ask = q.Terms.ToRate.Ask.Add(one) },
		func(q *exchange.SwapQuote) { q.Terms.ToRate.Source = "bank" },
		func(q *exchange.SwapQuote) { q.Terms.ToRate.StaleAt = noon.Add(time.Minute) },
		func(q *exchange.SwapQuote) { q.Terms.Profile.ID = uuid.Max },
		func(q *exchange.SwapQuote) { q.Terms.Profile.Version++ },
		func(q *exchange.SwapQuote) { q.Terms.Profile.BasisPoints++ },
		func(q *exchange.SwapQuote) { q.Terms.Profile.Maximum = usdcUnits(123_456_789_012) },
		func(q *exchange.SwapQuote) { q.Terms.Formula = "another" },
		func(q *exchange.SwapQuote) { q.Price.Rate = q.Price.Rate.Add(one) },
		func(q *exchange.SwapQuote) { q.Price.From = q.Price.From.Sub(usdtUnits(1)) },
		func(q *exchange.SwapQuote) { q.Price.To = q.Price.To.Add(usdcUnits(1)) },
		func(q *exchange.SwapQuote) { q.Price.Fee = q.Price.Fee.Add(usdcUnits(1)) },
		func(q *exchange.SwapQuote) { q.CreatedAt = noon.Add(time.Millisecond) },
		func(q *exchange.SwapQuote) { q.ExpiresAt = q.ExpiresAt.Add(time.Millisecond) },
		func(q *exchange.SwapQuote) { q.Hash = strings.Repeat("0", 64) },
	}
	rapid.Check(t, func(rt *rapid.T) {
		q, ok := swapQuote(rt)
		if !ok {
			return
		}
		if p, off := q.Replay(); len(off) != 0 || !p.To.Equal(q.Price.To) {
			rt.Fatalf("as it is: %v", off)
		}
		n := rapid.IntRange(0, len(changes)-1).Draw(rt, "change")
		changes[n](&q)
		if _, off := q.Replay(); len(off) == 0 {
			rt.Fatalf("change %d is not found", n)
		}
	})
}

// The encoding never changes: stored hashes are computed from it.
func TestCanonicalSwapQuote(t *testing.T) {
	t.Parallel()
	id := uuid.Must(uuid.Parse("019a9f5e-0000-7000-8000-000000000000"))
	q := exchange.SwapQuote{ID: id, AskedBy: id, WalletID: id, Terms: swapOf(money.Must(money.USDT, "100")), CreatedAt: noon, ExpiresAt: noon.Add(exchange.SwapQuoteLife)}
	var err error
	if q.Price, err = q.Terms.Price(); err != nil {
		t.Fatal(err)
	}
	want := `kivuko swap quote v1
id=019a9f5e-0000-7000-8000-000000000000
asked_by=019a9f5e-0000-7000-8000-000000000000
vendor=00000000-0000-0000-0000-000000000000
wallet=019a9f5e-0000-7000-8000-000000000000
network=tron
from=USDT
to=USDC
given=100.000000 USDT
from_rate.id=00000000-0000-0000-0000-000000000000
from_rate.bid=128
from_rate.ask=130
from_rate.source=admin
from_rate.valid_from=2026-11-21T12:00:00.000Z
from_rate.stale_at=2026-11-21T13:00:00.000Z
to_rate.id=00000000-0000-0000-0000-000000000000
to_rate.bid=129.5
to_rate.ask=129.5
to_rate.source=admin
to_rate.valid_from=2026-11-21T12:00:00.000Z
to_rate.stale_at=2026-11-21T13:00:00.000Z
profile.id=00000000-0000-0000-0000-000000000000
profile.version=0
profile.fixed=0.000000
profile.basis_points=0
profile.minimum=0.000000
profile.maximum=
profile.spread=0
formula=kivuko-swap-1
price.rate=0.996138
price.from=100.000000
price.to=99.613800
price.fee=0.000000
created_at=2026-11-21T12:00:00.000Z
expires_at=2026-11-21T12:01:00.000Z
`
	if got := q.Canonical(); got != want {
		t.Errorf("encoded as\n%s", got)
	}
}

func TestSwapQuotesAreAdmittedOnce(t *testing.T) {
	t.Parallel()
	q := exchange.SwapQuote{ExpiresAt: noon.Add(time.Second)}
	used := q
	used.SwapID = uuid.Max
	for _, c := range []struct {
		q    exchange.SwapQuote
		at   time.Time
		want exchange.Code
	}{{q, noon, ""}, {q, q.ExpiresAt, exchange.CodeExpired}, {used, noon, exchange.CodeStateConflict}, {used, q.ExpiresAt, exchange.CodeStateConflict}} {
		if err := c.q.Admit(c.at); exchange.CodeOf(err) != c.want {
			t.Errorf("%s at %s: %v", c.q.Status(c.at), c.at, err)
		}
	}
}

func TestSwapRequestsAreChecked(t *testing.T) {
	t.Parallel()
	good := exchange.SwapQuoteRequest{WalletID: uuid.Max, From: money.USDT, To: money.USDC, Amount: usdtUnits(1)}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*exchange.SwapQuoteRequest){
		"/wallet_id":   func(r *exchange.SwapQuoteRequest) { r.WalletID = uuid.Nil },
		"/from_asset":  func(r *exchange.SwapQuoteRequest) { r.From, r.Amount = money.TRX, money.Must(money.TRX, "1") },
		"/to_asset":    func(r *exchange.SwapQuoteRequest) { r.To = money.TRX },
		"/to_asset ":   func(r *exchange.SwapQuoteRequest) { r.To = money.USDT },
		"/amount":      func(r *exchange.SwapQuoteRequest) { r.Amount = money.Zero(money.USDT) },
		"/amount_side": func(r *exchange.SwapQuoteRequest) { r.Amount = money.Must(money.KES, "1") },
	} {
		r := good
		change(&r)
		if got := blamed(r.Check()); got != strings.TrimSpace(want) {
			t.Errorf("%s: blames %q", want, got)
		}
	}
	if got := blamed(exchange.SwapRequest{}.Check()); got != "/quote_id" {
		t.Errorf("without a quote: blames %q", got)
	}
}

// What has to be moved brings a wallet to its high mark, and nothing is moved between the marks.
func TestSwapInventoryBetweenItsMarks(t *testing.T) {
	t.Parallel()
	for available, want := range map[int64]string{0: "30.000000", 9_999_999: "20.000001", 10_000_000: "0.000000", 30_000_000: "0.000000", 31_000_000: "-1.000000"} {
		i := exchange.SwapInventory{Asset: money.USDC, Available: usdcUnits(available), Low: usdcUnits(10_000_000), High: usdcUnits(30_000_000)}
		if got := i.Move().String(); got != want || i.IsLow() != (available < 10_000_000) {
			t.Errorf("of %s: move %s, low %t", i.Available, got, i.IsLow())
		}
	}
	if none := (exchange.SwapInventory{Asset: money.USDC, Available: usdcUnits(0)}); none.IsLow() || !none.Move().IsZero() {
		t.Error("a wallet without marks is low")
	}
}
