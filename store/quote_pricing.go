package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const profileColumns = `p.id, p.scope, p.merchant_id, coalesce(p.asset, '') AS asset, coalesce(p.network, '') AS network, coalesce(p.method, '') AS method,
	p.version, p.fixed||' '||p.currency AS fixed, p.basis_points, p.minimum||' '||p.currency AS minimum, p.maximum||' '||p.currency AS maximum,
	p.spread_basis_points AS spread, p.retired, p.note, p.valid_from, p.created_by, p.created_at, fee_profile_end(p) AS ends_at`

// fillFees sets the amounts of a profile in the currency of its fee. A profile without one has none.
func fillFees(p *exchange.FeeProfile, currency money.Asset, fixed, minimum decimal.Decimal, maximum decimal.NullDecimal) error {
	if currency == "" {
		return nil
	}
	var err error
	if p.Fixed, err = amountOf(currency, fixed); err != nil {
		return err
	}
	if p.Minimum, err = amountOf(currency, minimum); err != nil || !maximum.Valid {
		return err
	}
	p.Maximum, err = amountOf(currency, maximum.Decimal)
	return err
}

func profileSnapshot(p exchange.FeeProfile) map[string]any {
	f := map[string]any{
		"id": p.ID, "scope": p.Scope,
		"profile_version": p.Version, "fixed": p.Fixed.String(), "basis_points": p.BasisPoints, "minimum": p.Minimum.String(),
		"spread_basis_points": p.Spread, "retired": p.Retired, "valid_from": p.ValidFrom,
	}
	if p.MerchantID != uuid.Nil {
		f["merchant_id"] = p.MerchantID
	}
	for name, value := range map[string]string{"asset": string(p.Asset), "network": string(p.Network), "method": p.Method} {
		if value != "" {
			f[name] = value
		}
	}
	if p.Maximum.Asset() != "" {
		f["maximum"] = p.Maximum.String()
	}
	return f
}

// lineArgs are the arguments of a query about a line of fee profiles: scope, merchant, asset, network, method.
func lineArgs(l exchange.FeeLine) []any {
	text := func(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }
	return []any{l.Scope, nullID(l.MerchantID), text(string(l.Asset)), text(string(l.Network)), text(l.Method)}
}

const (
	lastProfile = `SELECT coalesce(max(version), 0) FROM fee_profiles p WHERE p.scope = $1
    AND ROW(p.merchant_id, p.asset::text, p.network::text, p.method) IS NOT DISTINCT FROM ROW($2::uuid, $3::text, $4::text, $5::text)`
	// Serialises new versions of a scope; check_fee_profile takes the same lock.
	lockProfiles = `SELECT pg_advisory_xact_lock(hashtextextended('kivuko fee profiles ' || $1::text, 0))`
	isMerchant   = `SELECT EXISTS (SELECT FROM users WHERE id = $1 AND role = 'vendor')`
	profileTie   = `SELECT fee_profile_tie($1, $2, $3, $4, $5, $6)`
)

// checkLine refuses a version for somebody who is no merchant (CodeInvalid), and one that would be as close to some operations as
// another line (CodeConflict). The database refuses both.
func (t unitTx) checkLine(ctx context.Context, p exchange.FeeProfile) error {
	if p.MerchantID != uuid.Nil {
		var known bool
		if err := t.Get(ctx, &known, isMerchant, p.MerchantID); err != nil {
			return err
		}
		if err := require(known, "/merchant_id", "not_found", "must be the id of a merchant"); err != nil {
			return err
		}
	}
	if p.Retired {
		return nil
	}
	var other uuid.NullUUID
	if err := t.Get(ctx, &other, profileTie, append(lineArgs(p.FeeLine), p.ValidFrom)...); err != nil || !other.Valid {
		return err
	}
	return exchange.Errorf(exchange.CodeConflict, "Fee profile %s would be as close to some operations as this one. Name more or less of asset, network and method, "+
		"or retire its line first.", other.UUID)
}

const insertProfile = `
INSERT INTO fee_profiles (id, scope, merchant_id, asset, network, method, version, fixed, basis_points, minimum, maximum, spread_basis_points, retired, note,
    valid_from, created_by, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`

// insertProfile stores the next version of a line.
func (t unitTx) insertProfile(ctx context.Context, p exchange.FeeProfile, by exchange.Principal) error {
	if err := p.Validate(p.CreatedAt); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, lockProfiles, p.Scope); err != nil {
		return err
	}
	if err := t.checkLine(ctx, p); err != nil {
		return err
	}
	line := lineArgs(p.FeeLine)
	if err := t.Get(ctx, &p.Version, lastProfile, line...); err != nil {
		return err
	}
	p.Version++
	args := append(append([]any{p.ID}, line...), p.Version, p.Fixed.Decimal(), p.BasisPoints, p.Minimum.Decimal(), nullAmount(p.Maximum),
		p.Spread, p.Retired, p.Note, p.ValidFrom, p.CreatedBy, p.CreatedAt)
	if err := t.One(ctx, insertProfile, args...); err != nil {
		return err
	}
	return t.record(ctx, auditEvent{by: by, object: "fee_profile", id: p.ID, name: "fee_profile.entered", after: profileSnapshot(p)})
}

// ProfileFilter narrows a list of fee profiles.
type ProfileFilter struct {
	Scope      exchange.FeeScope
	MerchantID uuid.UUID
	Asset      money.Asset
	Network    exchange.Network
	Method     string
}

// FeeProfiles pages through the versions of fee profiles, newest first, with their number.
func (s *Store) FeeProfiles(ctx context.Context, f ProfileFilter, p Page) ([]exchange.FeeProfile, int, error) {
	var w where
	w.eq("p.scope", string(f.Scope))
	w.id("p.merchant_id", f.MerchantID)
	w.eq("p.asset", string(f.Asset))
	w.eq("p.network", string(f.Network))
	w.eq("p.method", f.Method)
	return readPage[exchange.FeeProfile](ctx, s, "fee profile", list{columns: profileColumns, from: "fee_profiles p", where: w, order: "p.created_at DESC, p.id DESC"}, p)
}

const profileInForce = `SELECT ` + profileColumns + ` FROM fee_profiles p WHERE p.id = fee_profile_for($1, $2, $3, $4, $5, $6)`

// Keeps the fees of a scope as they are until the transaction ends, so that the database finds the same ones in force.
const keepProfiles = `SELECT pg_advisory_xact_lock_shared(hashtextextended('kivuko fee profiles ' || $1::text, 0))`

// feesFor is the fee profile of an operation of somebody in a role at a moment, with amounts in the fee's currency: the closest one in
// force, or the zero profile. Treasury officers move the house's own money, for which it pays itself no fee.
func (t unitTx) feesFor(ctx context.Context, op exchange.FeeLine, role exchange.Role, at time.Time) (exchange.FeeProfile, error) {
	none := exchange.ZeroProfile(op.Scope, op.Asset)
	if role == exchange.RoleTreasury {
		return none, nil
	}
	if _, err := t.Exec(ctx, keepProfiles, op.Scope); err != nil {
		return none, err
	}
	var found []exchange.FeeProfile
	if err := t.All(ctx, &found, profileInForce, append(lineArgs(op), at)...); err != nil || len(found) == 0 {
		return none, err
	}
	return found[0].In(none.Currency()), nil
}

// FeeProfileFor is the fee profile of an operation now, with amounts in the fee's currency: the closest one in force, or the zero
// profile.
func (s *Store) FeeProfileFor(ctx context.Context, op exchange.FeeLine) (exchange.FeeProfile, error) {
	var p exchange.FeeProfile
	err := s.inTx(ctx, "fee profile", func(t unitTx) error {
		var err error
		p, err = t.feesFor(ctx, op, exchange.RoleCustomer, t.s.now())
		return err
	})
	return p, err
}
