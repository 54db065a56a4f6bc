package ethereum

import (
	"bytes"
	"context"
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
	"kivuko/exchange/money"
)

const wordLength = 32

// quote makes a node's text safe for an error: bounded, one line, without control characters.
func quote(s string) string {
	if len(s) > maxErrorText {
		s = s[:maxErrorText]
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// message is a contract call, or a transfer, in the form of the API.
type message struct {
	From  common.Address  `json:"from"`
	To    common.Address  `json:"to"`
	Value *hexutil.Big    `json:"value,omitempty"`
	Input hexutil.Bytes   `json:"input,omitempty"`
	Gas   *hexutil.Uint64 `json:"gas,omitempty"`
}

// value is the ether that a call carries.
func (m message) value() *big.Int {
	if m.Value == nil {
		return new(big.Int)
	}
	return (*big.Int)(m.Value)
}

// selector is the first four bytes of a call.
func selector(signature string) []byte { return crypto.Keccak256([]byte(signature))[:4] }

// transferCall is the calldata of transfer(address,uint256), with a clean address word.
func transferCall(to common.Address, amount money.Amount) []byte {
	return bytes.Join([][]byte{
		selector("transfer(address,uint256)"), common.LeftPadBytes(to.Bytes(), wordLength),
		common.BigToHash(amount.Units()).Bytes(),
	}, nil)
}

// reverted reports whether an error is the contract's refusal, and not the node's failure. Code 3 is the API's code for a
// revert (execution-apis, "Execution errors"); not every node uses it, and an invalid opcode, with which USDT refuses, has
// no code of its own.
func reverted(err error) (text string, yes bool) {
	const executionError = 3
	e, ok := errors.AsType[rpc.Error](err)
	if !ok {
		return "", false
	}
	text = quote(e.Error())
	lower := strings.ToLower(text)
	for _, sign := range []string{"revert", "invalid opcode", "invalidfeopcode", "invalidopcode", "gas required exceeds", "out of gas", "outofgas"} {
		if strings.Contains(lower, sign) {
			return text, true
		}
	}
	return text, e.ErrorCode() == executionError
}

// call runs code read-only at a block. A refusal by the contract is an outcome, not an error.
func call(ctx context.Context, conn *rpc.Client, m message, b chain.Block) (result []byte, refused string, err error) {
	var answer hexutil.Bytes
	err = conn.CallContext(ctx, &answer, "eth_call", m, at(b))
	if text, yes := reverted(err); yes {
		return nil, text, nil
	}
	return answer, "", err
}

// tokenBalance reads an account's balance from a token. A refusal is an error, never zero.
func tokenBalance(ctx context.Context, conn *rpc.Client, asset money.Asset, contract, holder common.Address, b chain.Block) (money.Amount, error) {
	data := append(selector("balanceOf(address)"), common.LeftPadBytes(holder.Bytes(), wordLength)...)
	result, refused, err := call(ctx, conn, message{From: holder, To: contract, Input: data}, b)
	if err != nil {
		return money.Amount{}, err
	}
	if refused != "" || len(result) != wordLength {
		return money.Amount{}, chain.Errorf(chain.ReasonProtocol, "the %s contract %s does not return balances: %d bytes %s", asset, contract, len(result), refused)
	}
	return units(asset, new(big.Int).SetBytes(result))
}

// maxAmountBits allows 590 trillion of a token with six places, and a thousand million ether: above any supply and within
// money.MaxWholeDigits.
func maxAmountBits(a money.Asset) int {
	if a == money.ETH {
		return 90
	}
	return 69
}

// units makes an amount from a contract's or node's unit, and refuses more than any real supply.
func units(asset money.Asset, n *big.Int) (money.Amount, error) {
	if n.Sign() < 0 || n.BitLen() > maxAmountBits(asset) {
		return money.Amount{}, chain.Errorf(chain.ReasonProtocol, "an amount of %s with %d bits is impossible", asset, n.BitLen())
	}
	return money.FromUnits(asset, n), nil
}

// number reads one word from a token. A token without the method refuses the call, which counts as zero.
func number(ctx context.Context, conn *rpc.Client, contract common.Address, data []byte, b chain.Block) (*big.Int, error) {
	result, refused, err := call(ctx, conn, message{From: contract, To: contract, Input: data}, b)
	if err != nil || refused != "" || len(result) != wordLength {
		return new(big.Int), err
	}
	return new(big.Int).SetBytes(result), nil
}

// stops are the methods by which a token reports that no transfer is possible. A deprecated USDT forwards to a successor
// whose events come from an address that is not configured.
var stops = []string{"paused()", "deprecated()"}

// blockLists are the methods of the block list: Tether's and Circle's.
var blockLists = map[money.Asset]string{money.USDT: "isBlackListed(address)", money.USDC: "isBlacklisted(address)"}

// refusesTransfers returns why a token would refuse any transfer between two accounts. A blocked recipient can still be paid
// in USDT, but its issuer may then destroy the balance.
func refusesTransfers(ctx context.Context, conn *rpc.Client, asset money.Asset, contract, from, to common.Address, b chain.Block) error {
	for _, question := range stops {
		stopped, err := number(ctx, conn, contract, selector(question), b)
		if err != nil {
			return err
		}
		if stopped.Sign() != 0 {
			return chain.Errorf(chain.ReasonPaused, "the %s contract says %s", asset, question)
		}
	}
	for _, end := range []common.Address{from, to} {
		data := append(selector(blockLists[asset]), common.LeftPadBytes(end.Bytes(), wordLength)...)
		blocked, err := number(ctx, conn, contract, data, b)
		if err != nil {
			return err
		}
		if blocked.Sign() != 0 {
			return chain.Errorf(chain.ReasonBlocked, "%s is on the block list of %s", end, asset)
		}
	}
	return nil
}

// simulated is the part of eth_simulateV1's response that is used.
type simulated []struct {
	Calls []struct {
		Status     hexutil.Uint64 `json:"status"`
		ReturnData hexutil.Bytes  `json:"returnData"`
		Logs       []*types.Log   `json:"logs"`
		Error      *struct {
			Message string `json:"message"`
		} `json:"error"`
	} `json:"calls"`
}

// simulate runs the real transfer. Success is not enough: the events must contain the exact movement, because a token that
// takes a fee delivers less than was promised.
func (c *Client) simulate(ctx context.Context, conn *rpc.Client, m message, in intent, b chain.Block) error {
	asset := in.amount.Asset()
	var answer simulated
	err := conn.CallContext(ctx, &answer, "eth_simulateV1", map[string]any{
		"blockStateCalls": []any{map[string]any{"calls": []message{m}}},
	}, at(b))
	if missing(err) {
		return c.simulatePlainly(ctx, conn, m, in, b)
	}
	if text, yes := reverted(err); yes {
		return chain.Errorf(chain.ReasonReverts, "the %s contract refuses the transfer: %s", asset, text)
	}
	if err != nil {
		return err
	}
	if len(answer) != 1 || len(answer[0].Calls) != 1 {
		return chain.Errorf(chain.ReasonProtocol, "a simulation of one call gave %d blocks", len(answer))
	}
	one := answer[0].Calls[0]
	if uint64(one.Status) != types.ReceiptStatusSuccessful {
		text := "without a reason"
		if one.Error != nil {
			text = quote(one.Error.Message)
		}
		return chain.Errorf(chain.ReasonReverts, "the %s contract refuses the transfer: %s", asset, text)
	}
	if err := saysYes(asset, one.ReturnData); err != nil {
		return err
	}
	moved, err := c.tokenMovements("", one.Logs)
	if err != nil {
		return err
	}
	for _, m := range moved {
		if m.From == in.from.Hex() && m.To == in.to.Hex() && m.Amount.Equal(in.amount) {
			return nil
		}
	}
	return takesFee(in)
}

func takesFee(in intent) error {
	return chain.Errorf(chain.ReasonReverts, "the %s contract would not deliver exactly %s to the recipient: it takes a fee on transfers",
		in.amount.Asset(), in.amount)
}

// saysYes checks what transfer() returns: nothing (mainnet's USDT), or true.
func saysYes(asset money.Asset, result []byte) error {
	if len(result) == 0 || (len(result) == wordLength && new(big.Int).SetBytes(result).Cmp(big.NewInt(1)) == 0) {
		return nil
	}
	return chain.Errorf(chain.ReasonReverts, "the %s contract returns %d bytes for the transfer that are not true", asset, len(result))
}

// simulatePlainly is for nodes without eth_simulateV1, which can't return the events of a call: the fee is read from
// Tether's own setting.
func (c *Client) simulatePlainly(ctx context.Context, conn *rpc.Client, m message, in intent, b chain.Block) error {
	asset := in.amount.Asset()
	result, refused, err := call(ctx, conn, m, b)
	if err != nil {
		return err
	}
	if refused != "" {
		return chain.Errorf(chain.ReasonReverts, "the %s contract refuses the transfer: %s", asset, refused)
	}
	if err := saysYes(asset, result); err != nil {
		return err
	}
	rate, err := number(ctx, conn, m.To, selector("basisPointsRate()"), b)
	if err != nil {
		return err
	}
	most, err := number(ctx, conn, m.To, selector("maximumFee()"), b)
	if err != nil {
		return err
	}
	const wholeRate = 10_000
	fee := new(big.Int).Mul(in.amount.Units(), rate)
	if fee.Quo(fee, big.NewInt(wholeRate)).Sign() > 0 && most.Sign() > 0 {
		return takesFee(in)
	}
	return nil
}
