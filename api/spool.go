package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of the spool, so that an outage can't fill the disk. Without the database, tokens can't be checked, so notices
// from outside the operator's addresses may fill only half of it.
const (
	maxSpooled      = 100_000
	maxSpooledBytes = 1 << 30
	strangersShare  = 2 // notices from outside the operator's addresses get 1/strangersShare
	spoolSuffix     = ".callback"
	measureLife     = time.Second // how long a count is reused; other processes may share the directory
)

// errSpoolFull means that a notice was rejected because too many wait.
var errSpoolFull = errors.New("spool: full")

// spool keeps callbacks on disk while the database is down, one file each, until they are taken. The files contain
// tokens and phone numbers, so only the service's own user may read them.
type spool struct {
	dir string
	log *slog.Logger
	mu  sync.Mutex // one drain at a time

	measuring sync.Mutex
	measured  time.Time
	files     int
	bytes     int64
}

// newSpool opens the directory, which must exist and be writable.
func newSpool(dir string, log *slog.Logger) (*spool, error) {
	probe, err := os.CreateTemp(dir, "probe-*")
	if err != nil {
		return nil, fmt.Errorf("spool directory: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, fmt.Errorf("spool directory: %w", err)
	}
	return &spool{dir: dir, log: log}, nil
}

// keep writes a notice so that it survives a crash: content and name are both on disk when it returns.
// It fails with errSpoolFull when too many notices wait already.
func (s *spool) keep(n notice) error {
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := s.reserve(int64(len(raw)), n.OffRange); err != nil {
		return err
	}
	// The id is a UUIDv7, so names sort by time.
	name := filepath.Join(s.dir, n.ID.String()+spoolSuffix)
	f, err := os.OpenFile(name+".part", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // G304: the name is our own
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncDir(s.dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // G304: the directory is configuration
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// reserve counts a file before it is written, or refuses it. If writing fails, the next count corrects the number.
func (s *spool) reserve(size int64, stranger bool) error {
	files, bytes := s.waiting()
	s.measuring.Lock()
	defer s.measuring.Unlock()
	most, mostBytes := maxSpooled, int64(maxSpooledBytes)
	if stranger {
		most, mostBytes = most/strangersShare, mostBytes/strangersShare
	}
	if files >= most || bytes+size > mostBytes {
		return fmt.Errorf("%w: %d callbacks with %d bytes wait; the limits are %d and %d", errSpoolFull, files, bytes, most, mostBytes)
	}
	s.files++
	s.bytes += size
	return nil
}

// names returns the names of the waiting files, oldest first.
func (s *spool) names() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), spoolSuffix) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// waiting returns how many callbacks wait, and the bytes in the directory, damaged files included.
func (s *spool) waiting() (files int, bytes int64) {
	s.measuring.Lock()
	defer s.measuring.Unlock()
	if time.Since(s.measured) < measureLife {
		return s.files, s.bytes
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return s.files, s.bytes // if the directory is unreadable, writing fails too
	}
	s.files, s.bytes, s.measured = 0, 0, time.Now()
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // a missing file was drained in the meantime
			s.bytes += info.Size()
			if strings.HasSuffix(e.Name(), spoolSuffix) {
				s.files++
			}
		}
	}
	return s.files, s.bytes
}

// drain hands over the waiting callbacks, oldest first, and removes each one that is taken. It stops at the first one
// that is not, because the next one would fail too.
func (s *spool) drain(ctx context.Context, take func(context.Context, notice) error) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := s.names()
	if err != nil {
		return 0, err
	}
	for i, name := range names {
		if err := s.handOver(ctx, filepath.Join(s.dir, name), take); err != nil {
			return i, err
		}
	}
	return len(names), nil
}

func (s *spool) handOver(ctx context.Context, path string, take func(context.Context, notice) error) error {
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the directory is our own
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process that shares the directory drained it
	}
	if err != nil {
		return err
	}
	var n notice
	if err := json.Unmarshal(raw, &n); err != nil {
		// A damaged file must not block the next ones. It stays, so that an operator can inspect it.
		s.log.Error("a spooled callback can't be read", "file", filepath.Base(path), "error", err)
		return os.Rename(path, path+".damaged")
	}
	if err := take(ctx, n); err != nil {
		return err
	}
	return os.Remove(path)
}
