// Package worker connects Kivuko to Temporal: it registers activities and flows on their task queues, encrypts payloads and
// decrypts them for the Web UI, applies temporal.yaml to a server, and adapts the store to the small interfaces of the
// activities. It holds no business rules.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"kivuko/workflows"
)

// Activities are the activities of a process by queue: structs whose methods are activities.
type Activities map[string][]any

// Options configure the workers of a process.
type Options struct {
	TemporalConfig TemporalConfig
	Queues         []string
	BuildID        string
	Logger         *slog.Logger
	// Promote makes this build the current version of the deployment once it polls. It is for the local stack; deployments
	// promote by hand or by a pipeline.
	Promote bool
	// Interceptors run inside our own.
	Interceptors []interceptor.WorkerInterceptor
}

// stopTimeout is how long running activities may go on after the process was asked to stop. It is longer than an activity
// without heartbeats usually takes.
const stopTimeout = 30 * time.Second

// heartbeatThrottle is the pause between the heartbeats of an activity that reach the server. By the SDK's own it is four
// fifths of the heartbeat timeout, and one late heartbeat on a busy machine would start the activity a second time.
const heartbeatThrottle = 4 * time.Second

// Run serves the queues until ctx ends, or until one of them fails for good.
func Run(ctx context.Context, c client.Client, have Activities, o Options) error {
	if len(o.Queues) == 0 {
		return errors.New("worker: no queue given; the queues are " + strings.Join(queueNames(o.TemporalConfig), ", "))
	}
	if err := workflows.UseCalls(o.TemporalConfig.Calls); err != nil {
		return fmt.Errorf("temporal.yaml: %w", err)
	}
	fatal := make(chan error, len(o.Queues))
	var running []sdk.Worker
	defer func() {
		for _, w := range slices.Backward(running) {
			w.Stop()
		}
	}()
	for _, name := range o.Queues {
		w, err := build(c, name, have[name], o, fatal)
		if err != nil {
			return err
		}
		if err := w.Start(); err != nil {
			return fmt.Errorf("worker: queue %s: %w", name, err)
		}
		running = append(running, w)
		o.Logger.Info("serving", "queue", name, "build", o.BuildID)
	}
	if o.Promote {
		if err := promote(ctx, c, o); err != nil {
			return err
		}
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go keepWatches(watching, c, o)
	select {
	case <-ctx.Done():
		return nil
	case err := <-fatal:
		return fmt.Errorf("worker: %w", err)
	}
}

// How many tasks a process asks for at a time: of flows that it knows, of flows that it doesn't, and of activities. With two, the SDK's
// default, new flows of a busy queue wait for seconds although the process has room for them.
const (
	flowPolls = 6
	// ActivityPolls are those of one queue's activities.
	ActivityPolls = 4
)

// PollsOfFlows asks for the tasks of new flows apart from those of flows that the process knows. The SDK's default asks for one kind or the
// other with the same polls, and only for the known ones while those have a backlog: an order then waited four seconds to be opened,
// because others had been paid. As many polls as it begins with are all that it may have, so that it never scales.
func PollsOfFlows() sdk.PollerBehavior {
	return sdk.NewPollerBehaviorAutoscaling(sdk.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: flowPolls, MinimumNumberOfPollers: flowPolls, MaximumNumberOfPollers: flowPolls,
	})
}

func build(c client.Client, name string, have []any, o Options, fatal chan<- error) (sdk.Worker, error) {
	q, ok := o.TemporalConfig.Queues[name]
	if !ok {
		return nil, fmt.Errorf("worker: unknown queue %q; the queues are %s", name, strings.Join(queueNames(o.TemporalConfig), ", "))
	}
	w := sdk.New(c, name, sdk.Options{
		MaxConcurrentActivityExecutionSize:      q.ConcurrentActivities,
		MaxConcurrentLocalActivityExecutionSize: q.ConcurrentLocal,
		MaxConcurrentWorkflowTaskExecutionSize:  q.ConcurrentFlows,
		WorkflowTaskPollerBehavior:              PollsOfFlows(),
		MaxConcurrentActivityTaskPollers:        ActivityPolls,
		TaskQueueActivitiesPerSecond:            q.Rate,
		DisableWorkflowWorker:                   !q.Flows,
		WorkerStopTimeout:                       stopTimeout,
		MaxHeartbeatThrottleInterval:            heartbeatThrottle,
		OnFatalError:                            func(err error) { fatal <- fmt.Errorf("queue %s: %w", name, err) },
		Interceptors:                            append(interceptors(o.Logger), o.Interceptors...),
		DeploymentOptions: sdk.DeploymentOptions{
			UseVersioning:             true,
			Version:                   sdk.WorkerDeploymentVersion{DeploymentName: o.TemporalConfig.Deployment, BuildID: o.BuildID},
			DefaultVersioningBehavior: workflow.VersioningBehaviorPinned,
		},
	})
	if err := register(w, name, have); err != nil {
		return nil, err
	}
	return w, nil
}

// register registers the activities and flows of a queue. It refuses a process that lacks an activity of the queue or has
// one of another queue.
func register(w sdk.Registry, name string, have []any) error {
	belongs := workflows.Activities(name)
	if len(belongs) == 0 {
		return fmt.Errorf("worker: queue %s has no activities", name)
	}
	left := map[reflect.Type]bool{}
	for _, a := range belongs {
		left[reflect.TypeOf(a)] = true
	}
	for _, a := range have {
		if !left[reflect.TypeOf(a)] {
			return fmt.Errorf("worker: queue %s: %T does not belong there", name, a)
		}
		delete(left, reflect.TypeOf(a))
	}
	for t := range left {
		return fmt.Errorf("worker: queue %s: %s is not configured", name, t)
	}
	for _, a := range have {
		w.RegisterActivity(a)
	}
	if name == workflows.QueueFlows {
		for _, f := range workflows.Flows() {
			w.RegisterWorkflowWithOptions(f.Run, workflow.RegisterOptions{Name: f.Type})
		}
	}
	return nil
}

func queueNames(e TemporalConfig) []string {
	names := make([]string, 0, len(e.Queues))
	for name := range e.Queues {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func taskQueue(name string) *taskqueuepb.TaskQueue { return &taskqueuepb.TaskQueue{Name: name} }

// promote makes this build the one on which new flows start. The server knows a version only after one of its workers has
// polled, so promote retries until then.
func promote(ctx context.Context, c client.Client, o Options) error {
	const timeout = time.Minute
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	deployment := c.WorkerDeploymentClient().GetHandle(o.TemporalConfig.Deployment)
	err := until(ctx, func() error {
		_, err := deployment.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{
			BuildID: o.BuildID, IgnoreMissingTaskQueues: true,
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("worker: build %s could not be made current: %w", o.BuildID, err)
	}
	o.Logger.Info("current version", "build", o.BuildID)
	return nil
}
