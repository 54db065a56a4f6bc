package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// StageReconcile is the stage of a flow that compares a network.
const StageReconcile = "reconcile"

// ReconcileStarted lists the networks on which a comparison was started, and those on which one is still running.
type ReconcileStarted struct {
	Started []exchange.Network `json:"started"`
	Running []exchange.Network `json:"running,omitempty"`
}

// Reconcile starts a comparison of every network. A schedule starts it. The comparisons run on after it: with many wallets
// they take longer than a scheduled flow may.
func Reconcile(ctx workflow.Context) (ReconcileStarted, error) {
	out := ReconcileStarted{Started: []exchange.Network{}}
	networks, err := fetch(ctx, database, "List the networks", reconciliation.ReconciledNetworks)
	if err != nil {
		return out, err
	}
	for _, n := range networks {
		c := child{
			id: ReconciliationID(n), summary: "Compare the ledger with " + string(n),
			shown: attributes(StageReconcile, WaitsForChain, AttrNetwork.ValueSet(string(n)), AttrStatus.ValueSet(string(exchange.ReconciliationRunning))),
		}
		switch started, err := start(ctx, c, ReconcileNetwork, ReconcileNetworkInput{Network: n}); {
		case err != nil:
			return out, err
		case started:
			out.Started = append(out.Started, n)
		default:
			out.Running = append(out.Running, n)
		}
	}
	return out, nil
}

// ReconcileNetworkInput starts or continues a comparison. Its progress is in the run's row.
type ReconcileNetworkInput struct {
	Network exchange.Network `json:"network"`
	RunID   uuid.UUID        `json:"run_id,omitzero"` // of the run to continue
}

// reconcileBatches is how many batches one run of the flow compares before it continues as new.
const reconcileBatches = 500

// ReconcileNetwork compares every wallet of a network with the ledger, batch by batch, after the owners of shared ones were read: who controls
// a wallet is worth knowing even when nothing can be compared. When the network can't be read, the run fails without a statement about the wallets; the next run starts from the beginning.
func ReconcileNetwork(ctx workflow.Context, in ReconcileNetworkInput) (activities.Reconciled, error) {
	of := activities.ReconciliationInput{RunID: in.RunID, Network: in.Network}
	if in.RunID == uuid.Nil && workflow.GetVersion(ctx, "owners", workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		checkOwners(ctx, in.Network)
	}
	begun, err := step(ctx, database, "Begin the comparison", reconciliation.BeginReconciliation, of)
	if err != nil {
		return activities.Reconciled{}, passOn(err)
	}
	of.RunID = begun.RunID
	for n := 0; ; n++ {
		if n == reconcileBatches || workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return activities.Reconciled{}, goOn(ctx, TypeReconcileNetwork, ReconcileNetworkInput{Network: in.Network, RunID: of.RunID})
		}
		next := activities.CompareInput{RunID: of.RunID, Network: in.Network}
		now, err := step(ctx, watch(in.Network), "Compare wallets", comparing.CompareWallets, next)
		if err != nil {
			workflow.GetLogger(ctx).Warn("a comparison with the chain failed", "network", in.Network, "error", err)
			of.Failed, of.Detail = true, reconcileFault(err)
		}
		if err != nil || !now.More {
			break
		}
	}
	done, err := step(ctx, database, "End the comparison", reconciliation.FinishReconciliation, of)
	if err != nil {
		return done, passOn(err)
	}
	show(ctx, AttrStatus.ValueSet(string(done.Status)), AttrWaitingFor.ValueSet(WaitsForNothing))
	return done, nil
}

// checkOwners has the owners of the network's accounts of several owners read again. What can't be read now is read by the next run.
func checkOwners(ctx workflow.Context, n exchange.Network) {
	if _, err := fetch(ctx, watch(n), "Read the owners of shared accounts", multisigs.CheckMultisigs); err != nil {
		workflow.GetLogger(ctx).Warn("the owners of shared accounts could not be read", "network", n, "error", err)
	}
}

// reconcileFault returns the code for why a network could not be compared.
func reconcileFault(err error) string {
	if passing(err) {
		return "unavailable"
	}
	return "unreadable"
}

// ReserveReport writes the daily report of liabilities and reserves. A schedule starts it.
func ReserveReport(ctx workflow.Context) (activities.ReservesWritten, error) {
	in := activities.ReservesInput{Day: workflow.Now(ctx).UTC().Truncate(24 * time.Hour)}
	written, err := step(ctx, database, "Write the reserve report", reconciliation.WriteReserves, in)
	return written, err
}
