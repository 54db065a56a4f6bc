package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
)

// pulseEvery is how often a step that talks to the operator says that it is alive. The server gives a step
// of a dead process to another one when it hears nothing for the heartbeat's time (see temporal.yaml), which
// is a few of these; without it a crash would cost the whole time of a try.
const pulseEvery = 2 * time.Second

// pulse keeps what a step last told, so that a sign of life does not wipe it out.
type pulse struct {
	mu   sync.Mutex
	last []any
}

type pulseKey struct{}

// beat says that the step is alive until stop is called. What an earlier run left behind is told on. The
// first sign comes after a pause, so a quick step sends none.
func beat(ctx context.Context) (with context.Context, stop func()) { return beatEvery(ctx, pulseEvery) }

func beatEvery(ctx context.Context, every time.Duration) (with context.Context, stop func()) {
	p := &pulse{}
	var h heard
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &h) == nil {
		p.last = []any{h}
	}
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.mu.Lock()
				activity.RecordHeartbeat(ctx, p.last...)
				p.mu.Unlock()
			case <-ctx.Done():
				return
			case <-done:
				return
			}
		}
	})
	return context.WithValue(ctx, pulseKey{}, p), func() { close(done); ended.Wait() }
}

// tell leaves something behind for the next run of the step.
func tell(ctx context.Context, what any) {
	if p, ok := ctx.Value(pulseKey{}).(*pulse); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.last = []any{what}
	}
	activity.RecordHeartbeat(ctx, what)
}
