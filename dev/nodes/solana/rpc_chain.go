package solana

import (
	"encoding/base64"
	"fmt"
	"math"
	"sort"

	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/solana/svm"
)

func getHealth(c *call) (any, error) {
	if c.behind == 0 {
		return healthOK, nil
	}
	return nil, unhealthy(c.behind)
}

func unhealthy(behind uint64) *rpcError {
	return &rpcError{
		Code: codeNodeUnhealthy, Message: fmt.Sprintf("Node is behind by %d slots", behind),
		Data: object{"numSlotsBehind": behind},
	}
}

func getEpochInfo(_ *call, v view) (any, error) {
	slot := v.slot()
	return object{
		"absoluteSlot": slot, "blockHeight": v.at, "epoch": slot / slotsPerEpoch, "slotIndex": slot % slotsPerEpoch,
		"slotsInEpoch": slotsPerEpoch, "transactionCount": v.header().total,
	}, nil
}

func getLatestBlockhash(_ *call, v view) (any, error) {
	return inContext(v, object{"blockhash": v.header().hash, "lastValidBlockHeight": v.lastValidHeight()}), nil
}

func isBlockhashValid(c *call, v view) (any, error) {
	var text string
	if err := c.argument(0, "blockhash", &text); err != nil {
		return nil, err
	}
	hash, err := parseKey(text)
	if err != nil {
		return nil, err
	}
	return inContext(v, v.known(solana.Hash(hash))), nil
}

// getFeeForMessage answers null when the block hash is not known any more, and is not the nonce of the account
// that the message advances.
func getFeeForMessage(c *call, v view) (any, error) {
	var text string
	if err := c.argument(0, "message", &text); err != nil {
		return nil, err
	}
	message, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(message) == 0 {
		return nil, invalid("invalid base64 encoding: %v", err)
	}
	tx, err := svm.Decode(unsigned(message))
	if err != nil {
		return nil, invalid("failed to deserialize solana_message::versions::VersionedMessage: %v", err)
	}
	if tx, err = v.resolve(tx, "transaction message"); err != nil {
		return nil, err
	}
	if fee, refused := svm.Fee(tx); refused == nil && (v.known(tx.Message.RecentBlockhash) || v.livesByNonce(tx)) {
		return inContext(v, fee), nil
	}
	return inContext(v, nil), nil
}

// livesByNonce reports whether a transaction names the nonce of the account that it advances.
func (v view) livesByNonce(tx *svm.Transaction) bool {
	place, ok := tx.NonceAccount()
	if !ok {
		return false
	}
	account, _ := v.read(tx.Keys()[place])
	nonce, used := svm.NonceOf(account)
	return used && nonce == tx.Message.RecentBlockhash
}

// unsigned is a transaction around a message, with signatures of zeros.
func unsigned(message []byte) []byte {
	signers := message[0]
	if signers >= 0x80 && len(message) > 1 { // the version comes before the header
		signers = message[1]
	}
	wire := append([]byte{signers}, make([]byte, int(signers)*solana.SignatureLength)...)
	return append(wire, message...)
}

func getMinimumBalance(c *call) (any, error) {
	var size uint64
	if err := c.argument(0, "length of the data", &size); err != nil {
		return nil, err
	}
	const maxAccountBytes = 10 << 20
	if size > maxAccountBytes {
		return nil, invalid("Invalid params: an account has at most %d bytes", maxAccountBytes)
	}
	return svm.MinimumBalance(int(size)), nil
}

// getRecentPrioritizationFees gives for each recent block the least price of a
// compute unit, in micro-lamports, that a transaction paid which writes to all the
// given accounts, and 0 for a block that has none.
func getRecentPrioritizationFees(c *call) (any, error) {
	var texts []string
	if c.has(0) {
		if err := c.argument(0, "addresses", &texts); err != nil {
			return nil, err
		}
	}
	if len(texts) > maxFeeAccounts {
		return nil, invalid("Too many inputs provided; max %d", maxFeeAccounts)
	}
	var keys []solana.PublicKey
	for _, text := range texts {
		key, err := parseKey(text)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	l := c.node.ledger
	l.mu.RLock()
	defer l.mu.RUnlock()
	v := l.view(processed, c.behind)
	out := []object{}
	for height := v.at - min(v.at, svm.MaxAge-1); height <= v.at; height++ {
		slot := l.headers[height].slot
		out = append(out, object{"slot": slot, "prioritizationFee": leastPrice(l.blocks[slot], keys)})
	}
	return out, nil
}

func leastPrice(entries []*entry, keys []solana.PublicKey) uint64 {
	least, found := uint64(math.MaxUint64), false
	for _, e := range entries {
		if writesAll(e.tx, keys) {
			least, found = min(least, unitPrice(e.tx)), true
		}
	}
	if !found {
		return 0
	}
	return least
}

func writesAll(tx *svm.Transaction, keys []solana.PublicKey) bool {
	for _, key := range keys {
		found := false
		for i, k := range tx.Keys() {
			found = found || k == key && tx.IsWritable(i)
		}
		if !found {
			return false
		}
	}
	return true
}

// unitPrice is what SetComputeUnitPrice names, in micro-lamports.
func unitPrice(tx *svm.Transaction) uint64 {
	const setUnitPrice, size = 3, 9
	for _, step := range tx.Message.Instructions {
		if tx.Keys()[step.ProgramIDIndex] == solana.ComputeBudget && len(step.Data) == size && step.Data[0] == setUnitPrice {
			return le.Uint64(step.Data[1:])
		}
	}
	return 0
}

// missing is why there is no block in a slot, or none yet at the commitment. As
// with Agave, a slot that was skipped is only known to be once a later one is final.
func (v view) missing(slot uint64) *rpcError {
	if slot <= v.headers[min(v.root, v.at)].slot {
		return &rpcError{Code: codeSlotSkipped, Message: fmt.Sprintf("Slot %d was skipped, or missing due to ledger jump to recent snapshot", slot)}
	}
	return &rpcError{Code: codeBlockNotAvailable, Message: fmt.Sprintf("Block not available for slot %d", slot)}
}

// block is the height of the block in a slot that the view shows.
func (v view) block(slot uint64) (uint64, error) {
	if height, ok := v.find(slot); ok && height <= v.at {
		return height, nil
	}
	return 0, v.missing(slot)
}

func getBlockTime(c *call) (any, error) {
	var slot uint64
	if err := c.argument(0, "slot", &slot); err != nil {
		return nil, err
	}
	l := c.node.ledger
	l.mu.RLock()
	defer l.mu.RUnlock()
	height, err := l.view(confirmed, c.behind).block(slot)
	if err != nil {
		return nil, err
	}
	return l.headers[height].unix(), nil
}

// getBlocks lists the slots with a block from the first to the last one asked for.
func getBlocks(c *call) (any, error) {
	var first, last uint64
	if err := c.argument(0, "first slot", &first); err != nil {
		return nil, err
	}
	options := 1
	last = math.MaxUint64
	if c.has(1) && c.args[1][0] != '{' {
		if err := c.argument(1, "last slot", &last); err != nil {
			return nil, err
		}
		options = 2
	} else if len(c.args) > 2 {
		options = 2
	}
	return c.slots(options, first, last, math.MaxInt)
}

func getBlocksWithLimit(c *call) (any, error) {
	var first uint64
	var limit int
	if err := c.argument(0, "first slot", &first); err != nil {
		return nil, err
	}
	if err := c.argument(1, "limit", &limit); err != nil {
		return nil, err
	}
	if limit < 0 || limit > maxBlockRange {
		return nil, invalid("Limit too large; max %d", maxBlockRange)
	}
	return c.slots(2, first, math.MaxUint64, limit)
}

// slots lists the slots with a block within bounds.
func (c *call) slots(options int, first, last uint64, limit int) (any, error) {
	var r reading
	if err := c.options(options, &r); err != nil {
		return nil, err
	}
	if err := r.checkHistory(); err != nil {
		return nil, err
	}
	c.node.ledger.mu.RLock()
	defer c.node.ledger.mu.RUnlock()
	v, err := c.view(r)
	if err != nil {
		return nil, err
	}
	last = min(last, v.slot())
	if last > first && last-first > maxBlockRange {
		return nil, invalid("Slot range too large; max %d", maxBlockRange)
	}
	out := []uint64{}
	from := sort.Search(len(v.headers), func(i int) bool { return v.headers[i].slot >= first })
	for i := from; i < len(v.headers) && v.headers[i].slot <= last && len(out) < limit; i++ {
		out = append(out, v.headers[i].slot)
	}
	return out, nil
}
