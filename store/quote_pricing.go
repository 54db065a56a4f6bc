package store

import (
	"context"

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
	lastProfile = `SELECT coalesce(max(version), 0) FROM fee_profiles WHERE scope = $1 AND asset = $2`
	// Serialises new versions of a scope.
	lockProfiles = `SELECT pg_advisory_xact_lock(hashtextextended('kivuko fee profiles ' || $1::text || ' ' || $2::text, 0))`
)

const insertProfile = `
INSERT INTO fee_profiles (id, scope, asset, version, fixed, basis_points, minimum, maximum, spread_basis_points, note, valid_from, created_by, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

// insertProfile stores the next version of a scope's fee profile.
func (t unitTx) insertProfile(ctx context.Context, p exchange.FeeProfile, by exchange.Principal) error {
	if err := p.Validate(p.CreatedAt); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, lockProfiles, p.Scope, p.Asset); err != nil {
		return err
	}
	if err := t.Get(ctx, &p.Version, lastProfile, p.Scope, p.Asset); err != nil {
		return err
	}
	p.Version++
	err := t.One(ctx, insertProfile, p.ID, p.Scope, p.Asset, p.Version, p.Fixed.Decimal(), p.BasisPoints, p.Minimum.Decimal(), nullAmount(p.Maximum),
		p.Spread, p.Note, p.ValidFrom, p.CreatedBy, p.CreatedAt)
	if err != nil {
		return err
	}
	return t.record(ctx, auditEvent{by: by, object: "fee_profile", id: p.ID, name: "fee_profile.entered", after: profileSnapshot(p)})
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
