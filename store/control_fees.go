package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// profileTerms is the next version of a line of fees, or the one that it replaces.
type profileTerms struct {
	ID          uuid.UUID         `json:"id"`
	Scope       exchange.FeeScope `json:"scope"`
	MerchantID  *uuid.UUID        `json:"merchant_id"`
	Asset       *money.Asset      `json:"asset"`
	Network     *exchange.Network `json:"network"`
	Method      *string           `json:"method"`
	Fixed       decimal.Decimal   `json:"fixed"`
	BasisPoints int64             `json:"basis_points"`
	Minimum     decimal.Decimal   `json:"minimum"`
	Maximum     *decimal.Decimal  `json:"maximum"`
	Spread      int64             `json:"spread_basis_points"`
	Retired     bool              `json:"retired"`
	Note        string            `json:"note"`
	ValidFrom   *time.Time        `json:"valid_from"` // nil: when it is confirmed
}

// given is a value that may be absent: nil for the zero value. taken is its opposite.
func given[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func taken[T any](v *T) T {
	var zero T
	if v == nil {
		return zero
	}
	return *v
}

func termsOfProfile(p exchange.FeeProfile) profileTerms {
	terms := profileTerms{
		ID: p.ID, Scope: p.Scope, MerchantID: given(p.MerchantID), Asset: given(p.Asset), Network: given(p.Network), Method: given(p.Method),
		Fixed: p.Fixed.Decimal(), BasisPoints: p.BasisPoints, Minimum: p.Minimum.Decimal(), Spread: p.Spread, Retired: p.Retired, Note: p.Note,
	}
	if p.Maximum.Asset() != "" {
		most := p.Maximum.Decimal()
		terms.Maximum = &most
	}
	if !p.ValidFrom.IsZero() {
		from := p.ValidFrom.UTC().Truncate(time.Millisecond)
		terms.ValidFrom = &from
	}
	return terms
}

func (p profileTerms) profile() (exchange.FeeProfile, error) {
	f := exchange.FeeProfile{
		ID: p.ID, FeeLine: exchange.FeeLine{Scope: p.Scope, MerchantID: taken(p.MerchantID), Asset: taken(p.Asset), Network: taken(p.Network), Method: taken(p.Method)},
		BasisPoints: p.BasisPoints, Spread: p.Spread, Retired: p.Retired, Note: p.Note,
	}
	if p.ValidFrom != nil {
		f.ValidFrom = *p.ValidFrom
	}
	most := decimal.NullDecimal{}
	if p.Maximum != nil {
		most = decimal.NullDecimal{Decimal: *p.Maximum, Valid: true}
	}
	return f, fillFees(&f, p.Scope.FeeCurrency(f.Asset), p.Fixed, p.Minimum, most)
}

const newestOfLine = `SELECT ` + profileColumns + ` FROM fee_profiles p WHERE p.scope = $1
    AND ROW(p.merchant_id, p.asset::text, p.network::text, p.method) IS NOT DISTINCT FROM ROW($2::uuid, $3::text, $4::text, $5::text)
ORDER BY p.version DESC LIMIT 1`

// ProposeProfile proposes the next version of a line of fees; without a start time it begins when it is confirmed. CodeInvalid
// names the wrong field; CodeConflict when another line would be as close to some operations.
func (s *Store) ProposeProfile(ctx context.Context, p exchange.FeeProfile, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	err := s.inTx(ctx, "fee profile", func(t unitTx) error {
		drafted := p
		drafted.CreatedAt = t.s.now()
		if p.ValidFrom.IsZero() {
			drafted.ValidFrom = drafted.CreatedAt
		}
		if err := drafted.Validate(drafted.CreatedAt); err != nil {
			return err
		}
		if err := t.checkLine(ctx, drafted); err != nil {
			return err
		}
		var found []exchange.FeeProfile
		if err := t.All(ctx, &found, newestOfLine, lineArgs(p.FeeLine)...); err != nil {
			return err
		}
		newest := exchange.FeeProfile{FeeLine: p.FeeLine}
		if len(found) > 0 {
			newest = found[0]
		}
		if err := require(!p.Retired || newest.Version > 0, "/retired", "mismatch", "must be false: there is no profile to end"); err != nil {
			return err
		}
		var err error
		proposed, err = t.propose(ctx, exchange.ControlFeeProfile, uuid.Nil, termsOfProfile(newest), termsOfProfile(p), by)
		return err
	})
	return proposed, err
}

// applyProfile stores a version that two officers agreed. One that should have begun meanwhile begins now.
func (t unitTx) applyProfile(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[profileTerms](c)
	if err != nil {
		return err
	}
	p, err := terms.profile()
	if err != nil {
		return err
	}
	p.CreatedAt, p.CreatedBy = t.s.now(), c.ProposedBy
	if p.ValidFrom.Before(p.CreatedAt) {
		p.ValidFrom = p.CreatedAt
	}
	return t.insertProfile(ctx, p, by)
}
