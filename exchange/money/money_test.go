package money_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"kivuko/exchange/money"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asset money.Asset
		text  string
		want  string
		err   error
	}{
		{money.USDT, "10", "10.000000", nil},
		{money.USDT, "0.000001", "0.000001", nil},
		{money.KES, "1311.5", "1311.50", nil},
		{money.ETH, "0.000000000000000001", "0.000000000000000001", nil},
		{money.USDT, "007", "7.000000", nil},
		{money.USDT, "", "", money.ErrEmpty},
		{money.USDT, "0.0000001", "", money.ErrPrecision},
		{money.USDT, "1.0000000", "", money.ErrPrecision},
		{money.KES, "1.234", "", money.ErrPrecision},
		{money.USDT, strings.Repeat("9", 16), "", money.ErrTooLarge},
		{money.USDT, "-1", "", money.ErrSyntax},
		{money.USDT, "+1", "", money.ErrSyntax},
		{money.USDT, "1e3", "", money.ErrSyntax},
		{money.USDT, "NaN", "", money.ErrSyntax},
		{money.USDT, "Infinity", "", money.ErrSyntax},
		{money.USDT, ".5", "", money.ErrSyntax},
		{money.USDT, "5.", "", money.ErrSyntax},
		{money.USDT, "1,000", "", money.ErrSyntax},
		{money.USDT, " 1", "", money.ErrSyntax},
		{money.USDT, "1.2.3", "", money.ErrSyntax},
		{money.USDT, "0x10", "", money.ErrSyntax},
		{money.USDT, "１０", "", money.ErrSyntax},
		{money.USDT, "1\x00", "", money.ErrSyntax},
	} {
		got, err := money.Parse(c.asset, c.text)
		if !errors.Is(err, c.err) || (err == nil && got.String() != c.want) {
			t.Errorf("%s %q is %s, %v; want %s, %v", c.asset, c.text, got, err, c.want, c.err)
		}
	}
}

func assets() *rapid.Generator[money.Asset] { return rapid.SampledFrom(money.Assets()) }

func amounts(a money.Asset) *rapid.Generator[money.Amount] {
	return rapid.Custom(func(t *rapid.T) money.Amount {
		return money.FromUnits(a, big.NewInt(rapid.Int64().Draw(t, "units")))
	})
}

// Everything that is written can be read back, in every form that leaves the process.
func TestFormsAreReversible(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a := assets().Draw(rt, "asset")
		m := amounts(a).Draw(rt, "amount")
		b, err := json.Marshal(m)
		if err != nil {
			rt.Fatal(err)
		}
		var back money.Amount
		if err := json.Unmarshal(b, &back); err != nil || !back.Equal(m) {
			rt.Fatalf("%s came back as %s, %v", b, back, err)
		}
		if units := money.FromUnits(a, m.Units()); !units.Equal(m) {
			rt.Fatalf("%s came back from units as %s", m, units)
		}
		if m.Sign() < 0 || len(strings.TrimLeft(m.Units().String(), "0")) > money.MaxWholeDigits {
			return
		}
		if read, err := money.Parse(a, m.String()); err != nil || !read.Equal(m) {
			rt.Fatalf("%s was read as %s, %v", m, read, err)
		}
	})
}

func TestJSONRefusesWhatItNeverWrote(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"asset":"USDT","value":"0.0000001"}`, `{"asset":"DOGE","value":"1"}`, `{"asset":"USDT","value":"x"}`, `{"asset":"USDT","value":1}`, `5`} {
		var m money.Amount
		if err := json.Unmarshal([]byte(text), &m); err == nil {
			t.Errorf("%s was read as %s %s", text, m, m.Asset())
		}
	}
	var none money.Amount
	b, err := json.Marshal(none)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &none); err != nil || none.Asset() != "" || !none.IsZero() {
		t.Errorf("nothing came back as %s %s, %v", none, none.Asset(), err)
	}
}

// Rounding goes in the direction of the method's name and by less than one unit; sums lose nothing.
func TestRounding(t *testing.T) {
	t.Parallel()
	unit := decimal.New(1, -2)
	rapid.Check(t, func(rt *rapid.T) {
		m := money.FromUnits(money.USDT, big.NewInt(rapid.Int64Range(-1e15, 1e15).Draw(rt, "units")))
		rate := decimal.New(rapid.Int64Range(1, 1e12).Draw(rt, "rate"), -6)
		exact := m.Decimal().Mul(rate)
		low, high := m.MulFloor(money.KES, rate).Decimal(), m.MulCeil(money.KES, rate).Decimal()
		if low.GreaterThan(exact) || high.LessThan(exact) || exact.Sub(low).GreaterThanOrEqual(unit) || high.Sub(exact).GreaterThanOrEqual(unit) {
			rt.Fatalf("%s times %s is between %s and %s", m, rate, low, high)
		}
		if f, c := m.FloorWhole(), m.CeilWhole(); f.Cmp(m) > 0 || c.Cmp(m) < 0 || c.Sub(f).Cmp(money.Must(money.USDT, "1")) > 0 {
			rt.Fatalf("%s lies between %s and %s", m, f, c)
		}
		if other := money.FromUnits(money.USDT, big.NewInt(rapid.Int64Range(-1e15, 1e15).Draw(rt, "other"))); !m.Add(other).Sub(other).Equal(m) || m.Neg().Neg().Cmp(m) != 0 {
			rt.Fatalf("%s and %s", m, other)
		}
	})
}

func TestMixingAssetsPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("shillings were added to dollars")
		}
	}()
	money.Must(money.KES, "1").Add(money.Must(money.USDT, "1"))
}
