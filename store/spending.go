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

// limitRow is the limits of a role or a user.
type limitRow struct {
	Role           exchange.Role
	PerTransaction decimal.NullDecimal `db:"per_transaction"`
	PerDay         decimal.NullDecimal `db:"per_day"`
	PerMonth       decimal.NullDecimal `db:"per_month"`
}

func (r limitRow) limits() (exchange.SpendingLimits, error) {
	var l exchange.SpendingLimits
	for _, f := range []struct {
		from decimal.NullDecimal
		to   *money.Amount
	}{{r.PerTransaction, &l.PerTransaction}, {r.PerDay, &l.PerDay}, {r.PerMonth, &l.PerMonth}} {
		if !f.from.Valid {
			continue
		}
		var err error
		if *f.to, err = amountOf(money.KES, f.from.Decimal); err != nil {
			return l, err
		}
	}
	return l, nil
}

// nullAmount is an amount as a nullable column has it; one without an asset is NULL.
func nullAmount(m money.Amount) decimal.NullDecimal {
	return decimal.NullDecimal{Decimal: m.Decimal(), Valid: m.Asset() != ""}
}

const limitColumns = `per_transaction, per_day, per_month`

const readRoleLimits = `SELECT role, ` + limitColumns + ` FROM role_limits WHERE role = $1`

const readUserLimits = `SELECT ` + limitColumns + ` FROM user_limits WHERE user_id = $1`

// limitUse is a value that is to count against a user's limits.
type limitUse struct {
	userID     uuid.UUID
	role       exchange.Role
	objectType string
	objectID   uuid.UUID
	value      money.Amount // in shillings
}

const spentSince = `
SELECT coalesce(sum(value) FILTER (WHERE used_at >= $2), 0) AS day, coalesce(sum(value), 0) AS month
FROM limit_uses WHERE user_id = $1 AND used_at >= $3 AND released_at IS NULL`

const insertUse = `INSERT INTO limit_uses (object_type, object_id, user_id, value, used_at) VALUES ($1, $2, $3, $4, $5)`

// useLimit counts a value against its user's limits, or refuses it with CodeLimitReached. The caller must
// hold the user's row (lockCustomer): otherwise two requests at once could both find room for one.
func (t unitTx) useLimit(ctx context.Context, u limitUse) error {
	limits, err := t.limitsOf(ctx, u.userID, u.role)
	if err != nil {
		return err
	}
	now := t.s.now()
	var r struct{ Day, Month decimal.Decimal }
	if err := t.get(ctx, &r, spentSince, u.userID, exchange.DayOf(now), exchange.MonthOf(now)); err != nil {
		return err
	}
	var spent exchange.Spent
	if spent.Day, err = amountOf(money.KES, r.Day); err != nil {
		return err
	}
	if spent.Month, err = amountOf(money.KES, r.Month); err != nil {
		return err
	}
	if err := limits.Admit(u.value, spent); err != nil {
		return err
	}
	return t.one(ctx, insertUse, u.objectType, u.objectID, u.userID, u.value.Decimal(), now)
}

// limitsOf is what holds for a user: its own limits where it has some, its role's otherwise.
func (t unitTx) limitsOf(ctx context.Context, userID uuid.UUID, role exchange.Role) (exchange.SpendingLimits, error) {
	var byRole limitRow
	if err := t.get(ctx, &byRole, readRoleLimits, role); err != nil {
		return exchange.SpendingLimits{}, translate(err, "limit of the role")
	}
	general, err := byRole.limits()
	if err != nil {
		return general, err
	}
	var own []limitRow
	if err := t.all(ctx, &own, readUserLimits, userID); err != nil || len(own) == 0 {
		return general, err
	}
	l, err := own[0].limits()
	return l.Or(general), err
}

const releaseUse = `UPDATE limit_uses SET released_at = $3 WHERE object_type = $1 AND object_id = $2 AND released_at IS NULL`

// releaseLimit gives back what an object that moves nothing counted. An object that counted nothing is fine.
func (t unitTx) releaseLimit(ctx context.Context, objectType string, objectID uuid.UUID) error {
	_, err := t.exec(ctx, releaseUse, objectType, objectID, t.s.now())
	return err
}

// UserLimits are the limits of one user: those that an admin gave it, and those that hold in the end.
type UserLimits struct{ Own, Effective exchange.SpendingLimits }

// LimitsOf reads the limits of a user.
func (s *Store) LimitsOf(ctx context.Context, u exchange.User) (UserLimits, error) {
	var r limitRow
	if err := s.read(ctx, &r, readRoleLimits, u.Role); err != nil {
		return UserLimits{}, translate(err, "limit of the role")
	}
	general, err := r.limits()
	if err != nil {
		return UserLimits{}, err
	}
	var own []limitRow
	if err := s.readAll(ctx, &own, readUserLimits, u.ID); err != nil || len(own) == 0 {
		return UserLimits{Effective: general}, translate(err, "limit")
	}
	l, err := own[0].limits()
	return UserLimits{Own: l, Effective: l.Or(general)}, err
}

const saveUserLimits = `
INSERT INTO user_limits (user_id, per_transaction, per_day, per_month, updated_by, updated_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (user_id) DO UPDATE SET per_transaction = $2, per_day = $3, per_month = $4, updated_by = $5, updated_at = $6`

// setUserLimits replaces what an admin gave a user; limits that are absent are the role's again.
func (t unitTx) setUserLimits(ctx context.Context, userID uuid.UUID, l exchange.SpendingLimits, by exchange.Principal) error {
	var before []limitRow
	if err := t.all(ctx, &before, readUserLimits, userID); err != nil {
		return err
	}
	err := t.one(ctx, saveUserLimits, userID, nullAmount(l.PerTransaction), nullAmount(l.PerDay), nullAmount(l.PerMonth), nullID(by.UserID), t.s.now())
	if err != nil {
		return err
	}
	var was any
	if len(before) == 1 {
		old, err := before[0].limits()
		if err != nil {
			return err
		}
		was = limitFact(old)
	}
	return t.audit(ctx, by, "user.limits_changed", "user", userID, was, limitFact(l))
}

func limitFact(l exchange.SpendingLimits) map[string]any {
	f := map[string]any{}
	for name, m := range map[string]money.Amount{"per_transaction": l.PerTransaction, "per_day": l.PerDay, "per_month": l.PerMonth} {
		if m.Asset() != "" {
			f[name] = m.String()
		}
	}
	return f
}

// RoleLimits reads the limits of every role.
func (s *Store) RoleLimits(ctx context.Context) (map[exchange.Role]exchange.SpendingLimits, error) {
	var rows []limitRow
	if err := s.readAll(ctx, &rows, `SELECT role, `+limitColumns+` FROM role_limits`); err != nil {
		return nil, translate(err, "limit")
	}
	all := map[exchange.Role]exchange.SpendingLimits{}
	for _, r := range rows {
		var err error
		if all[r.Role], err = r.limits(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

const readValuation = `SELECT asset, rate, set_by, set_at FROM valuations WHERE asset = $1`

const readValuations = `SELECT asset, rate, set_by, set_at FROM valuations ORDER BY asset`

// valuationRow is a row of valuations.
type valuationRow struct {
	Asset money.Asset
	Rate  decimal.Decimal
	SetBy uuid.NullUUID `db:"set_by"`
	SetAt time.Time     `db:"set_at"`
}

func (r valuationRow) valuation() (exchange.Valuation, error) {
	return exchange.Valuation{Asset: r.Asset, Rate: r.Rate, SetBy: r.SetBy.UUID, SetAt: r.SetAt.UTC()}, nil
}

// Valuations reads what the stablecoins count as.
func (s *Store) Valuations(ctx context.Context) ([]exchange.Valuation, error) {
	var rows []valuationRow
	if err := s.readAll(ctx, &rows, readValuations); err != nil {
		return nil, translate(err, "valuation")
	}
	return convert(rows, valuationRow.valuation)
}

// ruleRow is a row of approval_rules.
type ruleRow struct {
	OneAbove decimal.Decimal `db:"one_above"`
	TwoAbove decimal.Decimal `db:"two_above"`
}

func (r ruleRow) rule() (exchange.ApprovalRule, error) {
	one, err := amountOf(money.KES, r.OneAbove)
	if err != nil {
		return exchange.ApprovalRule{}, err
	}
	two, err := amountOf(money.KES, r.TwoAbove)
	return exchange.ApprovalRule{OneAbove: one, TwoAbove: two}, err
}

const readRule = `SELECT one_above, two_above FROM approval_rules WHERE object_type = 'transfer'`

// ApprovalRule reads above what values officers have to agree.
func (s *Store) ApprovalRule(ctx context.Context) (exchange.ApprovalRule, error) {
	var r ruleRow
	if err := s.read(ctx, &r, readRule); err != nil {
		return exchange.ApprovalRule{}, translate(err, "approval rule")
	}
	return r.rule()
}

// LimitPatch changes the house's limits. What is absent stays; a role's limits are replaced as a whole.
// Transfers that exist keep what they were created under.
type LimitPatch struct {
	Roles      map[exchange.Role]exchange.SpendingLimits
	Valuations map[money.Asset]decimal.Decimal
	Rule       *exchange.ApprovalRule
}

const saveRoleLimits = `UPDATE role_limits SET per_transaction = $2, per_day = $3, per_month = $4, updated_by = $5, updated_at = $6 WHERE role = $1`

const saveValuation = `UPDATE valuations SET rate = $2, set_by = $3, set_at = $4 WHERE asset = $1`

const saveRule = `UPDATE approval_rules SET one_above = $1, two_above = $2, updated_by = $3, updated_at = $4 WHERE object_type = 'transfer'`

// PatchLimits applies a change of the house's limits and records it.
func (s *Store) PatchLimits(ctx context.Context, p LimitPatch, by exchange.Principal) error {
	return s.inTx(ctx, "limit", func(t unitTx) error {
		now, who := t.s.now(), nullID(by.UserID)
		for _, role := range exchange.Roles() {
			l, given := p.Roles[role]
			if !given {
				continue
			}
			if err := t.one(ctx, saveRoleLimits, role, nullAmount(l.PerTransaction), nullAmount(l.PerDay), nullAmount(l.PerMonth), who, now); err != nil {
				return err
			}
			if err := t.audit(ctx, by, "limits.role_changed", "role", uuid.Nil, nil, map[string]any{"role": role, "limits": limitFact(l)}); err != nil {
				return err
			}
		}
		for _, asset := range money.Assets() {
			rate, given := p.Valuations[asset]
			if !given {
				continue
			}
			if err := t.one(ctx, saveValuation, asset, rate, who, now); err != nil {
				return err
			}
			if err := t.audit(ctx, by, "limits.valuation_changed", "valuation", uuid.Nil, nil, map[string]any{"asset": asset, "rate": rate.String()}); err != nil {
				return err
			}
		}
		if p.Rule == nil {
			return nil
		}
		if err := t.one(ctx, saveRule, p.Rule.OneAbove.Decimal(), p.Rule.TwoAbove.Decimal(), who, now); err != nil {
			return err
		}
		return t.audit(ctx, by, "limits.approval_rule_changed", "approval_rule", uuid.Nil, nil,
			map[string]any{"one_above": p.Rule.OneAbove.String(), "two_above": p.Rule.TwoAbove.String()})
	})
}

// valueOf is what an amount counts as, and at which rate.
func (t unitTx) valueOf(ctx context.Context, m money.Amount) (money.Amount, decimal.Decimal, error) {
	var rows []valuationRow
	if err := t.all(ctx, &rows, readValuation, m.Asset()); err != nil {
		return money.Amount{}, decimal.Zero, err
	}
	if len(rows) == 0 {
		return money.Amount{}, decimal.Zero, translate(sql.ErrNoRows, "valuation of "+string(m.Asset()))
	}
	v, err := rows[0].valuation()
	return v.Value(m), v.Rate, err
}
