package tron

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func (b *bench) faults(f Faults) {
	b.t.Helper()
	if err := b.SetFaults(f); err != nil {
		b.t.Fatal(err)
	}
}

func TestFaultDropNext(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	b.faults(Faults{DropNext: 1})
	tx := b.transferTRX(ab[0], ab[1], 5)
	id := b.send(tx, ab[0])
	kept := b.send(b.transferTRX(ab[0], ab[1], 6), ab[0])
	b.block()
	if len(b.lookup(id).Id) != 0 {
		t.Error("the dropped transaction was mined")
	}
	b.receipt(kept)
	b.send(tx) // the same bytes again, as a careful sender does
	b.block()
	b.receipt(id)
}

func TestFaultBusy(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	b.faults(Faults{BusyNext: 2})
	tx := b.transferTRX(ab[0], ab[1], 5)
	b.refused(tx, api.Return_SERVER_BUSY, "Server busy.", ab[0])
	b.refused(tx, api.Return_SERVER_BUSY, "Server busy.")
	b.send(tx)
}

func TestFaultUnknownOutcome(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	b.faults(Faults{LoseNext: 1})
	tx := b.signed(b.transferTRX(ab[0], ab[1], 5), ab[0])
	if _, err := b.wallet.BroadcastTransaction(context.Background(), tx); status.Code(err) != codes.Unavailable {
		t.Errorf("the answer is %v", err)
	}
	b.refused(tx, api.Return_DUP_TRANSACTION_ERROR, "Dup transaction.")
	b.block()
	b.receipt(TransactionID(tx))
}

func TestFaultForcedFailures(t *testing.T) {
	b := newBench(t)
	ab := b.funded(5_000_000, "alice", "bob")
	for _, c := range []struct {
		with string
		want core.Transaction_ResultContractResult
	}{{"REVERT", core.Transaction_Result_REVERT}, {"OUT_OF_ENERGY", core.Transaction_Result_OUT_OF_ENERGY}} {
		b.faults(Faults{FailNext: 1, FailWith: c.with})
		b.mined(b.transferTRX(ab[0], ab[1], 5), ab[0]) // not a contract call, does not count
		simulated := b.constant(ab[0], USDTAddress, calldata("transfer(address,uint256)", ab[1].addr[1:], number(1)))
		if len(simulated.Result.Message) != 0 {
			t.Error("a simulation foresees the fault")
		}
		tx := b.transferToken(ab[0], ab[1], USDTAddress, 1)
		tx.RawData.FeeLimit = 50 * trx
		info := b.mined(tx, ab[0])
		if info.Receipt.Result != c.want || len(info.Log) != 0 || info.Result != core.TransactionInfo_FAILED {
			t.Errorf("%s: %s, %d logs", c.with, info.Receipt.Result, len(info.Log))
		}
		if burnt := info.Receipt.EnergyFee == 50*trx; burnt != (c.with == "OUT_OF_ENERGY") {
			t.Errorf("%s cost %d sun", c.with, info.Receipt.EnergyFee)
		}
		if next := b.mined(b.transferToken(ab[0], ab[1], USDTAddress, 1), ab[0]); next.Receipt.Result != core.Transaction_Result_SUCCESS {
			t.Errorf("the one after: %s", next.Receipt.Result)
		}
	}
}

func TestFaultDelays(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	b.faults(Faults{AnswerDelay: time.Minute})
	tx := b.signed(b.transferTRX(ab[0], ab[1], 5), ab[0])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answered := make(chan error)
	go func() {
		_, err := b.wallet.BroadcastTransaction(ctx, tx)
		answered <- err
	}()
	for pooled := false; !pooled; time.Sleep(time.Millisecond) {
		b.chain.mu.RLock()
		pooled = b.chain.inPool[TransactionID(tx)] != nil
		b.chain.mu.RUnlock()
	}
	cancel()
	if err := <-answered; status.Code(err) != codes.Canceled {
		t.Errorf("the answer is %v", err)
	}
	b.block()
	b.receipt(TransactionID(tx)) // it was pooled all the same

	b.faults(Faults{HoldBlocks: 2})
	held := b.send(b.transferTRX(ab[0], ab[1], 6), ab[0])
	b.block()
	b.block()
	if len(b.lookup(held).Id) != 0 {
		t.Error("mined too early")
	}
	b.block()
	b.receipt(held)
}

func TestResetFaultsResetsAll(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	b.faults(Faults{HoldBlocks: 100})
	held := b.send(b.transferTRX(ab[0], ab[1], 6), ab[0])
	b.faults(Faults{AnswerDelay: time.Hour / 6, HoldBlocks: 1, DropNext: 9, BusyNext: 9, LoseNext: 9, FailNext: 9, FailWith: "REVERT"})
	b.Pause()
	b.ResetFaults()
	if s := b.Summary(); s.Faults != (Faults{}) || s.Paused {
		t.Errorf("left over: %+v", s)
	}
	b.block()
	b.receipt(held)
}

func TestFaultsSpareTheFaucet(t *testing.T) {
	b := newBench(t)
	alice := newActor("alice")
	b.faults(Faults{DropNext: 9, BusyNext: 9, FailNext: 9, FailWith: "REVERT"})
	b.must(b.FundTRX(alice.addr, trx))
	id := b.must(b.FundToken(mustAddress(USDCAddress), alice.addr, big.NewInt(3)))
	b.block()
	if r := b.receipt(id).Receipt.Result; r != core.Transaction_Result_SUCCESS || b.tokenBalance(USDCAddress, alice.addr) != 3 || b.balance(alice.addr) != trx {
		t.Errorf("%s", r)
	}
}

func TestEqualFundingsAreTwoTransactions(t *testing.T) {
	at := time.Now()
	b := startBench(t, Config{Now: func() time.Time { return at }})
	alice := newActor("alice")
	first, second := b.must(b.FundTRX(alice.addr, trx)), b.must(b.FundTRX(alice.addr, trx))
	b.block()
	if first == second || b.balance(alice.addr) != 2*trx {
		t.Errorf("alice has %d", b.balance(alice.addr))
	}
}

func TestControlsRefuseNonsense(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		text string
		err  error
	}{
		{"drop_next", b.SetFaults(Faults{DropNext: -1})},
		{"fail_with", b.SetFaults(Faults{FailNext: 1})},
		{"answer_delay_ns", b.SetFaults(Faults{AnswerDelay: time.Hour})},
		{"hold_blocks", b.SetFaults(Faults{HoldBlocks: -1})},
		{"energy factor", b.SetEnergyFactor(mustAddress(USDTAddress), -1)},
		{"is not a contract", b.SetEnergyFactor(newActor("x").addr, 1)},
		{"advance time", b.AdvanceTime(-1)},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("want an error that names %q, got %v", c.text, c.err)
		}
	}
	if _, err := b.ProduceBlocks(0); err == nil {
		t.Error("produced no block")
	}
	for _, cfg := range []Config{{GRPCAddr: "0.0.0.0:0"}, {ControlAddr: "nonsense"}, {BlockInterval: time.Microsecond}, {Alloc: map[Address]int64{{}: 1}}} {
		if n, err := New(cfg); err == nil {
			_ = n.Close()
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

// post calls the control endpoint and decodes the answer.
func (b *bench) post(path, body string, into any) int {
	b.t.Helper()
	r, err := http.Post("http://"+b.ControlAddr()+path, "application/json", strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	return b.decode(r, into)
}

func (b *bench) get(path string, into any) {
	b.t.Helper()
	r, err := http.Get("http://" + b.ControlAddr() + path)
	if err != nil {
		b.t.Fatal(err)
	}
	if status := b.decode(r, into); status != http.StatusOK {
		b.t.Fatalf("GET %s: status %d", path, status)
	}
}

func (b *bench) decode(r *http.Response, into any) int {
	b.t.Helper()
	defer func() { _ = r.Body.Close() }()
	if into != nil {
		if err := json.NewDecoder(r.Body).Decode(into); err != nil {
			b.t.Fatal(err)
		}
	}
	return r.StatusCode
}

func TestControlEndpoint(t *testing.T) {
	b := newBench(t)
	alice := newActor("alice")
	for _, c := range []struct{ path, body string }{
		{"/fund", `{"address":"` + alice.String() + `","token":"TRX","amount":"5000000","mine":true}`},
		{"/fund", `{"address":"` + alice.addr.Hex() + `","token":"USDT","amount":"7"}`},
		{"/produce", `{"blocks":3}`},
		{"/pause", ``},
		{"/faults", `{"drop_next":1,"answer_delay_ms":5,"fail_next":1,"fail_with":"REVERT"}`},
		{"/energy", `{"contract":"` + USDTAddress + `","factor":34000}`},
		{"/interval", `{"milliseconds":60000}`},
		{"/time", `{"advance_ms":1000}`},
		{"/reorganise", `{"blocks":1,"drop":false}`},
	} {
		var out map[string]any
		if code := b.post(c.path, c.body, &out); code != http.StatusOK {
			t.Fatalf("%s: %d %v", c.path, code, out)
		}
	}
	var s struct {
		Paused   bool
		Interval int64 `json:"interval_ms"`
		Faults   Faults
		USDT     string
	}
	b.get("/state", &s)
	if !s.Paused || s.Interval != 60_000 || s.Faults.DropNext != 1 || s.Faults.AnswerDelay != 5*time.Millisecond || s.USDT != USDTAddress {
		t.Errorf("state %+v", s)
	}
	if code := b.post("/reset", "{}", nil); code != http.StatusOK || b.CurrentFaults() != (Faults{}) {
		t.Errorf("reset: %d %+v", code, b.CurrentFaults())
	}
	var moved []map[string]any
	b.get("/movements?address="+alice.String(), &moved)
	if len(moved) != 2 || moved[0]["amount"] != "5000000" || moved[0]["token"] != "" || moved[1]["token"] != USDTAddress || moved[1]["amount"] != "7" {
		t.Errorf("movements %v", moved)
	}
	var txs []map[string]any
	b.get("/transactions?address="+alice.String(), &txs)
	if len(txs) != 2 || txs[1]["type"] != "TriggerSmartContract" || txs[1]["result"] != "SUCCESS" {
		t.Errorf("transactions %v", txs)
	}
	for _, c := range []struct{ path, body, text string }{
		{"/fund", `{"address":"x","token":"TRX","amount":"5"}`, "address"},
		{"/fund", `{"address":"` + alice.String() + `","token":"DOGE","amount":"5"}`, "token"},
		{"/fund", `{"address":"` + alice.String() + `","token":"TRX","amount":"1.5"}`, "amount"},
		{"/produce", `{"bricks":3}`, "unknown field"},
		{"/reorganise", `{"blocks":999}`, "reorganise 999 blocks"},
		{"/energy", `{"contract":"T","factor":1}`, "contract"},
		{"/token/block", `{"token":"TRX","address":"` + alice.String() + `","blocked":true}`, "token"},
		{"/token/block", `{"token":"USDT","address":"T","blocked":true}`, "address"},
	} {
		var out map[string]string
		if code := b.post(c.path, c.body, &out); code != http.StatusBadRequest || !strings.Contains(out["error"], c.text) {
			t.Errorf("%s %s: %d %v", c.path, c.body, code, out)
		}
	}
}

// A blocked address sends no more of the token, until it is taken off the list.
func TestTheIssuerBlocksAnAddress(t *testing.T) {
	b := newBench(t)
	alice, bob := b.funded(5_000_000, "alice")[0], newActor("bob")
	for _, token := range []struct{ name, address string }{{"USDT", USDTAddress}, {"USDC", USDCAddress}} {
		if _, err := b.FundToken(mustAddress(token.address), alice.addr, big.NewInt(10)); err != nil {
			t.Fatal(err)
		}
		for _, blocked := range []bool{true, false} {
			var out map[string]any
			body := fmt.Sprintf(`{"token":%q,"address":%q,"blocked":%t}`, token.name, alice, blocked)
			if code := b.post("/token/block", body, &out); code != http.StatusOK {
				t.Fatalf("%s: %d %v", body, code, out)
			}
			r := b.mined(b.transferToken(alice, bob, token.address, 1), alice).Receipt
			if refused := r.Result == core.Transaction_Result_REVERT; refused != blocked {
				t.Errorf("blocked %t for %s: %s", blocked, token.name, r.Result)
			}
		}
	}
}

func TestRunAnnouncesItself(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	out := &announcement{said: make(chan string, 1)}
	done := make(chan error, 1)
	go func() { done <- Run(ctx, Config{Log: quiet(), DataDir: t.TempDir()}, out) }()
	line := <-out.said
	for _, part := range []string{"READY grpc=127.0.0.1:", " solidity=127.0.0.1:", " http=http://127.0.0.1:", " control=http://127.0.0.1:", "\n"} {
		if !strings.Contains(line, part) {
			t.Errorf("%q lacks %q", line, part)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := Command(ctx, []string{"--interval", "soon"}); err == nil {
		t.Error("a bad flag was accepted")
	}
	if err := Command(ctx, []string{"stray"}); err == nil || !strings.Contains(err.Error(), "stray") {
		t.Errorf("a stray argument: %v", err)
	}
}

type announcement struct{ said chan string }

func (a *announcement) Write(p []byte) (int, error) {
	a.said <- string(bytes.Clone(p))
	return len(p), nil
}
