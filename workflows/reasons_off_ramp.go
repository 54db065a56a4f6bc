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
	ReasonBankInactive     Reason = "bank-inactive_account"
	ReasonRefundAddress    Reason = "refund-address"
	ReasonRefundSecond     Reason = "refund-second"
	ReasonRefundClaimed    Reason = "refund-payout_claimed"
)

// offRampGuide is the advice for sales.
var offRampGuide = map[Reason]advice{
	ReasonDepositDenied: {
		"The sender of the deposit is on the deny list, or the screening service rejects the sender. Nothing was paid out.",
		"Agree with compliance what to do with the money. Send retry when compliance has cleared the sender, or refund to return the crypto.", retryOrRefund,
	},
	ReasonDepositScreening: {
		"The screening service gave no answer about the sender of the deposit. Nothing was paid out.",
		"Make sure that the screening service answers and send retry, or send refund to return the crypto.", retryOrRefund,
	},
	ReasonMomoRefused: {
		"The mobile money operator refuses the payout to the customer because of our configuration.",
		"Correct what the operator's code names and send retry, or send refund to return the crypto.", retryOrRefund,
	},
	ReasonMomoCredential: {
		"The mobile money operator refused this payout because of our credentials.",
		"Check whether other payouts succeed. If not, correct the credentials; the flow goes on by itself when the open breaker is closed. Otherwise send retry for another payout, or refund to return the crypto.", retryOrRefund,
	},
	ReasonMomoSuspended: {
		"The mobile money operator refuses our credentials, or the database was put back from a backup, so no payout is sent.",
		"Correct the credentials and close the breaker, or have the database released by two officers: the flow goes on by itself. Send retry to try at once, or refund to return the crypto. If the operator's statement lists the payout after the database was put back, send resolve with its receipt as the note before the release.",
		[]string{activities.VerbRetry, activities.VerbRefund, activities.VerbResolve},
	},
	ReasonMomoPayeeLimit: {
		"The payout would exceed a limit of the customer's mobile money account.",
		"Wait until the customer's account can receive the payout and send retry, or send refund to return the crypto.", retryOrRefund,
	},
	ReasonMomoFloat: {
		"The payout float has been too small for a payout for a while.",
		"Top the float up: the flow goes on by itself. Send retry to try at once.",
		[]string{activities.VerbRetry},
	},
	ReasonMomoUnknown: {
		"The mobile money operator has not confirmed whether the customer was paid.",
		"Look the payout up at the operator. Send retry to ask again, or resolve with its receipt as the note. If it was not paid, two officers declare it unpaid.", retryOrResolve,
	},
	ReasonMomoDisagree: {
		"The mobile money operator's answers about the payout to the customer contradict each other.",
		"Look the payout up at the operator. Send retry to ask again, or resolve with its receipt as the note.", retryOrResolve,
	},
	ReasonMomoClaimed: {
		"One source reports that a refused payout to the customer was paid after all, so no other payout is sent.",
		"Look the payout up at the operator. If it was paid, send resolve with its receipt as the note. Otherwise send refund to return the crypto, or retry to check again.",
		[]string{activities.VerbRetry, activities.VerbRefund, activities.VerbResolve},
	},
	ReasonBankWaiting: {
		"A payout to a bank account has waited for an officer for too long.",
		"An officer pays it at the bank and confirms it with the bank's reference. Send retry to check again.",
		[]string{activities.VerbRetry},
	},
	ReasonBankRefused: {
		"Two officers report that the bank refuses the payout.",
		"Send retry to let officers try to pay it again, or refund to return the crypto.", retryOrRefund,
	},
	ReasonBankInactive: {
		"The customer or the merchant of a sale was switched off before it was to be paid at the bank.",
		"Find out why. Switch the account on again and send retry, or send refund to return the crypto.", retryOrRefund,
	},
	ReasonRefundAddress: {
		"Crypto must be returned, but the order has no refund address.",
		"The customer sets the order's refund address; send retry to check for it at once. Or send refund with an address, which another officer approves.", retryOrRefund,
	},
	ReasonRefundSecond: {
		"The refund needs the decision of another officer.",
		"An officer other than the one who asked for the refund approves crypto, or confirms the refund of shillings after one has sent refund. If an officer rejected it, send refund with another address.", retryOrRefund,
	},
	ReasonRefundClaimed: {
		"Crypto is about to be returned, but the mobile money operator now reports that the customer was paid.",
		"Look the payout up at the operator. If it was paid, send resolve with its receipt as the note. If not, send retry to go on with the refund.", retryOrResolve,
	},
}
