package ethereum

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"kivuko/chain"
)

// An account of several owners is a Safe: a proxy whose code is that of a singleton contract, and which carries out what enough
// of its owners have signed. Version 1.4.1 alone is understood, in the deployment that has the same addresses on every chain.

// pin is a contract that must be at an address with this code and no other.
type pin struct {
	name    string
	address common.Address
	code    common.Hash // Keccak-256 of the code
}

// The contracts of Safe 1.4.1 and their code (safe-global/safe-deployments 1.37.63, src/assets/v1.4.1, "canonical").
var (
	safeSingleton = pin{
		"Safe", common.HexToAddress("0x41675C099F32341bf84BFc5382aF534df5C7461a"),
		common.HexToHash("0x1fe2df852ba3299d6534ef416eefa406e56ced995bca886ab7a553e6d0c5e1c4"),
	}
	safeL2Singleton = pin{
		"SafeL2", common.HexToAddress("0x29fcB43b46531BcA003ddC8FCB67FFE91900C762"),
		common.HexToHash("0xb1f926978a0f44a2c0ec8fe822418ae969bd8c3f18d61e5103100339894f81ff"),
	}
	safeFactory = pin{
		"SafeProxyFactory", common.HexToAddress("0x4e1DCf7AD4e460CfD30791CCC4F9c8a4f820ec67"),
		common.HexToHash("0x50c3cdc4074750a7a974204a716c999edd37482f907608d960b2b025ee0b3317"),
	}
	safeHandler = pin{
		"CompatibilityFallbackHandler", common.HexToAddress("0xfd0732Dc9E303f09fCEf3a7388Ad10A83459Ec99"),
		common.HexToHash("0x7c6007a5d711cea8dfd5d91f5940ec29c7f200fe511eb1fc1397b367af3c42f9"),
	}
	safeMultiSend = pin{
		"MultiSendCallOnly", common.HexToAddress("0x9641d764fc13c8B624c04430C7356C1C7C8102e2"),
		common.HexToHash("0xecd5bd14a08c5d2122379900b2f272bdf107a7e92423c10dd5fe3254386c9939"),
	}
)

// What the factory makes: the code of a proxy, and the hash of what CREATE2 runs to make a proxy of safeSingleton, which is
// SafeProxy's creation code and the singleton's address (SafeProxyFactory.deployProxy). Both are hashes of the build in
// npm's @safe-global/safe-contracts 1.4.1.
var (
	safeProxyCode     = common.HexToHash("0xd7d408ebcd99b2b70be43e20253d6d92a8ea8fab29bd3be7f55b10032331fb4c")
	safeProxyCreation = common.HexToHash("0x76733d705f71b79841c0ee960a0ca880f779cde7ef446c989e6d23efc0a4adfb")
)

// sentinel begins and ends the lists of a Safe (OwnerManager.SENTINEL_OWNERS, ModuleManager.SENTINEL_MODULES).
var sentinel = common.BigToAddress(big.NewInt(1))

// maxSafeOwners bounds the owners of an account.
const maxSafeOwners = 20

// The operations of a SafeTx (Enum.Operation). A delegatecall runs foreign code with the account's own rights, so it is made
// to safeMultiSend only, which makes several calls and can't do anything else.
const (
	operationCall         = 0
	operationDelegateCall = 1
)

// safeTx is what owners sign: SafeTx of Safe.encodeTransactionData. This package only makes those whose gas and refund fields
// are zero: a refund could move money that no owner sees, and with a gas amount a failed call would use up the number.
type safeTx struct {
	to             common.Address
	value          *big.Int
	data           []byte
	operation      uint8
	safeTxGas      *big.Int
	baseGas        *big.Int
	gasPrice       *big.Int
	gasToken       common.Address
	refundReceiver common.Address
	nonce          uint64
}

// safeCall is a SafeTx that makes one call.
func safeCall(to common.Address, value *big.Int, data []byte, nonce uint64) safeTx {
	return safeTx{to: to, value: value, data: data, safeTxGas: new(big.Int), baseGas: new(big.Int), gasPrice: new(big.Int), nonce: nonce}
}

// typed is the SafeTx as EIP-712 typed data, in the types that wallets use.
func (t safeTx) typed(chainID *big.Int, safe common.Address) apitypes.TypedData {
	return apitypes.TypedData{
		Types: apitypes.Types{
			"EIP712Domain": {{Name: "chainId", Type: "uint256"}, {Name: "verifyingContract", Type: "address"}},
			"SafeTx": {
				{Name: "to", Type: "address"},
				{Name: "value", Type: "uint256"},
				{Name: "data", Type: "bytes"},
				{Name: "operation", Type: "uint8"},
				{Name: "safeTxGas", Type: "uint256"},
				{Name: "baseGas", Type: "uint256"},
				{Name: "gasPrice", Type: "uint256"},
				{Name: "gasToken", Type: "address"},
				{Name: "refundReceiver", Type: "address"},
				{Name: "nonce", Type: "uint256"},
			},
		},
		PrimaryType: "SafeTx",
		Domain:      apitypes.TypedDataDomain{ChainId: (*math.HexOrDecimal256)(chainID), VerifyingContract: safe.Hex()},
		Message: apitypes.TypedDataMessage{
			"to": t.to.Hex(), "value": t.value.String(), "data": hexutil.Encode(t.data), "operation": fmt.Sprint(t.operation),
			"safeTxGas": t.safeTxGas.String(), "baseGas": t.baseGas.String(), "gasPrice": t.gasPrice.String(),
			"gasToken": t.gasToken.Hex(), "refundReceiver": t.refundReceiver.Hex(), "nonce": fmt.Sprint(t.nonce),
		},
	}
}

// The type hashes of a Safe (Safe.DOMAIN_SEPARATOR_TYPEHASH, SAFE_TX_TYPEHASH).
const (
	safeDomainType = "EIP712Domain(uint256 chainId,address verifyingContract)"
	safeTxType     = "SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas," +
		"uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce)"
)

func safeDomain(chainID *big.Int, safe common.Address) common.Hash {
	return crypto.Keccak256Hash(crypto.Keccak256([]byte(safeDomainType)), numberWord(chainID), addressWord(safe))
}

func (t safeTx) content() common.Hash {
	return crypto.Keccak256Hash(
		crypto.Keccak256([]byte(safeTxType)), addressWord(t.to), numberWord(t.value), crypto.Keccak256(t.data),
		numberWord(big.NewInt(int64(t.operation))), numberWord(t.safeTxGas), numberWord(t.baseGas), numberWord(t.gasPrice),
		addressWord(t.gasToken), addressWord(t.refundReceiver), numberWord(new(big.Int).SetUint64(t.nonce)),
	)
}

// hash is the hash of the SafeTx, computed as the contract does (Safe.encodeTransactionData).
func (t safeTx) hash(chainID *big.Int, safe common.Address) common.Hash {
	return crypto.Keccak256Hash([]byte{0x19, 0x01}, safeDomain(chainID, safe).Bytes(), t.content().Bytes())
}

// encode is the typed data in JSON and its hash. The hash is computed twice, by the library that wallets' typed data is made
// with and as the contract does: what an owner's tool shows and hashes is what the chain will carry out.
func (t safeTx) encode(chainID *big.Int, safe common.Address) (body []byte, hash common.Hash, err error) {
	data := t.typed(chainID, safe)
	byLibrary, _, err := apitypes.TypedDataAndHash(data)
	if err != nil {
		return nil, hash, chain.Wrap(chain.ReasonProtocol, err, "the SafeTx is no typed data")
	}
	if hash = t.hash(chainID, safe); !bytes.Equal(byLibrary, hash.Bytes()) {
		return nil, hash, chain.Errorf(chain.ReasonProtocol, "the SafeTx has the hash %s, as typed data %x", hash, byLibrary)
	}
	// Map leaves out the empty fields of the domain. With them some tools would hash another domain.
	if body, err = json.Marshal(data.Map()); err != nil {
		return nil, hash, chain.Wrap(chain.ReasonProtocol, err, "the SafeTx can't be written as JSON")
	}
	return body, hash, nil
}

// execSignature is the call that carries out a SafeTx.
const execSignature = "execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)"

// execution is the calldata that carries out the SafeTx with these signatures.
func (t safeTx) execution(signatures []byte) []byte {
	return encodeCall(execSignature,
		static(addressWord(t.to)), static(numberWord(t.value)), bytesArgument(t.data), static(numberWord(big.NewInt(int64(t.operation)))),
		static(numberWord(t.safeTxGas)), static(numberWord(t.baseGas)), static(numberWord(t.gasPrice)),
		static(addressWord(t.gasToken)), static(addressWord(t.refundReceiver)), bytesArgument(signatures),
	)
}

// readExecution reads what execution wrote, without the number, which is not in it. Any other encoding is not read.
func readExecution(calldata []byte) (t safeTx, ok bool) {
	const words = 10
	input, ours := bytes.CutPrefix(calldata, selector(execSignature))
	if !ours || len(input) < words*wordLength {
		return t, false
	}
	word := func(i int) []byte { return input[i*wordLength : (i+1)*wordLength] }
	number := func(i int) *big.Int { return new(big.Int).SetBytes(word(i)) }
	address := func(i int) common.Address { return common.BytesToAddress(word(i)) }
	data, ok := bytesAt(input, number(2))
	signatures, also := bytesAt(input, number(9))
	t = safeTx{
		to: address(0), value: number(1), data: data, operation: word(3)[wordLength-1], safeTxGas: number(4), baseGas: number(5),
		gasPrice: number(6), gasToken: address(7), refundReceiver: address(8),
	}
	return t, ok && also && bytes.Equal(t.execution(signatures), calldata)
}
