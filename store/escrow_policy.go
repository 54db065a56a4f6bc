package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// EscrowPolicyPatch changes the policy of a network; nil leaves a field as it is.
type EscrowPolicyPatch struct {
	KeepFree    *int
	Most        *int
	Rest        *time.Duration
	IdleRest    *time.Duration
	UserPercent *int

	IfVersions []int64 // the expected sums of the versions of all policies; none is any
}

// split separates what loosens the controls, compared with now, from the rest.
func (p EscrowPolicyPatch) split(now exchange.EscrowPolicy) (tighter, looser EscrowPolicyPatch) {
	tighter = p
	if p.Rest != nil && *p.Rest < now.Rest {
		tighter.Rest, looser.Rest = nil, p.Rest
	}
	if p.IdleRest != nil && *p.IdleRest < now.IdleRest {
		tighter.IdleRest, looser.IdleRest = nil, p.IdleRest
	}
	if p.UserPercent != nil && *p.UserPercent > now.UserPercent {
		tighter.UserPercent, looser.UserPercent = nil, p.UserPercent
	}
	return tighter, looser
}

// of returns a policy with the changes.
func (p EscrowPolicyPatch) of(now exchange.EscrowPolicy) exchange.EscrowPolicy {
	for _, f := range []struct{ from, to *int }{{p.KeepFree, &now.KeepFree}, {p.Most, &now.Most}, {p.UserPercent, &now.UserPercent}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	for _, f := range []struct{ from, to *time.Duration }{{p.Rest, &now.Rest}, {p.IdleRest, &now.IdleRest}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return now
}

// escrowTerms are what of a policy two officers agree to, as stored and shown. The database's guard reads it.
type escrowTerms struct {
	Network     exchange.Network `json:"network"`
	Rest        int64            `json:"rest_seconds"`
	IdleRest    int64            `json:"idle_rest_seconds"`
	UserPercent int              `json:"user_percent"`
}

func termsOfEscrow(p exchange.EscrowPolicy) escrowTerms {
	return escrowTerms{p.Network, int64(p.Rest / time.Second), int64(p.IdleRest / time.Second), p.UserPercent}
}

// EscrowPolicyChanged is a policy after a change of it.
type EscrowPolicyChanged struct {
	Policy  exchange.EscrowPolicy
	Version int64                  // the sum of the versions of all policies
	Waits   exchange.ControlChange // what a second officer has to confirm; its id is zero when nothing waits
}

// ChangeEscrowPolicy changes the policy of a network. It moves no money: resting addresses keep their rest time. Shorter rests
// and a larger share of unverified users wait for a second officer; the rest of the change takes effect at once.
func (s *Store) ChangeEscrowPolicy(ctx context.Context, n exchange.Network, p EscrowPolicyPatch, by exchange.Principal) (EscrowPolicyChanged, error) {
	var out EscrowPolicyChanged
	err := s.inTx(ctx, "escrow policy", func(t unitTx) error {
		out = EscrowPolicyChanged{}
		var err error
		if out.Version, err = versionOf(ctx, t, lockPolicies); err != nil {
			return err
		}
		if err := expect(p.IfVersions, out.Version); err != nil {
			return err
		}
		before, err := t.lockedPolicy(ctx, n)
		if err != nil {
			return err
		}
		if err := checkPolicy(p.of(before)); err != nil {
			return err
		}
		tighter, looser := p.split(before)
		if out.Policy, err = t.savePolicy(ctx, before, tighter.of(before), by); err != nil {
			return err
		}
		out.Version += out.Policy.Version - before.Version
		if wanted := looser.of(out.Policy); wanted != out.Policy {
			out.Waits, err = t.propose(ctx, exchange.ControlEscrowPolicy, uuid.Nil, termsOfEscrow(out.Policy), termsOfEscrow(wanted), by)
		}
		return err
	})
	return out, err
}

// applyEscrowPolicy stores a looser policy that two officers agreed.
func (t unitTx) applyEscrowPolicy(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[escrowTerms](c)
	if err != nil {
		return err
	}
	before, err := t.lockedPolicy(ctx, terms.Network)
	if err != nil {
		return err
	}
	if err := unchanged(c, termsOfEscrow(before)); err != nil {
		return err
	}
	changed := before
	changed.Rest, changed.IdleRest = time.Duration(terms.Rest)*time.Second, time.Duration(terms.IdleRest)*time.Second
	changed.UserPercent = terms.UserPercent
	_, err = t.savePolicy(ctx, before, changed, by)
	return err
}

const savePolicy = `
UPDATE escrow_policy SET keep_free = $2, most = $3, rest_seconds = $4, idle_rest_seconds = $5, user_percent = $6, updated_by = $7, updated_at = $8, version = version + 1
WHERE network = $1`

// savePolicy stores a policy and records it. One that did not change is left as it is.
func (t unitTx) savePolicy(ctx context.Context, before, p exchange.EscrowPolicy, by exchange.Principal) (exchange.EscrowPolicy, error) {
	if p == before {
		return before, nil
	}
	p.UpdatedBy, p.UpdatedAt, p.Version = by.UserID, t.s.now(), before.Version+1
	terms := termsOfEscrow(p)
	if err := t.One(ctx, savePolicy, p.Network, p.KeepFree, p.Most, terms.Rest, terms.IdleRest, p.UserPercent, nullID(by.UserID), p.UpdatedAt); err != nil {
		return before, err
	}
	return p, t.record(ctx, auditEvent{
		by: by, object: "escrow_policy", id: escrowPolicyID(p.Network), name: "escrow_policy.changed", before: policySnapshot(before), after: policySnapshot(p),
	})
}

func (t unitTx) lockedPolicy(ctx context.Context, n exchange.Network) (exchange.EscrowPolicy, error) {
	return readOne[exchange.EscrowPolicy](ctx, t, "network", lockPolicy, n)
}

// escrowPolicyID is the object id for the events of a network's policy.
func escrowPolicyID(n exchange.Network) uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("kivuko escrow policy "+string(n)))
}

func policySnapshot(p exchange.EscrowPolicy) map[string]any {
	terms := termsOfEscrow(p)
	return map[string]any{
		"network": p.Network, "keep_free": p.KeepFree, "most": p.Most, "rest_seconds": terms.Rest, "idle_rest_seconds": terms.IdleRest, "user_percent": p.UserPercent,
	}
}

func checkPolicy(p exchange.EscrowPolicy) error {
	rests := func(d time.Duration) bool {
		return d >= exchange.MinEscrowRest && d <= exchange.MaxEscrowRest && d%time.Second == 0
	}
	for _, rule := range []struct {
		ok               bool
		pointer, message string
	}{
		{p.Most >= 1 && p.Most <= exchange.MaxEscrowPool, "/most", "must be from 1 to 10000"},
		{p.KeepFree >= 0 && p.KeepFree <= exchange.MaxEscrowKept, "/keep_free", "must be from 0 to 1000"},
		{p.KeepFree <= p.Most, "/keep_free", "must not be more than most"},
		{rests(p.Rest), "/rest_seconds", "must be from 600 to 7776000"},
		{rests(p.IdleRest), "/idle_rest_seconds", "must be from 600 to 7776000"},
		{p.UserPercent >= 1 && p.UserPercent <= 100, "/user_percent", "must be from 1 to 100"},
	} {
		if err := require(rule.ok, rule.pointer, "out_of_range", rule.message); err != nil {
			return err
		}
	}
	return nil
}
