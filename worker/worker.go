// Package worker is what Kivuko does with Temporal itself: it puts activities and flows on their task queues, encrypts
// payloads and opens them for the Web UI, reconciles a server with temporal.yaml, and fits the store to the small
// interfaces of the activities. It composes; it holds no rule of the business.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// Parts are what activities work with. A process fills only what its queues need: the queue names in
// the comments fail to start without it.
type Parts struct {
	Flows  *activities.Orders                        // flows
	Send   *activities.Transfers                     // flows
	Decide *activities.Approvals                     // flows
	Rates  *activities.Rates                         // flows
	Relay  *activities.Relay                         // flows
	Hooks  *activities.Webhooks                      // webhooks
	Momo   *activities.Momo                          // momo
	Refund *activities.Refunds                       // momo
	Payout *activities.Payouts                       // momo
	Bank   *activities.Bank                          // flows
	Float  *activities.Float                         // momo
	List   *activities.Statement                     // momo
	Chains map[exchange.Network]*activities.Chain    // chain-<network>
	Watch  map[exchange.Network]*activities.Deposits // chain-<network>
	Cold   map[exchange.Network]*activities.Cold     // chain-<network>
	Waits  *activities.DepositWaits                  // flows
	Pool   *activities.Escrow                        // flows
	Back   *activities.ChainRefunds                  // flows
	Sweep  *activities.Sweeps                        // flows
	Sale   *activities.OffRamps                      // flows
	Sign   map[exchange.Network]*activities.Signing  // signer-<network>
	Wallet map[exchange.Network]*activities.Wallets  // signer-<network>

	Reconcile *activities.Reconciliation                 // flows
	Compare   map[exchange.Network]*activities.Comparing // chain-<network>
}

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
func Run(ctx context.Context, c client.Client, parts Parts, o Options) error {
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
		w, err := build(c, name, parts, o, fatal)
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
	if len(parts.Watch) > 0 {
		watching, stop := context.WithCancel(ctx)
		defer stop()
		go keepWatches(watching, c, parts, o)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-fatal:
		return fmt.Errorf("worker: %w", err)
	}
}

func build(c client.Client, name string, parts Parts, o Options, fatal chan<- error) (sdk.Worker, error) {
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
	if err := register(w, name, parts); err != nil {
		return nil, err
	}
	return w, nil
}

// register puts on a queue what belongs there, and refuses a process that lacks a part of it.
func register(w sdk.Registry, name string, parts Parts) error {
	lacks := func(what string) error { return fmt.Errorf("worker: queue %s: %s is not configured", name, what) }
	switch kind, network, _ := strings.Cut(name, "-"); {
	case name == workflows.QueueFlows:
		if !registerRows(w, parts) {
			return lacks("the store")
		}
	case name == workflows.QueueWebhooks:
		if parts.Hooks == nil {
			return lacks("the key of webhook secrets")
		}
		w.RegisterActivity(parts.Hooks)
	case name == workflows.QueueMomo:
		if parts.Momo == nil || parts.Refund == nil || parts.Payout == nil || parts.List == nil || parts.Float == nil {
			return lacks("the mobile money operator")
		}
		w.RegisterActivity(parts.Momo)
		w.RegisterActivity(parts.Refund)
		w.RegisterActivity(parts.Payout)
		w.RegisterActivity(parts.Float)
		w.RegisterActivity(parts.List)
	case kind == "chain":
		n := exchange.Network(network)
		c, d, compare, cold := parts.Chains[n], parts.Watch[n], parts.Compare[n], parts.Cold[n]
		if c == nil || d == nil || compare == nil || cold == nil {
			return lacks("the network")
		}
		w.RegisterActivity(c)
		w.RegisterActivity(d)
		w.RegisterActivity(compare)
		w.RegisterActivity(cold)
	case kind == "signer":
		s, k := parts.Sign[exchange.Network(network)], parts.Wallet[exchange.Network(network)]
		if s == nil || k == nil {
			return lacks("the key store")
		}
		w.RegisterActivity(s)
		w.RegisterActivity(k)
	default:
		return fmt.Errorf("worker: nothing is registered for queue %s", name)
	}
	return nil
}

// registerRows puts the flows and the activities that need nothing but the store on their queue, and reports whether all
// of them are there.
func registerRows(w sdk.Registry, parts Parts) bool {
	if parts.Flows == nil || parts.Send == nil || parts.Decide == nil || parts.Waits == nil || parts.Reconcile == nil || parts.Rates == nil || parts.Relay == nil || parts.Pool == nil || parts.Back == nil || parts.Sweep == nil || parts.Sale == nil || parts.Bank == nil {
		return false
	}
	registerFlows(w)
	for _, activities := range []any{
		parts.Flows, parts.Send, parts.Decide, parts.Waits, parts.Reconcile, parts.Rates, parts.Relay, parts.Pool, parts.Back, parts.Sweep, parts.Sale, parts.Bank,
	} {
		w.RegisterActivity(activities)
	}
	return true
}

func registerFlows(w sdk.Registry) {
	for name, flow := range map[string]any{
		workflows.TypeOnRamp: workflows.OnRamp, workflows.TypeOffRamp: workflows.OffRamp, workflows.TypeCryptoPayout: workflows.CryptoPayout,
		workflows.TypeRefund: workflows.Refund, workflows.TypeMomoPayout: workflows.MomoPayout, workflows.TypeLatePayout: workflows.LatePayout, workflows.TypeLatePayment: workflows.LatePayment,
		workflows.TypeCreateWallet: workflows.CreateWallet, workflows.TypeSealAudit: workflows.SealAudit,
		workflows.TypeTransfer: workflows.Transfer, workflows.TypeDepositWatch: workflows.DepositWatch,
		workflows.TypePrune: workflows.Prune, workflows.TypeReconcile: workflows.Reconcile,
		workflows.TypeReconcileNetwork: workflows.ReconcileNetwork, workflows.TypeReserveReport: workflows.ReserveReport,
		workflows.TypeTendEscrow: workflows.TendEscrow, workflows.TypeReturnDeposit: workflows.ReturnDeposit, workflows.TypeRelayEvents: workflows.RelayEvents, workflows.TypeDeliverWebhooks: workflows.DeliverWebhooks,
		workflows.TypePullRates: workflows.PullRates, workflows.TypeReconcilePayments: workflows.ReconcilePayments, workflows.TypeSweepPayments: workflows.SweepPayments,
		workflows.TypeWatchFloat: workflows.WatchFloat, workflows.TypeMoveFloat: workflows.MoveFloat,
	} {
		w.RegisterWorkflowWithOptions(flow, workflow.RegisterOptions{Name: name})
	}
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
