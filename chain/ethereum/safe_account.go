package ethereum

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/trie"

	"kivuko/chain"
	"kivuko/chain/endpoints"
)

// The places of a Safe's storage (Safe 1.4.1, SafeStorage; FallbackManager and GuardManager for the last two).
var (
	slotSingleton  = common.BigToHash(big.NewInt(0))
	slotModules    = common.BigToHash(big.NewInt(1)) // a list: from each module the next
	slotOwners     = common.BigToHash(big.NewInt(2)) // likewise
	slotOwnerCount = common.BigToHash(big.NewInt(3))
	slotThreshold  = common.BigToHash(big.NewInt(4))
	slotNonce      = common.BigToHash(big.NewInt(5))
	slotApprovals  = common.BigToHash(big.NewInt(8)) // by owner and hash
	slotHandler    = crypto.Keccak256Hash([]byte("fallback_manager.handler.address"))
	slotGuard      = crypto.Keccak256Hash([]byte("guard_manager.guard.address"))
)

// entryOf is where a mapping at a place has the value of a key (Solidity, "Layout of State Variables in Storage").
func entryOf(key []byte, slot common.Hash) common.Hash {
	return crypto.Keccak256Hash(common.LeftPadBytes(key, wordLength), slot.Bytes())
}

// proof is the part of eth_getProof's response that is used (EIP-1186).
type proof struct {
	CodeHash    common.Hash `json:"codeHash"`
	StorageHash common.Hash `json:"storageHash"`
	Storage     []struct {
		Key   string       `json:"key"` // some nodes leave out its zeros
		Value *hexutil.Big `json:"value"`
	} `json:"storageProof"`
}

// inspect reads an account's code, the root of its storage, and some of its places.
func inspect(
	ctx context.Context, conn *rpc.Client, account common.Address, slots []common.Hash, b chain.Block,
) (proof, map[common.Hash]common.Hash, error) {
	var p *proof
	err := conn.CallContext(ctx, &p, "eth_getProof", account, slots, at(b))
	if missing(err) {
		return proof{}, nil, chain.Wrap(chain.ReasonUnavailable, err,
			"the node can't prove the storage of %s (eth_getProof), without which hidden owners can't be excluded", account)
	}
	if err != nil {
		return proof{}, nil, err
	}
	if p == nil {
		return proof{}, nil, chain.Errorf(chain.ReasonProtocol, "the node has no proof of %s", account)
	}
	values := make(map[common.Hash]common.Hash, len(slots))
	for _, place := range p.Storage {
		if place.Value != nil {
			values[common.HexToHash(place.Key)] = common.BigToHash((*big.Int)(place.Value))
		}
	}
	for _, slot := range slots {
		if _, has := values[slot]; !has {
			return proof{}, nil, chain.Errorf(chain.ReasonProtocol, "the node's proof of %s leaves out the place %s", account, slot)
		}
	}
	return *p, values, nil
}

// safeState is a Safe at a block.
type safeState struct {
	owners    []common.Address // in the order of the contract's list
	threshold uint32
	nonce     uint64
}

// readSafe reads a Safe at a block, and refuses an account that enough owners' signatures alone don't control.
func readSafe(ctx context.Context, conn *rpc.Client, account common.Address, b chain.Block) (safeState, error) {
	modules := entryOf(sentinel.Bytes(), slotModules)
	slots := []common.Hash{slotSingleton, modules, slotOwnerCount, slotThreshold, slotNonce, slotHandler, slotGuard}
	p, values, err := inspect(ctx, conn, account, slots, b)
	if err != nil {
		return safeState{}, err
	}
	if err := p.proxies(account, b); err != nil {
		return safeState{}, err
	}
	if err := followsRules(ctx, conn, account, values, modules, b); err != nil {
		return safeState{}, err
	}
	threshold := values[slotThreshold].Big()
	s := safeState{threshold: uint32(threshold.Uint64()), nonce: values[slotNonce].Big().Uint64()}
	if s.owners, err = ownersOf(ctx, conn, account, b); err != nil {
		return safeState{}, err
	}
	count := big.NewInt(int64(len(s.owners)))
	if len(s.owners) > maxSafeOwners || count.Cmp(values[slotOwnerCount].Big()) != 0 || threshold.Sign() == 0 || threshold.Cmp(count) > 0 {
		return safeState{}, foreignSafe(account, "it has %d owners and the threshold %s; at most %d owners are understood", len(s.owners), threshold, maxSafeOwners)
	}
	return s, s.isAll(ctx, conn, account, p.StorageHash, values, b)
}

func foreignSafe(account common.Address, format string, args ...any) error {
	return chain.Errorf(chain.ReasonForeign,
		"%s is no account of several owners that can be used: %s", account, fmt.Sprintf(format, args...))
}

// proxies checks that an account has a proxy's code.
func (p proof) proxies(account common.Address, b chain.Block) error {
	switch p.CodeHash {
	case safeProxyCode:
		return nil
	case common.Hash{}, types.EmptyCodeHash:
		return foreignSafe(account, "it has no code in block %d, so it is no Safe", b.Number)
	}
	return foreignSafe(account, "its code has the hash %s, which is not that of a proxy of Safe 1.4.1", p.CodeHash)
}

// followsRules refuses a singleton, a module, a guard or a fallback handler that is not understood. Each of them could move
// money without the owners' signatures, or prevent it.
func followsRules(
	ctx context.Context, conn *rpc.Client, account common.Address, values map[common.Hash]common.Hash, modules common.Hash, b chain.Block,
) error {
	contract := func(slot common.Hash) common.Address { return common.BytesToAddress(values[slot].Bytes()) }
	singleton, err := singletonOf(account, values[slotSingleton])
	if err != nil {
		return err
	}
	trusted := []pin{singleton}
	switch handler := contract(slotHandler); handler {
	case common.Address{}:
	case safeHandler.address:
		trusted = append(trusted, safeHandler)
	default:
		return foreignSafe(account, "its fallback handler is %s, and not Safe 1.4.1's %s", handler, safeHandler.address)
	}
	switch module := contract(modules); module {
	case sentinel:
	case common.Address{}:
		return foreignSafe(account, "it was never set up")
	default:
		return foreignSafe(account, "the module %s can act without its owners", module)
	}
	if guard := contract(slotGuard); guard != (common.Address{}) {
		return foreignSafe(account, "the guard %s can prevent its transactions", guard)
	}
	return deployed(ctx, conn, b, trusted...)
}

// singletonOf is the contract whose code a proxy runs.
func singletonOf(account common.Address, value common.Hash) (pin, error) {
	for _, known := range []pin{safeSingleton, safeL2Singleton} {
		if value == common.BytesToHash(known.address.Bytes()) {
			return known, nil
		}
	}
	return pin{}, foreignSafe(account,
		"it runs the code of %s, which is neither Safe nor SafeL2 of version 1.4.1", common.BytesToAddress(value.Bytes()))
}

// deployed checks that contracts of Safe 1.4.1 are on the chain.
func deployed(ctx context.Context, conn *rpc.Client, b chain.Block, pins ...pin) error {
	for _, want := range pins {
		p, _, err := inspect(ctx, conn, want.address, []common.Hash{}, b)
		if err != nil {
			return err
		}
		if p.CodeHash != want.code {
			return chain.Errorf(chain.ReasonForeign,
				"the chain has no %s of Safe 1.4.1 at %s: the code there has the hash %s, want %s", want.name, want.address, p.CodeHash, want.code)
		}
	}
	return nil
}

// ownersOf asks the contract for its owners.
func ownersOf(ctx context.Context, conn *rpc.Client, account common.Address, b chain.Block) ([]common.Address, error) {
	answer, refused, err := call(ctx, conn, message{From: account, To: account, Input: encodeCall("getOwners()")}, b)
	if err != nil {
		return nil, err
	}
	owners, ok := []common.Address(nil), len(answer) >= wordLength && refused == ""
	if ok {
		owners, ok = addressesAt(answer, new(big.Int).SetBytes(answer[:wordLength]))
	}
	if !ok {
		return nil, foreignSafe(account, "it does not list its owners: %d bytes %s", len(answer), refused)
	}
	return owners, nil
}

// isAll checks that an account's storage holds what was read and nothing else, by its root. An account may have been made with
// owners or modules that its lists do not show and that its contract accepts all the same: they are in its storage.
//
// Hashes that owners have approved on the chain are in it too. An approval is as good as a signature, so only those count that
// their owners' own transactions made. A node that leaves some out, or invents some, can only make the account be refused.
func (s safeState) isAll(
	ctx context.Context, conn *rpc.Client, account common.Address, root common.Hash, values map[common.Hash]common.Hash, b chain.Block,
) error {
	entries := maps.Clone(values)
	previous := sentinel
	for _, o := range append(slices.Clone(s.owners), sentinel) {
		entries[entryOf(previous.Bytes(), slotOwners)] = common.BytesToHash(o.Bytes())
		previous = o
	}
	if got, err := storageRoot(entries); err != nil || got == root {
		return err
	}
	approvals, strange, err := approvalsOf(ctx, conn, account, b)
	if err != nil {
		return err
	}
	for _, approval := range approvals {
		entries[approval] = common.BigToHash(big.NewInt(1))
	}
	if got, err := storageRoot(entries); err != nil || got == root {
		return err
	}
	if strange != "" {
		return foreignSafe(account, "its storage holds something besides its owners, and %s", strange)
	}
	return foreignSafe(account,
		"its storage holds something besides its owners and %d approvals of theirs: an owner or a module that it does not list",
		len(approvals))
}

// approvalsPage is how many approvals are inspected at a time. An owner can make as many as it pays for, so there is no bound at which the
// account counts as another one.
const approvalsPage = 200

const approveSignature = "approveHash(bytes32)"

// approvalsOf are the places of a Safe's storage that hold the approvals of owners. strange says which of the approvals that
// the events report is none: code that the account ran once may have written it, and have made its event. The event of a real one
// is in a transaction that the owner signed, and that does nothing but approve.
func approvalsOf(
	ctx context.Context, conn *rpc.Client, account common.Address, b chain.Block,
) (places []common.Hash, strange string, err error) {
	logs, err := approvalEvents(ctx, conn, account, b)
	if err != nil {
		return nil, "", err
	}
	for page := range slices.Chunk(logs, approvalsPage) {
		good, bad, err := inspectApprovals(ctx, conn, account, page)
		if err != nil {
			return nil, "", err
		}
		places, strange = append(places, good...), cmp.Or(strange, bad)
	}
	return places, strange, nil
}

// inspectApprovals reads the transactions of some events.
func inspectApprovals(
	ctx context.Context, conn *rpc.Client, account common.Address, logs []types.Log,
) (places []common.Hash, strange string, err error) {
	ids := make([][]any, len(logs))
	for i, l := range logs {
		ids[i] = []any{l.TxHash}
	}
	txs, err := batched[*types.Transaction](ctx, conn, "eth_getTransactionByHash", ids)
	if err != nil {
		return nil, "", err
	}
	receipts, err := batched[*types.Receipt](ctx, conn, "eth_getTransactionReceipt", ids)
	if err != nil {
		return nil, "", err
	}
	for i, l := range logs {
		if txs[i] == nil || receipts[i] == nil {
			return nil, "", chain.Errorf(chain.ReasonUnavailable,
				"the node has not the transaction %s, in which %s reports an approval", l.TxHash, account)
		}
		if !approves(txs[i], receipts[i], account, l) {
			strange = fmt.Sprintf("the approval in transaction %s is not one that its owner signed and sent to the account", l.TxHash)
			continue
		}
		places = append(places, entryOf(l.Topics[1].Bytes(), entryOf(l.Topics[2].Bytes(), slotApprovals)))
	}
	return places, strange, nil
}

// The events of an account's setup and of its approvals.
var (
	setupTopic   = crypto.Keccak256Hash([]byte("SafeSetup(address,address[],uint256,address,address)"))
	approveTopic = crypto.Keccak256Hash([]byte("ApproveHash(bytes32,address)"))
)

// maxPieces bounds the pieces of logRange blocks that are searched for approvals: some nine months of the main network.
const maxPieces = 2_000

// approvalEvents lists an account's events of approvals. Most nodes search the whole chain for one account at once. Of those that
// don't, pieces are asked for.
func approvalEvents(ctx context.Context, conn *rpc.Client, account common.Address, b chain.Block) ([]types.Log, error) {
	var logs []types.Log
	err := conn.CallContext(ctx, &logs, "eth_getLogs", eventsWithin(account, 0, b.Number))
	if err != nil && unshown(err) {
		logs, err = approvalPieces(ctx, conn, account, b)
	}
	if err == nil {
		return slices.DeleteFunc(logs, isSetup), nil
	}
	cause := plain(err)
	switch {
	case errors.Is(err, endpoints.ErrUnable):
		cause = err
	case unshown(err):
		cause = fmt.Errorf("%w: %w", endpoints.ErrUnable, cause)
	}
	return nil, chain.Wrap(chain.ReasonUnavailable, cause,
		"%s stores more than its owners, and the node does not say whether these are approvals", account)
}

func eventsWithin(account common.Address, from, to uint64) map[string]any {
	return map[string]any{
		"address": account, "fromBlock": tagOf(from), "toBlock": tagOf(to), "topics": []any{[]common.Hash{approveTopic, setupTopic}},
	}
}

func isSetup(l types.Log) bool { return len(l.Topics) > 0 && l.Topics[0] == setupTopic }

// approvalPieces searches pieces of the chain, from a block back to the account's setup.
func approvalPieces(ctx context.Context, conn *rpc.Client, account common.Address, b chain.Block) ([]types.Log, error) {
	var logs []types.Log
	next := b.Number + 1
	for range maxPieces / batchSize {
		var queries [][]any
		for next > 0 && len(queries) < batchSize {
			from := next - min(next, logRange)
			queries, next = append(queries, []any{eventsWithin(account, from, next-1)}), from
		}
		pieces, err := batched[[]types.Log](ctx, conn, "eth_getLogs", queries)
		if err != nil {
			return nil, err
		}
		logs = append(logs, slices.Concat(pieces...)...)
		if next == 0 || slices.ContainsFunc(logs, isSetup) {
			return logs, nil
		}
	}
	return nil, fmt.Errorf("%w: it searches pieces only, and the last %d blocks have no setup", endpoints.ErrUnable, maxPieces*logRange)
}

// approves reports whether a transaction is an owner's own approval, the one that an event reports.
func approves(t *types.Transaction, r *types.Receipt, account common.Address, event types.Log) bool {
	from, err := types.Sender(types.LatestSignerForChainID(t.ChainId()), t)
	return err == nil && len(event.Topics) == 3 && common.BytesToHash(from.Bytes()) == event.Topics[2] &&
		t.Hash() == event.TxHash && t.To() != nil && *t.To() == account &&
		bytes.Equal(t.Data(), encodeCall(approveSignature, static(event.Topics[1].Bytes()))) &&
		r.TxHash == event.TxHash && r.Status == types.ReceiptStatusSuccessful
}

// storageRoot is the root of an account's storage with these places (yellow paper, 4.1 and D.1).
func storageRoot(entries map[common.Hash]common.Hash) (common.Hash, error) {
	type leaf struct{ key, value []byte }
	var leaves []leaf
	for slot, value := range entries {
		if value == (common.Hash{}) {
			continue
		}
		encoded, err := rlp.EncodeToBytes(common.TrimLeftZeroes(value.Bytes()))
		if err != nil {
			return common.Hash{}, err
		}
		leaves = append(leaves, leaf{crypto.Keccak256(slot.Bytes()), encoded})
	}
	slices.SortFunc(leaves, func(a, b leaf) int { return bytes.Compare(a.key, b.key) })
	t := trie.NewStackTrie(nil)
	for _, l := range leaves {
		if err := t.Update(l.key, l.value); err != nil {
			return common.Hash{}, err
		}
	}
	return t.Hash(), nil
}

// Quorum reads a Safe at the newest final block and at the newest one. Owners and threshold are those of the final block; the
// next number is the newest block's, because a lower one is taken unless that block is undone.
func (c *Client) Quorum(ctx context.Context, address string) (chain.Quorum, error) {
	account, err := parse(address)
	if err != nil {
		return chain.Quorum{}, chain.Errorf(chain.ReasonAddress, "%s", err.Error())
	}
	return ask(ctx, c.nodes, func(ctx context.Context, conn *rpc.Client) (chain.Quorum, error) {
		head, err := readHead(ctx, conn)
		if err != nil {
			return chain.Quorum{}, err
		}
		final, finalErr := readSafe(ctx, conn, account, head.Final)
		latest, latestErr := readSafe(ctx, conn, account, head.Latest)
		q, err := chain.Joined(final.quorum(), finalErr, latest.quorum(), latestErr)
		if err != nil {
			return chain.Quorum{}, err
		}
		q.Sequence, q.Head, q.Moving = max(final.nonce, latest.nonce), head, q.Moving || !sameQuorum(q, latest.quorum())
		return q, nil
	})
}

func (s safeState) quorum() chain.Quorum {
	q := chain.Quorum{Threshold: s.threshold, Sequence: s.nonce}
	for _, o := range slices.SortedFunc(slices.Values(s.owners), common.Address.Cmp) {
		q.Owners = append(q.Owners, chain.Owner{Address: o.Hex(), Weight: 1})
	}
	return q
}

// sameQuorum reports whether two quorums accept the same signatures.
func sameQuorum(a, b chain.Quorum) bool {
	byAddress := func(x, y chain.Owner) int { return cmp.Compare(x.Address, y.Address) }
	return a.Threshold == b.Threshold && a.Control == nil && b.Control == nil && a.Permission == b.Permission &&
		slices.Equal(slices.SortedFunc(slices.Values(a.Owners), byAddress), slices.SortedFunc(slices.Values(b.Owners), byAddress))
}
