package workflows

import "kivuko/activities"

// The reasons to park of an order that sells crypto.
const (
	ReasonDepositDenied    Reason = "deposit-denied"
	ReasonDepositScreening Reason = "deposit-screening"
	ReasonMomoRefused      Reason = "momo-refused"
	ReasonMomoCredential   Reason = "momo-credential"
	ReasonMomoSuspended    Reason = "momo-suspended"
	ReasonMomoPayeeLimit   Reason = "momo-payee_limit"
	ReasonMomoFloat        Reason = "momo-float"
	ReasonMomoUnknown      Reason = "momo-unknown"
	ReasonMomoDisagree     Reason = "momo-disagree"
	ReasonMomoClaimed      Reason = "momo-claimed"
	ReasonBankWaiting      Reason = "bank-waiting"
	ReasonBankRefused      Reason = "bank-refused"
	ReasonRefundAddress    Reason = "refund-address"
	ReasonRefundSecond     Reason = "refund-second"
	ReasonRefundClaimed    Reason = "refund-payout_claimed"
)

// offRampGuide is the advice about sales.
var offRampGuide = map[Reason]advice{
	ReasonDepositDenied: {
		"Who sent the deposit is on the deny list, or the screening service says no. Nothing was paid out.",
		"Settle with compliance what becomes of the money; send retry when the hit was cleared, or refund to give the crypto back.", retryOrRefund,
	},
	ReasonDepositScreening: {
		"Screening gave no answer about the sender of the deposit. Nothing was paid out.",
		"See that the screening service answers and send retry; or send refund to give the crypto back.", retryOrRefund,
	},
	ReasonMomoRefused: {
		"The operator refuses the payout to the customer because of our own set-up.",
		"Mend what its code names, then send retry; or send refund to give the crypto back.", retryOrRefund,
	},
	ReasonMomoCredential: {
		"The operator refused this payout because of our credentials.",
		"See whether others are paid out. If not, mend the credentials; the flow goes on by itself when an open breaker is closed. Else send retry for another payout, or refund to give the crypto back.", retryOrRefund,
	},
	ReasonMomoSuspended: {
		"The operator refuses our credentials, so no payout is sent any more.",
		"Mend the credentials and close the breaker: the flow goes on by itself. Send retry to try at once, or refund to give the crypto back.", retryOrRefund,
	},
	ReasonMomoPayeeLimit: {
		"The payout would take the customer's mobile money account above a limit of its own.",
		"Wait until the customer can take it and send retry; or send refund to give the crypto back.", retryOrRefund,
	},
	ReasonMomoFloat: {
		"The payout float has been too small for a payout for a while.",
		"Top it up; the flow goes on by itself, and retry makes it try at once.",
		[]string{activities.VerbRetry},
	},
	ReasonMomoUnknown: {
		"The operator has not said whether the customer was paid.",
		"Look the payout up at the operator; send retry to ask again, or resolve with its receipt as the note. When it was not made, two officers declare that.", retryOrResolve,
	},
	ReasonMomoDisagree: {
		"The operator's answers about the payout to the customer contradict each other.",
		"Look the payout up at the operator; send retry to ask again, or resolve with its receipt as the note.", retryOrResolve,
	},
	ReasonMomoClaimed: {
		"A payout to the customer that was refused is said to have been made after all, so no other one is sent.",
		"Look it up at the operator; send resolve with its receipt as the note when it was made, refund to give the crypto back, or retry to look again.",
		[]string{activities.VerbRetry, activities.VerbRefund, activities.VerbResolve},
	},
	ReasonBankWaiting: {
		"A payout to a bank account waits for an officer for longer than it should.",
		"An officer pays it at the bank and confirms it with the bank's reference; retry looks again.",
		[]string{activities.VerbRetry},
	},
	ReasonBankRefused: {
		"An officer says that the bank refuses the payout.",
		"Send retry to have it paid all the same, or refund to give the crypto back.", retryOrRefund,
	},
	ReasonRefundAddress: {
		"Crypto is to be given back, and the order has no refund address.",
		"The customer sets the order's refund address, which retry looks for at once; or send refund with an address, which another officer approves.", retryOrRefund,
	},
	ReasonRefundSecond: {
		"Giving the crypto back needs the decision of another officer.",
		"An officer other than the one who asked approves it; where one refused, send refund with another address.", retryOrRefund,
	},
	ReasonRefundClaimed: {
		"Crypto is to be given back, and the operator says now that the customer was paid after all.",
		"Look the payout up at the operator; send resolve with its receipt as the note when it was paid, or retry to go on giving the crypto back when it was not.", retryOrResolve,
	},
}
