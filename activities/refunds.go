package activities

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// RefundStore is the database interface of decisions about refunds.
type RefundStore interface {
	commandStore
	// ConfirmPayee confirms a doubtful payee by a command that was written at a time.
	ConfirmPayee(ctx context.Context, refundID uuid.UUID, written time.Time, by exchange.Principal) (exchange.Refund, error)
	RefundException(ctx context.Context, exceptionID uuid.UUID, by exchange.Principal) (exchange.Refund, error)
	ResolveException(ctx context.Context, id uuid.UUID, to exchange.ExceptionStatus, note string, by exchange.Principal) (exchange.PaymentException, error)
}

// Refunds carries out decisions about refunds by mobile money and about payment exceptions. It is registered on the momo
// queue.
type Refunds struct{ Store RefundStore }

// ConfirmPayeeInput lets a refund go to the phone that was prompted, although the mobile money operator names another payer.
type ConfirmPayeeInput struct {
	RefundID uuid.UUID `json:"refund_id"`
	Proof    Proof     `json:"proof"`
}

// ConfirmPayee records our operator's decision about a doubtful payee. A command about an exception, or one from before the
// payee was in doubt, only asks for the refund and is refused: of two operators who ask at once, the second must not confirm
// the payee by accident.
func (r *Refunds) ConfirmPayee(ctx context.Context, in ConfirmPayeeInput) error {
	ctx, stop := heartbeat(ctx)
	defer stop()
	if in.Proof.Object.Type == ObjectException {
		return Failure(ctx, exchange.Errorf(exchange.CodeStateConflict, "The refund is already open. Confirm its payee with a command about the order."))
	}
	c, by, err := r.commanded(ctx, in.Proof)
	if err == nil {
		_, err = r.Store.ConfirmPayee(ctx, in.RefundID, c.CreatedAt, by)
	}
	return Failure(ctx, err)
}

// ExceptionInput decides about a payment exception.
type ExceptionInput struct {
	ExceptionID uuid.UUID `json:"exception_id"`
	Proof       Proof     `json:"proof"`
}

// RefundException opens the refund of a payment exception.
func (r *Refunds) RefundException(ctx context.Context, in ExceptionInput) (RefundOpened, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	refund, err := actedOn(ctx, r.Store, in.Proof.Behalf(), func(by exchange.Principal) (exchange.Refund, error) {
		return r.Store.RefundException(ctx, in.ExceptionID, by)
	})
	return RefundOpened{RefundID: refund.ID, OrderState: OrderState{OrderID: refund.OrderID}}, Failure(ctx, err)
}

// ResolveException accepts a payment exception as it is, with the command's note as the reason.
func (r *Refunds) ResolveException(ctx context.Context, in ExceptionInput) error {
	ctx, stop := heartbeat(ctx)
	defer stop()
	c, by, err := r.commanded(ctx, in.Proof)
	if err == nil {
		_, err = r.Store.ResolveException(ctx, in.ExceptionID, exchange.ExcAccepted, c.Note, by)
	}
	return Failure(ctx, err)
}

// commanded returns a command and who gave it.
func (r *Refunds) commanded(ctx context.Context, p Proof) (exchange.OperatorCommand, exchange.Principal, error) {
	c, err := r.Store.UseCommand(ctx, p.CommandID, p.Object.Type, p.Object.ID)
	if err != nil {
		return c, exchange.Principal{}, err
	}
	by, err := actor(ctx, r.Store, p.Behalf())
	return c, by, err
}
