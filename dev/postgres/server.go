package postgres

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lib/pq"

	"kivuko/dev/child"
	"kivuko/dev/ports"
)

// Limits of starting and stopping the server.
const (
	startTimeout = 90 * time.Second // includes crash recovery of a large cluster
	stopTimeout  = 30 * time.Second
	pollEvery    = 25 * time.Millisecond
	startTries   = 8
)

// Options configure the server.
type Options struct {
	// Dir keeps the cluster across runs. Empty: a temporary cluster in a
	// temporary directory that Stop removes.
	Dir string
	// Unsafe turns off fsync and other protections against a crash of the machine.
	// For tests; killing the server loses nothing that was committed.
	Unsafe bool
	// NoInstall refuses to install missing server programs.
	NoInstall bool
	// Progress gets messages for the user; nil drops them.
	Progress io.Writer
}

// Mode is how a running server is stopped.
type Mode int

// The ways to stop a server, from PostgreSQL's documentation, "Shutting Down the Server".
const (
	// Fast rolls back open transactions, disconnects all clients, and writes a checkpoint.
	Fast Mode = iota
	// Immediate stops without a checkpoint: the next start recovers from the log.
	Immediate
	// Kill is SIGKILL to the postmaster, like a crash.
	Kill
)

func (m Mode) signal() syscall.Signal {
	switch m {
	case Immediate:
		return syscall.SIGQUIT
	case Kill:
		return syscall.SIGKILL
	case Fast:
		return syscall.SIGINT
	default:
		return syscall.SIGINT
	}
}

// Server is a running PostgreSQL.
type Server struct {
	cluster *cluster
	opts    Options

	mu      sync.Mutex // guards process, port and stopped
	process *child.Process
	port    int
	stopped bool
}

// Start makes the cluster if it is missing, starts the server and waits until it
// answers queries. The caller must Stop it.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Progress == nil {
		opts.Progress = io.Discard
	}
	c, err := openCluster(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	s := &Server{cluster: c, opts: opts}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: %w", err), c.close())
	}
	return s, nil
}

// DSN returns the URL of a database of this server, for the cluster's superuser.
// It contains the password: never log it.
func (s *Server) DSN(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.cluster.password),
		Host:     ports.Address(s.Port()),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// RoleDSN returns the URL of a database of this server, for a role of CreateLogin.
func (s *Server) RoleDSN(database, role string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(role, s.rolePassword(role)),
		Host:     ports.Address(s.Port()),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// rolePassword derives the password of a role, so that it is the same in each run.
func (s *Server) rolePassword(role string) string {
	h := hmac.New(sha256.New, []byte(s.cluster.password))
	h.Write([]byte(role))
	return hex.EncodeToString(h.Sum(nil))
}

// CreateLogin makes a role with a password, or gives one to a role that exists.
func (s *Server) CreateLogin(ctx context.Context, role string) error {
	db, err := sql.Open("postgres", s.DSN(maintenanceDatabase))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // the connection is not used again
	name, password := pq.QuoteIdentifier(role), pq.QuoteLiteral(s.rolePassword(role))
	_, err = db.ExecContext(ctx, "CREATE ROLE "+name+" LOGIN PASSWORD "+password)
	const duplicateObject = "42710" // PostgreSQL, Appendix A, error codes
	if pqErr, ok := errors.AsType[*pq.Error](err); ok && pqErr.Code == duplicateObject {
		_, err = db.ExecContext(ctx, "ALTER ROLE "+name+" LOGIN PASSWORD "+password)
	}
	if err != nil {
		return fmt.Errorf("create role %s: %w", role, err)
	}
	return nil
}

// Port returns the loopback TCP port of the server.
func (s *Server) Port() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.port
}

// User returns the name of the cluster's superuser.
func (s *Server) User() string { return superuser }

// Password returns the generated password of the superuser: a secret.
func (s *Server) Password() string { return s.cluster.password }

// Dir returns the cluster's directory; it differs from Options.Dir when the server's
// account can't reach that.
func (s *Server) Dir() string { return s.cluster.dir }

// PID returns the process id of the postmaster.
func (s *Server) PID() int { return s.current().PID() }

// Done returns a channel that is closed when the current server process has ended.
// After Restart there is a new one.
func (s *Server) Done() <-chan struct{} { return s.current().Done() }

func (s *Server) current() *child.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// CreateDatabase creates a database unless it exists already. owner is a role, or empty for the superuser.
func (s *Server) CreateDatabase(ctx context.Context, name, owner string) error {
	db, err := sql.Open("postgres", s.DSN(maintenanceDatabase))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()                       // the connection is not used again
	create := "CREATE DATABASE " + pq.QuoteIdentifier(name) //nolint:gosec // an identifier is no parameter; it is quoted
	if owner != "" {
		create += " OWNER " + pq.QuoteIdentifier(owner)
	}
	_, err = db.ExecContext(ctx, create)
	const duplicateDatabase = "42P04" // PostgreSQL, Appendix A, error codes
	var pqErr *pq.Error
	if errors.As(err, &pqErr) && pqErr.Code == duplicateDatabase {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// Restart stops the server in the given mode and starts it again on the same port
// and data. It also starts a server that has crashed.
func (s *Server) Restart(ctx context.Context, mode Mode) error {
	if err := s.halt(mode); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}

// Stop shuts the server down and, for a temporary cluster, removes its files.
// It may be called more than once.
func (s *Server) Stop() error {
	s.mu.Lock()
	again := s.stopped
	s.stopped = true
	s.mu.Unlock()
	if again {
		return nil
	}
	return errors.Join(s.halt(Fast), s.cluster.close())
}

// halt ends the process in the given mode, and more forcefully when that takes too long.
func (s *Server) halt(mode Mode) error {
	p := s.current()
	for _, sig := range []syscall.Signal{mode.signal(), syscall.SIGQUIT, syscall.SIGKILL} {
		if err := p.Signal(sig); err != nil {
			return fmt.Errorf("stop: %w", err)
		}
		if p.WaitFor(stopTimeout) {
			return nil
		}
	}
	return fmt.Errorf("process %d does not end", p.PID())
}

// errRetry marks a failed start that should be tried again.
var errRetry = errors.New("start again")

func (s *Server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var err error
	for range startTries {
		if err = s.startOnce(ctx); !errors.Is(err, errRetry) {
			return err
		}
		const settle = time.Second
		if sleep(ctx, settle) != nil {
			return err
		}
	}
	return err
}

func (s *Server) startOnce(ctx context.Context) error {
	c := s.cluster
	if err := c.evictOrphan(ctx); err != nil {
		return err
	}
	s.waitForOldPort(ctx)
	port, err := c.assignPort()
	if err != nil {
		return err
	}
	logFile, err := c.openLog()
	if err != nil {
		return err
	}
	defer func() { _ = logFile.Close() }() // the child has its own descriptor
	began, err := logFile.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	p, err := child.Start(s.command(port, logFile), syscall.SIGINT)
	if err != nil {
		return fmt.Errorf("start %s: %w", c.binaries.postgres(), err)
	}
	s.mu.Lock()
	s.process, s.port = p, port
	s.mu.Unlock()
	err = s.waitReady(ctx, p)
	if err == nil {
		return nil
	}
	if haltErr := s.halt(Immediate); haltErr != nil {
		return errors.Join(err, haltErr)
	}
	tail := c.logSince(began)
	if isTransient(tail) {
		err = errors.Join(err, errRetry)
	}
	return fmt.Errorf("%w\nthe end of %s:\n%s", err, c.logPath(), tail)
}

// waitForOldPort gives the processes of a killed server time to release its port, because the clients
// know only that address.
func (s *Server) waitForOldPort(ctx context.Context) {
	s.mu.Lock()
	port := s.port
	s.mu.Unlock()
	const timeout, pause = 10 * time.Second, 50 * time.Millisecond
	for deadline := time.Now().Add(timeout); port != 0 && !ports.IsFree(port) && time.Now().Before(deadline); {
		if sleep(ctx, pause) != nil {
			return
		}
	}
}

// isTransient recognises two transient failures: the port was taken between our
// check and the server's bind, or backends of a killed server still run.
func isTransient(log string) bool {
	for _, sign := range []string{
		"could not bind IPv4 address",
		"could not create any TCP/IP sockets",
		"pre-existing shared memory block",
	} {
		if strings.Contains(log, sign) {
			return true
		}
	}
	return false
}

func (s *Server) command(port int, log *os.File) *exec.Cmd {
	c := s.cluster
	args := []string{"-D", c.dataDir()}
	for _, setting := range s.settings(port) {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command(c.binaries.postgres(), args...) //nolint:noctx // it outlives the context of its start; Stop ends it
	c.account.apply(cmd)
	// A separate group: Ctrl-C in the terminal must reach only us, since the processes
	// that use the database must end before it does.
	cmd.SysProcAttr.Setpgid = true
	cmd.Dir = c.dir
	cmd.Stdout, cmd.Stderr = log, log
	return cmd
}

func (s *Server) settings(port int) []string {
	settings := []string{
		"listen_addresses=" + ports.Loopback,
		"port=" + strconv.Itoa(port),
		"unix_socket_directories=" + s.cluster.socketDir,
		"unix_socket_permissions=0700",
		"max_connections=300",
		"shared_buffers=256MB",
		"timezone=UTC",
		"log_timezone=UTC",
		"logging_collector=off",
		"log_line_prefix=%m [%p] %u@%d ",
		"log_checkpoints=off",
	}
	if s.opts.Unsafe {
		// Commits stay synchronous: confirmed data is with the operating system and
		// survives a kill of the server.
		return append(settings, "fsync=off", "full_page_writes=off", "autovacuum_naptime=5min", "max_wal_size=256MB") // it may be in memory
	}
	return append(settings, "max_wal_size=2GB")
}

// waitReady waits until the server answers a query over TCP with the password, as its
// clients connect.
func (s *Server) waitReady(ctx context.Context, p *child.Process) error {
	db, err := sql.Open("postgres", s.DSN(maintenanceDatabase)+"&connect_timeout=2")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // the connection is not used again
	began, told := time.Now(), 0
	for {
		if err = db.PingContext(ctx); err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("the server ended while starting: %w", endOf(p))
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer after %s: %w", time.Since(began).Round(time.Second), err)
		case <-time.After(pollEvery):
		}
		if waited := int(time.Since(began).Seconds()); waited >= told+2 {
			told = waited
			_, _ = fmt.Fprintf(s.opts.Progress, "waiting for PostgreSQL … %d s\n", waited)
		}
	}
}

func endOf(p *child.Process) error {
	if err := p.Err(); err != nil {
		return err
	}
	return errors.New("exit status 0")
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
