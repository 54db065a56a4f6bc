package chain_test

import (
	"testing"

	"kivuko/chain"
)

// An account that only one of the two blocks has is moving, and no other one than was agreed.
func TestJoined(t *testing.T) {
	t.Parallel()
	absent := chain.Errorf(chain.ReasonForeign, "does not exist")
	down := chain.Errorf(chain.ReasonUnavailable, "no node")
	q := chain.Quorum{Threshold: 2}
	for name, c := range map[string]struct {
		final, latest error
		moving        bool
		reason        chain.Reason
	}{
		"both have it":         {nil, nil, false, ""},
		"it is not final yet":  {absent, nil, true, ""},
		"it is not there now":  {nil, absent, true, ""},
		"neither has it":       {absent, absent, false, chain.ReasonForeign},
		"the newest is unread": {absent, down, false, chain.ReasonUnavailable},
	} {
		got, err := chain.Joined(q, c.final, q, c.latest)
		if chain.ReasonOf(err) != c.reason || got.Moving != c.moving || err == nil && got.Threshold != 2 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
