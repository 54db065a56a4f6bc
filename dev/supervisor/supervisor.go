package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"kivuko/dev/child"
)

// Limits of starting, stopping and restarting processes.
const (
	defaultReadyTimeout = 2 * time.Minute
	defaultStopTimeout  = 35 * time.Second // a worker's own drain takes up to 30
	firstBackoff        = 500 * time.Millisecond
	maxBackoff          = 30 * time.Second
	// steady is how long a process must run before its backoff starts from the
	// beginning.
	steady = time.Minute
)

// Spec describes one process.
type Spec struct {
	// Name is unique; the log is named after it.
	Name string
	// Path and Args are the program and its arguments, without the program's name.
	Path string
	Args []string
	// Env is the complete environment, as KEY=value.
	Env []string
	// Dir is the working directory; empty: that of this process.
	Dir string
	// Ready is polled until it returns nil; nil: ready once started.
	Ready func(context.Context) error
	// ReadyTimeout limits that wait; 0: two minutes.
	ReadyTimeout time.Duration
	// StopTimeout is the time between SIGTERM and SIGKILL; 0: 35 seconds.
	StopTimeout time.Duration
}

// Supervisor owns a set of processes.
type Supervisor struct {
	logDir   string
	progress io.Writer

	mu       sync.Mutex
	children []*Child // in the order of their start
	closed   bool
}

// New returns a supervisor that writes one log for each process into logDir and
// messages for the user to progress.
func New(logDir string, progress io.Writer) (*Supervisor, error) {
	const dirMode = 0o755
	if err := os.MkdirAll(logDir, dirMode); err != nil {
		return nil, err
	}
	if progress == nil {
		progress = io.Discard
	}
	return &Supervisor{logDir: logDir, progress: &lockedWriter{w: progress}}, nil
}

// Say writes a line for the user at the terminal.
func (s *Supervisor) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.progress, format+"\n", args...)
}

// Start starts a process, waits until it is ready and keeps it alive from then on.
func (s *Supervisor) Start(ctx context.Context, spec Spec) (*Child, error) {
	c := &Child{spec: spec, sup: s}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, fmt.Errorf("%s: the stack is shutting down", spec.Name)
	}
	for _, other := range s.children {
		if other.spec.Name == spec.Name {
			s.mu.Unlock()
			return nil, fmt.Errorf("%s: a process of that name was started already", spec.Name)
		}
	}
	s.children = append(s.children, c)
	s.mu.Unlock()
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// RunOnce runs a process to its end. For an exit code other than zero it returns an error
// that quotes the end of the log.
func (s *Supervisor) RunOnce(ctx context.Context, spec Spec) error {
	log, offset, err := openLog(s.logDir, spec.Name)
	if err != nil {
		return err
	}
	p, err := child.Start(command(spec, log), syscall.SIGTERM)
	_ = log.Close() // the child has its own descriptor
	if err != nil {
		return fmt.Errorf("%s: %w", spec.Name, err)
	}
	err = Wait(ctx, s.progress, spec.Name, func(context.Context) error {
		if p.Running() {
			return errors.New("it still runs")
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, end(p, spec))
	}
	if p.Err() != nil {
		return fmt.Errorf("%s: %w\nthe end of %s:\n%s", spec.Name, p.Err(), log.Name(), tail(log.Name(), offset))
	}
	return nil
}

// Stop ends all processes, the last started first. Nothing can be started afterwards.
func (s *Supervisor) Stop() error {
	s.mu.Lock()
	s.closed = true
	children := s.children
	s.mu.Unlock()
	var errs []error
	for i := len(children) - 1; i >= 0; i-- {
		errs = append(errs, children[i].Stop())
	}
	return errors.Join(errs...)
}

// Child returns the process with a name, or nil.
func (s *Supervisor) Child(name string) *Child {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.children {
		if c.spec.Name == name {
			return c
		}
	}
	return nil
}

func command(spec Spec, log *os.File) *exec.Cmd {
	cmd := exec.Command(spec.Path, spec.Args...) //nolint:noctx // Stop ends them, not a context
	cmd.Env, cmd.Dir = spec.Env, spec.Dir
	cmd.Stdout, cmd.Stderr = log, log
	// A separate group: Ctrl-C then reaches only us, and we end the processes in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// end sends SIGTERM, and SIGKILL after the timeout.
func end(p *child.Process, spec Spec) error {
	timeout := spec.StopTimeout
	if timeout == 0 {
		timeout = defaultStopTimeout
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s: %w", spec.Name, err)
	}
	if p.WaitFor(timeout) {
		return nil
	}
	return kill(p, spec)
}

// kill ends the process's whole group at once, including grandchildren.
func kill(p *child.Process, spec Spec) error {
	if !p.Running() {
		return nil
	}
	if err := syscall.Kill(-p.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("%s: %w", spec.Name, err)
	}
	const reaped = 10 * time.Second
	if !p.WaitFor(reaped) {
		return fmt.Errorf("%s: process %d does not end", spec.Name, p.PID())
	}
	return nil
}

// lockedWriter makes writes of several goroutines atomic.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func logPath(dir, name string) string { return filepath.Join(dir, name+".log") }
