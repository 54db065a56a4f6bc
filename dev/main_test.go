package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/lib/pq"

	"kivuko/dev/nodes/solana"
	"kivuko/dev/stack"
	"kivuko/dev/supervisor"
	"kivuko/dev/temporal"
)

// programVariable turns this test binary into kivuko-dev itself.
const programVariable = "DEV_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A wrong command line is answered with the commands that there are.
func TestWrongCommandsNameWhatExists(t *testing.T) {
	for _, args := range [][]string{nil, {"runs"}, {""}} {
		_, err := find(args)
		if err == nil {
			t.Errorf("%q is a command", args)
			continue
		}
		for _, c := range commands() {
			if !strings.Contains(err.Error(), "\n  "+c.name+" ") || !strings.Contains(err.Error(), c.help) {
				t.Errorf("%q: the answer lacks %s: %v", args, c.name, err)
			}
		}
	}
	if c, err := find([]string{"momo", "-h"}); err != nil || c.name != "momo" {
		t.Errorf("%s, %v", c.name, err)
	}
}

// output collects what the person would see.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// open returns a stack over a state directory that the database's own user can reach.
func open(t *testing.T, state string, out *output) *stack.Stack {
	t.Helper()
	t.Setenv(programVariable, "1")
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Open(stack.Options{Root: root, State: state, Self: os.Args[0], Out: out, AnyPorts: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stateDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, ".local")
}

// eventually waits for a condition; its bound only decides how long a broken
// program is waited for.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Hour)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestInfrastructureSurvivesCrashesAndRestarts(t *testing.T) {
	state, said := stateDir(t), &output{}
	s := open(t, state, said)
	down := sync.OnceValue(s.Down)
	t.Cleanup(func() {
		if err := down(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Up(t.Context(), stack.Infrastructure()); err != nil {
		t.Fatal(err)
	}
	addresses, dsn := s.Addresses, s.Postgres.DSN("kivuko")

	if _, err := stack.Open(s.Options); err == nil || !strings.Contains(err.Error(), "running already, as process "+strconv.Itoa(os.Getpid())) {
		t.Errorf("a second stack was answered with: %v", err)
	}
	if err := stack.Remove(state); err == nil {
		t.Error("the data of a running stack was removed")
	}

	processes := []string{stack.ProcessTemporal, stack.ProcessTron, stack.ProcessMomo}
	if s.Solana() {
		processes = append(processes, stack.ProcessSolana)
	}
	for _, name := range processes {
		c := s.Supervisor.Child(name)
		before := c.PID()
		if err := c.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+" comes back", func() error {
			if pid := c.PID(); pid == 0 || pid == before {
				return errors.New("it is down")
			}
			return c.WaitReady(t.Context())
		})
	}
	crashDatabase(t, s, dsn)
	mainJobFails(t, s, said)
	overTLS, err := stack.TLS(s.Tools())
	if err != nil {
		t.Fatal(err)
	}
	if err := temporal.Ready(t.Context(), addresses.Temporal, overTLS); err != nil {
		t.Fatal(err)
	}

	pid := s.Postgres.PID()
	if err := down(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("PostgreSQL still runs after the end: %v", err)
	}
	second := open(t, state, said)
	if second.Addresses != addresses {
		t.Errorf("a second run moved from %v to %v", addresses, second.Addresses)
	}
	if err := second.Down(); err != nil {
		t.Error(err)
	}
	if err := stack.Remove(state); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data is still there: %v", err)
	}
}

// mainJobFails plays the jobs against an API that refuses them. The stack must stay up, so that the failure can be
// examined.
func mainJobFails(t *testing.T, s *stack.Stack, said *output) {
	t.Helper()
	api := httptest.NewServer(http.NotFoundHandler())
	defer api.Close()
	own := s.Addresses.API
	s.Addresses.API = api.Listener.Addr().String()
	defer func() { s.Addresses.API = own }()
	err := s.Up(t.Context(), demonstration()[1:])
	for _, words := range []string{"THE MAIN JOB FAILED", "THE OTC DESK FAILED"} {
		if err != nil || !strings.Contains(said.String(), words) {
			t.Errorf("without %q, or the failure ended the stack: %v\n%s", words, err, said)
		}
	}
}

func crashDatabase(t *testing.T, s *stack.Stack, dsn string) {
	t.Helper()
	before := s.Postgres.PID()
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	eventually(t, "PostgreSQL comes back", func() error {
		if s.Postgres.PID() == before {
			return errors.New("it is down")
		}
		return db.PingContext(t.Context())
	})
}

// TestRun is what `make run` does until somebody interrupts it, with nothing set otherwise but faster blocks.
func TestRun(t *testing.T) {
	said := &output{}
	s := open(t, stateDir(t), said)
	t.Cleanup(func() {
		if err := s.Down(); err != nil {
			t.Error(err)
		}
	})
	s.TronFlags, s.EthereumFlags = []string{"--interval", "100ms"}, []string{"--interval", "100ms"}
	s.Options.Product = filepath.Join(t.TempDir(), "kivuko")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", s.Options.Product, ".")
	build.Dir = s.Root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := s.Up(t.Context(), steps()); err != nil || strings.Contains(said.String(), " FAILED: ") {
		t.Errorf("%v\n%s", err, said)
	}
	if said := said.String(); strings.Contains(said, "No gas has come to") {
		t.Errorf("GasAhead served no vendor's wallet:\n%s", said)
	}
}

// What the product reads must all be set, and nothing of the caller's own settings
// may leak into it.
func TestProductEnvironmentIsComplete(t *testing.T) {
	t.Setenv("KIVUKO_MODE", "production")
	s := open(t, stateDir(t), &output{})
	t.Cleanup(func() {
		if err := s.Down(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Up(t.Context(), stack.Infrastructure()[:1]); err != nil {
		t.Fatal(err)
	}
	s.SetEnvironment("API_RATE_FACTOR", "100")
	values := environment(t, s, stack.ProcessAPI)
	for name, want := range map[string]string{
		"KIVUKO_MODE":            "local",
		"KIVUKO_API_LISTEN":      s.Addresses.API,
		"KIVUKO_API_RATE_FACTOR": "100",
		"KIVUKO_DATABASE_URL":    s.Postgres.RoleDSN("kivuko", "kivuko_api"),
	} {
		if values[name] != want {
			t.Errorf("%s is %q, not %q", name, values[name], want)
		}
	}
	for process, secret := range map[string]string{
		stack.ProcessAPI:                   "KIVUKO_MASTER_KEY",
		stack.ProcessCodec:                 "KIVUKO_API_TOKEN_KEYS",
		stack.ProcessWorker("flows"):       "KIVUKO_MOMO_CONSUMER_SECRET",
		stack.ProcessWorker("signer-tron"): "KIVUKO_ADMIN_PASSWORD",
	} {
		if _, given := environment(t, s, process)[secret]; given {
			t.Errorf("%s is given %s, which it does not need", process, secret)
		}
	}
}

// environment is what a process of the product gets, each variable once.
func environment(t *testing.T, s *stack.Stack, process string) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, kv := range s.ProductEnvironment(process) {
		name, value, _ := strings.Cut(kv, "=")
		if _, double := values[name]; double && strings.HasPrefix(name, "KIVUKO_") {
			t.Errorf("%s is set twice for %s", name, process)
		}
		values[name] = value
	}
	return values
}

// A node that can't get its programs says so by an exit code of its own.
func TestSolanaNodeWithoutProgramsHasItsExitCode(t *testing.T) {
	cmd := exec.Command(os.Args[0], "solana", "--programs", t.TempDir())
	cmd.Env = []string{programVariable + "=1", "PATH="}
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != solana.ExitUnavailable || !strings.Contains(string(out), "programs can't be had") {
		t.Errorf("it ended with %v and said %q", err, out)
	}
}

// Where the contracts of Safe can't be had, the stack says so and the node runs without them.
func TestStackGoesOnWithoutSafe(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	said := &output{}
	s := open(t, stateDir(t), said)
	t.Cleanup(func() {
		if err := s.Down(); err != nil {
			t.Error(err)
		}
	})
	steps := slices.DeleteFunc(stack.Infrastructure(), func(step stack.Step) bool { return step.Name != "Ethereum network" })
	if err := s.Up(t.Context(), steps); err != nil || len(steps) != 1 {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	if s.Supervisor.Child(stack.ProcessEthereum) == nil {
		t.Error("the node does not run")
	}
	if !strings.Contains(said.String(), "the stack runs without accounts of several owners on Ethereum") {
		t.Errorf("it said %q", said.String())
	}
}

// Where the token programs can't be had, the stack says so and goes on.
func TestStackGoesOnWithoutSolana(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	said := &output{}
	s := open(t, stateDir(t), said)
	t.Cleanup(func() {
		if err := s.Down(); err != nil {
			t.Error(err)
		}
	})
	steps := slices.DeleteFunc(stack.Infrastructure(), func(step stack.Step) bool { return step.Name != "Solana network" })
	if err := s.Up(t.Context(), steps); err != nil || len(steps) != 1 {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	if s.Solana() || s.Supervisor.Child(stack.ProcessSolana) != nil {
		t.Error("the node runs without programs")
	}
	if !strings.Contains(said.String(), "the stack runs without Solana") {
		t.Errorf("it said %q", said.String())
	}
}

func TestFailingStepIsNamed(t *testing.T) {
	s := open(t, stateDir(t), &output{})
	t.Cleanup(func() {
		if err := s.Down(); err != nil {
			t.Error(err)
		}
	})
	broken := errors.New("broken")
	err := s.Up(t.Context(), []stack.Step{{Name: "seed", Run: func(context.Context, *stack.Stack) error { return broken }}})
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "seed: ") {
		t.Errorf("error is %v", err)
	}
	if err := s.Supervisor.RunOnce(t.Context(), supervisor.Spec{Name: "migrate", Path: filepath.Join(s.State, "none")}); err == nil {
		t.Error("a program that is not there ran")
	}
}

func TestCommandsExplainThemselves(t *testing.T) {
	for _, args := range [][]string{{}, {"no-such-command"}, {"run", "--no-such-flag"}, {"temporal", "--port", "x"}} {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), programVariable+"=1")
		out, err := cmd.CombinedOutput()
		if err == nil || len(out) == 0 {
			t.Errorf("%q ended with %v and said %q", args, err, out)
		}
	}
}

// A command line without --state neither starts nor removes another directory's stack.
func TestStrayArgumentsAreRefused(t *testing.T) {
	t.Chdir(t.TempDir()) // not a checkout: were the argument ignored, nothing would be started or removed either
	for name, run := range map[string]func(context.Context, []string) error{"run": runStack, "clean-data": cleanData} {
		if err := run(t.Context(), []string{"elsewhere"}); err == nil || !strings.Contains(err.Error(), `"elsewhere"`) {
			t.Errorf("%s elsewhere: %v", name, err)
		}
	}
}
