package ethereum

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
	"kivuko/chain/endpoints"
)

var _ chain.AllowanceReader = (*Client)(nil)

// allowanceTopic is a token's event of an allowance (EIP-20).
var allowanceTopic = crypto.Keccak256Hash([]byte("Approval(address,address,uint256)"))

// maxSpenders bounds the spenders whose allowances are read. An account with more is no treasury's.
const maxSpenders = 500

// Allowances implements chain.AllowanceReader. A token has no list of them, so those are asked for whose events it has had, from the first
// block on: what an account allowed before it had its owners of today is still allowed.
func (c *Client) Allowances(ctx context.Context, address string) ([]chain.Allowance, error) {
	account, err := parse(address)
	if err != nil {
		return nil, chain.Errorf(chain.ReasonAddress, "%s", err.Error())
	}
	return ask(ctx, c.nodes, func(ctx context.Context, conn *rpc.Client) ([]chain.Allowance, error) {
		head, err := readHead(ctx, conn)
		if err != nil {
			return nil, err
		}
		spenders, err := c.spendersOf(ctx, conn, account, head.Final)
		if err != nil {
			return nil, err
		}
		var left []chain.Allowance
		for _, s := range spenders {
			n, err := s.allowed(ctx, conn, account, head.Final)
			if err != nil {
				return nil, err
			}
			if n.Sign() > 0 {
				left = append(left, chain.Allowance{Asset: c.assets[s.token], Spender: s.address.Hex(), Right: "allowance"})
			}
		}
		return left, nil
	})
}

// spender is an address that a token has had an allowance for.
type spender struct{ token, address common.Address }

// spendersOf lists all spenders that an account's events of allowances name, in a fixed order.
func (c *Client) spendersOf(ctx context.Context, conn *rpc.Client, account common.Address, b chain.Block) ([]spender, error) {
	if len(c.contracts) == 0 {
		return nil, nil // no address means all of them in a query
	}
	var logs []types.Log
	err := conn.CallContext(ctx, &logs, "eth_getLogs", map[string]any{
		"address": slices.Collect(maps.Values(c.contracts)), "fromBlock": tagOf(0), "toBlock": tagOf(b.Number),
		"topics": []any{[]common.Hash{allowanceTopic}, []common.Hash{common.BytesToHash(account.Bytes())}},
	})
	if err != nil {
		cause := plain(err)
		if unshown(err) {
			cause = fmt.Errorf("%w: %w", endpoints.ErrUnable, cause)
		}
		return nil, chain.Wrap(chain.ReasonUnavailable, cause, "the node does not search the whole chain for what %s allowed others", account)
	}
	seen := map[spender]bool{}
	for _, l := range logs {
		if _, ours := c.assets[l.Address]; !ours || len(l.Topics) != 3 || l.Topics[1] != common.BytesToHash(account.Bytes()) {
			return nil, chain.Errorf(chain.ReasonProtocol, "asked for what %s allowed others, the node has an event of %s in %s", account, l.Address, l.TxHash)
		}
		seen[spender{l.Address, common.BytesToAddress(l.Topics[2].Bytes())}] = true
	}
	if len(seen) > maxSpenders {
		return nil, foreignSafe(account, "it has had allowances for %d spenders, at most %d are read", len(seen), maxSpenders)
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b spender) int {
		return bytes.Compare(append(a.token.Bytes(), a.address.Bytes()...), append(b.token.Bytes(), b.address.Bytes()...))
	}), nil
}

// allowed is what a spender may still take. A refusal of the token is an error, never zero.
func (s spender) allowed(ctx context.Context, conn *rpc.Client, account common.Address, b chain.Block) (*big.Int, error) {
	input := encodeCall("allowance(address,address)", static(addressWord(account)), static(addressWord(s.address)))
	result, refused, err := call(ctx, conn, message{From: account, To: s.token, Input: input}, b)
	if err != nil {
		return nil, err
	}
	if refused != "" || len(result) != wordLength {
		return nil, chain.Errorf(chain.ReasonProtocol, "the token %s does not say what %s may take: %d bytes %s", s.token, s.address, len(result), refused)
	}
	return new(big.Int).SetBytes(result), nil
}
