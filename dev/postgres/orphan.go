package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// evictOrphan handles the process file that a killed run left behind. We hold the
// cluster's lock, so a postmaster that still serves this directory has lost its
// owner, and evictOrphan stops it. When the process id now belongs to another
// program, it removes the file, because PostgreSQL would refuse to start.
func (c *cluster) evictOrphan(ctx context.Context) error {
	path := filepath.Join(c.dataDir(), "postmaster.pid")
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 || !c.serves(pid) {
		return removeStale(path)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop the PostgreSQL that a killed run left behind (process %d): %w", pid, err)
		}
		if c.waitGone(ctx, pid) {
			return removeStale(path)
		}
	}
	return fmt.Errorf("the PostgreSQL that a killed run left behind (process %d) does not end", pid)
}

func removeStale(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (c *cluster) waitGone(ctx context.Context, pid int) bool {
	const timeout = 15 * time.Second
	for began := time.Now(); time.Since(began) < timeout; {
		if !c.serves(pid) {
			return true
		}
		if sleep(ctx, pollEvery) != nil {
			return false
		}
	}
	return false
}

// serves reports whether pid is a live PostgreSQL working in this cluster's data
// directory. Without /proc (not Linux) every live process counts as one.
func (c *cluster) serves(pid int) bool {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	if _, err := os.Stat("/proc/self"); err != nil {
		return true
	}
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return false // it ended meanwhile
	}
	// The state follows the name in parentheses; Z is a process that has ended and
	// is not reaped yet.
	if i := strings.LastIndex(string(stat), ") "); i >= 0 && strings.HasPrefix(string(stat[i+2:]), "Z") {
		return false
	}
	cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
	if err != nil {
		return false // another user's process: not the server we started
	}
	real, err := filepath.EvalSymlinks(c.dataDir())
	return err == nil && cwd == real
}
