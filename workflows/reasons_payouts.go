package workflows

import "kivuko/activities"

// The reasons to park because of payouts, besides those of the order's own flow.
const (
	ReasonMomoInactive     Reason = "momo-inactive_account"
	ReasonPayoutInactive   Reason = "payout-inactive_account"
	ReasonMomoLate         Reason = "momo-late_claim"
	ReasonMomoTwice        Reason = "momo-paid_twice"
	ReasonRefundCredential Reason = "refund-credential"
	ReasonRefundSuspended  Reason = "refund-suspended"
	// ReasonRefundPayeeLimit is a limit of the payee's account, or the operator's daily limit for one payee on two days in a row.
	ReasonRefundPayeeLimit Reason = "refund-payee_limit"
)

// payoutGuide is the advice for these reasons.
var payoutGuide = map[Reason]advice{
	ReasonMomoInactive: {
		"The customer or the merchant of a sale was switched off before the shillings were paid out.",
		"Find out why. Switch the account on again and send retry, or send refund to return the crypto.", retryOrRefund,
	},
	ReasonPayoutInactive: payoutAdvice("An account that takes part was switched off before the payment was signed.",
		"Find out why. Switch the account on again, if that is right."),
	ReasonMomoLate: {
		"One source reports that a customer was paid by a payout that we recorded as refused. No second source confirms it.",
		"Look the payout up at the operator. Send retry to ask again, or, if it was paid, resolve with its receipt as the note.", retryOrResolve,
	},
	ReasonMomoTwice: {
		"A customer was paid and also got the crypto back, or was paid twice.",
		"Ask the customer to return the money. Send resolve with a note to book the amount as a loss.",
		[]string{activities.VerbResolve},
	},
	ReasonRefundCredential: {
		"The mobile money operator refused this refund because of our credentials.",
		"Check whether other payouts succeed. If not, correct the credentials; the flow goes on by itself when the open breaker is closed. Otherwise send retry for another payout, or pay by other means and send resolve with the receipt as the note.", retryOrResolve,
	},
	ReasonRefundSuspended: {
		"The mobile money operator refuses our credentials, or the database was put back from a backup, so no refund is sent.",
		"Correct the credentials and close the breaker, or have the database released by two officers: the flow goes on by itself. Send retry to try at once. If the operator's statement lists the payout after the database was put back, send resolve with its receipt as the note before the release.", retryOrResolve,
	},
	ReasonRefundPayeeLimit: {
		"The refund would exceed a limit of the payee's mobile money account.",
		"Find out what else is paid to this payee. Send retry to try at once, or pay by other means and send resolve with the receipt as the note.", retryOrResolve,
	},
}
