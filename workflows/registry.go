package workflows

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
)

// Workflow types, the names under which flows are registered and started.
const (
	TypeOnRamp            = "OnRamp"
	TypeOffRamp           = "OffRamp"
	TypeMomoPayout        = "MomoPayout"
	TypeReturnDeposit     = "ReturnDeposit"
	TypeCryptoPayout      = "CryptoPayout"
	TypeRefund            = "Refund"
	TypeLatePayment       = "LatePayment"
	TypeLatePayout        = "LatePayout"
	TypeTransfer          = "Transfer"
	TypeCreateWallet      = "CreateWallet"
	TypeDepositWatch      = "DepositWatch"
	TypeTendEscrow        = "TendEscrow"
	TypeReconcile         = "Reconcile"
	TypeReconcileNetwork  = "ReconcileNetwork"
	TypeReserveReport     = "ReserveReport"
	TypeReconcilePayments = "ReconcilePayments"
	TypeSweepPayments     = "SweepPayments"
	TypeWatchFloat        = "WatchFloat"
	TypeMoveFloat         = "MoveFloat"
	TypeRelayEvents       = "RelayEvents"
	TypeDeliverWebhooks   = "DeliverWebhooks"
	TypePullRates         = "PullRates"
	TypePrune             = "Prune"
	TypeRepairParked      = "RepairParked"
	TypeSealAudit         = "SealAudit"
)

// IDForm is what the ids of flows of a type look like, as "on-ramp:<order>".
type IDForm string

// of is the id of the flow that is about something.
func (f IDForm) of(about any) string {
	prefix, _, _ := strings.Cut(string(f), "<")
	return prefix + fmt.Sprint(about)
}

// The forms of ids. A flow without one is started by a schedule of temporal.yaml under the schedule's own id.
const (
	onRampForm         IDForm = "on-ramp:<order>"
	offRampForm        IDForm = "off-ramp:<order>"
	momoPayoutForm     IDForm = "momo-payout:<order>"
	returnDepositForm  IDForm = "return-deposit:<exception>"
	cryptoPayoutForm   IDForm = "crypto-payout:<payment>"
	refundForm         IDForm = "refund:<refund>"
	latePaymentForm    IDForm = "late-payment:<attempt>"
	transferForm       IDForm = "transfer:<transfer>"
	walletForm         IDForm = "wallet:<wallet>"
	depositWatchForm   IDForm = "deposit-watch:<network>"
	reconciliationForm IDForm = "reconciliation:<network>"
	moveFloatForm      IDForm = "float-move:<movement>"
	webhooksForm       IDForm = "webhooks:<endpoint>"
)

// Flow is a type of flow, and what there is to know of it.
type Flow struct {
	Type string
	Run  any // the workflow's function
	ID   IDForm
}

// Flows lists them all. Workers register them, and the pages, the recorded histories and the ids are held against them.
func Flows() []Flow {
	return []Flow{
		{TypeOnRamp, OnRamp, onRampForm},
		{TypeOffRamp, OffRamp, offRampForm},
		{TypeMomoPayout, MomoPayout, momoPayoutForm},
		{TypeReturnDeposit, ReturnDeposit, returnDepositForm},
		{TypeCryptoPayout, CryptoPayout, cryptoPayoutForm},
		{TypeRefund, Refund, refundForm},
		{TypeLatePayment, LatePayment, latePaymentForm},
		{TypeLatePayout, LatePayout, latePaymentForm},
		{TypeTransfer, Transfer, transferForm},
		{TypeCreateWallet, CreateWallet, walletForm},
		{TypeDepositWatch, DepositWatch, depositWatchForm},
		{TypeTendEscrow, TendEscrow, ""},
		{TypeReconcile, Reconcile, ""},
		{TypeReconcileNetwork, ReconcileNetwork, reconciliationForm},
		{TypeReserveReport, ReserveReport, ""},
		{TypeReconcilePayments, ReconcilePayments, ""},
		{TypeSweepPayments, SweepPayments, ""},
		{TypeWatchFloat, WatchFloat, ""},
		{TypeMoveFloat, MoveFloat, moveFloatForm},
		{TypeRelayEvents, RelayEvents, ""},
		{TypeDeliverWebhooks, DeliverWebhooks, webhooksForm},
		{TypePullRates, PullRates, ""},
		{TypePrune, Prune, ""},
		{TypeRepairParked, RepairParked, ""},
		{TypeSealAudit, SealAudit, ""},
	}
}

// OnRampID is the id of the flow of an order that buys crypto.
func OnRampID(order uuid.UUID) string { return onRampForm.of(order) }

// OffRampID is the id of the flow of an order that sells crypto.
func OffRampID(order uuid.UUID) string { return offRampForm.of(order) }

// MomoPayoutID is the id of the flow that pays an order out.
func MomoPayoutID(order uuid.UUID) string { return momoPayoutForm.of(order) }

// ReturnDepositID is the id of the flow that moves crypto which fits nothing off the address where it lies.
func ReturnDepositID(exception uuid.UUID) string { return returnDepositForm.of(exception) }

// CryptoPayoutID is the id of the flow of a chain payment.
func CryptoPayoutID(payment uuid.UUID) string { return cryptoPayoutForm.of(payment) }

// RefundID is the id of the flow that pays a refund out.
func RefundID(refund uuid.UUID) string { return refundForm.of(refund) }

// LatePaymentID is the id of the flow that watches an attempt whose order is over.
func LatePaymentID(attempt uuid.UUID) string { return latePaymentForm.of(attempt) }

// LatePayoutID is the id of the flow that looks at a payout about which something came late. Commands about late
// money of an attempt reach it as they reach the watch over a late payment.
func LatePayoutID(attempt uuid.UUID) string { return latePaymentForm.of(attempt) }

// TransferID is the id of the flow of a transfer.
func TransferID(transfer uuid.UUID) string { return transferForm.of(transfer) }

// WalletID is the id of the flow that creates a wallet.
func WalletID(wallet uuid.UUID) string { return walletForm.of(wallet) }

// DepositWatchID is the id of the flow that watches a network for deposits. There is one of each.
func DepositWatchID(n exchange.Network) string { return depositWatchForm.of(n) }

// ReconciliationID is the id of the flow that compares a network. There is one of each at a time.
func ReconciliationID(n exchange.Network) string { return reconciliationForm.of(n) }

// MoveFloatID is the id of the flow of a movement of float.
func MoveFloatID(move uuid.UUID) string { return moveFloatForm.of(move) }

// WebhooksID is the id of the flow of an endpoint. There is one of each, while it has something to deliver.
func WebhooksID(endpoint uuid.UUID) string { return webhooksForm.of(endpoint) }

// The task queues. They divide the work by trust and by rate: only signer queues have keys, only
// the momo queue has the operator's secrets, only chain queues talk to nodes, and only the queue of webhooks calls
// addresses that others named.
const (
	QueueFlows    = "flows"
	QueueMomo     = "momo"
	QueueWebhooks = "webhooks"

	kindChain  = "chain"
	kindSigner = "signer"
)

// QueueChain is the queue of reads and broadcasts on a network.
func QueueChain(n exchange.Network) string { return kindChain + "-" + string(n) }

// QueueSigner is the queue of the processes that hold a network's keys.
func QueueSigner(n exchange.Network) string { return kindSigner + "-" + string(n) }

// ChainOf is the network whose chain a queue is for, and SignerOf the one whose keys: "" for any other queue.
func ChainOf(queue string) exchange.Network  { return networkOf(queue, kindChain) }
func SignerOf(queue string) exchange.Network { return networkOf(queue, kindSigner) }

func networkOf(queue, kind string) exchange.Network {
	if of, network, ok := strings.Cut(queue, "-"); ok && of == kind && exchange.Network(network).Valid() {
		return exchange.Network(network)
	}
	return ""
}

// The activities, by the struct that has them. Flows take nothing of them but the names and types of their methods.
var (
	orders         *activities.Orders
	offRamps       *activities.OffRamps
	bank           *activities.Bank
	escrow         *activities.Escrow
	sweeps         *activities.Sweeps
	chainRefunds   *activities.ChainRefunds
	transfers      *activities.Transfers
	approvals      *activities.Approvals
	waits          *activities.DepositWaits
	reconciliation *activities.Reconciliation
	rates          *activities.Rates
	relay          *activities.Relay
	momo           *activities.Momo
	payouts        *activities.Payouts
	refunds        *activities.Refunds
	float          *activities.Float
	statement      *activities.Statement
	chains         *activities.Chain
	deposits       *activities.Deposits
	comparing      *activities.Comparing
	cold           *activities.Cold
	signing        *activities.Signing
	wallets        *activities.Wallets
	webhooks       *activities.Webhooks
)

// Activities are what a queue's processes carry out, as empty structs; none for a queue that there is not.
func Activities(queue string) []any {
	switch {
	case queue == QueueFlows:
		return []any{orders, offRamps, bank, escrow, sweeps, chainRefunds, transfers, approvals, waits, reconciliation, rates, relay}
	case queue == QueueMomo:
		return []any{momo, payouts, refunds, float, statement}
	case queue == QueueWebhooks:
		return []any{webhooks}
	case ChainOf(queue) != "":
		return []any{chains, deposits, comparing, cold}
	case SignerOf(queue) != "":
		return []any{signing, wallets}
	}
	return nil
}
