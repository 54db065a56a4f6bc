package exchange

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// MomoTerms are the mobile money operator's limits and charges from a time on. All amounts are KES, and all but the charges
// are whole shillings. Terms in force never change: later terms replace them.
type MomoTerms struct {
	ID        uuid.UUID
	ValidFrom time.Time
	// MinPrompt and MaxPrompt bound one collection, MinPayout and MaxPayout one payout.
	MinPrompt, MaxPrompt money.Amount
	MinPayout, MaxPayout money.Amount
	PayeeDay             money.Amount // the most that a payee can be paid in a day
	Tariff               []TariffBand // what the operator charges us for a payout, ascending and without gaps
	ChangeID             uuid.UUID    // the change that two officers agreed to; zero for the first terms
	EnteredAt            time.Time
}

// TariffBand is one band of the operator's tariff: a payout above the previous band's UpTo, and at most this UpTo, costs
// Charge.
type TariffBand struct {
	UpTo   money.Amount
	Charge money.Amount
}

// Limits of the operator's terms as we keep them.
const (
	MaxTariffBands   = 50
	MaxTermsAhead    = 366 * 24 * time.Hour // how far ahead terms may be entered
	maxTariffCharge  = 999_999              // KES
	maxTermsShilling = 999_999_999
)

// Charge returns what the operator charges for a payout of that amount. It returns CodeInternal when the tariff ends below
// the amount, which Check rules out for every allowed payout.
func (t MomoTerms) Charge(payout money.Amount) (money.Amount, error) {
	for _, b := range t.Tariff {
		if payout.Cmp(b.UpTo) <= 0 {
			return b.Charge, nil
		}
	}
	return money.Amount{}, Errorf(CodeInternal, "the operator's tariff has no band for %s", payout)
}

// AllowPayout refuses a payout that the operator would refuse: it must be whole shillings within the limits. The pointer
// names the request field with the amount.
func (t MomoTerms) AllowPayout(m money.Amount, pointer string) error {
	return within(m, t.MinPayout, t.MaxPayout, pointer)
}

// AllowPrompt refuses a collection that the operator would refuse.
func (t MomoTerms) AllowPrompt(m money.Amount, pointer string) error {
	return within(m, t.MinPrompt, t.MaxPrompt, pointer)
}

func within(m, least, most money.Amount, pointer string) error {
	if !m.Equal(m.FloorWhole()) {
		return Invalid(FieldError{Pointer: pointer, Code: "precision", Message: "must be a whole number of shillings"})
	}
	if m.Cmp(least) < 0 || m.Cmp(most) > 0 {
		return Invalid(FieldError{
			Pointer: pointer, Code: "out_of_range",
			Message: fmt.Sprintf("must be from %s to %s KES, the mobile money operator's limits", least, most),
		})
	}
	return nil
}

// Check returns the rules that new terms break, with JSON pointers into the request. now is the time of entry: terms can't
// begin in the past.
func (t MomoTerms) Check(now time.Time) error {
	var broken []FieldError
	bad := func(pointer, code, message string) {
		broken = append(broken, FieldError{Pointer: pointer, Code: code, Message: message})
	}
	if !t.ValidFrom.After(now) || t.ValidFrom.After(now.Add(MaxTermsAhead)) {
		bad("/valid_from", "out_of_range", fmt.Sprintf("must be in the future, at most %d days ahead", int(MaxTermsAhead/(24*time.Hour))))
	}
	for _, f := range []struct {
		pointer string
		amount  money.Amount
	}{
		{"/min_prompt", t.MinPrompt},
		{"/max_prompt", t.MaxPrompt},
		{"/min_payout", t.MinPayout},
		{"/max_payout", t.MaxPayout},
		{"/payee_day", t.PayeeDay},
	} {
		if f.amount.Asset() != money.KES || !f.amount.Positive() || !f.amount.Equal(f.amount.FloorWhole()) || f.amount.Decimal().GreaterThan(decimal.NewFromInt(maxTermsShilling)) {
			bad(f.pointer, "out_of_range", fmt.Sprintf("must be a whole number of shillings from 1 to %d", maxTermsShilling))
		}
	}
	if len(broken) > 0 {
		return Invalid(broken...)
	}
	if t.MinPrompt.Cmp(t.MaxPrompt) > 0 {
		bad("/max_prompt", "out_of_range", "must not be less than min_prompt")
	}
	if t.MinPayout.Cmp(t.MaxPayout) > 0 {
		bad("/max_payout", "out_of_range", "must not be less than min_payout")
	}
	if t.MaxPayout.Cmp(t.PayeeDay) > 0 {
		bad("/payee_day", "out_of_range", "must not be less than max_payout")
	}
	return Invalid(append(broken, t.checkTariff()...)...)
}

func (t MomoTerms) checkTariff() []FieldError {
	if len(t.Tariff) == 0 || len(t.Tariff) > MaxTariffBands {
		return []FieldError{{Pointer: "/tariff", Code: "out_of_range", Message: fmt.Sprintf("must have 1 to %d bands", MaxTariffBands)}}
	}
	var broken []FieldError
	below := money.Zero(money.KES)
	for i, b := range t.Tariff {
		at := fmt.Sprintf("/tariff/%d", i)
		if b.UpTo.Asset() != money.KES || !b.UpTo.Equal(b.UpTo.FloorWhole()) || b.UpTo.Decimal().GreaterThan(decimal.NewFromInt(maxTermsShilling)) ||
			b.UpTo.Cmp(below) <= 0 {
			return append(broken, FieldError{Pointer: at + "/up_to", Code: "out_of_range", Message: "must be a whole number of shillings above the previous band's"})
		}
		if b.Charge.Asset() != money.KES || b.Charge.Sign() < 0 || b.Charge.Decimal().GreaterThan(decimal.NewFromInt(maxTariffCharge)) {
			broken = append(broken, FieldError{Pointer: at + "/charge", Code: "out_of_range", Message: fmt.Sprintf("must be 0 to %d", maxTariffCharge)})
		}
		below = b.UpTo
	}
	if below.Cmp(t.MaxPayout) < 0 {
		broken = append(broken, FieldError{Pointer: "/tariff", Code: "out_of_range", Message: "must reach up to max_payout"})
	}
	return broken
}

// Equal reports whether two terms have the same values, regardless of who entered them.
func (t MomoTerms) Equal(o MomoTerms) bool {
	return t.MinPrompt.Equal(o.MinPrompt) && t.MaxPrompt.Equal(o.MaxPrompt) && t.MinPayout.Equal(o.MinPayout) && t.MaxPayout.Equal(o.MaxPayout) &&
		t.PayeeDay.Equal(o.PayeeDay) && slices.EqualFunc(t.Tariff, o.Tariff, func(a, b TariffBand) bool {
		return a.UpTo.Equal(b.UpTo) && a.Charge.Equal(b.Charge)
	})
}
