package svm

import "fmt"

// maxLogBytes is the most that the logs of a transaction hold.
const maxLogBytes = 10_000

// logs collects the lines of one transaction.
type logs struct {
	lines []string
	bytes int
	full  bool
}

func (l *logs) add(format string, args ...any) {
	if l.full {
		return
	}
	line := fmt.Sprintf(format, args...)
	if l.bytes+len(line) >= maxLogBytes {
		l.full = true
		l.lines = append(l.lines, "Log truncated")
		return
	}
	l.bytes += len(line)
	l.lines = append(l.lines, line)
}
