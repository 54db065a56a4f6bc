package exchange

import (
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// SpendingLimits bound what one user may send, in shillings by the house's valuation. A field without
// an asset is no limit.
type SpendingLimits struct {
	PerTransaction money.Amount
	PerDay         money.Amount
	PerMonth       money.Amount
}

// Or fills the limits that are absent from others.
func (l SpendingLimits) Or(o SpendingLimits) SpendingLimits {
	pick := func(a, b money.Amount) money.Amount {
		if a.Asset() == "" {
			return b
		}
		return a
	}
	return SpendingLimits{pick(l.PerTransaction, o.PerTransaction), pick(l.PerDay, o.PerDay), pick(l.PerMonth, o.PerMonth)}
}

// Min takes the lower of two limits in each field.
func (l SpendingLimits) Min(o SpendingLimits) SpendingLimits {
	lower := func(a, b money.Amount) money.Amount {
		if a.Asset() == "" || (b.Asset() != "" && b.Cmp(a) < 0) {
			return b
		}
		return a
	}
	return SpendingLimits{lower(l.PerTransaction, o.PerTransaction), lower(l.PerDay, o.PerDay), lower(l.PerMonth, o.PerMonth)}
}

// Max takes the higher of two limits in each field; one that is absent in l is none, one that is absent in o does
// not count.
func (l SpendingLimits) Max(o SpendingLimits) SpendingLimits {
	higher := func(a, b money.Amount) money.Amount {
		if a.Asset() != "" && b.Asset() != "" && b.Cmp(a) > 0 {
			return b
		}
		return a
	}
	return SpendingLimits{higher(l.PerTransaction, o.PerTransaction), higher(l.PerDay, o.PerDay), higher(l.PerMonth, o.PerMonth)}
}

// Exceeds tells whether some limit is higher than the other's, or lifted where the other has one.
func (l SpendingLimits) Exceeds(o SpendingLimits) bool {
	above := func(a, b money.Amount) bool { return b.Asset() != "" && (a.Asset() == "" || a.Cmp(b) > 0) }
	return above(l.PerTransaction, o.PerTransaction) || above(l.PerDay, o.PerDay) || above(l.PerMonth, o.PerMonth)
}

// Spent is what counts against a user's limits so far.
type Spent struct{ Day, Month money.Amount }

// Admit refuses a value that would go beyond a limit, with CodeLimitReached and the limit's name.
func (l SpendingLimits) Admit(value money.Amount, spent Spent) error {
	if err := l.AdmitOne(value); err != nil {
		return err
	}
	switch {
	case over(l.PerDay, spent.Day.Add(value)):
		return Errorf(CodeLimitReached, "At most %s KES may be sent in a day; %s are counted already and this counts as %s.", l.PerDay, spent.Day, value)
	case over(l.PerMonth, spent.Month.Add(value)):
		return Errorf(CodeLimitReached, "At most %s KES may be sent in a month; %s are counted already and this counts as %s.", l.PerMonth, spent.Month, value)
	}
	return nil
}

// AdmitOne refuses what a single transaction may not be worth, with CodeLimitReached. Of one that is counted in parts
// it holds for the whole.
func (l SpendingLimits) AdmitOne(value money.Amount) error {
	if over(l.PerTransaction, value) {
		return Errorf(CodeLimitReached, "A single transaction may be worth %s KES at most; this one counts as %s.", l.PerTransaction, value)
	}
	return nil
}

// over tells whether a sum is beyond a limit; one without an asset is no limit.
func over(limit, sum money.Amount) bool { return limit.Asset() != "" && sum.Cmp(limit) > 0 }

// kenya is the time by which days and months of limits are counted. It has no summer time.
const kenya = 3 * time.Hour

// DayOf is the beginning of the day in Kenya in which a moment lies.
func DayOf(at time.Time) time.Time {
	return at.UTC().Add(kenya).Truncate(24 * time.Hour).Add(-kenya)
}

// MonthOf is the beginning of the month in Kenya in which a moment lies.
func MonthOf(at time.Time) time.Time {
	y, m, _ := at.UTC().Add(kenya).Date()
	return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC).Add(-kenya)
}

// Valuation is what the house counts a stablecoin as when it holds an amount against a limit. An admin
// enters it. It is no price: nobody is paid by it.
type Valuation struct {
	Asset money.Asset
	Rate  decimal.Decimal // KES per unit
	SetBy uuid.UUID       // zero for the one that the service began with
	SetAt time.Time
}

// Value is what an amount counts as, rounded up to the cent.
func (v Valuation) Value(m money.Amount) money.Amount { return m.MulCeil(money.KES, v.Rate) }

// ApprovalRule says how many officers have to agree to an external transfer or a refund in crypto: one when it is worth
// more than OneAbove, two when it is worth more than TwoAbove. A payment by bank is confirmed by one in any case; both
// values of its rule are the same.
type ApprovalRule struct {
	OneAbove money.Amount
	TwoAbove money.Amount
}

// Required is the number of officers for a value.
func (r ApprovalRule) Required(value money.Amount) int {
	switch {
	case value.Cmp(r.TwoAbove) > 0:
		return 2
	case value.Cmp(r.OneAbove) > 0:
		return 1
	}
	return 0
}

// Looser tells whether the rule asks for fewer officers than another one, for some value.
func (r ApprovalRule) Looser(o ApprovalRule) bool {
	return r.OneAbove.Cmp(o.OneAbove) > 0 || r.TwoAbove.Cmp(o.TwoAbove) > 0
}
