package conformance

import (
	"context"
	"math/big"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/chain/ethereum"
	ethnode "kivuko/dev/nodes/ethereum"
	"kivuko/dev/ports"
	"kivuko/exchange/money"
)

// anvilVariable names the binary of Foundry's anvil, a node that shares no code with go-ethereum.
const anvilVariable = "KIVUKO_ANVIL"

// TestConformanceEthereumAnvil runs the suite against an independent node. `make conformance` fetches it.
func TestConformanceEthereumAnvil(t *testing.T) {
	t.Parallel()
	binary := os.Getenv(anvilVariable)
	if binary == "" {
		t.Skipf("%s names no anvil binary; make conformance fetches one", anvilVariable)
	}
	chaintest.Run(t, func(t testing.TB) chaintest.Harness { return startAnvil(t, binary) })
}

// anvilHarness is an anvil process with our tokens on it.
type anvilHarness struct {
	*ethereumDriver
	rpc    *rpc.Client
	eth    *ethclient.Client
	issuer chaintest.Account
	tokens map[money.Asset]common.Address
}

// ethereumDriver is what the harnesses of both nodes share.
type ethereumDriver struct{ client *ethereum.Client }

func (h *ethereumDriver) Client() chain.Client     { return h.client }
func (h *ethereumDriver) Tokens() []money.Asset    { return []money.Asset{money.USDT, money.USDC} }
func (h *ethereumDriver) Unsupported() money.Asset { return money.TRX }
func (h *ethereumDriver) Gas() money.Amount        { return money.Must(money.ETH, "0.1") }
func (h *ethereumDriver) BadAddresses() []string   { return badEthereumAddresses() }

func (h *ethereumDriver) NewAccount(t testing.TB) chaintest.Account { return newEthereumAccount(t) }

const anvilChainID = 31337

func startAnvil(t testing.TB, binary string) *anvilHarness {
	t.Helper()
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	// An epoch of one slot makes a block final two blocks later.
	process := exec.CommandContext(context.Background(), binary,
		"--host", ports.Loopback, "--port", strconv.Itoa(port), "--chain-id", strconv.Itoa(anvilChainID),
		"--no-mining", "--slots-in-an-epoch", "1", "--order", "fees", "--quiet")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill() // it stores nothing
		_ = process.Wait()         // the error is always the signal
	})
	h := &anvilHarness{ethereumDriver: &ethereumDriver{}, tokens: map[money.Asset]common.Address{}}
	url := "http://" + ports.Address(port)
	if h.rpc, err = rpc.Dial(url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.rpc.Close)
	h.eth = ethclient.NewClient(h.rpc)
	h.await(t)
	h.deploy(t)
	c := ethereum.Config{
		ChainID: anvilChainID, Nodes: []ethereum.Endpoint{{URL: url}}, Tokens: map[money.Asset]string{},
		MaxHeadAge: time.Hour, RetryAfter: time.Second,
	}
	for asset, contract := range h.tokens {
		c.Tokens[asset] = contract.Hex()
	}
	if h.client, err = ethereum.New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.client.Close)
	return h
}

func (h *anvilHarness) await(t testing.TB) {
	t.Helper()
	const timeout = 20 * time.Second
	for end := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		_, err := h.eth.BlockNumber(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func (h *anvilHarness) call(t testing.TB, method string, args ...any) {
	t.Helper()
	if err := h.rpc.CallContext(t.Context(), nil, method, args...); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

// deploy puts the development tokens on the chain, and funds their issuer.
func (h *anvilHarness) deploy(t testing.TB) {
	t.Helper()
	h.issuer = newEthereumAccount(t)
	plenty := new(big.Int).Mul(big.NewInt(1_000_000), big.NewInt(1_000_000_000_000_000_000))
	from := common.HexToAddress(h.issuer.Address)
	h.call(t, "anvil_setBalance", from, (*hexutil.Big)(plenty))
	h.Mine(t, 1)
	for i, asset := range []money.Asset{money.USDT, money.USDC} {
		code, err := ethnode.TokenCode(string(asset), big.NewInt(1_000_000_000_000_000))
		if err != nil {
			t.Fatal(err)
		}
		h.send(t, &types.DynamicFeeTx{Gas: 4_000_000, Data: code})
		h.tokens[asset] = crypto.CreateAddress(from, uint64(i))
	}
	h.Finalise(t)
}

// send mines a transaction of the issuer, which must succeed.
func (h *anvilHarness) send(t testing.TB, tx *types.DynamicFeeTx) {
	t.Helper()
	id := sendEthereum(t, h.eth, anvilChainID, h.issuer.Key, common.HexToAddress(h.issuer.Address), tx)
	h.Mine(t, 1)
	r, err := h.eth.TransactionReceipt(t.Context(), id)
	if err != nil || r.Status != types.ReceiptStatusSuccessful {
		t.Fatalf("%+v, %v", r, err)
	}
}

func (h *anvilHarness) issue(t testing.TB, token money.Asset, signature string, args ...[]byte) {
	t.Helper()
	contract := h.tokens[token]
	h.send(t, &types.DynamicFeeTx{Gas: 200_000, To: &contract, Data: ethnode.Calldata(signature, args...)})
}

func (h *anvilHarness) Fund(t testing.TB, address string, amount money.Amount) {
	t.Helper()
	to := common.HexToAddress(address)
	if amount.Asset() == money.ETH {
		h.send(t, &types.DynamicFeeTx{Gas: 21_000, To: &to, Value: amount.Units()})
	} else {
		h.issue(t, amount.Asset(), "transfer(address,uint256)", to.Bytes(), amount.Units().Bytes())
	}
	h.Finalise(t)
}

func (h *anvilHarness) Mine(t testing.TB, blocks int) {
	t.Helper()
	for range blocks {
		h.call(t, "evm_mine")
	}
}

func (h *anvilHarness) Finalise(t testing.TB) {
	t.Helper()
	goal, err := h.eth.BlockNumber(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const timeout = 100
	for range timeout {
		final, err := h.eth.HeaderByNumber(t.Context(), big.NewInt(int64(rpc.FinalizedBlockNumber)))
		if err == nil && final.Number.Uint64() >= goal {
			return
		}
		h.Mine(t, 1)
	}
	t.Fatalf("block %d is not final after %d more", goal, timeout)
}

// Reorganise replaces blocks by empty ones. Anvil forgets their transactions; to bring them back, the test sends them
// again.
func (h *anvilHarness) Reorganise(t testing.TB, depth int, vanish bool) {
	t.Helper()
	head, err := h.eth.BlockNumber(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var lost []*types.Transaction
	for n := head - uint64(depth) + 1; n <= head; n++ {
		b, err := h.eth.BlockByNumber(t.Context(), new(big.Int).SetUint64(n))
		if err != nil {
			t.Fatal(err)
		}
		lost = append(lost, b.Transactions()...)
	}
	h.call(t, "anvil_reorg", depth, []any{})
	if vanish {
		return
	}
	for _, tx := range lost {
		if err := h.eth.SendTransaction(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
	}
}

func (h *anvilHarness) Block(t testing.TB, token money.Asset, address string) {
	t.Helper()
	signature := map[money.Asset]string{money.USDT: "addBlackList(address)", money.USDC: "blacklist(address)"}[token]
	h.issue(t, token, signature, common.HexToAddress(address).Bytes())
}

func (h *anvilHarness) Pause(t testing.TB, token money.Asset) {
	t.Helper()
	h.issue(t, token, "pause()")
}

func (h *anvilHarness) TakeFee(t testing.TB, token money.Asset) bool {
	t.Helper()
	if token != money.USDT {
		return false
	}
	h.issue(t, token, "setParams(uint256,uint256)", []byte{10}, []byte{1})
	return true
}

func (h *anvilHarness) TransferFrom(t testing.TB, owner chaintest.Account, to string, amount money.Amount) {
	t.Helper()
	contract, from := h.tokens[amount.Asset()], common.HexToAddress(owner.Address)
	approve := ethnode.Calldata("approve(address,uint256)", common.HexToAddress(h.issuer.Address).Bytes(), amount.Units().Bytes())
	sendEthereum(t, h.eth, anvilChainID, owner.Key, from, &types.DynamicFeeTx{Gas: 200_000, To: &contract, Data: approve})
	h.Mine(t, 1)
	h.issue(t, amount.Asset(), "transferFrom(address,address,uint256)", from.Bytes(), common.HexToAddress(to).Bytes(), amount.Units().Bytes())
}
