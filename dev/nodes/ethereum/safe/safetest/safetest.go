// Package safetest gives tests the contracts of Safe.
package safetest

import (
	"errors"
	"os"
	"testing"

	"kivuko/dev/nodes/ethereum/safe"
	"kivuko/dev/nodes/npm"
)

// Set is the real contracts. On a machine that doesn't have them the test is skipped; one that checks a submission (CI is set)
// takes them from npm first, and fails if it can't.
func Set(t testing.TB) safe.Set {
	t.Helper()
	dir, err := safe.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	set, err := safe.Cached(dir)
	submission := os.Getenv("CI") != "" //nolint:forbidigo // a fixture of tests
	if err != nil && submission {
		set, err = safe.Get(t.Context(), safe.Options{Dir: dir, Options: npm.Options{NoInstall: true}})
	}
	var unavailable *safe.UnavailableError
	switch {
	case err == nil:
		return set
	case submission: // a check that skips them would pass without having checked anything
		t.Fatal(err)
	case errors.Is(err, safe.ErrNotCached) || errors.As(err, &unavailable):
		t.Skipf("the contracts of Safe are not on this machine (the local stack takes them from npm when it starts): %v", err)
	default:
		t.Fatal(err)
	}
	return nil
}
