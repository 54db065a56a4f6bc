package activities

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"

	"kivuko/exchange"
)

// An activity sends heartbeats while it waits, and no heartbeat overwrites the details that it or an earlier run
// recorded.
func TestAStepSendsHeartbeats(t *testing.T) {
	for name, c := range map[string]struct {
		before, tells, want string
	}{
		"nothing recorded": {}, "an earlier run's words": {before: "AG_1", want: "AG_1"},
		"its own words": {before: "AG_1", tells: "AG_2", want: "AG_2"},
	} {
		t.Run(name, func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			said := make(chan string, 1000)
			env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
				var h submissionDetails
				if details.HasValues() {
					if err := details.Get(&h); err != nil {
						t.Error(err)
					}
				}
				said <- h.Refs.ConversationID
			})
			if c.before != "" {
				env.SetHeartbeatDetails(submissionDetails{State: exchange.Accepted, Refs: exchange.Refs{ConversationID: c.before}})
			}
			step := func(ctx context.Context) error {
				ctx, stop := heartbeatEvery(ctx, time.Millisecond)
				defer stop()
				if c.tells != "" {
					recordHeartbeat(ctx, submissionDetails{State: exchange.Accepted, Refs: exchange.Refs{ConversationID: c.tells}})
				}
				select { // the SDK delays further ones
				case got := <-said:
					if got != c.want {
						t.Errorf("the heartbeat's details are %q, want %q", got, c.want)
					}
				case <-time.After(time.Hour):
					t.Error("no heartbeat")
				}
				if p, ok := ctx.Value(heartbeatKey{}).(*heartbeatDetails); !ok || len(p.last) != min(len(c.want), 1) {
					t.Errorf("the next heartbeat's details would be %+v", p)
				}
				return nil
			}
			env.RegisterActivityWithOptions(step, activity.RegisterOptions{Name: "step"})
			if _, err := env.ExecuteActivity("step"); err != nil {
				t.Fatal(err)
			}
		})
	}
}
