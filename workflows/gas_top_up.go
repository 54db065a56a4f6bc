package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// topUp sends native coin from the gas wallet to the sending wallet, by a payment that is signed and delivered like every
// other. It returns "" when the sender got gas or needs none any more, and otherwise the reason.
func (f *cryptoPayout) topUp(ctx workflow.Context, need activities.NeedGas) string {
	in := activities.TopUpInput{PaymentID: f.in.PaymentID, Missing: need.Missing}
	approved, err := step(ctx, topUp(f.in.Network), "Approve gas for the sending wallet", chains.ApproveTopUp, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the gas top-up could not be approved", "error", err)
		return activities.GasFailed
	}
	if approved.PaymentID == uuid.Nil {
		return approved.Refused
	}
	return f.fetchGas(ctx, CryptoPayoutInput{
		PaymentID: approved.PaymentID, OrderID: f.in.OrderID, TransferID: f.in.TransferID, RefundID: f.in.RefundID, ExceptionID: f.in.ExceptionID,
		FeeSweepID: f.in.FeeSweepID, WithdrawalID: f.in.WithdrawalID, Network: f.in.Network,
	})
}

// fetchGas carries out the payment of a gas top-up.
func (f *cryptoPayout) fetchGas(ctx workflow.Context, in CryptoPayoutInput) string {
	c := card{title: "Gas top-up is pending"}
	c.add("Payment", f.in.PaymentID.String())
	c.add("For", f.in.about())
	c.add("Waits for", "the gas top-up of the sending wallet, payment "+in.PaymentID.String())
	describe(ctx, c)
	result, err := carry(ctx, in, child{summary: "Gas for the payment " + f.in.PaymentID.String()}, patiently)
	if err != nil {
		workflow.GetLogger(ctx).Error("the gas top-up failed", "error", err)
		return activities.GasFailed
	}
	switch {
	case result.Completed:
		return ""
	case result.Reason == string(ReasonPayoutFunds) || result.Reason == string(ReasonPayoutGas):
		return activities.GasWalletShort
	case result.Reason == string(ReasonPayoutBudget):
		return activities.GasBudget
	}
	return activities.GasFailed
}
