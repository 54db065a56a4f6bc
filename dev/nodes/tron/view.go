package tron

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
)

// The methods here read the chain for both services. They want the chain's lock
// held for reading. What they do not find they answer with an empty message, as
// TRON does, never with an error. Messages they return are never changed again.

const (
	// maxBlockRange is java-tron's limit of GetBlockByLimitNext.
	maxBlockRange = 100
	// maxLatestBlocks is java-tron's limit of GetBlockByLatestNum.
	maxLatestBlocks = 99
)

// solidView reads the state as of the solidified block.
func (c *chain) solidView() func(stateKey) any {
	var newer []undo
	for _, b := range c.blocks[c.solid+1:] {
		newer = append(newer, b.undo)
	}
	return c.state.before(newer)
}

// top is the newest block a service shows.
func (c *chain) top(solid bool) *block {
	if solid {
		return c.blocks[c.solid]
	}
	return c.head()
}

// blockAt returns nil when the service does not show such a block.
func (c *chain) blockAt(number int64, solid bool) *block {
	if number < 0 || number > c.top(solid).number {
		return nil
	}
	return c.blocks[number]
}

func (b *block) extend() *api.BlockExtention {
	if b == nil {
		return &api.BlockExtention{}
	}
	x := &api.BlockExtention{BlockHeader: b.message.BlockHeader, Blockid: b.id[:]}
	for _, tx := range b.message.Transactions {
		x.Transactions = append(x.Transactions, extend(tx))
	}
	return x
}

func (b *block) plain() *core.Block {
	if b == nil {
		return &core.Block{}
	}
	return b.message
}

// mined returns nils when the transaction is in no block the service shows.
func (c *chain) mined(id []byte, solid bool) (*core.Transaction, *core.TransactionInfo) {
	if len(id) != len(Hash{}) {
		return nil, nil
	}
	at, ok := c.byTx[Hash(id)]
	if !ok || at.number > c.top(solid).number {
		return nil, nil
	}
	b := c.blocks[at.number]
	return b.message.Transactions[at.index], b.infos[at.index]
}

// transaction finds a transaction; a full node also shows the pool's.
func (c *chain) transaction(id []byte, solid bool) *core.Transaction {
	if tx, _ := c.mined(id, solid); tx != nil {
		return tx
	}
	if !solid {
		return c.pending(id)
	}
	return &core.Transaction{}
}

func (c *chain) pending(id []byte) *core.Transaction {
	if len(id) == len(Hash{}) {
		if p := c.inPool[Hash(id)]; p != nil {
			return p.tx
		}
	}
	return &core.Transaction{}
}

func (c *chain) transactionInfo(id []byte, solid bool) *core.TransactionInfo {
	if _, info := c.mined(id, solid); info != nil {
		return info
	}
	return &core.TransactionInfo{}
}

func (c *chain) transactionInfos(number int64, solid bool) *api.TransactionInfoList {
	out := &api.TransactionInfoList{}
	if b := c.blockAt(number, solid); b != nil {
		out.TransactionInfo = b.infos
	}
	return out
}

func (c *chain) account(raw []byte, solid bool) *core.Account {
	read := c.state.get
	if solid {
		read = c.solidView()
	}
	if a, ok := addressOf(raw); ok {
		if x := asAccount(read(accountKey(a))); x != nil {
			return x
		}
	}
	return &core.Account{}
}

func (c *chain) accountResource(raw []byte) *api.AccountResourceMessage {
	a, ok := addressOf(raw)
	x := c.state.account(a)
	if !ok || x == nil {
		return &api.AccountResourceMessage{}
	}
	now := c.head().time
	return &api.AccountResourceMessage{
		FreeNetUsed: freeBandwidthUsed(x, now), FreeNetLimit: freeBandwidth,
		NetUsed: bandwidthUsed(x, now), NetLimit: bandwidthLimit(x),
		EnergyUsed: energyUsed(x, now), EnergyLimit: energyLimit(x),
		// A fixed rate per staked TRX, said as the ratio of supply and weight.
		TotalNetLimit: bandwidthPerTRX, TotalNetWeight: 1, TotalEnergyLimit: energyPerTRX, TotalEnergyWeight: 1,
	}
}

func (c *chain) contractInfo(raw []byte) *core.SmartContractDataWrapper {
	a, ok := addressOf(raw)
	contract := c.state.contract(a)
	if !ok || contract == nil {
		return &core.SmartContractDataWrapper{}
	}
	code, _ := c.state.get(stateKey{space: spaceCode, address: a}).([]byte)
	return &core.SmartContractDataWrapper{
		SmartContract: contract, Runtimecode: code, ContractState: &core.ContractState{EnergyFactor: c.state.energyFactor(a)},
	}
}

func (c *chain) delegations(from, to []byte) *api.DelegatedResourceList {
	out := &api.DelegatedResourceList{}
	f, okFrom := addressOf(from)
	t, okTo := addressOf(to)
	if !okFrom || !okTo {
		return out
	}
	for _, locked := range []bool{false, true} {
		if d := c.state.delegation(f, t, locked); d != nil {
			out.DelegatedResource = append(out.DelegatedResource, d)
		}
	}
	return out
}

// delegationIndex lists with whom an account shares its stake, in the order of their addresses.
func (c *chain) delegationIndex(raw []byte) *core.DelegatedResourceAccountIndex {
	a, ok := addressOf(raw)
	if !ok {
		return &core.DelegatedResourceAccountIndex{}
	}
	givers, receivers := map[string]bool{}, map[string]bool{}
	for key := range c.state.values {
		if key.space != spaceDelegation && key.space != spaceLockedDelegation {
			continue
		}
		if to := key.word[:len(a)]; bytes.Equal(to, a[:]) {
			givers[string(key.address[:])] = true
		} else if key.address == a {
			receivers[string(to)] = true
		}
	}
	list := func(set map[string]bool) (out [][]byte) {
		for _, address := range slices.Sorted(maps.Keys(set)) {
			out = append(out, []byte(address))
		}
		return out
	}
	return &core.DelegatedResourceAccountIndex{Account: a[:], FromAccounts: list(givers), ToAccounts: list(receivers)}
}

func (c *chain) delegable(raw []byte, kind core.ResourceCode) int64 {
	a, ok := addressOf(raw)
	x := c.state.account(a)
	if !ok || x == nil || !isStakeable(kind) {
		return 0
	}
	return delegable(x, kind, c.head().time)
}

// blockBySpec answers GetBlock: an id, a number, or nothing for the newest.
func (c *chain) blockBySpec(r *api.BlockReq, solid bool) (*api.BlockExtention, error) {
	b := c.top(solid)
	if text := r.GetIdOrNum(); text != "" {
		var err error
		if b, err = c.blockByText(text, solid); err != nil {
			return nil, err
		}
	}
	x := b.extend()
	if !r.GetDetail() {
		x.Transactions = nil
	}
	return x, nil
}

func (c *chain) blockRange(start, end int64) (out []*block) {
	for n := start; n < end && n-start < maxBlockRange; n++ {
		if b := c.blockAt(n, false); b != nil {
			out = append(out, b)
		}
	}
	return out
}

func extendAll(blocks []*block) *api.BlockListExtention {
	out := &api.BlockListExtention{}
	for _, b := range blocks {
		out.Block = append(out.Block, b.extend())
	}
	return out
}

func (c *chain) nodeInfo() *core.NodeInfo {
	name := func(b *block) string { return fmt.Sprintf("Num:%d,ID:%s", b.number, b.id) }
	return &core.NodeInfo{
		BeginSyncNum: c.head().number, Block: name(c.head()), SolidityBlock: name(c.blocks[c.solid]),
		ConfigNodeInfo: &core.NodeInfo_ConfigNodeInfo{CodeVersion: "kivuko-development-node", SupportConstant: true},
	}
}

func chainParameters() *core.ChainParameters {
	out := &core.ChainParameters{}
	for _, p := range []struct {
		key   string
		value int64
	}{
		{"getMaintenanceTimeInterval", 21_600_000},
		{"getCreateAccountFee", createAccountFee},
		{"getTransactionFee", bandwidthFee},
		{"getCreateNewAccountFeeInSystemContract", activationFee},
		{"getCreateNewAccountBandwidthRate", 1},
		{"getEnergyFee", energyFee},
		{"getAllowMultiSign", 1},
		{"getUpdateAccountPermissionFee", permissionUpdateFee},
		{"getMultiSignFee", multiSignFee},
		{"getFreeNetLimit", freeBandwidth},
		{"getMaxFeeLimit", maxFeeLimit},
		{"getMemoFee", memoFee},
		{"getUnfreezeDelayDays", unstakeMillis / millisPerDay},
		{"getMaxDelegateLockPeriod", maxLockBlocks},
		{"getAllowCancelAllUnfreezeV2", 1},
		{"getAllowDynamicEnergy", 1},
		{"getAllowTvmCancun", 1},
	} {
		out.ChainParameter = append(out.ChainParameter, &core.ChainParameters_ChainParameter{Key: p.key, Value: p.value})
	}
	return out
}

func (c *chain) witnessList() *api.WitnessList {
	out := &api.WitnessList{}
	for _, key := range c.keys {
		a := AddressOfKey(key)
		out.Witnesses = append(out.Witnesses, &core.Witness{Address: a[:], IsJobs: true})
	}
	return out
}

// cloneTransaction copies a message so that its fields may be changed.
func cloneTransaction(tx *core.Transaction) *core.Transaction {
	return proto.Clone(tx).(*core.Transaction)
}
