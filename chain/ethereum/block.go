package ethereum

import (
	"context"
	"math/big"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// header is the part of a block that this package reads.
type header struct {
	Number       hexutil.Uint64 `json:"number"`
	Hash         common.Hash    `json:"hash"`
	ParentHash   common.Hash    `json:"parentHash"`
	Timestamp    hexutil.Uint64 `json:"timestamp"`
	BaseFee      *hexutil.Big   `json:"baseFeePerGas"`
	ReceiptsRoot common.Hash    `json:"receiptsRoot"`
}

func (h header) block() chain.Block {
	return chain.Block{
		Number: uint64(h.Number), ID: h.Hash.Hex(), Parent: h.ParentHash.Hex(),
		Time: time.Unix(int64(h.Timestamp), 0).UTC(),
	}
}

// The tags of blocks (Ethereum JSON-RPC specification, "Block number or tag").
const (
	tagLatest = "latest"
	tagFinal  = "finalized"
)

func tagOf(number uint64) string { return hexutil.EncodeUint64(number) }

// readHeader reads a block's header by tag or number.
func readHeader(ctx context.Context, conn *rpc.Client, tag string) (header, error) {
	var h *header
	if err := conn.CallContext(ctx, &h, "eth_getBlockByNumber", tag, false); err != nil {
		return header{}, err
	}
	if h == nil {
		return header{}, chain.Errorf(chain.ReasonUnavailable, "the node does not have the block %s", tag)
	}
	return *h, h.check(tag)
}

// maxTimestamp is far beyond any real block's time, in seconds.
const maxTimestamp = 1 << 40

func (h header) check(tag string) error {
	if h.Hash == (common.Hash{}) || uint64(h.Timestamp) > maxTimestamp {
		return chain.Errorf(chain.ReasonProtocol, "the block %s has the id %s and the time %d", tag, h.Hash, uint64(h.Timestamp))
	}
	if number, err := strconv.ParseUint(tag, 0, 64); err == nil && number != uint64(h.Number) {
		return chain.Errorf(chain.ReasonProtocol, "asked for block %d, got block %d", number, uint64(h.Number))
	}
	return nil
}

// readHead reads the final block before the newest one, so that the newest is never older.
func readHead(ctx context.Context, conn *rpc.Client) (chain.Head, error) {
	final, err := readHeader(ctx, conn, tagFinal)
	if err != nil {
		return chain.Head{}, err
	}
	latest, err := readHeader(ctx, conn, tagLatest)
	if err != nil {
		return chain.Head{}, err
	}
	if latest.Number < final.Number {
		return chain.Head{}, chain.Errorf(chain.ReasonUnavailable, "the node's newest block %d is older than its final block %d",
			uint64(latest.Number), uint64(final.Number))
	}
	return chain.Head{Latest: latest.block(), Final: final.block()}, nil
}

// Head reads a node's newest block and its newest finalized block.
func (c *Client) Head(ctx context.Context) (chain.Head, error) { return ask(ctx, c.nodes, readHead) }

// at identifies a block by its hash in state queries (EIP-1898), so that related answers are of one block.
func at(b chain.Block) map[string]any { return map[string]any{"blockHash": b.ID} }

// Nonces counts the transactions of an address, by the newest block and by the newest final block.
func (c *Client) Nonces(ctx context.Context, address string) (chain.Nonces, error) {
	holder, err := parse(address)
	if err != nil {
		return chain.Nonces{}, chain.Errorf(chain.ReasonAddress, "%s", err.Error())
	}
	return ask(ctx, c.nodes, func(ctx context.Context, conn *rpc.Client) (chain.Nonces, error) {
		head, err := readHead(ctx, conn)
		if err != nil {
			return chain.Nonces{}, err
		}
		n := chain.Nonces{Head: head}
		for _, q := range []struct {
			block  chain.Block
			answer *uint64
		}{{head.Final, &n.Final}, {head.Latest, &n.Latest}} {
			var count hexutil.Uint64
			if err := conn.CallContext(ctx, &count, "eth_getTransactionCount", holder, at(q.block)); err != nil {
				return chain.Nonces{}, err
			}
			*q.answer = uint64(count)
		}
		if n.Latest < n.Final {
			return chain.Nonces{}, chain.Errorf(chain.ReasonProtocol, "%s has sent %d transactions by block %d and %d by block %d",
				address, n.Final, head.Final.Number, n.Latest, head.Latest.Number)
		}
		return n, nil
	})
}

// Balance reads what an address holds in the final state, which the ledger must match.
func (c *Client) Balance(ctx context.Context, address string, a money.Asset) (chain.Balance, error) {
	all, err := c.Balances(ctx, []chain.Holding{{Address: address, Asset: a}})
	if err != nil {
		return chain.Balance{}, err
	}
	return all[0], nil
}

// Balances reads holdings at one final block.
func (c *Client) Balances(ctx context.Context, of []chain.Holding) ([]chain.Balance, error) {
	holders := make([]common.Address, len(of))
	for i, h := range of {
		var err error
		if holders[i], err = parse(h.Address); err != nil {
			return nil, chain.Errorf(chain.ReasonAddress, "%s", err.Error())
		}
		if err := c.Supports(h.Asset); err != nil {
			return nil, err
		}
	}
	return ask(ctx, c.nodes, func(ctx context.Context, conn *rpc.Client) ([]chain.Balance, error) {
		final, err := readHeader(ctx, conn, tagFinal)
		if err != nil {
			return nil, err
		}
		all := make([]chain.Balance, len(of))
		for i, h := range of {
			amount, err := c.holding(ctx, conn, h.Asset, holders[i], final.block())
			if err != nil {
				return nil, err
			}
			all[i] = chain.Balance{Amount: amount, At: final.block()}
		}
		return all, nil
	})
}

// holding reads one balance at a block.
func (c *Client) holding(ctx context.Context, conn *rpc.Client, a money.Asset, holder common.Address, b chain.Block) (money.Amount, error) {
	if contract, token := c.contracts[a]; token {
		return tokenBalance(ctx, conn, a, contract, holder, b)
	}
	var wei hexutil.Big
	if err := conn.CallContext(ctx, &wei, "eth_getBalance", holder, at(b)); err != nil {
		return money.Amount{}, err
	}
	return units(money.ETH, (*big.Int)(&wei))
}
