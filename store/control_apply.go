package store

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"kivuko/exchange"
)

// apply applies a confirmed change. Its postings belong to the transaction of the confirmation.
func (t unitTx) apply(ctx context.Context, c exchange.ControlChange, by exchange.Principal) (exchange.Posting, error) {
	var none exchange.Posting
	switch c.Kind {
	case exchange.ControlHouseLimits:
		return none, t.applyHouseLimits(ctx, c, by)
	case exchange.ControlUserLimits:
		return none, t.applyUserLimits(ctx, c, by)
	case exchange.ControlStaffAccess:
		return none, t.applyStaffAccess(ctx, c, by)
	case exchange.ControlMomoTerms:
		return none, t.applyMomoTerms(ctx, c, by)
	case exchange.ControlTreasuryAllocation:
		return t.applyAllocation(ctx, c, by)
	case exchange.ControlFloatMove:
		return t.applyFloatMove(ctx, c, by)
	case exchange.ControlExceptionDecision:
		return t.applyDecision(ctx, c, by)
	case exchange.ControlOrderAddress:
		return none, t.applyOrderAddress(ctx, c, by)
	case exchange.ControlPayoutAttestation:
		return none, t.applyAttestation(ctx, c, by)
	case exchange.ControlRefundDecision:
		return none, t.applyRefundDecision(ctx, c)
	case exchange.ControlDatabaseRelease:
		return none, t.applyDatabaseRelease(ctx, c)
	case exchange.ControlDenyRemoval:
		return none, t.applyUndeny(ctx, c, by)
	case exchange.ControlFeeProfile:
		return none, t.applyProfile(ctx, c, by)
	case exchange.ControlFXRate:
		return none, t.applyRate(ctx, c, by)
	case exchange.ControlBreakerClosed:
		return none, t.applyBreakerClosed(ctx, c, by)
	case exchange.ControlQuarantine:
		return none, t.applySettlement(ctx, c, by)
	case exchange.ControlFreezeLift:
		return none, t.applyLift(ctx, c, by)
	case exchange.ControlNonceReopened:
		return none, t.applyReopening(ctx, c, by)
	case exchange.ControlEscrowPolicy:
		return none, t.applyEscrowPolicy(ctx, c, by)
	case exchange.ControlBankAccount:
		return none, t.applyBankAccount(ctx, c, by)
	case exchange.ControlBankDay:
		return none, t.applyBankDay(ctx, c, by)
	case exchange.ControlJournalEntry:
		return t.applyJournal(ctx, c, by)
	}
	return none, exchange.Errorf(exchange.CodeInternal, "unknown kind of control change: %s", c.Kind)
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
