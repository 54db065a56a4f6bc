package conformance

import (
	"context"
	"log/slog"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/chain/ethereum"
	ethnode "kivuko/dev/nodes/ethereum"
	"kivuko/exchange/money"
)

func TestEthereum(t *testing.T) {
	t.Parallel()
	chaintest.Run(t, func(t testing.TB) chaintest.Harness { return startEthereum(t) })
}

// TestEthereumOverWebSocket runs the same driver and node over the other transport.
func TestEthereumOverWebSocket(t *testing.T) {
	t.Parallel()
	h := startEthereum(t)
	c := h.driverConfig()
	c.Nodes = []ethereum.Endpoint{{URL: "ws://" + h.node.RPCAddr()}}
	socket, err := ethereum.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(socket.Close)
	h.client = socket
	h.pays(t, money.Must(money.USDT, "5"))
	h.Stop(t)
	if _, err := socket.Head(t.Context()); chain.ReasonOf(err) != chain.ReasonUnavailable {
		t.Errorf("a head of a node that is gone: %v", err)
	}
	h.Restart(t)
	h.pays(t, money.Must(money.USDC, "5"))
}

// ethereumHarness is a development node in this process, with a driver that is configured with its address only.
type ethereumHarness struct {
	*ethereumDriver
	node   *ethnode.Node
	config ethnode.Config
	rpc    *ethclient.Client
}

var ethereumContracts = map[money.Asset]common.Address{money.USDT: ethnode.USDTAddress(), money.USDC: ethnode.USDCAddress()}

func startEthereum(t testing.TB) *ethereumHarness {
	t.Helper()
	return startEthereumWith(t, ethnode.Config{})
}

func startEthereumWith(t testing.TB, config ethnode.Config) *ethereumHarness {
	t.Helper()
	config.DataDir, config.RPCAddr, config.Log = t.TempDir(), keptAddress(t), slog.New(slog.DiscardHandler)
	config.SafeDepth, config.FinalDepth = 2, 4
	h := &ethereumHarness{ethereumDriver: &ethereumDriver{}, config: config}
	h.start(t)
	var err error
	if h.client, err = ethereum.New(h.driverConfig()); err != nil {
		t.Fatal(err)
	}
	if h.rpc, err = ethclient.Dial("http://" + h.node.RPCAddr()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.client.Close()
		h.rpc.Close()
		if err := h.node.Close(); err != nil {
			t.Error(err)
		}
	})
	h.Finalise(t)
	return h
}

func (h *ethereumHarness) start(t testing.TB) {
	t.Helper()
	n, err := ethnode.New(h.config)
	if err != nil {
		t.Fatal(err)
	}
	h.node = n
	if err := n.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// driverConfig is the driver's configuration for the node.
func (h *ethereumHarness) driverConfig() ethereum.Config {
	c := ethereum.Config{
		ChainID: ethnode.ChainID, Nodes: []ethereum.Endpoint{{URL: "http://" + h.node.RPCAddr()}}, Tokens: map[money.Asset]string{},
		MaxHeadAge: time.Hour, // blocks are made in bursts, and each is dated a second after the one before
		RetryAfter: time.Second,
	}
	for asset, contract := range ethereumContracts {
		c.Tokens[asset] = contract.Hex()
	}
	return c
}

func badEthereumAddresses() []string {
	return []string{
		"dAC17F958D2ee523a2206206994597C13D831ec7",
		"0xdAC17F958D2ee523a2206206994597C13D831eC7",
		"0xDAC17F958D2ee523a2206206994597C13D831ec7",
		"0XDAC17F958D2EE523A2206206994597C13D831EC7",
		"0xdAC17F958D2ee523a2206206994597C13D831ec",
		"0xdAC17F958D2ee523a2206206994597C13D831ec77",
		"0xdAC17F958D2ee523a2206206994597C13D831ecg",
		"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
		"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
		"vitalik.eth",
		"DRpbCBMxVnDK7maPM5tGv6MvB3v1sRMC86PZ8okm21hy",
	}
}

func newEthereumAccount(t testing.TB) chaintest.Account {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return chaintest.Account{Address: crypto.PubkeyToAddress(key.PublicKey).Hex(), Key: secp256k1Key{key}}
}

func (h *ethereumHarness) Fund(t testing.TB, to string, amount money.Amount) {
	t.Helper()
	h.give(t, to, amount)
	h.Mine(t, 1)
	h.Finalise(t)
}

// give sends without waiting for a block.
func (h *ethereumHarness) give(t testing.TB, to string, amount money.Amount) {
	t.Helper()
	address := common.HexToAddress(to)
	var err error
	if amount.Asset() == money.ETH {
		_, err = h.node.Fund(address, amount.Units())
	} else {
		_, err = h.node.FundToken(ethereumContracts[amount.Asset()], address, amount.Units())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (h *ethereumHarness) Mine(t testing.TB, blocks int) {
	t.Helper()
	if _, err := h.node.MineBlocks(blocks); err != nil {
		t.Fatal(err)
	}
}

func (h *ethereumHarness) Finalise(t testing.TB) {
	t.Helper()
	if _, err := h.node.Finalise(); err != nil {
		t.Fatal(err)
	}
}

func (h *ethereumHarness) faults(t testing.TB, f ethnode.Faults) {
	t.Helper()
	if err := h.node.SetFaults(f); err != nil {
		t.Fatal(err)
	}
}

func (h *ethereumHarness) LoseNextAnswer(t testing.TB) { h.faults(t, ethnode.Faults{LoseNext: 1}) }
func (h *ethereumHarness) DropNext(t testing.TB)       { h.faults(t, ethnode.Faults{DropNext: 1}) }
func (h *ethereumHarness) BusyNext(t testing.TB)       { h.faults(t, ethnode.Faults{BusyNext: 1}) }
func (h *ethereumHarness) FailNext(t testing.TB)       { h.faults(t, ethnode.Faults{FailNext: 1}) }

func (h *ethereumHarness) Reorganise(t testing.TB, depth int, vanish bool) {
	t.Helper()
	if err := h.node.Reorganise(depth, vanish); err != nil {
		t.Fatal(err)
	}
}

func (h *ethereumHarness) Stop(t testing.TB) {
	t.Helper()
	if err := h.node.Close(); err != nil {
		t.Fatal(err)
	}
}

func (h *ethereumHarness) Restart(t testing.TB) { h.start(t) }

func (h *ethereumHarness) Block(t testing.TB, token money.Asset, address string) {
	t.Helper()
	if err := h.node.SetBlocked(ethereumContracts[token], common.HexToAddress(address), true); err != nil {
		t.Fatal(err)
	}
}

func (h *ethereumHarness) Pause(t testing.TB, token money.Asset) {
	t.Helper()
	if err := h.node.SetTokenPaused(ethereumContracts[token], true); err != nil {
		t.Fatal(err)
	}
}

func (h *ethereumHarness) TakeFee(t testing.TB, token money.Asset) bool {
	t.Helper()
	if token != money.USDT {
		return false
	}
	if err := h.node.SetTokenFee(10, 1); err != nil { // 0.1 %, at most 1
		t.Fatal(err)
	}
	return true
}

func (h *ethereumHarness) TransferFrom(t testing.TB, owner chaintest.Account, to string, amount money.Amount) {
	t.Helper()
	contract := ethereumContracts[amount.Asset()]
	key, err := crypto.HexToECDSA(ethnode.FaucetKey)
	if err != nil {
		t.Fatal(err)
	}
	spender := ethnode.FaucetAddress()
	approve := ethnode.Calldata("approve(address,uint256)", spender.Bytes(), amount.Units().Bytes())
	sendEthereum(t, h.rpc, ethnode.ChainID, owner.Key, common.HexToAddress(owner.Address), &types.DynamicFeeTx{Gas: 200_000, To: &contract, Data: approve})
	h.Mine(t, 1)
	take := ethnode.Calldata("transferFrom(address,address,uint256)", common.HexToAddress(owner.Address).Bytes(), common.HexToAddress(to).Bytes(), amount.Units().Bytes())
	sendEthereum(t, h.rpc, ethnode.ChainID, secp256k1Key{key}, spender, &types.DynamicFeeTx{Gas: 200_000, To: &contract, Data: take})
	h.Mine(t, 1)
}

// sendEthereum completes, signs and sends a transaction without the driver.
func sendEthereum(t testing.TB, node *ethclient.Client, chainID int64, key chain.Key, from common.Address, fields *types.DynamicFeeTx) common.Hash {
	t.Helper()
	nonce, err := node.PendingNonceAt(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	const gwei = 1_000_000_000
	fields.ChainID, fields.Nonce, fields.GasTipCap, fields.GasFeeCap = big.NewInt(chainID), nonce, big.NewInt(gwei), big.NewInt(20*gwei)
	tx, signer := types.NewTx(fields), types.NewLondonSigner(fields.ChainID)
	signature, err := key.Sign(signer.Hash(tx).Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if tx, err = tx.WithSignature(signer, signature); err != nil {
		t.Fatal(err)
	}
	if err := node.SendTransaction(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	return tx.Hash()
}
