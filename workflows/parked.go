package workflows

import (
	"slices"
	"strings"

	"github.com/google/uuid"
)

// ParkedQuery finds the flows that wait for a person, in the language of Temporal's lists. Operators type the same
// into the Web UI.
const ParkedQuery = `KivukoNeedsAttention = true AND ExecutionStatus = "Running"`

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
