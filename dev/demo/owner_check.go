package demo

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"github.com/fbsobreira/gotron-sdk/pkg/address"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	bin "github.com/gagliardetto/binary"
	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"
	"google.golang.org/protobuf/proto"

	"kivuko/dev/nodes/ethereum"
	"kivuko/dev/nodes/solana"
	"kivuko/dev/nodes/tron"
	"kivuko/exchange/money"
)

// What an owner's tool checks on each network before it signs.

// transferCall is the call of a token that pays an amount.
func transferCall(to common.Address, units *big.Int) []byte {
	const word = 32
	selector := []byte{0xa9, 0x05, 0x9c, 0xbb} // transfer(address,uint256)
	return append(append(selector, common.LeftPadBytes(to.Bytes(), word)...), common.LeftPadBytes(units.Bytes(), word)...)
}

// signTyped signs the typed data of a Safe that makes one transfer of a token, and has no refund of gas.
func (o Owner) signTyped(y Payload, want Agreement) (string, error) {
	var typed apitypes.TypedData
	if err := json.Unmarshal(y.TypedData, &typed); err != nil {
		return "", err
	}
	if !strings.EqualFold(typed.Domain.VerifyingContract, want.From) {
		return "", differs("the Safe", typed.Domain.VerifyingContract, want.From)
	}
	token := ethereum.USDTAddress()
	if want.Amount.Asset() == money.USDC {
		token = ethereum.USDCAddress()
	}
	nowhere := common.Address{}.Hex()
	for field, value := range map[string]string{
		"to": token.Hex(), "value": "0", "operation": "0", "safeTxGas": "0", "baseGas": "0", "gasPrice": "0", "gasToken": nowhere, "refundReceiver": nowhere,
		"data": hexutil.Encode(transferCall(common.HexToAddress(want.To), want.Amount.Units())),
	} {
		if got := fmt.Sprint(typed.Message[field]); !strings.EqualFold(got, value) {
			return "", differs(field, got, value)
		}
	}
	digest, _, err := apitypes.TypedDataAndHash(typed)
	if err != nil {
		return "", err
	}
	if got := hex.EncodeToString(digest); got != y.Digest {
		return "", differs("the digest", y.Digest, got)
	}
	return o.digest(digest)
}

// signRaw signs the transaction of an account on TRON that makes one transfer of a token by the permission for payments.
func (o Owner) signRaw(y Payload, want Agreement, now time.Time) (string, error) {
	const forPayments, longest = 2, 24 * time.Hour
	raw, err := hex.DecodeString(y.RawData)
	if err != nil {
		return "", err
	}
	var tx core.TransactionRaw
	if err := proto.Unmarshal(raw, &tx); err != nil {
		return "", err
	}
	if len(tx.GetContract()) != 1 || tx.GetContract()[0].GetPermissionId() != forPayments {
		return "", errors.New("it is no single contract by the permission for payments")
	}
	var call core.TriggerSmartContract
	if err := tx.GetContract()[0].GetParameter().UnmarshalTo(&call); err != nil {
		return "", err
	}
	if err := paysOnTron(&call, want); err != nil {
		return "", err
	}
	if ends := time.UnixMilli(tx.GetExpiration()); ends.After(now.Add(longest)) {
		return "", differs("its end", ends, "a day at most")
	}
	digest := sha256.Sum256(raw)
	if got := hex.EncodeToString(digest[:]); got != y.JointID {
		return "", differs("the id", y.JointID, got)
	}
	return o.digest(digest[:])
}

func paysOnTron(call *core.TriggerSmartContract, want Agreement) error {
	to, err := address.Base58ToAddress(want.To)
	if err != nil {
		return err
	}
	token := tron.USDTAddress
	if want.Amount.Asset() == money.USDC {
		token = tron.USDCAddress
	}
	data := transferCall(common.BytesToAddress(to.Bytes()[1:]), want.Amount.Units())
	switch from, contract := address.Address(call.GetOwnerAddress()).String(), address.Address(call.GetContractAddress()).String(); {
	case from != want.From:
		return differs("the account", from, want.From)
	case contract != token:
		return differs("the contract", contract, token)
	case call.GetCallValue() != 0 || call.GetCallTokenValue() != 0:
		return differs("what goes to the contract", call.GetCallValue(), 0)
	case !bytes.Equal(call.GetData(), data):
		return differs("the call", hex.EncodeToString(call.GetData()), hex.EncodeToString(data))
	}
	return nil
}

// signMessage signs the message of a transaction on Solana whose last instruction is a transfer of a token. Owners sign for nothing else in it.
func (o Owner) signMessage(y Payload, want Agreement) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(y.Message)
	if err != nil {
		return "", err
	}
	var m sdk.Message
	if err := m.UnmarshalWithDecoder(bin.NewBinDecoder(raw)); err != nil {
		return "", err
	}
	if again, err := m.MarshalBinary(); err != nil || !bytes.Equal(again, raw) {
		return "", errors.Join(errors.New("the message is not all that there is to sign"), err)
	}
	own := sdk.MustPublicKeyFromBase58(o.Address)
	if m.AccountKeys[0] == own {
		return "", errors.New("the owner would pay the fee")
	}
	for i, ix := range m.Instructions {
		accounts, err := ix.ResolveInstructionAccounts(&m)
		if err != nil {
			return "", err
		}
		program, err := m.Program(ix.ProgramIDIndex)
		if err != nil {
			return "", err
		}
		last := i == len(m.Instructions)-1
		if last {
			err = paysOnSolana(program, accounts, ix.Data, want)
		} else if program == sdk.TokenProgramID || slices.Contains(sdk.AccountMetaSlice(accounts).GetKeys(), own) {
			err = fmt.Errorf("instruction %d moves something of the owners", i)
		}
		if err != nil {
			return "", err
		}
	}
	return base64.StdEncoding.EncodeToString(ed25519.Sign(o.ed25519(), raw)), nil
}

func paysOnSolana(program sdk.PublicKey, accounts []*sdk.AccountMeta, data []byte, want Agreement) error {
	if program != sdk.TokenProgramID {
		return differs("the program", program, sdk.TokenProgramID)
	}
	decoded, err := token.DecodeInstruction(accounts, data)
	if err != nil {
		return err
	}
	paid, is := decoded.Impl.(*token.TransferChecked)
	if !is {
		return errors.New("it is no transfer")
	}
	mint := sdk.MustPublicKeyFromBase58(solana.USDTAddress)
	if want.Amount.Asset() == money.USDC {
		mint = sdk.MustPublicKeyFromBase58(solana.USDCAddress)
	}
	to, err := sdk.PublicKeyFromBase58(want.To)
	if err != nil {
		return err
	}
	into, _, err := sdk.FindAssociatedTokenAddress(to, mint)
	if err != nil {
		return err
	}
	switch {
	case paid.GetOwnerAccount().PublicKey.String() != want.From:
		return differs("the account", paid.GetOwnerAccount().PublicKey, want.From)
	case paid.GetMintAccount().PublicKey != mint:
		return differs("the token", paid.GetMintAccount().PublicKey, mint)
	case paid.GetDestinationAccount().PublicKey != into:
		return differs("the recipient's token account", paid.GetDestinationAccount().PublicKey, into)
	case paid.Amount == nil || new(big.Int).SetUint64(*paid.Amount).Cmp(want.Amount.Units()) != 0:
		return differs("the amount", paid.Amount, want.Amount.Units())
	}
	return nil
}
