package exchange

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// Limits of rates and fees.
const (
	MinRateLife     = time.Minute
	MaxRateLife     = 7 * 24 * time.Hour
	DefaultRateLife = 24 * time.Hour
	MaxRateJump     = 500 // basis points that one side may move in a rate of the source, from the last rate
	// MaxRateDrift is how many basis points a side of the source's rate may lie from the last rate that two officers agreed, so that
	// steps add up. The database has the same value.
	MaxRateDrift = 1000
	// MaxManualStray is how many basis points a side of one person's rate may lie from the last rate of the source, which may be
	// no older than SourceSilence. The database has the same values.
	MaxManualStray = 200
	SourceSilence  = time.Hour
	MaxRateSpread  = 1000 // basis points that the ask may exceed the bid by
	// MaxValuationDiscount is how many basis points a rate's valuation may fall below the entered one.
	MaxValuationDiscount = 2500
	// MaxSalePremium is how many basis points the house may pay above the valuation that two officers agreed to. The
	// database has the same value.
	MaxSalePremium   = 1000
	basisPoints      = 10000 // in one
	FXRatePlaces     = RatePlaces
	RateSourceAdmin  = "admin"
	maxRateSourceLen = 40
)

var rateSource = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// ValidRateSource reports whether s may name a source of rates.
func ValidRateSource(s string) bool { return len(s) <= maxRateSourceLen && rateSource.MatchString(s) }

// FXRate is the price of one unit of a crypto asset in a currency, from a moment on. It never changes; a new rate
// replaces it. Each replaces exactly one other, so that the rates of a pair form one chain.
type FXRate struct {
	ID            uuid.UUID
	Base          money.Asset     // USDT, USDC, ETH, SOL or TRX
	Quote         money.Asset     // KES
	Bid           decimal.Decimal // what a unit is bought for, in Quote, at most FXRatePlaces places
	Ask           decimal.Decimal // what a unit is sold for; never below Bid
	Source        string          // RateSourceAdmin, or the name of a configured source
	ValidFrom     time.Time
	StaleAt       time.Time // from then on nothing is priced by it
	Replaces      uuid.UUID // the rate of the pair before it; zero for the first
	JumpConfirmed bool      // two officers agreed it
	CreatedBy     uuid.UUID // zero for a rate from a source
	CreatedAt     time.Time
	ReplacedAt    time.Time // when the next one began; zero for the newest
}

// ErrRateStrays is the cause of a refusal of a rate that one person may not enter alone.
var ErrRateStrays = errors.New("the rate strays from the market")

// InForce reports whether amounts are priced by the rate at a moment.
func (r FXRate) InForce(at time.Time) bool {
	return !at.Before(r.ValidFrom) && !r.Stale(at) && (r.ReplacedAt.IsZero() || at.Before(r.ReplacedAt))
}

// Mid is the middle of bid and ask. It is rounded up to the places of a rate, so that as a valuation it never counts
// too little against a limit.
func (r FXRate) Mid() decimal.Decimal {
	return r.Bid.Add(r.Ask).Div(decimal.New(2, 0)).RoundCeil(FXRatePlaces)
}

// Valuation is what a unit counts against limits: the higher of the rate's middle and the value that two officers agreed (zero for
// none), but not less than the entered valuation (zero for none) minus MaxValuationDiscount.
func (r FXRate) Valuation(entered, agreed decimal.Decimal) decimal.Decimal {
	return decimal.Max(r.Mid(), agreed, MinPurchaseRate(entered))
}

// MaxSaleRate is the most that the house pays for a unit by a quote, given the valuation that two officers agreed to.
// One officer alone enters a rate.
func MaxSaleRate(agreed decimal.Decimal) decimal.Decimal {
	return agreed.Mul(decimal.New(basisPoints+MaxSalePremium, -4)).RoundFloor(FXRatePlaces)
}

// MinPurchaseRate is the least that the house takes for a unit by a quote, likewise. Valuations are agreed with some room above the
// market, so it is as far below as a rate may be.
func MinPurchaseRate(agreed decimal.Decimal) decimal.Decimal {
	return agreed.Mul(decimal.New(basisPoints-MaxValuationDiscount, -4)).RoundCeil(FXRatePlaces)
}

// RateNotNewer is the rule code for a rate that does not begin after the last one.
const RateNotNewer = "not_newer"

// Stale reports whether the rate is too old to price anything.
func (r FXRate) Stale(at time.Time) bool { return !at.Before(r.StaleAt) }

// Jump is the distance to another rate, in basis points rounded up: the larger of the changes of bid and ask.
func (r FXRate) Jump(from FXRate) int64 {
	way := func(is, was decimal.Decimal) decimal.Decimal {
		q, rest := is.Sub(was).Abs().Mul(decimal.New(basisPoints, 0)).QuoRem(was, 0)
		if rest.IsPositive() {
			q = q.Add(decimal.New(1, 0))
		}
		return q
	}
	return decimal.Max(way(r.Bid, from.Bid), way(r.Ask, from.Ask)).IntPart()
}

// Validate checks a new rate on its own at the time of its entry. CodeInvalid names the field.
func (r FXRate) Validate(now time.Time) error {
	var bad []FieldError
	fail := func(pointer, code, message string) {
		bad = append(bad, FieldError{Pointer: pointer, Code: code, Message: message})
	}
	if !r.Base.Valid() || r.Base.Fiat() {
		fail("/base", "enum", "must be USDT, USDC, ETH, SOL or TRX")
	}
	if r.Quote != money.KES {
		fail("/quote", "enum", "must be KES")
	}
	if !ValidRateSource(r.Source) {
		fail("/source", "format", "must be a short name in small letters")
	}
	bidOK, askOK := rateFits(r.Bid), rateFits(r.Ask)
	if !bidOK {
		fail("/bid", "out_of_range", fmt.Sprintf("must be above zero, with at most %d decimal places", FXRatePlaces))
	}
	switch {
	case !askOK:
		fail("/ask", "out_of_range", fmt.Sprintf("must be above zero, with at most %d decimal places", FXRatePlaces))
	case !bidOK:
	case r.Ask.LessThan(r.Bid):
		fail("/ask", "out_of_range", "must not be below the bid")
	case r.Ask.Sub(r.Bid).Mul(decimal.New(basisPoints, 0)).GreaterThan(r.Bid.Mul(decimal.New(MaxRateSpread, 0))):
		fail("/ask", "out_of_range", fmt.Sprintf("must be at most %s above the bid", Percent(MaxRateSpread)))
	}
	life := r.StaleAt.Sub(r.ValidFrom)
	if life < MinRateLife || life > MaxRateLife {
		fail("/stale_after_seconds", "out_of_range", fmt.Sprintf("must be between %d and %d", int(MinRateLife.Seconds()), int(MaxRateLife.Seconds())))
	}
	switch {
	case r.ValidFrom.After(now):
		fail("/valid_from", "out_of_range", "must not be in the future")
	case r.Stale(now):
		fail("/valid_from", "stale", "is so long ago that the rate is already stale")
	}
	return Invalid(bad...)
}

func rateFits(d decimal.Decimal) bool {
	return d.IsPositive() && d.LessThan(decimal.New(1, money.MaxWholeDigits)) && d.Equal(d.Truncate(FXRatePlaces))
}

// Percent formats basis points: 150 is "1.5 %".
func Percent(points int64) string { return decimal.New(points, -2).String() + " %" }

// SourcedRates is the answer of a source: rates with both sides and their time, and the number of invalid lines.
type SourcedRates struct {
	Rates  []FXRate
	Broken int
}
