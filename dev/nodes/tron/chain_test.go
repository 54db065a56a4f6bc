package tron

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
)

func TestSolidityLagsEighteenBlocks(t *testing.T) {
	b := newBench(t)
	if _, err := b.ProduceBlocks(40); err != nil {
		t.Fatal(err)
	}
	for range 60 { // also over the wrap of the witnesses' turn
		b.block()
		if head, solid := b.Head().Number, b.Solid().Number; head-solid != 18 {
			t.Fatalf("head %d, solid %d", head, solid)
		}
	}
}

func TestSolidityServiceShowsFinalBlocksOnly(t *testing.T) {
	b := newBench(t)
	ab, ctx := b.funded(0, "alice", "bob"), context.Background()
	if _, err := b.Solidify(); err != nil {
		t.Fatal(err)
	}
	info := b.mined(b.transferTRX(ab[0], ab[1], 5), ab[0])
	for blocks := 0; ; blocks++ {
		final, err := b.solid.GetTransactionInfoById(ctx, &api.BytesMessage{Value: info.Id})
		if err != nil {
			t.Fatal(err)
		}
		account, err := b.solid.GetAccount(ctx, &core.Account{Address: ab[1].addr[:]})
		if err != nil {
			t.Fatal(err)
		}
		if len(final.Id) > 0 {
			if blocks != 18 || account.Balance != someTRX+5 {
				t.Errorf("final after %d blocks with a balance of %d", blocks, account.Balance)
			}
			return
		}
		if account.Balance != someTRX {
			t.Fatalf("the solid balance is %d after %d blocks", account.Balance, blocks)
		}
		if blocks > 30 {
			t.Fatal("never final")
		}
		b.block()
	}
}

func TestSolidConstantCallReadsTheSolidState(t *testing.T) {
	b := newBench(t)
	alice, bob := b.funded(5_000_000, "alice")[0], newActor("bob")
	if _, err := b.Solidify(); err != nil {
		t.Fatal(err)
	}
	b.mined(b.transferToken(alice, bob, USDTAddress, 1_000_000), alice)
	usdt := mustAddress(USDTAddress)
	read := func() byte {
		x, err := b.solid.TriggerConstantContract(context.Background(), &core.TriggerSmartContract{
			OwnerAddress: alice.addr[:], ContractAddress: usdt[:], Data: calldata("balanceOf(address)", bob.addr[1:]),
		})
		if err != nil || len(x.ConstantResult) != 1 {
			t.Fatalf("%v %v", x, err)
		}
		return x.ConstantResult[0][29]
	}
	if read() != 0 {
		t.Error("the payment shows before it is final")
	}
	if _, err := b.Solidify(); err != nil {
		t.Fatal(err)
	}
	if read() == 0 {
		t.Error("the payment does not show once final")
	}
}

func TestBlocksAreChainedAndSigned(t *testing.T) {
	b := newBench(t)
	b.funded(0, "alice", "bob")
	ctx := context.Background()
	witnesses, err := b.wallet.ListWitnesses(ctx, &api.EmptyMessage{})
	if err != nil || len(witnesses.Witnesses) != 27 {
		t.Fatalf("%v %v", witnesses, err)
	}
	for n := int64(1); n <= b.Head().Number; n++ {
		x, err := b.wallet.GetBlockByNum2(ctx, &api.NumberMessage{Num: n})
		if err != nil {
			t.Fatal(err)
		}
		parent, err := b.wallet.GetBlockByNum2(ctx, &api.NumberMessage{Num: n - 1})
		if err != nil {
			t.Fatal(err)
		}
		raw := x.BlockHeader.RawData
		signer, err := Recover(Hash(headerDigest(raw)), x.BlockHeader.WitnessSignature)
		if err != nil || !bytes.Equal(signer[:], raw.WitnessAddress) || !bytes.Equal(raw.ParentHash, parent.Blockid) {
			t.Errorf("block %d: signer %s, %v", n, signer, err)
		}
		if id := BlockID(raw); !bytes.Equal(id[:], x.Blockid) {
			t.Errorf("block %d: id %x", n, x.Blockid)
		}
		infos, err := b.wallet.GetTransactionInfoByBlockNum(ctx, &api.NumberMessage{Num: n})
		if err != nil || len(infos.TransactionInfo) != len(x.Transactions) {
			t.Errorf("block %d: %d receipts for %d transactions, %v", n, len(infos.GetTransactionInfo()), len(x.Transactions), err)
		}
	}
}

func TestExpirationIsBounded(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	head := b.Head().Time.UnixMilli()
	for _, c := range []struct {
		name       string
		expiration int64
		ok         bool
	}{
		{"past", head - 1, false},
		{"now", head, false},
		{"a minute", head + 60_000, true},
		{"a day", head + millisPerDay, true},
		{"more than a day", head + millisPerDay + 1, false},
	} {
		tx := b.transferTRX(ab[0], ab[1], 5)
		tx.RawData.Expiration = c.expiration
		if c.ok {
			b.send(tx, ab[0])
		} else {
			b.refused(tx, api.Return_TRANSACTION_EXPIRATION_ERROR, "Transaction expired", ab[0])
		}
	}
}

func TestTransactionExpiresInThePool(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	if err := b.SetFaults(Faults{HoldBlocks: 1}); err != nil {
		t.Fatal(err)
	}
	id := b.send(b.transferTRX(ab[0], ab[1], 5), ab[0])
	b.block()
	if err := b.AdvanceTime(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	b.block()
	b.block()
	if info := b.lookup(id); len(info.Id) != 0 || b.Summary().Pending != 0 {
		t.Error("mined after its expiration, or still waiting")
	}
}

func TestReferenceBlockMustBeOfThisBranch(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	wrong := b.transferTRX(ab[0], ab[1], 5)
	wrong.RawData.RefBlockHash = bytes.Repeat([]byte{7}, 8)
	b.refused(wrong, api.Return_TAPOS_ERROR, "Tapos check error.", ab[0])
	future := b.transferTRX(ab[0], ab[1], 5)
	future.RawData.RefBlockBytes = []byte{0xff, 0xff}
	b.refused(future, api.Return_TAPOS_ERROR, "Tapos check error.", ab[0])
	b.block()
	lost := b.transferTRX(ab[0], ab[1], 6)
	head := b.Head() // about to go, unlike the solid block the node refers to
	lost.RawData.RefBlockBytes, lost.RawData.RefBlockHash = head.ID[6:8], head.ID[8:16]
	if err := b.Reorganise(1, false); err != nil {
		t.Fatal(err)
	}
	b.refused(lost, api.Return_TAPOS_ERROR, "Tapos check error.", ab[0])
}

func TestMalformedTransactionsAreRefused(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	b.refused(&core.Transaction{}, api.Return_CONTRACT_VALIDATE_ERROR, "Contract not exists")
	two := b.transferTRX(ab[0], ab[1], 5)
	two.RawData.Contract = append(two.RawData.Contract, two.RawData.Contract[0])
	b.refused(two, api.Return_OTHER_ERROR, "contract size should be exactly 1", ab[0])
	lying := b.transferTRX(ab[0], ab[1], 5)
	lying.RawData.Contract[0].Type = core.Transaction_Contract_TriggerSmartContract
	b.refused(lying, api.Return_CONTRACT_VALIDATE_ERROR, "contract type error", ab[0])
	big := b.transferTRX(ab[0], ab[1], 5)
	big.RawData.Data = make([]byte, maxTransactionBytes)
	b.refused(big, api.Return_TOO_BIG_TRANSACTION_ERROR, "Too big transaction", ab[0])
	votes := b.transferTRX(ab[0], ab[1], 5)
	if err := votes.RawData.Contract[0].Parameter.MarshalFrom(&core.VoteWitnessContract{OwnerAddress: ab[0].addr[:]}); err != nil {
		t.Fatal(err)
	}
	votes.RawData.Contract[0].Type = core.Transaction_Contract_VoteWitnessContract
	b.refused(votes, api.Return_CONTRACT_VALIDATE_ERROR, "does not carry out VoteWitnessContract", ab[0])
}

func TestReorganisationReturnsTransactions(t *testing.T) {
	b := newBench(t)
	ab := b.funded(5_000_000, "alice", "bob")
	if _, err := b.Solidify(); err != nil {
		t.Fatal(err)
	}
	was := b.Summary().StateDigest
	tx := b.transferToken(ab[0], ab[1], USDTAddress, 1_000_000)
	id := b.send(tx, ab[0])
	lost := b.block()
	b.block()
	if err := b.Reorganise(2, false); err != nil {
		t.Fatal(err)
	}
	if len(b.lookup(id).Id) != 0 || b.Head().Number != lost.Number+2 || b.Summary().Pending != 1 {
		t.Fatalf("receipt %x, head %d, pending %d", b.lookup(id).Id, b.Head().Number, b.Summary().Pending)
	}
	x, err := b.wallet.GetBlockByNum2(context.Background(), &api.NumberMessage{Num: lost.Number})
	if err != nil || bytes.Equal(x.Blockid, lost.ID[:]) || len(x.Transactions) != 0 {
		t.Errorf("block %d is still the lost one: %v", lost.Number, err)
	}
	if y, err := b.wallet.GetBlockById(context.Background(), &api.BytesMessage{Value: lost.ID[:]}); err != nil || y.BlockHeader != nil {
		t.Errorf("the lost block is still found: %v", err)
	}
	if b.Summary().StateDigest == was {
		t.Error("the pending payment does not show")
	}
	again := b.block()
	if info := b.receipt(id); info.BlockNumber != again.Number || b.tokenBalance(USDTAddress, ab[1].addr) != 6_000_000 {
		t.Errorf("mined in %d, bob has %d", info.BlockNumber, b.tokenBalance(USDTAddress, ab[1].addr))
	}
}

func TestReorganisationMayDropTransactions(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	if _, err := b.Solidify(); err != nil {
		t.Fatal(err)
	}
	was := b.Summary().StateDigest
	tx := b.transferTRX(ab[0], ab[1], 5)
	id := b.send(tx, ab[0])
	b.block()
	if err := b.Reorganise(1, true); err != nil {
		t.Fatal(err)
	}
	if len(b.lookup(id).Id) != 0 || b.Summary().Pending != 0 || b.Summary().StateDigest != was {
		t.Error("something of the dropped transaction is left")
	}
	b.send(tx) // the same bytes are welcome again
	b.block()
	b.receipt(id)
}

func TestReorganisationKeepsTheEnergyFactor(t *testing.T) {
	b := newBench(t)
	alice := b.funded(5_000_000, "alice")[0]
	if _, err := b.Solidify(); err != nil {
		t.Fatal(err)
	}
	if err := b.SetEnergyFactor(mustAddress(USDTAddress), 34_000); err != nil {
		t.Fatal(err)
	}
	b.block()
	if err := b.Reorganise(1, false); err != nil {
		t.Fatal(err)
	}
	if info := b.mined(b.transferToken(alice, newActor("bob"), USDTAddress, 1), alice); info.Receipt.EnergyPenaltyTotal == 0 {
		t.Error("the factor went with the block that set it")
	}
}

func TestSolidBlocksAreNeverReorganised(t *testing.T) {
	b := newBench(t)
	if _, err := b.ProduceBlocks(50); err != nil {
		t.Fatal(err)
	}
	solid := b.Solid()
	if err := b.Reorganise(19, false); !errors.Is(err, errSolidified) {
		t.Errorf("19 blocks: %v", err)
	}
	if err := b.Reorganise(0, false); err == nil {
		t.Error("0 blocks were reorganised")
	}
	if err := b.Reorganise(18, false); err != nil {
		t.Fatal(err)
	}
	if got := b.Solid(); got.Number < solid.Number || b.chain.blocks[solid.Number].id != solid.ID {
		t.Errorf("solid went from %d to %d", solid.Number, got.Number)
	}
	if lag := b.Head().Number - b.Solid().Number; lag != 18 {
		t.Errorf("19 new blocks by 19 witnesses, lag %d", lag)
	}
}

func TestBlocksComeByTimeAndPause(t *testing.T) {
	b := startBench(t, Config{BlockInterval: MinBlockInterval})
	waitFor(t, func() bool { return b.Head().Number > 3 })
	b.Pause()
	b.block() // a block under way when Pause returned is now in
	at := b.Head().Number
	time.Sleep(5 * MinBlockInterval)
	if got := b.Head().Number; got > at+1 {
		t.Errorf("%d blocks while paused", got-at)
	}
	b.Resume()
	waitFor(t, func() bool { return b.Head().Number > at+3 })
	if err := b.SetBlockInterval(0); err != nil {
		t.Fatal(err)
	}
	if err := b.SetBlockInterval(time.Millisecond); err == nil {
		t.Error("an interval below the minimum was taken")
	}
}

// waitFor fails the test when cond stays false for an hour, however busy the machine.
func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Hour); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never came")
		}
	}
}
