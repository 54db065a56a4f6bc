package workflows_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"kivuko/workflows"
)

func replayer() worker.WorkflowReplayer {
	r := worker.NewWorkflowReplayer()
	for name, flow := range map[string]any{
		workflows.TypeOnRamp: workflows.OnRamp, workflows.TypeCryptoPayout: workflows.CryptoPayout,
		workflows.TypeRefund: workflows.Refund, workflows.TypeLatePayment: workflows.LatePayment,
		workflows.TypeCreateWallet: workflows.CreateWallet, workflows.TypeSealAudit: workflows.SealAudit, workflows.TypeDepositWatch: workflows.DepositWatch,
		workflows.TypeReconcile: workflows.Reconcile, workflows.TypeReconcileNetwork: workflows.ReconcileNetwork,
	} {
		r.RegisterWorkflowWithOptions(flow, workflow.RegisterOptions{Name: name})
	}
	return r
}

// TestRecordedHistoriesReplay runs flows that were recorded on a real server through today's code. A
// difference would leave flows that are under way unable to go on.
func TestRecordedHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "histories", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("the recorded histories are missing: run the end-to-end tests with KIVUKO_RECORD=1")
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			if err := replayer().ReplayWorkflowHistoryFromJSONFile(silentLogger{}, f); err != nil {
				t.Error(err)
			}
		})
	}
}

// Limits that a smooth order keeps to, so that a change that makes each order dearer is seen.
const (
	maxOrderEvents  = 40
	maxPayoutEvents = 20
	maxSeenEvents   = 38 // of an order that was started with its search attributes
)

func TestSmoothOrderIsCheap(t *testing.T) {
	for name, most := range map[string]int{"on_ramp_paid.json": maxOrderEvents, "on_ramp_paid_seen.json": maxSeenEvents, "crypto_payout_paid.json": maxPayoutEvents} {
		raw, err := os.ReadFile(filepath.Join("testdata", "histories", name))
		if os.IsNotExist(err) {
			t.Fatal("the recorded histories are missing: run the end-to-end tests with KIVUKO_RECORD=1")
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := countEvents(t, raw); n > most {
			t.Errorf("%s has %d events, at most %d are allowed", name, n, most)
		}
	}
}
