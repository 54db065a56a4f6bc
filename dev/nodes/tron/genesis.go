package tron

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
)

// GenesisKey is the private key, in hexadecimal, of the account that owns the
// chain's TRX and both tokens. It is public and for development only: it is the
// SHA-256 of "kivuko tron development genesis".
const GenesisKey = "7858b08950c4e1f947fd34ac32cd682e6627a18864bf67a358e1fdb6946aada2"

// GenesisAddress is the account of GenesisKey, and USDTAddress and USDCAddress
// are where the genesis block puts the tokens. They never change.
const (
	GenesisAddress = "TSwmiVJ3T6hdrYjvSDCZQiwhZhcemRf39f"
	USDTAddress    = "TK3Hg1YokpTtTUEeSsjNtSgj4uCHzAvfHE"
	USDCAddress    = "TThLMPCK9SBAW54gB2aNReGSyZcavX8Hr2"
)

const (
	genesisKeySeed = "kivuko tron development genesis"
	witnessSeed    = "kivuko tron development witness %d"
	// genesisTime is 2026-01-01T00:00:00Z in milliseconds.
	genesisTime = 1_767_225_600_000
	// genesisSun is fifty thousand million TRX.
	genesisSun = 50_000_000_000 * sunPerTRX
	// genesisTokens is a thousand million tokens of six decimals.
	genesisTokens = 1_000_000_000 * 1_000_000
	// witnesses is the number of super representatives that sign blocks in turn.
	witnesses    = 27
	blockVersion = 36
)

//go:embed contracts/USDT.json contracts/USDC.json
var artefacts embed.FS

func mustKey(hexKey string) *ecdsa.PrivateKey {
	key, err := crypto.HexToECDSA(hexKey)
	if err != nil {
		panic(fmt.Sprintf("tron: genesis key: %v", err))
	}
	return key
}

func mustAddress(text string) Address {
	a, err := ParseAddress(text)
	if err != nil {
		panic(fmt.Sprintf("tron: %v", err))
	}
	return a
}

// tokenAddress derives a fixed address from the token's name, so that it depends
// on neither the bytecode nor the order of deployment.
func tokenAddress(name string) Address {
	h := sha256.Sum256([]byte("kivuko tron development token " + name))
	return addressOfVM(common.Address(h[12:]))
}

func witnessKeys() []*ecdsa.PrivateKey {
	keys := make([]*ecdsa.PrivateKey, witnesses)
	for i := range keys {
		h := sha256.Sum256(fmt.Appendf(nil, witnessSeed, i))
		keys[i] = mustKey(hex.EncodeToString(h[:]))
	}
	return keys
}

func loadToken(name string, owner Address) (*core.SmartContract, error) {
	raw, err := artefacts.ReadFile("contracts/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("read contract %s: %w", name, err)
	}
	a, code, err := readArtefact(raw)
	if err != nil {
		return nil, err
	}
	supply := big.NewInt(genesisTokens).FillBytes(make([]byte, 32))
	return &core.SmartContract{
		OriginAddress: owner[:], Abi: a.message(), Bytecode: append(code, supply...), Name: name,
		ConsumeUserResourcePercent: 100, OriginEnergyLimit: 10_000_000,
	}, nil
}

// genesis builds block 0: the genesis account, further allocations of TRX, and
// the tokens. The header's root commits to the whole state, so the block id, and
// with it the chain id, changes with any of them.
func genesis(alloc map[Address]int64) (*state, *block, error) {
	s := newState()
	owner := AddressOfKey(mustKey(GenesisKey))
	s.credit(owner, genesisSun, genesisTime)
	for _, a := range slices.SortedFunc(maps.Keys(alloc), func(a, b Address) int { return slices.Compare(a[:], b[:]) }) {
		s.credit(a, alloc[a], genesisTime)
	}
	at := &blockContext{time: genesisTime, blockID: func(uint64) common.Hash { return common.Hash{} }}
	for _, name := range []string{"USDT", "USDC"} {
		token, err := loadToken(name, owner)
		if err != nil {
			return nil, nil, err
		}
		if err := createAt(s, at, owner, tokenAddress(name), token); err != nil {
			return nil, nil, err
		}
	}
	root := s.digest()
	s.cut()
	header := &core.BlockHeaderRaw{Timestamp: genesisTime, TxTrieRoot: root[:], ParentHash: make([]byte, 32), Version: blockVersion}
	b := &block{message: &core.Block{BlockHeader: &core.BlockHeader{RawData: header}}, id: BlockID(header), time: genesisTime}
	return s, b, nil
}

// chainIDOf is what the CHAINID opcode answers on TRON: the last four bytes of
// the genesis block's id.
func chainIDOf(genesis Hash) uint64 { return uint64(binary.BigEndian.Uint32(genesis[28:])) }
