package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// The search attributes. They are not encrypted, so they hold ids and words of ours and nothing of a
// person. temporal.yaml registers them.
var (
	AttrStatus         = temporal.NewSearchAttributeKeyKeyword("KivukoStatus") // of the object
	AttrStage          = temporal.NewSearchAttributeKeyKeyword("KivukoStage")  // of the flow
	AttrNetwork        = temporal.NewSearchAttributeKeyKeyword("KivukoNetwork")
	AttrAsset          = temporal.NewSearchAttributeKeyKeyword("KivukoAsset")
	AttrMerchantID     = temporal.NewSearchAttributeKeyKeyword("KivukoMerchantId")
	AttrOrderType      = temporal.NewSearchAttributeKeyKeyword("KivukoOrderType")
	AttrNeedsAttention = temporal.NewSearchAttributeKeyBool("KivukoNeedsAttention")  // parked
	AttrWaitingFor     = temporal.NewSearchAttributeKeyKeyword("KivukoWaitingFor")   // a Wait… constant
	AttrDeadline       = temporal.NewSearchAttributeKeyTime("KivukoDeadline")        // of what it waits for
	AttrReason         = temporal.NewSearchAttributeKeyKeyword("KivukoParkedReason") // a Reason, "" when not parked
)

// The stages of flows.
const (
	StageCollect   = "collect"
	StageDeposit   = "deposit"
	StageBank      = "bank"
	StageSweep     = "sweep"
	StagePayout    = "payout"
	StageComplete  = "complete"
	StageRefund    = "refund"
	StageWatch     = "watch"
	StageScreening = "screening"
	StageApproval  = "approval"
	StageDone      = "done"
)

// Whom a flow waits for.
const (
	WaitsForPayer = "payer"
	// WaitsForDepositor is for the crypto of whoever sells it, WaitsForBank for an officer who pays at the bank.
	WaitsForDepositor = "depositor"
	WaitsForBank      = "bank"
	WaitsForMomo      = "momo"
	WaitsForChain     = "chain"
	WaitsForOperator  = "operator"
	WaitsForNobody    = "nobody"
	WaitsForScreener  = "screener"
	WaitsForOfficer   = "officer"
)

// Priorities on the task queues, 1 first: money that goes back before money that comes in.
const (
	priorityRefund = 1
	priorityOrder  = 2
)

// OnRampAttributes are the search attributes with which the API starts an on-ramp flow. With an offer that
// was seen they are all that the flow would show of its order, which then need not show it again.
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

// OnRampSummary is the one line that the Web UI shows of an on-ramp flow.
func OnRampSummary(r exchange.OrderRequest) string {
	if r.Crypto.Positive() {
		return "Buy " + r.Crypto.String() + " " + string(r.Crypto.Asset())
	}
	return "Buy crypto for " + r.Fiat.String() + " " + string(r.Fiat.Asset())
}

// LatePaymentSummary is the one line that the Web UI shows of a watch over late money.
const LatePaymentSummary = "Watch for late money"

// LatePaymentAttributes are the search attributes with which a watch over late money starts.
func LatePaymentAttributes() temporal.SearchAttributes {
	return attributes(StageWatch, WaitsForMomo)
}

// show writes search attributes. It fails only for attributes that can't be encoded, which is a bug
// that the tests find, so the flow goes on without them.
func show(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) {
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		workflow.GetLogger(ctx).Error("search attributes were not written", "error", err)
	}
}

// attributesOf describes an opened order.
func attributesOf(o activities.OpenedOrder) []temporal.SearchAttributeUpdate {
	return []temporal.SearchAttributeUpdate{
		AttrNetwork.ValueSet(string(o.Network)), AttrAsset.ValueSet(string(o.Asset)),
		AttrMerchantID.ValueSet(o.MerchantID.String()), AttrOrderType.ValueSet(string(o.Type)),
		AttrStatus.ValueSet(string(o.Status)), AttrStage.ValueSet(StageCollect), AttrNeedsAttention.ValueSet(false),
		AttrWaitingFor.ValueSet(WaitsForPayer), AttrDeadline.ValueSet(o.ExpiresAt),
	}
}

// fairness makes one merchant's rush wait for itself and not for the others.
func fairness(key int, merchant uuid.UUID) temporal.Priority {
	p := temporal.Priority{PriorityKey: key}
	if merchant != uuid.Nil {
		p.FairnessKey = merchant.String()
	}
	return p
}
