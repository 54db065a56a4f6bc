package ethereum

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
)

// bench is a node with a client that knows it by its address.
type bench struct {
	*Node
	t   *testing.T
	eth *ethclient.Client
}

func newBench(t *testing.T, cfg Config) *bench {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	client, err := ethclient.Dial("http://" + n.RPCAddr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{n, t, client}
}

func (b *bench) mine(blocks int) Block {
	b.t.Helper()
	last, err := b.MineBlocks(blocks)
	if err != nil {
		b.t.Fatal(err)
	}
	return last
}

func (b *bench) faults(f Faults) {
	b.t.Helper()
	if err := b.SetFaults(f); err != nil {
		b.t.Fatal(err)
	}
}

// pay signs a transfer of the faucet's with the next number.
func (b *bench) pay(to common.Address, wei int64) *types.Transaction {
	b.t.Helper()
	nonce, err := b.eth.PendingNonceAt(b.t.Context(), FaucetAddress())
	if err != nil {
		b.t.Fatal(err)
	}
	return b.numbered(nonce, to, wei)
}

func (b *bench) numbered(nonce uint64, to common.Address, wei int64) *types.Transaction {
	b.t.Helper()
	const gwei, gas = 1_000_000_000, 21_000
	tx, err := b.sign(key(FaucetKey), &types.DynamicFeeTx{
		Nonce: nonce, Gas: gas, To: &to, Value: big.NewInt(wei), GasTipCap: big.NewInt(gwei), GasFeeCap: big.NewInt(5 * gwei),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return tx
}

func (b *bench) send(tx *types.Transaction) {
	b.t.Helper()
	if err := b.eth.SendTransaction(b.t.Context(), tx); err != nil {
		b.t.Fatal(err)
	}
}

// included reports whether a transaction is in a block.
func (b *bench) included(tx *types.Transaction) bool {
	b.t.Helper()
	_, err := b.eth.TransactionReceipt(b.t.Context(), tx.Hash())
	if err != nil && !errors.Is(err, ethereum.NotFound) {
		b.t.Fatal(err)
	}
	return err == nil
}

func (b *bench) balance(a common.Address) *big.Int {
	b.t.Helper()
	got, err := b.eth.BalanceAt(b.t.Context(), a, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

// deploy puts a contract with the given code onto the chain.
func (b *bench) deploy(code string) common.Address {
	b.t.Helper()
	const gwei, gas = 1_000_000_000, 200_000
	nonce, err := b.eth.PendingNonceAt(b.t.Context(), FaucetAddress())
	if err != nil {
		b.t.Fatal(err)
	}
	// What runs at the deployment: it returns the bytes that follow its own eleven.
	data := common.FromHex(fmt.Sprintf("60%02x80600b6000396000f3%s", len(code)/2, code))
	tx, err := b.sign(key(FaucetKey), &types.DynamicFeeTx{
		Nonce: nonce, Gas: gas, Data: data, GasTipCap: big.NewInt(gwei), GasFeeCap: big.NewInt(5 * gwei),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.send(tx)
	b.mine(1)
	return crypto.CreateAddress(FaucetAddress(), nonce)
}

func stranger(t *testing.T) common.Address {
	t.Helper()
	k, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return addressOf(k)
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{RPCAddr: "0.0.0.0:8545"}, "loopback"},
		{Config{ControlAddr: "10.0.0.1:1"}, "loopback"},
		{Config{RPCAddr: "8545"}, "host:port"},
		{Config{BlockInterval: time.Microsecond}, "BlockInterval"},
		{Config{BlockInterval: time.Minute, IdleInterval: time.Second}, "IdleInterval"},
		{Config{SafeDepth: 3, FinalDepth: 2}, "FinalDepth"},
		{Config{FinalDepth: 31}, "FinalDepth"},
	} {
		if _, err := New(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want it to say %q", c.config, err, c.want)
		}
	}
}

func TestFinalityFollowsAndNeverReturns(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{SafeDepth: 2, FinalDepth: 4})
	b.mine(9)
	at := func(tag rpc.BlockNumber) uint64 {
		t.Helper()
		h, err := b.eth.HeaderByNumber(t.Context(), big.NewInt(int64(tag)))
		if err != nil {
			t.Fatal(err)
		}
		return h.Number.Uint64()
	}
	if at(rpc.LatestBlockNumber) != 10 || at(rpc.SafeBlockNumber) != 8 || at(rpc.FinalizedBlockNumber) != 6 {
		t.Errorf("latest %d, safe %d, final %d", at(rpc.LatestBlockNumber), at(rpc.SafeBlockNumber), at(rpc.FinalizedBlockNumber))
	}
	if err := b.Reorganise(5, true); !errors.Is(err, errFinal) {
		t.Errorf("a final block was undone: %v", err)
	}
	before := b.Final()
	if err := b.Reorganise(4, true); err != nil {
		t.Fatal(err)
	}
	if b.Head().Number != 11 || b.Final().Number < before.Number {
		t.Errorf("head %d, final %d after %d", b.Head().Number, b.Final().Number, before.Number)
	}
	if kept, err := b.eth.HeaderByNumber(t.Context(), new(big.Int).SetUint64(before.Number)); err != nil || kept.Hash() != before.ID {
		t.Errorf("final block %d is another one: %v", before.Number, err)
	}
}

func TestBlocksComeByTimeWhileThereIsWork(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{BlockInterval: 10 * time.Millisecond, IdleInterval: time.Hour, SafeDepth: 1, FinalDepth: 3})
	to := stranger(t)
	id, err := b.Fund(to, big.NewInt(5))
	if err != nil {
		t.Fatal(err)
	}
	const timeout = 20 * time.Second
	wait := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(timeout); !done(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s never came: %+v", what, b.Summary())
			}
		}
	}
	wait("finality", func() bool {
		r, err := b.eth.TransactionReceipt(t.Context(), id)
		return err == nil && r.BlockNumber.Uint64() <= b.Final().Number
	})
	wait("rest", func() bool { return !b.hasWork() })
	resting := b.Head().Number
	time.Sleep(100 * time.Millisecond)
	if head := b.Head().Number; head != resting {
		t.Errorf("an idle chain grew from %d to %d", resting, head)
	}
}

func TestFaultsOfBroadcasts(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{})
	to := stranger(t)
	b.faults(Faults{BusyNext: 1, DropNext: 1, LoseNext: 1, AnswerDelay: time.Millisecond})
	tx := b.pay(to, 7)
	if e, ok := errors.AsType[rpc.Error](b.eth.SendTransaction(t.Context(), tx)); !ok || e.ErrorCode() != -32005 {
		t.Errorf("a busy node says %v", e)
	}
	// Dropped, and its answer lost as well: both switches stand.
	if err := b.eth.SendTransaction(t.Context(), tx); err == nil {
		t.Error("the answer was not lost")
	} else if _, ok := errors.AsType[rpc.Error](err); ok {
		t.Errorf("the answer is an answer: %v", err)
	}
	b.mine(1)
	if b.included(tx) {
		t.Error("a dropped transaction was mined")
	}
	b.send(tx)
	b.mine(1)
	if !b.included(tx) || b.balance(to).Int64() != 7 {
		t.Errorf("%s holds %s", to, b.balance(to))
	}
	if f := b.CurrentFaults(); f != (Faults{AnswerDelay: time.Millisecond}) {
		t.Errorf("the switches are %+v", f)
	}
	if err := b.SetFaults(Faults{DropNext: -1}); err == nil {
		t.Error("a negative count was taken")
	}
}

// Bytes that are no transaction are refused as a public node refuses them.
func TestUndecodableTransactions(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{})
	for _, raw := range []string{"0x", "0x00", "0x02", "0xdeadbeef", "0x02c0"} {
		var id common.Hash
		err := b.eth.Client().CallContext(t.Context(), &id, "eth_sendRawTransaction", raw)
		if e, ok := errors.AsType[rpc.Error](err); !ok || e.ErrorCode() != -32000 || strings.Contains(e.Error(), "crashed") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// The faucet pays contracts that take what comes, and says of others that they refuse it.
func TestFaucetPaysContracts(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{})
	// Each is deployed by code that returns its own last bytes: one counts payments in storage, one reverts.
	counts, refuses := b.deploy("600160005401600055"), b.deploy("60006000fd")
	fund := func(to common.Address, status int) {
		b.post("/fund", `{"address":"`+to.Hex()+`","token":"ETH","amount":"5","mine":true}`, status)
	}
	fund(counts, http.StatusOK)
	fund(refuses, http.StatusBadRequest)
	b.post("/fund", `{"address":"`+refuses.Hex()+`","token":"ETH","amount":"5"}`, http.StatusBadRequest) // at once, not in its block
	if b.balance(counts).Int64() != 5 || b.balance(refuses).Sign() != 0 {
		t.Errorf("they hold %s and %s", b.balance(counts), b.balance(refuses))
	}
}

func TestHeldBlocksAreEmpty(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{})
	b.faults(Faults{HoldBlocks: 2})
	tx := b.pay(stranger(t), 1)
	b.send(tx)
	b.mine(2)
	if b.included(tx) {
		t.Error("mined in a block that was held back")
	}
	b.mine(1)
	if !b.included(tx) {
		t.Error("never mined")
	}
}

// A call that is to fail does so alone: another payment of the same token in the same pool is made.
// The next block has every transaction that was accepted before, also of an account that sends several at once.
func TestTheNextBlockHasAllThatWasSent(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{})
	to, next := stranger(t), b.pay(stranger(t), 1).Nonce()
	for round := range 100 {
		const payments = 4
		for range payments {
			b.send(b.numbered(next, to, 1))
			next++
		}
		if block := b.mine(1); len(block.Transactions) != payments {
			t.Fatalf("round %d: the block has %d of %d transactions", round, len(block.Transactions), payments)
		}
	}
}

func TestOneCallFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{})
	holder, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	to := stranger(t)
	if _, err := b.Fund(addressOf(holder), big.NewInt(1e18)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.FundToken(USDCAddress(), addressOf(holder), big.NewInt(100)); err != nil {
		t.Fatal(err)
	}
	b.mine(1)
	token := USDCAddress()
	call := func(nonce uint64) *types.Transaction {
		t.Helper()
		tx, err := b.sign(holder, &types.DynamicFeeTx{
			Nonce: nonce, Gas: callGas, To: &token, GasTipCap: big.NewInt(1e9), GasFeeCap: big.NewInt(1e11),
			Data: Calldata("transfer(address,uint256)", to.Bytes(), []byte{10}),
		})
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	first, second, third := call(0), call(1), call(2)
	b.send(first)
	b.faults(Faults{FailNext: 1})
	b.send(second)
	b.send(third)
	b.mine(3)
	for i, tx := range []*types.Transaction{first, second, third} {
		r, err := b.eth.TransactionReceipt(t.Context(), tx.Hash())
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]uint64{true: 0, false: 1}[i == 1]; r.Status != want {
			t.Errorf("call %d has the status %d, want %d", i, r.Status, want)
		}
	}
}

func TestReorganiseAndForget(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{})
	to := stranger(t)
	tx := b.pay(to, 3)
	b.send(tx)
	b.mine(2)
	if err := b.Reorganise(2, false); err != nil {
		t.Fatal(err)
	}
	if b.included(tx) || b.Summary().Pending != 1 {
		t.Errorf("after the reorganisation: %+v", b.Summary())
	}
	b.mine(1)
	if err := b.Reorganise(1, true); err != nil {
		t.Fatal(err)
	}
	b.mine(2)
	if b.included(tx) || b.Summary().Pending != 0 {
		t.Errorf("a transaction that vanished came back: %+v", b.Summary())
	}
	b.send(tx)
	b.Forget()
	b.mine(1)
	if b.included(tx) || b.balance(to).Sign() != 0 {
		t.Error("a forgotten transaction was mined")
	}
	if err := b.Reorganise(0, true); err == nil {
		t.Error("no blocks were reorganised")
	}
}

// The base fee is raised with full blocks, in which what waits does not get a place, and lowered again.
func TestBaseFeeMoves(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{})
	b.mine(20)
	tx := b.pay(stranger(t), 1) // of at most 5 gwei
	b.send(tx)
	const gwei = 1_000_000_000
	if err := b.SetBaseFee(big.NewInt(20 * gwei)); err != nil {
		t.Fatal(err)
	}
	if fee := b.nextBaseFee(); fee.Cmp(big.NewInt(20*gwei)) < 0 || fee.Cmp(big.NewInt(23*gwei)) > 0 {
		t.Errorf("the base fee is %s", fee)
	}
	b.mine(1)
	if b.included(tx) {
		t.Error("mined below the base fee")
	}
	if err := b.SetBaseFee(big.NewInt(gwei)); err != nil {
		t.Fatal(err)
	}
	if fee := b.nextBaseFee(); fee.Cmp(big.NewInt(gwei)) > 0 {
		t.Errorf("the base fee is %s", fee)
	}
	b.mine(1)
	if !b.included(tx) {
		t.Error("not mined when the base fee fell")
	}
	if err := b.SetBaseFee(big.NewInt(0)); err == nil {
		t.Error("a base fee of nothing was taken")
	}
}

// post calls the control endpoint.
func (b *bench) post(path, body string, status int) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, "http://"+b.ControlAddr()+path, bytes.NewBufferString(body))
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(request, status)
}

func (b *bench) do(request *http.Request, status int) map[string]any {
	b.t.Helper()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var out any
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil {
		b.t.Fatal(err)
	}
	if answer.StatusCode != status {
		b.t.Fatalf("%s: status %d, want %d: %v", request.URL.Path, answer.StatusCode, status, out)
	}
	o, _ := out.(map[string]any)
	if o == nil {
		o = map[string]any{"list": out}
	}
	return o
}

func (b *bench) get(path string, status int) map[string]any {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, "http://"+b.ControlAddr()+path, http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(request, status)
}

func TestControlsOverHTTP(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{})
	to := stranger(t).Hex()
	b.post("/fund", `{"address":"`+to+`","token":"ETH","amount":"1000000000000000000","mine":true}`, http.StatusOK)
	b.post("/fund", `{"address":"`+to+`","token":"USDT","amount":"5000000","mine":true}`, http.StatusOK)
	b.post("/finalise", ``, http.StatusOK)
	moved, _ := b.get("/movements?address="+to, http.StatusOK)["list"].([]any)
	if len(moved) != 2 {
		t.Fatalf("movements: %v", moved)
	}
	last, _ := moved[1].(map[string]any)
	if last["token"] != "USDT" || last["amount"] != "5000000" || last["final"] != true {
		t.Errorf("the second movement is %v", last)
	}
	if list, _ := b.get("/transactions?address="+to, http.StatusOK)["list"].([]any); len(list) != 2 {
		t.Errorf("transactions: %v", list)
	}
	b.post("/token/block", `{"token":"USDT","address":"`+to+`","blocked":true}`, http.StatusOK)
	b.post("/token/block", `{"token":"USDT","address":"`+to+`","blocked":false}`, http.StatusOK)
	b.post("/token/pause", `{"token":"USDC","paused":true}`, http.StatusOK)
	b.post("/token/pause", `{"token":"USDC"}`, http.StatusOK)
	b.post("/token/fee", `{"basis_points":10,"at_most":1}`, http.StatusOK)
	b.post("/basefee", `{"wei":"2000000000"}`, http.StatusOK)
	b.post("/reorganise", `{"blocks":1,"drop":true}`, http.StatusOK)
	b.post("/faults", `{"drop_next":1,"answer_delay_ms":5}`, http.StatusOK)
	if f := b.CurrentFaults(); f.DropNext != 1 || f.AnswerDelay != 5*time.Millisecond {
		t.Errorf("faults %+v", f)
	}
	for _, path := range []string{"/reset", "/pause", "/resume", "/forget"} {
		b.post(path, ``, http.StatusOK)
	}
	b.post("/interval", `{"milliseconds":1000}`, http.StatusOK)
	if s := b.get("/state", http.StatusOK); s["chain_id"] != float64(ChainID) || s["interval_ms"] != float64(1000) || s["usdt"] == "" {
		t.Errorf("state %v", s)
	}
	for path, body := range map[string]string{
		"/fund": `{"address":"x","token":"ETH","amount":"1"}`, "/mine": `{"blocks":0}`, "/faults": `{"nonsense":1}`, "/basefee": `{"wei":"1e3"}`,
		"/token/fee": `{"basis_points":20,"at_most":1}`, "/token/pause": `{"token":"ETH"}`, "/interval": `{"milliseconds":1}`, "/reorganise": `{"blocks":1000}`,
	} {
		b.post(path, body, http.StatusBadRequest)
	}
	b.get("/movements?address=nobody", http.StatusBadRequest)
}

func TestOnlyAPublicNodesAPIIsServed(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{})
	for _, method := range []string{"debug_setHead", "admin_nodeInfo", "miner_setGasPrice", "engine_exchangeCapabilities"} {
		err := b.eth.Client().CallContext(t.Context(), nil, method, "0x0")
		if e, ok := errors.AsType[rpc.Error](err); !ok || e.ErrorCode() != -32601 {
			t.Errorf("%s: %v", method, err)
		}
	}
	var version string
	if err := b.eth.Client().CallContext(t.Context(), &version, "web3_clientVersion"); err != nil || !strings.Contains(version, "go-ethereum") {
		t.Errorf("%q, %v", version, err)
	}
	socket, err := ethclient.Dial("ws://" + b.RPCAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	heads := make(chan *types.Header, 1)
	watch, err := socket.SubscribeNewHead(t.Context(), heads)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Unsubscribe()
	made := b.mine(1)
	select {
	case h := <-heads:
		if h.Hash() != made.ID {
			t.Errorf("announced %s, made %s", h.Hash(), made.ID)
		}
	case err := <-watch.Err():
		t.Fatal(err)
	case <-time.After(time.Hour):
		t.Fatal("no block was announced")
	}
}
