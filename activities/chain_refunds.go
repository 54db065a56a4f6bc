package activities

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// ChainRefundStore stores crypto refunds for flows. Every method is one transaction and may be called again.
type ChainRefundStore interface {
	OpenChainRefund(ctx context.Context, r exchange.ChainRefundRequest, by exchange.Principal) (exchange.Order, exchange.Refund, error)
	ApproveRefundPayment(ctx context.Context, refundID uuid.UUID) (exchange.RefundStanding, error)
	AddressRefund(ctx context.Context, refundID, requestID uuid.UUID, by exchange.Principal) (exchange.RefundStanding, error)
	DismissClaim(ctx context.Context, refundID uuid.UUID, by exchange.Principal) (exchange.RefundStanding, error)
	DecideRefund(ctx context.Context, refundID uuid.UUID, token string, action exchange.ApprovalAction) (exchange.RefundStanding, error)
	refusalStore
	actingStore
}

// ChainRefunds changes the rows of crypto refunds.
type ChainRefunds struct {
	Store ChainRefundStore
}

// OpenChainRefundInput asks to return the crypto of an order or of an exception.
type OpenChainRefundInput struct {
	OrderID     uuid.UUID `json:"order_id,omitzero"`
	ExceptionID uuid.UUID `json:"exception_id,omitzero"`
	// RequestID is that of a stored request, which names its requester. Otherwise the operator of Proof asks, or the flow
	// itself.
	RequestID uuid.UUID `json:"request_id,omitzero"`
	Proof     Proof     `json:"proof,omitzero"`
	Reason    string    `json:"reason,omitempty"`
}

// OpenChainRefund opens the refund and fails the order. It is refused with CodeStateConflict while the payee may have got
// the shillings.
func (c *ChainRefunds) OpenChainRefund(ctx context.Context, in OpenChainRefundInput) (RefundOpened, error) {
	by, err := actor(ctx, c.Store, in.Proof.Behalf())
	if err != nil {
		return RefundOpened{}, Failure(ctx, err)
	}
	r := exchange.ChainRefundRequest{OrderID: in.OrderID, ExceptionID: in.ExceptionID, RequestID: in.RequestID, Reason: in.Reason}
	order, refund, err := c.Store.OpenChainRefund(ctx, r, by)
	return RefundOpened{OrderState: stateOf(order), RefundID: refund.ID}, Failure(ctx, err)
}

// ChainRefundInput names a crypto refund.
type ChainRefundInput struct {
	RefundID uuid.UUID `json:"refund_id"`
}

// ChainRefundState is the state of a crypto refund.
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

// ApproveRefundPayment approves the payment that returns the crypto, or returns what the refund still waits for.
func (c *ChainRefunds) ApproveRefundPayment(ctx context.Context, in ChainRefundInput) (ChainRefundState, error) {
	s, err := c.Store.ApproveRefundPayment(ctx, in.RefundID)
	return refundState(s), Failure(ctx, err)
}

// AddressRefundInput sets a refund's address by a command with the id of the request.
type AddressRefundInput struct {
	RefundID uuid.UUID `json:"refund_id"`
	Proof    Proof     `json:"proof"`
}

// AddressRefund sets the refund's address to that of the request. A command without a request is CodeNotFound.
func (c *ChainRefunds) AddressRefund(ctx context.Context, in AddressRefundInput) (ChainRefundState, error) {
	s, err := actedOn(ctx, c.Store, in.Proof.Behalf(), func(by exchange.Principal) (exchange.RefundStanding, error) {
		return c.Store.AddressRefund(ctx, in.RefundID, in.Proof.CommandID, by)
	})
	return refundState(s), Failure(ctx, err)
}

// DismissClaim lets a refund go on despite an unproven claim that its payee was paid.
func (c *ChainRefunds) DismissClaim(ctx context.Context, in AddressRefundInput) (ChainRefundState, error) {
	s, err := actedOn(ctx, c.Store, in.Proof.Behalf(), func(by exchange.Principal) (exchange.RefundStanding, error) {
		return c.Store.DismissClaim(ctx, in.RefundID, by)
	})
	return refundState(s), Failure(ctx, err)
}

// DecideRefundInput is a decision that claims to be an officer's; see DecideInput.
type DecideRefundInput struct {
	RefundID uuid.UUID               `json:"refund_id"`
	Action   exchange.ApprovalAction `json:"action"`
	Token    string                  `json:"token"`
}

// DecideRefund accepts only the token, like DecideTransfer.
func (c *ChainRefunds) DecideRefund(ctx context.Context, in DecideRefundInput) (ChainRefundState, error) {
	if err := plausible(in.Action, in.Token); err != nil {
		return ChainRefundState{}, Failure(ctx, err)
	}
	s, err := c.Store.DecideRefund(ctx, in.RefundID, in.Token, in.Action)
	return refundState(s), Failure(ctx, err)
}

// RefusedRefundDecisionInput describes a decision about a refund without proof.
type RefusedRefundDecisionInput struct {
	RefundID uuid.UUID                `json:"refund_id"`
	Action   exchange.ApprovalAction  `json:"action"`
	Channel  exchange.ApprovalChannel `json:"channel"`
	Code     exchange.Code            `json:"code"`
}

// RecordRefusedRefundDecision records an attempt to decide without the right to, for the auditor.
func (c *ChainRefunds) RecordRefusedRefundDecision(ctx context.Context, in RefusedRefundDecisionInput) error {
	return Failure(ctx, c.Store.RecordRefusedDecision(ctx, exchange.ApproveRefund, in.RefundID, in.Action, in.Channel, in.Code))
}
