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
	doc, err := os.ReadFile(filepath.Join("..", RunbooksPage))
	if err != nil {
		t.Fatal(err)
	}
	for r, a := range guide {
		_, section, ok := strings.Cut(string(doc), "\n## "+string(r)+"\n")
		if !ok {
			t.Errorf("%s has no heading for %s", RunbooksPage, r)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, part := range []string{"Means", "Look", "Send"} {
			if !strings.Contains(section, "\n**"+part+".** ") {
				t.Errorf("%s does not say %q about %s", RunbooksPage, part, r)
			}
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

// What the Web UI and the API link to is where the deployment says that its operators read the page.
func TestRunbooksAreWhereTheDeploymentSays(t *testing.T) {
	t.Cleanup(func() { UseRunbooks(RunbooksPage) })
	UseRunbooks("https://pages.example/runbooks.md")
	const want = "https://pages.example/runbooks.md#refund-float"
	if got := ReasonRefundFloat.Advice().Runbook; got != want {
		t.Errorf("the API names %s, want %s", got, want)
	}
	if got := parkedCard("x", "y", ReasonRefundFloat, nil).String(); !strings.Contains(got, "[refund-float]("+want+")") {
		t.Errorf("the details do not link %s:\n%s", want, got)
	}
}
