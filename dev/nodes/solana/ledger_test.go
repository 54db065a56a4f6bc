package solana

import (
	"context"
	"slices"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"

	"kivuko/dev/nodes/solana/svm"
)

func TestCommitmentsAdvanceWithBlocks(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	b.finalise()
	signature := b.send(b.pay(alice, bob, sol))
	if b.status(signature) != nil {
		t.Fatal("a transaction that waits has a status")
	}
	for height := 1; height <= DefaultFinalDepth+1; height++ {
		b.block()
		want, balances := rpc.ConfirmationStatusProcessed, []uint64{sol, 0, 0}
		if height > DefaultConfirmDepth {
			want, balances = rpc.ConfirmationStatusConfirmed, []uint64{sol, sol, 0}
		}
		if height > DefaultFinalDepth {
			want, balances = rpc.ConfirmationStatusFinalized, []uint64{sol, sol, sol}
		}
		if got := b.status(signature); got == nil || got.ConfirmationStatus != want {
			t.Fatalf("with %d blocks on it: %+v, want %s", height-1, got, want)
		}
		got := []uint64{
			b.lamports(bob, rpc.CommitmentProcessed), b.lamports(bob, rpc.CommitmentConfirmed), b.lamports(bob, rpc.CommitmentFinalized),
		}
		if !slices.Equal(got, balances) {
			t.Fatalf("with %d blocks on it: balances %v, want %v", height-1, got, balances)
		}
	}
}

func TestSkippedSlotsHaveNoHeight(t *testing.T) {
	b := startBench(t, Config{SkipEvery: 5})
	b.blocks(40)
	if err := b.SkipSlots(7); err != nil {
		t.Fatal(err)
	}
	head := b.blocks(40)
	if head.Height != 80 || head.Slot <= head.Height+7+80/5 {
		t.Fatalf("height %d in slot %d", head.Height, head.Slot)
	}
	slots, err := b.client.GetBlocks(context.Background(), 0, &head.Slot, rpc.CommitmentFinalized)
	if err != nil {
		t.Fatal(err)
	}
	if len(slots) != 80-DefaultFinalDepth+1 || slices.ContainsFunc(slots, func(s uint64) bool { return s > 0 && s%5 == 0 }) {
		t.Fatalf("final blocks in slots %v", slots)
	}
	_, err = b.client.GetBlock(context.Background(), 5)
	refused(t, err, codeSlotSkipped)
	// Above the newest final block it is not known yet that a slot was skipped.
	skipped := head.Slot - head.Slot%5 - 5
	_, err = b.client.GetBlockWithOpts(context.Background(), skipped, &rpc.GetBlockOpts{Commitment: rpc.CommitmentConfirmed})
	refused(t, err, codeBlockNotAvailable)
}

func TestBlockHashExpires(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	latest, err := b.client.GetLatestBlockhash(context.Background(), rpc.CommitmentProcessed)
	if err != nil {
		t.Fatal(err)
	}
	pay := func(lamports uint64) *solana.Transaction {
		return b.signed(latest.Value.Blockhash, []solana.Instruction{
			system.NewTransferInstruction(lamports, alice.PublicKey(), bob.PublicKey()).Build(),
		}, alice)
	}
	first := b.Head().Height
	if latest.Value.LastValidBlockHeight != first+svm.MaxAge {
		t.Fatalf("valid up to height %d at %d", latest.Value.LastValidBlockHeight, first)
	}
	b.blocks(svm.MaxAge)
	valid, err := b.client.IsBlockhashValid(context.Background(), latest.Value.Blockhash, rpc.CommitmentProcessed)
	if err != nil || !valid.Value {
		t.Fatalf("at its last height the hash is refused: %v", err)
	}
	landed := b.send(pay(sol))
	b.block()
	if b.status(landed) == nil {
		t.Fatal("a transaction with an old but valid hash did not land")
	}
	refusal := refused(t, second(b.offer(pay(2*sol))), codePreflight)
	if data := refusal.Data.(map[string]any); data["err"] != svm.BlockhashNotFound {
		t.Fatalf("refused with %v", data)
	}
	// Without a preflight it is accepted and forgotten.
	lost, err := b.client.SendTransactionWithOpts(context.Background(), pay(2*sol), rpc.TransactionOpts{SkipPreflight: true})
	if err != nil {
		t.Fatal(err)
	}
	b.block()
	if b.status(lost) != nil {
		t.Fatal("an expired transaction landed")
	}
}

func second[T any](_ T, err error) error { return err }

// A hash that only the newest block knows is not found by a preflight against
// finality, which is the default.
func TestPreflightSeesItsCommitment(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	b.finalise()
	tx := b.pay(alice, bob, sol)
	_, err := b.client.SendTransaction(context.Background(), tx)
	if data := refused(t, err, codePreflight).Data.(map[string]any); data["err"] != svm.BlockhashNotFound {
		t.Fatalf("refused with %v", data)
	}
	b.finalise()
	if _, err := b.client.SendTransaction(context.Background(), tx); err != nil {
		t.Fatal(err)
	}
}

func TestNothingLandsTwice(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	tx := b.pay(alice, bob, sol)
	first := b.send(tx)
	if again := b.send(tx); again != first {
		t.Fatalf("sent again it is %s", again)
	}
	if head := b.block(); len(head.Transactions) != 1 {
		t.Fatalf("the block holds %v", head.Transactions)
	}
	refusal := refused(t, second(b.offer(tx)), codePreflight)
	if data := refusal.Data.(map[string]any); data["err"] != svm.AlreadyProcessed {
		t.Fatalf("refused with %v", data)
	}
	if _, err := b.client.SendTransactionWithOpts(context.Background(), tx, rpc.TransactionOpts{SkipPreflight: true}); err != nil {
		t.Fatal(err)
	}
	b.blocks(3)
	if got := b.lamports(bob, rpc.CommitmentProcessed); got != sol {
		t.Fatalf("bob has %d lamports", got)
	}
}

func TestReorganisedTransactionsReturnOrVanish(t *testing.T) {
	for _, drop := range []bool{false, true} {
		b := newBench(t)
		alice, bob := b.alice(), newActor("bob")
		b.finalise()
		signature := b.send(b.pay(alice, bob, sol))
		b.blocks(3)
		was, final := b.Head(), b.Final()
		if err := b.Reorganise(3, drop); err != nil {
			t.Fatal(err)
		}
		now := b.Head()
		if now.Slot <= was.Slot || now.Height != was.Height-2 {
			t.Fatalf("the new fork has height %d in slot %d, the old one had %d in %d", now.Height, now.Slot, was.Height, was.Slot)
		}
		if b.status(signature) != nil || b.lamports(bob, rpc.CommitmentProcessed) != 0 {
			t.Fatal("the transaction is still there")
		}
		b.block()
		if returned := b.status(signature) != nil; returned == drop {
			t.Fatalf("drop %v, and it returned: %v", drop, returned)
		}
		if now := b.Final(); now.Height < final.Height {
			t.Fatalf("finality went back from %d to %d", final.Height, now.Height)
		}
		got, err := b.client.GetSignaturesForAddressWithOpts(context.Background(), bob.PublicKey(), &rpc.GetSignaturesForAddressOpts{Commitment: rpc.CommitmentConfirmed})
		if err != nil || len(got) != 0 {
			t.Fatalf("an unconfirmed transaction is listed: %v, %v", got, err)
		}
	}
}

// What named a hash of the lost fork can never land on the other.
func TestTransactionsOfALostForkDie(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	b.blocks(2)
	signature := b.send(b.pay(alice, bob, sol))
	b.block()
	if err := b.Reorganise(2, false); err != nil {
		t.Fatal(err)
	}
	b.blocks(3)
	if b.status(signature) != nil {
		t.Fatal("it landed")
	}
}

func TestFinalBlocksAreNotReorganised(t *testing.T) {
	b := newBench(t)
	b.blocks(DefaultFinalDepth * 2)
	if err := b.Reorganise(DefaultFinalDepth+1, false); err == nil {
		t.Fatal("a final block was taken away")
	}
	if err := b.Reorganise(DefaultFinalDepth, false); err != nil {
		t.Fatal(err)
	}
	if err := b.SetFinality(0, 1); err != nil {
		t.Fatal(err)
	}
	head := b.block()
	if final := b.Final(); final.Height != max(head.Height-1, DefaultFinalDepth) {
		t.Fatalf("final is %d of %d", final.Height, head.Height)
	}
	if err := b.SetFinality(0, 0); err == nil {
		t.Error("finality without a block on top was accepted")
	}
}

// Versions that no read can ask for are forgotten, and those that one can are not.
func TestVersionsAreKeptAsLongAsTheyCanBeRead(t *testing.T) {
	a := accounts{}
	key := newActor("x").PublicKey()
	for slot := uint64(1); slot <= 100; slot++ {
		a.put(key, slot, slot-min(slot, 10), svm.Account{Lamports: slot})
	}
	if got := len(a[key]); got > 12 {
		t.Errorf("%d versions are kept", got)
	}
	for slot := uint64(90); slot <= 100; slot++ {
		if account, ok := a.at(key, slot); !ok || account.Lamports != slot {
			t.Errorf("slot %d: %v, %v", slot, account.Lamports, ok)
		}
	}
	a.put(key, 101, 90, svm.Account{})
	if _, ok := a.at(key, 101); ok {
		t.Error("an account without lamports exists")
	}
	a.cut(key, 95)
	if account, _ := a.at(key, 101); account.Lamports != 95 {
		t.Errorf("after the cut it has %d", account.Lamports)
	}
}
