// Package npm gets packages of the npm registry for the chains' nodes, through the npm that is set up on the machine. No code
// of a package is run.
package npm

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
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

// packTimeout is how long npm may take for one package of some megabytes.
const packTimeout = 3 * time.Minute

// Options say how a package may be had.
type Options struct {
	// NoInstall forbids to install npm from the system's packages.
	NoInstall bool
	// Progress gets what takes time, a line each. Nil for nothing.
	Progress io.Writer
}

// Package is one version of a package.
type Package struct {
	Spec string // name@version
	// Integrity is the hash of the packed package as npm's lock files have it, "sha512-" and base64. Empty: the caller checks
	// what it takes out of the package.
	Integrity string
}

// Pack has npm fetch a package and returns it as npm packs it, a gzipped tar.
func Pack(ctx context.Context, p Package, o Options) (packed []byte, err error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	npm, err := find(ctx, o)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kivuko-npm-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	_, _ = fmt.Fprintf(o.Progress, "fetching the npm package %s\n", p.Spec)
	ctx, cancel := context.WithTimeout(ctx, packTimeout)
	defer cancel()
	// npm's own timeout without a network is a minute, and the stack waits for it.
	cmd := exec.CommandContext(ctx, npm, "pack", "--ignore-scripts", "--silent",
		"--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=1000", p.Spec)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("npm can't fetch %s: %w %s", p.Spec, err, firstLine(said.String()))
	}
	packs, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(packs) != 1 {
		return nil, fmt.Errorf("npm left %d packages instead of one", len(packs))
	}
	if packed, err = os.ReadFile(packs[0]); err != nil {
		return nil, err
	}
	sum := sha512.Sum512(packed)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); p.Integrity != "" && got != p.Integrity {
		return nil, fmt.Errorf("the package %s has the hash %s, want %s", p.Spec, got, p.Integrity)
	}
	return packed, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// find finds npm, or installs it where that needs no password.
func find(ctx context.Context, o Options) (string, error) {
	npm, err := exec.LookPath("npm")
	if err == nil {
		return npm, nil
	}
	if o.NoInstall {
		return "", errors.New("npm is not installed")
	}
	if err := install(ctx, o.Progress); err != nil {
		return "", err
	}
	return exec.LookPath("npm")
}

func install(ctx context.Context, progress io.Writer) error {
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
