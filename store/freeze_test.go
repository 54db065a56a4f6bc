package store_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// freeze freezes outgoing payments in the name of an officer.
func freeze(t *testing.T, s *store.Store, officer exchange.User) exchange.Freeze {
	t.Helper()
	z, err := s.Freeze(t.Context(), storetest.NewID(t), "odd payments", storetest.PrincipalOf(officer))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// lifted lifts the freeze by two officers.
func lifted(t *testing.T, s *store.Store, one, two exchange.User) {
	t.Helper()
	c, err := s.ProposeLift(t.Context(), "all explained", storetest.PrincipalOf(one))
	if err == nil {
		_, err = s.ConfirmChange(t.Context(), c.ID, "", storetest.PrincipalOf(two))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// One officer freezes; nothing is signed and no payout begins until two have lifted it.
func TestFreezeStopsAllThatLeaves(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	s, officers := p.store, p.officers
	f := p.goes(t, "10", elsewhere(t))
	z := freeze(t, s, officers[0])
	if again := freeze(t, s, officers[1]); again.ID != z.ID {
		t.Errorf("a second freeze is %+v, want the first", again)
	}
	wantUnsigned(t, s, f.PaymentID, exchange.HoldFrozen)
	if err := s.AwaitSignature(t.Context(), f.PaymentID, exchange.HoldFrozen); err != nil {
		t.Fatal(err)
	}
	if now, err := s.TransferByID(t.Context(), f.ID); err != nil || now.StatusDetail != exchange.WaitFrozen {
		t.Errorf("the transfer waits for %q, %v", now.StatusDetail, err)
	}
	_, err := s.ConfirmChange(t.Context(), proposedLift(t, s, officers[0]), "", storetest.PrincipalOf(officers[0]))
	wantFault(t, err, exchange.CodeForbidden)
	lifted(t, s, officers[0], officers[1])
	if _, frozen, err := s.PresentFreeze(t.Context()); err != nil || frozen {
		t.Errorf("frozen %v, %v", frozen, err)
	}
	p.carry(t, f)
	wantTransfers(t, s)
}

func proposedLift(t *testing.T, s *store.Store, officer exchange.User) (id [16]byte) {
	t.Helper()
	c, err := s.ProposeLift(t.Context(), "all explained", storetest.PrincipalOf(officer))
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}

// No payout begins in a freeze, nor one for an account that was switched off (D9).
func TestFreezeAndD9StopPayouts(t *testing.T) {
	t.Parallel()
	x := owing(t)
	one, two := storetest.User(t, x.s, exchange.RoleTreasury), storetest.User(t, x.s, exchange.RoleTreasury)
	freeze(t, x.s, one)
	if _, err := x.begin(t.Context(), x.s, 1); !errors.Is(err, exchange.ErrFrozen) {
		t.Errorf("a payout begins in a freeze: %v", err)
	}
	lifted(t, x.s, one, two)
	on, off := true, false
	for _, id := range []exchange.User{{ID: x.order.CustomerID}, {ID: x.order.VendorID}} {
		if _, err := x.s.UpdateUser(t.Context(), id.ID, store.UserPatch{IsActive: &off}, storetest.By); err != nil {
			t.Fatal(err)
		}
		if _, err := x.begin(t.Context(), x.s, 1); !errors.Is(err, exchange.ErrInactive) {
			t.Errorf("a payout begins though a party is switched off: %v", err)
		}
		if _, err := x.s.UpdateUser(t.Context(), id.ID, store.UserPatch{IsActive: &on}, storetest.By); err != nil {
			t.Fatal(err)
		}
	}
	x.begun(t, 1)
}

// Only staff freezes, and only the confirmation of a second officer lifts.
func TestFreezeIsTheOfficers(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	_, err := p.store.Freeze(t.Context(), storetest.NewID(t), "why not", storetest.PrincipalOf(p.sender))
	wantFault(t, err, exchange.CodeForbidden)
	_, err = p.store.ProposeLift(t.Context(), "nothing to lift", storetest.PrincipalOf(p.officers[0]))
	wantFault(t, err, exchange.CodeStateConflict)
	freeze(t, p.store, p.officers[0])
	for query, want := range map[string]string{
		`UPDATE freezes SET lifted_at = now()`:                                                       "KV006",
		`UPDATE freezes SET lifted_at = now(), change_id = (SELECT id FROM control_changes LIMIT 1)`: "KV006",
		`DELETE FROM freezes`: "KV002",
		`INSERT INTO freezes (id, reason, pulled_by, pulled_at) SELECT gen_random_uuid(), reason, pulled_by, pulled_at FROM freezes`: "23505",
	} {
		if _, err := storetest.Owner(t, p.store).ExecContext(t.Context(), query); sqlState(err) != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
}

// A freeze waits for the transactions that found nothing frozen: when it has begun, what they let pass is committed.
func TestFreezeWaitsForWhatPassed(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	db := storetest.Owner(t, p.store)
	passing, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = passing.Rollback() }()
	var frozen bool
	if err := passing.QueryRowContext(t.Context(), `SELECT frozen()`).Scan(&frozen); err != nil || frozen {
		t.Fatalf("frozen: %t, %v", frozen, err)
	}
	began := make(chan error, 1)
	go func() {
		_, err := p.store.Freeze(t.Context(), uuid.New(), "why", storetest.PrincipalOf(p.officers[0]))
		began <- err
	}()
	waitsFor(t, db, began)
	if err := passing.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-began; err != nil {
		t.Error(err)
	}
}

// waitsFor returns when something waits for a lock, and fails the test when what is to wait is done before.
func waitsFor(t *testing.T, db *sql.DB, done <-chan error) {
	t.Helper()
	for waits := false; !waits; {
		select {
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		const waiting = `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0)`
		if err := db.QueryRowContext(t.Context(), waiting).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
}
