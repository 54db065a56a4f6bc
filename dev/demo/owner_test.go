package demo

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"github.com/fbsobreira/gotron-sdk/pkg/address"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/programs/token"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"kivuko/dev/nodes/ethereum"
	"kivuko/dev/nodes/solana"
	"kivuko/dev/nodes/tron"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// agreed is a payment that people agreed on, and an owner.
func agreed(t *testing.T, n exchange.Network) (Owner, Agreement) {
	t.Helper()
	own, err := NewOwner(n, "test")
	if err != nil {
		t.Fatal(err)
	}
	from, err := Stranger(n)
	if err != nil {
		t.Fatal(err)
	}
	to, err := Stranger(n)
	if err != nil {
		t.Fatal(err)
	}
	return own, Agreement{From: from, To: to, Amount: money.Must(money.USDT, "7.5")}
}

// signs checks that the owner's tool signs the payload, or refuses it with these words.
func signs(t *testing.T, name string, own Owner, y Payload, a Agreement, refusal string) string {
	t.Helper()
	signature, err := own.Sign(y, a)
	if refusal == "" && err != nil || refusal != "" && (err == nil || !strings.Contains(err.Error(), refusal)) {
		t.Errorf("%s: %q, %v", name, signature, err)
	}
	return signature
}

// recovered is the key of a signature of 32 bytes.
func recovered(t *testing.T, digest []byte, signature string) common.Address {
	t.Helper()
	raw, err := hex.DecodeString(signature)
	if err != nil || len(raw) != crypto.SignatureLength {
		t.Fatalf("%q, %v", signature, err)
	}
	raw[crypto.RecoveryIDOffset] -= 27
	key, err := crypto.SigToPub(digest, raw)
	if err != nil {
		t.Fatal(err)
	}
	return crypto.PubkeyToAddress(*key)
}

// safePayload is a SafeTx as wallets show it, with some fields changed.
func safePayload(t *testing.T, a Agreement, change map[string]string) Payload {
	t.Helper()
	zero := common.Address{}.Hex()
	message := apitypes.TypedDataMessage{
		"to": ethereum.USDTAddress().Hex(), "value": "0", "data": hexutil.Encode(transferCall(common.HexToAddress(a.To), a.Amount.Units())), "operation": "0",
		"safeTxGas": "0", "baseGas": "0", "gasPrice": "0", "gasToken": zero, "refundReceiver": zero, "nonce": "3",
	}
	safe := a.From
	for field, value := range change {
		if message[field] = value; field == "safe" {
			safe = value
			delete(message, field)
		}
	}
	types := apitypes.Types{"EIP712Domain": {{Name: "verifyingContract", Type: "address"}}}
	for _, f := range []string{"address to", "uint256 value", "bytes data", "uint8 operation", "uint256 safeTxGas", "uint256 baseGas", "uint256 gasPrice", "address gasToken", "address refundReceiver", "uint256 nonce"} {
		kind, name, _ := strings.Cut(f, " ")
		types["SafeTx"] = append(types["SafeTx"], apitypes.Type{Name: name, Type: kind})
	}
	typed := apitypes.TypedData{Types: types, PrimaryType: "SafeTx", Domain: apitypes.TypedDataDomain{VerifyingContract: safe}, Message: message}
	digest, _, err := apitypes.TypedDataAndHash(typed)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(typed.Map())
	if err != nil {
		t.Fatal(err)
	}
	return Payload{Digest: hex.EncodeToString(digest), TypedData: raw}
}

// An owner's tool signs the agreed payment of a Safe, and nothing that differs from it.
func TestOwnersOfASafeSignWhatWasAgreed(t *testing.T) {
	own, a := agreed(t, exchange.Ethereum)
	y := safePayload(t, a, nil)
	digest, err := hex.DecodeString(y.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if signer := recovered(t, digest, signs(t, "the agreed payment", own, y, a, "")); signer.Hex() != own.Address {
		t.Errorf("%s signed, not %s", signer, own.Address)
	}
	other := common.HexToAddress("0x01").Hex()
	for name, change := range map[string]map[string]string{
		"safe":           {"safe": other},
		"to":             {"to": other},
		"value":          {"value": "1"},
		"data":           {"data": hexutil.Encode(transferCall(common.HexToAddress(a.To), big.NewInt(7_500_001)))},
		"operation":      {"operation": "1"},
		"safeTxGas":      {"safeTxGas": "1"},
		"baseGas":        {"baseGas": "1"},
		"gasPrice":       {"gasPrice": "1"},
		"gasToken":       {"gasToken": other},
		"refundReceiver": {"refundReceiver": other},
	} {
		signs(t, name, own, safePayload(t, a, change), a, "was agreed")
	}
	y.Digest = strings.Repeat("0", 64)
	signs(t, "another digest", own, y, a, "the digest")
}

// tronPayload is a transaction of an account on TRON, with something changed.
func tronPayload(t *testing.T, a Agreement, change func(*core.TransactionRaw, *core.TriggerSmartContract)) Payload {
	t.Helper()
	full := func(text string) []byte {
		raw, err := address.Base58ToAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	call := &core.TriggerSmartContract{
		OwnerAddress: full(a.From), ContractAddress: full(tron.USDTAddress), Data: transferCall(common.BytesToAddress(full(a.To)[1:]), a.Amount.Units()),
	}
	tx := &core.TransactionRaw{Expiration: time.Now().Add(time.Hour).UnixMilli(), Contract: []*core.Transaction_Contract{{
		Type: core.Transaction_Contract_TriggerSmartContract, PermissionId: 2,
	}}}
	if change != nil {
		change(tx, call)
	}
	var err error
	if tx.Contract[0].Parameter, err = anypb.New(call); err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(tx)
	if err != nil {
		t.Fatal(err)
	}
	return Payload{RawData: hex.EncodeToString(raw), JointID: fmt.Sprintf("%x", sha256.Sum256(raw))}
}

func TestOwnersOnTronSignWhatWasAgreed(t *testing.T) {
	own, a := agreed(t, exchange.Tron)
	y := tronPayload(t, a, nil)
	digest, err := hex.DecodeString(y.JointID)
	if err != nil {
		t.Fatal(err)
	}
	signer := recovered(t, digest, signs(t, "the agreed payment", own, y, a, ""))
	if got := address.Address(append([]byte{address.TronBytePrefix}, signer.Bytes()...)).String(); got != own.Address {
		t.Errorf("%s signed, not %s", got, own.Address)
	}
	for name, c := range map[string]struct {
		change  func(*core.TransactionRaw, *core.TriggerSmartContract)
		refusal string
	}{
		"another account": {func(_ *core.TransactionRaw, c *core.TriggerSmartContract) { c.OwnerAddress[5]++ }, "the account"},
		"another token":   {func(_ *core.TransactionRaw, c *core.TriggerSmartContract) { c.ContractAddress[5]++ }, "the contract"},
		"coins too":       {func(_ *core.TransactionRaw, c *core.TriggerSmartContract) { c.CallValue = 1 }, "what goes to the contract"},
		"another amount":  {func(_ *core.TransactionRaw, c *core.TriggerSmartContract) { c.Data[len(c.Data)-1]++ }, "the call"},
		"the owners' own permission": {func(tx *core.TransactionRaw, _ *core.TriggerSmartContract) {
			tx.Contract[0].PermissionId = 0
		}, "permission for payments"},
		"two contracts": {func(tx *core.TransactionRaw, _ *core.TriggerSmartContract) {
			tx.Contract = append(tx.Contract, &core.Transaction_Contract{})
		}, "no single contract"},
		"a long life": {func(tx *core.TransactionRaw, _ *core.TriggerSmartContract) {
			tx.Expiration = time.Now().Add(48 * time.Hour).UnixMilli()
		}, "its end"},
	} {
		signs(t, name, own, tronPayload(t, a, c.change), a, c.refusal)
	}
	y.JointID = strings.Repeat("0", 64)
	signs(t, "another id", own, y, a, "the id")
}

// solanaPayload is the message of a transaction that a fee payer sends, with something before the transfer.
func solanaPayload(t *testing.T, own Owner, a Agreement, payer sdk.PublicKey, before ...sdk.Instruction) Payload {
	t.Helper()
	mint, to := sdk.MustPublicKeyFromBase58(solana.USDTAddress), sdk.MustPublicKeyFromBase58(a.To)
	from := sdk.MustPublicKeyFromBase58(a.From)
	source, _, err := sdk.FindAssociatedTokenAddress(from, mint)
	if err != nil {
		t.Fatal(err)
	}
	into, _, err := sdk.FindAssociatedTokenAddress(to, mint)
	if err != nil {
		t.Fatal(err)
	}
	pays := token.NewTransferCheckedInstruction(a.Amount.Units().Uint64(), 6, source, mint, into, from, []sdk.PublicKey{sdk.MustPublicKeyFromBase58(own.Address)}).Build()
	tx, err := sdk.NewTransaction(append(before, pays), sdk.Hash{1}, sdk.TransactionPayer(payer))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := tx.Message.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return Payload{Message: base64.StdEncoding.EncodeToString(raw)}
}

func TestOwnersOnSolanaSignWhatWasAgreed(t *testing.T) {
	own, a := agreed(t, exchange.Solana)
	key := sdk.MustPublicKeyFromBase58(own.Address)
	payer, nonce := sdk.PublicKey{1}, sdk.PublicKey{2}
	advance := system.NewAdvanceNonceAccountInstruction(nonce, sdk.SysVarRecentBlockHashesPubkey, payer).Build()
	y := solanaPayload(t, own, a, payer, advance)
	raw, err := base64.StdEncoding.DecodeString(y.Message)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(signs(t, "the agreed payment", own, y, a, ""))
	if err != nil || !ed25519.Verify(key[:], raw, signature) {
		t.Errorf("the signature is not the owner's: %v", err)
	}
	for name, change := range map[string]func(*Agreement){
		"another account":   func(a *Agreement) { a.From = own.Address },
		"another recipient": func(a *Agreement) { a.To = own.Address },
		"another amount":    func(a *Agreement) { a.Amount = money.Must(money.USDT, "7.4") },
		"another token":     func(a *Agreement) { a.Amount = money.Must(money.USDC, "7.5") },
	} {
		want := a
		change(&want)
		signs(t, name, own, y, want, "was agreed")
	}
	takes := system.NewTransferInstruction(1, key, payer).Build()
	signs(t, "the owner's coins", own, solanaPayload(t, own, a, payer, advance, takes), a, "moves something of the owners")
	burns := token.NewBurnInstruction(1, sdk.PublicKey{3}, sdk.PublicKey{4}, payer, nil).Build()
	signs(t, "other tokens", own, solanaPayload(t, own, a, payer, advance, burns), a, "moves something of the owners")
	signs(t, "the owner's fee", own, solanaPayload(t, own, a, key, advance), a, "the owner would pay the fee")
	y.Message = base64.StdEncoding.EncodeToString(append(raw, 0))
	signs(t, "something behind it", own, y, a, "not all")
}

// The next run of a stack finds the owners of the one before, and each has another key.
func TestOwnersStayTheSame(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range exchange.Networks() {
		for _, name := range []string{BarakasKey, NjerisKey, SafeKey} {
			own, err := OutsideOwner(n, name)
			again, _ := OutsideOwner(n, name)
			if err != nil || own != again || seen[own.Address] {
				t.Errorf("%s on %s is %s and %s, %v", name, n, own.Address, again.Address, err)
			}
			seen[own.Address] = true
		}
	}
}
