package workflows

import (
	"go.temporal.io/sdk/temporal"

	"kivuko/exchange"
)

// OpenMultisigInput starts the flow, whose id names the account.
type OpenMultisigInput struct{}

// OpenMultisigSummary is the summary of the flow in the Web UI.
const OpenMultisigSummary = "Open a wallet of several owners"

// OpenMultisigAttributes are the search attributes with which the flow starts.
func OpenMultisigAttributes(n exchange.Network) temporal.SearchAttributes {
	return attributes(StageOpening, WaitsForChain, AttrNetwork.ValueSet(string(n)))
}
