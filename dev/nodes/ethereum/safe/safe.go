// Package safe gives the development node the contracts of Safe 1.4.1: accounts of several owners.
//
// None of it is part of this repository. The code is taken from a pinned package of the npm registry and kept in a cache
// directory of the user. Each contract's address follows from its code (EIP-1014), so the address proves the code, and on the
// development chain the contracts are where they are on every public one.
package safe

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Contract is one contract.
type Contract struct {
	Name    string
	Address common.Address
	// Creation is the code that makes it.
	Creation []byte
}

// Set is all the contracts. The empty set is valid: such a chain has no Safes.
type Set []Contract

// Factory makes a contract at an address that follows from its code. Public chains have it at this address by a transaction
// that its authors signed (safe-global/safe-singleton-factory); FactoryCode is what it left there. A call of it is a salt of
// 32 bytes and the code; these contracts have the salt zero.
var (
	Factory     = common.HexToAddress("0x914d7Fec6aaC8cd542e72Bca78B30650d45643d7")
	FactoryCode = common.FromHex("0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3")
)

// pin says which contract we mean.
type pin struct {
	path    string // in the package, of what its compiler left
	address string
}

// pins are the contracts of the deployment 1.4.1 and their addresses on every chain (safe-global/safe-deployments 1.37.63).
func pins() []pin {
	return []pin{
		{"Safe.sol/Safe", "0x41675C099F32341bf84BFc5382aF534df5C7461a"},
		{"SafeL2.sol/SafeL2", "0x29fcB43b46531BcA003ddC8FCB67FFE91900C762"},
		{"proxies/SafeProxyFactory.sol/SafeProxyFactory", "0x4e1DCf7AD4e460CfD30791CCC4F9c8a4f820ec67"},
		{"handler/CompatibilityFallbackHandler.sol/CompatibilityFallbackHandler", "0xfd0732Dc9E303f09fCEf3a7388Ad10A83459Ec99"},
		{"libraries/MultiSend.sol/MultiSend", "0x38869bf66a61cF6bDB996A6aE40D5853Fd43B526"},
		{"libraries/MultiSendCallOnly.sol/MultiSendCallOnly", "0x9641d764fc13c8B624c04430C7356C1C7C8102e2"},
		{"libraries/SignMessageLib.sol/SignMessageLib", "0xd53cd0aB83D845Ac265BE939c57F53AD838012c9"},
		{"libraries/CreateCall.sol/CreateCall", "0x9b35Af71d77eaf8d7e40252370304687390A1A52"},
		{"accessors/SimulateTxAccessor.sol/SimulateTxAccessor", "0x3d4BA2E0884aa488718476ca2FB8Efc291A46199"},
	}
}

func (p pin) name() string { return filepath.Base(p.path) }

// contract checks that code makes the pinned contract.
func (p pin) contract(creation []byte) (Contract, bool) {
	want := common.HexToAddress(p.address)
	got := crypto.CreateAddress2(Factory, common.Hash{}, crypto.Keccak256(creation))
	return Contract{Name: p.name(), Address: want, Creation: creation}, got == want
}

// CacheDir is where a user's contracts are kept: "kivuko/safe" in the directory that the system has for such things.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a directory to keep the contracts of Safe in: %w", err)
	}
	return filepath.Join(dir, "kivuko", "safe"), nil
}

// ErrNotCached means that a directory does not hold all the contracts.
var ErrNotCached = errors.New("the contracts of Safe are not in the cache")

// Cached reads the contracts from a directory that Get filled. It reaches for nothing else, and fails with ErrNotCached when
// one is missing or not what it should be.
func Cached(dir string) (Set, error) {
	var set Set
	for _, p := range pins() {
		text, err := os.ReadFile(p.file(dir))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: no %s in %s", ErrNotCached, p.name(), dir)
		}
		if err != nil {
			return nil, fmt.Errorf("read the contract %s: %w", p.name(), err)
		}
		code, err := hex.DecodeString(string(text))
		one, ours := p.contract(code)
		if err != nil || !ours {
			return nil, fmt.Errorf("%w: %s is not the code of %s", ErrNotCached, p.file(dir), p.address)
		}
		set = append(set, one)
	}
	return set, nil
}

// file is named after the address, and so after the code.
func (p pin) file(dir string) string { return filepath.Join(dir, p.name()+"-"+p.address+".hex") }

// keep writes contracts into the directory, each at once or not at all.
func keep(dir string, set Set) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory for the contracts of Safe: %w", err)
	}
	for i, p := range pins() {
		half, err := os.CreateTemp(dir, p.name()+"-*.part")
		if err != nil {
			return fmt.Errorf("keep the contract %s: %w", p.name(), err)
		}
		_, err = half.WriteString(hex.EncodeToString(set[i].Creation))
		if err = errors.Join(err, half.Close()); err == nil {
			err = os.Rename(half.Name(), p.file(dir))
		}
		if err != nil {
			return errors.Join(fmt.Errorf("keep the contract %s: %w", p.name(), err), os.Remove(half.Name()))
		}
	}
	return nil
}

// artefact is the part of what the compiler left that is used.
type artefact struct {
	Bytecode string `json:"bytecode"`
}

// read takes a contract's code out of what the compiler left.
func (p pin) read(raw []byte) (Contract, error) {
	var a artefact
	if err := json.Unmarshal(raw, &a); err != nil {
		return Contract{}, fmt.Errorf("read %s of the package: %w", p.path, err)
	}
	one, ours := p.contract(common.FromHex(a.Bytecode))
	if !ours {
		return Contract{}, fmt.Errorf("the package's %s is not the contract at %s", p.name(), p.address)
	}
	return one, nil
}
