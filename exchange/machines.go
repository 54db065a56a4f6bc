package exchange

// The states page is drawn from the machines; a test fails when it is not current.
//go:generate go test -count=1 -run StatesPage . -update

// MachineView is a machine with its states as plain strings, for documents and the API.
type MachineView struct {
	Name        string               `json:"name"`
	Initial     string               `json:"initial"`
	States      []string             `json:"states"`
	Final       []string             `json:"final"`
	Transitions []Transition[string] `json:"transitions"`
	mermaid     string
}

// Mermaid draws the machine.
func (v MachineView) Mermaid() string { return v.mermaid }

// Machines lists every state machine of the domain in a fixed order.
func Machines() []MachineView {
	return []MachineView{
		view(OnRampMachine), view(OffRampMachine), view(OfferMachine), view(HoldMachine), view(AttemptMachine),
		view(ChainPaymentMachine), view(ChainAttemptMachine), view(ExceptionMachine), view(RefundMachine),
		view(ChainDepositMachine), view(TransferMachine), view(ReconciliationMachine), view(DifferenceMachine),
		view(QuoteMachine), view(ControlChangeMachine), view(FloatMoveMachine), view(EscrowMachine), view(OrderPayoutMachine),
		view(C2BMachine), view(ColdDraftMachine), view(WebhookMachine), view(WebhookDeliveryMachine), view(StatementMachine), view(LineMachine),
		view(DestinationMachine), view(OTCMachine), view(WithdrawalMachine),
		view(FeeSweepMachine), view(SwapMachine), view(MultisigMachine), view(HandoverMachine), view(ProposalMachine), view(PayloadMachine),
	}
}

func view[S ~string](m Machine[S]) MachineView {
	v := MachineView{Name: m.Name, Initial: string(m.Initial), States: texts(m.States()), Final: texts(m.Final), mermaid: m.Mermaid()}
	for _, t := range m.Transitions {
		v.Transitions = append(v.Transitions, Transition[string]{string(t.From), string(t.To), t.By, t.Why})
	}
	return v
}

func texts[S ~string](states []S) []string {
	out := make([]string, len(states))
	for i, s := range states {
		out[i] = string(s)
	}
	return out
}
