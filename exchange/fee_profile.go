package exchange

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// Limits of fee profiles.
const (
	MaxFeePoints    = 2000                 // basis points of a fee
	MaxSpreadPoints = 2000                 // basis points by which a profile worsens a rate
	MaxProfileNote  = 200                  // characters
	MaxProfileLead  = 366 * 24 * time.Hour // how far ahead a version may be entered
)

// FeeScope is what a fee profile prices.
type FeeScope string

// The scopes.
const (
	FeePurchase   FeeScope = "onramp"
	FeeSale       FeeScope = "offramp"
	FeeTransfer   FeeScope = "transfer"
	FeeDeposit    FeeScope = "otc_deposit"
	FeeWithdrawal FeeScope = "otc_withdrawal"
	FeeSwap       FeeScope = "swap"
)

// The ways in which money comes or leaves, which a fee profile may be for.
const (
	FeeByMomo  = PaymentMethodMomo // by mobile money; for a deposit, we prompt the payer
	FeeByBank  = PaymentMethodBank
	FeeByC2B   = "c2b"   // the payer pays our number
	FeeByChain = "chain" // crypto to an address
)

// scopeTraits are the facts about a scope.
type scopeTraits struct {
	scope    FeeScope
	assets   []money.Asset // that its profiles may be for; in a swap, the one that is bought
	methods  []string
	inCrypto bool // the fee is taken in the asset itself, otherwise in shillings
}

var (
	stablecoins = []money.Asset{money.USDT, money.USDC}
	deskAssets  = []money.Asset{money.USDT, money.USDC, money.KES}
)

// feeScopes is the table of the scopes, in a fixed order. The database has the same table in fee_scopes.
var feeScopes = []scopeTraits{
	{scope: FeePurchase, assets: stablecoins, methods: []string{FeeByMomo}},
	{scope: FeeSale, assets: stablecoins, methods: []string{FeeByMomo, FeeByBank}},
	{scope: FeeTransfer, assets: stablecoins, inCrypto: true},
	{scope: FeeDeposit, assets: deskAssets, methods: []string{FeeByMomo, FeeByBank, FeeByC2B}},
	{scope: FeeWithdrawal, assets: deskAssets, methods: []string{FeeByMomo, FeeByBank, FeeByChain}},
	{scope: FeeSwap, assets: stablecoins, inCrypto: true},
}

// FeeScopes lists the scopes.
func FeeScopes() []FeeScope {
	all := make([]FeeScope, len(feeScopes))
	for i, t := range feeScopes {
		all[i] = t.scope
	}
	return all
}

func (s FeeScope) traits() (scopeTraits, bool) {
	i := slices.IndexFunc(feeScopes, func(t scopeTraits) bool { return t.scope == s })
	if i < 0 {
		return scopeTraits{}, false
	}
	return feeScopes[i], true
}

// Valid reports whether s is a known scope.
func (s FeeScope) Valid() bool {
	_, known := s.traits()
	return known
}

// FeeCurrency is the asset in which the fee of an operation with an asset is taken. It is empty where a profile of the scope
// does not name the asset that this depends on.
func (s FeeScope) FeeCurrency(asset money.Asset) money.Asset {
	if t, _ := s.traits(); t.inCrypto {
		return asset
	}
	return money.KES
}

// FeeLine is what a fee profile is for: the empty fields stand for all. A line has versions.
type FeeLine struct {
	Scope      FeeScope
	MerchantID uuid.UUID // a master merchant, whose subvendors it is for too
	Asset      money.Asset
	Network    Network
	Method     string
}

// Covers reports whether the line is for an operation, which is described by a line without empty fields that matter.
func (l FeeLine) Covers(op FeeLine) bool {
	return l.Scope == op.Scope && (l.MerchantID == uuid.Nil || l.MerchantID == op.MerchantID) && (l.Asset == "" || l.Asset == op.Asset) &&
		(l.Network == "" || l.Network == op.Network) && (l.Method == "" || l.Method == op.Method)
}

// Validate checks that the fields go together. CodeInvalid names the wrong ones.
func (l FeeLine) Validate() error {
	var bad []FieldError
	l.validate(func(pointer, code, message string) {
		bad = append(bad, FieldError{Pointer: pointer, Code: code, Message: message})
	})
	return Invalid(bad...)
}

func (l FeeLine) validate(fail func(pointer, code, message string)) {
	t, known := l.Scope.traits()
	if !known {
		fail("/scope", "enum", "must be onramp, offramp, transfer, otc_deposit, otc_withdrawal or swap")
		return
	}
	if l.Asset != "" && !slices.Contains(t.assets, l.Asset) {
		names := make([]string, len(t.assets))
		for i, a := range t.assets {
			names[i] = string(a)
		}
		fail("/asset", "enum", "must be "+orList(names))
	}
	if l.Network != "" && (!l.Network.Valid() || l.Asset == money.KES) {
		fail("/network", "enum", "must be a network on which the asset moves")
	}
	switch {
	case l.Method == "" || slices.Contains(t.methods, l.Method):
	case len(t.methods) == 0:
		fail("/method", "enum", "must be left out for this scope")
	default:
		fail("/method", "enum", "must be "+orList(t.methods))
	}
}

// orList joins words as in "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// FeeProfile is one version of the house's fees of a line. Versions never change. Of those that have begun, the one with the
// highest number is in force. Of the lines in force that cover an operation, the closest sets its fee: one for the merchant
// before one for all, then the one that names more of asset, network and method; two that would be equally close can't both be
// entered. The zero value with a scope is the zero profile, which is in force where no line is.
type FeeProfile struct {
	ID uuid.UUID // zero for the zero profile
	FeeLine
	Version     int          // from 1; 0 for the zero profile
	Fixed       money.Amount // this and the other amounts: in the fee's currency
	BasisPoints int64        // of the amount, added to the fixed part
	Minimum     money.Amount
	Maximum     money.Amount // without an asset: none
	Spread      int64        // basis points by which quotes are worse than the rate
	Retired     bool         // the line ends: from ValidFrom on, the next closest one applies
	Note        string
	ValidFrom   time.Time
	CreatedBy   uuid.UUID
	CreatedAt   time.Time
	EndsAt      time.Time // when the first higher version begins; zero when there is none
}

// InForce reports whether the version sets fees at a moment.
func (p FeeProfile) InForce(at time.Time) bool {
	return !p.Retired && !at.Before(p.ValidFrom) && (p.EndsAt.IsZero() || at.Before(p.EndsAt))
}

// Currency is the asset of the profile's amounts; empty for a percentage of whatever asset is sent.
func (p FeeProfile) Currency() money.Asset { return p.Fixed.Asset() }

// In is the profile with its amounts in a currency. One that has another keeps it.
func (p FeeProfile) In(currency money.Asset) FeeProfile {
	if p.Currency() == "" {
		p.Fixed, p.Minimum = money.Zero(currency), money.Zero(currency)
	}
	return p
}

// ZeroProfile charges nothing.
func ZeroProfile(s FeeScope, a money.Asset) FeeProfile {
	none := money.Zero(s.FeeCurrency(a))
	return FeeProfile{FeeLine: FeeLine{Scope: s, Asset: a}, Fixed: none, Minimum: none}
}

// Fee is what the profile charges for an amount of the fee's currency: the fixed part plus the percentage, within minimum and
// maximum. It is rounded up because the payer pays it.
func (p FeeProfile) Fee(amount money.Amount) money.Amount {
	fee := p.Fixed.Add(amount.MulCeil(amount.Asset(), decimal.New(p.BasisPoints, -4)))
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
	p.validate(fail)
	p.validateFees(fail)
	switch {
	case p.ValidFrom.Before(p.CreatedAt):
		fail("/valid_from", "out_of_range", "must not be in the past: existing prices do not change")
	case p.ValidFrom.After(now.Add(MaxProfileLead)):
		fail("/valid_from", "out_of_range", "must be within a year")
	}
	return Invalid(bad...)
}

func (p FeeProfile) validateFees(fail func(pointer, code, message string)) {
	free := p.Fixed.Sign() == 0 && p.BasisPoints == 0 && p.Minimum.Sign() == 0 && p.Maximum.Asset() == ""
	switch {
	case p.Retired && (!free || p.Spread != 0):
		fail("/retired", "mismatch", "of a line that ends leaves no fee and no spread")
	case p.Currency() == "" && (p.Fixed.Sign() != 0 || p.Minimum.Sign() != 0 || p.Maximum.Asset() != ""):
		fail("/asset", "required", "must be given with fixed, minimum or maximum: they are in the asset")
	}
	if p.BasisPoints < 0 || p.BasisPoints > MaxFeePoints {
		fail("/basis_points", "out_of_range", fmt.Sprintf("must be between 0 and %d", MaxFeePoints))
	}
	if p.Spread < 0 || p.Spread > MaxSpreadPoints {
		fail("/spread_basis_points", "out_of_range", fmt.Sprintf("must be between 0 and %d", MaxSpreadPoints))
	}
	if p.Maximum.Asset() != "" && p.Maximum.Asset() == p.Minimum.Asset() && p.Maximum.Cmp(p.Minimum) < 0 {
		fail("/maximum", "out_of_range", "must not be below the minimum")
	}
}
