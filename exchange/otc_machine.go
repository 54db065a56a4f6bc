package exchange

import "slices"

// OTCStatus is the state of an OTC deposit.
type OTCStatus string

// The states of an OTC deposit.
const (
	OTCDraft     OTCStatus = "draft"
	OTCQuoted    OTCStatus = "quoted"  // priced, and not submitted
	OTCPending   OTCStatus = "pending" // submitted: it waits for its money, or for an officer
	OTCAssigned  OTCStatus = "assigned"
	OTCClaimed   OTCStatus = "claimed" // an officer holds it by a lease
	OTCInfo      OTCStatus = "info_required"
	OTCHold      OTCStatus = "on_hold"
	OTCConfirmed OTCStatus = "confirmed" // its money is proven
	OTCSettling  OTCStatus = "settling"
	OTCCredited  OTCStatus = "credited"
	OTCAudited   OTCStatus = "audited"
	OTCRejected  OTCStatus = "rejected"
	OTCCancelled OTCStatus = "cancelled"
	OTCExpired   OTCStatus = "expired"
)

// Who cause transitions of OTC deposits, besides the roles and the flow.
const (
	ByHolder   = "otc_officer"                    // who holds the claim, or takes it
	ByDesk     = "admin or otc_officer"           // who runs the queue
	ByReviewer = "admin, otc_officer or treasury" // whoever sees what is wrong with a confirmed one
	ByAuditor  = "admin or treasury"              // who had no other part in it
)

// OTCMachine governs OTC deposits. Database triggers enforce who did what (check_deposit) and what is booked.
var OTCMachine = Machine[OTCStatus]{
	Name: "otc_deposit", Initial: OTCDraft,
	Transitions: []Transition[OTCStatus]{
		{OTCDraft, OTCQuoted, ByMerchant, "a quote freezes its price"},
		{OTCDraft, OTCPending, ByMerchant, "submitted, for shillings, which need no quote"},
		{OTCDraft, OTCCancelled, ByMerchant, "given up"},
		{OTCDraft, OTCExpired, ByFlow, "seven days without an edit"},
		{OTCQuoted, OTCDraft, ByFlow, "the quote ended before it was submitted"},
		{OTCQuoted, OTCPending, ByMerchant, "submitted while the quote holds"},
		{OTCQuoted, OTCCancelled, ByMerchant, "given up"},
		{OTCQuoted, OTCExpired, ByFlow, "seven days without an edit"},
		{OTCPending, OTCAssigned, ByDesk, "an officer is named"},
		{OTCPending, OTCClaimed, ByHolder, "nobody else is named"},
		{OTCPending, OTCConfirmed, ByFlow, "mobile money within the merchant's automatic limit of 24 hours, proven by two sources"},
		{OTCPending, OTCInfo, ByFlow, "mobile money of another amount, and the quote does not cover it"},
		{OTCPending, OTCHold, ByDesk, "stopped"},
		{OTCPending, OTCRejected, ByDesk, "with a reason, and its money becomes a payment exception"},
		{OTCPending, OTCCancelled, ByMerchant, "no money is known"},
		{OTCPending, OTCExpired, ByFlow, "no money is known when its time is over"},
		{OTCAssigned, OTCPending, ByDesk, "nobody is named any more"},
		{OTCAssigned, OTCClaimed, ByHolder, "by the officer who is named"},
		{OTCAssigned, OTCHold, ByDesk, "stopped"},
		{OTCAssigned, OTCRejected, ByDesk, "with a reason, and its money becomes a payment exception"},
		{OTCAssigned, OTCCancelled, ByMerchant, "no money is known"},
		{OTCAssigned, OTCExpired, ByFlow, "no money is known when its time is over"},
		{OTCClaimed, OTCPending, ByHolder, "released, or the lease ended"},
		{OTCClaimed, OTCAssigned, ByHolder, "released, or the lease ended, and an officer is named"},
		{OTCClaimed, OTCInfo, ByHolder, "with a question, or the quote does not cover what came"},
		{OTCClaimed, OTCHold, ByDesk, "stopped"},
		{OTCClaimed, OTCConfirmed, ByHolder, "a statement line and the officer, or two officers, prove the money, and its price is known"},
		{OTCClaimed, OTCRejected, ByDesk, "with a reason, and its money becomes a payment exception"},
		{OTCInfo, OTCClaimed, ByMerchant, "answered: its officer has a new lease"},
		{OTCInfo, OTCPending, ByMerchant, "answered, and no officer holds it"},
		{OTCInfo, OTCConfirmed, ByMerchant, "another quote, or shillings, for the money that is proven"},
		{OTCInfo, OTCHold, ByDesk, "stopped"},
		{OTCInfo, OTCRejected, ByDesk, "with a reason, and its money becomes a payment exception"},
		{OTCInfo, OTCCancelled, ByMerchant, "given up, and its money becomes a payment exception"},
		{OTCHold, OTCPending, ByDesk, "it was pending"},
		{OTCHold, OTCAssigned, ByDesk, "it was assigned"},
		{OTCHold, OTCClaimed, ByDesk, "it was claimed: its officer has a new lease"},
		{OTCHold, OTCInfo, ByDesk, "it waited for the merchant"},
		{OTCHold, OTCConfirmed, ByDesk, "it was confirmed"},
		{OTCHold, OTCRejected, ByDesk, "with a reason, and its money becomes a payment exception"},
		{OTCConfirmed, OTCSettling, string(RoleTreasury), "by another person than the one who confirmed it"},
		{OTCConfirmed, OTCSettling, ByFlow, "shillings that came by mobile money within the automatic limit"},
		{OTCConfirmed, OTCClaimed, ByHolder, "the officer who confirmed it was switched off"},
		{OTCConfirmed, OTCHold, ByDesk, "stopped"},
		{OTCConfirmed, OTCRejected, ByReviewer, "with a reason, and its money becomes a payment exception"},
		{OTCSettling, OTCCredited, ByFlow, "the shillings are booked, or the transfer of the crypto is final"},
		{OTCSettling, OTCConfirmed, ByFlow, "its transfer ended and moved nothing"},
		{OTCCredited, OTCAudited, ByAuditor, "by a person who had no part in it"},
	},
	Final: []OTCStatus{OTCAudited, OTCRejected, OTCCancelled, OTCExpired},
}

// The values of an OTC deposit's StatusDetail, in addition to those of other objects.
const (
	WaitSubmit     = "submit"      // by the merchant
	WaitMoney      = "money"       // no money of it is known
	WaitReview     = "review"      // its money, or its proof, waits for an officer
	WaitAnswer     = "answer"      // of the merchant, to an officer's question
	WaitRequote    = "requote"     // its money is proven, and the quote does not cover it: another quote, shillings, or its return
	WaitSettle     = "settle"      // a treasury officer
	WaitInventory  = "inventory"   // the treasury's wallet has too little
	WaitTransfer   = "transfer"    // of the crypto
	WaitAudit      = "audit"       // an auditor
	DetailNoMoney  = "no_money"    // expired without any
	DetailStale    = "stale_draft" // expired as a draft
	DetailQuoteEnd = "quote_lapsed"
	DetailReturned = "money_returned" // ended with money, which is a payment exception
	DetailUnpaid   = "transfer_ended" // the transfer of its crypto moved nothing
)

// OTCDetails lists what an OTC deposit may wait for, and why it ended.
func OTCDetails() []string {
	return []string{
		WaitNothing, WaitSubmit, WaitPrompt, WaitPayment, WaitRetry, WaitOutcome, WaitReceipt, WaitMoney, WaitReview, WaitSecond, WaitAnswer, WaitRequote, WaitSettle, WaitInventory, WaitTransfer, WaitAudit, WaitOperator,
		DetailNoMoney, DetailStale, DetailQuoteEnd, DetailReturned, DetailUnpaid, DetailCancelled, DetailRejected,
	}
}

// WaitsForOfficer reports whether a deposit in the state is in the queue.
func (s OTCStatus) WaitsForOfficer() bool { return s == OTCPending || s == OTCAssigned }

// TakesMoney reports whether money that comes for a deposit in the state is its own. Other money is late.
func (s OTCStatus) TakesMoney() bool {
	return slices.Contains([]OTCStatus{OTCPending, OTCAssigned, OTCClaimed, OTCInfo, OTCHold}, s)
}

// otcVerb is who may ask for a verb, and in which states.
type otcVerb struct {
	roles []Role
	from  []OTCStatus
}

var (
	merchants = []Role{RoleVendor, RoleSubvendor}
	otcDesk   = []Role{RoleAdmin, RoleOTCOfficer}
	reviewed  = []OTCStatus{OTCPending, OTCAssigned, OTCClaimed, OTCInfo, OTCConfirmed}
)

// otcVerbs are the verbs on a deposit that exists, by the kind of their intents.
var otcVerbs = map[IntentKind]otcVerb{
	IntendOTCEdit:    {merchants, []OTCStatus{OTCDraft}},
	IntendOTCQuote:   {merchants, []OTCStatus{OTCDraft, OTCQuoted, OTCInfo}},
	IntendOTCSubmit:  {merchants, []OTCStatus{OTCDraft, OTCQuoted}},
	IntendOTCProof:   {merchants, []OTCStatus{OTCDraft, OTCQuoted, OTCPending, OTCAssigned, OTCClaimed, OTCInfo, OTCHold}},
	IntendOTCAnswer:  {merchants, []OTCStatus{OTCInfo}},
	IntendOTCCancel:  {merchants, []OTCStatus{OTCDraft, OTCQuoted, OTCPending, OTCAssigned, OTCInfo}},
	IntendOTCAssign:  {otcDesk, []OTCStatus{OTCPending, OTCAssigned}},
	IntendOTCClaim:   {[]Role{RoleOTCOfficer}, []OTCStatus{OTCPending, OTCAssigned, OTCClaimed, OTCConfirmed}},
	IntendOTCRelease: {[]Role{RoleOTCOfficer}, []OTCStatus{OTCClaimed}},
	IntendOTCAsk:     {[]Role{RoleOTCOfficer}, []OTCStatus{OTCClaimed}},
	IntendOTCConfirm: {[]Role{RoleOTCOfficer}, []OTCStatus{OTCClaimed}},
	IntendOTCHold:    {otcDesk, reviewed},
	IntendOTCUnhold:  {otcDesk, []OTCStatus{OTCHold}},
	IntendOTCReject:  {[]Role{RoleAdmin, RoleOTCOfficer, RoleTreasury}, append(slices.Clone(reviewed), OTCHold)},
	IntendOTCSettle:  {[]Role{RoleTreasury}, []OTCStatus{OTCConfirmed}},
	IntendOTCMatch:   {otcDesk, []OTCStatus{OTCPending, OTCAssigned, OTCClaimed, OTCInfo, OTCHold}},
	IntendOTCAudit:   {[]Role{RoleAdmin, RoleTreasury}, []OTCStatus{OTCCredited}},
}

// Admit refuses a verb that the caller may not ask for, or that the state of the deposit does not allow. Another merchant's deposit
// is missing.
func (d OTCDeposit) Admit(verb IntentKind, by Principal) error {
	v, known := otcVerbs[verb]
	switch {
	case !known || !slices.Contains(v.roles, by.Role):
		return Errorf(CodeForbidden, "Your role may not do this with an OTC deposit.")
	case by.Role.Merchant() && by.VendorID != d.MerchantID:
		return Errorf(CodeNotFound, "There is no such OTC deposit.")
	case !slices.Contains(v.from, d.Status):
		return Errorf(CodeStateConflict, "The OTC deposit is %s, which does not allow this.", d.Status)
	case verb == IntendOTCReject && by.Role == RoleTreasury && d.Status != OTCConfirmed:
		return Errorf(CodeStateConflict, "A treasury officer rejects only what is confirmed.")
	}
	return nil
}
