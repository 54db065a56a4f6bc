package workflows

import (
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

var (
	reconciliation *activities.Reconciliation
	comparing      *activities.Comparing
)

// The names of the flows that hold the ledger against the chains.
const (
	TypeReconcile        = "Reconcile"
	TypeReconcileNetwork = "ReconcileNetwork"
	TypeReserveReport    = "ReserveReport"
)

// StageReconcile is the stage of a flow that compares a network.
const StageReconcile = "reconcile"

// ReconciliationID is the id of the flow that compares a network. There is one of each at a time.
func ReconciliationID(n exchange.Network) string { return "reconciliation:" + string(n) }

// ReconcileStarted says on which networks a comparison was started, and on which one goes on already.
type ReconcileStarted struct {
	Started []exchange.Network `json:"started"`
	Running []exchange.Network `json:"running,omitempty"`
}

// Reconcile starts a comparison of every network. A schedule starts it. The comparisons outlive it: with
// many wallets they take longer than a scheduled flow may.
func Reconcile(ctx workflow.Context) (ReconcileStarted, error) {
	out := ReconcileStarted{Started: []exchange.Network{}}
	var networks []exchange.Network
	err := workflow.ExecuteActivity(record(ctx, "List the networks"), reconciliation.ReconciledNetworks).Get(ctx, &networks)
	if err != nil {
		return out, err
	}
	for _, n := range networks {
		child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID: ReconciliationID(n), TaskQueue: QueueFlows, ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
			WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			StaticSummary:         "Hold the ledger against " + string(n),
			TypedSearchAttributes: temporal.NewSearchAttributes(
				AttrNetwork.ValueSet(string(n)), AttrStage.ValueSet(StageReconcile), AttrStatus.ValueSet(string(exchange.ReconciliationRunning)),
				AttrNeedsAttention.ValueSet(false), AttrWaitingFor.ValueSet(WaitsForChain),
			),
		})
		err := workflow.ExecuteChildWorkflow(child, TypeReconcileNetwork, ReconcileNetworkInput{Network: n}).GetChildWorkflowExecution().Get(ctx, nil)
		switch {
		case temporal.IsWorkflowExecutionAlreadyStartedError(err):
			out.Running = append(out.Running, n)
		case err != nil:
			return out, err
		default:
			out.Started = append(out.Started, n)
		}
	}
	return out, nil
}

// ReconcileNetworkInput starts a comparison, or goes on with one. How far it came is in the run's row.
type ReconcileNetworkInput struct {
	Network exchange.Network `json:"network"`
	RunID   uuid.UUID        `json:"run_id,omitzero"` // of the run that goes on
}

// reconcileBatches is how many batches one run of the flow compares before it goes on as a new one.
const reconcileBatches = 500

// ReconcileNetwork compares every custodial wallet of a network with the ledger, batch by batch. When the
// network can't be read its run has failed, which says nothing of the wallets; the next one begins anew.
func ReconcileNetwork(ctx workflow.Context, in ReconcileNetworkInput) (activities.Reconciled, error) {
	of := activities.ReconciliationInput{RunID: in.RunID, Network: in.Network}
	var begun activities.ReconciliationBegun
	if err := workflow.ExecuteActivity(record(ctx, "Begin the comparison"), reconciliation.BeginReconciliation, of).Get(ctx, &begun); err != nil {
		return activities.Reconciled{}, passOn(err)
	}
	of.RunID = begun.RunID
	for n := 0; ; n++ {
		if n == reconcileBatches || workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			o := workflow.ContinueAsNewErrorOptions{InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade}
			return activities.Reconciled{}, workflow.NewContinueAsNewErrorWithOptions(ctx, o, TypeReconcileNetwork,
				ReconcileNetworkInput{Network: in.Network, RunID: of.RunID})
		}
		var now activities.Compared
		next := activities.CompareInput{RunID: of.RunID, Network: in.Network}
		err := workflow.ExecuteActivity(watch(ctx, in.Network, "Compare wallets"), comparing.CompareWallets, next).Get(ctx, &now)
		if err != nil {
			workflow.GetLogger(ctx).Warn("a comparison with the chain failed", "network", in.Network, "error", err)
			of.Failed, of.Detail = true, reconcileFault(err)
		}
		if err != nil || !now.More {
			break
		}
	}
	var done activities.Reconciled
	err := workflow.ExecuteActivity(record(ctx, "End the comparison"), reconciliation.FinishReconciliation, of).Get(ctx, &done)
	if err != nil {
		return done, passOn(err)
	}
	show(ctx, AttrStatus.ValueSet(string(done.Status)), AttrWaitingFor.ValueSet(WaitsForNobody))
	return done, nil
}

// reconcileFault is in a word why a network could not be compared.
func reconcileFault(err error) string {
	if passing(err) {
		return "unavailable"
	}
	return "unreadable"
}

// ReserveReport writes what is owed and what there is to pay it with, once a day. A schedule starts it.
func ReserveReport(ctx workflow.Context) (activities.ReservesWritten, error) {
	var written activities.ReservesWritten
	in := activities.ReservesInput{Day: workflow.Now(ctx).UTC().Truncate(24 * time.Hour)}
	err := workflow.ExecuteActivity(record(ctx, "Write the report"), reconciliation.WriteReserves, in).Get(ctx, &written)
	return written, err
}
