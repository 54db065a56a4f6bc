package tron

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"

	"kivuko/dev/nodes/journal"
)

// The records of the block file, whose frame is the journal's:
//
//	'B', uvarint length of marks, marks (JSON), core.Block (protobuf)
//	'R', uvarint number of blocks a reorganisation took away
//
// Replaying them in order repeats the chain's history, the lost branches included, so
// solidity never goes backwards over a restart.
const (
	fileName         = "blocks.kivuko"
	fileFormat       = "KIVUKOTRON1"
	recordBlock      = 'B'
	recordReorganise = 'R'
)

// blockFile is the open, locked block file.
type blockFile struct{ *journal.Journal }

// replayer takes the records of a block file in order.
type replayer interface {
	replayBlock(*core.Block, *effects) error
	replayReorganisation(depth int) error
}

// openBlockFile opens or makes the file in dir, replays it and leaves it ready
// for appending. One process at a time may have it open.
func openBlockFile(dir string, genesis Hash, to replayer, log *slog.Logger) (*blockFile, error) {
	replay := func(body []byte) error { return replayRecord(body, to) }
	j, err := journal.Open(filepath.Join(dir, fileName), journal.Identity{Format: fileFormat, ID: genesis}, replay, log)
	if err != nil {
		return nil, err
	}
	return &blockFile{j}, nil
}

func replayRecord(body []byte, to replayer) error {
	number, n := binary.Uvarint(body[1:])
	if n <= 0 {
		return errors.New("malformed record")
	}
	rest := body[1+n:]
	switch body[0] {
	case recordReorganise:
		return to.replayReorganisation(int(number))
	case recordBlock:
		if number > uint64(len(rest)) {
			return errors.New("malformed block record")
		}
		marks := &effects{}
		if err := json.Unmarshal(rest[:number], marks); err != nil {
			return fmt.Errorf("parse marks: %w", err)
		}
		b := &core.Block{}
		if err := proto.Unmarshal(rest[number:], b); err != nil {
			return fmt.Errorf("parse block: %w", err)
		}
		return to.replayBlock(b, marks)
	}
	return fmt.Errorf("unknown record kind %q", body[0])
}

func (f *blockFile) appendBlock(b *core.Block, marks *effects) error {
	m, err := json.Marshal(marks)
	if err != nil {
		return fmt.Errorf("encode marks: %w", err)
	}
	body := binary.AppendUvarint([]byte{recordBlock}, uint64(len(m)))
	return f.Append(append(append(body, m...), encode(b)...))
}

func (f *blockFile) appendReorganisation(depth int) error {
	return f.Append(binary.AppendUvarint([]byte{recordReorganise}, uint64(depth)))
}
