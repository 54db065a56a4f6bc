package workflows

import (
	"go.temporal.io/sdk/temporal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// LiveFlow is the flow that carries a live row to its end, and what it is started with. Every flow finds in the rows what was
// done before, so it may be started again at any point.
type LiveFlow struct {
	ID, Type, Summary string
	Shown             temporal.SearchAttributes
	Input             any
}

// LiveFlowOf returns the flow of a live row.
func LiveFlowOf(r exchange.LiveRow) LiveFlow {
	order := exchange.OrderRequest{
		Type: r.Type,
		Seen: exchange.SeenOffer{Network: r.Network, Asset: r.Asset, MerchantID: r.MerchantID},
	}
	switch r.Kind {
	case exchange.LivePurchase:
		return LiveFlow{OnRampID(r.ObjectID), TypeOnRamp, "Purchase, started again", OnRampAttributes(order), OnRampInput{IntentID: r.IntentID}}
	case exchange.LiveSale:
		return LiveFlow{OffRampID(r.ObjectID), TypeOffRamp, "Sale, started again", OffRampAttributes(order), OffRampInput{IntentID: r.IntentID}}
	case exchange.LiveTransfer:
		shown := TransferAttributes(exchange.TransferRequest{Network: r.Network, Amount: money.Zero(r.Asset)})
		return LiveFlow{TransferID(r.ObjectID), TypeTransfer, "Transfer, started again", shown, TransferInput{IntentID: r.IntentID}}
	case exchange.LiveOTC:
		return LiveFlow{OTCDepositID(r.ObjectID), TypeOTCDeposit, "OTC deposit, started again", OTCDepositAttributes(), OTCDepositInput{IntentID: r.IntentID}}
	case exchange.LiveWithdrawal:
		return LiveFlow{WithdrawalID(r.ObjectID), TypeOTCWithdrawal, "Withdrawal, started again", WithdrawalAttributes(r.Asset), WithdrawalInput{IntentID: r.IntentID}}
	case exchange.LiveSwap:
		return LiveFlow{SwapID(r.ObjectID), TypeSwap, "Swap, started again", swapAttributes(r.Network, r.Asset, r.MerchantID), SwapInput{IntentID: r.IntentID}}
	case exchange.LiveLate:
		in := LatePaymentInput{AttemptID: r.ObjectID, OrderID: r.OrderID}
		return LiveFlow{LatePaymentID(r.ObjectID), TypeLatePayment, LatePaymentSummary, LatePaymentAttributes(), in}
	case exchange.LiveReturn:
		in := ReturnDepositInput{RequestID: r.RequestID}
		return LiveFlow{ReturnDepositID(r.ObjectID), TypeReturnDeposit, ReturnDepositSummary, ReturnDepositAttributes(r.Network, false), in}
	case exchange.LiveFeeSweep:
		return LiveFlow{FeeSweepID(r.ObjectID), TypeFeeSweep, FeeSweepSummary, FeeSweepAttributes(r.Network), FeeSweepInput{}}
	case exchange.LiveProposal:
		return LiveFlow{MultisigProposalID(r.ObjectID), TypeMultisigProposal, "Proposal, started again", proposalAttributes(r.Network, r.Asset, r.MerchantID), ProposalInput{IntentID: r.IntentID}}
	case exchange.LiveMultisig:
		return LiveFlow{OpenMultisigID(r.ObjectID), TypeOpenMultisig, OpenMultisigSummary, OpenMultisigAttributes(r.Network), OpenMultisigInput{}}
	case exchange.LiveBankRefund:
		return LiveFlow{BankRefundID(r.ObjectID), TypeBankRefund, BankRefundSummary, BankRefundAttributes(), BankRefundInput{}}
	case exchange.LiveTopUp:
		shown := attributes(StagePayout, WaitsForChain, AttrNetwork.ValueSet(string(r.Network)), AttrAsset.ValueSet(string(r.Asset)))
		in := CryptoPayoutInput{PaymentID: r.ObjectID, Network: r.Network}
		return LiveFlow{CryptoPayoutID(r.ObjectID), TypeCryptoPayout, "Gas top-up, started again", shown, in}
	}
	return LiveFlow{}
}
