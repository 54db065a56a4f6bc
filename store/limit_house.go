package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// LimitPatch changes the house's limits. Absent fields stay; a role's limits are replaced as a whole. Existing
// transfers keep the limits of their creation.
type LimitPatch struct {
	Roles      map[exchange.Role]exchange.SpendingLimits
	Valuations map[money.Asset]decimal.Decimal
	Rules      map[exchange.ApprovalObject]exchange.ApprovalRule
	Rest       *exchange.DestinationRest // of new destinations; nil leaves it as it is

	IfVersions []int64 // the expected versions; none is any
}

func emptyPatch() LimitPatch {
	return LimitPatch{Roles: map[exchange.Role]exchange.SpendingLimits{}, Valuations: map[money.Asset]decimal.Decimal{}, Rules: rules{}}
}

func (p LimitPatch) empty() bool {
	return len(p.Roles) == 0 && len(p.Valuations) == 0 && len(p.Rules) == 0 && p.Rest == nil
}

// split separates what loosens the controls, compared with now, from the rest. A role, a valuation and a rule are
// never split.
func (p LimitPatch) split(now LimitPatch) (tighter, looser LimitPatch) {
	tighter.Roles, looser.Roles = parted(p.Roles, func(role exchange.Role, l exchange.SpendingLimits) bool { return l.Exceeds(now.Roles[role]) })
	tighter.Valuations, looser.Valuations = parted(p.Valuations, func(asset money.Asset, rate decimal.Decimal) bool {
		return rate.LessThan(now.Valuations[asset]) // a lower valuation loosens the limits
	})
	tighter.Rules, looser.Rules = parted(p.Rules, func(object exchange.ApprovalObject, r exchange.ApprovalRule) bool { return r.Looser(now.Rules[object]) })
	if p.Rest != nil && p.Rest.Looser(*now.Rest) {
		looser.Rest = p.Rest
	} else {
		tighter.Rest = p.Rest
	}
	return tighter, looser
}

// parted splits a part of a patch into what does not loosen the controls and what does.
func parted[K comparable, V any](part map[K]V, loosens func(K, V) bool) (tighter, looser map[K]V) {
	tighter, looser = map[K]V{}, map[K]V{}
	for k, v := range part {
		if loosens(k, v) {
			looser[k] = v
		} else {
			tighter[k] = v
		}
	}
	return tighter, looser
}

// of returns the fields that another patch names.
func (p LimitPatch) of(named LimitPatch) LimitPatch {
	kept := LimitPatch{Roles: only(p.Roles, named.Roles), Valuations: only(p.Valuations, named.Valuations), Rules: only(p.Rules, named.Rules)}
	if named.Rest != nil {
		kept.Rest = p.Rest
	}
	return kept
}

func only[K comparable, V any](part, named map[K]V) map[K]V {
	kept := map[K]V{}
	for k := range named {
		kept[k] = part[k]
	}
	return kept
}

// PatchLimits changes the house's limits. Tightening takes effect at once. Loosening waits for a second officer, and
// its change is returned; the change's id is zero when nothing waits.
func (s *Store) PatchLimits(ctx context.Context, p LimitPatch, by exchange.Principal) (exchange.ControlChange, error) {
	var waits exchange.ControlChange
	err := s.inTx(ctx, "limit", func(t unitTx) error {
		waits = exchange.ControlChange{}
		now, err := t.houseLimits(ctx)
		if err != nil {
			return err
		}
		stored, err := versionOf(ctx, t, houseLimitsVersion)
		if err != nil {
			return err
		}
		if err := expect(p.IfVersions, stored); err != nil {
			return err
		}
		tighter, looser := p.split(now)
		if err := t.saveHouseLimits(ctx, now, tighter, by); err != nil || looser.empty() {
			return err
		}
		waits, err = t.propose(ctx, exchange.ControlHouseLimits, uuid.Nil, now.of(looser).terms(), looser.terms(), by)
		return err
	})
	return waits, err
}

// applyHouseLimits applies a confirmed change of the house's limits.
func (t unitTx) applyHouseLimits(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	now, err := t.houseLimits(ctx)
	if err != nil {
		return err
	}
	var terms houseTerms
	if err := json.Unmarshal(c.Change, &terms); err != nil {
		return err
	}
	p, err := terms.patch()
	if err != nil {
		return err
	}
	if err := unchanged(c, now.of(p).terms()); err != nil {
		return err
	}
	return t.saveHouseLimits(ctx, now, p, by)
}

const lockRules = readRules + ` FOR UPDATE`

// houseLimits reads and locks all limits until the transaction ends.
func (t unitTx) houseLimits(ctx context.Context) (LimitPatch, error) {
	now := emptyPatch()
	var agreed []ruleRow
	err := t.All(ctx, &agreed, lockRules)
	if err != nil {
		return now, err
	}
	now.Rules = rulesOf(agreed)
	var roles []roleLimits
	if err := t.All(ctx, &roles, readAllRoleLimits); err != nil {
		return now, err
	}
	for _, r := range roles {
		now.Roles[r.Role] = r.SpendingLimits
	}
	var rates []exchange.Valuation
	if err := t.All(ctx, &rates, readValuations); err != nil {
		return now, err
	}
	for _, v := range rates {
		now.Valuations[v.Asset] = v.Rate
	}
	now.Rest = new(exchange.DestinationRest)
	return now, t.Get(ctx, now.Rest, readDestinationRest)
}

const saveRoleLimits = `UPDATE role_limits SET per_transaction = $2, per_day = $3, per_month = $4, updated_by = $5, updated_at = $6 WHERE role = $1`

const saveValuation = `UPDATE valuations SET rate = $2, set_by = $3, set_at = $4 WHERE asset = $1`

const saveRule = `UPDATE approval_rules SET one_above = $2, two_above = $3, updated_by = $4, updated_at = $5 WHERE object_type = $1`

// saveHouseLimits stores a patch of the present limits and records it.
func (t unitTx) saveHouseLimits(ctx context.Context, now, p LimitPatch, by exchange.Principal) error {
	at, who := t.s.now(), nullID(by.UserID)
	for _, role := range exchange.Roles() {
		l, given := p.Roles[role]
		if !given {
			continue
		}
		if err := t.One(ctx, saveRoleLimits, role, nullAmount(l.PerTransaction), nullAmount(l.PerDay), nullAmount(l.PerMonth), who, at); err != nil {
			return err
		}
		was, is := map[string]any{"role": role, "limits": limitSnapshot(now.Roles[role])}, map[string]any{"role": role, "limits": limitSnapshot(l)}
		if err := t.audit(ctx, by, "limits.role_changed", "role", uuid.Nil, was, is); err != nil {
			return err
		}
	}
	for _, asset := range money.Assets() {
		rate, given := p.Valuations[asset]
		if !given {
			continue
		}
		if err := t.One(ctx, saveValuation, asset, rate, who, at); err != nil {
			return err
		}
		was, is := map[string]any{"asset": asset, "rate": now.Valuations[asset].String()}, map[string]any{"asset": asset, "rate": rate.String()}
		if err := t.audit(ctx, by, "limits.valuation_changed", "valuation", uuid.Nil, was, is); err != nil {
			return err
		}
	}
	for _, object := range exchange.ApprovalObjects() {
		r, given := p.Rules[object]
		if !given {
			continue
		}
		if err := t.One(ctx, saveRule, object, r.OneAbove.Decimal(), r.TwoAbove.Decimal(), who, at); err != nil {
			return err
		}
		was, is := map[string]any{"object": object, "rule": ruleTermsOf(object, now.Rules[object])}, map[string]any{"object": object, "rule": ruleTermsOf(object, r)}
		if err := t.audit(ctx, by, "limits.approval_rule_changed", "approval_rule", uuid.Nil, was, is); err != nil {
			return err
		}
	}
	if p.Rest == nil {
		return nil
	}
	terms := restTermsOf(*p.Rest)
	if err := t.One(ctx, saveDestinationRest, terms.Rest, p.Rest.Above.Decimal(), who, at); err != nil {
		return err
	}
	return t.audit(ctx, by, "limits.destination_rest_changed", "destination_rest", uuid.Nil, restTermsOf(*now.Rest), terms)
}

// houseTerms is a change of the house's limits as stored and shown. The database's guards read it.
type houseTerms struct {
	Roles      map[exchange.Role]limitTerms          `json:"roles,omitempty"`
	Valuations map[money.Asset]string                `json:"valuations,omitempty"`
	Approvals  map[exchange.ApprovalObject]ruleTerms `json:"approvals,omitempty"`
	Rest       *restTerms                            `json:"new_destinations,omitempty"`
}

// limitTerms are spending limits; null means no limit.
type limitTerms struct {
	PerTransaction *string `json:"per_transaction"`
	PerDay         *string `json:"per_day"`
	PerMonth       *string `json:"per_month"`
}

// ruleTerms is an approval rule. The rule for bank payouts, which one officer always confirms, has only one value.
type ruleTerms struct {
	OneAbove string `json:"one_above,omitempty"`
	TwoAbove string `json:"two_above"`
}

func ruleTermsOf(object exchange.ApprovalObject, r exchange.ApprovalRule) ruleTerms {
	if object == exchange.ApproveBankPayout {
		return ruleTerms{TwoAbove: r.TwoAbove.String()}
	}
	return ruleTerms{r.OneAbove.String(), r.TwoAbove.String()}
}

func (r ruleTerms) rule() (exchange.ApprovalRule, error) {
	two, err := money.Parse(money.KES, r.TwoAbove)
	if err != nil || r.OneAbove == "" {
		return exchange.ApprovalRule{OneAbove: two, TwoAbove: two}, err
	}
	one, err := money.Parse(money.KES, r.OneAbove)
	return exchange.ApprovalRule{OneAbove: one, TwoAbove: two}, err
}

func termsOf(l exchange.SpendingLimits) limitTerms {
	text := func(m money.Amount) *string {
		if m.Asset() == "" {
			return nil
		}
		s := m.String()
		return &s
	}
	return limitTerms{text(l.PerTransaction), text(l.PerDay), text(l.PerMonth)}
}

func (l limitTerms) limits() (exchange.SpendingLimits, error) {
	var out exchange.SpendingLimits
	for _, f := range []struct {
		from *string
		to   *money.Amount
	}{{l.PerTransaction, &out.PerTransaction}, {l.PerDay, &out.PerDay}, {l.PerMonth, &out.PerMonth}} {
		if f.from == nil {
			continue
		}
		var err error
		if *f.to, err = money.Parse(money.KES, *f.from); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (p LimitPatch) terms() houseTerms {
	t := houseTerms{Roles: map[exchange.Role]limitTerms{}, Valuations: map[money.Asset]string{}, Approvals: map[exchange.ApprovalObject]ruleTerms{}}
	for role, l := range p.Roles {
		t.Roles[role] = termsOf(l)
	}
	for asset, rate := range p.Valuations {
		t.Valuations[asset] = rate.String()
	}
	for object, r := range p.Rules {
		t.Approvals[object] = ruleTermsOf(object, r)
	}
	if p.Rest != nil {
		rest := restTermsOf(*p.Rest)
		t.Rest = &rest
	}
	return t
}

// patch converts stored terms to a patch.
func (t houseTerms) patch() (LimitPatch, error) {
	p := emptyPatch()
	var err error
	for role, l := range t.Roles {
		if p.Roles[role], err = l.limits(); err != nil {
			return p, err
		}
	}
	for asset, rate := range t.Valuations {
		if p.Valuations[asset], err = decimal.NewFromString(rate); err != nil {
			return p, err
		}
	}
	for object, r := range t.Approvals {
		if p.Rules[object], err = r.rule(); err != nil {
			return p, err
		}
	}
	if t.Rest != nil {
		p.Rest = &exchange.DestinationRest{For: time.Duration(t.Rest.Rest) * time.Second}
		p.Rest.Above, err = money.Parse(money.KES, t.Rest.Above)
	}
	return p, err
}
