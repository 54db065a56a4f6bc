package exchange

import "time"

// Scope is the set of objects on which a role may perform an action.
type Scope int

// The scopes, from nothing to everything.
const (
	ScopeNone   Scope = iota
	ScopeOwn          // objects of the caller's own
	ScopeVendor       // objects of the merchant that the caller acts for, subvendors included
	ScopeAny
)

// Action is something that a caller may be allowed to do. Every route of the API names one.
type Action string

// The actions.
const (
	ActReadSelf             Action = "self.read"
	ActChangeSelf           Action = "self.change" // own PIN, own sessions
	ActReadUsers            Action = "users.read"
	ActWriteUsers           Action = "users.write"
	ActCreateSubvendor      Action = "subvendors.create" // by an invitation
	ActReadInvitations      Action = "invitations.read"
	ActWithdrawInvitations  Action = "invitations.withdraw"
	ActReadMerchants        Action = "merchants.read"
	ActReadMerchantBooks    Action = "merchants.statement" // what happened to a merchant's shillings
	ActReadCatalog          Action = "catalog.read"
	ActWriteCatalog         Action = "catalog.write"
	ActListOffers           Action = "offers.list"
	ActWriteOffers          Action = "offers.write"
	ActSuspendOffers        Action = "offers.suspend"
	ActOpenOrders           Action = "orders.open" // which kinds a role opens is in the table of kinds
	ActRetryPayment         Action = "orders.retry_payment"
	ActRefundAddress        Action = "orders.refund_address"
	ActDecideDeposit        Action = "orders.decide_deposit" // crypto of another amount: be paid for it, or have it back
	ActReadOrders           Action = "orders.read"
	ActCancelOrders         Action = "orders.cancel"
	ActOperateFlows         Action = "flows.operate" // retry, refund, resolve
	ActReadBank             Action = "bank_payouts.read"
	ActConfirmBank          Action = "bank_payouts.confirm" // or refuse
	ActReadWallets          Action = "wallets.read"
	ActCreateWallets        Action = "wallets.create"
	ActProvisionWallets     Action = "wallets.provision"
	ActReopenNonceSequences Action = "wallets.reopen_nonce_sequence"
	ActReadEscrow           Action = "escrow.read"
	ActWriteEscrow          Action = "escrow.write" // addresses of the pool and its policy
	ActReadEvents           Action = "events.read"
	ActReadMachines         Action = "machines.read"
	ActReadAudit            Action = "audit.read"
	ActReadLedger           Action = "ledger.read"
	ActReadExceptions       Action = "exceptions.read"
	ActSettleExceptions     Action = "exceptions.settle" // accept, refund, credit, write off
	ActReconciliation       Action = "reconciliation.read"
	ActReadC2B              Action = "c2b.read"
	ActMatchC2B             Action = "c2b.match"
	ActOpenTransfers        Action = "transfers.open"
	ActReadTransfers        Action = "transfers.read"
	ActCancelTransfers      Action = "transfers.cancel"
	ActApprove              Action = "approvals.decide"
	ActReadLimits           Action = "limits.read"
	ActWriteLimits          Action = "limits.write"
	ActReadDenyList         Action = "deny_list.read"
	ActWriteDenyList        Action = "deny_list.write"
	ActReadChanges          Action = "changes.read"
	ActConfirmChanges       Action = "changes.confirm" // as the second officer
	ActReadPricing          Action = "pricing.read"    // rates, fee profiles, replays
	ActWritePricing         Action = "pricing.write"
	ActWriteBankDays        Action = "bank_days.write"
	ActOpenQuotes           Action = "quotes.open"
	ActReadQuotes           Action = "quotes.read"
	ActReadWebhooks         Action = "webhooks.read"
	ActWriteWebhooks        Action = "webhooks.write"
	ActReadFloat            Action = "float.read" // the float, the breaker and the terms of mobile money
	ActMoveFloat            Action = "float.move"
	ActCloseBreaker         Action = "breaker.close"
	ActReleaseDatabase      Action = "database.release"
	ActWriteMomoTerms       Action = "momo_terms.write"
	ActAllocate             Action = "treasury.allocate"
	ActReadInventory        Action = "inventory.read"
	ActUploadFiles          Action = "files.upload" // for which purposes is in the rules of files
	ActReadFiles            Action = "files.read"
	ActReadBankAccounts     Action = "bank_accounts.read"
	ActWriteBankAccounts    Action = "bank_accounts.write"
	ActReadJournal          Action = "journal.read"
	ActBookJournal          Action = "journal.book" // with another treasury officer
	ActReadFees             Action = "fees.read"    // what the house earned, and its sweeps
	ActSweepFees            Action = "fees.sweep"   // with another treasury officer
	ActReadStatements       Action = "statements.read"
	ActImportStatements     Action = "statements.import"
	ActMatchLines           Action = "statements.match"
	ActReadDestinations     Action = "destinations.read"
	ActAddDestinations      Action = "destinations.add"
	ActConfirmDestinations  Action = "destinations.confirm"
	ActRemoveDestinations   Action = "destinations.remove"
	ActReadDeposits         Action = "otc_deposits.read"
	ActWriteDeposits        Action = "otc_deposits.write"  // the merchant's own verbs
	ActAnswerDeposits       Action = "otc_deposits.answer" // what the merchant says of its payment, and that it gives up
	ActQueueDeposits        Action = "otc_deposits.queue"  // what waits for officers, and how it came about
	ActAssignDeposits       Action = "otc_deposits.assign"
	ActClaimDeposits        Action = "otc_deposits.claim"
	ActConfirmDeposits      Action = "otc_deposits.confirm"
	ActRejectDeposits       Action = "otc_deposits.reject"
	ActSettleDeposits       Action = "otc_deposits.settle"
	ActAuditDeposits        Action = "otc_deposits.audit"
	ActReadWithdrawals      Action = "otc_withdrawals.read"
	ActWriteWithdrawals     Action = "otc_withdrawals.write" // request and cancel
	ActHoldWithdrawals      Action = "otc_withdrawals.hold"
	ActExecuteWithdrawals   Action = "otc_withdrawals.execute" // and let go on what was held
	ActFreeze               Action = "freeze.pull"             // and read it
	ActLiftFreeze           Action = "freeze.lift"             // with a second officer
	ActQuoteSwaps           Action = "swaps.quote"
	ActOpenSwaps            Action = "swaps.open"
	ActReadSwaps            Action = "swaps.read" // and their quotes
	ActCancelSwaps          Action = "swaps.cancel"
	ActWriteSwapMarks       Action = "swap_marks.write" // with a second officer
	ActReadMultisig         Action = "multisig.read"    // accounts of several owners
	ActProposeMultisig      Action = "multisig.propose" // a treasury wallet of several owners, with a second officer
	ActReadProposals        Action = "proposals.read"   // and what owners sign for them
	ActOpenProposals        Action = "proposals.open"   // payments from wallets of several owners
	ActSignProposals        Action = "proposals.sign"   // bring the signature of an owner
	ActCancelProposals      Action = "proposals.cancel"
	ActExecuteProposals     Action = "proposals.execute" // send what enough owners signed
)

type grants map[Role]Scope

// everyone gives one scope to all roles.
func everyone(s Scope) grants {
	g := grants{}
	for _, r := range Roles() {
		g[r] = s
	}
	return g
}

// policy is the permission matrix, and the only place with permissions. A role without an entry may not perform the action.
var policy = map[Action]grants{
	ActReadSelf:        everyone(ScopeOwn),
	ActChangeSelf:      everyone(ScopeOwn),
	ActReadUsers:       {RoleAdmin: ScopeAny},
	ActWriteUsers:      {RoleAdmin: ScopeAny},
	ActCreateSubvendor: {RoleVendor: ScopeVendor, RoleAdmin: ScopeAny},
	ActReadInvitations: {RoleVendor: ScopeVendor, RoleAdmin: ScopeAny},
	// A withdrawn invitation only takes a right away.
	ActWithdrawInvitations: {RoleVendor: ScopeVendor, RoleAdmin: ScopeAny},
	ActReadMerchants: {
		RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny,
		RoleTreasury: ScopeAny,
	},
	ActReadMerchantBooks: {
		RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny,
		RoleTreasury: ScopeAny,
	},
	ActReadCatalog:   everyone(ScopeAny),
	ActWriteCatalog:  {RoleAdmin: ScopeAny},
	ActListOffers:    everyone(ScopeAny),
	ActWriteOffers:   {RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor},
	ActSuspendOffers: {RoleAdmin: ScopeAny},
	ActOpenOrders:    {RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor},
	// Only the payer may request another prompt, and only the seller may name where the crypto is returned to or decide about
	// another amount: a merchant that named it for a customer could take the crypto. A merchant is the payer of what it buys from the house, and may decide about its own sales
	// alone.
	ActRetryPayment:  {RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor},
	ActDecideDeposit: {RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor},
	ActRefundAddress: {RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor},
	ActReadOrders: {
		RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor,
		RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny, RoleTreasury: ScopeAny,
	},
	// A merchant may cancel only orders that it opened.
	ActCancelOrders: {RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny},
	ActOperateFlows: {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActReadBank:     {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActConfirmBank:  {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActReadWallets: {
		RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor,
		RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny, RoleTreasury: ScopeAny,
	},
	ActCreateWallets: {
		RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor,
		RoleAdmin: ScopeAny, RoleTreasury: ScopeAny,
	},
	// A treasury officer provisions only wallets of several owners (ActProposeMultisig).
	ActProvisionWallets:     {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActReopenNonceSequences: {RoleAdmin: ScopeAny},
	ActReadEscrow:           {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny, RoleOTCOfficer: ScopeAny},
	ActWriteEscrow:          {RoleAdmin: ScopeAny},
	ActReadEvents: {
		RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor,
		RoleAdmin: ScopeAny, RoleTreasury: ScopeAny,
	},
	ActReadMachines: everyone(ScopeAny),
	ActReadAudit:    {RoleAdmin: ScopeAny},
	ActReadLedger:   {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	// Exceptions and refunds of orders to which the caller is a party.
	ActReadExceptions: {
		RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor,
		RoleAdmin: ScopeAny, RoleTreasury: ScopeAny, RoleOTCOfficer: ScopeAny,
	},
	ActReconciliation: {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActReadC2B:        {RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny, RoleTreasury: ScopeAny},
	ActMatchC2B:       {RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny},
	ActSettleExceptions: {
		RoleAdmin: ScopeAny, RoleTreasury: ScopeAny,
	},
	// A treasury officer sends only from the house's treasury. The store limits the wallets that a role may spend from.
	ActOpenTransfers: {
		RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleTreasury: ScopeAny,
	},
	ActReadTransfers: {
		RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor,
		RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny, RoleTreasury: ScopeAny,
	},
	ActCancelTransfers: {
		RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor,
		RoleAdmin: ScopeAny, RoleTreasury: ScopeAny,
	},
	ActApprove:       {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActReadLimits:    {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActWriteLimits:   {RoleAdmin: ScopeAny},
	ActReadDenyList:  {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActWriteDenyList: {RoleAdmin: ScopeAny},
	ActReadChanges:   {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	// The store refuses who proposed the change and who benefits from it.
	ActConfirmChanges: {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActReadPricing:    {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActWritePricing:   {RoleAdmin: ScopeAny},
	ActWriteBankDays:  {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	// Roles that may send may ask for a price.
	ActOpenQuotes: {
		RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny, RoleTreasury: ScopeAny,
	},
	// A subvendor sees the merchant's events but has no endpoints: they would outlive its account.
	ActReadWebhooks:  {RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleAdmin: ScopeAny},
	ActWriteWebhooks: {RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleAdmin: ScopeAny},
	// The house's money at the operator. Large moves and new terms need two officers.
	ActReadFloat:    {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActMoveFloat:    {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActCloseBreaker: {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	// Two officers, who compared the operator's statement with the books.
	ActReleaseDatabase: {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActWriteMomoTerms:  {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActAllocate:        {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActReadInventory:   {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActUploadFiles: {
		RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny, RoleTreasury: ScopeAny,
	},
	ActReadFiles: {
		RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny, RoleTreasury: ScopeAny,
	},
	// Merchants see the active accounts, to which they pay.
	ActReadBankAccounts: {
		RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny, RoleTreasury: ScopeAny, RoleOTCOfficer: ScopeAny,
	},
	ActWriteBankAccounts: {RoleAdmin: ScopeAny},
	ActReadJournal:       {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActBookJournal:       {RoleTreasury: ScopeAny},
	ActReadFees:          {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActSweepFees:         {RoleTreasury: ScopeAny},
	ActReadStatements:    {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny, RoleOTCOfficer: ScopeAny},
	ActImportStatements:  {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActMatchLines:        {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActReadDestinations: {
		RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny, RoleTreasury: ScopeAny, RoleOTCOfficer: ScopeAny,
	},
	// A subvendor proposes where the merchant's money may go, and the master merchant alone agrees. A removal only takes a right away.
	ActAddDestinations:     {RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor},
	ActConfirmDestinations: {RoleVendor: ScopeVendor},
	ActRemoveDestinations:  {RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny},
	ActReadDeposits: {
		RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny, RoleTreasury: ScopeAny,
	},
	ActWriteDeposits:  {RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor},
	ActAnswerDeposits: {RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor},
	ActQueueDeposits:  {RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny, RoleTreasury: ScopeAny},
	// The officer who holds the claim confirms, a treasury officer settles, and a fourth person audits: the database holds the four apart.
	ActAssignDeposits:  {RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny},
	ActClaimDeposits:   {RoleOTCOfficer: ScopeAny},
	ActConfirmDeposits: {RoleOTCOfficer: ScopeAny},
	ActRejectDeposits:  {RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny, RoleTreasury: ScopeAny},
	ActSettleDeposits:  {RoleTreasury: ScopeAny},
	ActAuditDeposits:   {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActReadWithdrawals: {
		RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny, RoleTreasury: ScopeAny,
	},
	ActWriteWithdrawals: {RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor},
	ActHoldWithdrawals:  {RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny, RoleTreasury: ScopeAny},
	// Who executes is another officer than those who approved (ActApprove): the database holds them apart.
	ActExecuteWithdrawals: {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActFreeze:             {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny, RoleOTCOfficer: ScopeAny},
	ActLiftFreeze:         {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	// Who may send from a wallet may swap in it. The store limits the wallets that a role may spend from: a treasury officer swaps only in
	// the house's.
	ActQuoteSwaps: {
		RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleTreasury: ScopeAny,
	},
	ActOpenSwaps: {
		RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleTreasury: ScopeAny,
	},
	ActReadSwaps: {
		RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor,
		RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny, RoleTreasury: ScopeAny,
	},
	ActCancelSwaps: {
		RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor,
		RoleAdmin: ScopeAny, RoleTreasury: ScopeAny,
	},
	ActWriteSwapMarks: {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	// A merchant and its subvendors read the accounts that are shared with the merchant.
	ActReadMultisig: {
		RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny, RoleTreasury: ScopeAny,
	},
	ActProposeMultisig: {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActReadProposals: {
		RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny, RoleOTCOfficer: ScopeAny, RoleTreasury: ScopeAny,
	},
	// The merchant with whom a wallet is shared proposes, and cancels what it proposed; officers approve (ActApprove) and execute.
	ActOpenProposals: {RoleVendor: ScopeVendor, RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	// A signature proves its owner, whoever brings it. Only officers have keys in our key store.
	ActSignProposals:    {RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActCancelProposals:  {RoleVendor: ScopeVendor, RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActExecuteProposals: {RoleAdmin: ScopeAny, RoleTreasury: ScopeAny},
	ActReadQuotes: {
		RoleCustomer: ScopeOwn, RoleUser: ScopeOwn, RoleVendor: ScopeVendor, RoleSubvendor: ScopeVendor, RoleAdmin: ScopeAny, RoleTreasury: ScopeAny,
	},
}

// assuranceRanks order what is proven: more is also enough where less is asked for. A program's key is no person and reaches
// nothing that asks for one.
var assuranceRanks = map[Assurance]int{AssurancePIN: 1, AssurancePassword: 2, AssurancePasskey: 3}

// Reaches reports whether a proof is at least as strong as another one.
func (a Assurance) Reaches(least Assurance) bool {
	return assuranceRanks[a] > 0 && assuranceRanks[a] >= assuranceRanks[least]
}

// Needs is what a caller must have proven for an action that its role allows.
type Needs struct {
	Least  Assurance // in the session
	StepUp bool      // lately, by no less; see StepUpLife
}

// moving are the actions that move money or rights, or decide about either. Each needs a proof that is not older than
// StepUpLife.
var moving = map[Action]bool{
	ActWriteUsers: true, ActCreateSubvendor: true, ActWriteCatalog: true, ActWriteOffers: true, ActSuspendOffers: true, ActOpenOrders: true, ActRefundAddress: true, ActDecideDeposit: true,
	ActOperateFlows: true, ActConfirmBank: true, ActProvisionWallets: true, ActReopenNonceSequences: true, ActWriteEscrow: true, ActSettleExceptions: true,
	ActOpenTransfers: true, ActApprove: true, ActWriteLimits: true, ActWriteDenyList: true, ActConfirmChanges: true, ActWritePricing: true, ActWriteBankDays: true, ActWriteWebhooks: true,
	ActMoveFloat: true, ActCloseBreaker: true, ActReleaseDatabase: true, ActWriteMomoTerms: true, ActAllocate: true, ActFreeze: true, ActLiftFreeze: true,
	ActWriteBankAccounts: true, ActBookJournal: true, ActSweepFees: true, ActImportStatements: true, ActMatchLines: true, ActMatchC2B: true, ActAddDestinations: true, ActConfirmDestinations: true,
	ActWriteDeposits: true, ActConfirmDeposits: true, ActRejectDeposits: true, ActSettleDeposits: true, ActAuditDeposits: true,
	ActWriteWithdrawals: true, ActExecuteWithdrawals: true, ActOpenSwaps: true, ActWriteSwapMarks: true, ActProposeMultisig: true,
	ActOpenProposals: true, ActSignProposals: true, ActExecuteProposals: true,
}

// ofPassword are the actions for which a PIN is too weak: they give rights to others, or send data or money elsewhere.
var ofPassword = map[Action]bool{ActCreateSubvendor: true, ActWriteWebhooks: true, ActConfirmDestinations: true}

// NeedsOf returns what a caller of a role must have proven for an action. Staff need a passkey for everything but their own
// account, which they can reach to add one.
func NeedsOf(r Role, a Action) Needs {
	n := Needs{Least: AssurancePIN, StepUp: moving[a]}
	switch {
	case r.Staff() && a != ActReadSelf && a != ActChangeSelf:
		n.Least = AssurancePasskey
	case r.Staff() || ofPassword[a]:
		n.Least = AssurancePassword
	}
	return n
}

// Met reports whether a caller has proven what is needed.
func (n Needs) Met(p Principal, now time.Time) bool {
	return p.Assurance.Reaches(n.Least) && (!n.StepUp || p.SteppedUpBy.Reaches(n.Least) && now.Sub(p.SteppedUpAt) < StepUpLife)
}

// ScopeOf returns the scope of the role's permission for an action.
func ScopeOf(r Role, a Action) Scope { return policy[a][r] }

// Actions lists every action of the matrix, for the test that walks it.
func Actions() []Action {
	var all []Action
	for a := range policy {
		all = append(all, a)
	}
	return all
}
