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
	h, err := newHasher([]byte(strings.Repeat("p", minPepper)), o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestPasswordsVerify(t *testing.T) {
	h, ctx := testHasher(t, Argon2{Parallel: 2, Queue: 2}), context.Background()
	phc, err := h.hash(ctx, []byte("correct horse"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(phc, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("stored as %s", phc)
	}
	for secret, want := range map[string]bool{"correct horse": true, "correct hors": false, "": false} {
		if got, err := h.verify(ctx, phc, []byte(secret)); got != want || err != nil {
			t.Errorf("%q verifies as %v, %v", secret, got, err)
		}
	}
	if ok, err := h.verify(ctx, "", []byte("nobody")); ok || err != nil {
		t.Errorf("an unknown account logs in with the dummy's secret: %v, %v", ok, err)
	}
	for _, damaged := range []string{
		"x", "$argon2id$v=19$m=19456,t=2,p=1$!!$!!", "$argon2i$v=19$m=19456,t=2,p=1$YQ$YQ", strings.Replace(phc, "m=19456", "m=4294967295", 1),
		strings.Replace(phc, "p=1", "p=0", 1), strings.Replace(phc, "t=2", "t=0", 1),
	} {
		if ok, err := h.verify(ctx, damaged, []byte("correct horse")); ok || err == nil {
			t.Errorf("%s: %v, %v", damaged, ok, err)
		}
	}
}

func TestPINHashFitsOneUserAndOnePepper(t *testing.T) {
	h, ctx, user := testHasher(t, Argon2{Parallel: 2, Queue: 2}), context.Background(), uuid.New()
	phc, err := h.hash(ctx, h.pin(user, "4821"))
	if err != nil {
		t.Fatal(err)
	}
	if ok, _ := h.verify(ctx, phc, h.pin(user, "4821")); !ok {
		t.Error("the PIN does not verify")
	}
	if ok, _ := h.verify(ctx, phc, h.pin(uuid.New(), "4821")); ok {
		t.Error("another user's PIN verifies")
	}
	other, _ := newHasher([]byte(strings.Repeat("q", minPepper)), Argon2{Parallel: 1, Queue: 1})
	if ok, _ := other.verify(ctx, phc, other.pin(user, "4821")); ok {
		t.Error("the PIN verifies under another pepper")
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
