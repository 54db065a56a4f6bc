package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// topUp brings native coin from the house's gas wallet to the sending wallet, by a payment of its own that
// is signed and delivered like every other. It answers "" when the sender has been given gas, or needs
// none any more, and otherwise the word that says why not.
func (f *cryptoPayout) topUp(ctx workflow.Context, need activities.NeedGas) string {
	in := activities.TopUpInput{PaymentID: f.in.PaymentID, Missing: need.Missing}
	approved, err := step(ctx, topUp(f.in.Network), "Approve gas for the sending wallet", chains.ApproveTopUp, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("no gas was approved", "error", err)
		return activities.GasFailed
	}
	if approved.PaymentID == uuid.Nil {
		return approved.Refused
	}
	return f.fetchGas(ctx, CryptoPayoutInput{
		PaymentID: approved.PaymentID, OrderID: f.in.OrderID, TransferID: f.in.TransferID, RefundID: f.in.RefundID, ExceptionID: f.in.ExceptionID,
		Network: f.in.Network,
	})
}

// fetchGas runs the payment that brings gas to its end.
func (f *cryptoPayout) fetchGas(ctx workflow.Context, in CryptoPayoutInput) string {
	c := card{title: "Gas on its way"}
	c.add("Payment", f.in.PaymentID.String())
	c.add("For", f.in.about())
	c.add("Waits for", "native coin for the sending wallet, payment "+in.PaymentID.String())
	describe(ctx, c)
	result, err := carry(ctx, in, child{summary: "Gas for the payment " + f.in.PaymentID.String()}, patiently)
	if err != nil {
		workflow.GetLogger(ctx).Error("the gas did not arrive", "error", err)
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
