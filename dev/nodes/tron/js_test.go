package tron

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestConformanceTronWeb drives a node with a client that others wrote.
func TestConformanceTronWeb(t *testing.T) {
	peers := os.Getenv("KIVUKO_TRONWEB")
	if peers == "" {
		t.Skip("tronweb is run by `make conformance`, which fetches it")
	}
	b := newBench(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "node", "js/e2e.mjs", "http://"+b.HTTPAddr(), "http://"+b.ControlAddr(), peers).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
