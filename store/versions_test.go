package store_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Of many changes to one version, one counts: the version is checked under the lock of the rows.
func TestOneOfManyChangesToOneVersionCounts(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	admin := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	user := storetest.User(t, s, exchange.RoleUser)
	least := func(n int) exchange.SpendingLimits {
		return exchange.SpendingLimits{PerTransaction: money.Must(money.KES, strconv.Itoa(n)), PerDay: money.Must(money.KES, "1000"), PerMonth: money.Must(money.KES, "1000")}
	}
	for name, c := range map[string]struct {
		version func() (int64, error)
		change  func(n int, version int64) error
	}{
		"user": {
			func() (int64, error) { return s.UserVersion(ctx, user.ID) },
			func(n int, version int64) error {
				l := least(n)
				_, err := s.UpdateUser(ctx, user.ID, store.UserPatch{Limits: &l, IfVersions: []int64{version}}, admin)
				return err
			},
		},
		"limits": {
			func() (int64, error) { return s.HouseLimitsVersion(ctx) },
			func(n int, version int64) error {
				_, err := s.PatchLimits(ctx, store.LimitPatch{Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleUser: least(n)}, IfVersions: []int64{version}}, admin)
				return err
			},
		},
		"escrow policy": {
			func() (int64, error) {
				all, err := s.EscrowPolicies(ctx)
				var sum int64
				for _, p := range all {
					sum += p.Version
				}
				return sum, err
			},
			func(n int, version int64) error {
				_, err := s.ChangeEscrowPolicy(ctx, exchange.Networks()[n%3], store.EscrowPolicyPatch{KeepFree: &n, IfVersions: []int64{version}}, admin)
				return err
			},
		},
	} {
		version, err := c.version()
		if err != nil {
			t.Fatal(err)
		}
		var done atomic.Int64
		var all sync.WaitGroup
		for n := range 6 {
			all.Go(func() {
				switch err := c.change(n+1, version); exchange.CodeOf(err) {
				case "":
					done.Add(1)
				case exchange.CodePrecondition:
				default:
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		if all.Wait(); done.Load() != 1 {
			t.Errorf("%s: %d changes of one version counted", name, done.Load())
		}
	}
}
