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

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func points(rt *rapid.T, name string, low, high int64) decimal.Decimal {
	return decimal.New(rapid.Int64Range(low, high).Draw(rt, name), -exchange.FXRatePlaces)
}

// terms generates random quote terms.
func terms(rt *rapid.T) exchange.QuoteTerms {
	bid := points(rt, "bid", 1e6, 1e12)
	ask := bid.Add(bid.Mul(points(rt, "width", 0, 1e5)).RoundFloor(exchange.FXRatePlaces))
	p := exchange.ZeroProfile(exchange.FeeTransfer, money.USDT)
	if rapid.Bool().Draw(rt, "fees") {
		p.ID, p.Version = uuid.Max, 3
		p.Fixed, p.Minimum = usdtUnits(rapid.Int64Range(0, 1e7).Draw(rt, "fixed")), usdtUnits(rapid.Int64Range(0, 1e7).Draw(rt, "minimum"))
		p.BasisPoints, p.Spread = rapid.Int64Range(0, exchange.MaxFeePoints).Draw(rt, "points"), rapid.Int64Range(0, exchange.MaxSpreadPoints).Draw(rt, "spread")
		if rapid.Bool().Draw(rt, "capped") {
			p.Maximum = p.Minimum.Add(usdtUnits(rapid.Int64Range(0, 1e8).Draw(rt, "room")))
		}
	}
	return exchange.QuoteTerms{
		Purpose: exchange.QuoteForTransfer, Side: rapid.SampledFrom([]exchange.QuoteSide{exchange.QuoteBuy, exchange.QuoteSell}).Draw(rt, "side"),
		Given: usdtUnits(rapid.Int64Range(2e6, 1e14).Draw(rt, "units")), Profile: p, Formula: rapid.SampledFrom(exchange.QuoteFormulas()).Draw(rt, "formula"),
		Rate: exchange.FXRate{
			ID: uuid.Max, Base: money.USDT, Quote: money.KES, Bid: bid, Ask: ask, Source: "admin", ValidFrom: noon, StaleAt: noon.Add(time.Hour),
		},
	}
}

// A quote never rounds in its owner's favour: a buyer pays at least the price with the spread, a seller gets at most the
// value, and neither is off by more than a shilling and the rate's last place.
func TestQuotesRoundAgainstTheirOwner(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		q := terms(rt)
		p, err := q.Price()
		if err != nil {
			if exchange.CodeOf(err) == exchange.CodeInvalid && q.Given.Decimal().Mul(q.Rate.Bid).LessThan(decimal.NewFromInt(2)) {
				return
			}
			rt.Fatal(err)
		}
		if !p.Fiat.Equal(p.Fiat.FloorWhole()) || !p.Total.Equal(q.Given.Add(p.Fee)) {
			rt.Fatalf("%s shillings, %s in all", p.Fiat, p.Total)
		}
		side, factor := q.Rate.Ask, decimal.New(10000+q.Profile.Spread, -4)
		if q.Side == exchange.QuoteSell {
			side, factor = q.Rate.Bid, decimal.New(10000-q.Profile.Spread, -4)
		}
		exact := q.Given.Decimal().Mul(side).Mul(factor)
		off, last := p.Fiat.Decimal().Sub(exact), q.Given.Decimal().Mul(decimal.New(1, -exchange.FXRatePlaces)).Add(decimal.NewFromInt(1))
		if q.Side == exchange.QuoteSell {
			off = off.Neg()
		}
		if off.IsNegative() || off.GreaterThan(last) {
			rt.Fatalf("%s of %s at %s with %d points of spread is %s, off by %s", q.Side, q.Given, side, q.Profile.Spread, p.Fiat, off)
		}
	})
}

// A purchase and a sale at the same rate never make a profit.
func TestQuotesHaveNoRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		q := terms(rt)
		q.Side = exchange.QuoteBuy
		paid, err := q.Price()
		if err != nil {
			rt.Fatal(err)
		}
		q.Side = exchange.QuoteSell
		if got, err := q.Price(); err == nil && got.Fiat.Cmp(paid.Fiat) > 0 {
			rt.Fatalf("%s is bought for %s and sold for %s", q.Given, paid.Fiat, got.Fiat)
		}
	})
}

func TestFeesStayWithinTheirBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		q := terms(rt)
		fee, more := q.Profile.Fee(q.Given), q.Profile.Fee(q.Given.Add(q.Given))
		exact := q.Profile.Fixed.Decimal().Add(q.Given.Decimal().Mul(decimal.New(q.Profile.BasisPoints, -4)))
		capped := q.Profile.Maximum.Asset() != "" && fee.Equal(q.Profile.Maximum)
		switch {
		case fee.Cmp(q.Profile.Minimum) < 0 || (q.Profile.Maximum.Asset() != "" && fee.Cmp(q.Profile.Maximum) > 0):
			rt.Fatalf("%s is out of bounds", fee)
		case more.Cmp(fee) < 0:
			rt.Fatalf("twice the amount costs %s instead of %s", more, fee)
		case !capped && fee.Decimal().LessThan(exact):
			rt.Fatalf("%s is less than %s", fee, exact)
		case !fee.Equal(q.Profile.Minimum) && fee.Decimal().Sub(exact).GreaterThanOrEqual(decimal.New(1, -6)):
			rt.Fatalf("%s is more than %s", fee, exact)
		}
	})
}

func TestFees(t *testing.T) {
	t.Parallel()
	usdt := func(s string) money.Amount { return money.Must(money.USDT, s) }
	p := exchange.FeeProfile{FeeLine: exchange.FeeLine{Scope: exchange.FeeTransfer, Asset: money.USDT}, Fixed: usdt("0.25"), BasisPoints: 30, Minimum: usdt("0.5"), Maximum: usdt("10")}
	for amount, want := range map[string]string{"1": "0.500000", "100": "0.550000", "100.000001": "0.550001", "1000": "3.250000", "1000000": "10.000000"} {
		if got := p.Fee(usdt(amount)); got.String() != want {
			t.Errorf("%s costs %s, want %s", amount, got, want)
		}
	}
	if got := exchange.ZeroProfile(exchange.FeeTransfer, money.USDT).Fee(usdt("1000000")); !got.IsZero() {
		t.Errorf("the zero profile charges %s", got)
	}
}

func TestQuotePrices(t *testing.T) {
	t.Parallel()
	rate := exchange.FXRate{Base: money.USDT, Quote: money.KES, Bid: decimal.RequireFromString("128.9"), Ask: decimal.RequireFromString("129.1")}
	p := exchange.ZeroProfile(exchange.FeeTransfer, money.USDT)
	p.Spread = 100
	q := exchange.QuoteTerms{Given: money.Must(money.USDT, "10.5"), Rate: rate, Profile: p, Formula: exchange.QuoteFormula}
	for side, want := range map[exchange.QuoteSide][2]string{exchange.QuoteBuy: {"130.391", "1370.00"}, exchange.QuoteSell: {"127.611", "1339.00"}} {
		q.Side = side
		if got, err := q.Price(); err != nil || got.Rate.String() != want[0] || got.Fiat.String() != want[1] {
			t.Errorf("%s: %s, %s, %v; want %v", side, got.Rate, got.Fiat, err, want)
		}
	}
	q.Side, q.Given = exchange.QuoteSell, money.Must(money.USDT, "0.007")
	if _, err := q.Price(); exchange.CodeOf(err) != exchange.CodeInvalid {
		t.Errorf("less than a shilling: %v", err)
	}
	for name, change := range map[string]func(*exchange.QuoteTerms){
		"another formula": func(q *exchange.QuoteTerms) { q.Formula = "kivuko-price-0" },
		"another asset":   func(q *exchange.QuoteTerms) { q.Rate.Base = money.USDC },
		"another given":   func(q *exchange.QuoteTerms) { q.Given = money.Must(money.USDC, "10") },
		"foreign fees":    func(q *exchange.QuoteTerms) { q.Profile = exchange.ZeroProfile(exchange.FeeTransfer, money.USDC) },
		"no side":         func(q *exchange.QuoteTerms) { q.Side = "mid" },
	} {
		bad := q
		change(&bad)
		if _, err := bad.Price(); exchange.CodeOf(err) != exchange.CodeInternal {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Replay reports any changed field of a quote.
func TestReplayFindsEveryChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		q := exchange.FXQuote{
			ID: uuid.Max, OwnerID: uuid.Max, Terms: terms(rt), CreatedAt: noon, ExpiresAt: noon.Add(exchange.QuoteLife), Status: exchange.QuoteActive,
		}
		var err error
		if q.Price, err = q.Terms.Price(); err != nil {
			return
		}
		q.Hash = q.Fingerprint()
		if p, off := q.Replay(); len(off) != 0 || !p.Fiat.Equal(q.Price.Fiat) {
			rt.Fatalf("as it is: %v", off)
		}
		one := decimal.New(1, -exchange.FXRatePlaces)
		changes := []func(*exchange.FXQuote){
			func(q *exchange.FXQuote) { q.ID = uuid.Nil },
			func(q *exchange.FXQuote) { q.OwnerID = uuid.Nil },
			func(q *exchange.FXQuote) { q.Terms.Given = q.Terms.Given.Add(usdtUnits(1)) },
			func(q *exchange.FXQuote) { q.Terms.Rate.ID = uuid.Nil },
			func(q *exchange.FXQuote) { q.Terms.Rate.Bid = q.Terms.Rate.Bid.Add(one) },
			func(q *exchange.FXQuote) { q.Terms.Rate.Ask = q.Terms.Rate.Ask.Add(one) },
			func(q *exchange.FXQuote) { q.Terms.Rate.Source = "bank" },
			func(q *exchange.FXQuote) { q.Terms.Rate.ValidFrom = noon.Add(time.Millisecond) },
			func(q *exchange.FXQuote) { q.Terms.Rate.StaleAt = noon.Add(time.Hour + time.Millisecond) },
			func(q *exchange.FXQuote) {
				q.Terms.Profile.ID = uuid.Must(uuid.Parse("019a9f5e-0000-7000-8000-000000000000"))
			},
			func(q *exchange.FXQuote) { q.Terms.Profile.Version++ },
			func(q *exchange.FXQuote) { q.Terms.Profile.Fixed = q.Terms.Profile.Fixed.Add(usdtUnits(1)) },
			func(q *exchange.FXQuote) { q.Terms.Profile.BasisPoints++ },
			func(q *exchange.FXQuote) { q.Terms.Profile.Minimum = q.Terms.Profile.Minimum.Add(usdtUnits(1)) },
			func(q *exchange.FXQuote) { q.Terms.Profile.Maximum = usdtUnits(123_456_789_012) },
			func(q *exchange.FXQuote) { q.Terms.Profile.Spread++ },
			func(q *exchange.FXQuote) { q.Terms.Formula = "another" },
			func(q *exchange.FXQuote) { q.Price.Crypto = q.Price.Crypto.Add(usdtUnits(1)) },
			func(q *exchange.FXQuote) { q.Price.Rate = q.Price.Rate.Add(one) },
			func(q *exchange.FXQuote) { q.Price.Fiat = q.Price.Fiat.Add(money.Must(money.KES, "1")) },
			func(q *exchange.FXQuote) { q.Price.Fee = q.Price.Fee.Add(usdtUnits(1)) },
			func(q *exchange.FXQuote) { q.Price.Total = q.Price.Total.Add(usdtUnits(1)) },
			func(q *exchange.FXQuote) { q.CreatedAt = noon.Add(time.Millisecond) },
			func(q *exchange.FXQuote) { q.ExpiresAt = q.ExpiresAt.Add(time.Millisecond) },
			func(q *exchange.FXQuote) { q.Hash = strings.Repeat("0", 64) },
		}
		n := rapid.IntRange(0, len(changes)-1).Draw(rt, "change")
		bad := q
		changes[n](&bad)
		if _, off := bad.Replay(); len(off) == 0 {
			rt.Fatalf("change %d is not found", n)
		}
	})
}

// The encoding never changes: stored hashes are computed from it.
func TestCanonicalQuote(t *testing.T) {
	t.Parallel()
	id := uuid.Must(uuid.Parse("019a9f5e-0000-7000-8000-000000000000"))
	q := exchange.FXQuote{
		ID: id, OwnerID: id, CreatedAt: noon, ExpiresAt: noon.Add(exchange.QuoteLife),
		Terms: exchange.QuoteTerms{
			Purpose: exchange.QuoteForTransfer, Side: exchange.QuoteSell, Given: money.Must(money.USDT, "10.5"), Formula: exchange.QuoteFormula1,
			Rate: exchange.FXRate{
				ID: id, Base: money.USDT, Quote: money.KES, Bid: decimal.RequireFromString("128.900"), Ask: decimal.RequireFromString("129.1"), Source: "admin",
				ValidFrom: noon, StaleAt: noon.Add(time.Hour),
			},
			Profile: exchange.ZeroProfile(exchange.FeeTransfer, money.USDT),
		},
	}
	var err error
	if q.Price, err = q.Terms.Price(); err != nil {
		t.Fatal(err)
	}
	want := `kivuko fx quote v1
id=019a9f5e-0000-7000-8000-000000000000
owner=019a9f5e-0000-7000-8000-000000000000
purpose=transfer
side=sell
asset=USDT
amount=10.500000
currency=KES
rate.id=019a9f5e-0000-7000-8000-000000000000
rate.bid=128.9
rate.ask=129.1
rate.source=admin
rate.valid_from=2026-11-21T12:00:00.000Z
rate.stale_at=2026-11-21T13:00:00.000Z
profile.id=00000000-0000-0000-0000-000000000000
profile.version=0
profile.fixed=0.000000
profile.basis_points=0
profile.minimum=0.000000
profile.maximum=
profile.spread=0
formula=kivuko-price-1
rounding=payee_down_to_whole_shillings
price.rate=128.9
price.fiat=1353.00
price.fee=0.000000
price.total=10.500000
created_at=2026-11-21T12:00:00.000Z
expires_at=2026-11-21T12:05:00.000Z
`
	if got := q.Canonical(); got != want {
		t.Errorf("encoded as\n%s", got)
	}
	if got := q.Fingerprint(); got != "56500929fcc924f38a4301283c00f59d590425bf33794836e31c3a57257f3f67" {
		t.Errorf("hashes to %s", got)
	}
}

func TestRatesAreChecked(t *testing.T) {
	t.Parallel()
	dec := decimal.RequireFromString
	good := exchange.FXRate{Base: money.ETH, Quote: money.KES, Bid: dec("400000"), Ask: dec("401000.5"), Source: "admin", ValidFrom: noon, StaleAt: noon.Add(time.Hour)}
	if err := good.Validate(noon); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*exchange.FXRate){
		"/base":                func(r *exchange.FXRate) { r.Base = money.KES },
		"/quote":               func(r *exchange.FXRate) { r.Quote = money.USDT },
		"/source":              func(r *exchange.FXRate) { r.Source = "A bank" },
		"/bid":                 func(r *exchange.FXRate) { r.Bid = dec("0") },
		"/ask":                 func(r *exchange.FXRate) { r.Ask = dec("399999") },
		"/ask ":                func(r *exchange.FXRate) { r.Ask = dec("440000.000001") },
		"/ask  ":               func(r *exchange.FXRate) { r.Ask = dec("400000.0000001") },
		"/stale_after_seconds": func(r *exchange.FXRate) { r.StaleAt = noon.Add(exchange.MaxRateLife + time.Second) },
		"/valid_from":          func(r *exchange.FXRate) { r.ValidFrom, r.StaleAt = noon.Add(time.Second), noon.Add(time.Hour) },
		"/valid_from ":         func(r *exchange.FXRate) { r.ValidFrom, r.StaleAt = noon.Add(-2*time.Hour), noon },
	} {
		r := good
		change(&r)
		if got := blamed(r.Validate(noon)); got != strings.TrimSpace(want) {
			t.Errorf("%s: blames %q", want, got)
		}
	}
}

// blamed lists the fields of an error.
func blamed(err error) string {
	e, _ := err.(*exchange.Error) //nolint:errorlint // not wrapped
	if e == nil {
		return ""
	}
	var all []string
	for _, f := range e.Fields {
		all = append(all, f.Pointer)
	}
	return strings.Join(all, " ")
}

func TestJumps(t *testing.T) {
	t.Parallel()
	dec := decimal.RequireFromString
	from := exchange.FXRate{Bid: dec("100"), Ask: dec("101")}
	for _, c := range []struct {
		bid, ask string
		want     int64
	}{{"100", "101", 0}, {"105", "101", 500}, {"105.000001", "105.000001", 501}, {"95", "101", 500}, {"100", "90.9", 1000}, {"1000", "1010", 90000}} {
		if got := (exchange.FXRate{Bid: dec(c.bid), Ask: dec(c.ask)}).Jump(from); got != c.want {
			t.Errorf("%s to %s: %d points, want %d", c.bid, c.ask, got, c.want)
		}
	}
	r := exchange.FXRate{Bid: dec("128.900001"), Ask: dec("129")}
	for entered, want := range map[string]string{"0": "128.950001", "150": "128.950001", "172": "129", "1000": "750"} {
		if got := r.Valuation(dec(entered), dec("0")); !got.Equal(dec(want)) {
			t.Errorf("beside a valuation of %s it counts as %s, want %s", entered, got, want)
		}
	}
	for agreed, want := range map[string]string{"0": "128.950001", "128": "128.950001", "140": "140"} {
		if got := r.Valuation(dec("150"), dec(agreed)); !got.Equal(dec(want)) {
			t.Errorf("with %s agreed it counts as %s, want %s", agreed, got, want)
		}
	}
}

func TestFeeProfilesAreChecked(t *testing.T) {
	t.Parallel()
	usdt := func(s string) money.Amount { return money.Must(money.USDT, s) }
	good := exchange.FeeProfile{
		FeeLine: exchange.FeeLine{Scope: exchange.FeeTransfer, Asset: money.USDT}, Fixed: usdt("1"), BasisPoints: 10, Minimum: usdt("1"), Maximum: usdt("1"), ValidFrom: noon, CreatedAt: noon,
	}
	if err := good.Validate(noon); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*exchange.FeeProfile){
		"/scope":               func(p *exchange.FeeProfile) { p.Scope = "coffee" },
		"/asset":               func(p *exchange.FeeProfile) { p.Asset = money.KES },
		"/basis_points":        func(p *exchange.FeeProfile) { p.BasisPoints = exchange.MaxFeePoints + 1 },
		"/basis_points ":       func(p *exchange.FeeProfile) { p.BasisPoints = -1 },
		"/spread_basis_points": func(p *exchange.FeeProfile) { p.Spread = exchange.MaxSpreadPoints + 1 },
		"/maximum":             func(p *exchange.FeeProfile) { p.Maximum = usdt("0.999999") },
		"/valid_from":          func(p *exchange.FeeProfile) { p.ValidFrom = noon.Add(-time.Millisecond) },
		"/valid_from ":         func(p *exchange.FeeProfile) { p.ValidFrom = noon.AddDate(1, 1, 0) },
	} {
		p := good
		change(&p)
		if got := blamed(p.Validate(noon)); got != strings.TrimSpace(want) {
			t.Errorf("%s: blames %q", want, got)
		}
	}
}

func TestQuotesAreAdmittedOnce(t *testing.T) {
	t.Parallel()
	amount := money.Must(money.USDT, "10")
	good := exchange.FXQuote{
		Status: exchange.QuoteActive, ExpiresAt: noon.Add(time.Minute), Terms: exchange.QuoteTerms{Purpose: exchange.QuoteForTransfer, Network: exchange.Tron},
		Price: exchange.QuotePrice{Crypto: amount},
	}
	at := noon
	admit := func(change func(*exchange.FXQuote)) error {
		q := good
		change(&q)
		return q.Admit(exchange.QuoteUse{Purpose: exchange.QuoteForTransfer, Amount: amount, Network: exchange.Tron}, at)
	}
	if err := admit(func(*exchange.FXQuote) {}); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*exchange.FXQuote){
		"/fx_rate_quote_id": func(q *exchange.FXQuote) { q.Terms.Purpose = "swap" },
		"/asset":            func(q *exchange.FXQuote) { q.Price.Crypto = money.Must(money.USDC, "10") },
		"/amount":           func(q *exchange.FXQuote) { q.Price.Crypto = money.Must(money.USDT, "10.000001") },
		"/network":          func(q *exchange.FXQuote) { q.Terms.Network = exchange.Solana },
		"/payment_method":   func(q *exchange.FXQuote) { q.Terms.Method = exchange.FeeByBank },
	} {
		if got := blamed(admit(change)); got != want {
			t.Errorf("%s: blames %q", want, got)
		}
	}
	for status, want := range map[exchange.QuoteStatus]exchange.Code{
		exchange.QuoteConsumed: exchange.CodeStateConflict, exchange.QuoteSuperseded: exchange.CodeStateConflict, exchange.QuoteExpired: exchange.CodeExpired,
	} {
		if err := admit(func(q *exchange.FXQuote) { q.Status = status }); exchange.CodeOf(err) != want || !strings.Contains(err.Error(), "fx_rate_quote_id") {
			t.Errorf("%s: %v", status, err)
		}
	}
	at = good.ExpiresAt
	if err := admit(func(*exchange.FXQuote) {}); exchange.CodeOf(err) != exchange.CodeExpired {
		t.Errorf("at its end: %v", err)
	}
}
