package postgres

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kivuko/dev/child"
	"kivuko/dev/ports"
)

// ownerVariable turns this test binary into a process that owns a server.
const ownerVariable = "POSTGRES_TEST_OWNER_OF"

func TestMain(m *testing.M) {
	dir := os.Getenv(ownerVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := Start(context.Background(), Options{Dir: dir, Unsafe: true})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.PID())
	select {}
}

// reachable returns a new directory that the server's own user can reach: the test's
// directory is closed to other users.
func reachable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "pg")
}

func start(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(t.Context(), Options{Dir: dir, Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
}

func execute(t *testing.T, dsn, statement string) {
	t.Helper()
	db := open(t, dsn)
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func number(t *testing.T, dsn, query string) int {
	t.Helper()
	var n int
	if err := open(t, dsn).QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestDataPortAndPasswordSurviveARestart(t *testing.T) {
	dir := reachable(t)
	first := start(t, dir)
	if err := first.CreateDatabase(t.Context(), "books", ""); err != nil {
		t.Fatal(err)
	}
	if err := first.CreateDatabase(t.Context(), "books", ""); err != nil {
		t.Errorf("creating a database that exists: %v", err)
	}
	execute(t, first.DSN("books"), "CREATE TABLE kept AS SELECT 42 AS n")
	stop(t, first)
	stop(t, first) // a second Stop does nothing

	second := start(t, dir)
	if second.DSN("books") != first.DSN("books") {
		t.Error("the address or the password changed between two runs")
	}
	if n := number(t, second.DSN("books"), "SELECT n FROM kept"); n != 42 {
		t.Errorf("the row came back as %d", n)
	}
}

func TestPasswordIsPrivateAndNeeded(t *testing.T) {
	s := start(t, reachable(t))
	info, err := os.Stat(filepath.Join(s.Dir(), "password"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the password's file has mode %o", info.Mode().Perm())
	}
	u, err := url.Parse(s.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(s.User(), "guess")
	if err := open(t, u.String()).PingContext(t.Context()); err == nil || !strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("a wrong password was answered with: %v", err)
	}
	if n := number(t, s.DSN("postgres"), "SELECT count(*) FROM pg_authid WHERE rolpassword LIKE 'SCRAM-SHA-256$%'"); n != 1 {
		t.Errorf("%d roles have a SCRAM secret", n)
	}
}

func TestRestartInEachMode(t *testing.T) {
	s := start(t, reachable(t))
	execute(t, s.DSN("postgres"), "CREATE TABLE runs (n int)")
	dsn := s.DSN("postgres")
	for i, mode := range []Mode{Fast, Immediate, Kill} {
		execute(t, dsn, "INSERT INTO runs VALUES (1)")
		before := s.PID()
		if err := s.Restart(t.Context(), mode); err != nil {
			t.Fatalf("mode %d: %v", mode, err)
		}
		if s.PID() == before {
			t.Errorf("mode %d did not replace the process", mode)
		}
		if s.DSN("postgres") != dsn {
			t.Errorf("mode %d changed the address", mode)
		}
		if n := number(t, dsn, "SELECT count(*) FROM runs"); n != i+1 {
			t.Errorf("after mode %d there are %d committed rows, not %d", mode, n, i+1)
		}
	}
}

func TestDoneReportsACrash(t *testing.T) {
	s := start(t, "")
	done := s.Done()
	select {
	case <-done:
		t.Fatal("a running server counts as ended")
	default:
	}
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(time.Hour):
		t.Fatal("the crash was not noticed")
	}
	if err := s.Restart(t.Context(), Fast); err != nil {
		t.Fatal(err)
	}
}

func TestTakenPortIsReplaced(t *testing.T) {
	dir := reachable(t)
	s := start(t, dir)
	port := s.Port()
	stop(t, s)
	taken, err := net.Listen("tcp", ports.Address(port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	s = start(t, dir)
	if s.Port() == port {
		t.Fatal("the server claims a port that is taken")
	}
	if n := number(t, s.DSN("postgres"), "SELECT 1"); n != 1 {
		t.Error("the server does not answer at its new port")
	}
}

// After a crash of the machine the process id in the file may belong to another
// program of the same user, and PostgreSQL would refuse to start for ever.
func TestStaleProcessFileIsRemoved(t *testing.T) {
	dir := reachable(t)
	s := start(t, dir)
	stop(t, s)
	stranger := exec.Command("sleep", "600")
	s.cluster.account.apply(stranger)
	p, err := child.Start(stranger, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Signal(syscall.SIGKILL) })
	file := filepath.Join(s.cluster.dataDir(), "postmaster.pid")
	text := fmt.Sprintf("%d\n%s\n1\n%d\n\n127.0.0.1\n", p.PID(), s.cluster.dataDir(), s.Port())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.cluster.account.own(file); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
	if !p.Running() {
		t.Error("another program's process was ended")
	}
}

// A postmaster without an owner is stopped before a new one starts.
func TestOrphanIsEvicted(t *testing.T) {
	dir := reachable(t)
	orphan := start(t, dir)
	execute(t, orphan.DSN("postgres"), "CREATE TABLE kept AS SELECT 7 AS n")
	// The lock shows that the owner runs.
	if err := orphan.cluster.lock.Close(); err != nil {
		t.Fatal(err)
	}
	orphan.cluster.lock = nil
	heir := start(t, dir)
	if orphan.current().Running() {
		t.Error("two postmasters run on one directory")
	}
	if n := number(t, heir.DSN("postgres"), "SELECT n FROM kept"); n != 7 {
		t.Errorf("the row came back as %d", n)
	}
}

func TestServerEndsWithItsKilledOwner(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only Linux ends the children of a killed parent")
	}
	dir := reachable(t)
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"="+dir)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "in use by another running process") {
		t.Errorf("a second owner got: %v", err)
	}
	if err := Remove(dir); err == nil {
		t.Error("a running server's files were removed")
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // it was killed: its error says so
	for deadline := time.Now().Add(time.Hour); (&cluster{dir: dir}).serves(pid); time.Sleep(pollEvery) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d outlived its owner", pid)
		}
	}
	start(t, dir)
}

func TestFailedStartQuotesTheLog(t *testing.T) {
	dir := reachable(t)
	s := start(t, dir)
	stop(t, s)
	conf := filepath.Join(s.cluster.dataDir(), "postgresql.auto.conf")
	if err := os.WriteFile(conf, []byte("no_such_setting = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), `unrecognized configuration parameter "no_such_setting"`) {
		t.Errorf("the reason is missing: %v", err)
	}
	if err != nil && strings.Contains(err.Error(), s.Password()) {
		t.Error("the error contains the password")
	}
}

func TestInterruptedInitialisationIsRepeated(t *testing.T) {
	dir := reachable(t)
	if err := os.MkdirAll(filepath.Join(dir, "data.new", "base"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "password"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, dir)
	if len(s.Password()) < 20 {
		t.Errorf("the password has %d characters", len(s.Password()))
	}
}

func TestOtherReleasesDataIsRefused(t *testing.T) {
	dir := reachable(t)
	s := start(t, dir)
	stop(t, s)
	if err := os.WriteFile(filepath.Join(s.cluster.dataDir(), "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "written by PostgreSQL 9") {
		t.Errorf("error is %v", err)
	}
}

func TestThrowawayLeavesNothing(t *testing.T) {
	s := start(t, "")
	if n := number(t, s.DSN("postgres"), "SELECT (current_setting('fsync') = 'off')::int"); n != 1 {
		t.Error("a server for tests waits for the disk")
	}
	dir := s.Dir()
	stop(t, s)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

func TestKeptClusterIsSafe(t *testing.T) {
	s, err := Start(t.Context(), Options{Dir: reachable(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		if n := number(t, s.DSN("postgres"), "SELECT (current_setting('"+setting+"') = 'on')::int"); n != 1 {
			t.Errorf("%s is off", setting)
		}
	}
}

// A checkout in root's home is closed to the server's user.
func TestUnreachableDirectoryHasAFallback(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server under another user")
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "pg")
	var said strings.Builder
	s, err := Start(t.Context(), Options{Dir: dir, Unsafe: true, Progress: &said})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Stop(), Remove(dir)); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Remove left %s", s.Dir())
		}
	})
	if s.Dir() == dir || !strings.Contains(said.String(), s.Dir()) {
		t.Errorf("data is in %s, and the user was shown %q", s.Dir(), said.String())
	}
}
