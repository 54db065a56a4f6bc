package exchange

import "slices"

// WithdrawalStatus is the state of a withdrawal.
type WithdrawalStatus string

// The states of a withdrawal.
const (
	WithdrawalRequested  WithdrawalStatus = "requested"        // its money is held; an address outside is being screened
	WithdrawalPending    WithdrawalStatus = "pending_approval" // officers must approve it
	WithdrawalApproved   WithdrawalStatus = "approved"         // another officer executes it
	WithdrawalExecuting  WithdrawalStatus = "executing"        // crypto that is sold goes to the house, or a payout is about to begin
	WithdrawalConfirming WithdrawalStatus = "confirming"       // its money may have left
	WithdrawalCompleted  WithdrawalStatus = "completed"        // proven to have left
	WithdrawalRejected   WithdrawalStatus = "rejected"         // an officer or the screening rejected it
	WithdrawalCancelled  WithdrawalStatus = "cancelled"        // by the merchant, or nobody executed it in time
	WithdrawalHold       WithdrawalStatus = "on_hold"          // an officer stopped it
	WithdrawalReview     WithdrawalStatus = "needs_review"     // its payout was refused, or its outcome needs officers
	WithdrawalFailed     WithdrawalStatus = "failed"           // proven not to have left; its money is free
)

// Who cause transitions of withdrawals, besides the merchant and the flow.
const (
	ByApprover = "admin or treasury"              // who neither requested nor executes it
	ByExecutor = "another admin or treasury"      // who did not approve it
	ByStaff    = "admin, otc_officer or treasury" // whoever sees what is wrong with it
	ByTwo      = "two officers"                   // one proposes what another confirms
)

// WithdrawalMachine governs withdrawals. Database triggers enforce who did what (check_withdrawal) and what is booked.
var WithdrawalMachine = Machine[WithdrawalStatus]{
	Name: "otc_withdrawal", Initial: WithdrawalRequested,
	Transitions: []Transition[WithdrawalStatus]{
		{WithdrawalRequested, WithdrawalPending, ByFlow, "its destination is screened, or needs no screening"},
		{WithdrawalRequested, WithdrawalRejected, ByFlow, "the screening is a hit"},
		{WithdrawalRequested, WithdrawalCancelled, ByMerchant, "given up"},
		{WithdrawalRequested, WithdrawalHold, ByStaff, "stopped"},
		{WithdrawalPending, WithdrawalApproved, ByApprover, "the officers that it needs have approved it, and its destination has rested or two approved"},
		{WithdrawalPending, WithdrawalRejected, ByApprover, "an officer rejected it"},
		{WithdrawalPending, WithdrawalCancelled, ByMerchant, "given up, or its time is over"},
		{WithdrawalPending, WithdrawalHold, ByStaff, "stopped"},
		{WithdrawalApproved, WithdrawalExecuting, ByExecutor, "its release passes now"},
		{WithdrawalApproved, WithdrawalPending, ByFlow, "it needs more officers than have approved it"},
		{WithdrawalApproved, WithdrawalRejected, ByApprover, "an officer rejected it"},
		{WithdrawalApproved, WithdrawalCancelled, ByMerchant, "given up, or its time is over"},
		{WithdrawalApproved, WithdrawalHold, ByStaff, "stopped"},
		{WithdrawalHold, WithdrawalRequested, ByApprover, "it was requested"},
		{WithdrawalHold, WithdrawalPending, ByApprover, "it waited for approval, or was approved"},
		{WithdrawalHold, WithdrawalRejected, ByApprover, "an officer rejected it"},
		{WithdrawalHold, WithdrawalCancelled, ByMerchant, "given up"},
		{WithdrawalExecuting, WithdrawalConfirming, ByFlow, "its payout begins"},
		{WithdrawalExecuting, WithdrawalApproved, ByFlow, "the transfer of bought crypto can't be opened"},
		{WithdrawalExecuting, WithdrawalCompleted, ByFlow, "an earlier try is proven late"},
		{WithdrawalExecuting, WithdrawalFailed, ByTwo, "it is not paid, and nothing of it may be on its way"},
		{WithdrawalConfirming, WithdrawalCompleted, ByFlow, "two sources, officers or a final transfer prove it"},
		{WithdrawalConfirming, WithdrawalApproved, ByFlow, "the transfer of bought crypto ended and moved nothing"},
		{WithdrawalConfirming, WithdrawalReview, ByFlow, "its payout is proven refused"},
		{WithdrawalConfirming, WithdrawalFailed, ByTwo, "it was not paid by bank"},
		{WithdrawalReview, WithdrawalConfirming, ByOperator, "it is tried again"},
		{WithdrawalReview, WithdrawalCompleted, ByFlow, "it is proven late"},
		{WithdrawalReview, WithdrawalFailed, ByTwo, "it is not paid, and nothing of it may be on its way"},
		{WithdrawalReview, WithdrawalFailed, ByFlow, "its payee can't be paid, or two officers declared that it was not"},
	},
	Final: []WithdrawalStatus{WithdrawalCompleted, WithdrawalRejected, WithdrawalCancelled, WithdrawalFailed},
}

// The values of a withdrawal's status detail that other objects don't have.
const (
	WaitExecution    = "execution"  // another officer executes it
	WaitCollection   = "collection" // crypto that is sold goes to the treasury
	WaitShillings    = "shillings"  // the treasury has too few shillings to buy the crypto
	DetailHit        = "screening_hit"
	DetailUnexecuted = "not_executed"
	DetailKept       = "kept_as_shillings" // the crypto was sold, and its shillings are in the merchant's balance
)

// withdrawalVerb is who may ask for a verb, and in which states.
type withdrawalVerb struct {
	roles []Role
	from  []WithdrawalStatus
}

var (
	anyMerchant = []Role{RoleVendor, RoleSubvendor}
	anyOfficer  = []Role{RoleAdmin, RoleTreasury}
	unexecuted  = []WithdrawalStatus{WithdrawalRequested, WithdrawalPending, WithdrawalApproved}
)

// withdrawalVerbs are the verbs on a withdrawal that exists, by the kind of their intents. Officers approve and reject by tickets.
var withdrawalVerbs = map[IntentKind]withdrawalVerb{
	IntendWithdrawalCancel:  {anyMerchant, append(slices.Clone(unexecuted), WithdrawalHold)},
	IntendWithdrawalHold:    {[]Role{RoleAdmin, RoleOTCOfficer, RoleTreasury}, unexecuted},
	IntendWithdrawalUnhold:  {anyOfficer, []WithdrawalStatus{WithdrawalHold}},
	IntendWithdrawalExecute: {anyOfficer, []WithdrawalStatus{WithdrawalApproved}},
	IntendWithdrawalPaid:    {anyOfficer, []WithdrawalStatus{WithdrawalConfirming}},
}

// Admit refuses a verb that the caller may not ask for, or that the state of the withdrawal does not allow. Another merchant's
// withdrawal is missing. Only a treasury officer sends crypto of the treasury.
func (w Withdrawal) Admit(verb IntentKind, by Principal) error {
	v, known := withdrawalVerbs[verb]
	switch {
	case !known || !slices.Contains(v.roles, by.Role):
		return Errorf(CodeForbidden, "Your role may not do this with a withdrawal.")
	case by.Role.Merchant() && by.VendorID != w.MerchantID:
		return Errorf(CodeNotFound, "There is no such withdrawal.")
	case !slices.Contains(v.from, w.Status):
		return Errorf(CodeStateConflict, "The withdrawal is %s, which does not allow this.", w.Status)
	case verb == IntendWithdrawalExecute && w.Buys() && by.Role != RoleTreasury:
		return Errorf(CodeForbidden, "Only a treasury officer sends crypto of the treasury.")
	case verb == IntendWithdrawalPaid && w.Method != WithdrawByBank:
		return Errorf(CodeStateConflict, "The withdrawal is not paid by bank.")
	}
	return nil
}

// Decidable reports whether officers may approve or reject a withdrawal in the state. One whose payout needs another officer by what
// left meanwhile is approved where it is.
func (w Withdrawal) Decidable() bool {
	return w.Status == WithdrawalPending || w.Status == WithdrawalApproved || w.Status == WithdrawalHold ||
		(w.Status == WithdrawalExecuting || w.Status == WithdrawalReview) && (w.Detail == WaitSecond || w.Detail == WaitApproval || w.Detail == WaitRest)
}

// WithdrawalDetails lists what a withdrawal may wait for, and why it ended.
func WithdrawalDetails() []string {
	return []string{
		WaitNothing, WaitScreening, WaitApproval, WaitSecond, WaitRest, WaitExecution, WaitShillings, WaitCollection, WaitPayout, WaitFloat, WaitSuspended, WaitPayeeDay,
		WaitFrozen, WaitBank, WaitBankSecond, WaitTransfer, WaitInventory, WaitOperator, DetailHit, DetailRejected, DetailCancelled, DetailUnexecuted, DetailInactive, DetailReleased, DetailKept,
	}
}
