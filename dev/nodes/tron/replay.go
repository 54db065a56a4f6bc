package tron

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
)

// headerDigest is what a witness signs.
func headerDigest(raw *core.BlockHeaderRaw) []byte {
	d := sha256.Sum256(encode(raw))
	return d[:]
}

// replayBlock executes a stored block again and holds every recorded result
// against the one it gets: a chain that would come out different is refused.
func (c *chain) replayBlock(m *core.Block, marks *effects) error {
	raw := m.GetBlockHeader().GetRawData()
	if raw == nil {
		return errors.New("block without header")
	}
	b := &block{message: m, id: BlockID(raw), number: raw.Number, time: raw.Timestamp, witness: c.turn % witnesses, marks: marks}
	if err := c.checkHeader(b); err != nil {
		return fmt.Errorf("block %d: %w", b.number, err)
	}
	signer := AddressOfKey(c.keys[b.witness])
	context := c.context(b.number, b.time, signer)
	for a, factor := range marks.factors() {
		c.state.setEnergyFactor(a, factor)
	}
	for _, tx := range m.Transactions {
		info, err := c.replayTransaction(context, tx, marks)
		if err != nil {
			return fmt.Errorf("block %d: %w", b.number, err)
		}
		b.infos = append(b.infos, info)
	}
	c.connect(b)
	clear(c.factors) // a block sets every factor that is due
	return nil
}

func (c *chain) checkHeader(b *block) error {
	raw := b.message.BlockHeader.RawData
	parent := c.head()
	signer, err := Recover(Hash(headerDigest(raw)), b.message.BlockHeader.WitnessSignature)
	switch {
	case err != nil:
		return fmt.Errorf("witness signature: %w", err)
	case raw.Number != parent.number+1 || !bytes.Equal(raw.ParentHash, parent.id[:]):
		return fmt.Errorf("does not follow block %d %s", parent.number, parent.id)
	case signer != AddressOfKey(c.keys[b.witness]) || !bytes.Equal(raw.WitnessAddress, signer[:]):
		return fmt.Errorf("signed by %s, not by the witness whose turn it is", signer)
	case !bytes.Equal(raw.TxTrieRoot, merkleRoot(b.message.Transactions)):
		return errors.New("the transactions do not match the header")
	}
	return nil
}

func (c *chain) replayTransaction(context *blockContext, tx *core.Transaction, marks *effects) (*core.TransactionInfo, error) {
	in, err := decode(proto.Clone(tx).(*core.Transaction))
	if err != nil {
		return nil, err
	}
	in.forced = marks.forced(in.id)
	info, err := c.state.applyTransaction(context, in)
	if err != nil {
		return nil, fmt.Errorf("transaction %s: %w", in.id, err)
	}
	if !proto.Equal(in.tx, tx) {
		return nil, fmt.Errorf("transaction %s now ends in %s, it was %s: the data was made by another version of the node",
			in.id, in.tx.Ret[0].ContractRet, tx.Ret[0].ContractRet)
	}
	return info, nil
}

func (c *chain) replayReorganisation(depth int) error {
	if depth < 1 || int64(len(c.blocks)-depth) <= c.solid {
		return fmt.Errorf("reorganisation of %d blocks reaches block %d, which is solid", depth, c.solid)
	}
	c.disconnect(depth)
	return nil
}
