package store

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// roleLimits are the limits of a role.
type roleLimits struct {
	Role exchange.Role
	exchange.SpendingLimits
}

// nullAmount is an amount as a nullable column; one without an asset is NULL.
func nullAmount(m money.Amount) decimal.NullDecimal {
	return decimal.NullDecimal{Decimal: m.Decimal(), Valid: m.Asset() != ""}
}

const limitColumns = `per_transaction||' KES' AS per_transaction, per_day||' KES' AS per_day, per_month||' KES' AS per_month`

const readRoleLimits = `SELECT ` + limitColumns + ` FROM role_limits WHERE role = $1`

const readAllRoleLimits = `SELECT role, ` + limitColumns + ` FROM role_limits`

const readUserLimits = `SELECT ` + limitColumns + ` FROM user_limits WHERE user_id = $1`

// limitUse is a value to count against a user's limits.
type limitUse struct {
	userID     uuid.UUID
	role       exchange.Role
	objectType string
	objectID   uuid.UUID
	value      money.Amount // in shillings
	whole      money.Amount // the transaction's total value, where value is only an increase; else zero
}

// The spent amounts are summed only where a daily or monthly limit exists: a condition that does not use the rows is
// evaluated once. For a subvendor the second query finds its merchant.
const (
	roomLimits = `
SELECT coalesce(u.per_transaction, r.per_transaction)||' KES' AS per_transaction, coalesce(u.per_day, r.per_day)||' KES' AS per_day,
    coalesce(u.per_month, r.per_month)||' KES' AS per_month, s.day||' KES' AS day, s.month||' KES' AS month
FROM role_limits r JOIN users a ON a.id = $1 LEFT JOIN user_limits u ON u.user_id = `
	roomSums = ` CROSS JOIN LATERAL (
    SELECT coalesce(sum(value) FILTER (WHERE used_at >= $3), 0) AS day, coalesce(sum(value), 0) AS month
    FROM limit_uses WHERE used_at >= $4 AND released_at IS NULL AND coalesce(u.per_day, r.per_day, u.per_month, r.per_month) IS NOT NULL AND `
	roomOfUser     = roomLimits + `a.id` + roomSums + `user_id = a.id) s WHERE r.role = $2`
	roomOfMerchant = roomLimits + `coalesce(a.vendor_id, a.id)` + roomSums + `merchant_id = coalesce(a.vendor_id, a.id)) s WHERE r.role = $2`
)

const insertUse = `INSERT INTO limit_uses (object_type, object_id, user_id, value, used_at) VALUES ($1, $2, $3, $4, $5)`

// useLimit counts a value against the limits of its user, or refuses it with CodeLimitReached. Transfers of a merchant
// and its subvendors count against the merchant, and a subvendor's also against the subvendor. The caller must lock
// the rows of both (lockCustomer): otherwise two concurrent requests could use the same remainder.
func (t unitTx) useLimit(ctx context.Context, u limitUse) error {
	if u.role != exchange.RoleVendor { // a vendor's own uses are among its merchant's
		if err := t.admit(ctx, roomOfUser, u.role, u); err != nil {
			return err
		}
	}
	if u.role.Merchant() {
		if err := t.admit(ctx, roomOfMerchant, exchange.RoleVendor, u); err != nil {
			return err
		}
	}
	return t.One(ctx, insertUse, u.objectType, u.objectID, u.userID, u.value.Decimal(), t.s.now())
}

// admit refuses a use that would exceed limits.
func (t unitTx) admit(ctx context.Context, query string, role exchange.Role, u limitUse) error {
	now := t.s.now()
	var r struct {
		exchange.SpendingLimits
		exchange.Spent
	}
	if err := t.Get(ctx, &r, query, u.userID, role, exchange.DayOf(now), exchange.MonthOf(now)); err != nil {
		return translate(err, "limit of the role")
	}
	if err := r.Admit(u.value, r.Spent); err != nil || u.whole.Asset() == "" {
		return err
	}
	return r.AdmitOne(u.whole)
}

const releaseUse = `UPDATE limit_uses SET released_at = $3 WHERE object_type = $1 AND object_id = $2 AND released_at IS NULL`

// releaseLimit returns the value counted for an object that moves nothing. An object without a counted value is fine.
func (t unitTx) releaseLimit(ctx context.Context, objectType string, objectID uuid.UUID) error {
	_, err := t.Exec(ctx, releaseUse, objectType, objectID, t.s.now())
	return err
}

// UserLimits are the limits of one user: its own, set by an admin, and the effective ones.
type UserLimits struct{ Own, Effective exchange.SpendingLimits }

const readLimitsOf = `
SELECT coalesce(u.per_transaction, r.per_transaction)||' KES' AS per_transaction, coalesce(u.per_day, r.per_day)||' KES' AS per_day,
    coalesce(u.per_month, r.per_month)||' KES' AS per_month
FROM role_limits r LEFT JOIN user_limits u ON u.user_id = $1 WHERE r.role = $2`

// LimitsOf reads the limits of a user. A subvendor can't send more than its merchant as a whole.
func (s *Store) LimitsOf(ctx context.Context, u exchange.User) (UserLimits, error) {
	var l UserLimits
	var own []exchange.SpendingLimits
	err := s.db.All(ctx, &own, readUserLimits, u.ID)
	if err != nil {
		return l, translate(err, "limit")
	}
	if len(own) > 0 {
		l.Own = own[0]
	}
	if l.Effective, err = s.effective(ctx, u.ID, u.Role); err != nil || u.Role != exchange.RoleSubvendor {
		return l, err
	}
	merchant, err := s.effective(ctx, u.VendorID, exchange.RoleVendor)
	l.Effective = l.Effective.Min(merchant)
	return l, err
}

const readSpent = `
SELECT coalesce(sum(value) FILTER (WHERE used_at >= $3), 0)||' KES' AS day, coalesce(sum(value), 0)||' KES' AS month FROM limit_uses
WHERE used_at >= $4 AND released_at IS NULL AND (user_id = $1 OR merchant_id = $2)`

// SpentOf is what counts against the limits of a user, for a vendor including its subvendors.
func (s *Store) SpentOf(ctx context.Context, u exchange.User) (exchange.Spent, error) {
	var merchant uuid.NullUUID
	if u.Role == exchange.RoleVendor {
		merchant = nullID(u.ID)
	}
	var spent exchange.Spent
	now := s.now()
	if err := s.db.Get(ctx, &spent, readSpent, u.ID, merchant, exchange.DayOf(now), exchange.MonthOf(now)); err != nil {
		return exchange.Spent{}, translate(err, "limit")
	}
	return spent, nil
}

func (s *Store) effective(ctx context.Context, id uuid.UUID, role exchange.Role) (exchange.SpendingLimits, error) {
	return readOne[exchange.SpendingLimits](ctx, s.db, "limit of the role", readLimitsOf, id, role)
}

const saveUserLimits = `
INSERT INTO user_limits (user_id, per_transaction, per_day, per_month, updated_by, updated_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (user_id) DO UPDATE SET per_transaction = $2, per_day = $3, per_month = $4, updated_by = $5, updated_at = $6`

// changeUserLimits replaces a user's own limits; absent ones fall back to the role's. If one is above both the role's
// and the user's present limit, the whole change waits for a second officer.
func (t unitTx) changeUserLimits(ctx context.Context, u exchange.User, l exchange.SpendingLimits, by exchange.Principal) (exchange.ControlChange, error) {
	var none exchange.ControlChange
	was, err := t.ownLimits(ctx, u.ID)
	if err != nil {
		return none, err
	}
	var general exchange.SpendingLimits
	if err := t.Get(ctx, &general, readRoleLimits, u.Role); err != nil {
		return none, translate(err, "limit of the role")
	}
	if l.Or(general).Exceeds(general.Max(was)) {
		return t.propose(ctx, exchange.ControlUserLimits, u.ID, userTerms{termsOf(was)}, userTerms{termsOf(l)}, by)
	}
	return none, t.setUserLimits(ctx, u.ID, was, l, by)
}

// userTerms is a change of a user's own limits as stored and shown.
type userTerms struct {
	Limits limitTerms `json:"limits"`
}

// applyUserLimits applies a confirmed change of a user's limits.
func (t unitTx) applyUserLimits(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	var u exchange.User
	if err := t.Get(ctx, &u, lockUser, c.SubjectID); err != nil {
		return translate(err, "user")
	}
	was, err := t.ownLimits(ctx, c.SubjectID)
	if err != nil {
		return err
	}
	if err := unchanged(c, userTerms{termsOf(was)}); err != nil {
		return err
	}
	var terms userTerms
	if err := json.Unmarshal(c.Change, &terms); err != nil {
		return err
	}
	l, err := terms.Limits.limits()
	if err != nil {
		return err
	}
	return t.setUserLimits(ctx, c.SubjectID, was, l, by)
}

// ownLimits are the limits that an admin set for a user.
func (t unitTx) ownLimits(ctx context.Context, userID uuid.UUID) (exchange.SpendingLimits, error) {
	var own []exchange.SpendingLimits
	if err := t.All(ctx, &own, readUserLimits, userID); err != nil || len(own) == 0 {
		return exchange.SpendingLimits{}, err
	}
	return own[0], nil
}

func (t unitTx) setUserLimits(ctx context.Context, userID uuid.UUID, was, l exchange.SpendingLimits, by exchange.Principal) error {
	err := t.One(ctx, saveUserLimits, userID, nullAmount(l.PerTransaction), nullAmount(l.PerDay), nullAmount(l.PerMonth), nullID(by.UserID), t.s.now())
	if err != nil {
		return err
	}
	return t.audit(ctx, by, "user.limits_changed", "user", userID, limitSnapshot(was), limitSnapshot(l))
}

func limitSnapshot(l exchange.SpendingLimits) map[string]any {
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
	var rows []roleLimits
	if err := s.db.All(ctx, &rows, readAllRoleLimits); err != nil {
		return nil, translate(err, "limit")
	}
	all := map[exchange.Role]exchange.SpendingLimits{}
	for _, r := range rows {
		all[r.Role] = r.SpendingLimits
	}
	return all, nil
}

const readValuation = `SELECT asset, rate, agreed, set_by, set_at FROM valuations WHERE asset = $1`

const readValuations = `SELECT asset, rate, agreed, set_by, set_at FROM valuations ORDER BY asset`

// Valuations reads the valuations of the stablecoins.
func (s *Store) Valuations(ctx context.Context) ([]exchange.Valuation, error) {
	return readAll[exchange.Valuation](ctx, s.db, "valuation", readValuations)
}

// valueOf is the value of an amount for limits, and the rate used: the higher of the newest FX rate, if it is fresh, and the value
// that two officers agreed; without a fresh rate the entered valuation.
func (t unitTx) valueOf(ctx context.Context, m money.Amount) (money.Amount, decimal.Decimal, error) {
	var rows []exchange.Valuation
	if err := t.All(ctx, &rows, readValuation, m.Asset()); err != nil {
		return money.Amount{}, decimal.Zero, err
	}
	var entered exchange.Valuation
	for _, r := range rows {
		entered = r
	}
	market, fresh, err := t.freshRate(ctx, m.Asset())
	if err != nil {
		return money.Amount{}, decimal.Zero, err
	}
	if !fresh && len(rows) == 0 {
		return money.Amount{}, decimal.Zero, exchange.Errorf(exchange.CodeStateConflict,
			"There is neither a fresh rate nor a valuation of %s, so its amounts can't be checked against limits.", m.Asset())
	}
	v := exchange.Valuation{Asset: m.Asset(), Rate: entered.Rate}
	if fresh {
		v.Rate = market.Valuation(entered.Rate, entered.Agreed)
	}
	return v.Value(m), v.Rate, nil
}
