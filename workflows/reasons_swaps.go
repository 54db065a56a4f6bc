package workflows

import "kivuko/activities"

// The reasons to park of swaps.
const (
	ReasonSwapStuck   Reason = "swap-stuck"
	ReasonSwapDiffers Reason = "swap-differs"
)

// swapGuide is the advice for these reasons.
var swapGuide = map[Reason]advice{
	ReasonSwapStuck: {
		"The payout of a swap can't be made, and can't be given up either, because money that left the treasury may be this payout.",
		"Settle what left the treasury in the quarantine. Then send retry to pay out, or have two officers refund the swap (POST /swaps/{id}/resolve).",
		[]string{activities.VerbRetry},
	},
	ReasonSwapDiffers: {
		"Both legs of a swap are final, and a balance of one of its wallets is not what the ledger says.",
		"Find out why: the swap lists the balances. The flow compares them again by itself, and at once after retry. Two officers accept a difference that has another cause (POST /swaps/{id}/resolve).",
		[]string{activities.VerbRetry},
	},
}
