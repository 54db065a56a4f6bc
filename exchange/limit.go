package exchange

import (
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// SpendingLimits bound what one user may send, in shillings at the house's valuation. A field without an asset is unlimited.
type SpendingLimits struct {
	PerTransaction money.Amount
	PerDay         money.Amount
	PerMonth       money.Amount
}

// Or fills absent limits from o.
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

// Max takes the higher of two limits in each field. A field that is unlimited in l stays so; one that is absent from o is
// ignored.
func (l SpendingLimits) Max(o SpendingLimits) SpendingLimits {
	higher := func(a, b money.Amount) money.Amount {
		if a.Asset() != "" && b.Asset() != "" && b.Cmp(a) > 0 {
			return b
		}
		return a
	}
	return SpendingLimits{higher(l.PerTransaction, o.PerTransaction), higher(l.PerDay, o.PerDay), higher(l.PerMonth, o.PerMonth)}
}

// Exceeds reports whether some limit is higher than o's, or unlimited where o has one.
func (l SpendingLimits) Exceeds(o SpendingLimits) bool {
	above := func(a, b money.Amount) bool { return b.Asset() != "" && (a.Asset() == "" || a.Cmp(b) > 0) }
	return above(l.PerTransaction, o.PerTransaction) || above(l.PerDay, o.PerDay) || above(l.PerMonth, o.PerMonth)
}

// Spent is what counts against a user's limits so far.
type Spent struct{ Day, Month money.Amount }

// Left is what may still be sent at once, today and this month: never more in a shorter period than in a longer one. A field without an
// asset is unlimited.
func (l SpendingLimits) Left(spent Spent) SpendingLimits {
	left := func(limit, used money.Amount) money.Amount {
		if limit.Asset() == "" {
			return limit
		}
		if rest := limit.Sub(used); rest.Positive() {
			return rest
		}
		return money.Zero(limit.Asset())
	}
	month := SpendingLimits{PerMonth: left(l.PerMonth, spent.Month), PerDay: left(l.PerDay, spent.Day), PerTransaction: l.PerTransaction}
	day := month.Min(SpendingLimits{PerDay: month.PerMonth, PerTransaction: month.PerMonth})
	return day.Min(SpendingLimits{PerTransaction: day.PerDay})
}

// OwnLimits are the limits of a user with what is used of each.
type OwnLimits struct {
	Own       SpendingLimits // set for the user by an admin
	Effective SpendingLimits
	Used      Spent          // by the user; for a merchant, by its subvendors too
	Merchant  *MerchantShare // of a subvendor: the limits that it shares
	Left      SpendingLimits
	Counts    []CountedLimit
	Fees      []CountedFees
}

// MerchantShare are the limits of a merchant, which its subvendors share.
type MerchantShare struct {
	Effective SpendingLimits
	Used      Spent
}

// CountedLimit is a limit on the number of something.
type CountedLimit struct {
	Name       LimitName
	Used, Most int
}

// CountedFees is the limit on what a network may take per day in Kenya for the payments of a user, or of a merchant with its
// subvendors.
type CountedFees struct {
	Network    Network
	Used, Most money.Amount
}

// LimitName names a limit on the number of something.
type LimitName string

// The names.
const (
	LimitOrdersWaiting  LimitName = "orders_waiting"            // own orders that wait for their payment
	LimitUnpaidSales    LimitName = "unpaid_sales"              // own sales of 24 hours that were not paid
	LimitCustomersSales LimitName = "unpaid_sales_of_customers" // the same, of sales that a merchant opened for its customers
	LimitTransfers      LimitName = "transfers"                 // transfers of a day in Kenya; of a merchant with its subvendors
	LimitWallets        LimitName = "wallets"
	LimitSubvendors     LimitName = "subvendors"
)

// LimitNames lists the names.
func LimitNames() []LimitName {
	return []LimitName{LimitOrdersWaiting, LimitUnpaidSales, LimitCustomersSales, LimitTransfers, LimitWallets, LimitSubvendors}
}

// Admit refuses a value that would exceed a limit: CodeLimitReached, with the limit in the message.
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

// AdmitOne refuses a value above the limit of a single transaction, with CodeLimitReached. When one transaction is counted
// in parts, pass the whole.
func (l SpendingLimits) AdmitOne(value money.Amount) error {
	if over(l.PerTransaction, value) {
		return Errorf(CodeLimitReached, "A single transaction may be worth %s KES at most; this one counts as %s.", l.PerTransaction, value)
	}
	return nil
}

// over reports whether a sum is beyond a limit; one without an asset is no limit.
func over(limit, sum money.Amount) bool { return limit.Asset() != "" && sum.Cmp(limit) > 0 }

// kenya is the UTC offset by which days and months of limits are counted. Kenya has no summer time.
const kenya = 3 * time.Hour

// DayOf is the beginning of the day in Kenya in which a moment lies.
func DayOf(at time.Time) time.Time {
	return KenyanDay(at).Add(-kenya)
}

// KenyanDay is the calendar day of a moment in Kenya, at midnight UTC.
func KenyanDay(at time.Time) time.Time { return at.UTC().Add(kenya).Truncate(24 * time.Hour) }

// MonthOf is the beginning of the month in Kenya in which a moment lies.
func MonthOf(at time.Time) time.Time {
	y, m, _ := at.UTC().Add(kenya).Date()
	return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC).Add(-kenya)
}

// Valuation is the rate at which an amount of a stablecoin counts against limits. An admin enters it. It is not a price: no
// payment uses it.
type Valuation struct {
	Asset money.Asset
	Rate  decimal.Decimal // KES per unit
	// Agreed is the last value that two officers agreed; zero before the first time. A raise by one is no agreement, nor is the
	// value that came with the schema.
	Agreed decimal.Decimal
	SetBy  uuid.UUID // zero for the initial one
	SetAt  time.Time
}

// Value is what an amount counts as, rounded up to the cent.
func (v Valuation) Value(m money.Amount) money.Amount { return m.MulCeil(money.KES, v.Rate) }

// ApprovalRule sets how many officers must approve an external transfer or a refund in crypto: one above OneAbove, two above
// TwoAbove. A bank payment always needs one officer; its rule has the same value in both fields.
type ApprovalRule struct {
	OneAbove money.Amount
	TwoAbove money.Amount
}

// Required returns the number of officers for a value.
func (r ApprovalRule) Required(value money.Amount) int {
	switch {
	case value.Cmp(r.TwoAbove) > 0:
		return 2
	case value.Cmp(r.OneAbove) > 0:
		return 1
	}
	return 0
}

// Looser reports whether the rule asks for fewer officers than another one, for some value.
func (r ApprovalRule) Looser(o ApprovalRule) bool {
	return r.OneAbove.Cmp(o.OneAbove) > 0 || r.TwoAbove.Cmp(o.TwoAbove) > 0
}
