// Package conformance runs the drivers of the product against the development nodes.
package conformance

import (
	"context"
	"crypto/ecdsa"
	"log/slog"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/chain/tron"
	node "kivuko/dev/nodes/tron"
	"kivuko/dev/ports"
	"kivuko/exchange/money"
)

func TestTron(t *testing.T) {
	t.Parallel()
	chaintest.Run(t, func(t testing.TB) chaintest.Harness {
		h := startTron(t, money.USDT, money.USDC)
		h.fees.Floor = money.Must(money.TRX, "30") // a token that begins to take a fee when a transfer is signed makes it dearer
		h.client.Close()
		h.connect(t)
		return h
	})
}

// TestTronWithoutUSDC is the production configuration.
func TestTronWithoutUSDC(t *testing.T) {
	t.Parallel()
	h := startTron(t, money.USDT)
	if err := h.client.Supports(money.USDC); chain.ReasonOf(err) != chain.ReasonUnsupported {
		t.Errorf("USDC is supported: %v", err)
	}
}

const tronLife = 10 * time.Minute

// tronHarness is a development node in this process, with a driver that is configured with its gRPC addresses only.
type tronHarness struct {
	client *tron.Client
	node   *node.Node
	config node.Config
	tokens []money.Asset
	fees   tron.FeeRule
	wallet api.WalletClient

	mu    sync.Mutex
	ahead time.Duration
}

// secp256k1Key is a private key of a test.
type secp256k1Key struct{ *ecdsa.PrivateKey }

func (k secp256k1Key) PublicKey() []byte { return crypto.FromECDSAPub(&k.PrivateKey.PublicKey) }

func (k secp256k1Key) Sign(digest []byte) ([]byte, error) { return crypto.Sign(digest, k.PrivateKey) }

func startTron(t testing.TB, tokens ...money.Asset) *tronHarness {
	t.Helper()
	h := &tronHarness{tokens: tokens}
	h.config = node.Config{
		DataDir: t.TempDir(), GRPCAddr: keptAddress(t), SolidityAddr: keptAddress(t), Now: h.now, Log: slog.New(slog.DiscardHandler),
	}
	h.start(t)
	h.connect(t)
	t.Cleanup(func() {
		h.client.Close()
		if err := h.node.Close(); err != nil {
			t.Error(err)
		}
	})
	h.Finalise(t) // the genesis block has a fixed, old date
	return h
}

// keptAddress is an address that no other program takes while the node that listens on it is away.
func keptAddress(t testing.TB) string {
	t.Helper()
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	return ports.Address(port)
}

func (h *tronHarness) start(t testing.TB) {
	t.Helper()
	n, err := node.New(h.config)
	if err != nil {
		t.Fatal(err)
	}
	h.node = n
	if err := n.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// driverConfig is the driver's configuration for the node.
func (h *tronHarness) driverConfig() tron.Config {
	c := tron.Config{
		FullNodes:       []tron.Endpoint{{Address: h.node.GRPCAddr()}},
		SolidityNodes:   []tron.Endpoint{{Address: h.node.SolidityAddr()}},
		Tokens:          map[money.Asset]string{},
		Fees:            h.fees,
		TransactionLife: tronLife,
		MaxHeadAge:      time.Hour, // blocks are made in bursts, and each is dated a slot after the one before
		RetryAfter:      time.Second,
		Now:             h.now,
	}
	for _, asset := range h.tokens {
		c.Tokens[asset] = contracts[asset]
		c.USDCEnabled = c.USDCEnabled || asset == money.USDC
	}
	return c
}

func (h *tronHarness) connect(t testing.TB) {
	t.Helper()
	var err error
	if h.client, err = tron.New(h.driverConfig()); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(h.node.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	h.wallet = api.NewWalletClient(conn)
}

var contracts = map[money.Asset]string{money.USDT: node.USDTAddress, money.USDC: node.USDCAddress}

func (h *tronHarness) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(h.ahead)
}

func (h *tronHarness) Client() chain.Client     { return h.client }
func (h *tronHarness) Tokens() []money.Asset    { return h.tokens }
func (h *tronHarness) Unsupported() money.Asset { return money.SOL }
func (h *tronHarness) Gas() money.Amount        { return money.Must(money.TRX, "200") }
func (h *tronHarness) Life() time.Duration      { return tronLife }

func (h *tronHarness) BadAddresses() []string {
	return []string{
		"0xdAC17F958D2ee523a2206206994597C13D831ec7",
		"dAC17F958D2ee523a2206206994597C13D831ec7",
		"41a614f803b6fd780986a42c78ec9c7f77e6ded13c",
		"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u",
		"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6",
		"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6tt",
		"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
		"1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
		"DRpbCBMxVnDK7maPM5tGv6MvB3v1sRMC86PZ8okm21hy",
	}
}

func (h *tronHarness) NewAccount(t testing.TB) chaintest.Account {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return chaintest.Account{Address: node.AddressOfKey(key).String(), Key: secp256k1Key{key}}
}

func (h *tronHarness) Fund(t testing.TB, to string, amount money.Amount) {
	t.Helper()
	h.give(t, to, amount)
	h.Mine(t, 1)
	h.Finalise(t)
}

// give sends without waiting for a block.
func (h *tronHarness) give(t testing.TB, to string, amount money.Amount) {
	t.Helper()
	address := tronAddress(t, to)
	var err error
	if amount.Asset() == money.TRX {
		_, err = h.node.FundTRX(address, amount.Units().Int64())
	} else {
		_, err = h.node.FundToken(tronAddress(t, contracts[amount.Asset()]), address, amount.Units())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func tronAddress(t testing.TB, s string) node.Address {
	t.Helper()
	a, err := node.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (h *tronHarness) Mine(t testing.TB, blocks int) {
	t.Helper()
	if _, err := h.node.ProduceBlocks(blocks); err != nil {
		t.Fatal(err)
	}
}

func (h *tronHarness) Finalise(t testing.TB) {
	t.Helper()
	if _, err := h.node.Solidify(); err != nil {
		t.Fatal(err)
	}
}

func (h *tronHarness) AdvanceTime(t testing.TB, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ahead += d
}

func (h *tronHarness) faults(t testing.TB, f node.Faults) {
	t.Helper()
	if err := h.node.SetFaults(f); err != nil {
		t.Fatal(err)
	}
}

func (h *tronHarness) LoseNextAnswer(t testing.TB) { h.faults(t, node.Faults{LoseNext: 1}) }
func (h *tronHarness) DropNext(t testing.TB)       { h.faults(t, node.Faults{DropNext: 1}) }
func (h *tronHarness) BusyNext(t testing.TB)       { h.faults(t, node.Faults{BusyNext: 1}) }
func (h *tronHarness) FailNext(t testing.TB) {
	h.faults(t, node.Faults{FailNext: 1, FailWith: core.Transaction_Result_REVERT.String()})
}

func (h *tronHarness) Reorganise(t testing.TB, depth int, vanish bool) {
	t.Helper()
	if err := h.node.Reorganise(depth, vanish); err != nil {
		t.Fatal(err)
	}
}

func (h *tronHarness) Stop(t testing.TB) {
	t.Helper()
	if err := h.node.Close(); err != nil {
		t.Fatal(err)
	}
}

func (h *tronHarness) Restart(t testing.TB) { h.start(t) }

// words encodes the arguments of a contract call.
func words(args ...[]byte) []byte {
	var out []byte
	for _, a := range args {
		out = append(out, make([]byte, 32-len(a))...)
		out = append(out, a...)
	}
	return out
}

// call sends a contract call, signed by the given key, and makes a block of it.
func (h *tronHarness) call(t testing.TB, key chain.Key, from, contract, signature string, args ...[]byte) {
	t.Helper()
	owner, target := tronAddress(t, from), tronAddress(t, contract)
	built, err := h.wallet.TriggerContract(t.Context(), &core.TriggerSmartContract{
		OwnerAddress: owner[:], ContractAddress: target[:],
		Data: append(crypto.Keccak256([]byte(signature))[:4], words(args...)...),
	})
	if err != nil {
		t.Fatal(err)
	}
	if built.GetResult().GetCode() != api.Return_SUCCESS {
		t.Fatalf("%s: %s", signature, built.GetResult().GetMessage())
	}
	tx := proto.CloneOf(built.GetTransaction())
	tx.Ret = nil
	tx.RawData.FeeLimit = 100_000_000
	id := node.TransactionID(tx)
	made, err := key.Sign(id[:])
	if err != nil {
		t.Fatal(err)
	}
	tx.Signature = [][]byte{made}
	answer, err := h.wallet.BroadcastTransaction(t.Context(), tx)
	if err != nil || !answer.GetResult() {
		t.Fatalf("%s: %v %s", signature, err, answer.GetMessage())
	}
	h.Mine(t, 1)
	info, err := h.wallet.GetTransactionInfoById(t.Context(), &api.BytesMessage{Value: id[:]})
	if err != nil || info.GetReceipt().GetResult() != core.Transaction_Result_SUCCESS {
		t.Fatalf("%s: %v %s %s", signature, err, info.GetReceipt().GetResult(), info.GetResMessage())
	}
}

// issue calls a token as its issuer.
func (h *tronHarness) issue(t testing.TB, token money.Asset, signature string, args ...[]byte) {
	t.Helper()
	key, err := crypto.HexToECDSA(node.GenesisKey)
	if err != nil {
		t.Fatal(err)
	}
	h.call(t, secp256k1Key{key}, node.GenesisAddress, contracts[token], signature, args...)
}

func (h *tronHarness) Block(t testing.TB, token money.Asset, address string) {
	t.Helper()
	signature := map[money.Asset]string{money.USDT: "addBlackList(address)", money.USDC: "blacklist(address)"}[token]
	a := tronAddress(t, address)
	h.issue(t, token, signature, a[1:])
}

func (h *tronHarness) Pause(t testing.TB, token money.Asset) {
	t.Helper()
	h.issue(t, token, "pause()")
}

func (h *tronHarness) TakeFee(t testing.TB, token money.Asset) bool {
	t.Helper()
	if token != money.USDT {
		return false
	}
	h.issue(t, token, "setParams(uint256,uint256)", []byte{10}, []byte{1}) // 0.1 %, at most 1
	return true
}

func (h *tronHarness) TransferFrom(t testing.TB, owner chaintest.Account, to string, amount money.Amount) {
	t.Helper()
	spender, from, target := tronAddress(t, node.GenesisAddress), tronAddress(t, owner.Address), tronAddress(t, to)
	units := amount.Units()
	h.call(t, owner.Key, owner.Address, contracts[amount.Asset()], "approve(address,uint256)", spender[1:], units.Bytes())
	h.issue(t, amount.Asset(), "transferFrom(address,address,uint256)", from[1:], target[1:], new(big.Int).Set(units).Bytes())
}
