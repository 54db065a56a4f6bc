package api

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

func testHasher(t *testing.T, o Argon2) *hasher {
	t.Helper()
	h, err := newHasher([]Key{testKey("p", 'p')}, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestPasswordsVerify(t *testing.T) {
	h, ctx, user := testHasher(t, Argon2{Parallel: 2, Queue: 2}), context.Background(), uuid.New()
	phc, err := h.hash(ctx, passwordOf(user, "correct horse"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(phc, "$argon2id$v=19$m=19456,t=2,p=1,keyid=cA$") {
		t.Errorf("stored as %s", phc)
	}
	for text, want := range map[string]bool{"correct horse": true, "correct hors": false, "": false} {
		if got, stale, err := h.verify(ctx, phc, passwordOf(user, text)); got != want || stale || err != nil {
			t.Errorf("%q verifies as %v, stale %v, %v", text, got, stale, err)
		}
	}
	if ok, _, err := h.verify(ctx, "", passwordOf(uuid.Nil, "nobody")); ok || err != nil {
		t.Errorf("an unknown account logs in with the dummy's secret: %v, %v", ok, err)
	}
	for _, damaged := range []string{
		"x", "$argon2id$v=19$m=19456,t=2,p=1,keyid=cA$!!$!!", "$argon2i$v=19$m=19456,t=2,p=1,keyid=cA$YQ$YQ", strings.Replace(phc, "m=19456", "m=4294967295", 1),
		strings.Replace(phc, "p=1", "p=0", 1), strings.Replace(phc, "t=2", "t=0", 1), strings.Replace(phc, ",keyid=cA", "", 1),
	} {
		if ok, _, err := h.verify(ctx, damaged, passwordOf(user, "correct horse")); ok || err == nil {
			t.Errorf("%s: %v, %v", damaged, ok, err)
		}
	}
}

func TestHashFitsOneUserOneKindAndOnePepper(t *testing.T) {
	h, ctx, user := testHasher(t, Argon2{Parallel: 2, Queue: 2}), context.Background(), uuid.New()
	phc, err := h.hash(ctx, pinOf(user, "4821"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		given secret
		want  bool
	}{
		"the PIN": {pinOf(user, "4821"), true}, "another user's": {pinOf(uuid.New(), "4821"), false}, "a password": {passwordOf(user, "4821"), false},
	} {
		if ok, _, err := h.verify(ctx, phc, c.given); ok != c.want || err != nil {
			t.Errorf("%s verifies as %v, %v", name, ok, err)
		}
	}
	other := &hasher{peppers: []Key{testKey("q", 'p')}, slots: h.slots, queue: 2, dummy: strings.Replace(h.dummy, "keyid=cA", "keyid=cQ", 1)}
	if ok, _, err := other.verify(ctx, phc, pinOf(user, "4821")); ok || err != nil {
		t.Errorf("the PIN verifies without its pepper: %v, %v", ok, err)
	}
	rotated := &hasher{peppers: []Key{testKey("q", 'q'), testKey("p", 'p')}, slots: h.slots, queue: 2}
	if ok, stale, err := rotated.verify(ctx, phc, pinOf(user, "4821")); !ok || !stale || err != nil {
		t.Errorf("after a rotation: %v, stale %v, %v", ok, stale, err)
	}
}

func TestHashingRefusesWhenTheQueueIsFull(t *testing.T) {
	h, ctx := testHasher(t, Argon2{Parallel: 1, Queue: 1}), context.Background()
	first, err := h.turn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		if second, err := h.turn(ctx); err != nil {
			t.Errorf("the one place in the queue is refused: %v", err)
		} else {
			second()
		}
	})
	for h.waiting.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	if _, err := h.turn(ctx); exchange.CodeOf(err) != exchange.CodeUnavailable {
		t.Errorf("a third is let in: %v", err)
	}
	first()
	wait.Wait()
	if n := h.waiting.Load(); n != 0 {
		t.Errorf("%d still count as waiting", n)
	}
}

func TestWeakPasswordsAreRefused(t *testing.T) {
	for password, want := range map[string]string{
		"short": "length", strings.Repeat("x", 129): "length", "Password123": "too_common", "zzzzzzzzzz": "too_common",
		"amina@example.com": "too_common", "AminaOtieno": "too_common", "otieno2026": "too_common", "Nairobi2024!": "too_common",
		"qazwsxedc": "too_common", "monkey dragon": "too_common", "a perfectly fine one": "", "vK7#pw2Lq9x": "",
	} {
		if got, _ := checkPassword(password, "Amina@Example.com", "Amina", "Otieno"); got != want {
			t.Errorf("%q: %q, want %q", password, got, want)
		}
	}
}
