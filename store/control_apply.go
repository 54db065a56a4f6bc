package store

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"kivuko/exchange"
)

// changes apply the kinds of changes that book nothing, bookings those that do.
var (
	changes = map[exchange.ControlKind]func(unitTx, context.Context, exchange.ControlChange, exchange.Principal) error{
		exchange.ControlHouseLimits:       unitTx.applyHouseLimits,
		exchange.ControlUserLimits:        unitTx.applyUserLimits,
		exchange.ControlStaffAccess:       unitTx.applyStaffAccess,
		exchange.ControlMomoTerms:         unitTx.applyMomoTerms,
		exchange.ControlOrderAddress:      unitTx.applyOrderAddress,
		exchange.ControlPayoutAttestation: unitTx.applyAttestation,
		exchange.ControlRefundDecision:    unitTx.applyRefundDecision,
		exchange.ControlDatabaseRelease:   unitTx.applyDatabaseRelease,
		exchange.ControlDenyRemoval:       unitTx.applyUndeny,
		exchange.ControlFeeProfile:        unitTx.applyProfile,
		exchange.ControlFXRate:            unitTx.applyRate,
		exchange.ControlBreakerClosed:     unitTx.applyBreakerClosed,
		exchange.ControlQuarantine:        unitTx.applySettlement,
		exchange.ControlFreezeLift:        unitTx.applyLift,
		exchange.ControlNonceReopened:     unitTx.applyReopening,
		exchange.ControlEscrowPolicy:      unitTx.applyEscrowPolicy,
		exchange.ControlBankAccount:       unitTx.applyBankAccount,
		exchange.ControlBankDay:           unitTx.applyBankDay,
		exchange.ControlOTCLimit:          unitTx.applyOTCLimit,
		exchange.ControlFeeSweepRule:      unitTx.applyFeeSweepRule,
		exchange.ControlLineFreed:         unitTx.applyLineFreed,
		exchange.ControlSwapMarks:         unitTx.applySwapMarks,
		exchange.ControlMultisigWallet:    unitTx.applyMultisigWallet,
	}
	bookings = map[exchange.ControlKind]func(unitTx, context.Context, exchange.ControlChange, exchange.Principal) (exchange.Posting, error){
		exchange.ControlTreasuryAllocation: unitTx.applyAllocation,
		exchange.ControlFloatMove:          unitTx.applyFloatMove,
		exchange.ControlExceptionDecision:  unitTx.applyDecision,
		exchange.ControlJournalEntry:       unitTx.applyJournal,
		exchange.ControlWithdrawalFailure:  unitTx.applyWithdrawalFailure,
		exchange.ControlFeeSweep:           unitTx.applyFeeSweep,
		exchange.ControlInventory:          unitTx.applyInventory,
		exchange.ControlBankRefund:         unitTx.applyBankRefund,
		exchange.ControlBankRefundFailure:  unitTx.applyBankRefundFailure,
		exchange.ControlBankPayoutRefusal:  unitTx.applyBankPayoutRefusal,
		exchange.ControlSwapResolution:     unitTx.applySwapResolution,
	}
)

// apply applies a confirmed change. Its postings belong to the transaction of the confirmation.
func (t unitTx) apply(ctx context.Context, c exchange.ControlChange, by exchange.Principal) (exchange.Posting, error) {
	if book, ok := bookings[c.Kind]; ok {
		return book(t, ctx, c, by)
	}
	if change, ok := changes[c.Kind]; ok {
		return exchange.Posting{}, change(t, ctx, c, by)
	}
	return exchange.Posting{}, exchange.Errorf(exchange.CodeInternal, "unknown kind of control change: %s", c.Kind)
}

// unchanged refuses a change when the current value is not the one it was proposed to replace.
func unchanged(c exchange.ControlChange, now any) error {
	b, err := json.Marshal(now)
	if err != nil {
		return err
	}
	var was, is any
	if err := errors.Join(json.Unmarshal(c.Was, &was), json.Unmarshal(b, &is)); err != nil {
		return err
	}
	if !reflect.DeepEqual(was, is) {
		return exchange.Errorf(exchange.CodeStateConflict, "The value that the change replaces has changed since it was proposed. Propose it again.")
	}
	return nil
}
