package workflows

// ReasonMultisigUnverified is the reason to park of an account of several owners whose owners are not known to be the agreed ones.
const ReasonMultisigUnverified Reason = "multisig-unverified"

// multisigGuide is the advice for this reason.
var multisigGuide = map[Reason]advice{
	ReasonMultisigUnverified: {
		"The owners of an account of several owners can't be read from the chain, or an account that was opened is another one than was agreed.",
		"Read the error, and look at the network's nodes and at the account in an explorer. Send retry to read it again, or refund to give the account up.",
		retryOrRefund,
	},
}
