// Package journal keeps records in one file that is only ever appended to, so that
// a development node finds its chain again after any end of its process.
package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
)

// A journal is a header, then records:
//
//	header  a line of text that names the format, and the 32-byte id of what is kept
//	record  length of the body, CRC-32C of the body, CRC-32C of these eight bytes
//	        (big-endian uint32 each), body
//
// A last record that a crash cut short, or left as zeros, is truncated; any other
// damage is an error. The file is written without fsync: it survives the process,
// and a crash of the machine costs at most the newest records.
const (
	idBytes         = 32
	recordHeadBytes = 12
	// MaxRecordBytes is the longest record.
	MaxRecordBytes = 64 << 20
	readBuffer     = 1 << 20
	dirMode        = 0o755
	fileMode       = 0o644
)

// ErrOtherChain is that the file belongs to something else than was asked for.
var ErrOtherChain = errors.New("it belongs to another chain: use another data directory")

// Identity says what a file holds.
type Identity struct {
	// Format names the kind of file and its version. It has no line break.
	Format string
	// ID is of the one thing that is kept: a genesis hash.
	ID [idBytes]byte
}

func (i Identity) header() []byte { return append([]byte(i.Format+"\n"), i.ID[:]...) }

// Journal is an open, locked journal.
type Journal struct {
	file *os.File
	end  int64 // where the next record goes
}

// Open opens or makes the file, gives its records to replay in order and leaves it
// ready for appending. One process at a time may have it open. A record that
// replay refuses is an error.
func Open(path string, of Identity, replay func(body []byte) error, log *slog.Logger) (*Journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	j := &Journal{file: file}
	if err := j.open(of, replay, log); err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(err, file.Close()))
	}
	return j, nil
}

func (j *Journal) open(of Identity, replay func([]byte) error, log *slog.Logger) error {
	if err := syscall.Flock(int(j.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock: another node is using it: %w", err)
	}
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	header := of.header()
	if info.Size() < int64(len(header)) { // new, or cut short before it held anything
		if err := j.file.Truncate(0); err != nil {
			return err
		}
		j.end = int64(len(header))
		_, err := j.file.WriteAt(header, 0)
		return err
	}
	if err := j.checkHeader(of); err != nil {
		return err
	}
	return j.replay(int64(len(header)), info.Size(), replay, log)
}

func (j *Journal) checkHeader(of Identity) error {
	want := of.header()
	got := make([]byte, len(want))
	if _, err := j.file.ReadAt(got, 0); err != nil {
		return fmt.Errorf("read the header: %w", err)
	}
	if text := len(want) - idBytes; string(got[:text]) != string(want[:text]) {
		return fmt.Errorf("not a file of the format %s", of.Format)
	}
	if string(got) != string(want) {
		return ErrOtherChain
	}
	return nil
}

func (j *Journal) replay(from, size int64, replay func([]byte) error, log *slog.Logger) error {
	j.end = from
	in := bufio.NewReaderSize(io.NewSectionReader(j.file, from, size-from), readBuffer)
	for j.end < size {
		body, err := readRecord(in, size-j.end)
		if errors.Is(err, errTorn) {
			log.Warn("the journal ends in a torn record, truncating it", "at", j.end, "lost_bytes", size-j.end)
			break
		}
		if err == nil {
			err = replay(body)
		}
		if err != nil {
			return fmt.Errorf("record at byte %d: %w", j.end, err)
		}
		j.end += int64(recordHeadBytes + len(body))
	}
	return j.file.Truncate(j.end)
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
	if checksum(head[:8]) != binary.BigEndian.Uint32(head[8:]) {
		return nil, zerosOrDamage(head[:], in)
	}
	if length > left-recordHeadBytes {
		return nil, errTorn
	}
	if length == 0 || length > MaxRecordBytes {
		return nil, fmt.Errorf("length %d is not within 1 to %d bytes", length, MaxRecordBytes)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(in, body); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if checksum(body) == sum {
		return body, nil
	}
	if length == left-recordHeadBytes {
		return nil, errTorn
	}
	return nil, errDamaged
}

var errDamaged = errors.New("checksum does not match: the file is damaged")

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// zerosOrDamage judges what follows a head that is none: space a file system
// reserved and never filled is torn, anything else is damage.
func zerosOrDamage(head []byte, rest io.Reader) error {
	tail, err := io.ReadAll(rest)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	for _, b := range append(head, tail...) {
		if b != 0 {
			return errDamaged
		}
	}
	return errTorn
}

// Append writes one record with a single call. What a failed write left behind is
// overwritten by the next one and torn to a reader.
func (j *Journal) Append(body []byte) error {
	if len(body) == 0 || len(body) > MaxRecordBytes {
		return fmt.Errorf("append to the journal: a record of %d bytes, want 1 to %d", len(body), MaxRecordBytes)
	}
	record := make([]byte, recordHeadBytes, recordHeadBytes+len(body))
	binary.BigEndian.PutUint32(record[:4], uint32(len(body)))
	binary.BigEndian.PutUint32(record[4:], checksum(body))
	binary.BigEndian.PutUint32(record[8:], checksum(record[:8]))
	record = append(record, body...)
	if _, err := j.file.WriteAt(record, j.end); err != nil {
		return fmt.Errorf("append to the journal: %w", errors.Join(err, j.file.Truncate(j.end)))
	}
	j.end += int64(len(record))
	return nil
}

// Close writes everything to the disk and releases the file.
func (j *Journal) Close() error { return errors.Join(j.file.Sync(), j.file.Close()) }
