package activities

import (
	"context"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// What a late look at a payout can find, beside RefundPaid and RefundPending.
const (
	// PayoutSilent says that nobody claims that the payout was made.
	PayoutSilent = "silent"
	// PayoutDenied says that somebody claimed it, and the operator has denied it twice since.
	PayoutDenied = "denied"
)

// LatePayoutStep is what a late look at a payout found. An exception is named when the payout was made beside
// another payment of its refund.
type LatePayoutStep struct {
	State     string    `json:"state"`
	Exception uuid.UUID `json:"exception,omitzero"`
	Undecided bool      `json:"undecided,omitempty"` // nobody has decided about the exception
	// Elsewhere says that the order's own flow asks a person about it: the crypto that was to go back is still here.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// CheckLatePayout looks at a payout about which something came when its flow was over, or about which everything
// seemed said. A success is believed when two voices agree on it, whatever was said before: then it is booked, and
// where another payment has completed the refund, as paid twice. While one voice alone claims it, it is
// RefundPending; a denial counts only when it is younger than the claim.
func (r *Refunds) CheckLatePayout(ctx context.Context, in CheckRefundInput) (LatePayoutStep, error) {
	ctx, stop := beat(ctx)
	defer stop()
	a, err := r.Store.Attempt(ctx, in.AttemptID)
	if err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	stored, err := r.Store.Callbacks(ctx, a.ID)
	if err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	h := hear(ctx, r.Operator, a, stored)
	state, o := h.judge()
	if state == RefundPending && in.Ask { // where nothing is claimed nothing is asked: each answer comes back here
		a.CallbackToken = r.token(a.ID)
		h.add(exchange.CallbackStatus, r.Operator.Resolve(ctx, a))
		state, o = h.judge()
	}
	if state == RefundPaid {
		if err := r.Store.CompleteRefund(ctx, in.RefundID, a.ID, o); err != nil {
			return LatePayoutStep{}, Failure(ctx, err)
		}
	}
	return lateStep(ctx, r.Store, a.ID, state)
}

// doubleStore finds what was paid twice.
type doubleStore interface {
	PaidTwiceBy(ctx context.Context, attempt uuid.UUID) (exchange.PaymentException, bool, error)
}

func lateStep(ctx context.Context, store doubleStore, attempt uuid.UUID, state string) (LatePayoutStep, error) {
	step := LatePayoutStep{State: state}
	if state != RefundPaid {
		return step, nil
	}
	x, found, err := store.PaidTwiceBy(ctx, attempt)
	if found {
		step.Exception, step.Undecided = x.ID, x.Status == exchange.ExcOpen
	}
	return step, Failure(ctx, err)
}

// CheckLateOrderPayout is CheckLatePayout for an order's own payout. One that proves true while the order still waits
// completes it; after that, and after the crypto was promised back, it is booked as paid twice. The claim of one voice
// is enough to keep the crypto here until a person has looked.
func (p *Payouts) CheckLateOrderPayout(ctx context.Context, in CheckPayoutInput) (LatePayoutStep, error) {
	ctx, stop := beat(ctx)
	defer stop()
	a, err := p.Store.Attempt(ctx, in.AttemptID)
	if err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	stored, err := p.Store.Callbacks(ctx, a.ID)
	if err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	h := hear(ctx, p.Operator, a, stored)
	state, o := h.judge()
	if state == RefundPending && in.Ask { // where nothing is claimed nothing is asked: each answer comes back here
		a.CallbackToken = payoutToken(p.CallbackKey, a.ID)
		h.add(exchange.CallbackStatus, p.Operator.Resolve(ctx, a))
		state, o = h.judge()
	}
	switch state {
	case RefundPaid:
		_, err = p.Store.CompleteOrderPayout(ctx, a.OrderID, a.ID, o)
	case RefundPending:
		err = p.Store.DoubtOrderPayout(ctx, a.OrderID, true)
	case PayoutDenied:
		err = p.Store.DoubtOrderPayout(ctx, a.OrderID, false)
	}
	if err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	return p.lateStep(ctx, a, state)
}

func (p *Payouts) lateStep(ctx context.Context, a exchange.PaymentAttempt, state string) (LatePayoutStep, error) {
	step, err := lateStep(ctx, p.Store, a.ID, state)
	if err == nil && step.Undecided {
		step.Elsewhere, err = p.Store.CryptoIsHere(ctx, a.OrderID)
	}
	return step, Failure(ctx, err)
}

// hear reads what was stored of a payout's callbacks, in the order in which they came.
func hear(ctx context.Context, operator MomoOperator, a exchange.PaymentAttempt, stored []exchange.MomoCallback) hearsay {
	h := hearsay{attempt: a}
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

// hearsay is what was said of one payout, in the order in which it was said.
type hearsay struct {
	attempt exchange.PaymentAttempt
	result  exchange.Observation            // the newest result that says paid
	yes     map[string]exchange.Observation // answers that say paid, by ticket
	no      map[string]bool                 // tickets of answers that deny it, since the last claim
}

func (h *hearsay) add(kind exchange.CallbackKind, o exchange.Observation) {
	if kind != exchange.CallbackResult && kind != exchange.CallbackStatus {
		return // these say nothing of a payout
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
			return // a result that says failed is what everybody believed before
		}
		if h.no == nil {
			h.no = map[string]bool{}
		}
		h.no[o.Ticket] = true
	case exchange.SeenPending, exchange.SeenUnknown, exchange.SeenNoAnswer: // these say nothing
	}
}

// judge weighs what was said: paid with the observation that proves it, denied, pending or silent.
func (h *hearsay) judge() (string, exchange.Observation) {
	e := payoutEvidence{attempt: h.attempt}
	claimed := h.result.State == exchange.SeenSucceeded
	if claimed && h.attempt.Status == exchange.AttemptSucceeded && h.result.Receipt == h.attempt.Receipt {
		return RefundPaid, h.result // a repetition of what is booked
	}
	var before exchange.Observation
	for _, o := range h.yes {
		switch {
		case claimed && h.result.Receipt != "" && e.agrees(h.result, o):
			return RefundPaid, h.result
		case before.Receipt != "" && e.agrees(before, o):
			return RefundPaid, before
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
	return RefundPending, exchange.Observation{}
}

// SettleLatePayout books a payout as made because a person found it at the operator. The command's note is its
// receipt.
func (r *Refunds) SettleLatePayout(ctx context.Context, in SettleRefundInput) (LatePayoutStep, error) {
	ctx, stop := beat(ctx)
	defer stop()
	o, err := vouchedReceipt(ctx, r.Store, in.Proof, r.Now())
	if err == nil {
		err = r.Store.CompleteRefund(ctx, in.RefundID, in.AttemptID, o)
	}
	if err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	return lateStep(ctx, r.Store, in.AttemptID, RefundPaid)
}

// SettleLateOrderPayout is SettleLatePayout for an order's own payout.
func (p *Payouts) SettleLateOrderPayout(ctx context.Context, in SettlePayoutInput) (LatePayoutStep, error) {
	ctx, stop := beat(ctx)
	defer stop()
	o, err := p.vouched(ctx, in.OrderID, in.Proof)
	if err == nil {
		_, err = p.Store.CompleteOrderPayout(ctx, in.OrderID, in.AttemptID, o)
	}
	if err != nil {
		return LatePayoutStep{}, Failure(ctx, err)
	}
	return p.lateStep(ctx, exchange.PaymentAttempt{ID: in.AttemptID, OrderID: in.OrderID}, RefundPaid)
}
