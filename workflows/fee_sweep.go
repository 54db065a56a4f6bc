package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// FeeSweepInput starts the flow, whose id names the sweep.
type FeeSweepInput struct{}

// FeeSweepResult is how the sweep ended.
type FeeSweepResult struct {
	Status exchange.FeeSweepStatus `json:"status"`
}

// FeeSweep brings the earned fees of one wallet to the treasury. Its row decides what is done: a flow that is started again finds the
// payment that was approved.
func FeeSweep(ctx workflow.Context, _ FeeSweepInput) (FeeSweepResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	id, err := feeSweepForm.object(ctx)
	if err != nil {
		return FeeSweepResult{}, err
	}
	f := &feeSweep{sweep: id}
	if err := f.reach(ctx, FeeSweepID(id), "fee sweep "+id.String(), of(activities.ObjectFeeSweep, id)); err != nil {
		return FeeSweepResult{}, err
	}
	return attended(ctx, f.commands, func(ctx workflow.Context) (FeeSweepResult, error) {
		out := f.run(ctx)
		return out, lastHandlers(ctx)
	})
}

type feeSweep struct {
	flow
	sweep uuid.UUID
}

func (f *feeSweep) run(ctx workflow.Context) FeeSweepResult {
	for {
		in := activities.FeeSweepInput{SweepID: f.sweep}
		s := mustStep(ctx, &f.flow, database, "Approve the payment to the treasury", sweeps.ApproveFeeSweep, in)
		switch {
		case exchange.FeeSweepMachine.Terminal(s.Status):
			return FeeSweepResult{Status: s.Status}
		case s.PaymentID == uuid.Nil:
			f.decided(ctx, uuid.Nil, f.parked(ctx, ReasonSweepOfficers, nil))
		default:
			f.pay(ctx, s)
		}
	}
}

// pay has the payment carried out, and waits for an operator when no transaction can be made. The transaction of the database that
// completes the payment also completes the sweep.
func (f *feeSweep) pay(ctx workflow.Context, s activities.FeeSweepState) {
	f.commands.unpark(ctx, WaitsForChain)
	in := CryptoPayoutInput{PaymentID: s.PaymentID, FeeSweepID: f.sweep, Network: s.Network}
	c := child{
		summary: "Bring " + s.Amount.String() + " " + string(s.Amount.Asset()) + " of fees to the treasury", priority: fairness(priorityOrder, uuid.Nil),
		shown: attributes(StageSweep, WaitsForChain, AttrNetwork.ValueSet(string(s.Network))), resumed: &f.resumed,
	}
	result, err := carry(ctx, in, c, patiently)
	if err == nil && result.Completed {
		return
	}
	reason := Reason(result.Reason)
	if err != nil {
		reason = ReasonStepFailed
	}
	f.decided(ctx, s.PaymentID, f.parked(ctx, reason, err))
}

// decided carries out an operator's decision. One that can't be carried out changes nothing, and the row shows what to do next.
func (f *feeSweep) decided(ctx workflow.Context, payment uuid.UUID, d decision) {
	f.commands.unpark(ctx, WaitsForNothing)
	if d.verb != activities.VerbRefund {
		if payment != uuid.Nil {
			_ = approveAgain(ctx, &payment, d.proof) // the next try finds the payment as it is
		}
		return
	}
	in := activities.GiveUpFeeSweepInput{SweepID: f.sweep, Proof: d.proof}
	err := f.commands.carryOut(ctx, func(k kind) error { return do(ctx, k, "Leave the fees where they are", sweeps.GiveUpFeeSweep, in) })
	if err != nil {
		workflow.GetLogger(ctx).Error("the fee sweep could not be given up", "error", err)
	}
}

// FeeSweepSummary is the summary of the flow in the Web UI.
const FeeSweepSummary = "Bring earned fees to the treasury"

// FeeSweepAttributes are the search attributes with which the flow starts.
func FeeSweepAttributes(n exchange.Network) temporal.SearchAttributes {
	return attributes(StageSweep, WaitsForChain, AttrNetwork.ValueSet(string(n)))
}

// FeesSwept is what a run of SweepFees did.
type FeesSwept struct {
	Begun  int `json:"begun,omitempty"`  // sweeps whose flow it started
	Failed int `json:"failed,omitempty"` // rules that could not be followed now
}

// SweepFees opens the sweeps that rules ask for, and starts the flows of all that are open and not signed. A schedule starts it. A flow
// that can't be started is started by its next run, or by RepairParked.
func SweepFees(ctx workflow.Context) (FeesSwept, error) {
	var out FeesSwept
	rules, err := fetch(ctx, database, "List the rules of fee sweeps", sweeps.SweptByRule)
	if err != nil {
		return out, err
	}
	for _, r := range rules {
		open, err := step(ctx, database, "Open the sweeps of "+string(r.Asset)+" on "+string(r.Network), sweeps.OpenFeeSweeps, r)
		if err != nil {
			workflow.GetLogger(ctx).Warn("fees could not be swept by their rule", "network", r.Network, "asset", r.Asset, "error", err)
			out.Failed++
			continue
		}
		for _, id := range open.Sweeps {
			c := child{id: FeeSweepID(id), summary: FeeSweepSummary, shown: FeeSweepAttributes(r.Network)}
			started, err := start(ctx, c, FeeSweep, FeeSweepInput{})
			if err != nil {
				workflow.GetLogger(ctx).Warn("the flow of a fee sweep could not be started", "sweep", id, "error", err)
			}
			if started {
				out.Begun++
			}
		}
	}
	return out, nil
}
