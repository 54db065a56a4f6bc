package solana

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"

	"kivuko/dev/nodes/journal"
)

// nodeDir, when set, makes the test binary a node on that directory.
const nodeDir = "KIVUKO_TEST_SOLANA_NODE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(nodeDir); dir != "" {
		cfg := Config{DataDir: dir, SlotInterval: 10 * time.Millisecond, Log: quiet()}
		if err := Run(context.Background(), cfg, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// reopen closes the node and starts another on the same directory.
func (b *bench) reopen(dir string) *bench {
	b.t.Helper()
	if err := b.Close(); err != nil {
		b.t.Fatal(err)
	}
	return startBench(b.t, Config{DataDir: dir})
}

// everything is what the RPC says about an address and its transactions.
func (b *bench) everything(address solana.PublicKey) []json.RawMessage {
	b.t.Helper()
	ask := func(method string, params ...any) json.RawMessage {
		return b.ask(method, params...).Result
	}
	out := []json.RawMessage{
		ask("getAccountInfo", address, object{"encoding": "base64", "commitment": "processed"}),
		ask("getAccountInfo", address, object{"encoding": "base64", "commitment": "finalized"}),
		ask("getSignaturesForAddress", address, object{"commitment": "confirmed"}),
		ask("getLatestBlockhash", object{"commitment": "confirmed"}),
		ask("getEpochInfo", object{"commitment": "finalized"}),
	}
	for _, t := range b.Transactions(address) {
		if t.Slot > 0 {
			out = append(out, ask("getTransaction", t.Signature, object{"commitment": "confirmed", "maxSupportedTransactionVersion": 0}),
				ask("getBlock", t.Slot, object{"commitment": "confirmed", "encoding": "base64", "maxSupportedTransactionVersion": 0}))
		}
	}
	return out
}

// eventful makes a chain that has seen successes, failures, a skipped slot, forks
// and a nonce.
func (b *bench) eventful() solana.PrivateKey {
	b.t.Helper()
	alice, bob, nonce := b.alice(), newActor("bob"), newActor("nonce")
	b.send(b.pay(alice, bob, sol))
	b.block()
	if err := b.SkipSlots(3); err != nil {
		b.t.Fatal(err)
	}
	b.blocks(DefaultFinalDepth)
	b.send(b.signed(b.latest(), []solana.Instruction{
		system.NewCreateAccountInstruction(sol, 80, solana.SystemProgramID, alice.PublicKey(), nonce.PublicKey()).Build(),
		system.NewInitializeNonceAccountInstruction(alice.PublicKey(), nonce.PublicKey(), solana.SysVarRecentBlockHashesPubkey, solana.SysVarRentPubkey).Build(),
	}, alice, nonce))
	b.block()
	if err := b.SetFaults(Faults{FailNext: 1}); err != nil {
		b.t.Fatal(err)
	}
	b.send(b.pay(alice, bob, 2*sol))
	b.block()
	b.send(b.pay(alice, bob, 3*sol))
	b.blocks(2)
	if err := b.Reorganise(3, false); err != nil {
		b.t.Fatal(err)
	}
	b.blocks(2)
	if err := b.Reorganise(1, true); err != nil {
		b.t.Fatal(err)
	}
	b.send(b.pay(alice, bob, 4*sol))
	b.blocks(3)
	return alice
}

func TestRestartGivesTheSameChain(t *testing.T) {
	dir := t.TempDir()
	b := startBench(t, Config{DataDir: dir})
	alice := b.eventful()
	was, answers := b.Summary(), b.everything(alice.PublicKey())
	b = b.reopen(dir)
	now := b.Summary()
	now.Faults, was.Faults = Faults{}, Faults{}
	if !reflect.DeepEqual(was, now) {
		t.Errorf("was %+v\nis  %+v", was, now)
	}
	again := b.everything(alice.PublicKey())
	for i := range answers {
		if string(answers[i]) != string(again[i]) {
			t.Errorf("answer %d was %s\nand is %s", i, answers[i], again[i])
		}
	}
	bob := newActor("bob")
	before := b.lamports(bob, rpc.CommitmentProcessed)
	b.send(b.pay(alice, bob, sol))
	b.block()
	if got := b.lamports(bob, rpc.CommitmentProcessed); got != before+sol {
		t.Errorf("bob has %d lamports", got)
	}
}

// Depths that are set differently after a restart neither undo finality nor refuse
// a change of forks that happened.
func TestRestartWithOtherDepths(t *testing.T) {
	dir := t.TempDir()
	b := startBench(t, Config{DataDir: dir, FinalDepth: 40})
	b.blocks(50)
	if err := b.Reorganise(30, true); err != nil {
		t.Fatal(err)
	}
	b.blocks(30)
	final := b.Final()
	for _, depth := range []int{5, 100} {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		b = startBench(t, Config{DataDir: dir, FinalDepth: depth})
		if now := b.Final(); now.Height != final.Height {
			t.Fatalf("with depth %d block %d is final, it was %d", depth, now.Height, final.Height)
		}
	}
}

// A node that is killed between any two instructions comes back with every block
// that it told of.
func TestStateSurvivesSIGKILL(t *testing.T) {
	dir := t.TempDir()
	bob := newActor("bob")
	var last solana.Signature
	var paid uint64
	for round := range 3 {
		child := startChild(t, dir)
		if round > 0 {
			if got := child.balance(bob.PublicKey()); got != paid {
				t.Fatalf("round %d: bob has %d lamports, %d were seen before the kill", round, got, paid)
			}
			if child.status(last) == nil {
				t.Fatalf("round %d: the node forgot %s", round, last)
			}
		}
		signature, err := child.client.RequestAirdrop(context.Background(), bob.PublicKey(), sol, "")
		if err != nil {
			t.Fatal(err)
		}
		for child.status(signature) == nil {
			time.Sleep(time.Millisecond)
		}
		last, paid = signature, paid+sol
		child.kill()
	}
	if _, err := os.Stat(filepath.Join(dir, fileName)); err != nil {
		t.Fatal(err)
	}
}

// child is a node in a process of its own.
type child struct {
	t       *testing.T
	command *exec.Cmd
	client  *rpc.Client
}

func startChild(t *testing.T, dir string) *child {
	t.Helper()
	c := &child{t: t, command: exec.Command(os.Args[0])}
	c.command.Env = append(os.Environ(), nodeDir+"="+dir)
	out, err := c.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(line, "rpc=")
	url, _, _ := strings.Cut(rest, " ")
	c.client = rpc.New(url)
	return c
}

func (c *child) kill() {
	if c.command.ProcessState == nil {
		_ = c.command.Process.Kill() // it may have ended by itself
		_ = c.command.Wait()         // killed
	}
}

func (c *child) status(signature solana.Signature) *rpc.SignatureStatusesResult {
	c.t.Helper()
	out, err := c.client.GetSignatureStatuses(context.Background(), true, signature)
	if err != nil {
		c.t.Fatal(err)
	}
	return out.Value[0]
}

func (c *child) balance(of solana.PublicKey) uint64 {
	c.t.Helper()
	out, err := c.client.GetBalance(context.Background(), of, rpc.CommitmentProcessed)
	if err != nil {
		c.t.Fatal(err)
	}
	return out.Value
}

func TestJournalOfAnotherKindIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName), []byte(strings.Repeat("x", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{DataDir: dir, Log: quiet()}); err == nil {
		t.Fatal("it was opened")
	}
}

// answer is what came back from the RPC.
type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
	ID     json.RawMessage `json:"id"`
}

// post sends a body and returns status and answer.
func (b *bench) post(body string) (int, []byte) {
	b.t.Helper()
	response, err := http.Post("http://"+b.RPCAddr(), contentType, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return response.StatusCode, raw
}

// ask calls a method without a library in between.
func (b *bench) ask(method string, params ...any) answer {
	b.t.Helper()
	body, err := json.Marshal(object{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		b.t.Fatal(err)
	}
	_, raw := b.post(string(body))
	var out answer
	if err := json.Unmarshal(raw, &out); err != nil {
		b.t.Fatalf("%s: %v in %s", method, err, raw)
	}
	return out
}

// An inconsistent journal is refused as a whole.
func TestBadRecordsAreRefused(t *testing.T) {
	for name, body := range map[string]string{
		"unknown kind":     `X{}`,
		"no JSON":          `B{`,
		"slot used before": `B{"slot":3}`,
		"final too early":  `B{"slot":100,"root":99}`,
		"bad transaction":  `B{"slot":100,"transactions":[{"wire":"AQ=="}]}`,
		"deep fork":        `R{"depth":50}`,
		"no fork":          `R{"depth":0}`,
	} {
		dir := t.TempDir()
		b := startBench(t, Config{DataDir: dir})
		b.blocks(5)
		if err := b.ledger.journal.Append([]byte(body)); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if n, err := New(Config{DataDir: dir, Log: quiet()}); err == nil {
			t.Errorf("%s: accepted", name)
			_ = n.Close()
		}
	}
}

// A block that can't be written did not happen: no client is notified of it, and what
// waited for it waits on.
func TestBlockThatCannotBeKeptDoesNotHappen(t *testing.T) {
	dir := t.TempDir()
	b := startBench(t, Config{DataDir: dir})
	alice, bob := b.alice(), newActor("bob")
	signature := b.send(b.pay(alice, bob, sol))
	was := b.Summary()
	whole := b.ledger.journal
	if err := whole.Close(); err != nil { // as a full disk would, it fails every write
		t.Fatal(err)
	}
	if _, err := b.ProduceBlock(); err == nil {
		t.Fatal("a block was made")
	}
	if err := b.Reorganise(1, true); err == nil {
		t.Fatal("the fork was changed")
	}
	if now := b.Summary(); !reflect.DeepEqual(was, now) || b.status(signature) != nil || b.lamports(bob, rpc.CommitmentProcessed) != 0 {
		t.Errorf("was %+v\nis  %+v", was, now)
	}
	b.ledger.journal = nil
	if err := b.ledger.openAgain(dir); err != nil {
		t.Fatal(err)
	}
	b.block()
	if b.status(signature) == nil {
		t.Error("the transaction was forgotten")
	}
}

// openAgain goes on with a journal that the ledger has replayed already.
func (l *ledger) openAgain(dir string) error {
	j, err := journal.Open(filepath.Join(dir, fileName), journal.Identity{Format: fileFormat, ID: GenesisHash()},
		func([]byte) error { return nil }, l.log)
	l.journal = j
	return err
}
