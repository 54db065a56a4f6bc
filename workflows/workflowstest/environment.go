// Package workflowstest plays flows in the SDK's test environment, which skips their waits.
package workflowstest

import (
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"kivuko/workflows"
)

// patience is how long a test, a workflow task, or one try of a step may take by the real clock. It only ends what hangs.
const patience = time.Hour

// The environment measures tries and heartbeats by the real clock, and a step whose time is over fails for good, where a server
// would repeat it: it would count a slow machine as a fault of the flow. Budgets stay, because flows go on when they are used up.
func init() {
	c := workflows.CallsInUse()
	for _, l := range []*workflows.Limits{&c.Local, &c.Database, &c.Rail, &c.Look, &c.Signer, &c.Delivery, &c.Watch} {
		l.Timeout, l.Heartbeat = patience, 0
	}
	if err := workflows.UseCalls(c); err != nil {
		panic(err)
	}
}

// Options are what an environment has besides.
type Options struct {
	Metrics      client.MetricsHandler
	Interceptors []interceptor.WorkerInterceptor
}

// NewEnvironment returns an environment for one flow and the flows that it starts. It logs nothing.
func NewEnvironment(o Options) *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(Silent())
	if o.Metrics != nil {
		suite.SetMetricsHandler(o.Metrics)
	}
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(patience)
	env.SetWorkerOptions(worker.Options{Interceptors: o.Interceptors, DeadlockDetectionTimeout: patience})
	return env
}

// Silent returns a logger that logs nothing.
func Silent() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
