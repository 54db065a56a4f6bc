package solana

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"kivuko/dev/nodes/solana/programs/programstest"
)

// clients are the packages of the two JavaScript clients and of the one for tokens.
var clients = []string{"@solana/web3.js@1.98.4", "@solana/spl-token@0.4.15", "@solana/kit@8.4.0"}

// TestConformanceJavaScript drives a node with clients that others wrote.
func TestConformanceJavaScript(t *testing.T) {
	if os.Getenv("KIVUKO_PEERS") == "" {
		t.Skip("the clients from npm are run by `make conformance`, which sets KIVUKO_PEERS=1")
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the clients need %s, which is not on this machine", tool)
		}
	}
	// web3.js keeps a block hash for 30 seconds, and a hash is good for 150 blocks.
	b := startBench(t, Config{Programs: programstest.Set(t), SlotInterval: 250 * time.Millisecond})
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", append([]string{
		"install", "--silent", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix", dir,
	}, clients...)...)
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm can't fetch the clients: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(ctx, "node", "js/e2e.mjs", "http://"+b.RPCAddr(), "ws://"+b.WSAddr(), dir).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
