// Package worker is what Kivuko does with Temporal itself: it puts activities and flows on their task queues, encrypts
// payloads and opens them for the Web UI, reconciles a server with temporal.yaml, and fits the store to the small
// interfaces of the activities. It composes; it holds no rule of the business.
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

// Activities are what a process carries out, by queue: structs whose methods are activities.
type Activities map[string][]any

// Options say how the workers of a process run.
type Options struct {
	Estate  Estate
	Queues  []string
	BuildID string
	Logger  *slog.Logger
	// Promote makes this build the current version of the deployment once it polls. Deployments
	// promote by hand or by pipeline; the local stack has nobody to do it.
	Promote bool
	// Interceptors are put inside of our own.
	Interceptors []interceptor.WorkerInterceptor
}

// stopTimeout is how long running activities may finish after the process was told to stop. It is
// longer than any activity that does not heartbeat usually takes.
const stopTimeout = 30 * time.Second

// Run serves the queues until ctx ends, or until one of them fails for good.
func Run(ctx context.Context, c client.Client, have Activities, o Options) error {
	if len(o.Queues) == 0 {
		return errors.New("worker: no queue given; the queues are " + strings.Join(queueNames(o.Estate), ", "))
	}
	if err := workflows.UseCalls(o.Estate.Calls); err != nil {
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

func build(c client.Client, name string, have []any, o Options, fatal chan<- error) (sdk.Worker, error) {
	q, ok := o.Estate.Queues[name]
	if !ok {
		return nil, fmt.Errorf("worker: unknown queue %q; the queues are %s", name, strings.Join(queueNames(o.Estate), ", "))
	}
	w := sdk.New(c, name, sdk.Options{
		MaxConcurrentActivityExecutionSize:      q.ConcurrentActivities,
		MaxConcurrentLocalActivityExecutionSize: q.ConcurrentLocal,
		MaxConcurrentWorkflowTaskExecutionSize:  q.ConcurrentFlows,
		TaskQueueActivitiesPerSecond:            q.Rate,
		DisableWorkflowWorker:                   !q.Flows,
		WorkerStopTimeout:                       stopTimeout,
		OnFatalError:                            func(err error) { fatal <- fmt.Errorf("queue %s: %w", name, err) },
		Interceptors:                            append(interceptors(o.Logger), o.Interceptors...),
		DeploymentOptions: sdk.DeploymentOptions{
			UseVersioning:             true,
			Version:                   sdk.WorkerDeploymentVersion{DeploymentName: o.Estate.Deployment, BuildID: o.BuildID},
			DefaultVersioningBehavior: workflow.VersioningBehaviorPinned,
		},
	})
	if err := register(w, name, have); err != nil {
		return nil, err
	}
	return w, nil
}

// register puts on a queue what belongs there, and refuses a process that lacks a part of it or has one of another queue.
func register(w sdk.Registry, name string, have []any) error {
	belongs := workflows.Activities(name)
	if len(belongs) == 0 {
		return fmt.Errorf("worker: nothing is registered for queue %s", name)
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

func queueNames(e Estate) []string {
	names := make([]string, 0, len(e.Queues))
	for name := range e.Queues {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func taskQueue(name string) *taskqueuepb.TaskQueue { return &taskqueuepb.TaskQueue{Name: name} }

// promote makes this build the one that new flows start on. The server knows a version only once one
// of its workers polls, so it is tried until then.
func promote(ctx context.Context, c client.Client, o Options) error {
	const patience = time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	deployment := c.WorkerDeploymentClient().GetHandle(o.Estate.Deployment)
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
