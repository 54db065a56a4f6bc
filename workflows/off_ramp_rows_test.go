package workflows_test

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The calls of the flows of sales, and of those that return crypto, with their faults.

func (s *faultyStore) OpenOffRamp(ctx context.Context, a exchange.Asked, operator string) (exchange.Order, error) {
	return result(s, "OpenOffRamp", func() (exchange.Order, error) { return s.Store.OpenOffRamp(ctx, a, operator) })
}

func (s *faultyStore) CloseOffRamp(ctx context.Context, id uuid.UUID, detail string, a exchange.Asked) (exchange.Order, error) {
	return result(s, "CloseOffRamp", func() (exchange.Order, error) { return s.Store.CloseOffRamp(ctx, id, detail, a) })
}

func (s *faultyStore) ChainDeposit(ctx context.Context, id uuid.UUID) (exchange.ChainDeposit, error) {
	return result(s, "ChainDeposit", func() (exchange.ChainDeposit, error) { return s.Store.ChainDeposit(ctx, id) })
}

func (s *faultyStore) OffRampDeposits(ctx context.Context, order uuid.UUID) ([]uuid.UUID, error) {
	return result(s, "OffRampDeposits", func() ([]uuid.UUID, error) { return s.Store.OffRampDeposits(ctx, order) })
}

func (s *faultyStore) SeeDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.Order, error) {
	return result(s, "SeeDeposit", func() (exchange.Order, error) { return s.Store.SeeDeposit(ctx, order, deposit) })
}

func (s *faultyStore) LoseDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.Order, error) {
	return result(s, "LoseDeposit", func() (exchange.Order, error) { return s.Store.LoseDeposit(ctx, order, deposit) })
}

func (s *faultyStore) TakeDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.DepositTaken, error) {
	return result(s, "TakeDeposit", func() (exchange.DepositTaken, error) { return s.Store.TakeDeposit(ctx, order, deposit) })
}

func (s *faultyStore) ScreenTerms(ctx context.Context, order uuid.UUID) ([]exchange.Counterparty, error) {
	return result(s, "ScreenTerms", func() ([]exchange.Counterparty, error) { return s.Store.ScreenTerms(ctx, order) })
}

func (s *faultyStore) RecordDepositScreening(ctx context.Context, deposit uuid.UUID, said []exchange.Screening) error {
	return s.around("RecordDepositScreening", func() error { return s.Store.RecordDepositScreening(ctx, deposit, said) })
}

func (s *faultyStore) Denied(ctx context.Context, n exchange.Network, address string) (bool, error) {
	return result(s, "Denied", func() (bool, error) { return s.Store.Denied(ctx, n, address) })
}

func (s *faultyStore) EscrowRoom(ctx context.Context, n exchange.Network, order uuid.UUID) (exchange.EscrowDemand, error) {
	return result(s, "EscrowRoom", func() (exchange.EscrowDemand, error) { return s.Store.EscrowRoom(ctx, n, order) })
}

func (s *faultyStore) ReleaseEscrow(ctx context.Context, order uuid.UUID) ([]exchange.PaymentException, error) {
	return result(s, "ReleaseEscrow", func() ([]exchange.PaymentException, error) { return s.Store.ReleaseEscrow(ctx, order) })
}

func (s *faultyStore) ApproveSweep(ctx context.Context, order uuid.UUID) (exchange.ChainPayment, error) {
	return result(s, "ApproveSweep", func() (exchange.ChainPayment, error) { return s.Store.ApproveSweep(ctx, order) })
}

func (s *faultyStore) ApproveKeptSweep(ctx context.Context, exception uuid.UUID) (exchange.ChainPayment, error) {
	return result(s, "ApproveKeptSweep", func() (exchange.ChainPayment, error) { return s.Store.ApproveKeptSweep(ctx, exception) })
}

func (s *faultyStore) ApproveFeeSweep(ctx context.Context, id uuid.UUID) (exchange.ApprovedFeeSweep, error) {
	return result(s, "ApproveFeeSweep", func() (exchange.ApprovedFeeSweep, error) { return s.Store.ApproveFeeSweep(ctx, id) })
}

func (s *faultyStore) GiveUpFeeSweep(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.FeeSweep, error) {
	s.watch()
	return result(s, "GiveUpFeeSweep", func() (exchange.FeeSweep, error) { return s.Store.GiveUpFeeSweep(ctx, id, by) })
}

func (s *faultyStore) OpenScheduledFeeSweeps(ctx context.Context, n exchange.Network, asset money.Asset) ([]uuid.UUID, error) {
	return result(s, "OpenScheduledFeeSweeps", func() ([]uuid.UUID, error) { return s.Store.OpenScheduledFeeSweeps(ctx, n, asset) })
}

func (s *faultyStore) MultisigAccountByID(ctx context.Context, id uuid.UUID) (exchange.MultisigAccount, error) {
	return result(s, "MultisigAccountByID", func() (exchange.MultisigAccount, error) { return s.Store.MultisigAccountByID(ctx, id) })
}

func (s *faultyStore) StoreOwnerKey(ctx context.Context, account uuid.UUID, n int, address string, key exchange.SealedKey) (exchange.MultisigOwner, error) {
	return result(s, "StoreOwnerKey", func() (exchange.MultisigOwner, error) { return s.Store.StoreOwnerKey(ctx, account, n, address, key) })
}

func (s *faultyStore) StoreOpeningKey(ctx context.Context, account uuid.UUID, address string, key exchange.SealedKey) (exchange.MultisigAccount, error) {
	return result(s, "StoreOpeningKey", func() (exchange.MultisigAccount, error) { return s.Store.StoreOpeningKey(ctx, account, address, key) })
}

func (s *faultyStore) StoreHandover(ctx context.Context, h exchange.MultisigHandover) (exchange.MultisigHandover, error) {
	return result(s, "StoreHandover", func() (exchange.MultisigHandover, error) { return s.Store.StoreHandover(ctx, h) })
}

func (s *faultyStore) EndHandover(ctx context.Context, h exchange.MultisigHandover, end exchange.HandoverStatus, evidence string) error {
	_, err := result(s, "EndHandover", func() (struct{}, error) { return struct{}{}, s.Store.EndHandover(ctx, h, end, evidence) })
	return err
}

func (s *faultyStore) FundMultisig(ctx context.Context, account uuid.UUID, missing money.Amount) (exchange.MultisigAccount, error) {
	return result(s, "FundMultisig", func() (exchange.MultisigAccount, error) { return s.Store.FundMultisig(ctx, account, missing) })
}

func (s *faultyStore) OpenMultisig(ctx context.Context, account uuid.UUID, address string, rent money.Amount) (exchange.MultisigAccount, error) {
	return result(s, "OpenMultisig", func() (exchange.MultisigAccount, error) { return s.Store.OpenMultisig(ctx, account, address, rent) })
}

func (s *faultyStore) ActivateMultisig(ctx context.Context, account uuid.UUID, q exchange.MultisigQuorum, balances []money.Amount) (exchange.MultisigAccount, error) {
	s.watch()
	return result(s, "ActivateMultisig", func() (exchange.MultisigAccount, error) { return s.Store.ActivateMultisig(ctx, account, q, balances) })
}

func (s *faultyStore) RefuseMultisig(ctx context.Context, account uuid.UUID, detail string) (exchange.MultisigAccount, error) {
	return result(s, "RefuseMultisig", func() (exchange.MultisigAccount, error) { return s.Store.RefuseMultisig(ctx, account, detail) })
}

func (s *faultyStore) GiveUpMultisig(ctx context.Context, account uuid.UUID, by exchange.Principal) (exchange.MultisigAccount, error) {
	s.watch()
	return result(s, "GiveUpMultisig", func() (exchange.MultisigAccount, error) { return s.Store.GiveUpMultisig(ctx, account, by) })
}

func (s *faultyStore) CollectSwap(ctx context.Context, id uuid.UUID) (exchange.SwapStanding, error) {
	return result(s, "CollectSwap", func() (exchange.SwapStanding, error) { return s.Store.CollectSwap(ctx, id) })
}

func (s *faultyStore) AdvanceProposal(ctx context.Context, id uuid.UUID) (exchange.ProposalStanding, error) {
	s.watch()
	return result(s, "AdvanceProposal", func() (exchange.ProposalStanding, error) { return s.Store.AdvanceProposal(ctx, id) })
}

func (s *faultyStore) SignProposal(ctx context.Context, id uuid.UUID) (exchange.Proposal, error) {
	return result(s, "SignProposal", func() (exchange.Proposal, error) { return s.Store.SignProposal(ctx, id) })
}

func (s *faultyStore) ExecuteProposal(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Proposal, error) {
	return result(s, "ExecuteProposal", func() (exchange.Proposal, error) { return s.Store.ExecuteProposal(ctx, id, a) })
}

func (s *faultyStore) StorePayload(ctx context.Context, p exchange.MultisigPayload) (exchange.MultisigPayload, error) {
	return result(s, "StorePayload", func() (exchange.MultisigPayload, error) { return s.Store.StorePayload(ctx, p) })
}

func (s *faultyStore) StoreSignature(ctx context.Context, g exchange.MultisigSignature, a exchange.Asked) (exchange.MultisigSignature, error) {
	return result(s, "StoreSignature", func() (exchange.MultisigSignature, error) { return s.Store.StoreSignature(ctx, g, a) })
}

func (s *faultyStore) CancelFunding(ctx context.Context, order uuid.UUID, by exchange.Principal) error {
	s.watch()
	return s.around("CancelFunding", func() error { return s.Store.CancelFunding(ctx, order, by) })
}

func (s *faultyStore) OpenChainRefund(ctx context.Context, r exchange.ChainRefundRequest, by exchange.Principal) (exchange.Order, exchange.Refund, error) {
	return results(s, "OpenChainRefund", func() (exchange.Order, exchange.Refund, error) { return s.Store.OpenChainRefund(ctx, r, by) })
}

func (s *faultyStore) ApproveRefundPayment(ctx context.Context, refund uuid.UUID) (exchange.RefundStanding, error) {
	return result(s, "ApproveRefundPayment", func() (exchange.RefundStanding, error) { return s.Store.ApproveRefundPayment(ctx, refund) })
}

func (s *faultyStore) BankPayout(ctx context.Context, order uuid.UUID) (exchange.BankPayout, error) {
	return result(s, "BankPayout", func() (exchange.BankPayout, error) { return s.Store.BankPayout(ctx, order) })
}

func (s *faultyStore) RecordRefusedDecision(
	ctx context.Context, of exchange.ApprovalObject, id uuid.UUID, action exchange.ApprovalAction, channel exchange.ApprovalChannel, code exchange.Code,
) error {
	s.mu.Lock()
	s.noted = append(s.noted, code)
	s.mu.Unlock()
	return s.around("RecordRefusedDecision", func() error { return s.Store.RecordRefusedDecision(ctx, of, id, action, channel, code) })
}
