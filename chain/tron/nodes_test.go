package tron

import (
	"testing"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"

	"kivuko/chain"
)

// A node whose connection ends during a query is queried again. A broadcast is sent once, and whether it arrived is unknown.
func TestAConnectionEndsUnderAQuestion(t *testing.T) {
	full, solid := &stub{head: 10, answer: &api.Return{Result: true}}, &stub{head: 5}
	c := stubbed(t, []*stub{full}, []*stub{solid})
	_, encoded, _ := signedFixture(t, c)
	full.set(func() { full.asked, full.lose = 0, 1 })
	if h, err := c.Head(t.Context()); err != nil || h.Latest.Number != 10 {
		t.Errorf("%+v, %v", h, err)
	}
	if full.questions() != 2 {
		t.Errorf("the node was queried %d times", full.questions())
	}
	full.set(func() { full.asked, full.lose = 0, 1 })
	if got, err := c.Broadcast(t.Context(), encoded); err != nil || got.State != chain.BroadcastUnknown {
		t.Errorf("%+v, %v", got, err)
	}
	if full.questions() != 1 {
		t.Errorf("the transaction was sent %d times", full.questions())
	}
}
