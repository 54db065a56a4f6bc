package exchange

import (
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
	MaxRateJump     = 500  // basis points that one side may move from the last rate without confirmation
	MaxRateSpread   = 1000 // basis points that the ask may lie above the bid
	// MaxValuationDiscount is how many basis points below the entered valuation a rate may count.
	MaxValuationDiscount = 2500
	// MaxSalePremium is how many basis points above the valuation that two persons agreed to the house pays for crypto.
	// The database knows it too.
	MaxSalePremium   = 1000
	MaxFeePoints     = 2000                 // basis points of a fee
	MaxSpreadPoints  = 2000                 // basis points by which a profile worsens a rate
	MaxProfileNote   = 200                  // characters
	MaxProfileLead   = 366 * 24 * time.Hour // how long before a version holds it may be entered
	basisPoints      = 10000                // in one
	FXRatePlaces     = RatePlaces
	RateSourceAdmin  = "admin"
	maxRateSourceLen = 40
)

var rateSource = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// ValidRateSource tells whether a name can stand for where rates come from.
func ValidRateSource(s string) bool { return len(s) <= maxRateSourceLen && rateSource.MatchString(s) }

// FXRate is what one unit of a crypto asset cost in a currency, from a moment on. It is never changed; a
// new one follows it. Each follows exactly one other, so that the rates of a pair are one line.
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
	JumpConfirmed bool      // somebody saw how far it is from that rate and meant it
	CreatedBy     uuid.UUID // zero for a rate from a source
	CreatedAt     time.Time
	ReplacedAt    time.Time // when the next one began; zero for the newest
}

// InForce tells whether amounts are priced by the rate at a moment.
func (r FXRate) InForce(at time.Time) bool {
	return !at.Before(r.ValidFrom) && !r.Stale(at) && (r.ReplacedAt.IsZero() || at.Before(r.ReplacedAt))
}

// Mid lies between bid and ask, rounded up to the places of a rate: where it is a valuation, limits err
// towards less.
func (r FXRate) Mid() decimal.Decimal {
	return r.Bid.Add(r.Ask).Div(decimal.New(2, 0)).RoundCeil(FXRatePlaces)
}

// Valuation is what a unit counts as against limits by the rate: its middle, yet never less than a part of
// the valuation that was entered (zero for none), because a rate is entered with less ado than a limit.
func (r FXRate) Valuation(entered decimal.Decimal) decimal.Decimal {
	least := entered.Mul(decimal.New(basisPoints-MaxValuationDiscount, -4)).RoundCeil(FXRatePlaces)
	return decimal.Max(r.Mid(), least)
}

// MaxSaleRate is the most that the house pays for a unit by a quote, where two persons agreed what that is worth: a rate
// is one person's entry.
func MaxSaleRate(agreed decimal.Decimal) decimal.Decimal {
	return agreed.Mul(decimal.New(basisPoints+MaxSalePremium, -4)).RoundFloor(FXRatePlaces)
}

// RateNotNewer is the code of the rule that a rate breaks whose moment is not after the last one's.
const RateNotNewer = "not_newer"

// Stale tells whether nothing may be priced by the rate any more.
func (r FXRate) Stale(at time.Time) bool { return !at.Before(r.StaleAt) }

// Jump is how far the rate lies from another one, in basis points rounded up: the larger of the ways that
// bid and ask went.
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

// Validate checks what a rate must be by itself at the moment of its entry. CodeInvalid names the field.
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
		fail("/ask", "out_of_range", fmt.Sprintf("must not lie more than %s above the bid", Percent(MaxRateSpread)))
	}
	life := r.StaleAt.Sub(r.ValidFrom)
	if life < MinRateLife || life > MaxRateLife {
		fail("/stale_after_seconds", "out_of_range", fmt.Sprintf("must be between %d and %d", int(MinRateLife.Seconds()), int(MaxRateLife.Seconds())))
	}
	switch {
	case r.ValidFrom.After(now):
		fail("/valid_from", "out_of_range", "must not lie ahead")
	case r.Stale(now):
		fail("/valid_from", "stale", "lies so far back that the rate is stale already")
	}
	return Invalid(bad...)
}

func rateFits(d decimal.Decimal) bool {
	return d.IsPositive() && d.LessThan(decimal.New(1, money.MaxWholeDigits)) && d.Equal(d.Truncate(FXRatePlaces))
}

// Percent words basis points: 150 is "1.5 %".
func Percent(points int64) string { return decimal.New(points, -2).String() + " %" }

// FeeScope is what a fee profile prices.
type FeeScope string

// FeeTransfer is the scope of transfers. Another one is added together with the flow that charges it.
const FeeTransfer FeeScope = "transfer"

// Valid tells whether s is a known scope.
func (s FeeScope) Valid() bool { return s == FeeTransfer || s == FeeSale }

// FeeProfile is one version of what the house charges within a scope for an asset. Versions are never
// changed. Of those that have begun, the one with the highest number is in force. The zero value with a
// scope and an asset is the zero profile, which is in force until a version is entered.
type FeeProfile struct {
	ID          uuid.UUID // zero for the zero profile
	Scope       FeeScope
	Asset       money.Asset // what fixed, minimum and maximum are in, and what the fee is charged in
	Version     int         // from 1; 0 for the zero profile
	Fixed       money.Amount
	BasisPoints int64 // of the amount, beside the fixed part
	Minimum     money.Amount
	Maximum     money.Amount // without an asset: none
	Spread      int64        // basis points by which quotes are worse than the rate
	Note        string
	ValidFrom   time.Time
	CreatedBy   uuid.UUID
	CreatedAt   time.Time
	EndsAt      time.Time // when the first higher version begins; zero when there is none
}

// InForce tells whether the version is the one that is charged by at a moment.
func (p FeeProfile) InForce(at time.Time) bool {
	return !at.Before(p.ValidFrom) && (p.EndsAt.IsZero() || at.Before(p.EndsAt))
}

// ZeroProfile charges nothing.
func ZeroProfile(s FeeScope, a money.Asset) FeeProfile {
	return FeeProfile{Scope: s, Asset: a, Fixed: money.Zero(a), Minimum: money.Zero(a)}
}

// Fee is what the profile charges for an amount of its asset: the fixed part and the percentage, rounded
// up to the asset's places because the payer's side is, and within minimum and maximum.
func (p FeeProfile) Fee(amount money.Amount) money.Amount {
	fee := p.Fixed.Add(amount.MulCeil(p.Asset, decimal.New(p.BasisPoints, -4)))
	if fee.Cmp(p.Minimum) < 0 {
		fee = p.Minimum
	}
	if p.Maximum.Asset() != "" && fee.Cmp(p.Maximum) > 0 {
		fee = p.Maximum
	}
	return fee
}

// Validate checks a new version at the moment of its entry. CodeInvalid names the field.
func (p FeeProfile) Validate(now time.Time) error {
	var bad []FieldError
	fail := func(pointer, code, message string) {
		bad = append(bad, FieldError{Pointer: pointer, Code: code, Message: message})
	}
	if !p.Scope.Valid() {
		fail("/scope", "enum", "must be transfer or offramp")
	}
	if !p.Asset.Stablecoin() {
		fail("/asset", "enum", "must be USDT or USDC")
	}
	if p.Scope == FeeSale && (p.Fixed.Sign() != 0 || p.BasisPoints != 0 || p.Minimum.Sign() != 0 || p.Maximum.Asset() != "") {
		fail("/scope", "mismatch", "of an offramp has a spread and no fee")
	}
	if p.BasisPoints < 0 || p.BasisPoints > MaxFeePoints {
		fail("/basis_points", "out_of_range", fmt.Sprintf("must be between 0 and %d", MaxFeePoints))
	}
	if p.Spread < 0 || p.Spread > MaxSpreadPoints {
		fail("/spread_basis_points", "out_of_range", fmt.Sprintf("must be between 0 and %d", MaxSpreadPoints))
	}
	if p.Maximum.Asset() != "" && p.Maximum.Cmp(p.Minimum) < 0 {
		fail("/maximum", "out_of_range", "must not be below the minimum")
	}
	switch {
	case p.ValidFrom.Before(p.CreatedAt):
		fail("/valid_from", "out_of_range", "must not lie back: nothing is priced anew")
	case p.ValidFrom.After(now.Add(MaxProfileLead)):
		fail("/valid_from", "out_of_range", "must lie within a year")
	}
	return Invalid(bad...)
}
