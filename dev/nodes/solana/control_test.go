package solana

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"
)

// fault turns switches and ends the test if they are refused.
func (b *bench) fault(f Faults) {
	b.t.Helper()
	if err := b.SetFaults(f); err != nil {
		b.t.Fatal(err)
	}
}

func TestFaultsOfSending(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	b.fault(Faults{BusyNext: 1, DropNext: 1})
	tx := b.pay(alice, bob, 1)
	refused(t, second(b.offer(tx)), codeNodeUnhealthy)
	dropped := b.send(b.pay(alice, bob, 2*sol))
	b.block()
	if b.status(dropped) != nil {
		t.Error("the dropped transaction landed")
	}
	b.fault(Faults{LoseNext: 1})
	lost := b.pay(alice, bob, 3*sol)
	if _, err := b.offer(lost); err == nil {
		t.Error("the lost answer arrived")
	}
	b.block()
	if b.status(lost.Signatures[0]) == nil {
		t.Error("the transaction of the lost answer did not land")
	}
	b.fault(Faults{HoldSlots: 2})
	held := b.send(b.pay(alice, bob, 4*sol))
	b.blocks(2)
	if b.status(held) != nil {
		t.Error("the held transaction landed too early")
	}
	b.block()
	if b.status(held) == nil {
		t.Error("the held transaction did not land")
	}
	b.fault(Faults{AnswerDelay: 30 * time.Millisecond})
	began := time.Now()
	b.send(b.pay(alice, bob, 5*sol))
	if time.Since(began) < 30*time.Millisecond {
		t.Error("the answer came at once")
	}
	b.ResetFaults()
	if b.CurrentFaults() != (Faults{}) {
		t.Error("switches are left on")
	}
}

// A forced failure pays its fee and uses its nonce up, and does nothing else.
func TestForcedFailure(t *testing.T) {
	b := newBench(t)
	alice, bob, nonce := b.alice(), newActor("bob"), newActor("nonce")
	b.send(b.signed(b.latest(), []solana.Instruction{
		system.NewCreateAccountInstruction(sol, 80, solana.SystemProgramID, alice.PublicKey(), nonce.PublicKey()).Build(),
		system.NewInitializeNonceAccountInstruction(alice.PublicKey(), nonce.PublicKey(), solana.SysVarRecentBlockHashesPubkey, solana.SysVarRentPubkey).Build(),
	}, alice, nonce))
	b.blocks(2)
	before := b.lamports(alice, rpc.CommitmentProcessed)
	value := func() solana.Hash {
		b.ledger.mu.RLock()
		defer b.ledger.mu.RUnlock()
		account, _ := b.ledger.view(processed, 0).Account(nonce.PublicKey())
		return solana.Hash(account.Data[40:72])
	}
	was := value()
	tx := b.signed(was, []solana.Instruction{
		system.NewAdvanceNonceAccountInstruction(nonce.PublicKey(), solana.SysVarRecentBlockHashesPubkey, alice.PublicKey()).Build(),
		system.NewTransferInstruction(sol, alice.PublicKey(), bob.PublicKey()).Build(),
	}, alice)
	b.fault(Faults{FailNext: 1})
	signature := b.send(tx)
	b.block()
	if got := b.status(signature); got == nil || got.Err == nil {
		t.Fatalf("status %+v", got)
	}
	if got := b.lamports(alice, rpc.CommitmentProcessed); got != before-5_000 {
		t.Errorf("alice has %d lamports, had %d", got, before)
	}
	if b.lamports(bob, rpc.CommitmentProcessed) != 0 || value() == was || b.lamports(nonce, rpc.CommitmentProcessed) != sol {
		t.Error("the failure did something, or left the nonce")
	}
	// It fails again when another fork takes it up.
	b.blocks(1)
	if err := b.Reorganise(2, false); err != nil {
		t.Fatal(err)
	}
	b.block()
	if got := b.status(signature); got == nil || got.Err == nil {
		t.Errorf("on the other fork: %+v", got)
	}
}

func TestNodeThatIsBehind(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	b.finalise()
	tx := b.pay(alice, bob, sol)
	signature := b.send(tx)
	b.blocks(5)
	slot := b.Head().Slot
	b.fault(Faults{BehindBlocks: 10})
	if got := b.ask("getHealth"); got.Error == nil || got.Error.Code != codeNodeUnhealthy {
		t.Errorf("health: %s", got.Result)
	}
	if got, err := b.client.GetSlot(context.Background(), rpc.CommitmentProcessed); err != nil || got != slot-10 {
		t.Errorf("slot %d of %d, %v", got, slot, err)
	}
	if b.status(signature) != nil || b.lamports(bob, rpc.CommitmentProcessed) != 0 {
		t.Error("a transaction is seen that is younger than the view")
	}
	if got := b.lamports(alice, rpc.CommitmentFinalized); got != 0 {
		t.Errorf("what became final after the view is seen: %d", got)
	}
	if got := b.status(b.Transactions(alice.PublicKey())[0].Signature); got == nil || got.ConfirmationStatus != rpc.ConfirmationStatusConfirmed {
		t.Errorf("what is final on the cluster and not for the node: %+v", got)
	}
	refused(t, second(b.offer(b.pay(alice, bob, 2*sol))), codeNodeUnhealthy)
	b.ResetFaults()
	if b.status(signature) == nil {
		t.Error("the transaction is gone")
	}
}

// controls posts to the control endpoint.
func (b *bench) controls(route string, body any) (int, map[string]any) {
	b.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	response, err := http.Post("http://"+b.ControlAddr()+route, contentType, bytes.NewReader(raw))
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var out map[string]any
	if err := json.NewDecoder(response.Body).Decode(&out); err != nil {
		b.t.Fatal(err)
	}
	return response.StatusCode, out
}

func TestControlEndpoint(t *testing.T) {
	b := newBench(t)
	bob := newActor("bob").PublicKey()
	for _, step := range []struct {
		route string
		body  object
	}{
		{"/fund", object{"address": bob, "token": "SOL", "amount": "1000000000", "mine": true}},
		{"/produce", object{"blocks": 3}},
		{"/skip", object{"slots": 2}},
		{"/reorganise", object{"blocks": 1, "drop": true}},
		{"/interval", object{"milliseconds": 400}},
		{"/finality", object{"confirm": 1, "final": 5}},
		{"/pause", nil},
		{"/resume", nil},
		{"/time", object{"advance_ms": 1000}},
		{"/faults", object{"drop_next": 1, "answer_delay_ms": 5}},
		{"/reset", nil},
	} {
		if status, out := b.controls(step.route, step.body); status != http.StatusOK {
			t.Errorf("%s: %v", step.route, out)
		}
	}
	for name, step := range map[string]struct {
		route string
		body  object
		text  string
	}{
		"unknown field":  {"/produce", object{"block": 3}, "unknown field"},
		"no blocks":      {"/produce", object{"blocks": 0}, "want 1 to"},
		"deep fork":      {"/reorganise", object{"blocks": 500}, "is final"},
		"amount":         {"/fund", object{"address": bob, "token": "SOL", "amount": "1.5"}, "amount"},
		"token":          {"/fund", object{"address": bob, "token": "BTC", "amount": "1"}, "token"},
		"address":        {"/fund", object{"address": "x", "token": "SOL", "amount": "1"}, "address"},
		"not a mint":     {"/fund", object{"address": bob, "token": bob, "amount": "1"}, "not a mint"},
		"negative fault": {"/faults", object{"lose_next": -1}, "lose_next"},
		"fee of a mint":  {"/mint", object{"fee_basis_points": 5}, "Token-2022"},
		"far behind":     {"/faults", object{"behind_blocks": maxBehind + 1}, "behind_blocks"},
	} {
		status, out := b.controls(step.route, step.body)
		if text, _ := out["error"].(string); status != http.StatusBadRequest || !strings.Contains(text, step.text) {
			t.Errorf("%s: %d %v", name, status, out)
		}
	}
	moved := b.Movements(bob)
	if len(moved) != 1 || moved[0].Change != "1000000000" || moved[0].Token != "" || moved[0].Final {
		t.Errorf("movements %+v", moved)
	}
	b.finalise()
	if list := b.Transactions(bob); len(list) != 1 || !list[0].Final || list[0].Error != "" {
		t.Errorf("transactions %+v", list)
	}
}

// Equal fundings on one block hash are two transactions.
func TestFundingTwiceGivesTwice(t *testing.T) {
	b := newBench(t)
	bob := newActor("bob")
	for range 3 {
		if _, err := b.client.RequestAirdrop(context.Background(), bob.PublicKey(), sol, ""); err != nil {
			t.Fatal(err)
		}
	}
	b.block()
	if got := b.lamports(bob, rpc.CommitmentProcessed); got != 3*sol {
		t.Errorf("bob has %d lamports", got)
	}
	if got := b.ask("requestAirdrop", bob.PublicKey(), genesisLamports); got.Error == nil {
		t.Error("more than there is was given")
	}
}

// Many clients at once, with slots running and forks changing: no lamport is made
// or lost.
func TestManyClientsAtOnce(t *testing.T) {
	b := startBench(t, Config{SlotInterval: MinSlotInterval, DataDir: t.TempDir()})
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			actor := newActor(string(rune('a' + i)))
			for range 30 {
				if _, err := b.client.RequestAirdrop(context.Background(), actor.PublicKey(), sol, ""); err != nil {
					t.Error(err)
				}
				if _, err := b.client.GetLatestBlockhash(context.Background(), rpc.CommitmentConfirmed); err != nil {
					t.Error(err)
				}
				b.Movements(actor.PublicKey())
			}
		})
	}
	for range 5 {
		_ = b.Reorganise(1, false) // refused when the block is final already
		time.Sleep(2 * time.Millisecond)
	}
	clients.Wait()
	b.Pause()
	b.finalise()
	b.ledger.mu.RLock()
	defer b.ledger.mu.RUnlock()
	var total, fees uint64
	for key := range genesisAccounts() {
		account, _ := b.ledger.view(processed, 0).Account(key)
		if account.Owner == solana.SystemProgramID {
			total += account.Lamports
		}
	}
	for i := range 4 {
		account, _ := b.ledger.view(processed, 0).Account(newActor(string(rune('a' + i))).PublicKey())
		total += account.Lamports
	}
	for _, e := range b.ledger.bySignature {
		fees += e.result.Fee
	}
	if want := genesisLamports + sol - fees; total != want {
		t.Errorf("there are %d lamports, want %d", total, want)
	}
}
