package workflows

import "kivuko/activities"

// Reasons to park of an account of several owners.
const (
	ReasonMultisigUnopened   Reason = "multisig-unopened"   // what opens it can't be prepared
	ReasonMultisigUngiven    Reason = "multisig-ungiven"    // its first key can't give it to its owners
	ReasonMultisigUnverified Reason = "multisig-unverified" // its owners are not known to be the agreed ones
)

// The reasons to park of payments from wallets of several owners. The flow tries each step again by itself.
const (
	ReasonProposalScreening Reason = "proposal-screening"
	ReasonProposalPayload   Reason = "proposal-payload"
	ReasonProposalExecution Reason = "proposal-execution"
	ReasonProposalOutcome   Reason = "proposal-outcome"
)

// multisigGuide is the advice for these reasons.
var multisigGuide = map[Reason]advice{
	ReasonMultisigUnopened: {
		"An account of several owners can't be opened: its owners' keys, its address or the payment that opens it could not be made.",
		"Read the error, and look for a gas wallet, the signer and the network's nodes. Send retry when the cause is mended, or refund to give the account up.",
		retryOrRefund,
	},
	ReasonMultisigUngiven: {
		"An account on TRON exists and is paid for, and its first key could not give it to its owners: that can't be signed, or no block took it, or the account lacks coins again and again.",
		"Read the error, and look at the signer, the network's nodes and the account in an explorer. Send retry to go on: what was signed is sent again, and another one is signed only after it can't be executed any more. " +
			"Refund gives the account up only after the last of three payments, when nothing that was signed can be executed: what it has stays there for good.",
		retryOrRefund,
	},
	ReasonMultisigUnverified: {
		"The owners of an account of several owners can't be read from the chain, or an account that was opened is another one than was agreed.",
		"Read the error, and look at the network's nodes and at the account in an explorer. Send retry to read it again, or refund to give the account up.",
		retryOrRefund,
	},
	ReasonProposalScreening: {
		"The screening service gave no answer about the recipient of a proposal, so nothing is prepared that its owners could sign.",
		"Make sure that the screening service answers. The flow asks again by itself, and at once after retry.",
		[]string{activities.VerbRetry},
	},
	ReasonProposalPayload: {
		"What the owners of a wallet sign for a proposal can't be prepared: the payment would fail, the owners on the chain are not the agreed ones, or it had as many payloads as a proposal may have.",
		"Read the error, and correct the cause: fund the wallet, or have its owners changed back. A proposal that had too many payloads is cancelled and proposed again. The flow tries again by itself, and at once after retry.",
		[]string{activities.VerbRetry},
	},
	ReasonProposalExecution: {
		"Enough owners have signed, and their signatures can't be sent now, or the transaction with them moved nothing.",
		"Read the error, and correct the cause. The flow tries again by itself, and at once after retry. What was signed can also be sent by another tool.",
		[]string{activities.VerbRetry},
	},
	ReasonProposalOutcome: {
		"The chain does not say what became of what the owners of a wallet signed.",
		"Look at the network's nodes: they must answer, and know the account's history. The flow asks again by itself, and at once after retry.",
		[]string{activities.VerbRetry},
	},
}
