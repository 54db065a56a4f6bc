//go:build unix && !linux

package inspect

import (
	"fmt"
	"syscall"
)

// Confine limits the time of this process. Only Linux limits its memory so that a Go program still starts.
func Confine() error {
	const maxSeconds = 10
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: maxSeconds, Max: maxSeconds}); err != nil {
		return fmt.Errorf("inspect: time can't be limited: %w", err)
	}
	return nil
}
