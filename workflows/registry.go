package workflows

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// Workflow types, the names under which flows are registered and started.
const (
	TypeOnRamp            = "OnRamp"
	TypeOffRamp           = "OffRamp"
	TypeMomoPayout        = "MomoPayout"
	TypeReturnDeposit     = "ReturnDeposit"
	TypeFeeSweep          = "FeeSweep"
	TypeSweepFees         = "SweepFees"
	TypeBankRefund        = "BankRefund"
	TypeCryptoPayout      = "CryptoPayout"
	TypeLatePayment       = "LatePayment"
	TypeLatePayout        = "LatePayout"
	TypeTransfer          = "Transfer"
	TypeCreateWallet      = "CreateWallet"
	TypeDepositWatch      = "DepositWatch"
	TypeReplenishEscrow   = "ReplenishEscrow"
	TypeReconcile         = "Reconcile"
	TypeReconcileNetwork  = "ReconcileNetwork"
	TypeReserveReport     = "ReserveReport"
	TypeReconcilePayments = "ReconcilePayments"
	TypeSweepPayments     = "SweepPayments"
	TypeGasAhead          = "GasAhead"
	TypeWatchFloat        = "WatchFloat"
	TypeMoveFloat         = "MoveFloat"
	TypeRelayEvents       = "RelayEvents"
	TypeDeliverWebhooks   = "DeliverWebhooks"
	TypePullRates         = "PullRates"
	TypePrune             = "Prune"
	TypeKeepMonths        = "KeepMonths"
	TypeRepairParked      = "RepairParked"
	TypeSealAudit         = "SealAudit"
	TypeSweepFiles        = "SweepFiles"
	TypeMatchStatements   = "MatchStatements"
	TypeOTCDeposit        = "OTCDeposit"
	TypeOTCWithdrawal     = "OTCWithdrawal"
	TypeOpenMultisig      = "OpenMultisig"
	TypeMultisigProposal  = "MultisigProposal"
)

// IDForm is the form of the ids of a type of flow, as "on-ramp:<order>".
type IDForm string

// of returns the id of the flow about an object.
func (f IDForm) of(about any) string {
	prefix, _, _ := strings.Cut(string(f), "<")
	return prefix + fmt.Sprint(about)
}

// object is the object of a flow, by the flow's own id. Who starts a flow can't give it another one.
func (f IDForm) object(ctx workflow.Context) (uuid.UUID, error) {
	prefix, _, _ := strings.Cut(string(f), "<")
	text, ours := strings.CutPrefix(workflow.GetInfo(ctx).WorkflowExecution.ID, prefix)
	id, err := uuid.Parse(text)
	if !ours || err != nil || id.String() != text {
		return uuid.Nil, refuse(exchange.CodeInvalid, "The id of the flow must be "+string(f)+".")
	}
	return id, nil
}

// network is the network of a flow, by the flow's own id.
func (f IDForm) network(ctx workflow.Context) (exchange.Network, error) {
	prefix, _, _ := strings.Cut(string(f), "<")
	text, ours := strings.CutPrefix(workflow.GetInfo(ctx).WorkflowExecution.ID, prefix)
	if n := exchange.Network(text); ours && n.Valid() {
		return n, nil
	}
	return "", refuse(exchange.CodeInvalid, "The id of the flow must be "+string(f)+".")
}

// The forms of ids. A flow without one is started by a schedule of temporal.yaml under the schedule's own id.
const (
	onRampForm         IDForm = "on-ramp:<order>"
	offRampForm        IDForm = "off-ramp:<order>"
	momoPayoutForm     IDForm = "momo-payout:<order>"
	returnDepositForm  IDForm = "return-deposit:<exception>"
	cryptoPayoutForm   IDForm = "crypto-payout:<payment>"
	feeSweepForm       IDForm = "fee-sweep:<sweep>"
	bankRefundForm     IDForm = "bank-refund:<refund>"
	refundForm         IDForm = "refund:<refund>" // of a MomoPayout too
	latePaymentForm    IDForm = "late-payment:<attempt>"
	transferForm       IDForm = "transfer:<transfer>"
	walletForm         IDForm = "wallet:<wallet>"
	depositWatchForm   IDForm = "deposit-watch:<network>"
	reconciliationForm IDForm = "reconciliation:<network>"
	moveFloatForm      IDForm = "float-move:<movement>"
	webhooksForm       IDForm = "webhooks:<endpoint>"
	otcDepositForm     IDForm = "otc-deposit:<deposit>"
	withdrawalForm     IDForm = "otc-withdrawal:<withdrawal>"
	takenOutForm       IDForm = "withdrawal-payout:<withdrawal>" // of a MomoPayout too
	multisigForm       IDForm = "multisig:<account>"
	proposalForm       IDForm = "multisig-proposal:<proposal>"
)

// Flow describes a type of flow.
type Flow struct {
	Type string
	Run  any // the workflow's function
	ID   IDForm
}

// Flows lists all types. Workers register them; tests compare the docs, the recorded histories and the ids with them.
func Flows() []Flow {
	return []Flow{
		{TypeOnRamp, OnRamp, onRampForm},
		{TypeOffRamp, OffRamp, offRampForm},
		{TypeMomoPayout, MomoPayout, momoPayoutForm},
		{TypeReturnDeposit, ReturnDeposit, returnDepositForm},
		{TypeFeeSweep, FeeSweep, feeSweepForm},
		{TypeSweepFees, SweepFees, ""},
		{TypeBankRefund, BankRefund, bankRefundForm},
		{TypeCryptoPayout, CryptoPayout, cryptoPayoutForm},
		{TypeLatePayment, LatePayment, latePaymentForm},
		{TypeLatePayout, LatePayout, latePaymentForm},
		{TypeTransfer, Transfer, transferForm},
		{TypeCreateWallet, CreateWallet, walletForm},
		{TypeDepositWatch, DepositWatch, depositWatchForm},
		{TypeReplenishEscrow, ReplenishEscrow, ""},
		{TypeReconcile, Reconcile, ""},
		{TypeReconcileNetwork, ReconcileNetwork, reconciliationForm},
		{TypeReserveReport, ReserveReport, ""},
		{TypeReconcilePayments, ReconcilePayments, ""},
		{TypeSweepPayments, SweepPayments, ""},
		{TypeGasAhead, GasAhead, ""},
		{TypeWatchFloat, WatchFloat, ""},
		{TypeMoveFloat, MoveFloat, moveFloatForm},
		{TypeRelayEvents, RelayEvents, ""},
		{TypeDeliverWebhooks, DeliverWebhooks, webhooksForm},
		{TypePullRates, PullRates, ""},
		{TypePrune, Prune, ""},
		{TypeKeepMonths, KeepMonths, ""},
		{TypeRepairParked, RepairParked, ""},
		{TypeSealAudit, SealAudit, ""},
		{TypeSweepFiles, SweepFiles, ""},
		{TypeMatchStatements, MatchStatements, ""},
		{TypeOTCDeposit, OTCDeposit, otcDepositForm},
		{TypeOTCWithdrawal, OTCWithdrawal, withdrawalForm},
		{TypeSwap, Swap, swapForm},
		{TypeOpenMultisig, OpenMultisig, multisigForm},
		{TypeMultisigProposal, MultisigProposal, proposalForm},
		{TypeWatchInventory, WatchInventory, ""},
	}
}

// OnRampID is the id of the flow of an order that buys crypto.
func OnRampID(order uuid.UUID) string { return onRampForm.of(order) }

// OffRampID is the id of the flow of an order that sells crypto.
func OffRampID(order uuid.UUID) string { return offRampForm.of(order) }

// MomoPayoutID is the id of the flow that pays out an order, a refund or a withdrawal.
func MomoPayoutID(of exchange.MomoObject) string {
	switch of.Type {
	case exchange.MomoRefund:
		return refundForm.of(of.ID)
	case exchange.MomoWithdrawal:
		return takenOutForm.of(of.ID)
	case exchange.MomoOrder, exchange.MomoDeposit: // nothing is paid out for a deposit
	}
	return momoPayoutForm.of(of.ID)
}

// ReturnDepositID is the id of the flow that moves unmatched crypto off the address where it is.
func ReturnDepositID(exception uuid.UUID) string { return returnDepositForm.of(exception) }

// FeeSweepID is the id of the flow that brings the earned fees of a wallet to the treasury.
func FeeSweepID(sweep uuid.UUID) string { return feeSweepForm.of(sweep) }

// BankRefundID is the id of the flow that pays a refund at a bank.
func BankRefundID(refund uuid.UUID) string { return bankRefundForm.of(refund) }

// OpenMultisigID is the id of the flow that opens or adopts an account of several owners.
func OpenMultisigID(account uuid.UUID) string { return multisigForm.of(account) }

// MultisigProposalID is the id of the flow of a payment from an account of several owners.
func MultisigProposalID(proposal uuid.UUID) string { return proposalForm.of(proposal) }

// CryptoPayoutID is the id of the flow of a chain payment.
func CryptoPayoutID(payment uuid.UUID) string { return cryptoPayoutForm.of(payment) }

// LatePaymentID is the id of the flow that watches an attempt whose order has ended.
func LatePaymentID(attempt uuid.UUID) string { return latePaymentForm.of(attempt) }

// LatePayoutID is the id of the flow that checks late evidence about a payout. It has the form of LatePaymentID, so that the
// same commands reach it.
func LatePayoutID(attempt uuid.UUID) string { return latePaymentForm.of(attempt) }

// TransferID is the id of the flow of a transfer.
func TransferID(transfer uuid.UUID) string { return transferForm.of(transfer) }

// OTCDepositID is the id of the flow of an OTC deposit.
func OTCDepositID(deposit uuid.UUID) string { return otcDepositForm.of(deposit) }

// WithdrawalID is the id of the flow of a withdrawal.
func WithdrawalID(withdrawal uuid.UUID) string { return withdrawalForm.of(withdrawal) }

// WalletID is the id of the flow that creates a wallet.
func WalletID(wallet uuid.UUID) string { return walletForm.of(wallet) }

// DepositWatchID is the id of the flow that watches a network for deposits. Each network has one.
func DepositWatchID(n exchange.Network) string { return depositWatchForm.of(n) }

// ReconciliationID is the id of the flow that compares a network. Each network has one at a time.
func ReconciliationID(n exchange.Network) string { return reconciliationForm.of(n) }

// MoveFloatID is the id of the flow of a movement of float.
func MoveFloatID(move uuid.UUID) string { return moveFloatForm.of(move) }

// WebhooksID is the id of the flow of an endpoint. It runs while the endpoint has something to deliver.
func WebhooksID(endpoint uuid.UUID) string { return webhooksForm.of(endpoint) }

// The task queues divide the work by trust and by rate. Only signer queues have keys, only the momo queue has the mobile
// money operator's secrets, only chain queues call nodes, and only the webhooks queue calls addresses that users set.
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

// ChainOf returns the network of a chain queue, and SignerOf that of a signer queue: "" for any other queue.
func ChainOf(queue string) exchange.Network  { return networkOf(queue, kindChain) }
func SignerOf(queue string) exchange.Network { return networkOf(queue, kindSigner) }

func networkOf(queue, kind string) exchange.Network {
	if of, network, ok := strings.Cut(queue, "-"); ok && of == kind && exchange.Network(network).Valid() {
		return exchange.Network(network)
	}
	return ""
}

// The activities by their structs. Flows use only the names and types of the methods.
var (
	orders         *activities.Orders
	offRamps       *activities.OffRamps
	bank           *activities.Bank
	escrow         *activities.Escrow
	sweeps         *activities.Sweeps
	chainRefunds   *activities.ChainRefunds
	bankRefunds    *activities.BankRefunds
	transfers      *activities.Transfers
	approvals      *activities.Approvals
	intents        *activities.Intents
	waits          *activities.DepositWaits
	reconciliation *activities.Reconciliation
	rates          *activities.Rates
	relay          *activities.Relay
	files          *activities.Files
	house          *activities.House
	otc            *activities.OTC
	withdrawals    *activities.Withdrawals
	swaps          *activities.Swaps
	momo           *activities.Momo
	payouts        *activities.Payouts
	refunds        *activities.Refunds
	float          *activities.Float
	statement      *activities.Statement
	chains         *activities.Chain
	ahead          *activities.GasAhead
	deposits       *activities.Deposits
	comparing      *activities.Comparing
	syncing        *activities.SwapSync
	cold           *activities.Cold
	multisigs      *activities.Multisigs
	multisigKeys   *activities.MultisigKeys
	multisigRows   *activities.MultisigRows
	multisigGiven  *activities.MultisigHandovers

	multisigPayloads *activities.MultisigPayloads
	multisigSigning  *activities.MultisigSigning
	proposals        *activities.Proposals
	signing          *activities.Signing
	wallets          *activities.Wallets
	webhooks         *activities.Webhooks
)

// Activities returns the activities of a queue as empty structs; none for an unknown queue.
func Activities(queue string) []any {
	switch {
	case queue == QueueFlows:
		return []any{orders, offRamps, bank, escrow, sweeps, chainRefunds, transfers, approvals, intents, waits, reconciliation, rates, relay, files, house, otc, withdrawals, bankRefunds, swaps, multisigRows, proposals}
	case queue == QueueMomo:
		return []any{momo, payouts, refunds, float, statement}
	case queue == QueueWebhooks:
		return []any{webhooks}
	case ChainOf(queue) != "":
		return []any{chains, ahead, deposits, comparing, syncing, cold, multisigs, multisigPayloads}
	case SignerOf(queue) != "":
		return []any{signing, wallets, multisigKeys, multisigGiven, multisigSigning}
	}
	return nil
}
