package exchange

import (
	"slices"
	"strings"
)

// The values of status_detail by object. Each list begins with the value of an object that waits for nothing.

// OrderDetails lists what an order may wait for, and why it ended.
func OrderDetails() []string {
	return []string{
		WaitNothing, WaitPrompt, WaitPayment, WaitRetry, WaitOutcome, WaitReceipt, WaitScreening, WaitSignature, WaitWatch, WaitBroadcast, WaitFinality,
		WaitDeposit, WaitDepositFinality, WaitPayout, WaitFloat, WaitSuspended, WaitPayeeDay, WaitBank, WaitBankSecond, WaitOperator, DetailDeclined, DetailExpired,
		DetailCancelled, DetailUnderpaid, DetailMismatch, DetailRefundOpen,
	}
}

// TransferDetails lists what a transfer may wait for, and why it ended.
func TransferDetails() []string {
	return []string{
		WaitNothing, WaitScreening, WaitApproval, WaitSecond, WaitSignature, WaitExternal, WaitHandedOut, WaitWithdrawal, WaitWatch, WaitBroadcast,
		WaitFinality, WaitOperator, DetailByPerson, DetailByStaff, DetailLapsed, DetailInactive, DetailRejected, DetailHeld, DetailReleased, DetailGivenUp,
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

// ExceptionDetails lists what a payment exception may wait for.
func ExceptionDetails() []string { return []string{WaitNothing, WaitOperator, WaitRefund} }

// RefundDetails lists what a refund may wait for.
func RefundDetails() []string {
	return []string{
		WaitNothing, string(RefundWaitsAddress), string(RefundWaitsPayout), string(RefundWaitsCoolOff), string(RefundWaitsClaim), string(RefundWaitsOfficer),
		string(RefundWaitsRefused), DetailAddress, DetailRefused, WaitFloat, WaitOperator,
	}
}

// WaitsFor returns what the refund waits for, as one of RefundDetails. The operator's own text is only in the log.
func (r Refund) WaitsFor() string {
	switch {
	case r.Status == RefundCompleted:
		return WaitNothing
	case slices.Contains(RefundDetails(), r.Detail):
		return r.Detail
	case strings.HasPrefix(r.Detail, DetailRefused):
		return DetailRefused
	case r.Status == RefundNeedsReview || r.Detail != "":
		return WaitOperator
	}
	return string(RefundWaitsPayout)
}
