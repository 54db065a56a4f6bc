package workflows

import (
	"github.com/google/uuid"

	"kivuko/exchange"
)

// The task queues. They divide the work by trust and by rate: only signer queues have keys, only
// the momo queue has the operator's secrets, only chain queues talk to nodes.
const (
	QueueFlows = "flows"
	QueueMomo  = "momo"
)

// QueueChain is the queue of reads and broadcasts on a network.
func QueueChain(n exchange.Network) string { return "chain-" + string(n) }

// QueueSigner is the queue of the processes that hold a network's keys.
func QueueSigner(n exchange.Network) string { return "signer-" + string(n) }

// Workflow types, the names under which flows are registered and started.
const (
	TypeOnRamp       = "OnRamp"
	TypeCryptoPayout = "CryptoPayout"
	TypeRefund       = "Refund"
	TypeLatePayment  = "LatePayment"
	TypeCreateWallet = "CreateWallet"
	TypeSealAudit    = "SealAudit"
	TypePrune        = "Prune"
	TypeTransfer     = "Transfer"
)

// OnRampID is the id of the flow of an order that buys crypto.
func OnRampID(orderID uuid.UUID) string { return "on-ramp:" + orderID.String() }

// CryptoPayoutID is the id of the flow of a chain payment.
func CryptoPayoutID(paymentID uuid.UUID) string { return "crypto-payout:" + paymentID.String() }

// RefundID is the id of the flow that pays a refund out.
func RefundID(refundID uuid.UUID) string { return "refund:" + refundID.String() }

// LatePaymentID is the id of the flow that watches an attempt whose order is over.
func LatePaymentID(attemptID uuid.UUID) string { return "late-payment:" + attemptID.String() }

// WalletID is the id of the flow that creates a wallet.
func WalletID(walletID uuid.UUID) string { return "wallet:" + walletID.String() }

// TransferID is the id of the flow of a transfer.
func TransferID(transferID uuid.UUID) string { return "transfer:" + transferID.String() }
