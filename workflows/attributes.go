package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// The search attributes. They are not encrypted, so they hold ids and our own codes, and no personal data.
// temporal.yaml registers them.
var (
	AttrStatus         = temporal.NewSearchAttributeKeyKeyword("KivukoStatus") // of the object
	AttrStage          = temporal.NewSearchAttributeKeyKeyword("KivukoStage")  // of the flow
	AttrNetwork        = temporal.NewSearchAttributeKeyKeyword("KivukoNetwork")
	AttrAsset          = temporal.NewSearchAttributeKeyKeyword("KivukoAsset")
	AttrMerchantID     = temporal.NewSearchAttributeKeyKeyword("KivukoMerchantId")
	AttrOrderType      = temporal.NewSearchAttributeKeyKeyword("KivukoOrderType")
	AttrNeedsAttention = temporal.NewSearchAttributeKeyBool("KivukoNeedsAttention")  // parked
	AttrWaitingFor     = temporal.NewSearchAttributeKeyKeyword("KivukoWaitingFor")   // a Wait… constant
	AttrDeadline       = temporal.NewSearchAttributeKeyTime("KivukoDeadline")        // of the wait
	AttrReason         = temporal.NewSearchAttributeKeyKeyword("KivukoParkedReason") // a Reason, "" when not parked
)

// The stages of flows.
const (
	StageCollect   = "collect"
	StageDeposit   = "deposit"
	StageBank      = "bank"
	StageSweep     = "sweep"
	StagePayout    = "payout"
	StageRefund    = "refund"
	StageWatch     = "watch"
	StageScreening = "screening"
	StageApproval  = "approval"
	StageReview    = "review" // by the OTC desk
	StageSync      = "sync"   // chain and ledger are compared
	StageAudit     = "audit"
	StageOpening   = "opening" // of an account on a chain
	StageSigning   = "signing" // by the owners of a wallet
	StageDone      = "done"
)

// What a flow waits for.
const (
	WaitsForPayer = "payer"
	// WaitsForDepositor is the wait for the seller's crypto, WaitsForBank the wait for an officer who pays at the bank.
	WaitsForDepositor = "depositor"
	WaitsForBank      = "bank"
	WaitsForMomo      = "momo"
	WaitsForChain     = "chain"
	WaitsForOperator  = "operator"
	WaitsForNothing   = "nothing"
	WaitsForScreener  = "screener"
	WaitsForOfficer   = "officer"
	WaitsForMerchant  = "merchant"
	WaitsForOwners    = "owners" // of a wallet of several owners
)

// Priorities on the task queues, 1 first: refunds come before new orders, and those before what is not needed yet.
const (
	priorityRefund = 1
	priorityOrder  = 2
	priorityAhead  = 3 // no object waits for it yet
)

// OnRampAttributes are the search attributes with which the API starts an on-ramp flow. If the request has the offer that
// the customer saw, they are complete, and the flow does not write them again.
func OnRampAttributes(r exchange.OrderRequest) temporal.SearchAttributes {
	if r.Seen != (exchange.SeenOffer{}) {
		return temporal.NewSearchAttributes(attributesOf(activities.OpenedOrder{
			OrderState: activities.OrderState{Status: exchange.OrderPending}, Type: exchange.OnRampBuy,
			Network: r.Seen.Network, Asset: r.Seen.Asset, MerchantID: r.Seen.MerchantID, ExpiresAt: r.ExpiresAt,
		})...)
	}
	return temporal.NewSearchAttributes(
		AttrStatus.ValueSet(string(exchange.OrderPending)), AttrStage.ValueSet(StageCollect),
		AttrOrderType.ValueSet(string(exchange.OnRampBuy)), AttrNeedsAttention.ValueSet(false),
	)
}

// OnRampSummary is the summary of an on-ramp flow in the Web UI.
func OnRampSummary(r exchange.OrderRequest) string {
	if r.Crypto.Positive() {
		return "Buy " + r.Crypto.String() + " " + string(r.Crypto.Asset())
	}
	return "Buy crypto for " + r.Fiat.String() + " " + string(r.Fiat.Asset())
}

// LatePaymentSummary is the summary of a watch for late money in the Web UI.
const LatePaymentSummary = "Watch for late money"

// LatePaymentAttributes are the search attributes with which a watch for late money starts.
func LatePaymentAttributes() temporal.SearchAttributes {
	return attributes(StageWatch, WaitsForMomo)
}

// show writes search attributes. It fails only for attributes that can't be encoded, which tests find, so the flow goes on
// without them.
func show(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) {
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		workflow.GetLogger(ctx).Error("search attributes could not be written", "error", err)
	}
}

// shownAtStart reports whether a flow was started with the search attributes of its offer.
func shownAtStart(ctx workflow.Context) bool {
	_, shown := workflow.GetTypedSearchAttributes(ctx).GetKeyword(AttrNetwork)
	return shown
}

// attributesOf returns the search attributes of an opened order.
func attributesOf(o activities.OpenedOrder) []temporal.SearchAttributeUpdate {
	return []temporal.SearchAttributeUpdate{
		AttrNetwork.ValueSet(string(o.Network)), AttrAsset.ValueSet(string(o.Asset)),
		AttrMerchantID.ValueSet(o.MerchantID.String()), AttrOrderType.ValueSet(string(o.Type)),
		AttrStatus.ValueSet(string(o.Status)), AttrStage.ValueSet(StageCollect), AttrNeedsAttention.ValueSet(false),
		AttrWaitingFor.ValueSet(WaitsForPayer), AttrDeadline.ValueSet(o.ExpiresAt),
	}
}

// fairness returns a priority that keeps one merchant's load from delaying the others.
func fairness(key int, merchant uuid.UUID) temporal.Priority {
	p := temporal.Priority{PriorityKey: key}
	if merchant != uuid.Nil {
		p.FairnessKey = merchant.String()
	}
	return p
}
