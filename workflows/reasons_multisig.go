package workflows

// Reasons to park of an account of several owners.
const (
	ReasonMultisigUnopened   Reason = "multisig-unopened"   // what opens it can't be prepared
	ReasonMultisigUnverified Reason = "multisig-unverified" // its owners are not known to be the agreed ones
)

// multisigGuide is the advice for these reasons.
var multisigGuide = map[Reason]advice{
	ReasonMultisigUnopened: {
		"An account of several owners can't be opened: its owners' keys, its address or the payment that opens it could not be made.",
		"Read the error, and look for a gas wallet, the signer and the network's nodes. Send retry when the cause is mended, or refund to give the account up.",
		retryOrRefund,
	},
	ReasonMultisigUnverified: {
		"The owners of an account of several owners can't be read from the chain, or an account that was opened is another one than was agreed.",
		"Read the error, and look at the network's nodes and at the account in an explorer. Send retry to read it again, or refund to give the account up.",
		retryOrRefund,
	},
}
