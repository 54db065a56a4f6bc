package svm

import "fmt"

// maxLogBytes is the most that the logs of a transaction hold.
const maxLogBytes = 10_000

// logs collects the lines of one transaction. A line that doesn't fit is left out,
// which is said once; shorter ones after it may still fit.
type logs struct {
	lines     []string
	bytes     int
	truncated bool
}

func (l *logs) add(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if l.bytes+len(line) < maxLogBytes {
		l.bytes += len(line)
		l.lines = append(l.lines, line)
		return
	}
	if !l.truncated {
		l.truncated = true
		l.lines = append(l.lines, "Log truncated")
	}
}
