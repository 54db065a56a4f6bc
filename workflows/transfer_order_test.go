package workflows_test

import (
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"kivuko/exchange"
	"kivuko/workflows"
)

// An officer may decide before the step has returned what it wrote: the screening, or of a transfer that stays in our custody its
// opening. The response is then older than the flow's state, and must not take the flow back to waiting for officers.
func TestOlderAnswersAboutATransferChangeNothing(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]func(w *transferHarness){"outside": func(*transferHarness) {}, "inside": (*transferHarness).inside} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTransferHarness(t)
			to(w)
			w.decidedEarly(t)
		})
	}
}

func (w *transferHarness) decidedEarly(t *testing.T) {
	t.Helper()
	w.needs(1)
	w.judged = func() {
		w.judged = nil
		decided := make(chan error, 1)
		w.env.UpdateWorkflow(workflows.UpdateApprove, "early", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { decided <- err }, OnComplete: func(_ any, err error) { decided <- err },
		}, workflows.ApprovalRef{Token: w.token(1, exchange.Approve)})
		if err := <-decided; err != nil {
			t.Errorf("the officer's decision: %v", err)
		}
	}
	began := w.env.Now()
	if r := w.play(t); r.Status != exchange.TransferCompleted {
		t.Errorf("the transfer ended as %s (%s)", r.Status, r.Detail)
	}
	if took := w.env.Now().Sub(began); took > time.Hour {
		t.Errorf("the flow went back to waiting for officers, for %s", took)
	}
}
