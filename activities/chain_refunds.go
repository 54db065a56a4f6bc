package activities

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// ChainRefundStore is what flows change of refunds in crypto. Every method is one transaction and may be called again.
type ChainRefundStore interface {
	OpenChainRefund(ctx context.Context, r exchange.ChainRefundRequest, by exchange.Principal) (exchange.Order, exchange.Refund, error)
	ApproveRefundPayment(ctx context.Context, refundID uuid.UUID) (exchange.RefundStanding, error)
	AddressRefund(ctx context.Context, refundID, requestID uuid.UUID, by exchange.Principal) (exchange.RefundStanding, error)
	DismissClaim(ctx context.Context, refundID uuid.UUID, by exchange.Principal) (exchange.RefundStanding, error)
	DecideRefund(ctx context.Context, refundID uuid.UUID, token string, action exchange.ApprovalAction) (exchange.RefundStanding, error)
	RecordRefusedRefundDecision(ctx context.Context, refundID uuid.UUID, action exchange.ApprovalAction, door exchange.ApprovalDoor, code exchange.Code) error
}

// ChainRefunds moves the rows of refunds in crypto.
type ChainRefunds struct {
	Store ChainRefundStore
}

// OpenChainRefundInput asks for the crypto of an order, or of an exception, back.
type OpenChainRefundInput struct {
	OrderID     uuid.UUID `json:"order_id,omitzero"`
	ExceptionID uuid.UUID `json:"exception_id,omitzero"`
	// RequestID is of what a person asked for through the API. Actor asks, or else Proof's; nobody where a flow does.
	RequestID uuid.UUID `json:"request_id,omitzero"`
	Actor     Actor     `json:"actor,omitzero"`
	Proof     Proof     `json:"proof,omitzero"`
	Reason    string    `json:"reason,omitempty"`
}

// OpenChainRefund promises crypto back. An order fails by it. It is refused with CodeStateConflict while the payee may
// have got the shillings.
func (c *ChainRefunds) OpenChainRefund(ctx context.Context, in OpenChainRefundInput) (RefundOpened, error) {
	by := in.Actor
	if by.UserID == uuid.Nil {
		by = in.Proof.Actor()
	}
	r := exchange.ChainRefundRequest{OrderID: in.OrderID, ExceptionID: in.ExceptionID, RequestID: in.RequestID, Reason: in.Reason}
	order, refund, err := c.Store.OpenChainRefund(ctx, r, by.Principal())
	return RefundOpened{OrderState: stateOf(order), RefundID: refund.ID}, Failure(ctx, err)
}

// ChainRefundInput names a refund in crypto.
type ChainRefundInput struct {
	RefundID uuid.UUID `json:"refund_id"`
}

// ChainRefundState is where a refund in crypto stands.
type ChainRefundState struct {
	Status    exchange.RefundStatus `json:"status"`
	Wait      exchange.RefundWait   `json:"wait,omitempty"`
	Until     time.Time             `json:"until,omitzero"` // end of the cool-off
	Needed    int                   `json:"needed,omitempty"`
	Agreed    int                   `json:"agreed,omitempty"`
	PaymentID uuid.UUID             `json:"payment_id,omitzero"`
	Network   exchange.Network      `json:"network"`
	Version   int64                 `json:"version"`
}

func refundState(s exchange.RefundStanding) ChainRefundState {
	return ChainRefundState{
		Status: s.Refund.Status, Wait: s.Wait, Until: s.Until, Needed: s.Needed, Agreed: s.Agreed, PaymentID: s.Payment.ID,
		Network: s.Refund.Network, Version: s.Refund.Version,
	}
}

// ApproveRefundPayment has the crypto sent back when nothing stands between, and says otherwise what it waits for.
func (c *ChainRefunds) ApproveRefundPayment(ctx context.Context, in ChainRefundInput) (ChainRefundState, error) {
	s, err := c.Store.ApproveRefundPayment(ctx, in.RefundID)
	return refundState(s), Failure(ctx, err)
}

// AddressRefundInput sends a refund where a person said, by a command with the id of the request.
type AddressRefundInput struct {
	RefundID uuid.UUID `json:"refund_id"`
	Proof    Proof     `json:"proof"`
}

// AddressRefund gives a refund the address of a request. A command without one, which is a plain word to go on, is
// CodeNotFound.
func (c *ChainRefunds) AddressRefund(ctx context.Context, in AddressRefundInput) (ChainRefundState, error) {
	s, err := c.Store.AddressRefund(ctx, in.RefundID, in.Proof.CommandID, in.Proof.Principal())
	return refundState(s), Failure(ctx, err)
}

// DismissClaim lets a refund go on of which nobody proved that its payee was paid.
func (c *ChainRefunds) DismissClaim(ctx context.Context, in AddressRefundInput) (ChainRefundState, error) {
	s, err := c.Store.DismissClaim(ctx, in.RefundID, in.Proof.Principal())
	return refundState(s), Failure(ctx, err)
}

// DecideRefundInput is a decision that claims to be an officer's; see DecideInput.
type DecideRefundInput struct {
	RefundID uuid.UUID               `json:"refund_id"`
	Action   exchange.ApprovalAction `json:"action"`
	Token    string                  `json:"token"`
}

// DecideRefund believes nothing but the token, like DecideTransfer.
func (c *ChainRefunds) DecideRefund(ctx context.Context, in DecideRefundInput) (ChainRefundState, error) {
	if in.Token == "" || len(in.Token) > maxTokenLength || !in.Action.Valid() {
		return ChainRefundState{}, Failure(ctx, exchange.Errorf(exchange.CodeNotFound, "There is no such approval token for this."))
	}
	s, err := c.Store.DecideRefund(ctx, in.RefundID, in.Token, in.Action)
	return refundState(s), Failure(ctx, err)
}

// RefusedRefundDecisionInput tells of a decision about a refund that was not proven.
type RefusedRefundDecisionInput struct {
	RefundID uuid.UUID               `json:"refund_id"`
	Action   exchange.ApprovalAction `json:"action"`
	Door     exchange.ApprovalDoor   `json:"door"`
	Code     exchange.Code           `json:"code"`
}

// RecordRefusedRefundDecision notes for the auditor that somebody tried to decide without the right to.
func (c *ChainRefunds) RecordRefusedRefundDecision(ctx context.Context, in RefusedRefundDecisionInput) error {
	return Failure(ctx, c.Store.RecordRefusedRefundDecision(ctx, in.RefundID, in.Action, in.Door, in.Code))
}
