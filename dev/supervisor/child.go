package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"kivuko/dev/child"
)

// Child is a process that the supervisor keeps alive.
type Child struct {
	spec Spec
	sup  *Supervisor

	// op is held during Restart, Stop and Kill; it guards the watcher.
	op      sync.Mutex
	unwatch context.CancelFunc // ends the watcher; nil: there is none
	watcher sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	process *child.Process
	offset  int64 // where the log of the current process begins
	started time.Time
}

// Name is the name in the Spec.
func (c *Child) Name() string { return c.spec.Name }

// PID returns the id of the current process, or 0 when it is down.
func (c *Child) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil || !c.process.Running() {
		return 0
	}
	return c.process.PID()
}

// LogPath returns the file that collects the process's output.
func (c *Child) LogPath() string { return logPath(c.sup.logDir, c.spec.Name) }

// start starts the process for the first time and waits until it is ready. A process that ends before that is an error.
// After an error it is down.
func (c *Child) start(ctx context.Context) error {
	c.op.Lock()
	defer c.op.Unlock()
	if err := c.up(); err != nil {
		return err
	}
	if err := c.waitReady(ctx); err != nil {
		return errors.Join(err, c.down(end))
	}
	c.keep()
	return nil
}

// Restart ends the process if it runs, starts it, and waits until it is ready. If it dies before that, it is started
// again like after any death, because a service that it needs may be down briefly. After an error it is down.
func (c *Child) Restart(ctx context.Context) error {
	c.op.Lock()
	defer c.op.Unlock()
	if err := c.down(end); err != nil {
		return err
	}
	if err := c.up(); err != nil {
		return err
	}
	c.keep()
	if err := c.waitReady(ctx); err != nil {
		return errors.Join(err, c.down(end))
	}
	return nil
}

// keep starts the watcher, which restarts the process after each death instead of returning an error.
func (c *Child) keep() {
	ctx, cancel := context.WithCancel(context.Background())
	c.unwatch = cancel
	c.watcher.Go(func() { c.watch(ctx) })
}

// Stop ends the process with SIGTERM; it stays down until Restart.
func (c *Child) Stop() error {
	c.op.Lock()
	defer c.op.Unlock()
	return c.down(end)
}

// Kill ends the process with SIGKILL, like a crash; it stays down until Restart.
func (c *Child) Kill() error {
	c.op.Lock()
	defer c.op.Unlock()
	return c.down(kill)
}

// Signal sends a signal to the process. One that ends it counts as a crash, and
// the supervisor restarts it.
func (c *Child) Signal(s os.Signal) error {
	c.mu.Lock()
	p := c.process
	c.mu.Unlock()
	if p == nil {
		return fmt.Errorf("%s is down", c.spec.Name)
	}
	return p.Signal(s)
}

func (c *Child) down(how func(*child.Process, Spec) error) error {
	if c.unwatch != nil {
		c.unwatch()
		c.watcher.Wait()
		c.unwatch = nil
	}
	c.mu.Lock()
	p := c.process
	c.process = nil
	c.mu.Unlock()
	if p == nil {
		return nil
	}
	return how(p, c.spec)
}

func (c *Child) up() error {
	log, offset, err := openLog(c.sup.logDir, c.spec.Name)
	if err != nil {
		return err
	}
	p, err := child.Start(command(c.spec, log), syscall.SIGTERM)
	_ = log.Close() // the child has its own descriptor
	if err != nil {
		return fmt.Errorf("%s: %w", c.spec.Name, err)
	}
	c.mu.Lock()
	c.process, c.offset, c.started = p, offset, time.Now()
	c.mu.Unlock()
	return nil
}

// watch restarts the process whenever it dies, until ctx ends.
func (c *Child) watch(ctx context.Context) {
	deaths := 0
	for {
		c.mu.Lock()
		p, began := c.process, c.started
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-p.Done():
		}
		if time.Since(began) > steady {
			deaths = 0
		}
		pause := backoff(deaths)
		deaths++
		if ctx.Err() != nil {
			return
		}
		c.sup.Say("%s ended unexpectedly (%s); starting it again in %s, its log is %s",
			c.spec.Name, describe(p.Err()), pause, c.LogPath())
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if err := c.up(); err != nil {
			c.sup.Say("%s cannot be started again: %v", c.spec.Name, err)
		}
	}
}

func backoff(deaths int) time.Duration {
	pause := firstBackoff
	for range deaths {
		pause *= 2
		if pause >= maxBackoff {
			return maxBackoff
		}
	}
	return pause
}

func describe(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// waitReady waits until the process is ready. It gives up when the process ends, unless it is kept alive.
func (c *Child) waitReady(ctx context.Context) error {
	if c.spec.Ready == nil {
		return nil
	}
	timeout := c.spec.ReadyTimeout
	if timeout == 0 {
		timeout = defaultReadyTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c.mu.Lock()
	offset := c.offset
	c.mu.Unlock()
	err := Wait(ctx, c.sup.progress, c.spec.Name, func(ctx context.Context) error {
		c.mu.Lock()
		p := c.process
		c.mu.Unlock()
		if p.Running() {
			return c.spec.Ready(ctx)
		}
		err := fmt.Errorf("it ended: %s", describe(p.Err()))
		if c.unwatch == nil {
			return permanent{err}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w\nthe end of %s:\n%s", err, c.LogPath(), tail(c.LogPath(), offset))
	}
	return nil
}

// permanent is an error at which Wait stops waiting.
type permanent struct{ error }

// WaitReady waits until a process that the watcher restarted is ready again.
func (c *Child) WaitReady(ctx context.Context) error {
	if c.spec.Ready == nil {
		return nil
	}
	return Wait(ctx, c.sup.progress, c.spec.Name, c.spec.Ready)
}
