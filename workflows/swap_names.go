package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The types of the flows about swaps.
const (
	TypeSwap           = "Swap"
	TypeWatchInventory = "WatchInventory"
)

const swapForm IDForm = "swap:<swap>"

// SwapID is the id of the flow of a swap.
func SwapID(swap uuid.UUID) string { return swapForm.of(swap) }

// SwapInput starts the flow of a swap.
type SwapInput struct {
	IntentID uuid.UUID `json:"intent_id"`
}

// SwapResult is how the flow ended.
type SwapResult struct {
	SwapID uuid.UUID           `json:"swap_id"`
	Status exchange.SwapStatus `json:"status,omitempty"` // empty when the swap was refused and never existed
	Detail string              `json:"detail,omitempty"`
}

// SwapAck answers the updates of a swap with its state.
type SwapAck struct {
	Status exchange.SwapStatus `json:"status,omitempty"`
	Detail string              `json:"detail,omitempty"`
}

// SwapAttributes are the search attributes with which the API starts the flow of a swap at the price of a quote.
func SwapAttributes(q exchange.SwapQuote) temporal.SearchAttributes {
	return swapAttributes(q.Terms.Network, q.Terms.From, q.VendorID)
}

func swapAttributes(n exchange.Network, from money.Asset, merchant uuid.UUID) temporal.SearchAttributes {
	shown := []temporal.SearchAttributeUpdate{AttrStatus.ValueSet(string(exchange.SwapReserved)), AttrNetwork.ValueSet(string(n)), AttrAsset.ValueSet(string(from))}
	if merchant != uuid.Nil {
		shown = append(shown, AttrMerchantID.ValueSet(merchant.String()))
	}
	return attributes(StageCollect, WaitsForChain, shown...)
}

// SwapSummary is the summary of the flow in the Web UI.
func SwapSummary(q exchange.SwapQuote) string {
	return "Swap " + q.Price.From.String() + " " + string(q.Terms.From) + " for " + string(q.Terms.To)
}
