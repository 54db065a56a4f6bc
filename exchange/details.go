package exchange

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The values of status_detail by object. Each list begins with the value of an object that waits for nothing.

// OrderDetails lists what an order may wait for, and why it ended.
func OrderDetails() []string {
	return []string{
		WaitNothing, WaitPrompt, WaitPayment, WaitRetry, WaitOutcome, WaitReceipt, WaitScreening, WaitSignature, WaitWatch, WaitFrozen, WaitBroadcast, WaitFinality,
		WaitApproval, WaitSecond, WaitRest, WaitDeposit, WaitOtherAmount, WaitDepositFinality, WaitPayout, WaitFloat, WaitSuspended, WaitPayeeDay, WaitBank, WaitBankSecond, WaitOperator, DetailDeclined, DetailExpired,
		DetailCancelled, DetailRejected, DetailUnderpaid, DetailMismatch, DetailRefundOpen,
	}
}

// TransferDetails lists what a transfer may wait for, and why it ended.
func TransferDetails() []string {
	return []string{
		WaitNothing, WaitScreening, WaitApproval, WaitSecond, WaitRest, WaitSignature, WaitExternal, WaitHandedOut, WaitWithdrawal, WaitWatch, WaitFrozen, WaitBroadcast,
		WaitFinality, WaitOperator, DetailBySender, DetailByStaff, DetailLapsed, DetailInactive, DetailRejected, DetailHeld, DetailReleased, DetailGivenUp,
	}
}

// What offers, exceptions and refunds wait for, in addition to the values of orders.
const (
	WaitPublish   = "publish"
	WaitVendor    = "vendor"
	WaitLiquidity = "liquidity"
	WaitAdmin     = "admin"
	WaitRefund    = "refund"
	DetailRefused = "refused" // the operator refused the payout
	DetailAddress = "address_refused"
)

// OfferDetails lists why an offer can't take orders.
func OfferDetails() []string {
	return []string{WaitNothing, WaitPublish, WaitVendor, WaitLiquidity, WaitAdmin}
}

// What quotes, movements of float, changes and bank payouts wait for, and why they ended, in addition to the values above.
const (
	WaitUse         = "use"       // an object may be opened with the quote
	WaitRequest     = "request"   // it is about to be requested from the operator
	WaitResult      = "result"    // the operator acknowledged it, and has not reported the result
	WaitFunds       = "funds"     // the house's money at the bank is not reserved for it yet
	DetailWithdrawn = "withdrawn" // by the officer who proposed it
)

// QuoteDetails lists what a quote may wait for.
func QuoteDetails() []string { return []string{WaitNothing, WaitUse} }

// WaitsFor returns what the quote waits for, as one of QuoteDetails.
func (q FXQuote) WaitsFor() string {
	if q.Status == QuoteActive {
		return WaitUse
	}
	return WaitNothing
}

// FloatMoveDetails lists what a movement of float may wait for.
func FloatMoveDetails() []string {
	return []string{WaitNothing, WaitRequest, WaitResult, WaitOutcome}
}

// WaitsFor returns what the movement waits for, as one of FloatMoveDetails.
func (m FloatMove) WaitsFor() string {
	switch m.Status {
	case FloatCreated:
		return WaitRequest
	case FloatAccepted:
		return WaitResult
	case FloatUnknown:
		return WaitOutcome
	case FloatRefused, FloatCompleted, FloatFailed:
	}
	return WaitNothing
}

// ControlDetails lists what a change that needs a second officer may wait for, and why it ended.
func ControlDetails() []string {
	return []string{WaitNothing, WaitSecond, DetailRejected, DetailWithdrawn}
}

// WaitsFor returns what the change waits for or why it ended, as one of ControlDetails.
func (c ControlChange) WaitsFor() string {
	switch {
	case c.Status == ControlPending:
		return WaitSecond
	case c.Status == ControlRejected && c.DecidedBy == c.ProposedBy:
		return DetailWithdrawn
	case c.Status == ControlRejected:
		return DetailRejected
	}
	return WaitNothing
}

// BankPayoutDetails lists what a payout by bank may wait for, and why it ended.
func BankPayoutDetails() []string {
	return []string{WaitNothing, WaitFunds, WaitBank, WaitBankSecond, WaitOperator, DetailRefundOpen}
}

// WaitsFor returns what the payout waits for or why it ended, as one of BankPayoutDetails.
func (b BankPayout) WaitsFor() string {
	switch b.Status {
	case PayoutPending:
		return WaitFunds
	case PayoutProcessing:
		if len(b.Confirmations) > 0 {
			return WaitBankSecond
		}
		return WaitBank
	case PayoutRefused:
		return WaitOperator
	case PayoutCancelled:
		return DetailRefundOpen
	case PayoutCompleted:
	}
	return WaitNothing
}

// What statements and their lines wait for, in addition to the values above.
const (
	WaitStoring  = "storing"  // it was interrupted; the same request continues it
	WaitMatching = "matching" // what explains it is looked for
)

// StatementDetails lists what a bank statement may wait for.
func StatementDetails() []string { return []string{WaitNothing, WaitStoring, WaitMatching} }

// WaitsFor returns what the statement waits for, as one of StatementDetails.
func (b BankStatement) WaitsFor() string {
	switch b.Status {
	case StatementStoring:
		return WaitStoring
	case StatementMatching:
		return WaitMatching
	case StatementCompared:
	}
	return WaitNothing
}

// DestinationDetails lists what a destination may wait for.
func DestinationDetails() []string { return []string{WaitNothing, WaitConfirmation, WaitRest} }

// WaitsFor returns what the destination waits for before money goes there, as one of DestinationDetails.
func (d Destination) WaitsFor(now time.Time) string {
	switch {
	case d.Status == DestinationUnconfirmed:
		return WaitConfirmation
	case d.Status == DestinationConfirmed && now.Before(d.RestsUntil):
		return WaitRest
	}
	return WaitNothing
}

// LineDetails lists what a line of a bank statement may wait for.
func LineDetails() []string { return []string{WaitNothing, WaitMatching, WaitOperator} }

// WaitsFor returns what the line waits for, as one of LineDetails. An officer's decision about a line that is set aside settles it.
func (l StatementLine) WaitsFor() string {
	switch {
	case l.Status == LineNew:
		return WaitMatching
	case l.Status == LineAside && l.ExceptionID != uuid.Nil:
		return WaitOperator
	}
	return WaitNothing
}

// ExceptionDetails lists what a payment exception may wait for.
func ExceptionDetails() []string { return []string{WaitNothing, WaitOperator, WaitRefund} }

// RefundDetails lists what a refund may wait for.
func RefundDetails() []string {
	return []string{
		WaitNothing, string(RefundWaitsAddress), string(RefundWaitsPayout), string(RefundWaitsCoolOff), string(RefundWaitsClaim), string(RefundWaitsOfficer),
		string(RefundWaitsRefused), DetailAddress, DetailRefused, WaitFloat, WaitFunds, WaitBank, WaitBankSecond, WaitFrozen, WaitSuspended, WaitOperator,
	}
}

// WaitsFor returns what the refund waits for, as one of RefundDetails. The operator's own text is only in the log.
func (r Refund) WaitsFor() string {
	switch {
	case r.Status == RefundCompleted, r.Rail == RefundByBank && r.Status == RefundFailed:
		return WaitNothing
	case r.Rail == RefundByBank && r.Status == RefundPending && r.Detail == "":
		return WaitFunds
	case r.Rail == RefundByBank && r.Detail == "":
		return WaitBank
	case slices.Contains(RefundDetails(), r.Detail):
		return r.Detail
	case strings.HasPrefix(r.Detail, DetailRefused):
		return DetailRefused
	case r.Status == RefundNeedsReview || r.Detail != "":
		return WaitOperator
	}
	return string(RefundWaitsPayout)
}
