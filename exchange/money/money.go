// Package money holds amounts of the assets that Kivuko moves.
//
// An Amount is an asset and a decimal number of its main unit (dollars, shillings, TRX), never a float. It has at most as
// many decimal places as its asset, so any amount can be paid. Only methods that say so in their name round.
package money

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/shopspring/decimal"
)

// Asset is the symbol of something that can be owned: a stablecoin, a currency or a native coin.
type Asset string

// The assets that Kivuko knows. The symbol is the same on every network; token contracts are configuration of the chain
// drivers.
const (
	USDT Asset = "USDT"
	USDC Asset = "USDC"
	KES  Asset = "KES"
	TRX  Asset = "TRX"
	ETH  Asset = "ETH"
	SOL  Asset = "SOL"
)

// scales holds the decimal places of each asset: KES has cents, the stablecoins six places on all
// three networks, and the native coins the places of their smallest unit (sun, wei, lamport).
var scales = map[Asset]int32{USDT: 6, USDC: 6, KES: 2, TRX: 6, ETH: 18, SOL: 9}

// Assets lists the known assets in a fixed order.
func Assets() []Asset { return []Asset{USDT, USDC, KES, TRX, ETH, SOL} }

// Valid reports whether a is a known asset.
func (a Asset) Valid() bool { _, ok := scales[a]; return ok }

// Stablecoin reports whether a is one of the two tokens that Kivuko exchanges.
func (a Asset) Stablecoin() bool { return a == USDT || a == USDC }

// Fiat reports whether a is a currency of a state.
func (a Asset) Fiat() bool { return a == KES }

// Scale is the number of decimal places of a. It panics for an unknown asset, which can only be a
// programming error: assets from outside are checked with Valid.
func (a Asset) Scale() int32 {
	s, ok := scales[a]
	if !ok {
		panic(fmt.Sprintf("money: unknown asset %q", string(a)))
	}
	return s
}

// MaxWholeDigits bounds the digits before the decimal point, so that a day's sum fits in the database column.
const MaxWholeDigits = 15

// Why Parse refuses a text. These messages may be shown to users.
var (
	ErrEmpty     = errors.New("must not be empty")
	ErrSyntax    = errors.New("must be a plain decimal number such as 10 or 10.50, without sign, exponent, spaces or separators")
	ErrPrecision = errors.New("has too many decimal places")
	ErrTooLarge  = errors.New("has too many digits")
)

// Amount is a quantity of one asset. The zero value is no amount (IsZero is true, Asset is empty). Amounts may be negative
// inside the ledger; Parse returns none below zero.
type Amount struct {
	asset Asset
	value decimal.Decimal
}

// Zero is an amount of zero.
func Zero(a Asset) Amount { return Amount{asset: a} }

// New makes an amount from a decimal. It refuses one with more places than the asset has.
func New(a Asset, v decimal.Decimal) (Amount, error) {
	if !a.Valid() {
		return Amount{}, fmt.Errorf("unknown asset %q", string(a))
	}
	if !v.Equal(v.Truncate(a.Scale())) {
		return Amount{}, fmt.Errorf("%w: %s takes at most %d", ErrPrecision, a, a.Scale())
	}
	return Amount{asset: a, value: v}, nil
}

// Must is New for constants and tests; it panics where New fails.
func Must(a Asset, s string) Amount {
	v, err := decimal.NewFromString(s)
	if err != nil {
		panic(err)
	}
	m, err := New(a, v)
	if err != nil {
		panic(err)
	}
	return m
}

// FromUnits makes an amount from the asset's smallest unit (cents, sun, wei, lamport).
func FromUnits(a Asset, units *big.Int) Amount {
	return Amount{asset: a, value: decimal.NewFromBigInt(units, -a.Scale())}
}

// Parse reads an amount as clients send it: digits, at most one point with digits on both sides, at
// most the asset's decimal places. A sign, an exponent, NaN, spaces and other digits are refused.
func Parse(a Asset, s string) (Amount, error) {
	if s == "" {
		return Amount{}, ErrEmpty
	}
	v, err := ParseDecimal(s, a.Scale())
	if err != nil {
		return Amount{}, err
	}
	return Amount{asset: a, value: v}, nil
}

// ParseDecimal reads a plain non-negative decimal with at most the given places. Rates use it too.
func ParseDecimal(s string, places int32) (decimal.Decimal, error) {
	whole, fraction, point := strings.Cut(s, ".")
	if !digits(whole) || (point && !digits(fraction)) {
		return decimal.Decimal{}, ErrSyntax
	}
	if len(whole) > MaxWholeDigits {
		return decimal.Decimal{}, fmt.Errorf("%w: at most %d before the point", ErrTooLarge, MaxWholeDigits)
	}
	if len(fraction) > int(places) {
		return decimal.Decimal{}, fmt.Errorf("%w: at most %d", ErrPrecision, places)
	}
	return decimal.NewFromString(s)
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// Asset is the amount's asset.
func (m Amount) Asset() Asset { return m.asset }

// Decimal is the number in main units.
func (m Amount) Decimal() decimal.Decimal { return m.value }

// Units is the number in the asset's smallest unit.
func (m Amount) Units() *big.Int { return m.value.Shift(m.asset.Scale()).BigInt() }

// String is the number with all decimal places of its asset, without the symbol: "10.000000".
func (m Amount) String() string {
	if m.asset == "" {
		return "0"
	}
	return m.value.StringFixed(m.asset.Scale())
}

// Sign is -1, 0 or 1.
func (m Amount) Sign() int { return m.value.Sign() }

// IsZero reports whether the number is zero.
func (m Amount) IsZero() bool { return m.value.IsZero() }

// Positive reports whether the number is above zero.
func (m Amount) Positive() bool { return m.value.Sign() > 0 }

// Neg is the amount with the opposite sign.
func (m Amount) Neg() Amount { return Amount{m.asset, m.value.Neg()} }

// Add sums two amounts of one asset. Mixing assets panics: it can only be a programming error.
func (m Amount) Add(o Amount) Amount { m.same(o); return Amount{m.asset, m.value.Add(o.value)} }

// Sub subtracts o from m. Mixing assets panics.
func (m Amount) Sub(o Amount) Amount { m.same(o); return Amount{m.asset, m.value.Sub(o.value)} }

// Cmp compares two amounts of one asset as -1, 0 or 1. Mixing assets panics.
func (m Amount) Cmp(o Amount) int { m.same(o); return m.value.Cmp(o.value) }

// Equal reports whether asset and number are the same.
func (m Amount) Equal(o Amount) bool { return m.asset == o.asset && m.value.Equal(o.value) }

// CeilWhole rounds up to whole main units. The side that pays KES is rounded with it, because
// mobile money moves whole shillings.
func (m Amount) CeilWhole() Amount { return Amount{m.asset, m.value.Ceil()} }

// FloorWhole rounds down to whole main units; the side that receives KES is rounded with it.
func (m Amount) FloorWhole() Amount { return Amount{m.asset, m.value.Floor()} }

// MulFloor multiplies by a factor into asset a, rounded down to a's places.
func (m Amount) MulFloor(a Asset, factor decimal.Decimal) Amount {
	return Amount{a, m.value.Mul(factor).RoundFloor(a.Scale())}
}

// MulCeil multiplies by a factor into asset a, rounded up to a's places.
func (m Amount) MulCeil(a Asset, factor decimal.Decimal) Amount {
	return Amount{a, m.value.Mul(factor).RoundCeil(a.Scale())}
}

// DivFloor divides by a positive divisor into asset a, rounded down to a's places.
func (m Amount) DivFloor(a Asset, divisor decimal.Decimal) Amount {
	q, _ := m.value.QuoRem(divisor, a.Scale())
	return Amount{a, q}
}

// DivCeil divides by a positive divisor into asset a, rounded up to a's places.
func (m Amount) DivCeil(a Asset, divisor decimal.Decimal) Amount {
	q, rest := m.value.QuoRem(divisor, a.Scale())
	if rest.IsPositive() {
		q = q.Add(decimal.New(1, -a.Scale()))
	}
	return Amount{a, q}
}

func (m Amount) same(o Amount) {
	if m.asset != o.asset {
		panic(fmt.Sprintf("money: %s and %s can't be mixed", m.asset, o.asset))
	}
}

type wire struct {
	Asset Asset  `json:"asset"`
	Value string `json:"value"`
}

// MarshalJSON writes {"asset":"USDT","value":"10.000000"}, the form of workflow payloads.
func (m Amount) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{m.asset, m.String()})
}

// UnmarshalJSON reads what MarshalJSON writes and refuses anything else.
func (m *Amount) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	if w.Asset == "" {
		*m = Amount{}
		return nil
	}
	v, err := decimal.NewFromString(w.Value)
	if err != nil {
		return err
	}
	*m, err = New(w.Asset, v)
	return err
}
