package ethereum

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"
)

// childVariable makes this test binary a node on the data directory that it names.
const childVariable = "KIVUKO_TEST_ETHEREUM_CHILD"

func TestMain(m *testing.M) {
	dir := os.Getenv(childVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	err := Run(context.Background(), Config{DataDir: dir, SafeDepth: 2, FinalDepth: 4, Log: slog.New(slog.DiscardHandler)}, os.Stdout)
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// child is a node in a process of its own.
type child struct {
	t       *testing.T
	process *exec.Cmd
	rpc     string
	control string
}

func startChild(t *testing.T, dir string) *child {
	t.Helper()
	c := &child{t: t, process: exec.CommandContext(context.Background(), os.Args[0])}
	c.process.Env = append(os.Environ(), childVariable+"="+dir)
	c.process.Stderr = os.Stderr
	out, err := c.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the node did not start: %v", err)
	}
	for _, field := range strings.Fields(line) {
		switch name, value, _ := strings.Cut(field, "="); name {
		case "rpc":
			c.rpc = value
		case "control":
			c.control = value
		}
	}
	return c
}

// kill gives the node no chance to write anything.
func (c *child) kill() {
	_ = c.process.Process.Kill() // a second time it is gone already
	_ = c.process.Wait()         // ends by the signal
}

func (c *child) post(path, body string, out any) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.control+path, bytes.NewBufferString(body))
	if err != nil {
		c.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %s", path, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) state() Summary {
	c.t.Helper()
	var s Summary
	c.post("/resume", "", &s)
	return s
}

// A killed node comes back with every block that it made, the last one included, and goes on.
func TestSurvivesAKill(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), stranger(t)
	var paid []common.Hash
	var before Summary
	const lives = 3
	for life := range lives {
		c := startChild(t, dir)
		if after := c.state(); life > 0 && (after.Head.ID != before.Head.ID || after.Final.ID != before.Final.ID) {
			t.Fatalf("life %d: head %+v final %+v, before the kill head %+v final %+v", life, after.Head, after.Final, before.Head, before.Final)
		}
		var made struct{ Transaction common.Hash }
		c.post("/fund", fmt.Sprintf(`{"address":%q,"token":"USDT","amount":"5"}`, to), &made)
		paid = append(paid, made.Transaction)
		var last Block
		c.post("/mine", `{"blocks":17}`, &last)
		before = c.state()
		if before.Head.ID != last.ID {
			t.Fatalf("head %+v, mined %+v", before.Head, last)
		}
		node, err := ethclient.Dial(c.rpc)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range paid {
			if r, err := node.TransactionReceipt(t.Context(), id); err != nil || r.Status != 1 {
				t.Errorf("life %d: payment %s: %v", life, id, err)
			}
		}
		node.Close()
		c.kill()
	}
}
