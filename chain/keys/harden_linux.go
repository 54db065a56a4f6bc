package keys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// HardenProcess keeps keys out of core dumps and away from debuggers of the same user. A signing process calls it first.
func HardenProcess() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("keys: core dumps can't be turned off: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keys: the process can't be made undumpable: %w", err)
	}
	return nil
}
