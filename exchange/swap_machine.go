package exchange

import "slices"

// SwapStatus is the state of a swap. Before it is opened there is a quote.
type SwapStatus string

// The states of a swap. Its first leg collects what the owner gives; its second leg pays what the owner gets.
const (
	SwapReserved   SwapStatus = "reserved"     // the owner's money and the house's are held; nothing is signed
	SwapCollecting SwapStatus = "collecting"   // a transaction of the first leg is signed
	SwapCollected  SwapStatus = "collected"    // the first leg is final
	SwapPayingOut  SwapStatus = "paying_out"   // the second leg is approved
	SwapSyncing    SwapStatus = "syncing"      // the second leg is final; chain and ledger are compared
	SwapCompleted  SwapStatus = "completed"    // they agree
	SwapRefunding  SwapStatus = "refunding"    // the second leg can't happen any more, and the first one goes back
	SwapRefunded   SwapStatus = "refunded"     // it is back, final
	SwapReview     SwapStatus = "needs_review" // its second leg stands still, or chain and ledger differ
	SwapCancelled  SwapStatus = "cancelled"    // before anything was signed
	SwapExpired    SwapStatus = "expired"      // nothing was signed in time
	SwapFailed     SwapStatus = "failed"       // the first leg was given up; proven not to be on the network
)

// SwapMachine governs swaps. Database triggers enforce which legs are final, and that no swap is both paid and refunded.
var SwapMachine = Machine[SwapStatus]{
	Name: "swap", Initial: SwapReserved,
	Transitions: []Transition[SwapStatus]{
		{SwapReserved, SwapCollecting, ByFlow, "a transaction of the first leg is signed"},
		{SwapReserved, SwapCancelled, ByOwner, "nothing is signed, also when an officer rejected it or its owner was switched off"},
		{SwapReserved, SwapExpired, ByFlow, "nothing was signed within ten minutes"},
		{SwapCollecting, SwapCollected, ByFlow, "the first leg is final"},
		{SwapCollecting, SwapFailed, ByOperator, "given up, when no transaction of the first leg can be alive"},
		{SwapCollected, SwapPayingOut, ByFlow, "the second leg is approved"},
		{SwapCollected, SwapRefunding, ByFlow, "the second leg can't be approved within thirty minutes"},
		{SwapPayingOut, SwapSyncing, ByFlow, "the second leg is final"},
		{SwapPayingOut, SwapRefunding, ByFlow, "thirty minutes are over, and the second leg is proven not to be on the network and unable to be"},
		{SwapPayingOut, SwapReview, ByFlow, "the second leg stands still"},
		{SwapSyncing, SwapCompleted, ByFlow, "chain and ledger agree for both assets of both wallets"},
		{SwapSyncing, SwapReview, ByFlow, "they differ"},
		{SwapReview, SwapPayingOut, ByOperator, "the second leg is tried again"},
		{SwapReview, SwapSyncing, ByFlow, "the second leg is final after all, or they are compared again"},
		{SwapReview, SwapRefunding, ByTwo, "the second leg is proven not to be on the network and unable to be"},
		{SwapReview, SwapCompleted, ByTwo, "both legs are final, and the difference is accepted"},
		{SwapRefunding, SwapRefunded, ByFlow, "the refund is final"},
	},
	Final: []SwapStatus{SwapCompleted, SwapRefunded, SwapCancelled, SwapExpired, SwapFailed},
}

// The values of a swap's status detail that other objects don't have.
const (
	WaitSync       = "synchronisation" // chain and ledger are compared
	DetailStuck    = "payout_stuck"    // the second leg stands still
	DetailDiffers  = "balances_differ"
	DetailAccepted = "difference_accepted"
)

// SwapDetails lists what a swap may wait for, and why it ended.
func SwapDetails() []string {
	return []string{
		WaitNothing, WaitApproval, WaitSecond, WaitSignature, WaitWatch, WaitFrozen, WaitBroadcast, WaitFinality, WaitPayout, WaitSync, WaitOperator, DetailStuck,
		DetailDiffers, DetailAccepted, DetailBySender, DetailByStaff, DetailExpired, DetailInactive, DetailRejected, DetailGivenUp,
	}
}

// Signed reports whether a transaction of the swap may have been signed.
func (s SwapStatus) Signed() bool {
	return !slices.Contains([]SwapStatus{SwapReserved, SwapCancelled, SwapExpired}, s)
}
