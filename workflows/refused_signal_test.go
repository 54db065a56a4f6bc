package workflows_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/workflows"
)

// A signal that changes nothing is named in the details, with the request that would change something. Only the
// newest one is shown, until a command is accepted.
func TestDetailsSayWhyASignalWasRefused(t *testing.T) {
	t.Parallel()
	const min = time.Minute
	w := newHarness(t)
	w.chain.script = func(int) outcome {
		if w.env.Now().Sub(w.start) < 12*min {
			return outcome{refused: chain.ReasonGas}
		}
		return outcome{}
	}
	flow := workflows.OnRampID(w.request.ID)
	says := func(wants ...string) {
		t.Helper()
		details := detailsOf(t, w.env, flow)
		for _, want := range wants {
			if !strings.Contains(details, want) {
				t.Errorf("the details do not say %q:\n%s", want, details)
			}
		}
		if n := strings.Count(details, "refused at"); n > 1 {
			t.Errorf("the details name %d refused signals:\n%s", n, details)
		}
	}
	w.at(5*min, func() {
		w.env.SignalWorkflow(workflows.SignalRefund, map[string]string{"note": "as the customer asked"})
	})
	w.at(6*min, func() {
		says("Needs attention: payout-insufficient_gas",
			`Signal "refund" refused at `, "It carries no command id; use POST /api/v1/auth/orders/"+w.request.ID.String()+"/refund.")
	})
	w.at(7*min, func() { w.env.SignalWorkflow(workflows.SignalRefund, workflows.CommandRef{CommandID: uuid.New()}) })
	w.at(8*min, func() { says(`Signal "refund" refused at `, "There is no such command for this object.") })
	w.at(9*min, func() {
		w.env.SignalWorkflow(workflows.SignalResolve, workflows.CommandRef{CommandID: w.decree("resolve")})
	})
	w.at(10*min, func() {
		says(`Signal "resolve" refused at `, "A flow that is parked with payout-insufficient_gas does not accept resolve.")
	})
	w.at(11*min, func() { w.env.SignalWorkflow(workflows.SignalRetry, nil) })
	w.at(12*min, func() {
		if details := detailsOf(t, w.env, flow); strings.Contains(details, "refused at") {
			t.Errorf("a refused signal is shown after a command was accepted:\n%s", details)
		}
	})
	w.at(13*min, func() { w.env.SignalWorkflow(workflows.SignalRetry, nil) })
	w.run(t)
	ended(t, w, exchange.OrderCompleted, exchange.WaitNothing)
}

// A second command for the same reason must not count for the next one, and the details say that it did not.
func TestDetailsSayWhichCommandCameTooLate(t *testing.T) {
	t.Parallel()
	const min = time.Minute
	w := newHarness(t)
	w.chain.script = func(int) outcome {
		switch after := w.env.Now().Sub(w.start); {
		case after < 5*min:
			return outcome{refused: chain.ReasonGas}
		case after < 7*min:
			return outcome{refused: chain.ReasonUnsupported}
		}
		return outcome{}
	}
	w.at(5*min, func() { w.env.SignalWorkflow(workflows.SignalRetry, nil) })
	w.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name == "RetryPayout" && w.env.Now().Sub(w.start) < 6*min { // while the first one is carried out
			w.env.SignalWorkflow(workflows.SignalRetry, nil)
		}
	})
	w.at(6*min, func() {
		details := detailsOf(t, w.env, workflows.OnRampID(w.request.ID))
		for _, want := range []string{"Needs attention: payout-unsupported_asset", `"retry" was not carried out, because the flow no longer waits for payout-insufficient_gas.`} {
			if !strings.Contains(details, want) {
				t.Errorf("the details do not say %q:\n%s", want, details)
			}
		}
	})
	w.at(8*min, func() { w.env.SignalWorkflow(workflows.SignalRetry, nil) })
	w.run(t)
	ended(t, w, exchange.OrderCompleted, exchange.WaitNothing)
}

// The same holds for a decision about a transfer without the token of an officer.
func TestDetailsSayWhyADecisionWasRefused(t *testing.T) {
	t.Parallel()
	w := newTransferHarness(t)
	w.needs(1)
	w.whenAsked(func() {
		w.env.SignalWorkflow(workflows.SignalApprove, map[string]string{"note": "fine"})
		w.at(time.Hour, func() {
			details := detailsOf(t, w.env, workflows.TransferID(w.ask.ID))
			for _, want := range []string{"Transfer pending_approval", `Signal "approve" refused at `, "It carries no token; use POST /api/v1/auth/approvals/tokens to get one."} {
				if !strings.Contains(details, want) {
					t.Errorf("the details do not say %q:\n%s", want, details)
				}
			}
		})
	})
	w.play(t)
}
