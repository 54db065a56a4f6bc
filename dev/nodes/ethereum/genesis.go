package ethereum

import (
	"crypto/ecdsa"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"kivuko/dev/nodes/ethereum/safe"
)

// ChainID is the id of the development chain: no public network's.
const ChainID = 254_254

// The private keys, in hexadecimal, of the account that holds the chain's ether and tokens and pays
// out of them, and of the issuer of both tokens. They are public and for development only: the
// Keccak-256 of "kivuko ethereum development faucet" and "... issuer".
const (
	FaucetKey = "4cc0952cf2a5b4b4665537c77462468d584a0e8edb6ef36af2ea0cdfa18dd33d"
	IssuerKey = "fd8d03ebbf618bc312726f58628c309407b0751f41337eedf480fef1bab5b5d4"
)

// fillerKey is of the account that uses up blocks to move the base fee.
const fillerKey = "13ca651353546ef94ed3c9f427e3d59139f57376e08e87eb8876775b471e9260"

// genesisGasLimit is that of the main network before 2025, and twice what a block should use.
const genesisGasLimit = 30_000_000

// sink is a contract whose code is one invalid instruction: a call of it uses up all its gas at once
// and moves nothing. It is also a recipient that refuses ether.
var sink = common.HexToAddress("0x000000000000000000000000000000000000dEaf")

// SinkAddress is a contract that refuses everything.
func SinkAddress() common.Address { return sink }

// key reads one of the constants above.
func key(digits string) *ecdsa.PrivateKey {
	k, err := crypto.HexToECDSA(digits)
	if err != nil {
		panic(fmt.Sprintf("ethereum: a key of the development chain: %v", err))
	}
	return k
}

func addressOf(k *ecdsa.PrivateKey) common.Address { return crypto.PubkeyToAddress(k.PublicKey) }

// FaucetAddress is the account of FaucetKey.
func FaucetAddress() common.Address { return addressOf(key(FaucetKey)) }

// IssuerAddress is the account of IssuerKey.
func IssuerAddress() common.Address { return addressOf(key(IssuerKey)) }

// USDTAddress and USDCAddress are where the first block puts the tokens. They never change.
func USDTAddress() common.Address { return crypto.CreateAddress(IssuerAddress(), 0) }

// USDCAddress is where the first block puts USDC.
func USDCAddress() common.Address { return crypto.CreateAddress(IssuerAddress(), 1) }

// chainConfig is the main network's rules up to Osaka. Forks after it are left out: the engine API's
// methods that this package uses end there.
func chainConfig() *params.ChainConfig {
	c := *params.AllDevChainProtocolChanges
	c.ChainID = big.NewInt(ChainID)
	c.BogotaTime = nil
	return &c
}

// genesis is the state before the first block.
func genesis() *core.Genesis {
	// A thousand million ether each: more than any test can spend.
	plenty := new(big.Int).Mul(big.NewInt(1_000_000_000), big.NewInt(params.Ether))
	alloc := types.GenesisAlloc{
		FaucetAddress():           {Balance: plenty},
		IssuerAddress():           {Balance: plenty},
		addressOf(key(fillerKey)): {Balance: plenty},
		sink:                      {Balance: new(big.Int), Code: []byte{0xfe}},
		// No key of ours can sign the transaction that makes it on public chains.
		safe.Factory: {Balance: new(big.Int), Nonce: 1, Code: safe.FactoryCode},
	}
	maps.Copy(alloc, core.SystemContractAllocs())
	return &core.Genesis{
		Config: chainConfig(), GasLimit: genesisGasLimit, BaseFee: big.NewInt(params.InitialBaseFee),
		Difficulty: new(big.Int), Alloc: alloc,
	}
}

// artefact is what contracts/compile.mjs writes for one contract.
type artefact struct {
	Contract string          `json:"contract"`
	Compiler string          `json:"compiler"`
	ABI      json.RawMessage `json:"abi"`
	Bytecode string          `json:"bytecode"`
}

//go:embed contracts/USDT.json
var usdtArtefact []byte

//go:embed contracts/USDC.json
var usdcArtefact []byte

// TokenCode is the code that puts a token ("USDT" or "USDC") on a chain with a supply, which goes to
// the account that sends it.
func TokenCode(token string, supply *big.Int) ([]byte, error) {
	raw := map[string][]byte{"USDT": usdtArtefact, "USDC": usdcArtefact}[token]
	var a artefact
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, fmt.Errorf("parse the artefact of %s: %w", token, err)
	}
	code, err := hex.DecodeString(a.Bytecode)
	if err != nil {
		return nil, fmt.Errorf("parse the bytecode of %s: %w", token, err)
	}
	return append(code, common.LeftPadBytes(supply.Bytes(), wordLength)...), nil
}

const (
	wordLength = 32
	// deployGas is above what either token takes.
	deployGas = 4_000_000
	// genesisTokens is a thousand million tokens of six decimals. The issuer keeps a few of them: as on
	// the main network, paying a fee to it costs no new storage.
	genesisTokens = 1_000_000_000 * 1_000_000
	issuerTokens  = 1_000 * 1_000_000
)

// deployments are the transactions of the first block: both tokens, and most of their supply to the
// faucet.
func (n *Node) deployments() ([]*types.Transaction, error) {
	supply := big.NewInt(genesisTokens)
	var out []*types.Transaction
	for i, token := range []string{"USDT", "USDC"} {
		code, err := TokenCode(token, supply)
		if err != nil {
			return nil, err
		}
		tx, err := n.sign(key(IssuerKey), &types.DynamicFeeTx{Nonce: uint64(i), Gas: deployGas, Data: code})
		if err != nil {
			return nil, err
		}
		out = append(out, tx)
	}
	for i, token := range []common.Address{USDTAddress(), USDCAddress()} {
		tx, err := n.sign(key(IssuerKey), &types.DynamicFeeTx{
			Nonce: uint64(2 + i), Gas: callGas, To: &token,
			Data: Calldata("transfer(address,uint256)", FaucetAddress().Bytes(), big.NewInt(genesisTokens-issuerTokens).Bytes()),
		})
		if err != nil {
			return nil, err
		}
		out = append(out, tx)
	}
	return out, nil
}

// contractGas is above what the largest of the contracts takes.
const contractGas = 6_500_000

// deployContracts puts those of the contracts on the chain that are not there, in a block of their own.
func (n *Node) deployContracts() error {
	nonce, err := n.issuerNonce()
	if err != nil {
		return err
	}
	absent, err := n.absentContracts()
	if err != nil || len(absent) == 0 {
		return err
	}
	var txs []*types.Transaction
	for i, c := range absent {
		tx, err := n.sign(key(IssuerKey), &types.DynamicFeeTx{
			Nonce: nonce + uint64(i), Gas: contractGas, To: &safe.Factory, Data: append(make([]byte, wordLength), c.Creation...),
		})
		if err != nil {
			return err
		}
		txs = append(txs, tx)
	}
	if _, err := n.seal(n.head(), content{exact: txs}); err != nil {
		return fmt.Errorf("put the contracts of Safe on the chain: %w", err)
	}
	if absent, err = n.absentContracts(); err == nil && len(absent) > 0 {
		err = fmt.Errorf("put the contracts of Safe on the chain: %s is not at %s", absent[0].Name, absent[0].Address)
	}
	return err
}

// absentContracts are the contracts that the chain does not have. The address of one that it has proves its code.
func (n *Node) absentContracts() (safe.Set, error) {
	state, err := n.eth.BlockChain().State()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(n.config.Contracts), func(c safe.Contract) bool { return state.GetCodeSize(c.Address) > 0 }), nil
}

// callGas is above what any call of the tokens takes.
const callGas = 200_000

// Calldata is a call of a contract whose arguments are all 32-byte words.
func Calldata(signature string, args ...[]byte) []byte {
	out := crypto.Keccak256([]byte(signature))[:4]
	for _, a := range args {
		out = append(out, common.LeftPadBytes(a, wordLength)...)
	}
	return out
}

// ownTip and ownCap are what the node's own transactions bid: enough at any base fee that can be set.
var (
	ownTip = big.NewInt(2 * params.GWei)
	ownCap = big.NewInt(2 * maxBaseFeeGwei * params.GWei)
)

// sign completes a transaction of the node's own.
func (n *Node) sign(k *ecdsa.PrivateKey, tx *types.DynamicFeeTx) (*types.Transaction, error) {
	tx.ChainID = big.NewInt(ChainID)
	if tx.GasTipCap == nil {
		tx.GasTipCap, tx.GasFeeCap = ownTip, ownCap
	}
	return types.SignNewTx(k, types.LatestSignerForChainID(tx.ChainID), tx)
}
