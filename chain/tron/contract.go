package tron

import (
	"context"
	"math/big"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/address"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"github.com/fbsobreira/gotron-sdk/pkg/standards/trc20enc"
	"google.golang.org/grpc"

	"kivuko/chain"
	"kivuko/exchange/money"
)

const wordLength = 32

// maxRevertText bounds how much of a node's message is quoted.
const maxRevertText = 200

// constantCaller runs contract code without a transaction, on the state of a full or solidity node.
type constantCaller interface {
	TriggerConstantContract(ctx context.Context, in *core.TriggerSmartContract, opts ...grpc.CallOption) (*api.TransactionExtention, error)
}

// outcome is the result of a constant call.
type outcome struct {
	reverted string // the node's message when the code failed
	result   []byte
	energy   int64
	logs     []*core.TransactionInfo_Log
}

// call runs code read-only. A revert is an outcome, not an error. java-tron reports a revert as a success whose transaction
// result is FAILED and whose message is set (Wallet.callConstantContract), so both are checked, and lengths are checked
// before indexing.
func call(ctx context.Context, s constantCaller, from, contract accountID, data []byte) (outcome, error) {
	answer, err := s.TriggerConstantContract(ctx, &core.TriggerSmartContract{
		OwnerAddress: from.full(), ContractAddress: contract.full(), Data: data,
	})
	if err != nil {
		return outcome{}, err
	}
	result := answer.GetResult()
	message := quote(result.GetMessage())
	switch code := result.GetCode(); {
	case result == nil:
		return outcome{}, chain.Errorf(chain.ReasonUnavailable, "the node returned an empty response to a contract call")
	case code == api.Return_CONTRACT_EXE_ERROR:
		return outcome{reverted: message}, nil
	case strings.Contains(message, "does not support constant"):
		return outcome{}, chain.Errorf(chain.ReasonUnavailable, "the node is set up without contract calls (vm.supportConstant): %s", message)
	case code != api.Return_SUCCESS:
		return outcome{}, chain.Errorf(chain.ReasonProtocol, "contract %s can't be called: %s: %s", contract, code, message)
	}
	for _, r := range answer.GetTransaction().GetRet() {
		if r.GetRet() != core.Transaction_Result_SUCESS {
			return outcome{reverted: orWord(message, "reverted")}, nil
		}
	}
	if message != "" {
		return outcome{reverted: message}, nil
	}
	out := outcome{energy: answer.GetEnergyUsed(), logs: answer.GetLogs()}
	if words := answer.GetConstantResult(); len(words) > 0 {
		out.result = words[0]
	}
	return out, nil
}

// quote makes a node's text safe for an error: bounded, one line, without control characters.
func quote(b []byte) string {
	s := string(b)
	if len(s) > maxRevertText {
		s = s[:maxRevertText]
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

func orWord(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// selector is the first four bytes of a call.
func selector(signature string) []byte { return crypto.Keccak256([]byte(signature))[:4] }

// tokenBalance reads an account's balance from a token. A revert is an error: gotron-sdk's own helper returns zero then,
// which would be a wrong balance.
func tokenBalance(ctx context.Context, s constantCaller, asset money.Asset, contract, holder accountID) (money.Amount, error) {
	data := append(selector("balanceOf(address)"), trc20enc.PadAddress(address.Address(holder.full()))...)
	out, err := call(ctx, s, holder, contract, data)
	if err != nil {
		return money.Amount{}, err
	}
	if out.reverted != "" {
		return money.Amount{}, chain.Errorf(chain.ReasonProtocol, "the %s contract %s does not return balances: %s", asset, contract, out.reverted)
	}
	if len(out.result) != wordLength {
		return money.Amount{}, chain.Errorf(chain.ReasonProtocol, "the %s contract %s answered a balance of %d bytes", asset, contract, len(out.result))
	}
	return units(asset, new(big.Int).SetBytes(out.result))
}

// units makes an amount from a contract's or node's unit, and refuses more than any real supply.
func units(asset money.Asset, n *big.Int) (money.Amount, error) {
	if n.Sign() < 0 || n.BitLen() > maxAmountBits {
		return money.Amount{}, chain.Errorf(chain.ReasonProtocol, "an amount of %s with %d bits is impossible", asset, n.BitLen())
	}
	return money.FromUnits(asset, n), nil
}

// maxAmountBits allows 590 trillion of a token with six places, above any supply and within
// money.MaxWholeDigits.
const maxAmountBits = 69

// flag reads a boolean from a token. A token without the method reverts, which counts as false.
func flag(ctx context.Context, s constantCaller, contract accountID, data []byte) (bool, error) {
	out, err := call(ctx, s, contract, contract, data)
	if err != nil || out.reverted != "" || len(out.result) != wordLength {
		return false, err
	}
	return new(big.Int).SetBytes(out.result).Sign() != 0, nil
}

// stops are the methods by which a token reports that no transfer is possible.
var stops = []string{"paused()", "deprecated()"}

// blockLists are the methods of the block list: Tether's and Circle's.
var blockLists = map[money.Asset]string{money.USDT: "isBlackListed(address)", money.USDC: "isBlacklisted(address)"}

// refusesTransfers returns why a token would refuse any transfer between two accounts. A blocked recipient can still be paid
// in USDT, but its issuer may then destroy the balance.
func refusesTransfers(ctx context.Context, s constantCaller, asset money.Asset, contract, from, to accountID) error {
	for _, question := range stops {
		stopped, err := flag(ctx, s, contract, selector(question))
		if err != nil {
			return err
		}
		if stopped {
			return chain.Errorf(chain.ReasonPaused, "the %s contract says %s", asset, question)
		}
	}
	for _, end := range []accountID{from, to} {
		data := append(selector(blockLists[asset]), trc20enc.PadAddress(address.Address(end.full()))...)
		blocked, err := flag(ctx, s, contract, data)
		if err != nil {
			return err
		}
		if blocked {
			return chain.Errorf(chain.ReasonBlocked, "%s is on the block list of %s", end, asset)
		}
	}
	return nil
}
