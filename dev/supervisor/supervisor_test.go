package supervisor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kivuko/dev/supervisor"
)

// roleVariable turns this test binary into one of the processes of the tests.
const roleVariable = "SUPERVISOR_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "serve":
		serve()
	case "fail":
		fmt.Println("the reason of the failure")
		os.Exit(3)
	case "stumble":
		stumble()
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		touch("FILE")
		select {}
	case "supervise":
		supervise()
	}
}

// serve appends a line to the journal when it starts and when it is asked to end.
func serve() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	journal("start " + strconv.Itoa(os.Getpid()))
	touch("FILE")
	<-end
	journal("end " + os.Getenv("NAME"))
}

// stumble serves once, and then dies DEATHS times while it starts.
func stumble() {
	raw, err := os.ReadFile(os.Getenv("JOURNAL"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
	deaths, err := strconv.Atoi(os.Getenv("DEATHS"))
	if err != nil {
		panic(err)
	}
	journal("life")
	if lives := strings.Count(string(raw), "life"); lives > 0 && lives <= deaths {
		fmt.Println("what it needs is down")
		os.Exit(3)
	}
	serve()
}

// supervise starts a grandchild and waits to be killed.
func supervise() {
	s, err := supervisor.New(os.Getenv("LOGS"), nil)
	if err == nil {
		_, err = s.Start(context.Background(), supervisor.Spec{
			Name: "grandchild", Path: os.Args[0],
			Env:   []string{roleVariable + "=serve", "NAME=grandchild", "JOURNAL=" + os.Getenv("JOURNAL"), "FILE=" + os.Getenv("FILE")},
			Ready: exists(os.Getenv("FILE")),
		})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	select {}
}

func touch(variable string) {
	if path := os.Getenv(variable); path != "" {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			panic(err)
		}
	}
}

func journal(line string) {
	f, err := os.OpenFile(os.Getenv("JOURNAL"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
	}
	if err != nil {
		panic(err)
	}
}

func exists(path string) func(context.Context) error {
	return func(context.Context) error {
		_, err := os.Stat(path)
		return err
	}
}

// output collects the messages for the user.
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

type fixture struct {
	*supervisor.Supervisor
	dir, journal string
	said         *output
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	said := &output{}
	s, err := supervisor.New(filepath.Join(dir, "logs"), said)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &fixture{Supervisor: s, dir: dir, journal: filepath.Join(dir, "journal"), said: said}
}

func (f *fixture) spec(name, role string) supervisor.Spec {
	file := filepath.Join(f.dir, name+".ready")
	return supervisor.Spec{
		Name: name, Path: os.Args[0],
		Env:   []string{roleVariable + "=" + role, "NAME=" + name, "JOURNAL=" + f.journal, "FILE=" + file},
		Ready: exists(file),
	}
}

func (f *fixture) lines(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(f.journal)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(strings.ReplaceAll(string(raw), " ", "_"))
}

func start(t *testing.T, f *fixture, spec supervisor.Spec) *supervisor.Child {
	t.Helper()
	c, err := f.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually waits for a condition. Its timeout is long, because it only matters for a
// broken program.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Hour)
	for !check() {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestStopEndsInReverseOrder(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"a", "b", "c"} {
		start(t, f, f.spec(name, "serve"))
	}
	if err := f.Stop(); err != nil {
		t.Fatal(err)
	}
	lines := f.lines(t)
	if got := strings.Join(lines[len(lines)-3:], " "); got != "end_c end_b end_a" {
		t.Errorf("ended in the order %q", got)
	}
	if _, err := f.Start(t.Context(), f.spec("late", "serve")); err == nil {
		t.Error("a process was started after Stop")
	}
}

func TestCrashedProcessIsStartedAgain(t *testing.T) {
	f := newFixture(t)
	c := start(t, f, f.spec("worker", "serve"))
	before := c.PID()
	if err := c.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the restart", func() bool { return c.PID() != 0 && c.PID() != before })
	if said := f.said.String(); !strings.Contains(said, "worker ended unexpectedly (signal: killed); starting it again") {
		t.Errorf("the user was shown %q", said)
	}
}

func TestKilledProcessStaysDownUntilRestart(t *testing.T) {
	f := newFixture(t)
	c := start(t, f, f.spec("worker", "serve"))
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	// Longer than the pause before an automatic restart.
	time.Sleep(time.Second)
	if c.PID() != 0 {
		t.Fatal("a process that was killed on purpose came back by itself")
	}
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.PID() == 0 {
		t.Error("the process is down after Restart")
	}
	if strings.Contains(f.said.String(), "unexpectedly") {
		t.Error("a kill on purpose was reported as a crash")
	}
}

// stumbling is a process that was killed, and dies some times when it is started again.
func stumbling(t *testing.T, f *fixture, deaths int) *supervisor.Child {
	t.Helper()
	spec := f.spec("worker", "stumble")
	spec.Env = append(spec.Env, "DEATHS="+strconv.Itoa(deaths))
	c := start(t, f, spec)
	if err := errors.Join(c.Kill(), os.Remove(filepath.Join(f.dir, "worker.ready"))); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRestartTriesAgain(t *testing.T) {
	f := newFixture(t)
	c := stumbling(t, f, 2)
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.PID() == 0 {
		t.Error("the process is down after Restart")
	}
	if said := f.said.String(); !strings.Contains(said, "worker ended unexpectedly (exit status 3); starting it again") {
		t.Errorf("the user was shown %q", said)
	}
}

func TestRestartGivesUpInTheEnd(t *testing.T) {
	f := newFixture(t)
	c := stumbling(t, f, 1000)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := c.Restart(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	lives := len(f.lines(t))
	time.Sleep(3 * time.Second) // longer than the pause before the next start
	if c.PID() != 0 || len(f.lines(t)) != lives {
		t.Error("the process was started again after Restart gave up")
	}
}

func TestStartReportsAnEarlyEndWithTheLog(t *testing.T) {
	f := newFixture(t)
	_, err := f.Start(t.Context(), f.spec("broken", "fail"))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "the reason of the failure") {
		t.Fatalf("error %v names neither the code nor the log", err)
	}
}

func TestStartGivesUpAfterTheReadyTimeout(t *testing.T) {
	f := newFixture(t)
	spec := f.spec("mute", "serve")
	served, began := spec.Ready, time.Now()
	spec.Ready = func(ctx context.Context) error {
		for served(ctx) != nil || time.Since(began) < 2*time.Second { // however slow the machine: it serves, and a message is due
			time.Sleep(10 * time.Millisecond)
		}
		return errors.New("it never becomes ready")
	}
	spec.ReadyTimeout = 3 * time.Second
	_, err := f.Start(t.Context(), spec)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error is %v", err)
	}
	if !regexp.MustCompile(`waiting for mute … \d+ s`).MatchString(f.said.String()) {
		t.Errorf("a long wait was not shown: %q", f.said)
	}
	if !strings.HasSuffix(strings.Join(f.lines(t), " "), "end_mute") {
		t.Error("the process that never became ready was left running")
	}
}

func TestStopInsists(t *testing.T) {
	f := newFixture(t)
	spec := f.spec("deaf", "deaf")
	spec.StopTimeout = 200 * time.Millisecond
	c := start(t, f, spec)
	pid := c.PID()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d still exists: %v", pid, err)
	}
}

func TestRunOnce(t *testing.T) {
	f := newFixture(t)
	err := f.RunOnce(t.Context(), f.spec("migrate", "fail"))
	if err == nil || !strings.Contains(err.Error(), "the reason of the failure") {
		t.Errorf("a failing run gave %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := f.RunOnce(ctx, f.spec("endless", "serve")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an endless run gave %v", err)
	}
}

func TestNameIsUnique(t *testing.T) {
	f := newFixture(t)
	start(t, f, f.spec("api", "serve"))
	if _, err := f.Start(t.Context(), f.spec("api", "serve")); err == nil {
		t.Error("two processes share a name, and so a log")
	}
	if f.Child("api") == nil || f.Child("none") != nil {
		t.Error("Child does not find by name")
	}
}

// A killed supervisor can't stop its children; the kernel does.
func TestKilledSupervisorLeavesNoOrphan(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only Linux ends the children of a killed parent")
	}
	f := newFixture(t)
	spec := f.spec("middle", "supervise")
	spec.Env = append(spec.Env, "LOGS="+filepath.Join(f.dir, "inner"))
	c := start(t, f, spec)
	lines := f.lines(t)
	pid, err := strconv.Atoi(strings.TrimPrefix(lines[0], "start_"))
	if err != nil {
		t.Fatal(err)
	}
	// Only the parent is killed, not its group: Kill would take the group along.
	if err := c.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the grandchild", func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || strings.Contains(strings.Join(f.lines(t), " "), "end_grandchild")
	})
}
