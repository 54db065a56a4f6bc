package workflows

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kivuko/activities"
	"kivuko/chain"
)

// TestEveryReasonIsExplained holds the guide, the operators' document and the chain's reasons together.
func TestEveryReasonIsExplained(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", operationsDoc))
	if err != nil {
		t.Fatal(err)
	}
	for r, a := range guide {
		if !strings.Contains(string(doc), "\n## "+string(r)+"\n") {
			t.Errorf("%s has no heading for %s", operationsDoc, r)
		}
		if a.what == "" || a.do == "" || len(a.verbs) == 0 {
			t.Errorf("%s says nothing: %+v", r, a)
		}
	}
	for _, r := range []chain.Reason{
		chain.ReasonAddress, chain.ReasonUnsupported, chain.ReasonFunds, chain.ReasonGas, chain.ReasonBlocked, chain.ReasonPaused,
		chain.ReasonReverts, chain.ReasonFeeTooHigh, chain.ReasonForeign, activities.GasWalletShort, activities.GasAboveCap,
		activities.GasLimit, activities.GasFailed,
	} {
		if payoutReason(string(r)) == ReasonPayoutFailed {
			t.Errorf("a payout that is parked with %s has no reason of its own", r)
		}
	}
	if payoutReason("REVERT") != ReasonPayoutFailed {
		t.Error("a failed transaction must be named so")
	}
}
