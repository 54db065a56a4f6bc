package tron

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
)

// reopen closes the node and starts another on the same directory.
func (b *bench) reopen(dir string) *bench {
	b.t.Helper()
	if err := b.Close(); err != nil {
		b.t.Fatal(err)
	}
	return startBench(b.t, Config{DataDir: dir})
}

// sameChain compares what two summaries say about the chain.
func sameChain(t *testing.T, was, is Summary) {
	t.Helper()
	if was.Head.ID != is.Head.ID || was.Solid.ID != is.Solid.ID || was.StateDigest != is.StateDigest {
		t.Errorf("was head %d %s solid %d state %s\n is head %d %s solid %d state %s",
			was.Head.Number, was.Head.ID, was.Solid.Number, was.StateDigest, is.Head.Number, is.Head.ID, is.Solid.Number, is.StateDigest)
	}
}

// eventful makes a chain that has seen every kind of record and effect.
func (b *bench) eventful() (actor, actor) {
	b.t.Helper()
	alice, bob, carol := b.treasury()
	b.mined(under(b.transferToken(alice, newActor("dave"), USDTAddress, 5), 2), bob, carol)
	b.deployProbe(bob)
	b.freeze(bob, 10*trx, core.ResourceCode_ENERGY)
	if err := b.SetEnergyFactor(mustAddress(USDTAddress), 34_000); err != nil {
		b.t.Fatal(err)
	}
	if err := b.SetFaults(Faults{FailNext: 2, FailWith: "OUT_OF_ENERGY"}); err != nil {
		b.t.Fatal(err)
	}
	b.mined(b.transferToken(bob, carol, USDTAddress, 5), bob)
	b.send(b.transferToken(bob, carol, USDTAddress, 6), bob)
	b.block()
	b.ResetFaults()
	if _, err := b.ProduceBlocks(30); err != nil {
		b.t.Fatal(err)
	}
	b.mined(b.transferToken(bob, carol, USDTAddress, 7), bob)
	return bob, carol
}

func TestRestartGivesTheSameChain(t *testing.T) {
	dir := t.TempDir()
	b := startBench(t, Config{DataDir: dir})
	bob, carol := b.eventful()
	was := b.Summary()
	b = b.reopen(dir)
	sameChain(t, was, b.Summary())
	if info := b.mined(b.transferToken(bob, carol, USDTAddress, 8), bob); info.Receipt.EnergyPenaltyTotal == 0 {
		t.Error("the energy factor is forgotten")
	}
}

func TestRestartAfterReorganisations(t *testing.T) {
	dir := t.TempDir()
	b := startBench(t, Config{DataDir: dir})
	bob, carol := b.eventful()
	if err := b.SetFaults(Faults{FailNext: 1, FailWith: "REVERT"}); err != nil {
		t.Fatal(err)
	}
	if err := b.SetEnergyFactor(mustAddress(USDCAddress), 5_000); err != nil {
		t.Fatal(err)
	}
	forced := b.send(b.transferToken(bob, carol, USDTAddress, 9), bob)
	kept := b.send(b.transferToken(bob, carol, USDTAddress, 10), bob)
	b.block()
	solid := b.Solid().Number
	if err := b.Reorganise(10, false); err != nil {
		t.Fatal(err)
	}
	b.block()
	if err := b.Reorganise(1, true); err != nil { // loses them for good
		t.Fatal(err)
	}
	b.block()
	was := b.Summary()
	if was.Solid.Number < solid {
		t.Fatalf("solidity went back from %d to %d", solid, was.Solid.Number)
	}
	b = b.reopen(dir)
	sameChain(t, was, b.Summary())
	if len(b.lookup(forced).Id) != 0 || len(b.lookup(kept).Id) != 0 {
		t.Error("dropped transactions came back with the restart")
	}
}

func TestReorganisedFailureStaysAFailure(t *testing.T) {
	dir := t.TempDir()
	b := startBench(t, Config{DataDir: dir})
	ab := b.funded(5_000_000, "alice", "bob")
	if _, err := b.Solidify(); err != nil {
		t.Fatal(err)
	}
	if err := b.SetFaults(Faults{FailNext: 1, FailWith: "REVERT"}); err != nil {
		t.Fatal(err)
	}
	id := b.send(b.transferToken(ab[0], ab[1], USDTAddress, 9), ab[0])
	b.block()
	if err := b.Reorganise(1, false); err != nil {
		t.Fatal(err)
	}
	b.block()
	if r := b.receipt(id).Receipt.Result; r != core.Transaction_Result_REVERT {
		t.Errorf("mined again, it ends in %s", r)
	}
	was := b.Summary()
	sameChain(t, was, b.reopen(dir).Summary())
}

func TestTornTailIsCutOff(t *testing.T) {
	for _, cut := range []int64{1, 7, 20} {
		dir := t.TempDir()
		b := startBench(t, Config{DataDir: dir})
		b.funded(0, "alice")
		was := b.Summary()
		file := filepath.Join(dir, fileName)
		whole, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		b.funded(0, "bob")
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		longer, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, longer.Size()-cut); err != nil {
			t.Fatal(err)
		}
		b = startBench(t, Config{DataDir: dir})
		sameChain(t, was, b.Summary())
		if cutOff, err := os.Stat(file); err != nil || cutOff.Size() != whole.Size() {
			t.Errorf("cut %d: the file has %d bytes, want %d", cut, cutOff.Size(), whole.Size())
		}
		b.funded(0, "carol") // and the file takes new blocks
		was = b.Summary()
		sameChain(t, was, b.reopen(dir).Summary())
	}
}

func TestUnfilledSpaceAtTheEndIsCutOff(t *testing.T) {
	dir := t.TempDir()
	b := startBench(t, Config{DataDir: dir})
	b.funded(0, "alice")
	was := b.Summary()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, fileName)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, info.Size()+4096); err != nil { // grows it with zeros
		t.Fatal(err)
	}
	sameChain(t, was, startBench(t, Config{DataDir: dir}).Summary())
}

func TestDamageIsAnError(t *testing.T) {
	dir := t.TempDir()
	b := startBench(t, Config{DataDir: dir})
	b.funded(0, "alice")
	b.funded(0, "bob")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, fileName)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const header = len(fileFormat+"\n") + len(Hash{})
	for _, c := range []struct {
		name, text string
		change     func([]byte) []byte
	}{
		{"a flipped bit", "checksum does not match", func(b []byte) []byte { b[header+21] ^= 1; return b }},
		{"a flipped bit in a length", "checksum does not match", func(b []byte) []byte { b[header] ^= 1; return b }},
		{"another genesis", "use another data directory", func(b []byte) []byte { b[header-1] ^= 1; return b }},
		{"another file", "not a file of the format", func(b []byte) []byte { b[0] ^= 1; return b }},
	} {
		if err := os.WriteFile(file, c.change(bytes.Clone(raw)), 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := New(Config{DataDir: dir, Log: quiet()})
		if err == nil {
			_ = n.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", c.name, err, c.text)
		}
	}
}

func TestForgedBlockIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, text string
		forge      func(*chain, *core.Block)
	}{
		{"the signature of another block", "signed by", func(*chain, *core.Block) {}},
		{"a witness out of turn", "signed by", func(c *chain, b *core.Block) { c.sealAs(c.turn+1, b) }},
		{"no parent", "does not follow", func(c *chain, b *core.Block) {
			b.BlockHeader.RawData.ParentHash = make([]byte, 32)
			c.sealAs(c.turn, b)
		}},
		{"transactions that are not the header's", "do not match the header", func(c *chain, b *core.Block) {
			b.Transactions = nil
			c.sealAs(c.turn, b)
		}},
		{"a payment made before", "balance is not sufficient", func(c *chain, b *core.Block) { c.sealAs(c.turn, b) }},
	} {
		dir := t.TempDir()
		b := startBench(t, Config{DataDir: dir})
		ab := b.funded(0, "alice", "bob")
		b.mined(b.transferTRX(ab[0], ab[1], 600*trx), ab[0])
		head := b.chain.head()
		forged := proto.Clone(head.message).(*core.Block)
		forged.BlockHeader.RawData.Number++
		forged.BlockHeader.RawData.ParentHash = head.id[:]
		c.forge(b.chain, forged)
		if err := b.chain.file.appendBlock(forged, &effects{}); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{DataDir: dir, Log: quiet()}); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// sealAs signs a block as the witness of a turn.
func (c *chain) sealAs(turn int, b *core.Block) {
	key := c.keys[turn%witnesses]
	signer := AddressOfKey(key)
	b.BlockHeader.RawData.WitnessAddress = signer[:]
	signature, err := crypto.Sign(headerDigest(b.BlockHeader.RawData), key)
	if err != nil {
		panic(err)
	}
	b.BlockHeader.WitnessSignature = signature
}

func TestOneNodePerDirectory(t *testing.T) {
	dir := t.TempDir()
	startBench(t, Config{DataDir: dir})
	if _, err := New(Config{DataDir: dir, Log: quiet()}); err == nil || !strings.Contains(err.Error(), "another node is using it") {
		t.Errorf("a second node opened the directory: %v", err)
	}
}

func TestFailedWriteLeavesTheChainAsItWas(t *testing.T) {
	b := startBench(t, Config{DataDir: t.TempDir()})
	ab := b.funded(0, "alice", "bob")
	id := b.send(b.transferTRX(ab[0], ab[1], 5), ab[0])
	was := b.Summary()
	good := b.chain.file
	var err error
	if b.chain.file, err = openBlockFile(t.TempDir(), Hash{}, b.chain, quiet()); err != nil {
		t.Fatal(err)
	}
	if err := b.chain.file.Close(); err != nil { // no write succeeds any more
		t.Fatal(err)
	}
	if _, err := b.ProduceBlock(); err == nil {
		t.Fatal("a block that could not be stored was produced")
	}
	b.chain.file = good
	sameChain(t, was, b.Summary())
	b.block()
	b.receipt(id)
}

func TestOldHeadIsRefreshedAtStart(t *testing.T) {
	dir := t.TempDir()
	past := time.Now().Add(-72 * time.Hour)
	n, err := New(Config{DataDir: dir, Log: quiet(), Now: func() time.Time { return past }})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	b := startBench(t, Config{DataDir: dir, BlockInterval: time.Hour})
	if age := time.Since(b.Head().Time); age > time.Minute {
		t.Errorf("the head is %s old", age)
	}
	if err := b.Start(context.Background()); err == nil {
		t.Error("a node started twice")
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte{'R', 1})
	f.Add([]byte{'B', 2, '{', '}', 10, 0})
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) == 0 {
			t.Skip() // no record is empty
		}
		c, err := newChain(quiet(), time.Now, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = replayRecord(body, c) // must not panic
	})
}
