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

// What was asked for and never carried out is deleted a month after its end. The database lets nothing else go: neither a younger
// one, nor one that was used.
func TestUnusedIntentsArePruned(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClock()
	const day = 24 * time.Hour
	c.at.Store(time.Now().Add(-50 * day).UnixMilli()) // the database has a clock of its own
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: c.now})
	by := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleCustomer))
	ask := func() exchange.Asked {
		a, err := storetest.Ask(ctx, s, exchange.IntendTransferCancel, uuid.New(), uuid.New(), nil, by)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	used, lapsed, refused := ask(), ask(), ask()
	if _, err := s.UseIntent(ctx, used, exchange.IntendTransferCancel); err != nil {
		t.Fatal(err)
	}
	if err := s.RefuseIntent(ctx, refused.IntentID, exchange.CodeForbidden); err != nil {
		t.Fatal(err)
	}
	c.advance(21 * day)
	young := ask()
	c.advance(29 * day)
	for i, want := range []int{1, 1, 0} {
		if got, err := s.Prune(ctx, 1); err != nil || got.Intents != want {
			t.Errorf("round %d deleted %+v, %v", i+1, got, err)
		}
	}
	for what, i := range map[string]struct {
		asked exchange.Asked
		kept  bool
	}{"used": {used, true}, "young": {young, true}, "lapsed": {lapsed, false}, "refused": {refused, false}} {
		if _, err := s.Intent(ctx, i.asked.IntentID); (err == nil) != i.kept {
			t.Errorf("%s: %v", what, err)
		}
		_, err := storetest.Owner(t, s).ExecContext(ctx, `DELETE FROM intents WHERE id = $1`, i.asked.IntentID)
		if (sqlState(err) == "KV002") != i.kept {
			t.Errorf("%s is deleted by hand: %v", what, err)
		}
	}
}
