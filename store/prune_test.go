package store_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Old rows are deleted in batches; those still needed stay.
func TestPruneTakesOnlyWhatIsOver(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClock()
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: c.now})
	u := storetest.User(t, s, exchange.RoleCustomer)
	session := func(life time.Duration) {
		id := uuid.New()
		err := s.CreateSession(ctx, store.Session{
			ID: uuid.New(), FamilyID: id, UserID: u.ID, TokenHash: sha256.Sum256(id[:]), Assurance: exchange.AssurancePIN, CreatedAt: c.now(), ExpiresAt: c.now().Add(life),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	failure := func(key string) {
		if _, err := s.LoginAttempt(ctx, key, slow); err != nil {
			t.Fatal(err)
		}
	}
	key := func(name string) {
		if _, err := s.IdempotencyBegin(ctx, "scope", name, [32]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		session(time.Hour)
		failure("old " + string(rune('a'+i)))
		key("old " + string(rune('a'+i)))
	}
	session(90 * 24 * time.Hour) // lives on
	key("claimed again")         // an old key whose request ran again lately
	c.advance(8*24*time.Hour - 47*time.Hour)
	key("claimed again")
	key("young")
	c.advance(47 * time.Hour)
	failure("young")

	want := []exchange.Pruned{{Sessions: 2, IdempotencyKeys: 2}, {Sessions: 1, IdempotencyKeys: 1}, {}}
	for i, w := range want {
		if got, err := s.Prune(ctx, 2); err != nil || got != w {
			t.Errorf("round %d deleted %+v, %v, want %+v", i+1, got, err, w)
		}
	}
	var sessions, tokens, failures, keys int
	row := storetest.Owner(t, s).QueryRowContext(ctx, `SELECT (SELECT count(*) FROM session_families), (SELECT count(*) FROM sessions),
		(SELECT count(*) FROM login_failures), (SELECT count(*) FROM idempotency_keys)`)
	if err := row.Scan(&sessions, &tokens, &failures, &keys); err != nil || sessions != 1 || tokens != 1 || failures != 4 || keys != 2 {
		t.Errorf("%d sessions with %d tokens, %d counters, %d keys are left, %v", sessions, tokens, failures, keys, err)
	}
	c.advance(23 * 24 * time.Hour)
	if got, err := s.Prune(ctx, 100); err != nil || got != (exchange.Pruned{LoginFailures: 3, IdempotencyKeys: 2}) {
		t.Errorf("later it deleted %+v, %v", got, err)
	}
}

// A key that is locked for longer than counters are kept stays locked.
func TestPruneKeepsLocks(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClock()
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: c.now})
	if _, err := s.LoginAttempt(ctx, "locked", store.Delays{Free: 1, Base: 40 * 24 * time.Hour, Most: 40 * 24 * time.Hour, Memory: time.Hour}); err != nil {
		t.Fatal(err)
	}
	c.advance(35 * 24 * time.Hour)
	if got, err := s.Prune(ctx, 100); err != nil || got.LoginFailures != 0 {
		t.Errorf("deleted %+v, %v", got, err)
	}
	if until, err := s.LoginLocked(ctx, "locked"); err != nil || !until.After(c.now()) {
		t.Errorf("locked until %s, %v", until, err)
	}
}

// What was asked for and can no longer be carried out is deleted a quarter of an hour after its end, an order's an hour after it was
// asked for: it names people. The database lets nothing else go, neither one that may still be used, nor one that was.
func TestIntentsThatEndedUnusedArePruned(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClock()
	began := time.Now() // the database has a clock of its own
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: c.now})
	by := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleCustomer))
	ask := func(kind exchange.IntentKind, ago time.Duration) exchange.Asked {
		c.at.Store(began.Add(-ago).UnixMilli())
		a, err := storetest.Ask(ctx, s, kind, uuid.New(), uuid.New(), nil, by)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	const day = 24 * time.Hour
	used := ask(exchange.IntendTransferCancel, 2*day)
	if _, err := s.UseIntent(ctx, used, exchange.IntendTransferCancel); err != nil {
		t.Fatal(err)
	}
	refused := ask(exchange.IntendTransferCancel, day+16*time.Minute)
	if err := s.RefuseIntent(ctx, refused.IntentID, exchange.CodeForbidden); err != nil {
		t.Fatal(err)
	}
	all := map[string]struct {
		asked          exchange.Asked
		pruned, locked bool
	}{
		"used":           {used, false, true},
		"refused":        {refused, true, false},
		"lapsed":         {ask(exchange.IntendTransferCancel, day+16*time.Minute), true, false},
		"just lapsed":    {ask(exchange.IntendTransferCancel, day+14*time.Minute), false, false},
		"young":          {ask(exchange.IntendTransferCancel, day-time.Minute), false, true},
		"a sale's":       {ask(exchange.IntendSale, 61*time.Minute), true, false},
		"a purchase's":   {ask(exchange.IntendPurchase, 61*time.Minute), true, false},
		"a young sale's": {ask(exchange.IntendSale, 44*time.Minute), false, true},
	}
	c.at.Store(began.UnixMilli())
	for i, want := range []int{3, 1, 0} {
		if got, err := s.Prune(ctx, 3); err != nil || got.Intents != want {
			t.Errorf("round %d deleted %+v, %v", i+1, got, err)
		}
	}
	for what, i := range all {
		if _, err := s.Intent(ctx, i.asked.IntentID); (err != nil) != i.pruned {
			t.Errorf("%s: %v", what, err)
		}
		_, err := storetest.Owner(t, s).ExecContext(ctx, `DELETE FROM intents WHERE id = $1`, i.asked.IntentID)
		if (sqlState(err) == "KV002") != i.locked {
			t.Errorf("%s is deleted by hand: %v", what, err)
		}
	}
}
