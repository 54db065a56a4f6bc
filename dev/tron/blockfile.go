package tron

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
)

// The block file is a header, then records, only ever appended to:
//
//	header  "KIVUKOTRON1\n" and the 32-byte id of the genesis block
//	record  length of the body, CRC-32C of the body, CRC-32C of these eight bytes
//	        (big-endian uint32 each), body
//	body    'B', uvarint length of marks, marks (JSON), core.Block (protobuf)
//	        'R', uvarint number of blocks a reorganisation took away
//
// Replaying the records in order repeats the chain's history, the lost branches
// included, so solidity never goes backwards over a restart. A last record that
// a crash cut short, or left as zeros, is truncated; any other damage is an error.
const (
	fileName         = "blocks.kivuko"
	fileMagic        = "KIVUKOTRON1\n"
	fileHeaderBytes  = len(fileMagic) + 32
	recordHeadBytes  = 12
	maxRecordBytes   = 64 << 20
	recordBlock      = 'B'
	recordReorganise = 'R'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockFile is the open, locked block file.
type blockFile struct {
	file *os.File
	end  int64 // where the next record goes
}

// replayer takes the records of a block file in order.
type replayer interface {
	replayBlock(*core.Block, *effects) error
	replayReorganisation(depth int) error
}

// openBlockFile opens or makes the file in dir, replays it and leaves it ready
// for appending. One process at a time may have it open.
func openBlockFile(dir string, genesis Hash, to replayer, log *slog.Logger) (*blockFile, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, fileName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the block file: %w", err)
	}
	f := &blockFile{file: file}
	if err := f.open(genesis, to, log); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

func (f *blockFile) open(genesis Hash, to replayer, log *slog.Logger) error {
	if err := syscall.Flock(int(f.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock %s: another node is using it: %w", f.file.Name(), err)
	}
	info, err := f.file.Stat()
	if err != nil {
		return fmt.Errorf("stat the block file: %w", err)
	}
	if info.Size() < int64(fileHeaderBytes) { // new, or cut short before it held anything
		if err := f.file.Truncate(0); err != nil {
			return fmt.Errorf("empty the block file: %w", err)
		}
		f.end = int64(fileHeaderBytes)
		if _, err := f.file.WriteAt(append([]byte(fileMagic), genesis[:]...), 0); err != nil {
			return fmt.Errorf("write the block file's header: %w", err)
		}
		return nil
	}
	if err := f.checkHeader(genesis); err != nil {
		return err
	}
	return f.replay(info.Size(), to, log)
}

func (f *blockFile) checkHeader(genesis Hash) error {
	head := make([]byte, fileHeaderBytes)
	if _, err := f.file.ReadAt(head, 0); err != nil {
		return fmt.Errorf("read the block file's header: %w", err)
	}
	if string(head[:len(fileMagic)]) != fileMagic {
		return fmt.Errorf("%s is not a block file", f.file.Name())
	}
	if got := Hash(head[len(fileMagic):]); got != genesis {
		return fmt.Errorf("%s belongs to the chain of genesis %s, this node's is %s: use another data directory", f.file.Name(), got, genesis)
	}
	return nil
}

func (f *blockFile) replay(size int64, to replayer, log *slog.Logger) error {
	f.end = int64(fileHeaderBytes)
	in := bufio.NewReaderSize(io.NewSectionReader(f.file, f.end, size-f.end), 1<<20)
	for f.end < size {
		body, err := readRecord(in, size-f.end)
		if errors.Is(err, errTorn) {
			log.Warn("block file ends in a torn record, truncating it", "at", f.end, "lost_bytes", size-f.end)
			break
		}
		if err != nil {
			return fmt.Errorf("record at byte %d: %w", f.end, err)
		}
		if err := replayRecord(body, to); err != nil {
			return fmt.Errorf("replay the record at byte %d: %w", f.end, err)
		}
		f.end += int64(recordHeadBytes + len(body))
	}
	if err := f.file.Truncate(f.end); err != nil {
		return fmt.Errorf("truncate the block file: %w", err)
	}
	return nil
}

// errTorn marks the last record as not completely written.
var errTorn = errors.New("torn record")

// readRecord reads one record; left is how many bytes the file still has.
func readRecord(in io.Reader, left int64) ([]byte, error) {
	var head [recordHeadBytes]byte
	if left < recordHeadBytes {
		return nil, errTorn
	}
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	length, sum := int64(binary.BigEndian.Uint32(head[:4])), binary.BigEndian.Uint32(head[4:8])
	if crc32.Checksum(head[:8], castagnoli) != binary.BigEndian.Uint32(head[8:]) {
		return nil, zerosOrDamage(head[:], in)
	}
	if length > left-recordHeadBytes {
		return nil, errTorn
	}
	if length == 0 || length > maxRecordBytes {
		return nil, fmt.Errorf("length %d is not within 1 to %d bytes", length, maxRecordBytes)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(in, body); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if crc32.Checksum(body, castagnoli) == sum {
		return body, nil
	}
	if length == left-recordHeadBytes {
		return nil, errTorn
	}
	return nil, errors.New("checksum does not match: the file is damaged")
}

// zerosOrDamage judges what follows a head that is none: space a file system
// reserved and never filled is torn, anything else is damage.
func zerosOrDamage(head []byte, rest io.Reader) error {
	tail, err := io.ReadAll(rest)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	for _, b := range append(head, tail...) {
		if b != 0 {
			return errors.New("checksum does not match: the file is damaged")
		}
	}
	return errTorn
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
	return f.append(append(append(body, m...), encode(b)...))
}

func (f *blockFile) appendReorganisation(depth int) error {
	return f.append(binary.AppendUvarint([]byte{recordReorganise}, uint64(depth)))
}

// append writes one record with a single call. What a failed write left behind
// is overwritten by the next one and torn to a reader.
func (f *blockFile) append(body []byte) error {
	record := make([]byte, recordHeadBytes, recordHeadBytes+len(body))
	binary.BigEndian.PutUint32(record[:4], uint32(len(body)))
	binary.BigEndian.PutUint32(record[4:], crc32.Checksum(body, castagnoli))
	binary.BigEndian.PutUint32(record[8:], crc32.Checksum(record[:8], castagnoli))
	record = append(record, body...)
	if _, err := f.file.WriteAt(record, f.end); err != nil {
		return fmt.Errorf("write the block file: %w", errors.Join(err, f.file.Truncate(f.end)))
	}
	f.end += int64(len(record))
	return nil
}

func (f *blockFile) close() error {
	return errors.Join(f.file.Sync(), f.file.Close())
}
