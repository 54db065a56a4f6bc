package exchange

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// MomoTerms are the mobile money operator's limits and charges from a time on. All amounts are KES, and all but
// charges are whole shillings. What holds once is never changed: later terms follow it.
type MomoTerms struct {
	ID        uuid.UUID
	ValidFrom time.Time
	// MinPrompt and MaxPrompt bound what a payer can be asked for, MinPayout and MaxPayout what is paid to one at a time.
	MinPrompt, MaxPrompt money.Amount
	MinPayout, MaxPayout money.Amount
	PayeeDay             money.Amount // the most that a payee can be paid in a day
	Tariff               []TariffBand // what the operator charges us for a payout, ascending and without gaps
	ChangeID             uuid.UUID    // who proposed and who agreed; zero for the first terms
	EnteredAt            time.Time
}

// TariffBand is a part of the operator's tariff: a payout above the band before and up to UpTo costs Charge.
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

// Charge is what the operator takes for a payout of that amount. CodeInternal when the tariff does not reach so far,
// which Check rules out for what may be paid out.
func (t MomoTerms) Charge(payout money.Amount) (money.Amount, error) {
	for _, b := range t.Tariff {
		if payout.Cmp(b.UpTo) <= 0 {
			return b.Charge, nil
		}
	}
	return money.Amount{}, Errorf(CodeInternal, "the operator's tariff does not reach up to %s", payout)
}

// AllowPayout refuses a payout that the operator would not make: it takes whole shillings within its limits. The pointer
// names the field that asked for it.
func (t MomoTerms) AllowPayout(m money.Amount, pointer string) error {
	return within(m, t.MinPayout, t.MaxPayout, pointer)
}

// AllowPrompt refuses a collection that the operator would not ask a payer for.
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
			Message: fmt.Sprintf("must be at least %s and at most %s KES, which is what the mobile money operator moves at a time", least, most),
		})
	}
	return nil
}

// Check tells which rules new terms break, with JSON pointers into the request that asks for them. now is the time at
// which they are entered: terms hold for nothing that began before.
func (t MomoTerms) Check(now time.Time) error {
	var broken []FieldError
	bad := func(pointer, code, message string) {
		broken = append(broken, FieldError{Pointer: pointer, Code: code, Message: message})
	}
	if !t.ValidFrom.After(now) || t.ValidFrom.After(now.Add(MaxTermsAhead)) {
		bad("/valid_from", "out_of_range", fmt.Sprintf("must lie in the future, at most %d days ahead", int(MaxTermsAhead/(24*time.Hour))))
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
			return append(broken, FieldError{Pointer: at + "/up_to", Code: "out_of_range", Message: "must be a whole number of shillings above that of the band before"})
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

// Equal tells whether two terms say the same, whoever entered them.
func (t MomoTerms) Equal(o MomoTerms) bool {
	return t.MinPrompt.Equal(o.MinPrompt) && t.MaxPrompt.Equal(o.MaxPrompt) && t.MinPayout.Equal(o.MinPayout) && t.MaxPayout.Equal(o.MaxPayout) &&
		t.PayeeDay.Equal(o.PayeeDay) && slices.EqualFunc(t.Tariff, o.Tariff, func(a, b TariffBand) bool {
		return a.UpTo.Equal(b.UpTo) && a.Charge.Equal(b.Charge)
	})
}
