package safe

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"kivuko/dev/nodes/npm"
)

// source is the package with the contracts' code, as the authors compiled it.
var source = npm.Package{
	Spec:      "@safe-global/safe-contracts@1.4.1",
	Integrity: "sha512-fP1jewywSwsIniM04NsqPyVRFKPMAuirC3ftA/TA4X3Zc5EnwQp/UCJUU2PL/37/z/jMo8UUaJ+pnFNWmMU7dQ==",
}

// UnavailableError explains why there are no contracts, in a sentence for the person who started the local stack. The stack
// can go on without them.
type UnavailableError struct{ Cause error }

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the contracts of Safe can't be had: %v", e.Cause)
}

func (e *UnavailableError) Unwrap() error { return e.Cause }

// Options say how Get may get the contracts.
type Options struct {
	// Dir keeps them; see CacheDir.
	Dir string
	npm.Options
}

// Get reads the contracts from the cache, or takes them out of the package that npm fetches, and keeps them. It fails with
// *UnavailableError when they can't be had.
func Get(ctx context.Context, o Options) (Set, error) {
	set, err := Cached(o.Dir)
	if errors.Is(err, ErrNotCached) {
		if set, err = fetch(ctx, o.Options); err == nil {
			err = keep(o.Dir, set)
		}
	}
	if err != nil {
		return nil, &UnavailableError{Cause: err}
	}
	return set, nil
}

func fetch(ctx context.Context, o npm.Options) (Set, error) {
	packed, err := npm.Pack(ctx, source, o)
	if err != nil {
		return nil, err
	}
	return unpack(packed)
}

// maxArtefact bounds one file; the largest has half a megabyte.
const maxArtefact = 4 << 20

// unpack takes the contracts out of the package.
func unpack(packed []byte) (Set, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack the package: %w", err)
	}
	found := map[string][]byte{}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("unpack the package: %w", err)
		}
		for _, p := range pins() {
			if header.Name == "package/build/artifacts/contracts/"+p.path+".json" {
				if found[p.path], err = io.ReadAll(io.LimitReader(files, maxArtefact)); err != nil {
					return nil, fmt.Errorf("unpack the package: %w", err)
				}
			}
		}
	}
	var set Set
	for _, p := range pins() {
		if found[p.path] == nil {
			return nil, fmt.Errorf("the contract %s is not in the package %s", p.name(), source.Spec)
		}
		one, err := p.read(found[p.path])
		if err != nil {
			return nil, err
		}
		set = append(set, one)
	}
	return set, nil
}
