package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
)

// heartbeatInterval is the pause between heartbeats of a step that calls the operator. When heartbeats stay away for the
// heartbeat timeout (see temporal.yaml), the server retries the step in another process; without them a crash would cost
// the whole timeout of a try. The SDK sends the server at most one in the worker's heartbeat throttle, so a timeout must be
// a few of those.
const heartbeatInterval = 2 * time.Second

// heartbeatDetails keeps the last details of a step, so that the next heartbeat does not overwrite them.
type heartbeatDetails struct {
	mu   sync.Mutex
	last []any
}

type heartbeatKey struct{}

// heartbeat sends heartbeats until stop is called, with the details that an earlier run recorded. The first one comes after
// a pause, so a quick step sends none.
func heartbeat(ctx context.Context) (with context.Context, stop func()) {
	return heartbeatEvery(ctx, heartbeatInterval)
}

func heartbeatEvery(ctx context.Context, every time.Duration) (with context.Context, stop func()) {
	p := &heartbeatDetails{}
	var h submissionDetails
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
	return context.WithValue(ctx, heartbeatKey{}, p), func() { close(done); ended.Wait() }
}

// recordHeartbeat records details for the next run of the step.
func recordHeartbeat(ctx context.Context, what any) {
	if p, ok := ctx.Value(heartbeatKey{}).(*heartbeatDetails); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.last = []any{what}
	}
	activity.RecordHeartbeat(ctx, what)
}
