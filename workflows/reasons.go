package workflows

import (
	"slices"

	"kivuko/activities"
)

// The table of reasons in the runbooks is generated from the guide; a test fails when it is out of date.
//go:generate go test -count=1 -run ReasonsTable . -update

// Reason is the park reason of a flow: why it waits for a command. Its runbook in docs/runbooks.md has it as the heading.
type Reason string

// The reasons to park.
const (
	ReasonPromptRefused  Reason = "prompt-refused"
	ReasonOutcomeUnknown Reason = "outcome-unknown"
	ReasonReceiptMissing Reason = "receipt-missing"
	ReasonOneSource      Reason = "one-source"
	ReasonDisagree       Reason = "sources-disagree"
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
	ReasonSweepOfficers  Reason = "sweep-officers"
	ReasonRefundPayee    Reason = "refund-payee"
	ReasonRefundRefused  Reason = "refund-refused"
	ReasonRefundFloat    Reason = "refund-float"
	ReasonRefundUnknown  Reason = "refund-unknown"
	ReasonRefundDisagree Reason = "refund-disagree"
	ReasonLateMoney      Reason = "late-money"
	ReasonFlowGone       Reason = "flow-gone"
	ReasonStepFailed     Reason = "step-failed"

	ReasonDepositsStalled   Reason = "deposits-stalled"
	ReasonDepositQuarantine Reason = "deposit-quarantine"
	ReasonScreening         Reason = "screening-unknown"
	ReasonBlocked           Reason = "transfer-blocked"
	ReasonColdWallet        Reason = "cold-wallet"
	ReasonDepositOutcome    Reason = "deposit-outcome"
)

// The reasons to park because evidence about a payout came late.
const (
	ReasonRefundLate  Reason = "refund-late_claim"
	ReasonRefundTwice Reason = "refund-paid_twice"
)

// The reasons to park because money left a wallet and is not accounted for.
const (
	ReasonPayoutSentBefore  Reason = "payout-sent_before"
	ReasonPayoutForeignSend Reason = "payout-foreign_send"
	ReasonPayoutUnexpected  Reason = "payout-unexpected_send"
)

// advice is the text in the current details of a parked flow.
type advice struct {
	what  string   // what is wrong, in a sentence
	do    string   // what can be done, in a sentence
	verbs []string // the commands that the flow accepts while it is parked with the reason
}

var (
	retryOrRefund  = []string{activities.VerbRetry, activities.VerbRefund}
	retryOrResolve = []string{activities.VerbRetry, activities.VerbResolve}
)

// payoutAdvice returns the advice for a payout that has no pending transaction.
func payoutAdvice(what, do string) advice {
	return advice{what, do + " Then send retry, or send refund to return the money.", retryOrRefund}
}

// guide holds the advice for every reason. docs/runbooks.md has the long form under the same headings.
var guide = merged(onRampGuide, offRampGuide, payoutGuide, withdrawalGuide, bankRefundGuide, swapGuide, multisigGuide)

// merged joins guides that have no reason in common.
func merged(guides ...map[Reason]advice) map[Reason]advice {
	all := map[Reason]advice{}
	for _, g := range guides {
		for r, a := range g {
			all[r] = a
		}
	}
	return all
}

// onRampGuide is the advice for purchases, for payments on a chain, and for reasons that all flows share.
var onRampGuide = map[Reason]advice{
	ReasonPromptRefused: {
		"The mobile money operator refuses our payment prompts because of our configuration.",
		"Correct the credentials or the entitlement, then send retry.",
		[]string{activities.VerbRetry},
	},
	ReasonOutcomeUnknown: {
		"The mobile money operator has not confirmed whether the payer was debited.",
		"Look the prompt up at the operator. Send retry to ask again, or resolve when it is certain that nothing was paid.", retryOrResolve,
	},
	ReasonReceiptMissing: {
		"The mobile money operator reports that the order is paid, but the receipt can't be found.",
		"Make sure that the operator's statement can be read and send retry, or find the receipt there and send resolve with it as the note.", retryOrResolve,
	},
	ReasonOneSource: {
		"Only one source of evidence reports that the order is paid.",
		"Look the payment up at the operator. Send retry to check again, or resolve with its receipt as the note.", retryOrResolve,
	},
	ReasonDisagree: {
		"The sources of evidence about the payment contradict each other.",
		"Compare callback, query and statement. Send retry to check again, or resolve with the receipt as the note.", retryOrResolve,
	},
	ReasonPayoutAddress: {
		"The network refuses the recipient's address. Nothing was signed, and the address of a payment does not change.",
		"Send refund to return the money; where crypto is returned already, send refund with another address, which another officer approves. For a purchase, correct-address names another one, which another officer confirms. Send retry only when the network accepts the address now.",
		retryOrRefund,
	},
	ReasonPayoutAsset:   payoutAdvice("The asset is not enabled on the network.", "Enable it."),
	ReasonPayoutFunds:   payoutAdvice("The vendor's wallet holds less on the chain than in the ledger.", "Find out why and fund the wallet."),
	ReasonPayoutGas:     payoutAdvice("The sending wallet has too little native coin for the fee.", "Fund the wallet."),
	ReasonPayoutBlocked: payoutAdvice("The token's issuer has blocked the sender or the recipient.", "Wait until the issuer lifts the block."),
	ReasonPayoutPaused:  payoutAdvice("The token's issuer has paused all transfers.", "Wait until the issuer allows transfers again."),
	ReasonPayoutReverts: payoutAdvice("The transfer fails when it is simulated. Nothing was signed.", "Read the node's error in the details and correct the cause."),
	ReasonPayoutFee:     payoutAdvice("The network's fee is above our limit.", "Wait for a lower fee, or raise the limit."),
	ReasonPayoutBudget: payoutAdvice("The daily budget for the network's fees is used up.",
		"Find out what causes the fees. Wait for the next day, or raise the budget."),
	ReasonPayoutForeign: payoutAdvice("A transaction that is not ours was sent with the key of the sending wallet. Nothing more is signed with it.",
		"Find out who used the key and what left the wallet."),
	ReasonPayoutSentBefore: payoutAdvice("The same payment already left the wallet in a transaction that Kivuko did not make.",
		"Compare the two. Settle the movement in the quarantine, as this payment if they are the same."),
	ReasonPayoutForeignSend: payoutAdvice("Money left the sending wallet in a transaction that Kivuko did not make. Nothing more is signed with its key.",
		"Find out who sent it and settle it in the quarantine."),
	ReasonPayoutUnexpected: payoutAdvice("A transaction of the payment was given up or paid something else, but it moved money.",
		"Find out what it moved and settle the movement in the quarantine."),
	ReasonPayoutGasShort: payoutAdvice("Both the sending wallet and the network's gas wallet have too little native coin for the fee.",
		"Fund the gas wallet."),
	ReasonPayoutGasCap: payoutAdvice("The fee needs more native coin than one top-up may bring.", "Wait for a lower fee, or raise the cap."),
	ReasonPayoutGasLimit: payoutAdvice("The payment has used all its gas top-ups, and the sending wallet still lacks gas.",
		"Find out where the native coin goes."),
	ReasonPayoutGasLost: payoutAdvice("The native coin for the fee did not arrive at the sending wallet.",
		"Look at the chain payment of the top-up."),
	ReasonPayoutDenied: payoutAdvice("The recipient is on the deny list, or the screening service rejects it. Nothing was signed.",
		"Agree with compliance what to do with the money."),
	ReasonPayoutUnknown: payoutAdvice("The screening service gave no answer about the recipient. Nothing was signed.", "Make sure that the screening service answers."),
	ReasonPayoutCold: {
		"The sending wallet is a cold wallet, so Kivuko can't sign the payment.",
		"Send refund to return the money, and ask the vendor to close the offer. A retry parks it again.", retryOrRefund,
	},
	ReasonPayoutFailed: payoutAdvice("The transfer is final on the chain and failed. Only its fee was spent.", "Read the receipt of the transaction in a block explorer and correct the cause."),
	ReasonPayoutExpiring: payoutAdvice("Several transactions in a row expired before a block included them.",
		"Check the nodes and the network."),
	ReasonPayoutSigning: payoutAdvice("The signer refuses the payment.", "Read the log of the signer."),
	ReasonPayoutOverdue: {
		"A transaction takes longer than usual: it is neither in a block nor proven impossible.",
		"Check the nodes and the network. The flow keeps watching and goes on by itself.",
		[]string{activities.VerbRetry},
	},
	ReasonSweepOfficers: {
		"A sweep of earned fees does not go on: an officer who agreed to it, or both who agreed to its rule, may not decide any more, or its rule was switched off or replaced.",
		"Send retry when they may decide again, or send refund to leave the fees where they are; then another sweep may be agreed.", retryOrRefund,
	},
	ReasonRefundPayee: {
		"The mobile money operator's callback or statement names a different payer than the phone that was prompted.",
		"Find out who paid. Pay the payer back by other means and send resolve with the receipt as the note, or send refund to pay the prompted phone.",
		[]string{activities.VerbRefund, activities.VerbResolve},
	},
	ReasonRefundRefused: {
		"The mobile money operator finally refused the refund.",
		"Read the operator's code. Send retry for another payout, or pay by other means and send resolve with the receipt as the note.", retryOrResolve,
	},
	ReasonRefundFloat: {
		"The payout float has been too small for the refund for a while.",
		"Top the float up: the flow goes on by itself. Send retry to try at once.",
		[]string{activities.VerbRetry},
	},
	ReasonRefundUnknown: {
		"The mobile money operator has not confirmed whether the refund was paid.",
		"Look the refund up at the operator. Send retry to ask again, or resolve with its receipt as the note. If it was not paid, two officers declare it unpaid.", retryOrResolve,
	},
	ReasonRefundDisagree: {
		"The mobile money operator's answers about the refund contradict each other.",
		"Look the refund up at the operator. Send retry to ask again, or resolve with its receipt as the note.", retryOrResolve,
	},
	ReasonRefundLate: {
		"One source reports that a refund was paid that we recorded as refused or settled. No second source confirms it, and no other payout of the refund is sent.",
		"Look the payout up at the operator. Send retry to ask again, or, if it was paid, resolve with its receipt as the note. If it was not paid, two officers declare it unpaid.", retryOrResolve,
	},
	ReasonRefundTwice: {
		"A refund was paid out twice.",
		"Ask the payee to return the money. Send resolve with a note to book the amount as a loss.",
		[]string{activities.VerbResolve},
	},
	ReasonLateMoney: {
		"Money arrived for an order that had already ended or been paid.",
		"Send refund to return it, or resolve with a note to leave it as it is.",
		[]string{activities.VerbRefund, activities.VerbResolve},
	},
	ReasonFlowGone: {
		"A payment arrived for an order whose flow is gone: it was terminated, or lost with a database that was put back.",
		"Flows that are missing are started again within minutes, and kivuko resume does it at once; then this one goes on by itself. Send retry to try at once.",
		[]string{activities.VerbRetry},
	},
	ReasonScreening: {
		"The screening service gave no answer about the recipient of a transfer.",
		"Make sure that the screening service answers and send retry, or send refund to return the money.", retryOrRefund,
	},
	ReasonBlocked: {
		"The recipient of a transfer is on the deny list, or the screening service rejects it. The money is held.",
		"Agree with compliance what to do with the money. Send refund to return it to the sender.",
		[]string{activities.VerbRefund},
	},
	ReasonColdWallet: {
		"A transfer from a cold wallet is approved and waits for a transaction that is signed offline.",
		"An officer requests the payload (POST /transfers/{id}/payload), has it signed with kivuko cold-sign and posts it to /signed-transaction. Send retry to check again, or refund to return the money.",
		retryOrRefund,
	},
	ReasonDepositOutcome: {
		"The mobile money operator has not said whether the merchant was debited for an OTC deposit.",
		"Look the prompt up at the operator. Send retry to ask again; the desk rejects the deposit (POST /otc/deposits/{id}/reject) when it is certain that nothing was paid.",
		[]string{activities.VerbRetry},
	},
	ReasonDepositsStalled: {
		"The blocks of a network can't be read, so its deposits are neither shown nor booked.",
		"Check the nodes. The flow keeps trying and reads every block that it missed. Send retry to try at once.",
		[]string{activities.VerbRetry},
	},
	ReasonDepositQuarantine: {
		"Movements on a network are in quarantine: they can't be read or booked, or money left one of our wallets without a payment of ours.",
		"Review and settle them. If money left a wallet, stop the wallet first.",
		[]string{activities.VerbRetry},
	},
	ReasonStepFailed: {
		"A step failed with an unexpected error.",
		"Read the error, correct the cause, then send retry.",
		[]string{activities.VerbRetry},
	},
}

// wantsReceipt reports whether resolving means that something was paid, so that the note must be its receipt.
func (r Reason) wantsReceipt() bool {
	return slices.Contains([]Reason{
		ReasonReceiptMissing, ReasonOneSource, ReasonDisagree, ReasonRefundPayee, ReasonRefundRefused, ReasonRefundUnknown, ReasonRefundDisagree, ReasonRefundLate,
		ReasonRefundPayeeLimit, ReasonRefundCredential, ReasonMomoUnknown, ReasonMomoDisagree, ReasonMomoLate, ReasonMomoClaimed, ReasonRefundClaimed,
		ReasonWithdrawalUnknown, ReasonWithdrawalRefused, ReasonWithdrawalCredential, ReasonWithdrawalLate,
	}, r)
}

// carriedOut is the status of a successful transaction on all networks. A payment is parked with it when the transaction
// did something else than the payment asked for.
const carriedOut = "SUCCESS"

// payoutReason returns the reason for the code with which a chain payment was parked.
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
