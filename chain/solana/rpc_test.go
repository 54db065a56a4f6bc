package solana

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
	s, draft := harness(t)
	signed := signedFixture(t, stubbed(t, s), draft)
	address, lost := chaintest.HangsUp(t, s)
	c, err := New(Config{
		Genesis: GenesisMainnet, Now: func() time.Time { return stubNow },
		Tokens: map[money.Asset]string{money.USDT: usdt, money.USDC: usdc}, Nodes: []Endpoint{{URL: address}},
	})
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
		before := lost.Load() + int64(s.count("sendTransaction"))
		got, err = c.Broadcast(ctx, signed.Raw)
		sent = lost.Load() + int64(s.count("sendTransaction")) - before
	})
	if err != nil || got.State != chain.BroadcastUnknown {
		t.Errorf("%+v, %v", got, err)
	}
	if sent != 1 {
		t.Errorf("the transaction was sent %d times", sent)
	}
}
