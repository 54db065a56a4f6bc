package activities

import (
	"context"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// What a late check of a payout can find, besides PayoutPaid and PayoutPending.
const (
	// PayoutSilent means that no source claims that the payout was made.
	PayoutSilent = "silent"
	// PayoutDenied means that a source claimed it, and the operator has denied it twice since.
	PayoutDenied = "denied"
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
// and to keep an order's crypto here. A denial counts only if it is newer than the claim.
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
	h := readLateEvidence(ctx, p.Operator, a, stored)
	state, o := h.judge()
	if state == PayoutPending && in.Ask { // without a claim nothing is asked, because each answer starts this check again
		a.CallbackToken = payoutToken(p.CallbackKey, a.ID)
		h.add(exchange.CallbackStatus, p.Operator.Resolve(ctx, a))
		state, o = h.judge()
	}
	switch state {
	case PayoutPaid:
		_, err = p.Store.CompletePayout(ctx, a.Pays(), a.ID, o)
	case PayoutPending, PayoutDenied:
		err = p.Store.DoubtPayout(ctx, a.Pays(), state == PayoutPending)
	}
	if err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	return p.lateStep(ctx, a.Pays(), a.ID, state)
}

// lateStep adds the exception about a payout that was made in addition to another payment.
func (p *Payouts) lateStep(ctx context.Context, of exchange.PayoutObject, attempt uuid.UUID, state string) (LatePayoutStep, error) {
	step := LatePayoutStep{State: state}
	if state != PayoutPaid {
		return step, nil
	}
	x, found, err := p.Store.PaidTwiceBy(ctx, attempt)
	if found {
		step.Exception, step.Undecided = x.ID, x.Status == exchange.ExcOpen
	}
	if err == nil && step.Undecided && of.Type == exchange.PayoutOrder {
		step.Elsewhere, err = p.Store.CryptoIsHere(ctx, of.ID)
	}
	return step, Failure(ctx, err)
}

// readLateEvidence reads the stored callbacks of a payout, in the order in which they came.
func readLateEvidence(ctx context.Context, operator MomoOperator, a exchange.PaymentAttempt, stored []exchange.MomoCallback) lateEvidence {
	h := lateEvidence{attempt: a}
	for _, c := range stored {
		seen, err := operator.ParseCallback(c.Kind, c.Body)
		if err != nil {
			activity.GetLogger(ctx).Warn("a stored callback can't be read", "attempt", a.ID, "callback", c.ID)
			continue
		}
		for _, o := range seen {
			if id := o.Refs.OriginatorConversationID; id == "" || id == a.ID.String() {
				h.add(c.Kind, o)
			}
		}
	}
	return h
}

// lateEvidence is the evidence about one payout.
type lateEvidence struct {
	attempt exchange.PaymentAttempt
	result  exchange.Observation            // the newest result that says paid
	yes     map[string]exchange.Observation // answers that say paid, by ticket
	no      map[string]bool                 // tickets of answers that deny it, since the last claim
}

func (h *lateEvidence) add(kind exchange.CallbackKind, o exchange.Observation) {
	if kind != exchange.CallbackResult && kind != exchange.CallbackStatus {
		return // no evidence about a payout
	}
	switch o.State {
	case exchange.SeenSucceeded:
		h.no = nil
		if kind == exchange.CallbackResult {
			h.result = o
			return
		}
		if h.yes == nil {
			h.yes = map[string]exchange.Observation{}
		}
		h.yes[o.Ticket] = o
	case exchange.SeenFailed:
		if kind != exchange.CallbackStatus {
			return // a failed result only confirms what is recorded
		}
		if h.no == nil {
			h.no = map[string]bool{}
		}
		h.no[o.Ticket] = true
	case exchange.SeenPending, exchange.SeenUnknown, exchange.SeenNoAnswer: // no evidence
	}
}

// judge returns the state: paid with the observation that proves it, denied, pending or silent.
func (h *lateEvidence) judge() (string, exchange.Observation) {
	e := payoutEvidence{attempt: h.attempt}
	claimed := h.result.State == exchange.SeenSucceeded
	if claimed && h.attempt.Status == exchange.AttemptSucceeded && h.result.Receipt == h.attempt.Receipt {
		return PayoutPaid, h.result // already booked
	}
	var before exchange.Observation
	for _, o := range h.yes {
		switch {
		case claimed && h.result.Receipt != "" && e.agrees(h.result, o):
			return PayoutPaid, h.result
		case before.Receipt != "" && e.agrees(before, o):
			return PayoutPaid, before
		}
		if o.Receipt != "" {
			before = o
		}
	}
	switch {
	case !claimed && len(h.yes) == 0:
		return PayoutSilent, exchange.Observation{}
	case len(h.no) > 1:
		return PayoutDenied, exchange.Observation{}
	}
	return PayoutPending, exchange.Observation{}
}

// SettleLatePayout books a payout as made because our operator found it at the mobile money operator. The command's note is
// its receipt.
func (p *Payouts) SettleLatePayout(ctx context.Context, in SettlePayoutInput) (LatePayoutStep, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	o, err := p.vouched(ctx, in.Object, in.Proof)
	if err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	if _, err = p.Store.CompletePayout(ctx, in.Object, in.AttemptID, o); err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	return p.lateStep(ctx, in.Object, in.AttemptID, PayoutPaid)
}
