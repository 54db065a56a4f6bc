package workflows

import (
	"slices"
	"strings"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// ParkedQuery is the list filter of Temporal that finds the flows which wait for an operator. It works in the Web UI too.
const ParkedQuery = `KivukoNeedsAttention = true AND ExecutionStatus = "Running"`

// markParked shows that a flow is parked with a reason, or, without one, that it goes on: in its search attributes, and in
// its row of the list of parked flows. One workflow task carries both commands, so they differ only while the database is
// down. RepairParked corrects what a terminated or reset flow leaves behind. It returns the object of a parked flow.
func markParked(ctx workflow.Context, r Reason, more ...temporal.SearchAttributeUpdate) activities.ParkedObject {
	value := r
	if r == "" {
		value = "none"
	}
	show(ctx, append(more, AttrNeedsAttention.ValueSet(r != ""), AttrReason.ValueSet(string(value)))...)
	info := workflow.GetInfo(ctx)
	in := activities.ListParkedInput{
		WorkflowID: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID, Type: info.WorkflowType.Name, Reason: string(r), Since: workflow.Now(ctx),
	}
	in.ObjectType, in.ObjectID = ObjectOf(in.WorkflowID)
	if network, ok := workflow.GetTypedSearchAttributes(ctx).GetKeyword(AttrNetwork); ok {
		in.Network = exchange.Network(network)
	}
	what := "Add the flow to the list of parked flows"
	if r == "" {
		what = "Remove the flow from the list of parked flows"
	}
	// The context is never cancelled and the call is retried for ever, so only a bug makes it fail: the flow goes on.
	object, err := step(ctx, database, what, orders.ListParked, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the list of parked flows could not be written", "error", err)
	}
	return object
}

// Reasons lists every reason to park.
func Reasons() []Reason {
	all := make([]Reason, 0, len(guide))
	for r := range guide {
		all = append(all, r)
	}
	slices.Sort(all)
	return all
}

// Advice is what operators read about a parked flow.
type Advice struct {
	What    string   // what is wrong, in a sentence
	Do      string   // what can be done, in a sentence
	Verbs   []string // the commands that the flow accepts
	Runbook string   // the address of the long form; see UseRunbooks
}

// Advice returns the advice for the reason. For an unknown reason it has only the runbook.
func (r Reason) Advice() Advice {
	a := guide[r]
	return Advice{What: a.what, Do: a.do, Verbs: slices.Clone(a.verbs), Runbook: runbook(r)}
}

// objectTypes are the types of the objects that flows are about, by the form of the flows' ids. Flows that are not about a
// single object are missing.
var objectTypes = []struct {
	form   IDForm
	object string
}{
	{onRampForm, "order"},
	{offRampForm, "order"},
	{momoPayoutForm, "order"},
	{refundForm, "refund"},
	{transferForm, "transfer"},
	{cryptoPayoutForm, "chain_payment"},
	{latePaymentForm, "payment_attempt"},
	{walletForm, "wallet"},
	{returnDepositForm, "payment_exception"},
	{otcDepositForm, "otc_deposit"},
	{withdrawalForm, "otc_withdrawal"},
	{takenOutForm, "otc_withdrawal"},
	{feeSweepForm, "fee_sweep"},
	{bankRefundForm, "refund"},
	{swapForm, "swap"},
	{multisigForm, "multisig_account"},
	{proposalForm, "multisig_proposal"},
}

// ObjectOf returns the type and id of the object that a flow is about: "order" and the order's id, for example. It
// returns "" and the zero id for a flow that is not about a single object.
func ObjectOf(flowID string) (string, uuid.UUID) {
	_, name, _ := strings.Cut(flowID, ":")
	if id, err := uuid.Parse(name); err == nil {
		for _, t := range objectTypes {
			if t.form.of(id) == flowID {
				return t.object, id
			}
		}
	}
	return "", uuid.Nil
}
