package svm

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"

	"kivuko/dev/nodes/solana/programs"
)

// litesvmSHA256 is the library of the package that the programs come from too.
const litesvmSHA256 = "07bb8b00455f038fab1a16113bc215cb5d3b72ac1ecb52f6220ff98b0d9ecec7"

// oracle is litesvm in a process of node's.
type oracle struct {
	t   testing.TB
	in  io.Writer
	out *bufio.Reader
}

type oracleAccount struct {
	Lamports, Owner, Data string
	Executable            bool
}

type oracleAnswer struct {
	Fault     string
	Blockhash string
	Accounts  []*oracleAccount
	Err       any
	Logs      []string
	Units     uint64
	Returned  string
	Inner     [][]struct {
		Program  int
		Accounts []int
		Data     string
		Height   int
	}
}

// newOracle starts litesvm, or ends the test with a sentence where it can't be had.
func newOracle(t testing.TB) *oracle {
	t.Helper()
	if os.Getenv("KIVUKO_PEERS") == "" {
		t.Skip("litesvm is compared with by `make conformance`, which sets KIVUKO_PEERS=1")
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the pinned build of litesvm is for Linux on x86-64, which this is not")
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("litesvm needs node, which is not on this machine")
	}
	cmd := exec.Command("node", "testdata/oracle.cjs", litesvmLibrary(t))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &oracle{t: t, in: in, out: bufio.NewReaderSize(out, 1<<20)}
}

// litesvmLibrary fetches the library into the cache directory, if it is not there.
func litesvmLibrary(t testing.TB) string {
	t.Helper()
	dir, err := programs.CacheDir()
	require.NoError(t, err)
	path := filepath.Join(dir, "litesvm-"+litesvmSHA256[:16]+".node")
	code, err := os.ReadFile(path)
	if err != nil {
		code, err = programs.FetchLibrary(t.Context(), programs.Options{NoInstall: true})
		if err != nil {
			t.Skipf("litesvm can't be had: %v", err)
		}
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(path, code, 0o644))
	}
	sum := sha256.Sum256(code)
	require.Equal(t, litesvmSHA256, hex.EncodeToString(sum[:]), "the library in %s is not the one meant", path)
	return path
}

func (o *oracle) ask(op string, fields map[string]any) oracleAnswer {
	o.t.Helper()
	q := map[string]any{"op": op}
	maps.Copy(q, fields)
	line, err := json.Marshal(q)
	require.NoError(o.t, err)
	_, err = o.in.Write(append(line, '\n'))
	require.NoError(o.t, err)
	line, err = o.out.ReadBytes('\n')
	require.NoError(o.t, err)
	var a oracleAnswer
	require.NoError(o.t, json.Unmarshal(line, &a))
	require.Empty(o.t, a.Fault, "litesvm on %s", op)
	return a
}

func (o *oracle) set(key solana.PublicKey, a Account) {
	o.ask("set", map[string]any{
		"key": hex.EncodeToString(key[:]), "lamports": strconv.FormatUint(a.Lamports, 10),
		"owner": hex.EncodeToString(a.Owner[:]), "data": base64.StdEncoding.EncodeToString(a.Data),
	})
}

// pair is our chain and litesvm's side by side.
type pair struct {
	*chain
	peer *oracle

	transactions, succeeded, failed, rejected, undecoded int
	aligned, differences                                 int
	errors                                               map[string]int
}

func newPair(t testing.TB) *pair {
	t.Helper()
	peer := newOracle(t)
	p := &pair{chain: newChain(t, conformancePrograms(t)), peer: peer, errors: map[string]int{}}
	p.advance()
	return p
}

// conformancePrograms are the real programs; where litesvm can be had, they can be.
func conformancePrograms(t testing.TB) programs.Set {
	t.Helper()
	dir, err := programs.CacheDir()
	require.NoError(t, err)
	set, err := programs.Get(t.Context(), programs.Options{Dir: dir, NoInstall: true})
	require.NoError(t, err)
	return set
}

// advance starts a block on both sides.
func (p *pair) advance() {
	a := p.peer.ask("next", map[string]any{
		"slot": p.block.Slot + 1, "time": p.block.UnixTime + 1,
		"epochStart": p.block.EpochStart, "epoch": p.block.Epoch,
	})
	p.next(solana.MustHashFromBase58(a.Blockhash))
}

// payer makes a key with plenty of lamports on both sides.
func (p *pair) payer(name string) solana.PublicKey {
	key := p.chain.payer(name)
	p.peer.set(key, p.accounts[key])
	return key
}

// both executes the same bytes on both sides and compares all that can be seen.
func (p *pair) both(name string, wire []byte) Result {
	p.t.Helper()
	tx, err := Decode(wire)
	if err != nil { // nothing that would reach a bank: the payer as program
		p.undecoded++
		return rejected("SanitizeFailure")
	}
	// litesvm makes the next nonce of the hash that the transaction itself names,
	// where a cluster uses the newest one.
	b := p.block
	b.LastBlockhash = tx.Message.RecentBlockhash
	r := p.machine.Execute(tx, b, p.chain)
	p.commit(tx, r)
	theirs := p.peer.ask("send", map[string]any{"wire": base64.StdEncoding.EncodeToString(wire)})
	tx = tx.WithLoaded(r.Loaded)
	p.count(r)
	p.compare(name, tx, r, theirs)
	return r
}

func (p *pair) count(r Result) {
	p.transactions++
	switch r.Outcome {
	case Rejected:
		p.rejected++
	case Failed:
		p.failed++
	case Succeeded:
		p.succeeded++
	}
	if r.Err != nil {
		text, err := json.Marshal(r.Err)
		require.NoError(p.t, err)
		p.errors[string(text)]++
	}
}

// differs reports a difference, and how many of them it reports is limited.
func (p *pair) differs(name, what string, ours, theirs any) {
	p.differences++
	if p.differences <= 12 {
		p.t.Errorf("%s: %s\n  ours   %v\n  theirs %v", name, what, ours, theirs)
	}
}

func (p *pair) compare(name string, tx *Transaction, r Result, theirs oracleAnswer) {
	var ours any
	text, err := json.Marshal(r.Err)
	require.NoError(p.t, err)
	require.NoError(p.t, json.Unmarshal(text, &ours))
	if !reflect.DeepEqual(ours, theirs.Err) {
		p.differs(name, "error\n"+strings.Join(r.Logs, "\n")+"\n--\n"+strings.Join(theirs.Logs, "\n"), ours, theirs.Err)
	}
	if r.Outcome != Rejected {
		if a, b := strings.Join(r.Logs, "\n"), strings.Join(theirs.Logs, "\n"); a != b {
			p.differs(name, "logs", "\n"+a, "\n"+b)
		}
		if r.Units != theirs.Units {
			p.differs(name, "units", r.Units, theirs.Units)
		}
	}
	if r.Outcome == Succeeded {
		if a, b := innerOfOurs(r), innerOfTheirs(theirs); a != b {
			p.differs(name, "inner instructions", a, b)
		}
		var data []byte
		if r.ReturnData != nil {
			data = r.ReturnData.Data
		}
		if base64.StdEncoding.EncodeToString(data) != theirs.Returned {
			p.differs(name, "return data", data, theirs.Returned)
		}
	}
	p.align(tx, r)
	p.compareAccounts(name, tx)
}

// align does on litesvm what a cluster does with failed transactions and it does
// not: the durable nonce advances, and a transaction whose accounts can't be loaded
// pays its fee all the same (SIMD-0191).
func (p *pair) align(tx *Transaction, r Result) {
	if r.Outcome != Failed {
		return
	}
	place, _ := tx.NonceAccount()
	if key := tx.Keys()[place]; r.NonceAdvanced {
		p.peer.set(key, p.accounts[key])
		p.aligned++
	}
	switch r.Err.Kind {
	case "ProgramAccountNotFound", "InvalidProgramForExecution", "MaxLoadedAccountsDataSizeExceeded":
		payer := tx.Keys()[0]
		p.peer.set(payer, p.accounts[payer])
		p.aligned++
	}
}

func (p *pair) compareAccounts(name string, tx *Transaction) {
	var keys []string
	for _, k := range tx.Keys() {
		keys = append(keys, hex.EncodeToString(k[:]))
	}
	theirs := p.peer.ask("get", map[string]any{"keys": keys}).Accounts
	for i, k := range tx.Keys() {
		if reserved(k) || p.machine.programs[k] != nil {
			continue
		}
		a, ours := p.accounts[k], "none"
		if a.Lamports != 0 {
			ours = fmt.Sprintf("%d %x %x", a.Lamports, a.Owner[:], a.Data)
		}
		b := "none"
		if theirs[i] != nil {
			data, err := base64.StdEncoding.DecodeString(theirs[i].Data)
			require.NoError(p.t, err)
			b = fmt.Sprintf("%s %s %x", theirs[i].Lamports, theirs[i].Owner, data)
		}
		if ours != b {
			p.differs(name, "account "+k.String(), ours, b)
		}
	}
}

func innerOfOurs(r Result) string {
	var b bytes.Buffer
	for _, list := range r.Inner {
		for _, x := range list.Instructions {
			fmt.Fprintln(&b, list.Index, x.Program, x.Accounts, base64.StdEncoding.EncodeToString(x.Data), x.StackHeight)
		}
	}
	return b.String()
}

func innerOfTheirs(a oracleAnswer) string {
	var b bytes.Buffer
	for i, list := range a.Inner {
		for _, x := range list {
			fmt.Fprintln(&b, i, x.Program, x.Accounts, x.Data, x.Height)
		}
	}
	return b.String()
}
