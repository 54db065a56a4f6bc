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

// A step says that it is alive while it waits, and no sign of life wipes out what it, or an earlier run of
// it, left behind.
func TestAStepSaysThatItIsAlive(t *testing.T) {
	for name, c := range map[string]struct {
		before, tells, want string
	}{
		"nothing to tell": {}, "an earlier run's words": {before: "AG_1", want: "AG_1"},
		"its own words": {before: "AG_1", tells: "AG_2", want: "AG_2"},
	} {
		t.Run(name, func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			said := make(chan string, 1000)
			env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
				var h heard
				if details.HasValues() {
					if err := details.Get(&h); err != nil {
						t.Error(err)
					}
				}
				said <- h.Refs.ConversationID
			})
			if c.before != "" {
				env.SetHeartbeatDetails(heard{State: exchange.Accepted, Refs: exchange.Refs{ConversationID: c.before}})
			}
			step := func(ctx context.Context) error {
				ctx, stop := beatEvery(ctx, time.Millisecond)
				defer stop()
				if c.tells != "" {
					tell(ctx, heard{State: exchange.Accepted, Refs: exchange.Refs{ConversationID: c.tells}})
				}
				select { // the SDK keeps further ones back for a while
				case got := <-said:
					if got != c.want {
						t.Errorf("the sign of life says %q, want %q", got, c.want)
					}
				case <-time.After(10 * time.Second):
					t.Error("no sign of life")
				}
				if p, ok := ctx.Value(pulseKey{}).(*pulse); !ok || len(p.last) != min(len(c.want), 1) {
					t.Errorf("the next sign of life would say %+v", p)
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
