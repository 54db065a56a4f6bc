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

// ParkedQuery finds the flows that wait for a person, in the language of Temporal's lists. Operators type the same
// into the Web UI.
const ParkedQuery = `KivukoNeedsAttention = true AND ExecutionStatus = "Running"`

// markParked shows that a flow is parked with a reason, or, without one, that it goes on: in its search attributes, and in the row
// from which the list of parked flows is read. Both commands leave with one workflow task, so neither stands alone for longer
// than the database is away; RepairParked mends what a terminated or reset flow leaves behind.
func markParked(ctx workflow.Context, r Reason, more ...temporal.SearchAttributeUpdate) {
	word := r
	if r == "" {
		word = "none"
	}
	show(ctx, append(more, AttrNeedsAttention.ValueSet(r != ""), AttrReason.ValueSet(string(word)))...)
	if !listsParked(ctx) {
		return
	}
	info := workflow.GetInfo(ctx)
	in := activities.ListParkedInput{
		WorkflowID: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID, Type: info.WorkflowType.Name, Reason: string(r), Since: workflow.Now(ctx),
	}
	in.ObjectType, in.ObjectID = ObjectOf(in.Type, in.WorkflowID)
	if network, ok := workflow.GetTypedSearchAttributes(ctx).GetKeyword(AttrNetwork); ok {
		in.Network = exchange.Network(network)
	}
	what := "List the flow as parked"
	if r == "" {
		what = "Take the flow off the list of parked flows"
	}
	// The context is never cancelled and the call is tried for ever, so that only a mistake of ours fails it: the flow goes on.
	if err := do(ctx, database, what, orders.ListParked, in); err != nil {
		workflow.GetLogger(ctx).Error("the list of parked flows was not written", "error", err)
	}
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

// Advice is what a person is told of a parked flow.
type Advice struct {
	What    string   // what is wrong, in a sentence
	Do      string   // what can be done, in a sentence
	Verbs   []string // the commands that the flow obeys
	Runbook string   // the address of the long form; see UseRunbooks
}

// Advice is what operators are told about the reason; empty but for the runbook when it is unknown.
func (r Reason) Advice() Advice {
	a := guide[r]
	return Advice{What: a.what, Do: a.do, Verbs: slices.Clone(a.verbs), Runbook: runbook(r)}
}

// objectTypes says what the id of a flow of a type names. Flows that are missing are about no single object.
var objectTypes = map[string]string{
	TypeOnRamp: "order", TypeOffRamp: "order", TypeMomoPayout: "order", TypeTransfer: "transfer", TypeCryptoPayout: "chain_payment",
	TypeRefund: "refund", TypeLatePayment: "payment_attempt", TypeLatePayout: "payment_attempt", TypeCreateWallet: "wallet",
	TypeReturnDeposit: "payment_exception",
}

// ObjectOf tells what a flow is about, by its type and id: "order" and the order's id, for example. It is "" and the
// zero id for a flow that is about no single object.
func ObjectOf(flowType, flowID string) (string, uuid.UUID) {
	_, name, _ := strings.Cut(flowID, ":")
	id, err := uuid.Parse(name)
	if objectTypes[flowType] == "" || err != nil {
		return "", uuid.Nil
	}
	return objectTypes[flowType], id
}
