package journal

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var identity = Identity{Format: "TEST1", ID: [32]byte{1, 2, 3}}

// open returns the journal and the records that it held.
func open(t *testing.T, path string) (*Journal, []string) {
	t.Helper()
	var held []string
	j, err := Open(path, identity, func(body []byte) error {
		held = append(held, string(body))
		return nil
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return j, held
}

// filled writes records and returns the file's path.
func filled(t *testing.T, records ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "deep", "journal")
	j, _ := open(t, path)
	for _, r := range records {
		if err := j.Append([]byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRecordsComeBackInOrder(t *testing.T) {
	path := filled(t, "one", "two")
	j, held := open(t, path)
	if !slices.Equal(held, []string{"one", "two"}) {
		t.Fatalf("held %q", held)
	}
	if err := j.Append([]byte("three")); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, held = open(t, path); !slices.Equal(held, []string{"one", "two", "three"}) {
		t.Fatalf("held %q after appending", held)
	}
}

// A crash in the middle of a write leaves any part of the last record, or zeros.
func TestTornTailIsCutOff(t *testing.T) {
	for cut := 1; cut < recordHeadBytes+len("two"); cut++ {
		path := filled(t, "one", "two")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for name, tail := range map[string][]byte{
			"short": raw[:len(raw)-cut],
			"zeros": append(slices.Clone(raw[:len(raw)-recordHeadBytes-3]), make([]byte, cut)...),
		} {
			if err := os.WriteFile(path, tail, 0o600); err != nil {
				t.Fatal(err)
			}
			j, held := open(t, path)
			if !slices.Equal(held, []string{"one"}) {
				t.Fatalf("%s by %d: held %q", name, cut, held)
			}
			if err := j.Append([]byte("again")); err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j, held = open(t, path)
			if !slices.Equal(held, []string{"one", "again"}) {
				t.Fatalf("%s by %d: held %q after appending", name, cut, held)
			}
			_ = j.Close()
		}
	}
}

func TestDamageIsRefused(t *testing.T) {
	path := filled(t, "one", "two")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := len(identity.header()); at < len(raw)-recordHeadBytes-3; at++ {
		bad := slices.Clone(raw)
		bad[at] ^= 0x40
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path, identity, func([]byte) error { return nil }, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Fatalf("byte %d flipped: %v", at, err)
		}
	}
}

func TestForeignFileIsRefused(t *testing.T) {
	path := filled(t, "one")
	ignore := func([]byte) error { return nil }
	other := identity
	other.ID[0]++
	if _, err := Open(path, other, ignore, slog.New(slog.DiscardHandler)); !errors.Is(err, ErrOtherChain) {
		t.Errorf("another chain: %v", err)
	}
	other = identity
	other.Format = "TEST2"
	if _, err := Open(path, other, ignore, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("another format was accepted")
	}
	held, _ := open(t, path)
	defer func() { _ = held.Close() }()
	if _, err := Open(path, identity, ignore, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "another node") {
		t.Errorf("opened twice: %v", err)
	}
}

func TestRefusedRecordIsAnError(t *testing.T) {
	path := filled(t, "one")
	refusal := errors.New("no")
	if _, err := Open(path, identity, func([]byte) error { return refusal }, slog.New(slog.DiscardHandler)); !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
	j, _ := open(t, path)
	defer func() { _ = j.Close() }()
	if err := j.Append(nil); err == nil {
		t.Error("an empty record was accepted")
	}
}
