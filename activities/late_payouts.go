package activities

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/momo"
)

// What a late check of a payout can find, besides PayoutPaid and PayoutPending.
const (
	// PayoutNoClaim means that no source claims that the payout was made.
	PayoutNoClaim = string(momo.NoClaim)
	// PayoutDenied means that a source claimed it, and the operator has denied it twice since, or two officers have.
	PayoutDenied = string(momo.Denied)
)

// LatePayoutStep is the result of a late check of a payout. Exception is set when the payout was made in addition to another
// payment of its object.
type LatePayoutStep struct {
	State     string    `json:"state"`
	Exception uuid.UUID `json:"exception,omitzero"`
	Undecided bool      `json:"undecided,omitempty"` // the exception waits for a decision
	// Elsewhere is set when the order's own flow asks for the decision: the crypto to be returned is still here.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// CheckLatePayout checks a payout when evidence comes after its flow ended or after it was settled. A success is booked when
// two sources confirm it, whatever was recorded before: it completes an object that still waits, and is else booked as paid
// twice. While only one source claims it, the state is PayoutPending; that is enough to begin no other payout of the object
// and to keep an order's crypto here. A denial, or the declaration of two officers, counts only if it is newer than the claim.
func (p *Payouts) CheckLatePayout(ctx context.Context, in CheckPayoutInput) (LatePayoutStep, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	a, err := p.Store.Attempt(ctx, in.AttemptID)
	if err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	stored, err := p.Store.Callbacks(ctx, a.ID)
	if err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	e := momo.Evidence{Attempt: a, Late: true}
	if e.Reports, err = p.reports(ctx, a.ID, stored); err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	v := momo.Judge(e)
	if v.State == momo.Pending {
		if v, err = p.declined(ctx, e, stored, v); err != nil {
			return LatePayoutStep{}, Failure(ctx, err)
		}
	}
	if v.State == momo.Pending && in.Ask { // without a claim nothing is asked, because each answer starts this check again
		answer, err := p.query(ctx, a)
		if err != nil {
			return LatePayoutStep{}, Failure(ctx, err)
		}
		e.Reports = append(e.Reports, answer)
		v = momo.Judge(e)
	}
	switch v.State {
	case momo.Paid:
		_, err = p.Store.CompletePayout(ctx, a.Object, a.ID, v.Proof)
	case momo.Pending, momo.Denied:
		if v.Claimed || v.State == momo.Denied { // a report from elsewhere is no claim: it only makes us ask
			err = p.Store.DoubtPayout(ctx, a.Object, v.State == momo.Pending)
		}
	default: // nothing to record
	}
	if err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	return p.lateStep(ctx, a.Object, a.ID, string(v.State))
}

// declined turns a claim into a denial when two officers have declared since that the payout was not made. A later claim counts
// again.
func (p *Payouts) declined(ctx context.Context, e momo.Evidence, stored []exchange.MomoCallback, v momo.Verdict) (momo.Verdict, error) {
	at, err := p.Store.ClaimDeclined(ctx, e.Attempt.ID)
	if err != nil || at.IsZero() {
		return v, err
	}
	later := slices.DeleteFunc(slices.Clone(stored), func(c exchange.MomoCallback) bool { return !c.ReceivedAt.After(at) })
	if e.Reports, err = p.reports(ctx, e.Attempt.ID, later); err != nil {
		return v, err
	}
	if momo.Judge(e).State == momo.NoClaim {
		v.State = momo.Denied
	}
	return v, nil
}

// lateStep adds the exception about a payout that was made in addition to another payment.
func (p *Payouts) lateStep(ctx context.Context, of exchange.MomoObject, attempt uuid.UUID, state string) (LatePayoutStep, error) {
	step := LatePayoutStep{State: state}
	if state != PayoutPaid {
		return step, nil
	}
	x, found, err := p.Store.PaidTwiceBy(ctx, attempt)
	if found {
		step.Exception, step.Undecided = x.ID, x.Status == exchange.ExcOpen
	}
	if err == nil && step.Undecided && of.Type == exchange.MomoOrder {
		step.Elsewhere, err = p.Store.CryptoIsHere(ctx, of.ID)
	}
	return step, Failure(ctx, err)
}

// SettleLatePayout books a payout as made because our operator found it at the mobile money operator. The command's note is
// its receipt.
func (p *Payouts) SettleLatePayout(ctx context.Context, in SettlePayoutInput) (LatePayoutStep, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	o, err := p.attested(ctx, in.Object, in.Proof)
	if err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	if _, err = p.Store.CompletePayout(ctx, in.Object, in.AttemptID, o); err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	return p.lateStep(ctx, in.Object, in.AttemptID, PayoutPaid)
}
