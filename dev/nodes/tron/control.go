package tron

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Faults are the switches a test turns to make the node misbehave in ways real
// nodes do. The counters run down as broadcasts come in. The zero value is a
// node that behaves. The node's own transactions (FundTRX, FundToken) are never
// affected.
type Faults struct {
	// AnswerDelay is how long each broadcast waits for its answer; the
	// transaction is pooled before the wait.
	AnswerDelay time.Duration `json:"answer_delay_ns"`
	// HoldBlocks keeps each new transaction in the pool for so many more blocks.
	HoldBlocks int64 `json:"hold_blocks"`
	// DropNext transactions are accepted and then never mined.
	DropNext int `json:"drop_next"`
	// BusyNext broadcasts are refused with SERVER_BUSY and not pooled.
	BusyNext int `json:"busy_next"`
	// LoseNext broadcasts are pooled and then answered with an error, so that the
	// caller does not know the outcome.
	LoseNext int `json:"lose_next"`
	// FailNext contract calls end in FailWith, REVERT or OUT_OF_ENERGY.
	FailNext int    `json:"fail_next"`
	FailWith string `json:"fail_with"`
}

const (
	maxAnswerDelay  = 10 * time.Minute
	maxHoldBlocks   = 30_000
	maxFaultCount   = 1_000_000
	maxBlocksAtOnce = 10_000
	maxEnergyFactor = 100_000 // 10.0 above 1.0
	fundLifeMillis  = 12 * 60 * 60 * 1000
	fundTokenFeeSun = 100 * sunPerTRX
)

func (f *Faults) validate() error {
	for _, c := range []struct {
		field string
		n     int
	}{{"drop_next", f.DropNext}, {"busy_next", f.BusyNext}, {"lose_next", f.LoseNext}, {"fail_next", f.FailNext}} {
		if c.n < 0 || c.n > maxFaultCount {
			return fmt.Errorf("%s: want 0 to %d", c.field, maxFaultCount)
		}
	}
	if f.AnswerDelay < 0 || f.AnswerDelay > maxAnswerDelay {
		return fmt.Errorf("answer_delay_ns: want 0 to %s", maxAnswerDelay)
	}
	if f.HoldBlocks < 0 || f.HoldBlocks > maxHoldBlocks {
		return fmt.Errorf("hold_blocks: want 0 to %d", maxHoldBlocks)
	}
	if f.FailNext > 0 && f.FailWith != "REVERT" && f.FailWith != "OUT_OF_ENERGY" {
		return errors.New("fail_with: want REVERT or OUT_OF_ENERGY")
	}
	return nil
}

type faultSwitches struct {
	mu sync.Mutex
	Faults
}

func countDown(n *int) bool {
	if *n == 0 {
		return false
	}
	*n--
	return true
}

// judge says what is to happen to a broadcast before it is validated.
func (f *faultSwitches) judge() (busy bool, hold int64, forced core.Transaction_ResultContractResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if countDown(&f.BusyNext) {
		return true, 0, forced
	}
	if f.FailNext > 0 {
		forced = core.Transaction_ResultContractResult(core.Transaction_ResultContractResult_value[f.FailWith])
	}
	return false, f.HoldBlocks, forced
}

// use runs the counters down that only an accepted transaction uses up.
func (f *faultSwitches) use(p *pooled) (drop, lose bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.forced != core.Transaction_Result_DEFAULT {
		countDown(&f.FailNext)
	}
	return countDown(&f.DropNext), countDown(&f.LoseNext)
}

// broadcast takes a transaction from a client, faults included.
func (n *Node) broadcast(ctx context.Context, tx *core.Transaction) (*api.Return, error) {
	answer, lost := n.offer(tx)
	if delay := n.CurrentFaults().AnswerDelay; delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		case <-timer.C:
		}
	}
	if lost {
		return nil, status.Error(codes.Unavailable, "connection lost after the request was sent")
	}
	return answer, nil
}

// offer pools a client's transaction. It holds the chain's lock throughout, so
// that no two broadcasts share the last count of a switch.
func (n *Node) offer(tx *core.Transaction) (answer *api.Return, lost bool) {
	c := n.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	busy, hold, forced := n.faults.judge()
	if busy {
		return returnOf(errBusy), false
	}
	p, err := c.offer(tx, forced, hold)
	if err != nil {
		n.log.Info("broadcast refused", "tx", TransactionID(tx), "reason", err)
		return returnOf(err), false
	}
	drop, lose := n.faults.use(p)
	if drop {
		n.log.Info("transaction dropped on purpose", "tx", p.id)
		c.discard(p.id)
	}
	return returnOf(nil), lose
}

// SetFaults replaces all fault switches.
func (n *Node) SetFaults(f Faults) error {
	if err := f.validate(); err != nil {
		return fmt.Errorf("tron: %w", err)
	}
	n.faults.mu.Lock()
	defer n.faults.mu.Unlock()
	n.faults.Faults = f
	return nil
}

// CurrentFaults returns the switches as they stand, counters run down.
func (n *Node) CurrentFaults() Faults {
	n.faults.mu.Lock()
	defer n.faults.mu.Unlock()
	return n.faults.Faults
}

// ResetFaults makes the node behave again: all switches off, held transactions
// free, block production running.
func (n *Node) ResetFaults() {
	_ = n.SetFaults(Faults{}) // the zero value is valid
	n.chain.mu.Lock()
	for _, p := range n.chain.pool {
		p.notBefore = 0
	}
	n.chain.mu.Unlock()
	n.Resume()
}

// Block is a block as the controls report it.
type Block struct {
	Number       int64     `json:"number"`
	ID           Hash      `json:"id"`
	Time         time.Time `json:"time"`
	Transactions []Hash    `json:"transactions"`
}

func (b *block) report() Block {
	out := Block{Number: b.number, ID: b.id, Time: time.UnixMilli(b.time).UTC(), Transactions: []Hash{}}
	for _, info := range b.infos {
		out.Transactions = append(out.Transactions, Hash(info.Id))
	}
	return out
}

// ProduceBlock makes one block of the waiting transactions now.
func (n *Node) ProduceBlock() (Block, error) {
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	b, err := n.chain.produce(false)
	if err != nil {
		return Block{}, fmt.Errorf("tron: produce a block: %w", err)
	}
	n.log.Debug("block", "number", b.number, "id", b.id, "transactions", len(b.infos))
	return b.report(), nil
}

// ProduceBlocks makes count blocks now and returns the last.
func (n *Node) ProduceBlocks(count int) (last Block, err error) {
	if count < 1 || count > maxBlocksAtOnce {
		return Block{}, fmt.Errorf("tron: produce %d blocks: want 1 to %d", count, maxBlocksAtOnce)
	}
	for range count {
		if last, err = n.ProduceBlock(); err != nil {
			return Block{}, err
		}
	}
	return last, nil
}

// Solidify makes as many blocks as it takes for the present head to be solid.
func (n *Node) Solidify() (Block, error) { return n.ProduceBlocks(witnesses - solidIndex - 1) }

// Head and Solid are the newest and the newest final block.
func (n *Node) Head() Block  { return n.topBlock(false) }
func (n *Node) Solid() Block { return n.topBlock(true) }

func (n *Node) topBlock(solid bool) Block {
	n.chain.mu.RLock()
	defer n.chain.mu.RUnlock()
	return n.chain.top(solid).report()
}

// SetBlockInterval changes the time between blocks; zero stops making them.
func (n *Node) SetBlockInterval(d time.Duration) error {
	if err := checkInterval(d); err != nil {
		return fmt.Errorf("tron: block interval: %w", err)
	}
	n.chain.mu.Lock()
	n.chain.interval = d
	n.chain.mu.Unlock()
	n.rhythm.SetInterval(d)
	return nil
}

// Pause stops the making of blocks by time; ProduceBlock still works.
func (n *Node) Pause() { n.rhythm.Pause() }

// Resume undoes Pause.
func (n *Node) Resume() { n.rhythm.Resume() }

// AdvanceTime moves the clock that dates blocks, to let transactions expire and
// resources recover. It does not survive a restart; the blocks' times do.
func (n *Node) AdvanceTime(d time.Duration) error {
	if err := n.clock.Advance(d); err != nil {
		return fmt.Errorf("tron: %w", err)
	}
	return nil
}

// Reorganise replaces the newest depth blocks, none of them solid, by a longer
// branch of empty blocks. Their transactions return to the pool unless drop is
// set; then they are as if never sent.
func (n *Node) Reorganise(depth int, drop bool) error {
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	if err := n.chain.reorganise(depth, drop); err != nil {
		return fmt.Errorf("tron: %w", err)
	}
	n.log.Info("reorganised", "blocks", depth, "dropped", drop, "head", n.chain.head().id)
	return nil
}

// SetEnergyFactor sets a contract's dynamic energy factor in ten-thousandths
// above 1.0: 34000 makes a call cost 4.4 times its base. It holds at once and is
// written into the next block.
func (n *Node) SetEnergyFactor(contract Address, factor int64) error {
	if err := checkFactor(factor); err != nil {
		return fmt.Errorf("tron: energy factor: %w", err)
	}
	c := n.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.contract(contract) == nil {
		return fmt.Errorf("tron: energy factor: %s is not a contract", contract)
	}
	c.factors[contract] = factor
	c.state.setEnergyFactor(contract, factor)
	return nil
}

func checkFactor(factor int64) error {
	if factor < 0 || factor > maxEnergyFactor {
		return fmt.Errorf("%d: want 0 to %d", factor, maxEnergyFactor)
	}
	return nil
}

// FundTRX sends sun from the genesis account, activating the receiver.
func (n *Node) FundTRX(to Address, sun int64) (Hash, error) {
	from := mustAddress(GenesisAddress)
	return n.submit(&core.TransferContract{OwnerAddress: from[:], ToAddress: to[:], Amount: sun},
		core.Transaction_Contract_TransferContract, 0)
}

// FundToken sends units of a token from the genesis account. It does not
// activate the receiver.
func (n *Node) FundToken(token, to Address, units *big.Int) (Hash, error) {
	if units == nil || units.Sign() <= 0 || units.BitLen() > 256 {
		return Hash{}, errors.New("tron: fund token: amount must be positive and fit 256 bits")
	}
	from := mustAddress(GenesisAddress)
	data := make([]byte, 4+64)
	copy(data, []byte{0xa9, 0x05, 0x9c, 0xbb}) // transfer(address,uint256)
	copy(data[4+12:], to[1:])
	units.FillBytes(data[4+32:])
	return n.submit(&core.TriggerSmartContract{OwnerAddress: from[:], ContractAddress: token[:], Data: data},
		core.Transaction_Contract_TriggerSmartContract, fundTokenFeeSun)
}

// SetBlocked puts an address on a token's block list, or takes it off, in a block of its own. USDT's list stops the sender of a payment,
// USDC's also its recipient.
func (n *Node) SetBlocked(token, address Address, blocked bool) error {
	signature := map[bool]map[string]string{
		true:  {USDTAddress: "addBlackList(address)", USDCAddress: "blacklist(address)"},
		false: {USDTAddress: "removeBlackList(address)", USDCAddress: "unBlacklist(address)"},
	}[blocked][token.String()]
	if signature == "" {
		return errors.New("tron: block: want one of the chain's tokens")
	}
	issuer, data := mustAddress(GenesisAddress), make([]byte, 4+32)
	copy(data, crypto.Keccak256([]byte(signature))[:4])
	copy(data[4+12:], address[1:])
	_, err := n.submit(&core.TriggerSmartContract{OwnerAddress: issuer[:], ContractAddress: token[:], Data: data},
		core.Transaction_Contract_TriggerSmartContract, fundTokenFeeSun)
	if err == nil {
		_, err = n.ProduceBlock()
	}
	return err
}

// ChainID is what the CHAINID opcode answers: the last four bytes of the genesis
// block's id, as on every TRON network.
func (n *Node) ChainID() uint64 { return n.chain.chainID }
