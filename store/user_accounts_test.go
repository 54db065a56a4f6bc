package store_test

import (
	"crypto/sha256"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

func TestUsers(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	u := storetest.User(t, s, exchange.RoleUser)
	again, err := s.CreateUser(ctx, u, exchange.Credentials{}, storetest.By)
	if err != nil || again != u {
		t.Errorf("created again %+v, %v", again, err)
	}
	clash := storetest.User(t, s, exchange.RoleUser)
	clash.ID, clash.Email = storetest.NewID(t), "else@example.com"
	if _, err := s.CreateUser(ctx, clash, exchange.Credentials{PasswordHash: "x"}, storetest.By); exchange.CodeOf(err) != exchange.CodeConflict || fieldOf(err) != "/phone_number" {
		t.Errorf("a phone number twice: %v", err)
	}
	clash.ID, clash.PhoneNumber, clash.Email = storetest.NewID(t), "254700000001", u.Email
	if _, err := s.CreateUser(ctx, clash, exchange.Credentials{PasswordHash: "x"}, storetest.By); exchange.CodeOf(err) != exchange.CodeConflict || fieldOf(err) != "/email" {
		t.Errorf("an address twice: %v", err)
	}
	if found, err := s.UserByEmail(ctx, strings.ToUpper(u.Email)); err != nil || found.ID != u.ID {
		t.Errorf("by address %s, %v", found.ID, err)
	}
	if _, err := s.UserByEmail(ctx, "a\x00@example.com"); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Errorf("by an address with NUL: %v", err)
	}
	if found, err := s.UserByPhone(ctx, u.PhoneNumber); err != nil || found.ID != u.ID {
		t.Errorf("by number %s, %v", found.ID, err)
	}
	if err := s.SetPIN(ctx, u.ID, "pin hash", storetest.PrincipalOf(u)); err != nil {
		t.Fatal(err)
	}
	before, err := s.CredentialsOf(ctx, u.ID)
	if err != nil || before.PINHash != "pin hash" || before.PasswordHash == "" {
		t.Errorf("credentials %+v, %v", before, err)
	}
	yes, no := true, false
	verified, err := s.UpdateUser(ctx, u.ID, store.UserPatch{Verified: &yes}, storetest.By)
	if err != nil || verified.Role != exchange.RoleCustomer || verified.VerifiedAt.IsZero() {
		t.Errorf("verified %+v, %v", verified, err)
	}
	if after, err := s.CredentialsOf(ctx, u.ID); err != nil || after.AuthVersion != before.AuthVersion {
		t.Errorf("being verified ended the sessions: %+v, %v", after, err)
	}
	if n, err := s.CountUsers(ctx, exchange.RoleCustomer); err != nil || n != 1 {
		t.Errorf("%d customers, %v", n, err)
	}
	if back, err := s.UpdateUser(ctx, u.ID, store.UserPatch{Verified: &no}, storetest.By); err != nil || back.Role != exchange.RoleUser {
		t.Errorf("not verified any more %+v, %v", back, err)
	}
	_, err = s.UpdateUser(ctx, storetest.User(t, s, exchange.RoleAdmin).ID, store.UserPatch{Verified: &yes}, storetest.By)
	wantFault(t, err, exchange.CodeStateConflict)
	for q, want := range map[string]int{"ami": 3, "otieno": 3, "amina ot": 3, u.Email[:20]: 1, "0" + u.PhoneNumber.Digits()[3:]: 1, "%": 0, "_mina": 0, "nobody": 0} {
		if all, total, err := s.ListUsers(ctx, store.UserFilter{Query: q}, store.Page{Number: 1, Size: 5}); err != nil || total != want || len(all) != want {
			t.Errorf("%q finds %d users, want %d, %v", q, total, want, err)
		}
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	u := storetest.User(t, s, exchange.RoleCustomer)
	now := time.Now().UTC().Truncate(time.Millisecond)
	family := func(seed byte) store.Session {
		n := store.Session{ID: uuid.New(), FamilyID: uuid.New(), UserID: u.ID, TokenHash: [32]byte{seed}, Assurance: exchange.AssurancePassword, UserAgent: "x\x00y", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
		if err := s.CreateSession(ctx, n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	live := func(f store.Session, want bool) {
		t.Helper()
		state, err := s.AuthState(ctx, u.ID, f.FamilyID)
		if err != nil || state.SessionLive != want {
			t.Errorf("live %t, want %t, %v", state.SessionLive, want, err)
		}
	}
	first := family(1)
	user, second, err := s.RotateSession(ctx, first, store.Session{ID: uuid.New(), TokenHash: [32]byte{2}})
	if err != nil || user.ID != u.ID || second.FamilyID != first.FamilyID || !second.ExpiresAt.Equal(first.ExpiresAt) {
		t.Fatalf("rotated %+v, %v", second, err)
	}
	live(first, true)
	_, _, err = s.RotateSession(ctx, first, store.Session{ID: uuid.New(), TokenHash: [32]byte{3}})
	wantFault(t, err, exchange.CodeUnauthenticated)
	live(first, false)
	_, _, err = s.RotateSession(ctx, second, store.Session{ID: uuid.New(), TokenHash: [32]byte{4}})
	wantFault(t, err, exchange.CodeUnauthenticated) // the thief's token died with the family
	_, _, err = s.RotateSession(ctx, store.Session{UserID: u.ID, FamilyID: first.FamilyID, TokenHash: sha256.Sum256([]byte("guess"))}, store.Session{ID: uuid.New(), TokenHash: [32]byte{5}})
	wantFault(t, err, exchange.CodeUnauthenticated)

	out := family(6)
	for range 2 {
		if err := s.RevokeSession(ctx, out.FamilyID, "logout", storetest.PrincipalOf(u)); err != nil {
			t.Fatal(err)
		}
	}
	live(out, false)
	one, two := family(7), family(8)
	if err := s.RevokeAllSessions(ctx, u.ID, storetest.PrincipalOf(u)); err != nil {
		t.Fatal(err)
	}
	live(one, false)
	live(two, false)
	no := false
	three := family(9)
	if _, err := s.UpdateUser(ctx, u.ID, store.UserPatch{IsActive: &no}, storetest.By); err != nil {
		t.Fatal(err)
	}
	live(three, false)
	_, _, err = s.RotateSession(ctx, three, store.Session{ID: uuid.New(), TokenHash: [32]byte{10}})
	wantFault(t, err, exchange.CodeUnauthenticated)
}

// clock is a settable time.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMilli(c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(d.Milliseconds()) }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC).UnixMilli())
	return c
}

// slow is a counter with the API's numbers.
var slow = store.Delays{Free: 5, Base: time.Minute, Most: 24 * time.Hour, Memory: 30 * 24 * time.Hour}

func TestLoginDelaysGrow(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClock()
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: c.now})
	attempt := func(key string) store.Counted {
		t.Helper()
		n, err := s.LoginAttempt(ctx, key, slow)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	wait := time.Duration(0)
	for i := range 20 {
		c.advance(wait)
		n := attempt("pin:1")
		wait = max(n.Until.Sub(c.now()), 0)
		want := time.Duration(0)
		if i >= 4 {
			want = min(time.Minute<<(i-4), 24*time.Hour)
		}
		if !n.Allowed || n.Failures != i+1 || wait != want {
			t.Errorf("attempt %d: %+v, then %s, want %s", i+1, n, wait, want)
		}
	}
	if n := attempt("pin:1"); n.Allowed || !n.Until.After(c.now()) {
		t.Errorf("an attempt before its time: %+v", n)
	}
	// A day without a failure forgets nothing, thirty do.
	c.advance(29 * 24 * time.Hour)
	if n := attempt("pin:1"); n.Failures != 21 {
		t.Errorf("after 29 days %+v", n)
	}
	c.advance(30*24*time.Hour + time.Second)
	if n := attempt("pin:1"); n.Failures != 1 || n.Until.After(c.now()) {
		t.Errorf("after 30 days %+v", n)
	}
	for range 4 {
		attempt("pin:2")
	}
	if n := attempt("pin:2"); n.Failures != 5 || n.Until.Sub(c.now()) != time.Minute {
		t.Errorf("the fifth: %+v", n)
	}
	// A success takes back its own failure; on a known device all.
	if err := s.LoginSuccess(ctx, "pin:2", false); err != nil {
		t.Fatal(err)
	}
	if n := attempt("pin:2"); n.Failures != 5 {
		t.Errorf("after a success %+v", n)
	}
	if err := s.LoginSuccess(ctx, "pin:2", true); err != nil {
		t.Fatal(err)
	}
	if n := attempt("pin:2"); n.Failures != 1 {
		t.Errorf("after a success on a known device %+v", n)
	}
	if until, err := s.LoginLocked(ctx, "ip:x", "pin:1"); err != nil || !until.IsZero() {
		t.Errorf("locked until %s, %v", until, err)
	}
	var allowed atomic.Int32
	atOnce(20, func(int) error {
		n, err := s.LoginAttempt(ctx, "pin:3", slow)
		if n.Allowed {
			allowed.Add(1)
		}
		return err
	})
	if allowed.Load() != 5 {
		t.Errorf("%d of 20 attempts at once were allowed", allowed.Load())
	}
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClock()
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: c.now})
	body, other := [32]byte{1}, [32]byte{2}
	begin := func(hash [32]byte, want store.IdempotencyState) store.IdempotencyRecord {
		t.Helper()
		r, err := s.IdempotencyBegin(ctx, "user:1 POST /orders", "key", hash)
		if err != nil || r.State != want {
			t.Fatalf("%+v, want %s, %v", r, want, err)
		}
		return r
	}
	first := begin(body, store.IdempotencyNew)
	begin(body, store.IdempotencyInFlight)
	begin(other, store.IdempotencyReused)
	c.advance(61 * time.Second)
	if over := begin(body, store.IdempotencyNew); over.ObjectID != first.ObjectID {
		t.Error("who takes over must make the same object")
	}
	begin(body, store.IdempotencyInFlight)
	if err := s.IdempotencyAbandon(ctx, "user:1 POST /orders", "key"); err != nil {
		t.Fatal(err)
	}
	if again := begin(body, store.IdempotencyNew); again.ObjectID != first.ObjectID {
		t.Error("the same body after giving up must make the same object")
	}
	if err := s.IdempotencyAbandon(ctx, "user:1 POST /orders", "key"); err != nil {
		t.Fatal(err)
	}
	if changed := begin(other, store.IdempotencyNew); changed.ObjectID == first.ObjectID {
		t.Error("another body after giving up must make another object")
	}
	for status := 201; status < 203; status++ {
		if err := s.IdempotencyFinish(ctx, "user:1 POST /orders", "key", status, map[string]string{"Location": "/x"}, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	replay := begin(other, store.IdempotencyReplay)
	if replay.Status != 201 || replay.Header["Location"] != "/x" || string(replay.Body) != `{}` {
		t.Errorf("replayed %+v", replay)
	}
	codes := map[store.IdempotencyState]*atomic.Int32{store.IdempotencyNew: {}, store.IdempotencyInFlight: {}}
	atOnce(20, func(int) error {
		r, err := s.IdempotencyBegin(ctx, "scope", "race", body)
		codes[r.State].Add(1)
		return err
	})
	if codes[store.IdempotencyNew].Load() != 1 || codes[store.IdempotencyInFlight].Load() != 19 {
		t.Errorf("%d claims won", codes[store.IdempotencyNew].Load())
	}
}

func TestWallets(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	u := storetest.User(t, s, exchange.RoleCustomer)
	first, second := storetest.Wallet(t, s, u), storetest.Wallet(t, s, u)
	if !first.IsDefault || second.IsDefault {
		t.Errorf("defaults %t and %t", first.IsDefault, second.IsDefault)
	}
	request := exchange.WalletRequest{
		ID: first.ID, OwnerType: first.OwnerType, OwnerID: u.ID, Network: first.Network, Asset: first.Asset, Type: first.Type, CreatedBy: u.ID,
	}
	again, err := storetest.CreateWallet(ctx, s, request, "Tanother-address-of-a-retry", exchange.SealedKey{})
	if err != nil || again != first {
		t.Errorf("created again %+v, %v", again, err)
	}
	request.CreatedBy = storetest.User(t, s, exchange.RoleCustomer).ID
	_, err = storetest.CreateWallet(ctx, s, request, "Tanother-address-of-a-retry", exchange.SealedKey{})
	wantFault(t, err, exchange.CodeConflict)
	own := store.ViewOf(storetest.PrincipalOf(u), exchange.ActReadWallets)
	twice(t, func(a, b exchange.Wallet) bool { return a == b }, func() (exchange.Wallet, error) {
		return s.SetDefaultWallet(ctx, own, second.ID, storetest.PrincipalOf(u))
	})
	if d, err := s.DefaultWallet(ctx, u.ID, exchange.Tron); err != nil || d.ID != second.ID {
		t.Errorf("the default is %s, %v", d.ID, err)
	}
	if _, err := s.DefaultWallet(ctx, u.ID, exchange.Ethereum); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Errorf("a default where there is none: %v", err)
	}
	storetest.Deposit(t, s, first.ID, usdt("3"))
	balances, err := s.WalletBalances(ctx, first.ID)
	if err != nil || len(balances) != 3 || balances[1].Posted.String() != "3.000000" {
		t.Errorf("balances %+v, %v", balances, err)
	}
	all, total, err := s.ListWallets(ctx, own, store.WalletFilter{Network: exchange.Tron}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 2 || all[0].ID != second.ID {
		t.Errorf("%d wallets, %v", total, err)
	}
}

func TestCommandsCallbacksAndReceipts(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	o := m.Order(t, s, "10")
	a := storetest.Attempt(t, s, o)
	admin := storetest.User(t, s, exchange.RoleAdmin)
	c := exchange.OperatorCommand{ID: uuid.New(), ObjectType: "order", ObjectID: o.ID, Verb: "retry", Note: "again", ActorID: admin.ID}
	for range 2 {
		if err := s.SaveCommand(ctx, c, storetest.PrincipalOf(admin)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.UseCommand(ctx, c.ID, "order", uuid.New())
	wantFault(t, err, exchange.CodeNotFound)
	twice(t, func(a, b exchange.OperatorCommand) bool { return a == b && !a.UsedAt.IsZero() }, func() (exchange.OperatorCommand, error) {
		return s.UseCommand(ctx, c.ID, "order", o.ID)
	})
	callback := exchange.MomoCallback{ID: uuid.New(), AttemptID: a.ID, Kind: exchange.CallbackResult, RemoteIP: "192.0.2.1", Body: []byte("raw \x00"), ReceivedAt: time.Now()}
	for range 2 {
		if err := s.SaveCallback(ctx, callback); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := s.Callbacks(ctx, a.ID); err != nil || len(all) != 1 || string(all[0].Body) != "raw \x00" {
		t.Errorf("callbacks %+v, %v", all, err)
	}
	callback.ID, callback.Body = uuid.New(), make([]byte, store.MaxCallbackBody+1)
	wantFault(t, s.SaveCallback(ctx, callback), exchange.CodeTooLarge)

	seen := exchange.Observation{Receipt: storetest.Receipt(t), Amount: kes("1295"), Reference: a.Reference, Phone: a.Phone, Source: exchange.SourceConfirmation, At: time.Now()}
	for range 2 {
		if err := s.SaveReceipt(ctx, seen); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.ReceiptsFor(ctx, a.Reference)
	if err != nil || len(all) != 1 || !all[0].Amount.Equal(kes("1295")) || all[0].PhoneHash != a.Phone.Hash() || all[0].Phone != "" {
		t.Errorf("receipts %+v, %v", all, err)
	}
	seen.Amount = kes("1296")
	wantFault(t, s.SaveReceipt(ctx, seen), exchange.CodeConflict)
}
