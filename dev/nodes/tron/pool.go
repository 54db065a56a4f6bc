package tron

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	// maxTransactionBytes is java-tron's TRANSACTION_MAX_BYTE_SIZE.
	maxTransactionBytes = 500 * 1024
	// maxExpirationMillis is how far beyond the head a transaction may expire.
	maxExpirationMillis = millisPerDay
	// buildExpirationMillis is the life of a transaction this node builds.
	buildExpirationMillis = 60_000
	// recentBlocks is how many blocks a reference of two bytes can name.
	recentBlocks = 1 << 16
)

// knowsReference is TAPOS: the transaction names a recent block of this branch.
func (c *chain) knowsReference(raw *core.TransactionRaw) bool {
	if len(raw.RefBlockBytes) != 2 || len(raw.RefBlockHash) != 8 {
		return false
	}
	head := c.head().number
	number := head&^(recentBlocks-1) | int64(binary.BigEndian.Uint16(raw.RefBlockBytes))
	if number > head {
		number -= recentBlocks
	}
	return number >= 0 && bytes.Equal(c.blocks[number].id[8:16], raw.RefBlockHash)
}

// offer validates a transaction as java-tron's broadcast does, in its order, and
// pools it. forced and holdBlocks come from the fault switches.
func (c *chain) offer(tx *core.Transaction, forced core.Transaction_ResultContractResult, holdBlocks int64) (*pooled, error) {
	if len(c.pool) >= maxPending {
		return nil, errBusy
	}
	tx = proto.Clone(tx).(*core.Transaction)
	tx.Ret = nil
	in, err := decode(tx)
	if err != nil {
		return nil, err
	}
	head, raw := c.head(), tx.RawData
	if raw.Expiration < head.time+c.slotMillis() {
		return nil, errExpired
	}
	if err := c.state.checkSignatures(tx, in.id, in.owner); err != nil {
		return nil, err
	}
	if !c.knowsReference(raw) {
		return nil, errReference
	}
	if size := proto.Size(tx) + 2*resultBytes; size > maxTransactionBytes {
		return nil, &Refusal{api.Return_TOO_BIG_TRANSACTION_ERROR, fmt.Sprintf(
			"Too big transaction with result, TxId %s, the size is %d bytes, maxTxSize %d", in.id, size, maxTransactionBytes)}
	}
	if raw.Expiration > head.time+maxExpirationMillis {
		return nil, errExpired
	}
	if c.has(in.id) {
		return nil, errDuplicate
	}
	p := &pooled{incoming: *in}
	p.verified = true
	if _, isCall := in.message.(*core.TriggerSmartContract); isCall {
		p.forced = forced
	}
	if holdBlocks > 0 {
		p.notBefore = head.number + 1 + holdBlocks
	}
	err = c.admit(p)
	p.verified = false
	if err != nil {
		return nil, err
	}
	return p, nil
}

// has reports whether the transaction is in a block or in the pool.
func (c *chain) has(id Hash) bool {
	_, mined := c.byTx[id]
	return mined || c.inPool[id] != nil
}

// discard takes a transaction out of the pool.
func (c *chain) discard(id Hash) {
	var rest []*pooled
	for _, p := range c.pool {
		if p.id != id {
			rest = append(rest, p)
		}
	}
	c.state.revert(0)
	c.refill(rest)
}

// build makes an unsigned transaction the way a full node does for a client: it
// refers to the solidified block and expires a minute after the head.
func (c *chain) build(message proto.Message, kind core.Transaction_Contract_ContractType) (*core.Transaction, error) {
	parameter, err := anypb.New(message)
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", kind, err)
	}
	contract := &core.Transaction_Contract{Type: kind, Parameter: parameter}
	owner, _, err := ownerOf(contract)
	if err != nil {
		return nil, invalid("%v", err)
	}
	if _, err := c.state.validate(c.pendingContext(), owner, message); err != nil {
		return nil, err
	}
	tx := &core.Transaction{RawData: &core.TransactionRaw{
		Timestamp: c.now().UnixMilli(), Contract: []*core.Transaction_Contract{contract},
	}}
	c.refer(tx)
	return tx, nil
}

// refer points the transaction at the solidified block, which no fork can take
// away (java-tron's trx.reference.block = "solid").
func (c *chain) refer(tx *core.Transaction) {
	id := c.blocks[c.solid].id
	tx.RawData.RefBlockBytes = bytes.Clone(id[6:8])
	tx.RawData.RefBlockHash = bytes.Clone(id[8:16])
	tx.RawData.Expiration = c.head().time + buildExpirationMillis
}
