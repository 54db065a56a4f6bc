package tron

import (
	"fmt"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
)

// submit signs a transaction with the genesis key and pools it, past the fault
// switches.
func (n *Node) submit(message proto.Message, kind core.Transaction_Contract_ContractType, feeLimit int64) (Hash, error) {
	c := n.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	tx, err := c.build(message, kind)
	if err != nil {
		return Hash{}, fmt.Errorf("tron: fund: %w", err)
	}
	tx.RawData.FeeLimit = feeLimit
	tx.RawData.Expiration = c.head().time + fundLifeMillis
	for c.has(TransactionID(tx)) {
		tx.RawData.Timestamp++ // equal payments within a millisecond are one transaction
	}
	if err := Sign(tx, mustKey(GenesisKey)); err != nil {
		return Hash{}, fmt.Errorf("tron: fund: %w", err)
	}
	p, err := c.offer(tx, core.Transaction_Result_DEFAULT, 0)
	if err != nil {
		return Hash{}, fmt.Errorf("tron: fund: %w", err)
	}
	return p.id, nil
}
