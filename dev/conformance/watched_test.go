package conformance

import (
	"testing"

	"kivuko/exchange"
)

// watched marks the network's watch as running and up to date: nothing is signed without it. Other tests cover the
// watch; here it reads nothing, so that only payments book.
func (o office) watched(t testing.TB) {
	t.Helper()
	ctx, n := t.Context(), o.client.Network()
	head, err := o.client.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c, err := o.db.StartDeposits(ctx, n, exchange.ChainBlock{Number: head.Final.Number, ID: head.Final.ID, Time: head.Final.Time})
	if err == nil {
		err = o.db.WatchAlive(ctx, n)
	}
	if err == nil {
		err = o.db.RecordLook(ctx, exchange.WatchLook{Network: n, Final: c.Final})
	}
	if err != nil {
		t.Fatal(err)
	}
}
