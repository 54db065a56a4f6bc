package chain_test

import (
	"context"
	"testing"

	"kivuko/chain"
	"kivuko/exchange"
)

// twoNodes is a network whose nodes know different parts of the chain.
type twoNodes struct {
	final   []uint64 // the final block of the node that answers each query for the transaction
	looks   int
	counted uint64 // the final block of the node that counts the nonces
	nonce   uint64 // the count at that block
}

// Locate misses the transaction.
func (n *twoNodes) Locate(context.Context, string) (chain.Location, error) {
	l := chain.Location{Stage: chain.StageAbsent}
	l.Head.Final.Number = n.final[min(n.looks, len(n.final)-1)]
	n.looks++
	return l, nil
}

// Nonces counts.
func (n *twoNodes) Nonces(context.Context, string) (chain.Nonces, error) {
	out := chain.Nonces{Latest: n.nonce, Final: n.nonce}
	out.Head.Final.Number = n.counted
	return out, nil
}

// The transaction itself may have used its number, in a block that the node which misses it does not have yet. Building
// another one would pay twice.
func TestAbsenceMustReachTheBlockOfTheCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		nodes twoNodes
		want  chain.Verdict
	}{
		{"both nodes know the block", twoNodes{final: []uint64{90, 90}, counted: 90, nonce: 8}, chain.VerdictRebuild},
		{"the one that misses it knows more", twoNodes{final: []uint64{80, 95}, counted: 90, nonce: 8}, chain.VerdictRebuild},
		{"the one that misses it is behind", twoNodes{final: []uint64{90, 89}, counted: 90, nonce: 8}, chain.VerdictBroadcast},
		{"the number is free", twoNodes{final: []uint64{90, 90}, counted: 90, nonce: 7}, chain.VerdictBroadcast},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			nodes := c.nodes
			f, err := chain.Inquire(t.Context(), &nodes, exchange.ChainAttempt{TxID: "0xaa", Nonce: 7}, chain.Transfer{})
			if err != nil {
				t.Fatal(err)
			}
			if got := chain.Judge(f); got != c.want {
				t.Errorf("judged %s, want %s: %+v", got, c.want, f)
			}
		})
	}
}
