package workflows

import (
	"strings"
	"testing"

	"kivuko/exchange"
)

// Each verb on a deposit or a withdrawal has words of its own in the timeline.
func TestVerbsHaveSummaries(t *testing.T) {
	t.Parallel()
	unknown, seen := IntentRef{}.summary(), map[string]exchange.IntentKind{}
	for _, k := range exchange.IntentKinds() {
		object, _, _ := strings.Cut(string(k), ".")
		opens := k == exchange.IntendOTCDraft || k == exchange.IntendOTCOpen || k == exchange.IntendWithdrawal
		if object != "deposit" && object != "withdrawal" || opens {
			continue
		}
		words := object + ": " + IntentRef{Verb: k}.summary()
		if other, twice := seen[words]; twice || words == object+": "+unknown {
			t.Errorf("%s is shown as %q, as is %s", k, words, other)
		}
		seen[words] = k
	}
}
