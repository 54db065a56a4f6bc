package programs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The package holds litesvm, Solana's virtual machine as a library for node, in
// its build for one system. The programs lie in it as they were deployed, so that
// it needs to be searched only, not run, and its system doesn't matter.
const (
	packageSpec = "litesvm-linux-x64-gnu@1.5.0"
	librarySize = 64 << 20 // far more than it has
)

var elfMagic = []byte("\x7fELF\x02\x01\x01")

// extract finds the programs in the library.
func extract(library []byte) (Set, error) {
	pinned := pins()
	set := make(Set, len(pinned))
	for at := 0; ; at++ {
		next := bytes.Index(library[at:], elfMagic)
		if next < 0 {
			break
		}
		at += next
		for i, p := range pinned {
			if set[i].ELF == nil && at+p.size <= len(library) && p.matches(library[at:at+p.size]) {
				set[i] = Program{Name: p.name, Address: p.address, Upgradeable: p.upgradeable, ELF: bytes.Clone(library[at : at+p.size])}
			}
		}
	}
	for i, p := range pinned {
		if set[i].ELF == nil {
			return nil, fmt.Errorf("the program %s is not in the package %s", p.name, packageSpec)
		}
	}
	return set, nil
}

// readLibrary reads the one library that is in a package as npm packs it.
func readLibrary(pack io.Reader) ([]byte, error) {
	unzipped, err := gzip.NewReader(pack)
	if err != nil {
		return nil, fmt.Errorf("unpack the package: %w", err)
	}
	files := tar.NewReader(unzipped)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the package holds no library")
		}
		if err != nil {
			return nil, fmt.Errorf("unpack the package: %w", err)
		}
		if !strings.HasSuffix(header.Name, ".node") {
			continue
		}
		library, err := io.ReadAll(io.LimitReader(files, librarySize+1))
		if err != nil {
			return nil, fmt.Errorf("unpack the package: %w", err)
		}
		if len(library) > librarySize {
			return nil, fmt.Errorf("the library in the package has more than %d bytes", librarySize)
		}
		return library, nil
	}
}
