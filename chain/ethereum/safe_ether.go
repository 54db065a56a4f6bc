package ethereum

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"strings"

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
// What can't be proven (batches, relayers, modules, other wallets, a node that has not kept the state) is not found here; the
// reconciliation of balances finds it.

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
	successTopic, failureTopic, crypto.Keccak256Hash([]byte("SafeSetup(address,address[],uint256,address,address)")),
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
// transactions that were found already.
func (c *Client) safeEther(
	ctx context.Context, conn *rpc.Client, b *fullBlock, receipts types.Receipts, known [][]chain.Movement,
) ([][]chain.Movement, error) {
	out := make([][]chain.Movement, len(receipts))
	accounts := candidates(b, receipts)
	events := eventsOf(receipts, accounts)
	var proven []common.Address
	for _, account := range accounts {
		moved, ok, err := c.explain(ctx, conn, b, account, events[account])
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		proven = append(proven, account)
		for i, m := range moved {
			out[i] = append(out[i], m...)
		}
	}
	for _, account := range proven {
		for i, m := range c.receivedBy(account, b, events[account], out, known) {
			out[i] = append(out[i], m...)
		}
	}
	return out, nil
}

// candidates are the accounts that may be Safes that moved ether, in the order of the events that say so.
func candidates(b *fullBlock, receipts types.Receipts) []common.Address {
	var all []common.Address
	for tx, r := range receipts {
		for i, l := range r.Logs {
			_, _, received := safeEvent{tx, i, l}.received()
			sent := len(l.Topics) > 0 && l.Topics[0] == successTopic
			if sent {
				t, direct := readExecution(b.Transactions[tx].Input)
				sent = direct && t.value.Sign() > 0
			}
			if (received || sent) && !slices.Contains(all, l.Address) {
				all = append(all, l.Address)
			}
		}
	}
	return all
}

// eventsOf are the events of accounts in a block, in order.
func eventsOf(receipts types.Receipts, accounts []common.Address) map[common.Address][]safeEvent {
	events := map[common.Address][]safeEvent{}
	if len(accounts) == 0 {
		return events
	}
	for tx, r := range receipts {
		for i, l := range r.Logs {
			if slices.Contains(accounts, l.Address) {
				events[l.Address] = append(events[l.Address], safeEvent{tx, i, l})
			}
		}
	}
	return events
}

// explain reports whether an account ran Safe's code and nothing else all through a block, and lists the ether that it sent.
func (c *Client) explain(
	ctx context.Context, conn *rpc.Client, b *fullBlock, account common.Address, events []safeEvent,
) (map[int][]chain.Movement, bool, error) {
	number, ok, err := wasSafe(ctx, conn, account, b.ParentHash)
	if err != nil || !ok {
		return nil, false, err
	}
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
			return nil, false, nil
		}
		number++
		if e.log.Topics[0] != successTopic || t.value.Sign() == 0 || t.to == account {
			continue
		}
		amount, err := units(money.ETH, t.value)
		if err != nil {
			return nil, false, nil //nolint:nilerr // no such amount exists, so the account is no Safe
		}
		moved[e.tx] = append(moved[e.tx], e.movement(from, account, t.to, amount))
	}
	return moved, true, nil
}

func (e safeEvent) movement(t transaction, from, to common.Address, amount money.Amount) chain.Movement {
	return chain.Movement{TxID: t.Hash.Hex(), Index: uint32(e.index), From: from.Hex(), To: to.Hex(), Amount: amount}
}

// receivedBy lists the ether that a Safe reports to have received, without what is known already: that of the transaction
// itself, and that of another Safe.
func (c *Client) receivedBy(
	account common.Address, b *fullBlock, events []safeEvent, sent, known [][]chain.Movement,
) map[int][]chain.Movement {
	moved, rest := map[int][]chain.Movement{}, map[int][]chain.Movement{}
	for _, e := range events {
		sender, value, ok := e.received()
		if !ok {
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

// wasSafe reports whether an account was a proxy of a singleton of Safe 1.4.1 when a block ended, and its next number then.
func wasSafe(ctx context.Context, conn *rpc.Client, account common.Address, block common.Hash) (number uint64, ok bool, err error) {
	b := chain.Block{ID: block.Hex()}
	hash, err := codeHash(ctx, conn, account, b)
	if err != nil || hash != safeProxyCode {
		return 0, false, kept(err)
	}
	var value common.Hash
	if err := conn.CallContext(ctx, &value, "eth_getStorageAt", account, slotSingleton, at(b)); err != nil {
		return 0, false, kept(err)
	}
	singleton, err := singletonOf(account, value)
	if err != nil {
		return 0, false, nil //nolint:nilerr // another wallet's proxy
	}
	if hash, err = codeHash(ctx, conn, singleton.address, b); err != nil || hash != singleton.code {
		return 0, false, kept(err)
	}
	number, err = numberOf(ctx, conn, account, b)
	return number, err == nil, kept(err)
}

func codeHash(ctx context.Context, conn *rpc.Client, account common.Address, b chain.Block) (common.Hash, error) {
	var code hexutil.Bytes
	err := conn.CallContext(ctx, &code, "eth_getCode", account, at(b))
	return crypto.Keccak256Hash(code), err
}

// pruned are texts with which nodes say that they have not kept the state of an old block: go-ethereum's, Besu's, Nethermind's
// and Erigon's.
var pruned = []string{
	"missing trie node", "historical state", "state is not available", "world state unavailable", "no state available",
	"state not available", "pruned",
}

// kept leaves out the error of a node that has not kept a block's state. It is no failure, because then nothing is proven.
func kept(err error) error {
	if e, ok := errors.AsType[rpc.Error](err); ok {
		text := strings.ToLower(e.Error())
		if slices.ContainsFunc(pruned, func(sign string) bool { return strings.Contains(text, sign) }) {
			return nil
		}
	}
	return err
}
