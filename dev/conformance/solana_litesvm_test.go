package conformance

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/chain/solana"
	solananode "kivuko/dev/nodes/solana"
	"kivuko/dev/nodes/solana/programs"
	"kivuko/exchange/money"
)

// litesvmHash is the hash of the library that the Solana machine's own test is compared with, too.
const litesvmHash = "07bb8b00455f038fab1a16113bc215cb5d3b72ac1ecb52f6220ff98b0d9ecec7"

// litesvm is Agave's virtual machine in a Node.js process, behind the part of the RPC that the driver uses. Every
// slot is final at once.
type litesvm struct {
	mu       sync.Mutex
	in       io.Writer
	out      *bufio.Reader
	slot     uint64
	hash     string
	hashes   map[uint64]string
	receipts map[string]map[string]any
}

type litesvmAccount struct{ Lamports, Owner, Data string }

type litesvmAnswer struct {
	Fault, Blockhash string
	Accounts         []*litesvmAccount
	Err              json.RawMessage
}

func startLitesvm(t testing.TB) (*litesvm, string) {
	t.Helper()
	if os.Getenv("KIVUKO_PEERS") == "" {
		t.Skip("litesvm checks the driver in `make conformance`, which sets KIVUKO_PEERS=1")
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("litesvm needs node, which is not on this machine")
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("..", "nodes", "solana", "svm", "testdata", "oracle.cjs"), litesvmPath(t))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // ends the process
		_ = cmd.Wait() // killed with the test's context, if it did not end
	})
	const firstSlot, buffer = 1_000, 1 << 20
	s := &litesvm{in: in, out: bufio.NewReaderSize(out, buffer), slot: firstSlot, hashes: map[uint64]string{}, receipts: map[string]map[string]any{}}
	s.next(t)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

func litesvmPath(t testing.TB) string {
	t.Helper()
	dir, err := programs.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	code, err := programs.FetchLibrary(t.Context(), programs.Options{Dir: dir, NoInstall: true})
	if err != nil {
		t.Skipf("litesvm can't be had: %v", err)
	}
	if sum := sha256.Sum256(code); hex.EncodeToString(sum[:]) != litesvmHash {
		t.Fatal("the library's hash is not the expected one")
	}
	path := filepath.Join(t.TempDir(), "litesvm.node")
	if err := os.WriteFile(path, code, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (s *litesvm) ask(q map[string]any) litesvmAnswer {
	line, err := json.Marshal(q)
	if err != nil {
		return litesvmAnswer{Fault: err.Error()}
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return litesvmAnswer{Fault: err.Error()}
	}
	var a litesvmAnswer
	if line, err = s.out.ReadBytes('\n'); err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		a.Fault = err.Error()
	}
	return a
}

// next starts a slot. The previous blockhash is no longer valid.
func (s *litesvm) next(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slot++
	a := s.ask(map[string]any{"op": "next", "slot": s.slot, "time": time.Now().Unix(), "epochStart": 0, "epoch": 0})
	if a.Fault != "" {
		t.Fatal(a.Fault)
	}
	s.hash = a.Blockhash
	s.hashes[s.slot] = a.Blockhash
}

func (s *litesvm) set(t testing.TB, key sdk.PublicKey, lamports uint64, owner sdk.PublicKey, data []byte) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.ask(map[string]any{
		"op": "set", "key": hex.EncodeToString(key[:]), "lamports": strconv.FormatUint(lamports, 10),
		"owner": hex.EncodeToString(owner[:]), "data": base64.StdEncoding.EncodeToString(data),
	}); a.Fault != "" {
		t.Fatal(a.Fault)
	}
}

func (s *litesvm) accounts(keys []sdk.PublicKey) []*litesvmAccount {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = hex.EncodeToString(k[:])
	}
	return s.ask(map[string]any{"op": "get", "keys": names}).Accounts
}

func (s *litesvm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Method string
		Params []json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]any{"jsonrpc": "2.0", "id": 1}
	result, refusal := s.answer(q.Method, q.Params)
	if refusal != nil {
		out["error"] = refusal
	} else {
		out["result"] = result
	}
	_ = json.NewEncoder(w).Encode(out) // fails only when the driver went away
}

func (s *litesvm) here(value any) map[string]any {
	return map[string]any{"context": map[string]any{"slot": s.slot}, "value": value}
}

func (s *litesvm) answer(method string, params []json.RawMessage) (result, refusal any) {
	var text string
	var list []string
	var number uint64
	if len(params) > 0 {
		for _, into := range []any{&text, &list, &number} {
			_ = json.Unmarshal(params[0], into) // it is of one of these kinds
		}
	}
	switch method {
	case "getGenesisHash":
		return solananode.GenesisHash().String(), nil
	case "getSlot":
		return s.slot, nil
	case "getFirstAvailableBlock":
		return 0, nil
	case "getBlock":
		return map[string]any{
			"blockhash": s.hashes[number], "previousBlockhash": sdk.Hash{1}.String(), "parentSlot": number - 1,
			"blockHeight": number, "blockTime": time.Now().Unix(),
		}, nil
	case "getLatestBlockhash":
		return s.here(map[string]any{"blockhash": s.hash, "lastValidBlockHeight": s.slot + 150}), nil
	case "isBlockhashValid":
		return s.here(text == s.hash), nil
	case "getMinimumBalanceForRentExemption":
		return (number + 128) * 6960, nil
	case "getRecentPrioritizationFees":
		return []any{}, nil
	case "simulateTransaction": // this node can't simulate; the driver's sending proves that it passes
		return s.here(map[string]any{"err": nil, "unitsConsumed": 60_000}), nil
	case "getFeeForMessage":
		raw, _ := base64.StdEncoding.DecodeString(text) // an unreadable message costs nothing
		return s.here(5_000*uint64(raw[0]) + 1_000), nil
	case "getMultipleAccounts":
		return s.here(s.told(list)), nil
	case "sendTransaction":
		return s.send(text)
	case "getSignatureStatuses":
		if s.receipts[list[0]] == nil {
			return s.here([]any{nil}), nil
		}
		return s.here([]any{map[string]any{"slot": s.slot, "confirmationStatus": "finalized"}}), nil
	case "getTransaction":
		return s.receipts[text], nil
	}
	return nil, map[string]any{"code": -32601, "message": "Method not found"}
}

func (s *litesvm) told(names []string) []any {
	keys := make([]sdk.PublicKey, len(names))
	for i, n := range names {
		keys[i] = sdk.MustPublicKeyFromBase58(n)
	}
	out := make([]any, len(names))
	for i, a := range s.accounts(keys) {
		if a != nil {
			owner, _ := hex.DecodeString(a.Owner) // our own encoding
			out[i] = map[string]any{
				"lamports": json.Number(a.Lamports), "owner": sdk.PublicKey(owner).String(), "executable": false, "data": []string{a.Data, "base64"},
			}
		}
	}
	return out
}

// send executes the bytes as they are and records the balances before and after them.
func (s *litesvm) send(text string) (result, refusal any) {
	tx, err := sdk.TransactionFromBase64(text)
	if err != nil {
		return nil, map[string]any{"code": -32602, "message": err.Error()}
	}
	id, keys := tx.Signatures[0].String(), tx.Message.AccountKeys
	before := s.accounts(keys)
	a := s.ask(map[string]any{"op": "send", "wire": text})
	if a.Fault != "" {
		return nil, map[string]any{"code": -32603, "message": a.Fault}
	}
	if a.Err != nil && a.Err[0] == '"' { // refused before any instruction ran
		return nil, map[string]any{"code": -32002, "message": "refused", "data": map[string]any{"err": a.Err}}
	}
	pre, preTokens := balancesOf(before)
	post, postTokens := balancesOf(s.accounts(keys))
	fee := uint64(0)
	for i := range pre {
		fee += pre[i] - post[i] // wraps around and back: the sum is the fee that was burnt
	}
	s.receipts[id] = map[string]any{
		"slot": s.slot, "transaction": map[string]any{"signatures": []string{id}, "message": map[string]any{"accountKeys": keys.ToBase58()}},
		"meta": map[string]any{
			"err": a.Err, "fee": fee, "preBalances": pre, "postBalances": post, "preTokenBalances": preTokens, "postTokenBalances": postTokens,
		},
	}
	return id, nil
}

func balancesOf(all []*litesvmAccount) (lamports []uint64, tokens []any) {
	tokens = []any{}
	for i, a := range all {
		if a == nil {
			lamports = append(lamports, 0)
			continue
		}
		n, _ := strconv.ParseUint(a.Lamports, 10, 64) // litesvm writes whole numbers
		lamports = append(lamports, n)
		data, _ := base64.StdEncoding.DecodeString(a.Data) // our own encoding
		if a.Owner == hex.EncodeToString(sdk.TokenProgramID[:]) && len(data) == 165 {
			tokens = append(tokens, map[string]any{
				"accountIndex": i, "mint": sdk.PublicKey(data[:32]).String(), "owner": sdk.PublicKey(data[32:64]).String(),
				"programId": sdk.TokenProgramID.String(), "uiTokenAmount": map[string]any{"amount": strconv.FormatUint(binary.LittleEndian.Uint64(data[64:]), 10)},
			})
		}
	}
	return lamports, tokens
}

// TestSolanaOnLitesvm has an independent virtual machine execute the driver's transactions.
func TestSolanaOnLitesvm(t *testing.T) {
	t.Parallel()
	peer, url := startLitesvm(t)
	client, err := solana.New(solana.Config{
		Nodes: []solana.Endpoint{{URL: url}}, Genesis: solananode.GenesisHash().String(), Tokens: solanaMints, MaxHeadAge: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	h := &solanaHarness{client: client}
	from, payer, to, side := h.NewAccount(t), h.NewAccount(t), h.NewAccount(t), h.NewAccount(t)
	mint, owner := solanaKey(t, solananode.USDTAddress), solanaKey(t, from.Address)
	account := func(holder sdk.PublicKey, amount uint64, state byte) []byte {
		data := make([]byte, 165)
		copy(data, mint[:])
		copy(data[32:], holder[:])
		binary.LittleEndian.PutUint64(data[64:], amount)
		data[108] = state
		return data
	}
	mintData := make([]byte, 82)
	mintData[44], mintData[45] = 6, 1
	const sol, rent = 1_000_000_000, 2_039_280
	peer.set(t, mint, rent, sdk.TokenProgramID, mintData)
	peer.set(t, owner, sol, sdk.SystemProgramID, nil)
	peer.set(t, solanaKey(t, payer.Address), sol, sdk.SystemProgramID, nil)
	peer.set(t, solanaATA(t, owner, mint), rent, sdk.TokenProgramID, account(owner, 100_000_000, 1))
	peer.set(t, solanaKey(t, side.Address), rent, sdk.TokenProgramID, account(solanaKey(t, to.Address), 0, 1))
	for name, q := range map[string]struct {
		to     string
		amount money.Amount
	}{
		"a token":                  {to.Address, money.Must(money.USDT, "10")},
		"a token, again":           {to.Address, money.Must(money.USDT, "10")},
		"a token account":          {side.Address, money.Must(money.USDT, "7")},
		"a coin":                   {to.Address, money.Must(money.SOL, "0.25")},
		"a coin for the fee payer": {payer.Address, money.Must(money.SOL, "0.1")},
	} {
		peer.next(t)
		signed := h.sign(t, from, payer, q.to, q.amount)
		if b, err := client.Broadcast(t.Context(), signed.Raw); err != nil || b.State != chain.BroadcastKnown {
			t.Fatalf("%s: %+v, %v", name, b, err) // this node includes at once
		}
		if v := h.verdict(t, signed); v != chain.VerdictSucceeded {
			t.Errorf("%s: %s", name, v)
		}
		if b, err := client.Broadcast(t.Context(), signed.Raw); err != nil || b.State != chain.BroadcastKnown {
			t.Errorf("%s, broadcast again: %+v, %v", name, b, err)
		}
	}
	late := h.sign(t, from, payer, to.Address, money.Must(money.USDT, "1"))
	peer.next(t)
	if b, err := client.Broadcast(t.Context(), late.Raw); err != nil || b.State != chain.BroadcastRejected || b.Code != "BlockhashNotFound" {
		t.Errorf("too late: %+v, %v", b, err)
	}
	frozen := h.sign(t, from, payer, to.Address, money.Must(money.USDT, "1"))
	dest := solanaATA(t, solanaKey(t, to.Address), mint)
	peer.set(t, dest, rent, sdk.TokenProgramID, account(solanaKey(t, to.Address), 20_000_000, 2))
	if _, err := client.Broadcast(t.Context(), frozen.Raw); err != nil {
		t.Fatal(err)
	}
	l, err := client.Locate(t.Context(), frozen.TxID)
	if err != nil || l.OK || l.Code != `{"InstructionError":[4,{"Custom":17}]}` || h.verdict(t, frozen) != chain.VerdictFailed {
		t.Errorf("to a frozen account: %+v, %v", l, err)
	}
	for holder, want := range map[string]money.Amount{from.Address: money.Must(money.USDT, "73"), to.Address: money.Must(money.USDT, "20")} {
		if b, err := client.Balance(t.Context(), holder, money.USDT); err != nil || !b.Amount.Equal(want) {
			t.Errorf("%s holds %s, want %s (%v)", holder, b.Amount, want, err)
		}
	}
}
