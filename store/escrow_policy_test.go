package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// One officer makes escrow addresses rest longer and lets unverified users have fewer of them; two do the opposite. The
// database refuses it otherwise.
func TestEscrowPoliciesLoosenWithTwoOfficers(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	admin := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	now := func() exchange.EscrowPolicy {
		t.Helper()
		all, err := s.EscrowPolicies(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return all[2] // tron
	}
	change := func(p store.EscrowPolicyPatch) store.EscrowPolicyChanged {
		t.Helper()
		c, err := s.ChangeEscrowPolicy(ctx, exchange.Tron, p, admin)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	hours := func(n int) *time.Duration {
		d := time.Duration(n) * time.Hour
		return &d
	}
	keep, less, more := 30, 20, 40
	if c := change(store.EscrowPolicyPatch{IdleRest: hours(8), UserPercent: &less}); c.Waits.ID != uuid.Nil || c.Policy != now() || c.Policy.IdleRest != *hours(8) || c.Policy.UserPercent != less {
		t.Errorf("tightened to %+v", c)
	}
	c := change(store.EscrowPolicyPatch{KeepFree: &keep, Rest: hours(200), IdleRest: hours(7), UserPercent: &more})
	if p := now(); c.Waits.Kind != exchange.ControlEscrowPolicy || p != c.Policy || p.KeepFree != keep || p.Rest != *hours(200) || p.IdleRest != *hours(8) || p.UserPercent != less {
		t.Errorf("%+v is in force, and %+v waits", p, c.Waits)
	}
	if err := storetest.Agreed(t, s)(c.Waits, nil); err != nil {
		t.Fatal(err)
	}
	if p := now(); p.KeepFree != keep || p.Rest != *hours(200) || p.IdleRest != *hours(7) || p.UserPercent != more {
		t.Errorf("two agreed to %+v", p)
	}
	c = change(store.EscrowPolicyPatch{Rest: hours(100)})
	change(store.EscrowPolicyPatch{IdleRest: hours(9)})
	wantFault(t, storetest.Agreed(t, s)(c.Waits, nil), exchange.CodeStateConflict) // another policy than the officer saw
	if again := change(store.EscrowPolicyPatch{KeepFree: &keep}); again.Waits.ID != uuid.Nil || again.Policy.Version != now().Version {
		t.Errorf("what is so already: %+v", again)
	}
	for _, set := range []string{"rest_seconds = 600", "idle_rest_seconds = 600", "user_percent = 100"} {
		if _, err := storetest.Owner(t, s).ExecContext(ctx, `UPDATE escrow_policy SET `+set+` WHERE network = 'tron'`); sqlState(err) != "KV006" {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// One officer makes new destinations rest longer or from a lower value on; two do the opposite.
func TestDestinationsRestLessWithTwoOfficers(t *testing.T) {
	t.Parallel()
	b := newBoard(t, store.Options{})
	ctx, s := t.Context(), b.store
	rest := func(hours int, above string) *exchange.DestinationRest {
		return &exchange.DestinationRest{For: time.Duration(hours) * time.Hour, Above: kes(above)}
	}
	want := func(hours int, above string) {
		t.Helper()
		got, err := s.DestinationRest(ctx)
		if want := rest(hours, above); err != nil || got.For != want.For || !got.Above.Equal(want.Above) {
			t.Errorf("destinations rest %s above %s, %v", got.For, got.Above, err)
		}
	}
	want(24, "200000")
	before, err := s.HouseLimitsVersion(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if c := b.patch(t, store.LimitPatch{Rest: rest(48, "100000")}); c.ID != uuid.Nil {
		t.Errorf("a longer rest waits: %+v", c)
	}
	want(48, "100000")
	if after, err := s.HouseLimitsVersion(ctx); err != nil || after == before {
		t.Errorf("the limits have the version %d still, %v", after, err)
	}
	for _, looser := range []*exchange.DestinationRest{rest(47, "100000"), rest(72, "100000.01")} {
		c := b.patch(t, store.LimitPatch{Rules: rule("100000", "1000000"), Rest: looser})
		want(48, "100000")
		_, err := s.ConfirmChange(ctx, c.ID, "", b.one)
		b.wantForbidden(err)
	}
	c := b.patch(t, store.LimitPatch{Rest: rest(1, "300000")})
	if _, err := s.ConfirmChange(ctx, c.ID, "", b.two); err != nil {
		t.Fatal(err)
	}
	want(1, "300000")
	for _, set := range []string{"rest_seconds = 0", "rest_above = 400000"} {
		if _, err := storetest.Owner(t, s).ExecContext(ctx, `UPDATE release_policy SET `+set); sqlState(err) != "KV006" {
			t.Errorf("%s: %v", set, err)
		}
	}
}
