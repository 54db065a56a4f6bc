//go:build unix && !linux

package keys

import (
	"fmt"
	"syscall"
)

// HardenProcess turns core dumps off. Only Linux can also keep debuggers away.
func HardenProcess() error {
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("keys: core dumps can't be turned off: %w", err)
	}
	return nil
}
