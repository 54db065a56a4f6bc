package store

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const profileColumns = `p.id, p.scope, p.asset, p.version, p.fixed||' '||p.asset AS fixed, p.basis_points, p.minimum||' '||p.asset AS minimum,
	p.maximum||' '||p.asset AS maximum, p.spread_basis_points AS spread, p.note, p.valid_from,
	p.created_by, p.created_at,
	(SELECT min(n.valid_from) FROM fee_profiles n WHERE n.scope = p.scope AND n.asset = p.asset AND n.version > p.version) AS ends_at`

// fillFees sets the amounts of a profile in its asset.
func fillFees(p *exchange.FeeProfile, fixed, minimum decimal.Decimal, maximum decimal.NullDecimal) error {
	var err error
	if p.Fixed, err = amountOf(p.Asset, fixed); err != nil {
		return err
	}
	if p.Minimum, err = amountOf(p.Asset, minimum); err != nil || !maximum.Valid {
		return err
	}
	p.Maximum, err = amountOf(p.Asset, maximum.Decimal)
	return err
}

func profileSnapshot(p exchange.FeeProfile) map[string]any {
	f := map[string]any{
		"id": p.ID, "scope": p.Scope, "asset": p.Asset, "profile_version": p.Version, "fixed": p.Fixed.String(), "basis_points": p.BasisPoints,
		"minimum": p.Minimum.String(), "spread_basis_points": p.Spread, "valid_from": p.ValidFrom,
	}
	if p.Maximum.Asset() != "" {
		f["maximum"] = p.Maximum.String()
	}
	return f
}

const (
	readProfile = `SELECT ` + profileColumns + ` FROM fee_profiles p WHERE p.id = $1`
	lastProfile = `SELECT coalesce(max(version), 0) FROM fee_profiles WHERE scope = $1 AND asset = $2`
	// Serialises new versions of a scope.
	lockProfiles = `SELECT pg_advisory_xact_lock(hashtextextended('kivuko fee profiles ' || $1::text || ' ' || $2::text, 0))`
)

const insertProfile = `
INSERT INTO fee_profiles (id, scope, asset, version, fixed, basis_points, minimum, maximum, spread_basis_points, note, valid_from, created_by, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

// EnterProfile stores the next version of a scope's fee profile; without a start time it begins now. CodeInvalid names
// the wrong field. A repeated call with the same id returns the existing version.
func (s *Store) EnterProfile(ctx context.Context, p exchange.FeeProfile, by exchange.Principal) (exchange.FeeProfile, error) {
	entered := p
	err := s.inTx(ctx, "fee profile", func(t unitTx) error {
		var old []exchange.FeeProfile
		if err := t.All(ctx, &old, readProfile, p.ID); err != nil {
			return err
		}
		if len(old) > 0 {
			var err error
			if entered = old[0]; entered.CreatedBy != by.UserID || entered.Scope != p.Scope || entered.Asset != p.Asset {
				err = exchange.Errorf(exchange.CodeConflict, "The id belongs to another fee profile.")
			}
			return err
		}
		entered = p
		entered.CreatedAt, entered.CreatedBy = t.s.now(), by.UserID
		if entered.ValidFrom = p.ValidFrom.UTC().Truncate(time.Millisecond); p.ValidFrom.IsZero() {
			entered.ValidFrom = entered.CreatedAt
		}
		if err := entered.Validate(entered.CreatedAt); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, lockProfiles, p.Scope, p.Asset); err != nil {
			return err
		}
		if err := t.Get(ctx, &entered.Version, lastProfile, p.Scope, p.Asset); err != nil {
			return err
		}
		entered.Version++
		e := entered
		err := t.One(ctx, insertProfile, e.ID, e.Scope, e.Asset, e.Version, e.Fixed.Decimal(), e.BasisPoints, e.Minimum.Decimal(), nullAmount(e.Maximum),
			e.Spread, e.Note, e.ValidFrom, e.CreatedBy, e.CreatedAt)
		if err != nil {
			return err
		}
		return t.record(ctx, auditEvent{by: by, object: "fee_profile", id: e.ID, name: "fee_profile.entered", after: profileSnapshot(e)})
	})
	return entered, err
}

// ProfileFilter narrows a list of fee profiles.
type ProfileFilter struct {
	Scope exchange.FeeScope
	Asset money.Asset
}

// FeeProfiles pages through the versions of fee profiles, newest first, with their number.
func (s *Store) FeeProfiles(ctx context.Context, f ProfileFilter, p Page) ([]exchange.FeeProfile, int, error) {
	var w where
	w.eq("p.scope", string(f.Scope))
	w.eq("p.asset", string(f.Asset))
	return readPage[exchange.FeeProfile](ctx, s, "fee profile", list{columns: profileColumns, from: "fee_profiles p", where: w, order: "p.created_at DESC, p.id DESC"}, p)
}

const profileInForce = `SELECT ` + profileColumns + ` FROM fee_profiles p
WHERE p.scope = $1 AND p.asset = $2 AND p.valid_from <= $3 ORDER BY p.version DESC LIMIT 1`

// feesFor is the current fee profile of a role, or the zero profile until one is entered. Treasury officers move the
// house's own money, for which it pays itself no fee.
func (t unitTx) feesFor(ctx context.Context, scope exchange.FeeScope, a money.Asset, role exchange.Role) (exchange.FeeProfile, error) {
	if role == exchange.RoleTreasury {
		return exchange.ZeroProfile(scope, a), nil
	}
	var found []exchange.FeeProfile
	if err := t.All(ctx, &found, profileInForce, scope, a, t.s.now()); err != nil || len(found) == 0 {
		return exchange.ZeroProfile(scope, a), err
	}
	return found[0], nil
}
