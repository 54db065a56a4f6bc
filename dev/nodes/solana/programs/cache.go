package programs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CacheDir is where a user's programs are kept: "kivuko/solana" in the directory
// that the system has for such things.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a directory to keep the Solana programs in: %w", err)
	}
	return filepath.Join(dir, "kivuko", "solana"), nil
}

// ErrNotCached says that a directory does not hold all the programs.
var ErrNotCached = errors.New("the Solana programs are not in the cache")

// Cached reads the programs from a directory that Get filled. It reaches for
// nothing else, and fails with ErrNotCached when one is missing or not what it
// should be.
func Cached(dir string) (Set, error) {
	var set Set
	for _, p := range pins() {
		code, err := os.ReadFile(p.file(dir))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: no %s in %s", ErrNotCached, p.name, dir)
		}
		if err != nil {
			return nil, fmt.Errorf("read the program %s: %w", p.name, err)
		}
		if !p.matches(code) {
			return nil, fmt.Errorf("%w: %s has another hash than the one meant", ErrNotCached, p.file(dir))
		}
		set = append(set, Program{Name: p.name, Address: p.address, Upgradeable: p.upgradeable, ELF: code})
	}
	return set, nil
}

// file is named after the hash too, so that a newer version of Kivuko doesn't take
// an older program.
func (p pin) file(dir string) string { return filepath.Join(dir, p.name+"-"+p.sha256[:16]+".so") }

// keep writes programs into the directory, each at once or not at all.
func keep(dir string, set Set) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory for the Solana programs: %w", err)
	}
	for i, p := range pins() {
		half, err := os.CreateTemp(dir, p.name+"-*.part")
		if err != nil {
			return fmt.Errorf("keep the program %s: %w", p.name, err)
		}
		_, err = half.Write(set[i].ELF)
		if err = errors.Join(err, half.Close()); err == nil {
			err = os.Rename(half.Name(), p.file(dir))
		}
		if err != nil {
			return errors.Join(fmt.Errorf("keep the program %s: %w", p.name, err), os.Remove(half.Name()))
		}
	}
	return nil
}
