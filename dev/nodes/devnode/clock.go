package devnode

import (
	"fmt"
	"sync"
	"time"
)

// maxTimeStep bounds one step of a clock.
const maxTimeStep = 400 * 24 * time.Hour

// Clock is the wall clock plus what Advance added.
type Clock struct {
	base   func() time.Time
	mu     sync.Mutex
	offset time.Duration
}

// NewClock makes a clock; nil is time.Now.
func NewClock(base func() time.Time) *Clock {
	if base == nil {
		base = time.Now
	}
	return &Clock{base: base}
}

// Now is the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base().Add(c.offset)
}

// Advance moves the clock, forward only.
func (c *Clock) Advance(d time.Duration) error {
	if d < 0 || d > maxTimeStep {
		return fmt.Errorf("advance time by %s: want 0 to %s", d, maxTimeStep)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
	return nil
}
