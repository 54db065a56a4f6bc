package workflows

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/chain"
)

// TestEveryReasonIsExplained compares the guide, the runbooks and the chain's reasons.
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
		for _, part := range []string{"Means", "Look", "Send", "By itself"} {
			if !strings.Contains(section, "\n**"+part+".** ") {
				t.Errorf("%s does not say %q about %s", RunbooksPage, part, r)
			}
		}
		if a.what == "" || a.do == "" || len(a.verbs) == 0 {
			t.Errorf("%s has an empty guide: %+v", r, a)
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
		t.Error("a failed transaction must have the reason for it")
	}
}

// The Web UI and the API link to the runbooks' address that the deployment configures.
func TestRunbooksAreWhereTheDeploymentPoints(t *testing.T) {
	t.Cleanup(func() { UseRunbooks(RunbooksPage); UseAPI("") })
	UseAPI("https://api.example/")
	UseRunbooks("https://pages.example/runbooks.md")
	const want = "https://pages.example/runbooks.md#refund-float"
	if got := ReasonRefundFloat.Advice().Runbook; got != want {
		t.Errorf("the API names %s, want %s", got, want)
	}
	transfer := uuid.MustParse("00000000-0000-4000-8000-0000000000b1")
	got := parkedCard(subject{object: activities.ParkedObject{TransferID: transfer}}, ReasonRefundFloat, nil).String()
	for _, want := range []string{
		"[refund-float](" + want + ")", "[transfer " + transfer.String() + "](https://api.example/api/v1/auth/transfers/" + transfer.String() + ")",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the details do not link %s:\n%s", want, got)
		}
	}
}
