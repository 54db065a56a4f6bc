package ethereum

import (
	"context"
	"testing"
	"time"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/exchange/money"
)

// A node that closes a connection just as a query is sent on it is queried again. A broadcast is sent once, and whether it
// arrived is unknown.
func TestAKeptConnectionIsClosed(t *testing.T) {
	t.Parallel()
	s, k := paying(t), newKey(t)
	whole := driver(t, s)
	signed, err := whole.Sign(prepared(t, whole, k, money.Must(money.ETH, "0.1")), k)
	if err != nil {
		t.Fatal(err)
	}
	address, lost := chaintest.HangsUp(t, s)
	c, err := New(Config{ChainID: stubChain, CallTimeout: 5 * time.Second, Nodes: []Endpoint{{URL: address}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	chaintest.OnKeptConnection(t, func(ctx context.Context) {
		if _, err := c.Head(ctx); err != nil {
			t.Fatal(err)
		}
	})
	if lost.Load() == 0 {
		t.Fatal("no query met a closed connection")
	}
	var got chain.Broadcast
	var sent int64
	chaintest.OnKeptConnection(t, func(ctx context.Context) {
		before := lost.Load() + int64(s.called("eth_sendRawTransaction"))
		got, err = c.Broadcast(ctx, signed.Raw)
		sent = lost.Load() + int64(s.called("eth_sendRawTransaction")) - before
	})
	if err != nil || got.State != chain.BroadcastUnknown {
		t.Errorf("%+v, %v", got, err)
	}
	if sent != 1 {
		t.Errorf("the transaction was sent %d times", sent)
	}
}
