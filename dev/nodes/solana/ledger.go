package solana

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sort"
	"sync"
	"time"

	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/journal"
	"kivuko/dev/nodes/solana/svm"
)

const (
	// slotsPerEpoch is the main network's.
	slotsPerEpoch = 432_000
	// maxBlockUnits is the main network's limit of compute units in a block (SIMD-0256).
	maxBlockUnits = 60_000_000
	// maxBehind bounds how far a fault can put a node behind. Versions of accounts
	// are kept that long beyond finality.
	maxBehind = 300
)

// commitment says how sure a caller wants to be of what it reads.
type commitment string

const (
	processed commitment = "processed"
	confirmed commitment = "confirmed"
	finalized commitment = "finalized"
)

// header is a block without its transactions. Its height is its place in the
// ledger's list: skipped slots have no height.
type header struct {
	slot  uint64
	stamp int64 // milliseconds of the Unix clock
	hash  solana.Hash
	total uint64 // transactions up to here
}

func (h header) unix() int64 { return h.stamp / int64(time.Second/time.Millisecond) }

// entry is a transaction that is in a block.
type entry struct {
	tx           *svm.Transaction
	result       svm.Result // without Changed and Touched
	forced       bool
	slot, height uint64
	index        int
	time         int64
}

// ledger is the chain of blocks with their state, and the transactions that wait.
type ledger struct {
	mu      sync.RWMutex
	log     *slog.Logger
	now     func() time.Time
	machine *svm.Machine
	journal *journal.Journal // nil in memory

	headers     []header // the present fork, genesis first
	blocks      map[uint64][]*entry
	accounts    accounts
	bySignature map[solana.Signature]*entry
	byAddress   map[solana.PublicKey][]*entry // oldest first
	pool        pool

	nextSlot                uint64 // no fork has used it
	confirmed, root         uint64 // heights
	confirmDepth, rootDepth uint64
	skipEvery               uint64
}

func newLedger(log *slog.Logger, now func() time.Time, machine *svm.Machine) *ledger {
	genesis := header{hash: GenesisHash(), stamp: genesisTime().UnixMilli()}
	l := &ledger{
		log: log, now: now, machine: machine, headers: []header{genesis}, nextSlot: 1,
		blocks: map[uint64][]*entry{}, accounts: accounts{}, pool: newPool(),
		bySignature: map[solana.Signature]*entry{}, byAddress: map[solana.PublicKey][]*entry{},
	}
	for _, part := range []map[solana.PublicKey]svm.Account{machine.Genesis(), genesisAccounts()} {
		for address, account := range part {
			l.accounts.put(address, 0, 0, account)
		}
	}
	return l
}

func (l *ledger) height() uint64 { return uint64(len(l.headers) - 1) }

func (l *ledger) head() header { return l.headers[l.height()] }

// heightAt is the height of the newest block of a commitment.
func (l *ledger) heightAt(c commitment) uint64 {
	switch c {
	case processed:
		return l.height()
	case confirmed:
		return l.confirmed
	case finalized:
	}
	return l.root
}

// commitmentOf is how sure a block of the present fork is.
func (l *ledger) commitmentOf(height uint64) commitment {
	switch {
	case height <= l.root:
		return finalized
	case height <= l.confirmed:
		return confirmed
	}
	return processed
}

// find is the height of the block in a slot.
func (l *ledger) find(slot uint64) (uint64, bool) {
	i := sort.Search(len(l.headers), func(i int) bool { return l.headers[i].slot >= slot })
	return uint64(i), i < len(l.headers) && l.headers[i].slot == slot
}

// epochStart is when the first block of a slot's epoch was made.
func (l *ledger) epochStart(slot uint64, fallback int64) int64 {
	first := slot - slot%slotsPerEpoch
	i := sort.Search(len(l.headers), func(i int) bool { return l.headers[i].slot >= first })
	if i == len(l.headers) {
		return fallback
	}
	return l.headers[i].unix()
}

// context is what a transaction sees in a block that stands on the one at parent.
func (l *ledger) context(parent, height uint64, at header) svm.Block {
	return svm.Block{
		Slot: at.slot, Height: height, Epoch: at.slot / slotsPerEpoch,
		EpochStart: l.epochStart(at.slot, at.unix()), UnixTime: at.unix(),
		LastBlockhash: l.headers[parent].hash,
		SlotHashes:    func() []svm.SlotHash { return l.slotHashes(at.slot, parent) },
		AgeOf:         func(hash solana.Hash) (uint64, bool) { return l.age(hash, parent) },
		Processed: func(signature solana.Signature) bool {
			e := l.bySignature[signature]
			return e != nil && e.height <= height
		},
	}
}

// slotHashes are the slots before one that have a block, newest first, from the block at a height on.
func (l *ledger) slotHashes(slot, height uint64) []svm.SlotHash {
	const most = 512
	var out []svm.SlotHash
	for i := int(height); i >= 0 && len(out) < most; i-- {
		if h := l.headers[i]; h.slot < slot {
			out = append(out, svm.SlotHash{Slot: h.slot, Hash: h.hash})
		}
	}
	return out
}

// age is how many blocks a block hash is older than the block at a height. Hashes
// that no transaction may name any more are not known.
func (l *ledger) age(hash solana.Hash, height uint64) (uint64, bool) {
	for age := uint64(0); age <= min(svm.MaxAge, height); age++ {
		if l.headers[height-age].hash == hash {
			return age, true
		}
	}
	return 0, false
}

// working is the state while a block is being made.
type working struct {
	*ledger
	slot uint64
}

// Account is what svm.Accounts asks for.
func (w working) Account(address solana.PublicKey) (svm.Account, bool) {
	return w.accounts.at(address, w.slot)
}

// produce makes one block of the waiting transactions; with empty set it leaves
// them waiting.
func (l *ledger) produce(empty bool) error {
	next := header{slot: l.nextSlot, stamp: max(l.head().stamp, l.now().UnixMilli())}
	if l.skipEvery > 0 && next.slot%l.skipEvery == 0 {
		next.slot++
	}
	record := blockRecord{Slot: next.slot, Stamp: next.stamp}
	var entries []*entry
	var rest []*pooled
	if empty {
		rest = l.pool.waiting
	} else {
		entries, rest = l.pack(next, &record)
	}
	l.commitments(l.height()+1, &record)
	if err := l.write(recordBlock, &record); err != nil {
		for _, e := range entries {
			l.undo(e, l.head().slot)
		}
		return err
	}
	l.pool.replace(rest)
	l.connect(next, record, entries)
	return nil
}

// pack executes the waiting transactions, first come, first served. One that is
// rejected is forgotten, as a cluster forgets it.
func (l *ledger) pack(next header, record *blockRecord) (entries []*entry, rest []*pooled) {
	height := l.height() + 1
	context := l.context(height-1, height, next)
	var units uint64
	for _, p := range l.pool.waiting {
		if p.notBefore > next.slot || units > maxBlockUnits {
			rest = append(rest, p)
			continue
		}
		result := l.machine.Execute(p.tx, context, working{l, next.slot})
		if p.forced {
			result = forceFailure(p.tx, result)
		}
		if result.Outcome == svm.Rejected {
			l.log.Info("transaction rejected", "signature", p.tx.ID(), "reason", result.Err)
			continue
		}
		units += result.Units
		e := &entry{tx: p.tx.WithLoaded(result.Loaded), forced: p.forced, result: result, slot: next.slot, height: height, index: len(entries), time: next.unix()}
		record.Transactions = append(record.Transactions, recordOf(e))
		l.apply(e)
		entries = append(entries, e)
	}
	return entries, rest
}

// apply writes what a transaction changed and indexes it.
func (l *ledger) apply(e *entry) {
	floor := l.headers[l.root-min(l.root, maxBehind)].slot
	for address, account := range e.result.Changed {
		l.accounts.put(address, e.slot, floor, account)
	}
	e.result.Changed, e.result.Touched = nil, nil
	l.bySignature[e.tx.ID()] = e
	for _, address := range e.tx.Keys() {
		l.byAddress[address] = append(l.byAddress[address], e)
	}
}

// undo takes back what a transaction of a block after keep did.
func (l *ledger) undo(e *entry, keep uint64) {
	delete(l.bySignature, e.tx.ID())
	for _, address := range e.tx.Keys() {
		l.accounts.cut(address, keep)
		list := l.byAddress[address]
		for len(list) > 0 && list[len(list)-1].slot > keep {
			list = list[:len(list)-1]
		}
		if len(list) == 0 {
			delete(l.byAddress, address)
			continue
		}
		l.byAddress[address] = list
	}
}

// commitments notes how far confirmation and finality reach with a block of a
// height. They are part of the record: they hold whatever depths the node is told
// later.
func (l *ledger) commitments(height uint64, record *blockRecord) {
	record.Root = max(l.root, height-min(height, l.rootDepth))
	record.Confirmed = max(l.confirmed, record.Root, height-min(height, l.confirmDepth))
}

// connect makes a block whose transactions are applied the new head.
func (l *ledger) connect(next header, record blockRecord, entries []*entry) {
	next.hash = blockHash(l.head().hash, next, entries)
	next.total = l.head().total + uint64(len(entries))
	l.headers = append(l.headers, next)
	if len(entries) > 0 {
		l.blocks[next.slot] = entries
	}
	l.nextSlot = next.slot + 1
	l.root, l.confirmed = record.Root, record.Confirmed
}

// blockHash follows from the block: its parent, slot, time and transactions.
func blockHash(parent solana.Hash, h header, entries []*entry) solana.Hash {
	sum := sha256.New()
	sum.Write(parent[:])
	var numbers [16]byte
	binary.LittleEndian.PutUint64(numbers[:], h.slot)
	binary.LittleEndian.PutUint64(numbers[8:], uint64(h.stamp))
	sum.Write(numbers[:])
	for _, e := range entries {
		signature := e.tx.ID()
		sum.Write(signature[:])
	}
	return solana.Hash(sum.Sum(nil))
}

// reorganise leaves the newest blocks for another fork, which begins with one
// empty block in a later slot: block heights go back, as they do on a cluster. The
// transactions wait again, or vanish.
func (l *ledger) reorganise(depth int, drop bool) error {
	if final := l.height() - l.root; depth < 1 || uint64(depth) > final {
		return fmt.Errorf("reorganise %d blocks: want 1 to %d, because block height %d is final", depth, final, l.root)
	}
	if err := l.write(recordReorganise, &reorganisationRecord{Depth: depth}); err != nil {
		return err
	}
	lost := l.disconnect(depth)
	if !drop {
		l.pool.giveBack(lost)
	}
	return l.produce(true)
}

// disconnect forgets the newest blocks and returns their transactions in order.
func (l *ledger) disconnect(depth int) (lost []*entry) {
	kept := len(l.headers) - depth
	keep := l.headers[kept-1].slot
	for _, h := range l.headers[kept:] {
		lost = append(lost, l.blocks[h.slot]...)
		delete(l.blocks, h.slot)
	}
	for _, e := range lost {
		l.undo(e, keep)
	}
	l.headers = l.headers[:kept:kept]
	l.confirmed = min(l.confirmed, l.height())
	return lost
}
