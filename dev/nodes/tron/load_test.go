package tron

import (
	"context"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/types/known/anypb"
)

// tokenTransfer builds a transfer without asking the node.
func tokenTransfer(head Block, from actor, to Address, units, stamp int64) *core.Transaction {
	usdt := mustAddress(USDTAddress)
	parameter, err := anypb.New(&core.TriggerSmartContract{
		OwnerAddress: from.addr[:], ContractAddress: usdt[:], Data: calldata("transfer(address,uint256)", to[1:], number(units)),
	})
	if err != nil {
		panic(err)
	}
	return &core.Transaction{RawData: &core.TransactionRaw{
		RefBlockBytes: head.ID[6:8], RefBlockHash: head.ID[8:16], Expiration: head.Time.UnixMilli() + 600_000,
		Timestamp: stamp, FeeLimit: feeCap,
		Contract: []*core.Transaction_Contract{{Type: core.Transaction_Contract_TriggerSmartContract, Parameter: parameter}},
	}}
}

// Readers, senders, block makers and a reorganiser at once: for the race
// detector, and no payment may be lost or made twice.
func TestConcurrentUse(t *testing.T) {
	b := newBench(t)
	const senders, each = 4, 25
	names := make([]string, senders)
	for i := range names {
		names[i] = fmt.Sprint("sender", i)
	}
	actors := b.funded(1_000_000, names...)
	if _, err := b.Solidify(); err != nil {
		t.Fatal(err)
	}
	sink, ctx := newActor("sink"), context.Background()
	solid := b.Solid() // a reference no reorganisation takes away
	var sending, reading sync.WaitGroup
	stop := make(chan struct{})
	for _, a := range actors {
		sending.Go(func() {
			for i := range int64(each) {
				tx := tokenTransfer(solid, a, sink.addr, 1, i)
				if err := Sign(tx, a.key); err != nil {
					t.Error(err)
				}
				if r, err := b.wallet.BroadcastTransaction(ctx, tx); err != nil || !r.Result {
					t.Errorf("%v %v", r, err)
				}
			}
		})
	}
	for _, read := range []func(){
		func() { _, _ = b.wallet.GetNowBlock2(ctx, &api.EmptyMessage{}) },
		func() { _, _ = b.solid.GetAccount(ctx, &core.Account{Address: actors[0].addr[:]}) },
		func() { b.Summary() },
		func() { _, _ = b.ProduceBlock() },
		func() { _ = b.Reorganise(1, false) },
		func() { b.Movements(sink.addr) },
		func() {
			list, _ := b.wallet.GetTransactionListFromPending(ctx, &api.EmptyMessage{})
			for _, text := range list.GetTxId() {
				id, _ := hex.DecodeString(text)
				_, _ = b.wallet.GetTransactionById(ctx, &api.BytesMessage{Value: id})
			}
		},
	} {
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					read()
				}
			}
		})
	}
	sending.Wait()
	close(stop)
	reading.Wait()
	b.block()
	if got := b.tokenBalance(USDTAddress, sink.addr); got != senders*each {
		t.Errorf("%d of %d payments arrived", got, senders*each)
	}
	if got := len(b.Movements(sink.addr)); got != senders*each {
		t.Errorf("%d transfer logs", got)
	}
}

func benchNode(b *testing.B, dir string) (*Node, actor) {
	n, err := New(Config{Log: quiet(), DataDir: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = n.Close() })
	return n, genesisActor()
}

// BenchmarkTokenTransfers signs, broadcasts and mines transfers in blocks of 500.
func BenchmarkTokenTransfers(b *testing.B) {
	n, owner := benchNode(b, b.TempDir())
	var stamp int64
	for b.Loop() {
		stamp++
		to := owner.addr
		to[20] = byte(stamp)
		to[19] = byte(stamp >> 8)
		tx := tokenTransfer(n.Head(), owner, to, 1, stamp)
		if err := Sign(tx, owner.key); err != nil {
			b.Fatal(err)
		}
		if r, _ := n.offer(tx); !r.Result {
			b.Fatalf("%s %s", r.Code, r.Message)
		}
		if stamp%500 == 0 {
			if _, err := n.ProduceBlock(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkEmptyBlocks is what an idle chain costs per block.
func BenchmarkEmptyBlocks(b *testing.B) {
	n, _ := benchNode(b, b.TempDir())
	for b.Loop() {
		if _, err := n.ProduceBlock(); err != nil {
			b.Fatal(err)
		}
	}
}
