//go:build crash

package main

import (
	"context"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/worker"
)

// crashSales puts points around the side effects of sales, and of the float that they are paid from.
func crashSales(parts worker.Parts, dir crash) {
	if p := parts.Sale; p != nil {
		p.Store = crashOffRamps{p.Store, dir}
	}
	if p := parts.Pool; p != nil {
		p.Store = crashEscrow{p.Store, dir}
	}
	if p := parts.Payout; p != nil {
		p.Store, p.Operator = crashPayouts{p.Store, dir}, crashPayer{p.Operator, dir}
	}
	if p := parts.Bank; p != nil {
		p.Store = crashBank{p.Store, dir}
	}
	if p := parts.Float; p != nil {
		p.Store, p.Operator = crashFloat{p.Store, dir}, crashFloatOperator{p.Operator, dir}
	}
	if p := parts.Back; p != nil {
		p.Store = crashChainRefunds{p.Store, dir}
	}
	if p := parts.Sweep; p != nil {
		p.Store = crashSweeps{p.Store, dir}
	}
}

type crashOffRamps struct {
	activities.OffRampStore
	crash
}

func (s crashOffRamps) OpenOffRamp(ctx context.Context, r exchange.OrderRequest, by exchange.Principal) (exchange.Order, error) {
	return around(s.crash, "OpenOffRamp", func() (exchange.Order, error) { return s.OffRampStore.OpenOffRamp(ctx, r, by) })
}

func (s crashOffRamps) CloseOffRamp(ctx context.Context, id uuid.UUID, detail string, by exchange.Principal) (exchange.Order, error) {
	return around(s.crash, "CloseOffRamp", func() (exchange.Order, error) { return s.OffRampStore.CloseOffRamp(ctx, id, detail, by) })
}

func (s crashOffRamps) SeeDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.Order, error) {
	return around(s.crash, "SeeDeposit", func() (exchange.Order, error) { return s.OffRampStore.SeeDeposit(ctx, order, deposit) })
}

func (s crashOffRamps) LoseDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.Order, error) {
	return around(s.crash, "LoseDeposit", func() (exchange.Order, error) { return s.OffRampStore.LoseDeposit(ctx, order, deposit) })
}

func (s crashOffRamps) TakeDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.DepositTaken, error) {
	return around(s.crash, "TakeDeposit", func() (exchange.DepositTaken, error) { return s.OffRampStore.TakeDeposit(ctx, order, deposit) })
}

func (s crashOffRamps) RecordDepositScreening(ctx context.Context, deposit uuid.UUID, said []exchange.Screening) error {
	return step(s.crash, "RecordDepositScreening", func() error { return s.OffRampStore.RecordDepositScreening(ctx, deposit, said) })
}

type crashEscrow struct {
	activities.EscrowStore
	crash
}

func (s crashEscrow) EscrowDemand(ctx context.Context) ([]exchange.EscrowDemand, error) {
	return around(s.crash, "EscrowDemand", func() ([]exchange.EscrowDemand, error) { return s.EscrowStore.EscrowDemand(ctx) })
}

func (s crashEscrow) EscrowRoom(ctx context.Context, n exchange.Network, order uuid.UUID) (exchange.EscrowDemand, error) {
	return around(s.crash, "EscrowRoom", func() (exchange.EscrowDemand, error) { return s.EscrowStore.EscrowRoom(ctx, n, order) })
}

func (s crashEscrow) ReleaseEscrow(ctx context.Context, order uuid.UUID) ([]exchange.PaymentException, error) {
	return around(s.crash, "ReleaseEscrow", func() ([]exchange.PaymentException, error) { return s.EscrowStore.ReleaseEscrow(ctx, order) })
}

type crashPayouts struct {
	activities.PayoutStore
	crash
}

func (s crashPayouts) BeginOrderPayout(ctx context.Context, order uuid.UUID, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
	return around(s.crash, "BeginOrderPayout", func() (exchange.PaymentAttempt, error) { return s.PayoutStore.BeginOrderPayout(ctx, order, a) })
}

func (s crashPayouts) RecordSubmission(ctx context.Context, id uuid.UUID, sub exchange.Submission) (exchange.PaymentAttempt, error) {
	return around(s.crash, "RecordOrderPayoutSubmission", func() (exchange.PaymentAttempt, error) {
		return s.PayoutStore.RecordSubmission(ctx, id, sub)
	})
}

func (s crashPayouts) RecordFailure(ctx context.Context, id uuid.UUID, o exchange.Observation) (exchange.PaymentAttempt, error) {
	return around(s.crash, "RecordOrderPayoutFailure", func() (exchange.PaymentAttempt, error) {
		return s.PayoutStore.RecordFailure(ctx, id, o)
	})
}

func (s crashPayouts) CompleteOrderPayout(ctx context.Context, order, attempt uuid.UUID, o exchange.Observation) (exchange.OrderPayout, error) {
	return around(s.crash, "CompleteOrderPayout", func() (exchange.OrderPayout, error) {
		return s.PayoutStore.CompleteOrderPayout(ctx, order, attempt, o)
	})
}

func (s crashPayouts) FailOrderPayout(ctx context.Context, order uuid.UUID, code string) (exchange.OrderPayout, error) {
	return around(s.crash, "FailOrderPayout", func() (exchange.OrderPayout, error) { return s.PayoutStore.FailOrderPayout(ctx, order, code) })
}

func (s crashPayouts) DoubtOrderPayout(ctx context.Context, order uuid.UUID, claimed bool) error {
	return step(s.crash, "DoubtOrderPayout", func() error { return s.PayoutStore.DoubtOrderPayout(ctx, order, claimed) })
}

func (s crashPayouts) KeepOrderPayout(ctx context.Context, order uuid.UUID, by exchange.Principal) (exchange.OrderPayout, error) {
	return around(s.crash, "KeepOrderPayout", func() (exchange.OrderPayout, error) { return s.PayoutStore.KeepOrderPayout(ctx, order, by) })
}

type crashBank struct {
	activities.BankStore
	crash
}

func (s crashBank) BeginBankPayout(ctx context.Context, order uuid.UUID) (exchange.OrderPayout, error) {
	return around(s.crash, "BeginBankPayout", func() (exchange.OrderPayout, error) { return s.BankStore.BeginBankPayout(ctx, order) })
}

// crashPayer has points of its own around what crashOperator has for refunds.
type crashPayer struct {
	activities.MomoOperator
	crash
}

func (s crashPayer) SubmitPayout(ctx context.Context, a exchange.PaymentAttempt) exchange.Submission {
	s.point("before:SubmitOrderPayout")
	out := s.MomoOperator.SubmitPayout(ctx, a)
	s.point("after:SubmitOrderPayout")
	return out
}

type crashChainRefunds struct {
	activities.ChainRefundStore
	crash
}

func (s crashChainRefunds) OpenChainRefund(ctx context.Context, r exchange.ChainRefundRequest, by exchange.Principal) (exchange.Order, exchange.Refund, error) {
	s.point("before:OpenChainRefund")
	o, refund, err := s.ChainRefundStore.OpenChainRefund(ctx, r, by)
	s.point("after:OpenChainRefund")
	return o, refund, err
}

func (s crashChainRefunds) ApproveRefundPayment(ctx context.Context, refund uuid.UUID) (exchange.RefundStanding, error) {
	return around(s.crash, "ApproveRefundPayment", func() (exchange.RefundStanding, error) {
		return s.ChainRefundStore.ApproveRefundPayment(ctx, refund)
	})
}

func (s crashChainRefunds) AddressRefund(ctx context.Context, refund, request uuid.UUID, by exchange.Principal) (exchange.RefundStanding, error) {
	return around(s.crash, "AddressRefund", func() (exchange.RefundStanding, error) {
		return s.ChainRefundStore.AddressRefund(ctx, refund, request, by)
	})
}

func (s crashChainRefunds) DismissClaim(ctx context.Context, refund uuid.UUID, by exchange.Principal) (exchange.RefundStanding, error) {
	return around(s.crash, "DismissClaim", func() (exchange.RefundStanding, error) { return s.ChainRefundStore.DismissClaim(ctx, refund, by) })
}

func (s crashChainRefunds) DecideRefund(ctx context.Context, refund uuid.UUID, token string, action exchange.ApprovalAction) (exchange.RefundStanding, error) {
	return around(s.crash, "DecideRefund", func() (exchange.RefundStanding, error) {
		return s.ChainRefundStore.DecideRefund(ctx, refund, token, action)
	})
}

func (s crashChainRefunds) RecordRefusedRefundDecision(
	ctx context.Context, refund uuid.UUID, action exchange.ApprovalAction, door exchange.ApprovalDoor, code exchange.Code,
) error {
	return step(s.crash, "RecordRefusedRefundDecision", func() error {
		return s.ChainRefundStore.RecordRefusedRefundDecision(ctx, refund, action, door, code)
	})
}

type crashSweeps struct {
	activities.SweepStore
	crash
}

func (s crashSweeps) ApproveSweep(ctx context.Context, order uuid.UUID) (exchange.ChainPayment, error) {
	return around(s.crash, "ApproveSweep", func() (exchange.ChainPayment, error) { return s.SweepStore.ApproveSweep(ctx, order) })
}

func (s crashSweeps) ApproveKeptSweep(ctx context.Context, exception uuid.UUID) (exchange.ChainPayment, error) {
	return around(s.crash, "ApproveKeptSweep", func() (exchange.ChainPayment, error) { return s.SweepStore.ApproveKeptSweep(ctx, exception) })
}

func (s crashSweeps) ApproveFunding(ctx context.Context, order uuid.UUID) (exchange.ChainPayment, error) {
	return around(s.crash, "ApproveFunding", func() (exchange.ChainPayment, error) { return s.SweepStore.ApproveFunding(ctx, order) })
}

func (s crashSweeps) CancelFunding(ctx context.Context, order uuid.UUID, by exchange.Principal) error {
	return step(s.crash, "CancelFunding", func() error { return s.SweepStore.CancelFunding(ctx, order, by) })
}
