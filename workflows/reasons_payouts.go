package workflows

import "kivuko/activities"

// The reasons to park because of payouts, besides those that an order's own flow parks with.
const (
	ReasonMomoLate        Reason = "momo-late_claim"
	ReasonMomoTwice       Reason = "momo-paid_twice"
	ReasonRefundSuspended Reason = "refund-suspended"
)

// payoutGuide is the advice about them.
var payoutGuide = map[Reason]advice{
	ReasonMomoLate: {
		"One source says that a customer was paid by a payout that was taken for refused, and no second source confirms it.",
		"Look it up at the operator; send retry to ask again, or resolve with its receipt as the note when it was made.", retryOrResolve,
	},
	ReasonMomoTwice: {
		"A customer was paid out and got the crypto back, or was paid out twice.",
		"Get the money back from the customer if it can be had; send resolve with a note to book it as a loss.",
		[]string{activities.VerbResolve},
	},
	ReasonRefundSuspended: {
		"The operator refuses our credentials, so no refund is sent.",
		"Mend the credentials and close the breaker: the flow goes on by itself. Send retry to try at once.",
		[]string{activities.VerbRetry},
	},
}
