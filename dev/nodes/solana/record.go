package solana

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"kivuko/dev/nodes/journal"
	"kivuko/dev/nodes/solana/svm"
)

// The journal holds a body for each event of the chain: a letter, then JSON. A
// transaction's record has everything that it did, so that a restart executes
// nothing and gives the same chain whatever programs the node has by then.
const (
	fileName         = "slots.kivuko"
	fileFormat       = "KIVUKOSOLANA1"
	recordBlock      = 'B'
	recordReorganise = 'R'
)

type blockRecord struct {
	Slot         uint64              `json:"slot"`
	Stamp        int64               `json:"ms"`
	Root         uint64              `json:"root,omitempty"`
	Confirmed    uint64              `json:"confirmed,omitempty"`
	Transactions []transactionRecord `json:"transactions,omitempty"`
}

type transactionRecord struct {
	Wire []byte `json:"wire"`
	// Err stands for the result's own, which can be written as JSON and not read.
	Err    *errorRecord `json:"Err,omitempty"`
	Forced bool         `json:"forced,omitempty"`
	svm.Result
}

type errorRecord struct {
	Kind        string
	Index       int
	Instruction *instructionErrorRecord
}

type instructionErrorRecord svm.InstructionError

type reorganisationRecord struct {
	Depth int `json:"depth"`
}

// recordOf is called before the changes are taken out of the entry.
func recordOf(e *entry) transactionRecord {
	r := transactionRecord{Wire: e.tx.Wire(), Forced: e.forced, Result: e.result}
	r.Touched, r.Result.Err = nil, nil
	if err := e.result.Err; err != nil {
		r.Err = &errorRecord{Kind: err.Kind, Index: err.Index, Instruction: (*instructionErrorRecord)(err.Instruction)}
	}
	return r
}

// write appends a record, if there is a journal.
func (l *ledger) write(kind byte, record any) error {
	if l.journal == nil {
		return nil
	}
	raw, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode a record of the journal: %w", err)
	}
	return l.journal.Append(append([]byte{kind}, raw...))
}

// openJournal replays what the directory holds and keeps on writing there.
func (l *ledger) openJournal(dir string) error {
	j, err := journal.Open(filepath.Join(dir, fileName), journal.Identity{Format: fileFormat, ID: GenesisHash()}, l.replay, l.log)
	if err != nil {
		return err
	}
	l.journal = j
	return nil
}

func (l *ledger) replay(body []byte) error {
	switch body[0] {
	case recordBlock:
		var record blockRecord
		if err := json.Unmarshal(body[1:], &record); err != nil {
			return fmt.Errorf("parse a block: %w", err)
		}
		return l.replayBlock(record)
	case recordReorganise:
		var record reorganisationRecord
		if err := json.Unmarshal(body[1:], &record); err != nil {
			return fmt.Errorf("parse a reorganisation: %w", err)
		}
		if record.Depth < 1 || uint64(record.Depth) > l.height()-l.root {
			return fmt.Errorf("a reorganisation of %d blocks reaches a final one", record.Depth)
		}
		l.disconnect(record.Depth)
		return nil
	}
	return fmt.Errorf("unknown kind of record %q", body[0])
}

func (l *ledger) replayBlock(record blockRecord) error {
	next := header{slot: record.Slot, stamp: record.Stamp}
	height := l.height() + 1
	if next.slot < l.nextSlot || record.Root > height || record.Confirmed > height || record.Root < l.root {
		return errors.New("a block that does not follow the one before it")
	}
	var entries []*entry
	for i, t := range record.Transactions {
		tx, err := svm.Decode(t.Wire)
		if err != nil {
			return fmt.Errorf("transaction %d of slot %d: %w", i, record.Slot, err)
		}
		e := &entry{
			tx: tx.WithLoaded(t.Loaded), result: t.Result, forced: t.Forced,
			slot: next.slot, height: height, index: i, time: next.unix(),
		}
		if t.Err != nil {
			e.result.Err = &svm.TransactionError{
				Kind: t.Err.Kind, Index: t.Err.Index, Instruction: (*svm.InstructionError)(t.Err.Instruction),
			}
		}
		l.apply(e)
		entries = append(entries, e)
	}
	l.connect(next, record, entries)
	return nil
}
