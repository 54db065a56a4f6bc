package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// programVariable turns this test binary into the program itself.
const programVariable = "WITH_POSTGRES_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program is with-postgres running the given shell script, without a server from outside.
func program(script string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.Command(os.Args[0], "--", "sh", "-c", script)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, urlVariable+"=") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, programVariable+"=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

func TestCommandGetsADatabaseAndItsExitCodeIsPassedOn(t *testing.T) {
	cmd, out := program(`case "$` + urlVariable + `" in postgres://kivuko:*@127.0.0.1:*/postgres*) exit 7;; esac; exit 1`)
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("exit code %d (%v): %s", cmd.ProcessState.ExitCode(), err, out)
	}
}

func TestMissingCommandIsAnError(t *testing.T) {
	cmd, out := program("")
	cmd.Args = []string{cmd.Args[0], "--", "no-such-command-anywhere"}
	if err := cmd.Run(); err == nil || !strings.Contains(out.String(), "no-such-command-anywhere") {
		t.Errorf("error %v, output %s", err, out)
	}
}

func TestServerOfTheEnvironmentIsUsed(t *testing.T) {
	cmd, out := program(`test "$` + urlVariable + `" = given`)
	cmd.Env = append(cmd.Env, urlVariable+"=given")
	if err := cmd.Run(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestSignalReachesTheCommand(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	cmd, out := program(`trap 'exit 9' TERM; : >` + ready + `; while :; do sleep 0.1; done`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Hour)
	for {
		if _, err := os.Stat(ready); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the command never ran: %s", out)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 9 {
		t.Errorf("exit code %d (%v): %s", cmd.ProcessState.ExitCode(), err, out)
	}
}
