package ethereum

import (
	"context"
	"errors"
	"math/big"
	"net/http"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// Ether that a contract passes on has no event. A Safe's can be proven all the same, from its code, its calldata and its events:
//
//   - Ether out of a Safe: a transaction calls execTransaction with the ether in its calldata, and the Safe reports the success
//     of just that SafeTx.
//   - Ether into a Safe: the Safe reports it with SafeReceived.
//
// Anyone can write a contract that makes such events, or have a Safe run foreign code that does. So they count only for an
// account that ran Safe's own code all through the block: it had the code of a proxy of Safe 1.4.1 before the block, and every
// execution that it reports in the block is one that the calldata explains and that is a plain call. Foreign code never runs
// without one of these reports: the contract makes it when the code returns, or undoes all.
//
// What can't be proven (batches, relayers, modules, other wallets, accounts above maxCandidates, a block whose state no node has
// kept) is not found here; the reconciliation of balances finds it.

// safeEvent is an event of an account in a block.
type safeEvent struct {
	tx    int // its transaction in the block
	index int // in the transaction's receipt
	log   *types.Log
}

var receivedTopic = crypto.Keccak256Hash([]byte("SafeReceived(address,uint256)"))

// ranCode are the events by which a Safe reports that it ran code (Safe.setup and execTransaction,
// ModuleManager.execTransactionFromModule).
var ranCode = []common.Hash{
	successTopic, failureTopic, setupTopic,
	crypto.Keccak256Hash([]byte("ExecutionFromModuleSuccess(address)")), crypto.Keccak256Hash([]byte("ExecutionFromModuleFailure(address)")),
}

// received reads a SafeReceived event.
func (e safeEvent) received() (sender common.Address, value *big.Int, ok bool) {
	if len(e.log.Topics) != 2 || e.log.Topics[0] != receivedTopic || len(e.log.Data) != wordLength {
		return sender, nil, false
	}
	value = new(big.Int).SetBytes(e.log.Data)
	return common.BytesToAddress(e.log.Topics[1].Bytes()), value, value.Sign() > 0
}

// safeEther lists the ether that Safes moved in a block, by the transaction's place in it. known are the movements of the
// transactions that were found already. proven is false if the node can't show which accounts were Safes; another node may.
//
// Anyone can fill a block with events that look like a Safe's. So their cost is bounded, in accounts that are looked at and in
// time: the deposits of others must not wait.
func (c *Client) safeEther(
	ctx context.Context, conn *rpc.Client, b *fullBlock, receipts types.Receipts, known [][]chain.Movement,
) (out [][]chain.Movement, proven bool, err error) {
	out = make([][]chain.Movement, len(receipts))
	accounts := candidates(b, receipts)
	if len(accounts) == 0 {
		return out, true, nil
	}
	bounded, cancel := context.WithTimeout(ctx, c.config.CallTimeout/2)
	defer cancel()
	numbers, err := safesAt(bounded, conn, accounts, b.ParentHash)
	if err != nil {
		if unshown(err) || bounded.Err() != nil && ctx.Err() == nil {
			return out, false, nil
		}
		return nil, false, err
	}
	events := eventsOf(receipts, accounts)
	var explained []common.Address
	for _, account := range accounts {
		number, safe := numbers[account]
		if !safe {
			continue
		}
		moved, ok := c.explain(b, account, number, events[account])
		if !ok {
			continue
		}
		explained = append(explained, account)
		for i, m := range moved {
			out[i] = append(out[i], m...)
		}
	}
	for _, account := range explained {
		for i, m := range c.receivedBy(account, b, events[account], out, known) {
			out[i] = append(out[i], m...)
		}
	}
	return out, true, nil
}

// maxCandidates bounds the accounts of a block that are looked at; a block of the main network has some ten Safes that move
// ether. Those above it are not proven.
const maxCandidates = 200

// candidates are the accounts that may be Safes that moved ether, in the order of the events that say so.
func candidates(b *fullBlock, receipts types.Receipts) []common.Address {
	var all []common.Address
	seen := map[common.Address]bool{}
	for tx, r := range receipts {
		t, direct := readExecution(b.Transactions[tx].Input)
		pays := direct && t.value.Sign() > 0
		for i, l := range r.Logs {
			_, _, received := safeEvent{tx, i, l}.received()
			sent := pays && len(l.Topics) > 0 && l.Topics[0] == successTopic
			if !received && !sent || seen[l.Address] {
				continue
			}
			if seen[l.Address], all = true, append(all, l.Address); len(all) == maxCandidates {
				return all
			}
		}
	}
	return all
}

// eventsOf are the events of accounts in a block, in order.
func eventsOf(receipts types.Receipts, accounts []common.Address) map[common.Address][]safeEvent {
	events := make(map[common.Address][]safeEvent, len(accounts))
	for _, account := range accounts {
		events[account] = nil
	}
	for tx, r := range receipts {
		for i, l := range r.Logs {
			if of, wanted := events[l.Address]; wanted {
				events[l.Address] = append(of, safeEvent{tx, i, l})
			}
		}
	}
	return events
}

// explain reports whether an account, which was a Safe with this next number before a block, ran Safe's code and nothing else
// all through it, and lists the ether that it sent.
func (c *Client) explain(
	b *fullBlock, account common.Address, number uint64, events []safeEvent,
) (map[int][]chain.Movement, bool) {
	moved := map[int][]chain.Movement{}
	for _, e := range events {
		if len(e.log.Topics) == 0 || !slices.Contains(ranCode, e.log.Topics[0]) {
			continue
		}
		from := b.Transactions[e.tx]
		t, direct := readExecution(from.Input)
		t.nonce = number
		if !direct || from.To == nil || *from.To != account || t.operation != operationCall ||
			len(e.log.Topics) != 2 || e.log.Topics[1] != t.hash(c.chainID(), account) {
			return nil, false
		}
		number++
		if e.log.Topics[0] != successTopic || t.value.Sign() == 0 || t.to == account {
			continue
		}
		amount, err := units(money.ETH, t.value)
		if err != nil {
			return nil, false // no such amount exists, so the account is no Safe
		}
		moved[e.tx] = append(moved[e.tx], e.movement(from, account, t.to, amount))
	}
	return moved, true
}

func (e safeEvent) movement(t transaction, from, to common.Address, amount money.Amount) chain.Movement {
	return chain.Movement{TxID: t.Hash.Hex(), Index: uint32(e.index), From: from.Hex(), To: to.Hex(), Amount: amount}
}

// receivedBy lists the ether that a Safe reports to have received, without what it sent to itself, which moves nothing, and what
// is known already: that of the transaction itself, and that of another Safe.
func (c *Client) receivedBy(
	account common.Address, b *fullBlock, events []safeEvent, sent, known [][]chain.Movement,
) map[int][]chain.Movement {
	moved, rest := map[int][]chain.Movement{}, map[int][]chain.Movement{}
	for _, e := range events {
		sender, value, ok := e.received()
		if !ok || sender == account {
			continue
		}
		amount, err := units(money.ETH, value)
		if err != nil {
			continue
		}
		if _, begun := rest[e.tx]; !begun {
			rest[e.tx] = slices.Concat(known[e.tx], sent[e.tx])
		}
		m := e.movement(b.Transactions[e.tx], sender, account, amount)
		if same := slices.IndexFunc(rest[e.tx], func(k chain.Movement) bool {
			return k.From == m.From && k.To == m.To && k.Amount.Equal(m.Amount)
		}); same >= 0 {
			rest[e.tx] = slices.Delete(rest[e.tx], same, same+1) // two equal payments have two events
			continue
		}
		moved[e.tx] = append(moved[e.tx], m)
	}
	return moved
}

// safesAt are the accounts that were proxies of a singleton of Safe 1.4.1 when a block ended, each with its next number then.
// Most that only look like one are left out by their code.
func safesAt(
	ctx context.Context, conn *rpc.Client, accounts []common.Address, block common.Hash,
) (map[common.Address]uint64, error) {
	pins := []pin{safeSingleton, safeL2Singleton}
	var places [][]any
	for _, p := range pins {
		places = append(places, []any{p.address})
	}
	for _, account := range accounts {
		places = append(places, []any{account})
	}
	codes, err := states[hexutil.Bytes](ctx, conn, block, "eth_getCode", places)
	if err != nil {
		return nil, err
	}
	has := func(i int, code common.Hash) bool { return crypto.Keccak256Hash(codes[i]) == code }
	var proxies []common.Address
	places = nil
	for i, account := range accounts {
		if has(len(pins)+i, safeProxyCode) {
			proxies = append(proxies, account)
			places = append(places, []any{account, slotSingleton}, []any{account, slotNonce})
		}
	}
	values, err := states[common.Hash](ctx, conn, block, "eth_getStorageAt", places)
	if err != nil {
		return nil, err
	}
	numbers := make(map[common.Address]uint64, len(proxies))
	for i, account := range proxies {
		runs := slices.IndexFunc(pins, func(p pin) bool { return values[2*i] == common.BytesToHash(p.address.Bytes()) })
		if runs >= 0 && has(runs, pins[runs].code) {
			numbers[account] = values[2*i+1].Big().Uint64()
		}
	}
	return numbers, nil
}

// batchSize is how many queries are sent at once. The code of a contract has up to 24 KB.
const batchSize = 50

// states asks for parts of the state at a block: by one method, with the arguments of each part.
func states[T any](ctx context.Context, conn *rpc.Client, block common.Hash, method string, places [][]any) ([]T, error) {
	queries := make([][]any, len(places))
	for i, place := range places {
		queries[i] = append(slices.Clone(place), at(chain.Block{ID: block.Hex()}))
	}
	return batched[T](ctx, conn, method, queries)
}

// batched sends queries of one method, each with its arguments.
func batched[T any](ctx context.Context, conn *rpc.Client, method string, queries [][]any) ([]T, error) {
	out := make([]T, len(queries))
	for from := 0; from < len(queries); from += batchSize {
		var batch []rpc.BatchElem
		for i := from; i < min(from+batchSize, len(queries)); i++ {
			batch = append(batch, rpc.BatchElem{Method: method, Args: queries[i], Result: &out[i]})
		}
		if err := conn.BatchCallContext(ctx, batch); err != nil {
			return nil, err
		}
		for _, e := range batch {
			if e.Error != nil {
				return nil, e.Error
			}
		}
	}
	return out, nil
}

// unshown reports whether a node refuses a query of state, as it will again: it has not kept that of an old block, or takes no
// batches. A node that is broken or busy will respond later.
func unshown(err error) bool {
	if e, ok := errors.AsType[rpc.HTTPError](err); ok {
		return e.StatusCode/100 == 4 && e.StatusCode != http.StatusTooManyRequests
	}
	_, refused := errors.AsType[rpc.Error](err)
	return refused || errors.Is(err, rpc.ErrMissingBatchResponse)
}
