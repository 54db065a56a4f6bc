package devnode

import (
	"context"
	"sync"
	"time"
)

// Rhythm is when a node makes blocks by itself.
type Rhythm struct {
	mu       sync.Mutex
	interval time.Duration
	paused   bool
	changed  chan struct{} // tells Tick that something above changed
}

// NewRhythm makes a rhythm; with an interval of zero there is no tick.
func NewRhythm(interval time.Duration) *Rhythm {
	return &Rhythm{interval: interval, changed: make(chan struct{}, 1)}
}

// State is the time between two ticks, and whether they are paused.
func (r *Rhythm) State() (interval time.Duration, paused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.interval, r.paused
}

// SetInterval changes the time between two ticks; zero stops them.
func (r *Rhythm) SetInterval(d time.Duration) { r.change(func() { r.interval = d }) }

// Pause stops the making of blocks by time. They can still be made by hand.
func (r *Rhythm) Pause() { r.change(func() { r.paused = true }) }

// Resume undoes Pause.
func (r *Rhythm) Resume() { r.change(func() { r.paused = false }) }

func (r *Rhythm) change(f func()) {
	r.mu.Lock()
	f()
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default: // Tick has not seen the last change yet and will see both
	}
}

// Tick calls f at each tick until ctx ends or f fails. Ticks keep their rhythm however long f takes, and don't
// catch up.
func (r *Rhythm) Tick(ctx context.Context, f func() error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := time.Now()
	for {
		interval, paused := r.State()
		timer.Stop()
		if interval > 0 && !paused {
			next = next.Add(interval)
			if now := time.Now(); next.Before(now) {
				next = now
			}
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.changed:
			next = time.Now()
		case <-timer.C:
			if err := f(); err != nil {
				return err
			}
		}
	}
}
