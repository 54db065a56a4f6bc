package store_test

import (
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// What the watch has read of a payment's transaction follows the chain, and counts while the watch keeps up with it.
func TestSightings(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, c := timed(t)
	_, p := paid(t, s, storetest.NewMarket(t, s))
	look(t, s, 100, c.now())
	tx := sign(t, s, p)
	want := func(when string, w exchange.TxSighting) {
		t.Helper()
		got, err := s.Sighting(ctx, exchange.Tron, []string{"another", tx.TxID})
		got.Final.Time, got.Newest.Time = time.Time{}, time.Time{}
		if err != nil || got != w {
			t.Errorf("%s: %+v, %v; want %+v", when, got, err, w)
		}
	}
	block := func(n uint64) exchange.ChainBlock { return exchange.ChainBlock{Number: n} }
	read := func(branch string, n uint64) exchange.BlockScan {
		return scanOf(blockOf(branch, n), moveOf(tx.TxID, p.FromAddress, p.ToAddress, p.Amount))
	}
	want("before", exchange.TxSighting{Current: true, Final: block(100), Newest: block(100)})
	seenBlock(t, s, scanOf(blockOf("a", 101)))
	seenBlock(t, s, read("a", 102))
	in := exchange.TxSighting{Current: true, Final: block(100), Newest: block(102), TxID: tx.TxID, Block: exchange.ChainBlock{Number: 102, ID: "a-102"}}
	want("in a block", in)
	if err := s.DropSeenBlock(ctx, exchange.Tron, blockOf("a", 102)); err != nil {
		t.Fatal(err)
	}
	want("its block is undone", exchange.TxSighting{Current: true, Final: block(100), Newest: block(101)})
	seenBlock(t, s, read("a", 102))
	finalBlock(t, s, scanOf(blockOf("a", 101)))
	in.Final = block(101)
	want("not final yet", in)
	finalBlock(t, s, read("a", 102))
	in.Final, in.Settled = block(102), true
	want("final", in)
	if got, err := s.Sighting(ctx, exchange.Tron, []string{"another"}); err != nil || got.TxID != "" || got.Settled {
		t.Errorf("another transaction: %+v, %v", got, err)
	}
	if got, err := s.Sighting(ctx, exchange.Solana, []string{tx.TxID}); err != nil || got != (exchange.TxSighting{}) {
		t.Errorf("a network without a watch: %+v, %v", got, err)
	}

	in.Current = false
	look(t, s, 103, c.now())
	want("the watch is behind", in)
	look(t, s, 102, c.now())
	c.advance(store.MaxLookAge + time.Second)
	want("the watch is away", in)
	look(t, s, 102, c.now())
	storetest.Exec(t, s, `UPDATE deposit_looks SET identity = 'before'`)
	want("the watch looked into another database", in)
}
