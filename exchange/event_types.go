package exchange

import (
	"slices"
	"strings"
)

// EventType is a type of event and what it means.
type EventType struct {
	Type   string // "order.completed"
	Object string // "order"
	Means  string // a sentence
	Staff  bool   // only staff may read it
}

// eventTypes are the types that are not states of a state machine.
var eventTypes = []EventType{
	{"order.opened", "order", "An order was opened.", false},
	{"order.detail_changed", "order", "What the order waits for changed, and its status did not.", false},
	{"order.address_corrected", "order", "Two officers agreed on another address for the bought crypto, which could not be sent to the first one.", false},
	{"order.refund_address_set", "order", "The address that the crypto of the order is returned to was set.", false},
	{"offer.created", "offer", "A draft of an offer was created.", false},
	{"offer.changed", "offer", "Terms of the offer changed.", false},
	{"offer.published", "offer", "The offer was published, and its funds are held.", false},
	{"offer.paused", "offer", "The offer was paused.", false},
	{"offer.resumed", "offer", "The offer was resumed.", false},
	{"offer.closed", "offer", "The offer was closed, and the rest of its funds was released.", false},
	{"offer.suspended", "offer", "An admin suspended the offer.", false},
	{"offer.unsuspended", "offer", "The suspension was lifted; the offer is paused.", false},
	{"offer.active", "offer", "The offer has liquidity again.", false},
	{"offer.exhausted", "offer", "The offer has too little left for another order.", false},
	{"offer.deleted", "offer", "The offer was deleted.", false},
	{"transfer.created", "transfer", "A transfer was created, and its amount is held.", false},
	{"transfer.detail_changed", "transfer", "What the transfer waits for changed, and its status did not.", false},
	{"transfer.approval_counted", "transfer", "An officer approved the transfer, and another officer must.", false},
	{"transfer.released", "transfer", "The held money of a blocked transfer was released.", false},
	{"fx_quote.created", "fx_quote", "A quote was made.", false},
	{"fx_rate.entered", "fx_rate", "A rate was entered.", true},
	{"fee_profile.entered", "fee_profile", "A version of a fee profile was entered.", true},
	{"payment_attempt.created", "payment_attempt", "A collection or a payout by mobile money is about to be submitted.", false},
	{"payment_attempt.changed", "payment_attempt", "More is known about a payment attempt, and its status did not change.", false},
	{"chain_payment.handed_out", "chain_payment", "An unsigned transaction was handed out for a cold wallet.", false},
	{"chain_payment.brought_back", "chain_payment", "The signed transaction of a cold wallet was imported.", false},
	{"chain_payment.draft_lapsed", "chain_payment", "The handed-out transaction can't be included by the network any more.", false},
	{"chain_payment.withdrawn", "chain_payment", "The handed-out transaction is being made impossible.", false},
	{"payment_exception.opened", "payment_exception", "Money arrived that does not fit.", false},
	{"refund.addressed", "refund", "The address of a refund in crypto was set.", false},
	{"refund.changed", "refund", "The refund changed, and its status did not.", false},
	{"refund.payee_confirmed", "refund", "An officer confirmed who is refunded.", false},
	{"refund.claim_dismissed", "refund", "An officer dismissed the claim that the payee had been paid after all.", false},
	{"reconciliation_difference.opened", "reconciliation_difference", "The ledger and a chain differ.", true},
	{"reconciliation_difference.changed", "reconciliation_difference", "The amount of a difference changed.", true},
	{"control_change.proposed", "control_change", "A change waits for a second officer.", true},
	{"bank_account.created", "bank_account", "Two officers agreed on an account of the house at a bank.", true},
	{"bank_account.changed", "bank_account", "Two officers agreed on other data of an account of the house at a bank, or one switched it off.", true},
	{"otc_limit.entered", "otc_limit", "A merchant's automatic limit of mobile money was changed, or the house's.", true},
	{"bank_day.entered", "bank_day", "Two officers agreed whether banks settle on a day.", true},
	{"bank_statement.imported", "bank_statement", "The lines of a bank's statement were stored.", true},
	{"bank_statement.compared", "bank_statement", "The balance of a bank's statement was compared with the ledger.", true},
	{"bank_line.matched", "bank_line", "An object explains a line of a bank's statement.", true},
	{"bank_line.freed", "bank_line", "What explained a line of a bank's statement was a mistake: a journal entry that was corrected, or a payout from which two officers freed it.", true},
	{"journal_entry.booked", "journal_entry", "Two treasury officers booked what happened to the house's money outside of Kivuko.", true},
	{"otc_withdrawal.changed", "otc_withdrawal", "The withdrawal changed, and its status did not.", false},
	{"otc_deposit.changed", "otc_deposit", "The deposit changed, and its status did not.", false},
	{"otc_deposit.proof_added", "otc_deposit", "A file was added to the deposit as a proof of its payment.", false},
	{"otc_deposit.received", "otc_deposit", "A bank's statement shows the money of the deposit, which is booked.", false},
	{"otc_deposit.flagged", "otc_deposit", "Something about the deposit is for an officer to look at.", true},
	{"fee_sweep.opened", "fee_sweep", "Earned fees are to go to the treasury.", true},
	{"fee_sweep.detail_changed", "fee_sweep", "What the fee sweep waits for changed, and its status did not.", true},
	{"fee_sweep_rule.changed", "fee_sweep_rule", "Two treasury officers agreed when earned fees are swept by themselves, or one switched it off.", true},
	{"swap.opened", "swap", "A swap was opened, and the money of both sides is held.", false},
	{"swap.changed", "swap", "The swap changed, and its status did not.", false},
	{"multisig_proposal.changed", "multisig_proposal", "The proposal changed, and its status did not.", false},
	{"multisig_proposal.payload", "multisig_proposal", "What owners sign for the proposal is stored.", false},
	{"multisig_proposal.void", "multisig_proposal", "A payload of the proposal is proven impossible, and its signatures are void.", false},
	{"multisig_proposal.signed", "multisig_proposal", "An owner signed a payload of the proposal.", false},
	{"swap_marks.changed", "swap_marks", "Officers agreed on water marks of the treasury's wallet of a network.", true},
	{"swap_marks.low", "swap_marks", "The treasury's wallet of a network has less available than the low mark.", true},
	{"swap_marks.refilled", "swap_marks", "The treasury's wallet of a network has enough available again.", true},
	{"freeze.pulled", "freeze", "An officer froze all outgoing payments.", true},
	{"freeze.lifted", "freeze", "Two officers lifted the freeze of outgoing payments.", true},
	{"bank_confirmation.saved", "bank_confirmation", "An officer confirmed a payment by bank, or withdrew the confirmation.", true},
	{"deposit_cursor.started", "deposit_cursor", "The deposit watch of a network began.", true},
	{"deposit_quarantine.opened", "deposit_quarantine", "A movement on a chain can't be booked automatically.", true},
	{"deposit_quarantine.settled", "deposit_quarantine", "A movement that could not be booked is settled.", true},
	{"escrow_address.labelled", "escrow_address", "An escrow address got another label.", true},
	{"escrow_address.free", "escrow_address", "An escrow address is free.", true},
	{"escrow_policy.changed", "escrow_policy", "The size of an escrow pool or the resting time of its addresses changed.", true},
	{"user.created", "user", "An account was created.", false},
	{"user.updated", "user", "An account changed.", false},
	{"user.contact_proven", "user", "The account proved its e-mail address or phone number.", false},
	{"user.claim_lapsed", "user", "The account lost an e-mail address or phone number that it had not proven.", false},
	{"user.password_changed", "user", "The password of an account was changed.", false},
	{"user.pin_changed", "user", "The PIN of an account was set or changed.", false},
	{"wallet.created", "wallet", "A wallet was created.", false},
	{"wallet.default_changed", "wallet", "A wallet became its owner's default on its network.", false},
	{"security.refresh_token_reused", "session", "An old refresh token was used again, and its session was revoked.", false},
	{"webhook_endpoint.created", "webhook_endpoint", "A webhook endpoint was created.", false},
	{"webhook_endpoint.updated", "webhook_endpoint", "A webhook endpoint changed.", false},
	{"webhook_endpoint.disabled", "webhook_endpoint", "A webhook endpoint was disabled by the service.", false},
	{"webhook_endpoint.secret_rotated", "webhook_endpoint", "A webhook endpoint got a new secret.", false},
	{"webhook_endpoint.test", "webhook_endpoint", "A test event was requested.", false},
	{"webhook_endpoint.deleted", "webhook_endpoint", "A webhook endpoint was deleted.", false},
}

// machineEvents are the state machines whose states are event types, except the state that has no event.
var machineEvents = []struct {
	object string
	states []string
	silent string // the state without an event
	staff  bool
}{
	{"order", texts(OnRampMachine.States()), "", false},
	{"transfer", texts(TransferMachine.States()), string(TransferCreated), false},
	{"fx_quote", texts(QuoteMachine.States()), string(QuoteActive), false},
	{"payment_attempt", texts(AttemptMachine.States()), string(AttemptCreated), false},
	{"chain_payment", texts(ChainPaymentMachine.States()), "", false},
	{"order_payout", texts(OrderPayoutMachine.States()), "", false},
	{"payment_exception", texts(ExceptionMachine.States()), "", false},
	{"refund", texts(RefundMachine.States()), "", false},
	{"chain_deposit", texts(ChainDepositMachine.States()), "", false},
	{"otc_deposit", texts(OTCMachine.States()), "", false},
	{"float_move", texts(FloatMoveMachine.States()), "", true},
	{"escrow_address", texts(EscrowMachine.States()), string(EscrowFree), true},
	{"reconciliation", texts(ReconciliationMachine.States()), string(ReconciliationRunning), true},
	{"reconciliation_difference", texts(DifferenceMachine.States()), string(DifferenceOpen), true},
	{"control_change", texts(ControlChangeMachine.States()), string(ControlPending), true},
	{"otc_destination", texts(DestinationMachine.States()), "", false},
	{"otc_withdrawal", texts(WithdrawalMachine.States()), "", false},
	{"fee_sweep", texts(FeeSweepMachine.States()), string(FeeSweepPending), true},
	{"swap", texts(SwapMachine.States()), string(SwapReserved), false},
	{"multisig_account", texts(MultisigMachine.States()), "", true},
	{"multisig_proposal", texts(ProposalMachine.States()), "", false},
}

// EventTypes lists every type of event, by name.
func EventTypes() []EventType {
	all := slices.Clone(eventTypes)
	for _, m := range machineEvents {
		object := strings.ReplaceAll(m.object, "_", " ")
		for _, state := range m.states {
			if state == m.silent {
				continue
			}
			all = append(all, EventType{m.object + "." + state, m.object, "The status of the " + object + " is " + state + " now.", m.staff})
		}
	}
	slices.SortFunc(all, func(a, b EventType) int { return strings.Compare(a.Type, b.Type) })
	return all
}

// EventObjects lists the types of object that have events.
func EventObjects() []string {
	var all []string
	for _, e := range EventTypes() {
		all = append(all, e.Object)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// HappensEvent reports whether a reader can get events of a type, or, for "order.*", of an object. Some types are only for
// staff.
func HappensEvent(pattern string, staff bool) bool {
	return slices.ContainsFunc(EventTypes(), func(e EventType) bool {
		prefix, _, _ := strings.Cut(e.Type, ".")
		return (staff || !e.Staff) && (pattern == e.Type || pattern == prefix+".*")
	})
}

// auditOnly are the actions of the audit log that are not events.
var auditOnly = []string{
	"country.create", "country.delete", "country.seed", "country.update", "deny_list.added", "deny_list.removed", "device.added", "escrow.requested", "escrow_claim.created", "fiat_currency.create",
	"fee_sweep.refund", "fee_sweep.retry", "fiat_currency.delete", "fiat_currency.seed", "fiat_currency.update", "file.deleted", "file.key_sealed_anew", "file.link_issued", "file.uploaded", "file.used", "file.viewed",
	"fx_quote.replayed", "inventory.allocated", "invitation.accepted", "invitation.created", "invitation.withdrawn", "limits.approval_rule_changed", "limits.destination_rest_changed",
	"limits.role_changed", "limits.valuation_changed", "login.failed", "multisig_payload.approve_token_issued", "multisig_payload.approved", "multisig_payload.decision_refused", "multisig_proposal.approve_token_issued", "multisig_proposal.approved", "multisig_proposal.decision_refused", "multisig_proposal.refund", "multisig_proposal.reject_token_issued", "multisig_proposal.rejected", "multisig_proposal.retry", "momo_breaker.closed", "momo_terms.entered", "multisig_account.handover_executed", "multisig_account.handover_expired", "multisig_account.handover_signed", "multisig_account.key_sealed_anew", "multisig_account.refund", "multisig_account.retry", "order.approve_token_issued", "order.approved", "order.decision_refused", "order.refund",
	"order.reject_token_issued", "order.rejected", "order.resolve", "order.retry",
	"order_payout.refused_by_bank", "otc_deposit.reviewed", "otc_withdrawal.approve_token_issued", "otc_withdrawal.decision_refused", "otc_withdrawal.reject_token_issued", "otc_withdrawal.resolve", "otc_withdrawal.retry", "passkey.added", "passkey.removed", "payment_exception.refund", "payment_exception.resolve", "payment_exception.retry", "refund.approve_token_issued", "refund.approved", "refund.decision_refused", "refund.reject_token_issued",
	"refund.rejected", "refund.requested", "refund.retry", "security.passkey_cloned", "session.all_revoked", "session.created", "session.revoked", "session.stepped_up", "staff.appointed_by_one_officer",
	"swap.approve_token_issued", "swap.approved", "swap.decision_refused", "swap.refund", "swap.reject_token_issued", "swap.rejected", "swap.retry", "swap_quote.created", "swap_quote.replayed",
	"transfer.approve_token_issued", "transfer.approved", "transfer.decision_refused", "transfer.refund", "transfer.reject_token_issued",
	"transfer.rejected", "transfer.retry", "treasury.allocated", "user.limits_changed", "wallet.key_sealed_anew", "wallet.nonce_sequence_reopened", "webhook_delivery.replayed",
}

// auditObjects are the types of object that appear only in the audit log.
var auditObjects = []string{
	"approval_rule", "country", "denied_address", "destination_rest", "device", "escrow_claim", "fiat_currency", "file", "invitation", "momo_breaker", "momo_terms", "multisig_payload", "passkey", "refund_request", "role", "swap_quote", "valuation", "webhook_delivery",
}

// AuditActions lists every action of the audit log.
func AuditActions() []string {
	all := slices.Clone(auditOnly)
	for _, e := range EventTypes() {
		all = append(all, e.Type)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// AuditObjects lists the types of object in the audit log.
func AuditObjects() []string {
	all := slices.Concat(auditObjects, EventObjects())
	slices.Sort(all)
	return slices.Compact(all)
}
