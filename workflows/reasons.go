package workflows

import (
	"slices"

	"kivuko/activities"
)

// The table of reasons in the runbooks is made from the guide; a test fails when it is not current.
//go:generate go test -count=1 -run ReasonsTable . -update

// Reason is the park reason of a flow: why it waits for a command. It is also the heading of its runbook in docs/runbooks.md.
type Reason string

// The reasons to park.
const (
	ReasonPromptRefused  Reason = "prompt-refused"
	ReasonOutcomeUnknown Reason = "outcome-unknown"
	ReasonReceiptMissing Reason = "receipt-missing"
	ReasonOneWitness     Reason = "one-witness"
	ReasonDisagree       Reason = "witnesses-disagree"
	ReasonPayoutAddress  Reason = "payout-invalid_address"
	ReasonPayoutAsset    Reason = "payout-unsupported_asset"
	ReasonPayoutFunds    Reason = "payout-insufficient_funds"
	ReasonPayoutGas      Reason = "payout-insufficient_gas"
	ReasonPayoutBlocked  Reason = "payout-blocked"
	ReasonPayoutPaused   Reason = "payout-token_paused"
	ReasonPayoutReverts  Reason = "payout-would_revert"
	ReasonPayoutFee      Reason = "payout-fee_too_high"
	ReasonPayoutBudget   Reason = "payout-fee_budget"
	ReasonPayoutForeign  Reason = "payout-foreign_nonce"
	ReasonPayoutGasShort Reason = "payout-gas_wallet_short"
	ReasonPayoutGasCap   Reason = "payout-top_up_cap"
	ReasonPayoutGasLimit Reason = "payout-top_up_limit"
	ReasonPayoutGasLost  Reason = "payout-top_up_failed"
	ReasonPayoutDenied   Reason = "payout-recipient_denied"
	ReasonPayoutUnknown  Reason = "payout-recipient_unknown"
	ReasonPayoutCold     Reason = "payout-cold_wallet"
	ReasonPayoutFailed   Reason = "payout-failed"
	ReasonPayoutExpiring Reason = "payout-expiring"
	ReasonPayoutSigning  Reason = "payout-signing"
	ReasonPayoutOverdue  Reason = "payout-overdue"
	ReasonRefundPayee    Reason = "refund-payee"
	ReasonRefundRefused  Reason = "refund-refused"
	ReasonRefundFloat    Reason = "refund-float"
	ReasonRefundUnknown  Reason = "refund-unknown"
	ReasonRefundDisagree Reason = "refund-disagree"
	ReasonLateMoney      Reason = "late-money"
	ReasonStepFailed     Reason = "step-failed"

	ReasonDepositsStalled   Reason = "deposits-stalled"
	ReasonDepositQuarantine Reason = "deposit-quarantine"
	ReasonScreening         Reason = "screening-unknown"
	ReasonBlocked           Reason = "transfer-blocked"
	ReasonColdWallet        Reason = "cold-wallet"
)

// The reasons to park because of what came late about a payout.
const (
	ReasonRefundLate  Reason = "refund-late_claim"
	ReasonRefundTwice Reason = "refund-paid_twice"
)

// The reasons to park because of what left a wallet and is not accounted for.
const (
	ReasonPayoutSentBefore  Reason = "payout-sent_before"
	ReasonPayoutForeignSend Reason = "payout-foreign_send"
	ReasonPayoutUnexpected  Reason = "payout-unexpected_send"
)

// advice is what the current details of a parked flow say.
type advice struct {
	what  string   // what is wrong, in a sentence
	do    string   // what can be done, in a sentence
	verbs []string // the commands that the flow obeys while it is parked with the reason
}

var (
	retryOrRefund  = []string{activities.VerbRetry, activities.VerbRefund}
	retryOrResolve = []string{activities.VerbRetry, activities.VerbResolve}
)

// payoutAdvice makes the advice of a payout for which no transaction is on its way.
func payoutAdvice(what, do string) advice {
	return advice{what, do + " Then send retry; or send refund to give the money back.", retryOrRefund}
}

// guide holds the advice for every reason. docs/runbooks.md has the long form under the same names.
var guide = merged(onRampGuide, offRampGuide, payoutGuide)

// merged makes one guide of several, each of which has reasons of its own.
func merged(guides ...map[Reason]advice) map[Reason]advice {
	all := map[Reason]advice{}
	for _, g := range guides {
		for r, a := range g {
			all[r] = a
		}
	}
	return all
}

// onRampGuide is the advice about purchases, about payments on a chain, and about what all flows have in common.
var onRampGuide = map[Reason]advice{
	ReasonPromptRefused: {
		"The operator refuses our prompts because of our own set-up.",
		"Mend the credentials or the entitlement, then send retry.",
		[]string{activities.VerbRetry},
	},
	ReasonOutcomeUnknown: {
		"The operator has not said whether the payer was debited.",
		"Look the prompt up at the operator; send retry to ask again, or resolve when it is certain that nothing was paid.", retryOrResolve,
	},
	ReasonReceiptMissing: {
		"The operator says paid, but its receipt can't be found.",
		"See that the operator's statement is readable and send retry; or find the receipt there and send resolve with it as the note.", retryOrResolve,
	},
	ReasonOneWitness: {
		"Only one source says that the order is paid.",
		"Look the payment up at the operator; send retry to look again, or resolve with its receipt as the note.", retryOrResolve,
	},
	ReasonDisagree: {
		"The sources of evidence about the payment contradict each other.",
		"Compare callback, query and statement; send retry to look again, or resolve with the receipt as the note.", retryOrResolve,
	},
	ReasonPayoutAddress: payoutAdvice("The address of the customer is not valid on the network.", "Correct what refuses it."),
	ReasonPayoutAsset:   payoutAdvice("The asset is not enabled on the network.", "Enable it."),
	ReasonPayoutFunds:   payoutAdvice("The vendor's wallet holds less on the chain than in the ledger.", "Find out why and fill it up."),
	ReasonPayoutGas:     payoutAdvice("The sending wallet has not enough of the native coin for the fee.", "Fill it up."),
	ReasonPayoutBlocked: payoutAdvice("The token's issuer has blocked the sender or the recipient.", "Ask the issuer or the customer."),
	ReasonPayoutPaused:  payoutAdvice("The token's issuer has paused all transfers.", "Wait until it is running again."),
	ReasonPayoutReverts: payoutAdvice("The transfer fails when it is simulated.", "Find out why."),
	ReasonPayoutFee:     payoutAdvice("The network's fee is above our limit.", "Wait for a lower fee, or raise the limit."),
	ReasonPayoutBudget: payoutAdvice("The house has spent on the network's fees what it may in a day.",
		"See who causes the fees; wait for the next day, or raise the budget."),
	ReasonPayoutForeign: payoutAdvice("Somebody else has sent a transaction with the key of the sending wallet; nothing more is signed with it.",
		"Find out who used the key and what left the wallet."),
	ReasonPayoutSentBefore: payoutAdvice("Exactly this payment left the wallet before, by a transaction that is not known here.",
		"Compare the two and settle the movement in the quarantine, as this payment if it is."),
	ReasonPayoutForeignSend: payoutAdvice("Something left the sending wallet by a transaction that is not known here; nothing more is signed with its key.",
		"Find out who sent it and settle it in the quarantine."),
	ReasonPayoutUnexpected: payoutAdvice("A transaction of the payment was given up, or did not pay what it should, and moved something.",
		"Find out what moved and settle it in the quarantine."),
	ReasonPayoutGasShort: payoutAdvice("The sending wallet lacks the native coin for the fee, and so does the gas wallet of the network.",
		"Fill the gas wallet up."),
	ReasonPayoutGasCap: payoutAdvice("The fee asks for more native coin than one top-up may bring.", "Wait for a lower fee, or raise the cap."),
	ReasonPayoutGasLimit: payoutAdvice("The sending wallet got as many top-ups for the payment as it may and still lacks gas.",
		"Find out where the native coin goes."),
	ReasonPayoutGasLost: payoutAdvice("The native coin for the fee did not arrive at the sending wallet.",
		"Look at the top-up's own chain payment."),
	ReasonPayoutDenied: payoutAdvice("The recipient is on the deny list, or the screening service says no. Nothing was signed.",
		"Settle with compliance what becomes of the money."),
	ReasonPayoutUnknown: payoutAdvice("Screening gave no answer about the recipient. Nothing was signed.", "See that the screening service answers."),
	ReasonPayoutCold: payoutAdvice("The payment is to leave a cold wallet, whose key never signs here.",
		"A retry changes nothing; have the vendor close the offer."),
	ReasonPayoutFailed: payoutAdvice("The transfer is final on the chain and failed; only its fee is gone.", "Find out why."),
	ReasonPayoutExpiring: payoutAdvice("Several transactions in a row ran out before a block took them.",
		"Look at the nodes and the network."),
	ReasonPayoutSigning: payoutAdvice("The signer refuses the payment.", "Read the signer's log."),
	ReasonPayoutOverdue: {
		"A transaction is neither in a block nor proven impossible for longer than usual.",
		"Look at the nodes and the network. The flow goes on watching and mends itself.",
		[]string{activities.VerbRetry},
	},
	ReasonRefundPayee: {
		"The operator's notice or statement names another payer than the phone that was prompted.",
		"Find out who paid; pay that person by other means and send resolve with the receipt as the note, or send refund to pay the prompted phone.",
		[]string{activities.VerbRefund, activities.VerbResolve},
	},
	ReasonRefundRefused: {
		"The operator definitely refused the refund.",
		"Read its code; send retry for another payout, or resolve with the receipt of a payment by other means as the note.", retryOrResolve,
	},
	ReasonRefundFloat: {
		"The payout float is too small for the refund.",
		"Top it up and send retry.",
		[]string{activities.VerbRetry},
	},
	ReasonRefundUnknown: {
		"The operator has not said whether the refund was paid.",
		"Look it up at the operator; send retry to ask again, or resolve with its receipt as the note.", retryOrResolve,
	},
	ReasonRefundDisagree: {
		"The operator's answers about the refund contradict each other.",
		"Look it up at the operator; send retry to ask again, or resolve with its receipt as the note.", retryOrResolve,
	},
	ReasonRefundLate: {
		"One source says that a payout was made after it was taken for refused or settled, and no second source confirms it.",
		"Look it up at the operator; send retry to ask again, or resolve with its receipt as the note when it was made.", retryOrResolve,
	},
	ReasonRefundTwice: {
		"A refund was paid out twice.",
		"Get the money back from the payee if it can be had; send resolve with a note to book it as a loss.",
		[]string{activities.VerbResolve},
	},
	ReasonLateMoney: {
		"Money arrived for an order that was over or paid already.",
		"Send refund to give it back, or resolve to keep it as it is, with a note.",
		[]string{activities.VerbRefund, activities.VerbResolve},
	},
	ReasonScreening: {
		"Screening gave no answer about the recipient of a transfer.",
		"See that the screening service answers and send retry; or send refund to give the money back.", retryOrRefund,
	},
	ReasonBlocked: {
		"The recipient of a transfer is on the deny list, or the screening service says no. Its money is held.",
		"Settle with compliance what becomes of the money; send refund to give it back to the sender.",
		[]string{activities.VerbRefund},
	},
	ReasonColdWallet: {
		"A transfer out of a cold wallet is approved and waits for a transaction that is signed elsewhere.",
		"An officer asks for the payload (POST /transfers/{id}/payload), has it signed with kivuko cold-sign and posts it to /signed-transaction; retry looks again, refund gives the money back.",
		retryOrRefund,
	},
	ReasonDepositsStalled: {
		"The blocks of a network can't be read, so deposits on it are neither shown nor booked.",
		"Look at the nodes. The flow goes on trying and makes up for everything; retry makes it try at once.",
		[]string{activities.VerbRetry},
	},
	ReasonDepositQuarantine: {
		"Movements on a network were set aside: they can't be read or booked, or money left a wallet of ours without us.",
		"Read and settle them; when it is money that left, stop the wallet first.",
		[]string{activities.VerbRetry},
	},
	ReasonStepFailed: {
		"A step failed with an unexpected error.",
		"Read the error, correct its cause, then send retry.",
		[]string{activities.VerbRetry},
	},
}

// wantsReceipt tells whether resolving means that something was paid, so that the note must name its receipt.
func (r Reason) wantsReceipt() bool {
	return slices.Contains([]Reason{
		ReasonReceiptMissing, ReasonOneWitness, ReasonDisagree, ReasonRefundPayee, ReasonRefundRefused, ReasonRefundUnknown, ReasonRefundDisagree, ReasonRefundLate,
		ReasonMomoUnknown, ReasonMomoDisagree, ReasonMomoLate, ReasonMomoClaimed, ReasonRefundClaimed,
	}, r)
}

// carriedOut is the word of all networks for a transaction that did what it says, with which a payment is parked
// when that is not what it should have done.
const carriedOut = "SUCCESS"

// payoutReason is the reason for the word with which a chain payment was parked.
func payoutReason(detail string) Reason {
	if detail == carriedOut {
		return ReasonPayoutUnexpected
	}
	r := Reason("payout-" + detail)
	if _, known := guide[r]; known {
		return r
	}
	return ReasonPayoutFailed
}
