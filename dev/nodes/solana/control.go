package solana

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/solana/svm"
)

// Faults are the switches a test turns to make the node misbehave in ways real
// nodes do. The counters run down as transactions are sent. The zero value is a
// node that behaves. The node's own transactions are never affected.
type Faults struct {
	// AnswerDelay is how long each sendTransaction waits for its answer; the
	// transaction waits for a block already.
	AnswerDelay time.Duration `json:"answer_delay_ns"`
	// HoldSlots keeps each new transaction waiting for so many more slots.
	HoldSlots int64 `json:"hold_slots"`
	// BehindBlocks lets reads and preflights see the chain as it was so many blocks
	// ago, and getHealth say so.
	BehindBlocks int `json:"behind_blocks"`
	// DropNext transactions are accepted and then never executed.
	DropNext int `json:"drop_next"`
	// BusyNext transactions are refused, because the node is behind, and not judged.
	BusyNext int `json:"busy_next"`
	// LoseNext transactions are accepted and the connection is then cut, so that the
	// caller does not know the outcome.
	LoseNext int `json:"lose_next"`
	// FailNext transactions that would succeed fail in a block: they pay the fee and
	// do nothing else.
	FailNext int `json:"fail_next"`
}

const (
	maxAnswerDelay  = 10 * time.Minute
	maxHoldSlots    = 30_000
	maxFaultCount   = 1_000_000
	maxBlocksAtOnce = 10_000
	maxSkippedSlots = 1_000_000
)

func (f *Faults) validate() error {
	for _, c := range []struct {
		field   string
		n, most int
	}{
		{"drop_next", f.DropNext, maxFaultCount},
		{"busy_next", f.BusyNext, maxFaultCount},
		{"lose_next", f.LoseNext, maxFaultCount},
		{"fail_next", f.FailNext, maxFaultCount},
		{"behind_blocks", f.BehindBlocks, maxBehind},
		{"hold_slots", int(f.HoldSlots), maxHoldSlots},
	} {
		if c.n < 0 || c.n > c.most {
			return fmt.Errorf("%s: want 0 to %d", c.field, c.most)
		}
	}
	if f.AnswerDelay < 0 || f.AnswerDelay > maxAnswerDelay {
		return fmt.Errorf("answer_delay_ns: want 0 to %s", maxAnswerDelay)
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

// busy reports whether the next transaction is to be refused.
func (f *faultSwitches) busy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return countDown(&f.BusyNext)
}

// outcome is what the switches do to a transaction that was accepted.
type outcome struct {
	drop, lose, fail bool
	hold             uint64
	delay            time.Duration
}

func (f *faultSwitches) judge() outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	return outcome{
		drop: countDown(&f.DropNext), lose: countDown(&f.LoseNext), fail: countDown(&f.FailNext),
		hold: uint64(f.HoldSlots), delay: f.AnswerDelay,
	}
}

// accept lets a client's transaction wait for a block, unless the switches say
// otherwise. One that the node has or had already uses no switch up.
func (n *Node) accept(tx *svm.Transaction) outcome {
	l := n.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pool.known[tx.ID()] || l.bySignature[tx.ID()] != nil {
		return outcome{}
	}
	outcome := n.faults.judge()
	switch {
	case outcome.drop:
		n.log.Info("transaction dropped on purpose", "signature", tx.ID())
	case !l.pool.add(&pooled{tx: tx, forced: outcome.fail, notBefore: l.nextSlot + outcome.hold}):
		n.log.Warn("transaction dropped: too many wait", "signature", tx.ID())
	}
	return outcome
}

// SetFaults replaces all fault switches.
func (n *Node) SetFaults(f Faults) error {
	if err := f.validate(); err != nil {
		return fmt.Errorf("solana: %w", err)
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
// free, slots running.
func (n *Node) ResetFaults() {
	_ = n.SetFaults(Faults{}) // the zero value is valid
	n.ledger.mu.Lock()
	for _, p := range n.ledger.pool.waiting {
		p.notBefore = 0
	}
	n.ledger.mu.Unlock()
	n.Resume()
}

// Block is a block as the controls report it.
type Block struct {
	Slot         uint64             `json:"slot"`
	Height       uint64             `json:"height"`
	Hash         solana.Hash        `json:"blockhash"`
	Time         time.Time          `json:"time"`
	Transactions []solana.Signature `json:"transactions"`
}

// report describes the block at a height.
func (l *ledger) report(height uint64) Block {
	h := l.headers[height]
	out := Block{Slot: h.slot, Height: height, Hash: h.hash, Time: time.UnixMilli(h.stamp).UTC(), Transactions: []solana.Signature{}}
	for _, e := range l.blocks[h.slot] {
		out.Transactions = append(out.Transactions, e.tx.ID())
	}
	return out
}

// ProduceBlock makes one block of the waiting transactions now.
func (n *Node) ProduceBlock() (Block, error) {
	n.ledger.mu.Lock()
	defer n.ledger.mu.Unlock()
	if err := n.ledger.produce(false); err != nil {
		return Block{}, fmt.Errorf("solana: produce a block: %w", err)
	}
	n.hub.notify(n.ledger)
	return n.ledger.report(n.ledger.height()), nil
}

// ProduceBlocks makes count blocks now and returns the last.
func (n *Node) ProduceBlocks(count int) (last Block, err error) {
	if count < 1 || count > maxBlocksAtOnce {
		return Block{}, fmt.Errorf("solana: produce %d blocks: want 1 to %d", count, maxBlocksAtOnce)
	}
	for range count {
		if last, err = n.ProduceBlock(); err != nil {
			return Block{}, err
		}
	}
	return last, nil
}

// Finalise makes as many blocks as it takes for the present head to be final.
func (n *Node) Finalise() (Block, error) {
	n.ledger.mu.RLock()
	depth := n.ledger.rootDepth
	n.ledger.mu.RUnlock()
	return n.ProduceBlocks(int(depth))
}

// SkipSlots leaves the next slots without a block.
func (n *Node) SkipSlots(count int) error {
	if count < 1 || count > maxSkippedSlots {
		return fmt.Errorf("solana: skip %d slots: want 1 to %d", count, maxSkippedSlots)
	}
	n.ledger.mu.Lock()
	defer n.ledger.mu.Unlock()
	n.ledger.nextSlot += uint64(count)
	return nil
}

// Head and Final are the newest and the newest final block.
func (n *Node) Head() Block  { return n.topBlock(processed) }
func (n *Node) Final() Block { return n.topBlock(finalized) }

func (n *Node) topBlock(c commitment) Block {
	n.ledger.mu.RLock()
	defer n.ledger.mu.RUnlock()
	return n.ledger.report(n.ledger.heightAt(c))
}

// SetSlotInterval changes the time between slots; zero stops them.
func (n *Node) SetSlotInterval(d time.Duration) error {
	if err := checkInterval(d); err != nil {
		return fmt.Errorf("solana: slot interval: %w", err)
	}
	n.rhythm.SetInterval(d)
	return nil
}

// SetFinality changes how many blocks stand on a confirmed and on a final one.
// What is final already stays so.
func (n *Node) SetFinality(confirm, final int) error {
	if err := checkDepths(confirm, final); err != nil {
		return fmt.Errorf("solana: %w", err)
	}
	n.ledger.mu.Lock()
	defer n.ledger.mu.Unlock()
	n.ledger.confirmDepth, n.ledger.rootDepth = uint64(confirm), uint64(final)
	return nil
}

// Pause stops the slots; ProduceBlock still works.
func (n *Node) Pause() { n.rhythm.Pause() }

// Resume undoes Pause.
func (n *Node) Resume() { n.rhythm.Resume() }

// AdvanceTime moves the clock that dates blocks. It does not survive a restart;
// the blocks' times do. Block hashes age by blocks, not by this clock.
func (n *Node) AdvanceTime(d time.Duration) error {
	if err := n.clock.Advance(d); err != nil {
		return fmt.Errorf("solana: %w", err)
	}
	return nil
}

// Reorganise leaves the newest depth blocks, none of them final, for another fork.
// Their transactions wait again unless drop is set; then they are as if never
// sent. The new fork starts with one empty block in a later slot.
func (n *Node) Reorganise(depth int, drop bool) error {
	n.ledger.mu.Lock()
	defer n.ledger.mu.Unlock()
	if err := n.ledger.reorganise(depth, drop); err != nil {
		return fmt.Errorf("solana: %w", err)
	}
	n.hub.notify(n.ledger)
	n.log.Info("reorganised", "blocks", depth, "dropped", drop, "slot", n.ledger.head().slot)
	return nil
}

// errNoProgram says why tokens can't be moved.
var errNoProgram = errors.New("this node was started without the token programs")
