package api

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"aidanwoods.dev/go-paseto"
	"github.com/google/uuid"

	"kivuko/store"
)

func itoa(n int) string { return strconv.Itoa(n) }

func testKey(id string, fill byte) Key {
	k := Key{ID: id}
	for i := range k.Secret {
		k.Secret[i] = fill
	}
	return k
}

func mustRing(t *testing.T, keys ...Key) *keyring {
	t.Helper()
	r, err := newKeyring("kivuko", keys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAccessTokenOpens(t *testing.T) {
	now := time.Now().UTC()
	r := mustRing(t, testKey("one", 1))
	want := claims{uuid.New(), uuid.New(), 7}
	text, expires, err := r.access(want, now)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text, "v4.local.") || expires.Sub(now) != 15*time.Minute {
		t.Fatalf("token %.12s… expires in %s", text, expires.Sub(now))
	}
	for _, at := range []time.Duration{-clockSkew, 0, AccessTokenLife - time.Second} {
		got, err := r.open(text, now.Add(at))
		if err != nil || got != want {
			t.Errorf("after %s: %+v, %v", at, got, err)
		}
	}
	for _, at := range []time.Duration{-clockSkew - 2*time.Second, AccessTokenLife, time.Hour} {
		if _, err := r.open(text, now.Add(at)); err == nil {
			t.Errorf("after %s the token is still taken", at)
		}
	}
}

func TestKeysRotateWithoutLosingAToken(t *testing.T) {
	now := time.Now().UTC()
	before, next := testKey("old", 1), testKey("new", 2)
	c := claims{uuid.New(), uuid.New(), 1}
	oldToken, _, _ := mustRing(t, before).access(c, now)
	overlap := mustRing(t, next, before)
	if _, err := overlap.open(oldToken, now); err != nil {
		t.Errorf("the token of the key before is refused during the overlap: %v", err)
	}
	newToken, _, _ := overlap.access(c, now)
	if _, err := mustRing(t, before, next).open(newToken, now); err != nil {
		t.Errorf("a process that signs with the old key refuses the new one: %v", err)
	}
	if _, err := mustRing(t, next).open(oldToken, now); err == nil {
		t.Error("a token of a removed key is accepted")
	}
	impostor := testKey("new", 9)
	if _, err := mustRing(t, impostor).open(newToken, now); err == nil {
		t.Error("a token opens under another key of the same id")
	}
}

func TestOtherTokensAreRefused(t *testing.T) {
	now := time.Now().UTC()
	key := testKey("one", 1)
	r := mustRing(t, key)
	good, _, _ := r.access(claims{uuid.New(), uuid.New(), 1}, now)
	refresh, _, err := r.refresh(uuid.New(), uuid.New(), now, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	other, _ := newKeyring("elsewhere", []Key{key})
	foreign, _, _ := other.access(claims{uuid.New(), uuid.New(), 1}, now)
	secret, _ := paseto.V4SymmetricKeyFromBytes(key.Secret[:])
	bare := paseto.NewToken()
	bare.SetIssuer("kivuko")
	bare.SetAudience(tokenAudience)
	bare.SetFooter([]byte(`{"kid":"one"}`))
	for name, text := range map[string]string{
		"empty": "", "noise": "not a token", "refresh token": refresh, "another issuer": foreign,
		"flipped": good[:60] + flip(good[60]) + good[61:], "cut": good[:len(good)-30], "long": good + strings.Repeat("A", maxBearerLength),
		"v4.public": "v4.public." + good[len("v4.local."):], "v2.local": "v2.local." + good[len("v4.local."):],
		"no claims": bare.V4Encrypt(secret, r.assertion("access")), "no footer": good[:strings.LastIndex(good, ".")],
	} {
		if _, err := r.open(text, now); err == nil {
			t.Errorf("%s is accepted as an access token", name)
		}
	}
}

func flip(b byte) string {
	if b == 'A' {
		return "B"
	}
	return "A"
}

func TestKeysDoNotPrint(t *testing.T) {
	k := testKey("one", 0x41)
	for _, text := range []string{k.String(), k.GoString()} {
		if strings.Contains(text, "AAAA") || strings.Contains(text, "65") {
			t.Errorf("the secret shows in %q", text)
		}
	}
}

// TestFullCachesKeepWhatTheyHave fills both caches above their limits. One more entry must not evict all others.
func TestFullCachesKeepWhatTheyHave(t *testing.T) {
	now := time.Now()
	ring, err := newKeyring("kivuko", []Key{testKey("a", 1)})
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := newSessionCache(func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	var keys []sessionKey
	for i := range maxProvenTokens + 100 {
		ring.proven.Set(strconv.Itoa(i), provenToken{from: now, expires: now.Add(time.Minute)})
	}
	for range sessionCacheSize + 100 {
		keys = append(keys, sessionKey{newID(), newID()})
		sessions.put(keys[len(keys)-1], store.AuthState{}, 0)
	}
	var tokens, kept int
	for i := range maxProvenTokens + 100 {
		if _, ok := ring.known(strconv.Itoa(i), now); ok {
			tokens++
		}
	}
	for _, k := range keys {
		if _, _, ok := sessions.get(k); ok {
			kept++
		}
	}
	if tokens < maxProvenTokens/2 || kept < sessionCacheSize/2 {
		t.Errorf("%d tokens and %d sessions are left", tokens, kept)
	}
	ring.proven.CleanUp()
	sessions.entries.CleanUp()
	if n, m := ring.proven.EstimatedSize(), sessions.entries.EstimatedSize(); n > maxProvenTokens || m > sessionCacheSize {
		t.Errorf("%d tokens and %d sessions are kept", n, m)
	}
	sessions.forget(keys[len(keys)-1].user)
	if _, _, ok := sessions.get(keys[len(keys)-1]); ok {
		t.Error("a forgotten session is kept")
	}
}
