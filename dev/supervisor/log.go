package supervisor

import (
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// maxLog is the size in bytes above which the log of earlier runs is renamed.
	maxLog = 16 << 20
	// maxTail is the number of bytes of a log that an error quotes.
	maxTail = 4 << 10
)

// openLog opens the log of a process for appending and returns the offset of its new
// part.
func openLog(dir, name string) (*os.File, int64, error) {
	path := logPath(dir, name)
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, 0, err
		}
	}
	const mode = 0o600
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, mode)
	if err != nil {
		return nil, 0, err
	}
	if _, err = fmt.Fprintf(f, "--- started %s\n", time.Now().UTC().Format(time.RFC3339)); err != nil {
		return nil, 0, err
	}
	offset, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, err
	}
	return f, offset, nil
}

// tail returns the end of the log's part after offset.
func tail(path string, offset int64) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if offset <= int64(len(raw)) {
		raw = raw[offset:]
	}
	if len(raw) > maxTail {
		raw = raw[len(raw)-maxTail:]
	}
	return string(raw)
}
