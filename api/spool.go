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

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// Limits of the spool, so that an outage can't fill the disk. Without the database, tokens can't be checked, so notices
// from outside the operator's addresses may fill only half of it.
const (
	maxSpooled      = 100_000
	maxSpooledBytes = 1 << 30
	strangersShare  = 2 // notices from outside the operator's addresses get 1/strangersShare
	spoolSuffix     = ".callback"
	spoolTimeout    = 30 * time.Second // for storing one notice in the database
	measureLife     = time.Second      // how long a count is reused; other processes may share the directory
)

// errSpoolFull means that a notice was rejected because too many wait.
var errSpoolFull = errors.New("spool: full")

// Spool keeps callbacks on disk while the database is down, one file each, and stores them later. The files contain
// tokens and phone numbers, so only the service's own user may read them.
type Spool struct {
	dir   string
	store *store.Store
	flows Flows
	log   *slog.Logger
	mu    sync.Mutex // one drain at a time

	// Notices reads notices of payments to our number, so that these payments are recorded at once. With nil, only
	// the operator's statement is read. It is set before the spool is used.
	Notices ReadNotice

	measuring sync.Mutex
	measured  time.Time
	files     int
	bytes     int64
}

// spooled is the content of a notice's file.
type spooled struct {
	ID         uuid.UUID             `json:"id"`
	Token      string                `json:"token"`
	Kind       exchange.CallbackKind `json:"kind"`
	RemoteIP   string                `json:"remote_ip"`
	OffRange   bool                  `json:"off_range,omitempty"`
	Standing   bool                  `json:"standing,omitempty"`
	Body       []byte                `json:"body"`
	ReceivedAt time.Time             `json:"received_at"`
}

// callback is the notice as it is stored. Only the beginning of an unknown notice is kept, because anybody can
// send those and stored notices are never deleted.
func (n spooled) callback(of addressee) exchange.MomoCallback {
	if of.unassigned() && !n.Standing && len(n.Body) > unknownBody {
		n.Body = n.Body[:unknownBody]
	}
	return exchange.MomoCallback{
		ID: n.ID, AttemptID: of.attempt.ID, FloatMoveID: of.move, Kind: n.Kind, RemoteIP: n.RemoteIP, OffRange: n.OffRange,
		Standing: n.Standing && of.unassigned(), Body: n.Body, ReceivedAt: n.ReceivedAt,
	}
}

// addressee is the owner of the address that a notice came to: a payment attempt, a movement of float, or none.
type addressee struct {
	attempt exchange.PaymentAttempt
	move    uuid.UUID
}

func (a addressee) unassigned() bool { return a.attempt.ID == uuid.Nil && a.move == uuid.Nil }

// NewSpool opens the directory, which must exist and be writable.
func NewSpool(dir string, st *store.Store, flows Flows, log *slog.Logger) (*Spool, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	probe, err := os.CreateTemp(dir, "probe-*")
	if err != nil {
		return nil, fmt.Errorf("spool directory: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, fmt.Errorf("spool directory: %w", err)
	}
	return &Spool{dir: dir, store: st, flows: flows, log: log}, nil
}

// keep writes a notice so that it survives a crash: content and name are both on disk when it returns.
// It fails with errSpoolFull when too many notices wait already.
func (s *Spool) keep(n spooled) error {
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
func (s *Spool) reserve(size int64, stranger bool) error {
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
func (s *Spool) names() ([]string, error) {
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
func (s *Spool) waiting() (files int, bytes int64) {
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

// Run drains the spool periodically until the context ends.
func (s *Spool) Run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if _, err := s.Drain(ctx); err != nil && ctx.Err() == nil {
			files, bytes := s.waiting()
			s.log.Warn("callbacks still wait on disk", "waiting", files, "bytes", bytes, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Drain stores waiting callbacks in the database and wakes their flows. It stops at the first callback that the
// database does not accept, because the next one would fail too. A callback that is drained twice is stored once,
// by its id.
func (s *Spool) Drain(ctx context.Context) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := s.names()
	if err != nil {
		return 0, err
	}
	for i, name := range names {
		if err := s.drain(ctx, filepath.Join(s.dir, name)); err != nil {
			return i, err
		}
	}
	return len(names), nil
}

func (s *Spool) drain(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, spoolTimeout)
	defer cancel()
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the directory is our own
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process that shares the directory drained it
	}
	if err != nil {
		return err
	}
	var n spooled
	if err := json.Unmarshal(raw, &n); err != nil {
		// A damaged file must not block the next ones. It stays, so that an operator can inspect it.
		s.log.Error("a spooled callback can't be read", "file", filepath.Base(path), "error", err)
		return os.Rename(path, path+".damaged")
	}
	of, err := s.match(ctx, n)
	if err != nil {
		return err
	}
	if err := s.store.SaveCallback(ctx, n.callback(of)); err != nil {
		return err
	}
	switch {
	case of.attempt.ID != uuid.Nil:
		s.wake(ctx, of.attempt, n.ID)
	case s.takes(n):
		s.note(ctx, n)
	}
	return os.Remove(path)
}

// match returns the addressee of a notice. For an unknown token it returns the zero addressee and no error.
func (s *Spool) match(ctx context.Context, n spooled) (addressee, error) {
	attempt, err := s.store.AttemptByToken(ctx, n.Token)
	if err == nil || exchange.CodeOf(err) != exchange.CodeNotFound {
		return addressee{attempt: attempt}, err
	}
	if n.Standing {
		return addressee{}, nil
	}
	move, err := s.store.FloatMoveByToken(ctx, n.Token)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return addressee{}, nil
	}
	return addressee{move: move.ID}, err
}

// wake notifies the flow. A flow that misses the signal queries the mobile money operator by itself, only later.
func (s *Spool) wake(ctx context.Context, attempt exchange.PaymentAttempt, callback uuid.UUID) {
	if err := s.flows.Callback(ctx, attempt, callback); err != nil {
		s.log.Error("flow not woken by a callback", "callback_id", callback, "attempt_id", attempt.ID, "error", err)
	}
}

// wakers runs a bounded number of wake-ups in the background. Above the bound, a request waits for its own wake-up.
type wakers struct {
	slots chan struct{}
	wait  sync.WaitGroup
}

func newWakers(n int) *wakers { return &wakers{slots: make(chan struct{}, n)} }

func (w *wakers) start(do func()) {
	select {
	case w.slots <- struct{}{}:
		w.wait.Go(func() {
			defer func() { <-w.slots }()
			do()
		})
	default:
		do()
	}
}
