package keys

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHardenProcess(t *testing.T) {
	const marker = "KIVUKO_TEST_HARDEN"
	if os.Getenv(marker) == "" { // in a separate process, because it can't be undone
		cmd := exec.Command(os.Args[0], "-test.run=^TestHardenProcess$", "-test.v")
		cmd.Env = append(os.Environ(), marker+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := HardenProcess(); err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil || limit.Cur != 0 || limit.Max != 0 {
		t.Errorf("core limit %+v, %v", limit, err)
	}
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil || dumpable != 0 {
		t.Errorf("dumpable %d, %v", dumpable, err)
	}
}
