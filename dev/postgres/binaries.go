package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldestMajor is the oldest PostgreSQL release that Kivuko's SQL is written for.
const oldestMajor = 14

// binaries are the server programs of one PostgreSQL release.
type binaries struct {
	dir   string
	major int
}

func (b binaries) postgres() string { return filepath.Join(b.dir, "postgres") }
func (b binaries) initdb() string   { return filepath.Join(b.dir, "initdb") }

var errNoBinaries = errors.New("no PostgreSQL server programs found")

// findOrInstall returns server programs of at least oldestMajor, or exactly of
// release wanted when that is not zero, because only its own major release can open
// a cluster. It installs them from the system's packages when allowed.
func findOrInstall(ctx context.Context, wanted int, opts Options) (binaries, error) {
	found, err := find(ctx, wanted)
	if err == nil || opts.NoInstall || wanted != 0 {
		return found, err
	}
	if !errors.Is(err, errNoBinaries) {
		return binaries{}, err
	}
	if err := install(ctx, opts.Progress); err != nil {
		return binaries{}, err
	}
	return find(ctx, wanted)
}

func find(ctx context.Context, wanted int) (binaries, error) {
	var seen []string
	var usable []binaries
	for _, dir := range candidateDirs(ctx) {
		major, err := majorOf(ctx, dir)
		if err != nil {
			continue
		}
		seen = append(seen, fmt.Sprintf("%d in %s", major, dir))
		if major >= oldestMajor && (wanted == 0 || major == wanted) {
			usable = append(usable, binaries{dir: dir, major: major})
		}
	}
	if len(usable) > 0 {
		return slices.MaxFunc(usable, func(a, b binaries) int { return a.major - b.major }), nil
	}
	switch {
	case wanted != 0:
		return binaries{}, fmt.Errorf("the data was written by PostgreSQL %d, whose server programs are not here (found: %s): "+
			"install that release, or delete the data with `make clean-data`", wanted, orNone(seen))
	case len(seen) > 0:
		return binaries{}, fmt.Errorf("%w of release %d or newer (found: %s)", errNoBinaries, oldestMajor, orNone(seen))
	default:
		return binaries{}, errNoBinaries
	}
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// candidateDirs lists the directories of server programs, without duplicates.
// Debian keeps them out of PATH, one directory for each release.
func candidateDirs(ctx context.Context) []string {
	var dirs []string
	add := func(dir string) {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		// The other programs are in the directory of the real file, not of a link to it.
		if real, err := filepath.EvalSymlinks(path); err == nil {
			add(filepath.Dir(real))
		}
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin"} {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			continue // the patterns are constants; a bad one finds nothing
		}
		for _, dir := range matches {
			add(dir)
		}
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		add(strings.TrimSpace(string(out)))
	}
	return dirs
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// majorOf returns the release of the server program in dir; initdb must be there too.
func majorOf(ctx context.Context, dir string) (int, error) {
	b := binaries{dir: dir}
	if _, err := os.Stat(b.initdb()); err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, b.postgres(), "--version").Output()
	if err != nil {
		return 0, err
	}
	match := versionPattern.FindSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("can't read the version %q of %s", out, b.postgres())
	}
	return strconv.Atoi(string(match[1]))
}

// install installs the server programs from the system's packages.
func install(ctx context.Context, progress io.Writer) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return fmt.Errorf("%w, and this system has no apt-get: install PostgreSQL %d or newer, server included, "+
			"so that `postgres` is in PATH, and try again", errNoBinaries, oldestMajor)
	}
	prefix := []string{}
	if os.Geteuid() != 0 {
		sudo, err := exec.LookPath("sudo")
		if err != nil || exec.CommandContext(ctx, sudo, "-n", "true").Run() != nil {
			return fmt.Errorf("%w: an administrator must run once `apt-get update && apt-get install -y postgresql` "+
				"(you are not root, and sudo is missing or asks for a password)", errNoBinaries)
		}
		prefix = []string{sudo, "-n", "env"}
	} else {
		prefix = append(prefix, "env")
	}
	for _, args := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", "postgresql"}} {
		_, _ = fmt.Fprintf(progress, "PostgreSQL is not installed: running apt-get %s\n", strings.Join(args, " "))
		line := slices.Concat(prefix, []string{"DEBIAN_FRONTEND=noninteractive", apt}, args)
		cmd := exec.CommandContext(ctx, line[0], line[1:]...)
		cmd.Stdout, cmd.Stderr = progress, progress
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w (its output is above)", args[0], err)
		}
	}
	return nil
}
