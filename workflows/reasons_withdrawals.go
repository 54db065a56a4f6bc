package workflows

import (
	"kivuko/activities"
	"kivuko/exchange"
)

// The reasons to park of withdrawals.
const (
	ReasonWithdrawalUnknown    Reason = "withdrawal-unknown"
	ReasonWithdrawalRefused    Reason = "withdrawal-refused"
	ReasonWithdrawalCredential Reason = "withdrawal-credential"
	ReasonWithdrawalFloat      Reason = "withdrawal-float"
	ReasonWithdrawalSuspended  Reason = "withdrawal-suspended"
	ReasonWithdrawalInactive   Reason = "withdrawal-inactive_account"
	ReasonWithdrawalLate       Reason = "withdrawal-late_claim"
	ReasonWithdrawalTwice      Reason = "withdrawal-paid_twice"
	ReasonWithdrawalBank       Reason = "withdrawal-bank"
)

// withdrawalReasons are the reasons to park of withdrawals that are paid by mobile money.
var withdrawalReasons = map[string]Reason{
	activities.PayoutPending: ReasonWithdrawalUnknown, activities.PayoutDisputed: ReasonWithdrawalUnknown, activities.PayoutRefused: ReasonWithdrawalRefused,
	activities.PayoutFloatShort: ReasonWithdrawalFloat, activities.PayoutSuspended: ReasonWithdrawalSuspended, activities.PayoutClaimed: ReasonWithdrawalLate,
	activities.PayoutTomorrow: ReasonWithdrawalRefused, activities.PayoutInactive: ReasonWithdrawalInactive,
	string(exchange.ClassCredential): ReasonWithdrawalCredential, string(exchange.ClassFloat): ReasonWithdrawalFloat,
}

// withdrawalGuide is the advice for these reasons.
var withdrawalGuide = map[Reason]advice{
	ReasonWithdrawalUnknown: {
		"The mobile money operator has not confirmed whether a withdrawal was paid, or its answers contradict each other.",
		"Look the payout up at the operator. Send retry to ask again, or resolve with its receipt as the note. If it was not paid, two officers declare that.", retryOrResolve,
	},
	ReasonWithdrawalRefused: {
		"The mobile money operator did not pay a withdrawal: it refused it, or the payee has reached a limit.",
		"Read the operator's code. Send retry for another payout, or resolve with the receipt if it was paid after all. Two officers end one that can't be paid.", retryOrResolve,
	},
	ReasonWithdrawalCredential: {
		"The mobile money operator refused a withdrawal because of our credentials.",
		"Check whether other payouts succeed. If not, correct the credentials; the flow goes on by itself when the open breaker is closed. Otherwise send retry for another payout, or resolve with the receipt if it was paid after all.", retryOrResolve,
	},
	ReasonWithdrawalFloat: {
		"The house has had too few shillings for a withdrawal for a while: in the payout float, at its banks or in its treasury.",
		"Bring shillings there: the flow goes on by itself. Send retry to try at once.",
		[]string{activities.VerbRetry},
	},
	ReasonWithdrawalSuspended: {
		"The mobile money operator refuses our credentials, or the database was put back from a backup, so no withdrawal is paid.",
		"Correct the credentials and close the breaker, or have the database released by two officers: the flow goes on by itself. Send retry to try at once. If the operator's statement lists the payout after the database was put back, send resolve with its receipt as the note before the release.", retryOrResolve,
	},
	ReasonWithdrawalInactive: {
		"The merchant of a withdrawal, or who requested it, was switched off before it was paid.",
		"Find out why. Switch the account on again and send retry, or have two officers end the withdrawal.",
		[]string{activities.VerbRetry},
	},
	ReasonWithdrawalLate: {
		"One source reports that a withdrawal was paid by a payout that we recorded as refused. No second source confirms it, and no other payout of the withdrawal is sent.",
		"Look the payout up at the operator. Send retry to ask again, or, if it was paid, resolve with its receipt as the note. If it was not paid, two officers declare that.", retryOrResolve,
	},
	ReasonWithdrawalTwice: {
		"A withdrawal was paid out twice, or was paid after it had ended.",
		"Ask the merchant to return the money. Send resolve with a note to book the amount as a loss.",
		[]string{activities.VerbResolve},
	},
	ReasonWithdrawalBank: {
		"No officer has confirmed for a while that a withdrawal was paid by bank.",
		"Pay it and confirm it with the bank's reference, or have two officers end it if it was not paid. Send retry to wait on.",
		[]string{activities.VerbRetry},
	},
}
