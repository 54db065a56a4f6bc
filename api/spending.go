package api

import (
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// limitsWire is spending limits in shillings; null means no limit.
type limitsWire struct {
	PerTransaction *string `json:"per_transaction"`
	PerDay         *string `json:"per_day"`
	PerMonth       *string `json:"per_month"`
}

func limitWire(l exchange.SpendingLimits) limitsWire {
	text := func(m money.Amount) *string {
		if m.Asset() == "" {
			return nil
		}
		s := m.String()
		return &s
	}
	return limitsWire{text(l.PerTransaction), text(l.PerDay), text(l.PerMonth)}
}

// spendingLimits reads the three limits of an object. An absent one means no limit, or the role's limit.
func (f *form) spendingLimits() exchange.SpendingLimits {
	l := exchange.SpendingLimits{
		PerTransaction: f.amount("per_transaction", money.KES, false), PerDay: f.amount("per_day", money.KES, false),
		PerMonth: f.amount("per_month", money.KES, false),
	}
	ordered := func(name string, small, large money.Amount) {
		if small.Asset() != "" && large.Asset() != "" && large.Cmp(small) < 0 {
			f.fail(name, "out_of_range", "must not be below the limit of a shorter period")
		}
	}
	ordered("per_day", l.PerTransaction, l.PerDay)
	ordered("per_month", l.PerDay, l.PerMonth)
	return l
}

// wireUserLimits is a user as an admin sees it, with the limits that an admin set and the effective ones.
type wireUserLimits struct {
	wireUser
	Limits struct {
		Own       limitsWire `json:"own"`
		Effective limitsWire `json:"effective"`
	} `json:"limits"`
}

// answerUser answers with a user and the user's limits. The version is read first: a later change then only refuses the
// next If-Match.
func (s *server) answerUser(c *call, id uuid.UUID) error {
	version, err := s.Store.UserVersion(c.ctx, id)
	if err != nil {
		return hideAbsence(err)
	}
	u, err := s.Store.User(c.ctx, id)
	if err != nil {
		return hideAbsence(err)
	}
	l, err := s.Store.LimitsOf(c.ctx, u)
	if err != nil {
		return err
	}
	w := wireUserLimits{wireUser: userWire(u)}
	w.Limits.Own, w.Limits.Effective = limitWire(l.Own), limitWire(l.Effective)
	return c.tagged(version, w)
}

// houseLimits is the spending limits of roles, the house's valuations and the approval rules.
type houseLimits struct {
	Roles      map[exchange.Role]limitsWire         `json:"roles"`
	Valuations map[money.Asset]string               `json:"valuations"`
	Approvals  map[exchange.ApprovalObject]ruleWire `json:"approvals"`
	Rest       restWire                             `json:"new_destinations"`
}

// restWire is how long a new destination outside of our custody rests before more than a value goes there within a day.
type restWire struct {
	RestSeconds int64  `json:"rest_seconds"`
	RestAbove   string `json:"rest_above"`
}

// ruleWire is an approval rule. For payments by bank, which always need one officer, it has only two_above.
type ruleWire struct {
	OneAbove string `json:"one_above,omitempty"`
	TwoAbove string `json:"two_above"`
}

func (s *server) getLimits(c *call) error {
	version, err := s.Store.HouseLimitsVersion(c.ctx)
	if err != nil {
		return err
	}
	roles, err := s.Store.RoleLimits(c.ctx)
	if err != nil {
		return err
	}
	rates, err := s.Store.Valuations(c.ctx)
	if err != nil {
		return err
	}
	rules, err := s.Store.ApprovalRules(c.ctx)
	if err != nil {
		return err
	}
	rest, err := s.Store.DestinationRest(c.ctx)
	if err != nil {
		return err
	}
	w := houseLimits{
		Rest:  restWire{int64(rest.For / time.Second), rest.Above.String()},
		Roles: map[exchange.Role]limitsWire{}, Valuations: map[money.Asset]string{},
		Approvals: map[exchange.ApprovalObject]ruleWire{},
	}
	for role, l := range roles {
		w.Roles[role] = limitWire(l)
	}
	for _, v := range rates {
		w.Valuations[v.Asset] = v.Rate.String()
	}
	for object, r := range rules {
		shown := ruleWire{TwoAbove: r.TwoAbove.String()}
		if object != exchange.ApproveBankPayout {
			shown.OneAbove = r.OneAbove.String()
		}
		w.Approvals[object] = shown
	}
	return c.tagged(version, w)
}

// patchLimits changes the given limits. Changes that loosen the controls wait for a second officer, and the answer is
// 202; the other changes take effect at once. A given role gets exactly the limits in the request.
func (s *server) patchLimits(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	p := store.LimitPatch{
		Roles: map[exchange.Role]exchange.SpendingLimits{}, Valuations: map[money.Asset]decimal.Decimal{},
		Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{}, IfVersions: c.ifVersions,
	}
	if in := f.object("roles", false); in != nil {
		for _, role := range exchange.Roles() {
			if l := in.object(string(role), false); l != nil {
				p.Roles[role] = l.spendingLimits()
			}
		}
	}
	if in := f.object("valuations", false); in != nil {
		for _, asset := range []money.Asset{money.USDT, money.USDC} {
			if in.has(string(asset)) {
				p.Valuations[asset] = in.rate(string(asset), false)
			}
		}
	}
	if in := f.object("approvals", false); in != nil {
		for _, object := range exchange.ApprovalObjects() {
			if r := in.object(string(object), false); r != nil {
				p.Rules[object] = r.approvalRule(object)
			}
		}
	}
	if in := f.object("new_destinations", false); in != nil {
		p.Rest = in.destinationRest()
	}
	if err := f.done(); err != nil {
		return err
	}
	if len(p.Roles) == 0 && len(p.Valuations) == 0 && len(p.Rules) == 0 && p.Rest == nil {
		return exchange.Invalid(exchange.FieldError{Pointer: "", Code: "required", Message: "must change roles, valuations, approvals or new_destinations"})
	}
	waits, err := s.Store.PatchLimits(c.ctx, p, c.who)
	if err != nil {
		return err
	}
	if waits.ID != uuid.Nil {
		return answerPending(c, waits)
	}
	return s.getLimits(c)
}

// destinationRest reads the rest of new destinations, which is given as a whole.
func (f *form) destinationRest() *exchange.DestinationRest {
	d := &exchange.DestinationRest{Above: f.amount("rest_above", money.KES, true)}
	if seconds := f.integer("rest_seconds", true, 0, int(exchange.MaxDestinationRest/time.Second)); seconds != nil {
		d.For = time.Duration(*seconds) * time.Second
	}
	return d
}

// approvalRule reads the values of a rule. That of payments by bank has only two_above.
func (f *form) approvalRule(object exchange.ApprovalObject) exchange.ApprovalRule {
	r := exchange.ApprovalRule{TwoAbove: f.amount("two_above", money.KES, true)}
	if object == exchange.ApproveBankPayout {
		r.OneAbove = r.TwoAbove
		return r
	}
	r.OneAbove = f.amount("one_above", money.KES, true)
	if r.OneAbove.Positive() && r.TwoAbove.Positive() && r.TwoAbove.Cmp(r.OneAbove) < 0 {
		f.fail("two_above", "out_of_range", "must not be below one_above")
	}
	return r
}
