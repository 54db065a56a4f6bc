package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// ControlKind is which control a change loosens.
type ControlKind string

// The kinds. A change that only tightens a control needs no confirmation: it takes effect at once.
const (
	ControlHouseLimits ControlKind = "house_limits" // limits of roles, valuations, the approval rule, the rest of new destinations
	ControlUserLimits  ControlKind = "user_limits"  // a user's own limits, above those of its role
	ControlStaffAccess ControlKind = "staff_access" // the account of an admin or a treasury officer becomes active
	// Treasury matters: a treasury officer may propose these too.
	ControlMomoTerms          ControlKind = "momo_terms"           // the operator's limits and tariff, from a time on
	ControlTreasuryAllocation ControlKind = "treasury_allocation"  // shillings for the platform's own treasury, or back
	ControlFloatMove          ControlKind = "float_move"           // a large movement of float at the operator
	ControlExceptionDecision  ControlKind = "exception_decision"   // a decision about a large payment exception
	ControlPayoutAttestation  ControlKind = "payout_attestation"   // the outcome of a payout that the operator does not report
	ControlOrderAddress       ControlKind = "order_address"        // another address for the crypto of a purchase that can't be sent
	ControlRefundDecision     ControlKind = "refund_decision"      // a large refund by mobile money, or the payee of one
	ControlDatabaseRelease    ControlKind = "database_release"     // requests to the operator from another database than before
	ControlDenyRemoval        ControlKind = "deny_removal"         // an address leaves the deny list
	ControlFeeProfile         ControlKind = "fee_profile"          // the next version of the house's fees
	ControlFXRate             ControlKind = "fx_rate"              // a rate that strays from the market
	ControlBreakerClosed      ControlKind = "breaker_closed"       // payouts by mobile money go again
	ControlQuarantine         ControlKind = "quarantine_settled"   // a movement in the quarantine is explained
	ControlFreezeLift         ControlKind = "freeze_lift"          // the end of a freeze of all outgoing payments
	ControlNonceReopened      ControlKind = "nonce_reopened"       // a wallet signs again after a transaction that was not ours
	ControlEscrowPolicy       ControlKind = "escrow_policy"        // escrow addresses rest less, or unverified users may use more of them
	ControlOTCLimit           ControlKind = "otc_limit"            // more mobile money of a merchant needs no officer
	ControlBankAccount        ControlKind = "bank_account"         // an account of the house at a bank, or other data of it
	ControlBankDay            ControlKind = "bank_day"             // banks settle on a day, or don't
	ControlInventory          ControlKind = "inventory_allocation" // crypto of the treasury for purchases without an offer, or back
	ControlWithdrawalFailure  ControlKind = "withdrawal_failure"   // a withdrawal ends unpaid, and its money is free
	ControlBankRefund         ControlKind = "bank_refund"          // money of a payment exception goes back to an account at a bank
	ControlBankRefundFailure  ControlKind = "bank_refund_failure"  // the bank did not pay such a refund, and the exception is open again
	ControlBankPayoutRefusal  ControlKind = "bank_payout_refusal"  // the bank did not pay an order, which may be paid again or give its crypto back
	ControlLineFreed          ControlKind = "line_freed"           // a statement's line is no longer that of the payout that an officer named
	ControlSwapMarks          ControlKind = "swap_marks"           // how much of an asset the treasury wallet of a network should have
	ControlSwapResolution     ControlKind = "swap_resolution"      // a swap is refunded, or the difference that it left is accepted
	ControlMultisigWallet     ControlKind = "multisig_wallet"      // an account of several owners becomes a wallet of the treasury
	// House money: only treasury officers propose and confirm it.
	ControlJournalEntry ControlKind = "journal_entry"  // what happened to the house's money outside of Kivuko
	ControlFeeSweep     ControlKind = "fee_sweep"      // earned fees go to the treasury
	ControlFeeSweepRule ControlKind = "fee_sweep_rule" // when a schedule sweeps earned fees by itself
)

// ControlStatus is the state of a change of the controls.
type ControlStatus string

// The states.
const (
	ControlPending   ControlStatus = "pending"   // nothing has changed yet
	ControlConfirmed ControlStatus = "confirmed" // a second officer agreed, and it took effect at that moment
	ControlRejected  ControlStatus = "rejected"  // a second officer refused it, or the proposer withdrew it
)

// ControlKinds lists the kinds in a fixed order.
func ControlKinds() []ControlKind {
	return []ControlKind{
		ControlHouseLimits, ControlUserLimits, ControlStaffAccess, ControlMomoTerms, ControlTreasuryAllocation, ControlFloatMove,
		ControlExceptionDecision, ControlPayoutAttestation, ControlOrderAddress, ControlRefundDecision, ControlDatabaseRelease,
		ControlDenyRemoval, ControlFeeProfile, ControlFXRate, ControlBreakerClosed, ControlQuarantine, ControlFreezeLift, ControlNonceReopened,
		ControlEscrowPolicy, ControlOTCLimit,
		ControlBankAccount, ControlBankDay, ControlWithdrawalFailure, ControlInventory, ControlLineFreed, ControlBankRefund, ControlBankRefundFailure, ControlBankPayoutRefusal, ControlSwapMarks, ControlSwapResolution, ControlMultisigWallet, ControlJournalEntry, ControlFeeSweep, ControlFeeSweepRule,
	}
}

// OfTreasury reports whether only treasury officers propose and confirm changes of the kind.
func (k ControlKind) OfTreasury() bool {
	return k == ControlJournalEntry || k == ControlFeeSweep || k == ControlFeeSweepRule
}

// ConfirmedBy reports whether an officer of the role may confirm changes of the kind that a colleague proposed.
func (k ControlKind) ConfirmedBy(r Role) bool {
	return r.Officer() && (!k.OfTreasury() || r == RoleTreasury)
}

// ByColleague is an admin or a treasury officer who neither proposed the change nor benefits from it.
const ByColleague = "colleague"

// ControlChangeMachine governs changes of the controls.
var ControlChangeMachine = Machine[ControlStatus]{
	Name: "control_change", Initial: ControlPending,
	Transitions: []Transition[ControlStatus]{
		{ControlPending, ControlConfirmed, ByColleague, "before it expires, and what it replaces has not changed since it was proposed"},
		{ControlPending, ControlRejected, ByColleague, "a colleague refused it, or the proposer withdrew it"},
	},
	Final: []ControlStatus{ControlConfirmed, ControlRejected},
}

// Limits of changes of the controls.
const (
	ControlChangeLife        = 7 * 24 * time.Hour // then it can't be confirmed any more
	MaxPendingControlChanges = 100                // of the house, so that all of them fit on one page
)

// ControlChange is a proposal to loosen a control that protects money. It takes effect when a second officer confirms it.
// Was and Change have the fields that the API shows, and only those that differ.
type ControlChange struct {
	ID         uuid.UUID
	Kind       ControlKind
	SubjectID  uuid.UUID // who benefits; zero for the house's limits
	Was        json.RawMessage
	Change     json.RawMessage
	ProposedBy uuid.UUID
	ProposedAt time.Time
	ExpiresAt  time.Time
	Status     ControlStatus
	DecidedBy  uuid.UUID
	DecidedAt  time.Time
	Note       string // of the officer who decided
}

// Digest is the SHA-256 of what a second officer decides about. Nothing of it ever changes.
func (c ControlChange) Digest() string {
	h := sha256.New()
	for _, field := range []string{
		c.ID.String(), string(c.Kind), c.SubjectID.String(), string(c.Was), string(c.Change), c.ProposedBy.String(), c.ExpiresAt.UTC().Format(time.RFC3339Nano),
	} {
		fmt.Fprintf(h, "%d\n%s\n", len(field), field)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Officer reports whether r approves transfers and confirms changes of the controls.
func (r Role) Officer() bool { return r == RoleAdmin || r == RoleTreasury }
