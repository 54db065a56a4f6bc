package activities

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// SettlePayoutInput ends a payout that our operator found at the mobile money operator, or made by other means. A zero
// AttemptID stands for the open attempt of the object, or else for the newest one.
type SettlePayoutInput struct {
	Object    exchange.MomoObject `json:"object"`
	AttemptID uuid.UUID           `json:"attempt_id,omitzero"`
	Proof     Proof               `json:"proof"`
	// Lost says that the payout has no attempt that may have paid it: only one that a put-back database lost is booked then.
	Lost bool `json:"lost,omitempty"`
}

// SettlePayout completes a payout by command. The command's note is the receipt: of the payout, or, for a refund that waits
// for an officer, of a payment by other means.
func (p *Payouts) SettlePayout(ctx context.Context, in SettlePayoutInput) error {
	ctx, stop := heartbeat(ctx)
	defer stop()
	o, err := p.attested(ctx, in.Object, in.Proof)
	if err == nil && in.Lost {
		return Failure(ctx, p.bookLost(ctx, in.Object, o.Receipt))
	}
	if err == nil && in.AttemptID == uuid.Nil {
		in.AttemptID, err = p.toSettle(ctx, in.Object)
	}
	if err == nil {
		var by exchange.Principal
		if by, err = actor(ctx, p.Store, in.Proof.Behalf()); err == nil {
			err = p.Store.SettlePayout(ctx, in.Object, in.AttemptID, o, by)
		}
	}
	return Failure(ctx, err)
}

// bookLost books a payout that was made before the database was put back, as the object's next attempt. It sends nothing.
func (p *Payouts) bookLost(ctx context.Context, of exchange.MomoObject, receipt string) error {
	_, try, err := p.latest(ctx, of.ID, 1)
	if err != nil {
		return err
	}
	return p.Store.BookLostPayout(ctx, of, exchange.PaymentAttempt{
		ID: PayoutID(of.ID, try+1), Provider: p.Provider, Status: exchange.AttemptCreated, CreatedAt: p.Now(),
	}, receipt)
}

// toSettle returns the open attempt of an object, or else the newest one: an earlier one was refused, so its receipt can't
// be the one that was found. It returns the zero id when there is none.
func (p *Payouts) toSettle(ctx context.Context, of exchange.MomoObject) (uuid.UUID, error) {
	own, err := p.Store.PayoutsOf(ctx, of)
	if err != nil || len(own) == 0 {
		return uuid.Nil, err
	}
	open := slices.IndexFunc(own, func(a exchange.PaymentAttempt) bool {
		return a.Status == exchange.AttemptCreated || a.Status == exchange.AttemptAccepted || a.Status == exchange.AttemptUnknown
	})
	return own[max(0, open)].ID, nil
}

// KeepPayoutInput keeps a payout that was proven after the order failed.
type KeepPayoutInput struct {
	OrderID uuid.UUID `json:"order_id"`
	Proof   Proof     `json:"proof"`
}

// KeepPayout keeps a payout instead of the refund of its order. The command's note is the receipt: of the proven attempt, or
// of the newest one, which it proves.
func (p *Payouts) KeepPayout(ctx context.Context, in KeepPayoutInput) error {
	ctx, stop := heartbeat(ctx)
	defer stop()
	of := exchange.OrderObject(in.OrderID)
	o, err := p.attested(ctx, of, in.Proof)
	if err != nil {
		return Failure(ctx, err)
	}
	own, err := p.Store.PayoutsOf(ctx, of)
	if err != nil {
		return Failure(ctx, err)
	}
	if len(own) == 0 {
		return Failure(ctx, exchange.Errorf(exchange.CodeStateConflict, "The order has no payout to keep."))
	}
	if !slices.ContainsFunc(own, func(a exchange.PaymentAttempt) bool {
		return a.Status == exchange.AttemptSucceeded && a.Receipt == o.Receipt
	}) {
		if _, err := p.Store.CompletePayout(ctx, of, own[0].ID, o); err != nil {
			return Failure(ctx, err)
		}
	}
	by, err := actor(ctx, p.Store, in.Proof.Behalf())
	if err == nil {
		_, err = p.Store.KeepOrderPayout(ctx, in.OrderID, by)
	}
	return Failure(ctx, err)
}

// attested returns a payout that our operator found by its receipt, which is the note of the command. Above the limit for
// one officer, a second one must have confirmed the same receipt; else CodeForbidden.
func (p *Payouts) attested(ctx context.Context, of exchange.MomoObject, proof Proof) (exchange.Observation, error) {
	c, err := p.Store.UseCommand(ctx, proof.CommandID, proof.Object.Type, proof.Object.ID)
	if err != nil {
		return exchange.Observation{}, err
	}
	o := exchange.Observation{State: exchange.SeenSucceeded, Receipt: exchange.ReceiptIn(c.Note), Code: string(exchange.ClassAttested), Class: exchange.ClassAttested, Text: "by command " + c.ID.String(), At: p.Now()}
	if o.Receipt == "" {
		return o, exchange.Invalid(exchange.FieldError{Pointer: "/note", Code: "receipt", Message: "must be the receipt of the payment"})
	}
	second, err := p.Store.ReceiptNeedsSecond(ctx, of, o.Receipt)
	if err == nil && second {
		err = exchange.Errorf(exchange.CodeForbidden, "A payout of this value can be settled by its receipt only after a second officer has confirmed the receipt.")
	}
	return o, err
}

// commandStore marks an operator's command as used, and says who gave it.
type commandStore interface {
	UseCommand(ctx context.Context, id uuid.UUID, objectType string, objectID uuid.UUID) (exchange.OperatorCommand, error)
	actingStore
}
