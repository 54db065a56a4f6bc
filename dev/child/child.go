// Package child starts processes that cannot outlive the process that started
// them: on Linux the kernel signals them when their parent dies, however it dies.
package child

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is a started command whose end is observed.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts cmd and reaps it when it ends. The child gets deathSignal when
// this process dies (Linux only; elsewhere the caller's own shutdown has to do).
// Any SysProcAttr already set on cmd is kept.
func Start(cmd *exec.Cmd, deathSignal syscall.Signal) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	setDeathSignal(cmd.SysProcAttr, deathSignal)
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel ties the death signal to the thread that forked, not to the
		// process. The thread is therefore kept until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// PID is the operating system's number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended and was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is the result of the process; meaningful only after Done is closed.
func (p *Process) Err() error { return p.err }

// Running reports whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Signal sends a signal to the process. A process that already ended is no error.
func (p *Process) Signal(s os.Signal) error {
	err := p.cmd.Process.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// WaitFor waits until the process has ended, at most d, and reports whether it did.
func (p *Process) WaitFor(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return !p.Running()
	}
}

// ExitCode turns the result of a process into the code a shell would report:
// its own code, or 128 plus the number of the signal that ended it.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 1
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		const signalBase = 128
		return signalBase + int(status.Signal())
	}
	return exit.ExitCode()
}
