package workflows_test

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// A smooth order writes its search attributes twice: when it pays out and when it ends. It starts with the attributes
// of an opened order.
func TestSmoothOrderShowsItselfTwice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seen   exchange.SeenOffer
		upsert int
	}{
		"started with what the API saw": {exchange.SeenOffer{Network: exchange.Tron, Asset: money.USDT, MerchantID: uuid.New()}, 2},
		"started with no offer":         {upsert: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newHarness(t)
			w.request.Seen = c.seen
			w.run(t)
			ended(t, w, exchange.OrderCompleted, exchange.WaitNothing)
			if n := w.signs.shown[workflows.OnRampID(w.request.ID)]; n != c.upsert {
				t.Errorf("%d upserts, want %d", n, c.upsert)
			}
		})
	}
	began := workflows.OnRampAttributes(exchange.OrderRequest{Seen: exchange.SeenOffer{Network: exchange.Tron, Asset: money.USDT, MerchantID: uuid.New()}})
	for _, k := range []string{"KivukoNetwork", "KivukoAsset", "KivukoMerchantId", "KivukoOrderType", "KivukoStatus", "KivukoStage", "KivukoWaitingFor", "KivukoDeadline", "KivukoNeedsAttention"} {
		found := false
		for key := range began.GetUntypedValues() {
			found = found || key.GetName() == k
		}
		if !found {
			t.Errorf("an order starts without %s", k)
		}
	}
}
