package solana

import (
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
	for range 3 {
		if _, err := c.Head(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	reads := lost.Load()
	if reads == 0 {
		t.Fatal("no query met a closed connection")
	}
	if got, err := c.Broadcast(t.Context(), signed.Raw); err != nil || got.State != chain.BroadcastUnknown {
		t.Errorf("%+v, %v", got, err)
	}
	if n := lost.Load() - reads + int64(s.count("sendTransaction")); n != 1 {
		t.Errorf("the transaction was sent %d times", n)
	}
}
