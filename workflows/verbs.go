package workflows

import "kivuko/exchange"

// verbSummaries are what operators read of the verbs on deposits and withdrawals in the timeline of a flow.
var verbSummaries = map[exchange.IntentKind]string{
	exchange.IntendOTCEdit: "Edit the draft", exchange.IntendOTCQuote: "Price the deposit", exchange.IntendOTCSubmit: "Submit", exchange.IntendOTCProof: "Add a proof of payment",
	exchange.IntendOTCAssign: "Assign", exchange.IntendOTCClaim: "Claim", exchange.IntendOTCRelease: "Release the claim", exchange.IntendOTCAsk: "Ask for information",
	exchange.IntendOTCAnswer: "Provide information", exchange.IntendOTCHold: "Hold", exchange.IntendOTCUnhold: "Unhold", exchange.IntendOTCConfirm: "Confirm",
	exchange.IntendOTCReject: "Reject", exchange.IntendOTCSettle: "Settle", exchange.IntendOTCCancel: "Cancel", exchange.IntendOTCAudit: "Audit",
	exchange.IntendOTCMatch: "Name the payment", exchange.IntendWithdrawalCancel: "Cancel", exchange.IntendWithdrawalHold: "Hold", exchange.IntendWithdrawalUnhold: "Unhold",
	exchange.IntendWithdrawalExecute: "Execute", exchange.IntendWithdrawalPaid: "Confirm the payment by bank",
	exchange.IntendProposalSign: "Check and store the signature of an owner", exchange.IntendProposalExecute: "Have the proposal executed",
}

// summary is what operators read of the step that a caller asks for.
func (r IntentRef) summary() string {
	if s, known := verbSummaries[r.Verb]; known {
		return s
	}
	return "Carry out what was asked for"
}
