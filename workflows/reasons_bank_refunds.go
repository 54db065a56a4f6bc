package workflows

import "kivuko/activities"

// The reasons to park of refunds by bank.
const (
	ReasonBankRefundReserve Reason = "bank_refund-reserve"
	ReasonBankRefundConfirm Reason = "bank_refund-confirm"
)

// bankRefundGuide is the advice for these reasons.
var bankRefundGuide = map[Reason]advice{
	ReasonBankRefundReserve: {
		"The money of a refund by bank could not be reserved for a while: the house has too little at its banks, an officer who agreed to it may not decide any more, or a source disputes the money by now.",
		"Bring shillings to a bank: the flow goes on by itself. Where an officer is missing or the money is disputed, have two officers end it; they may agree to another one. Send retry to try at once.",
		[]string{activities.VerbRetry},
	},
	ReasonBankRefundConfirm: {
		"No officer has confirmed for a while that a refund was paid by bank.",
		"Pay it and confirm it with the bank's reference, or have two officers end it if it was not paid. Send retry to wait on.",
		[]string{activities.VerbRetry},
	},
}
