package inspect

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of the checking process.
const (
	maxMemory  = 384 << 20 // bytes of data; the largest picture takes 240 MiB
	maxSeconds = 10        // of processor time
	maxOpen    = 0         // more files and connections
	priority   = 10        // behind everything else on the machine
)

// Confine limits this process before it reads a file: a fault or a trick ends it, and nothing else. From then on it opens no file and
// no connection, writes no file, and starts no program with more rights.
func Confine() error {
	<-time.After(time.Nanosecond) // the runtime's own files are opened for its first timer
	for name, limit := range map[string]struct {
		resource int
		most     uint64
	}{
		"memory": {unix.RLIMIT_DATA, maxMemory}, "time": {unix.RLIMIT_CPU, maxSeconds}, "open files": {unix.RLIMIT_NOFILE, maxOpen},
		"written files": {unix.RLIMIT_FSIZE, 0}, "core dumps": {unix.RLIMIT_CORE, 0},
	} {
		var now unix.Rlimit
		err := unix.Getrlimit(limit.resource, &now)
		if most := min(now.Max, limit.most); err == nil { // it may be limited further already
			err = unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: most, Max: most})
		}
		if err != nil {
			return fmt.Errorf("inspect: %s can't be limited: %w", name, err)
		}
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, priority); err != nil {
		return fmt.Errorf("inspect: the priority can't be lowered: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("inspect: new privileges can't be refused: %w", err)
	}
	return nil
}
