package solana

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// Mints of mainnet, and a time.
const (
	usdt = "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB"
	usdc = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"
)

var stubNow = time.Unix(1_800_000_000, 0).UTC()

// testKey is a private key of a test.
type testKey struct{ ed25519.PrivateKey }

func keyOf(seed []byte) testKey { return testKey{ed25519.NewKeyFromSeed(seed)} }

// named makes a key from a name, so that failures can be repeated.
func named(word string) testKey {
	digest := sha256.Sum256([]byte(word))
	return keyOf(digest[:])
}

func (k testKey) PublicKey() []byte { return k.PrivateKey[ed25519.SeedSize:] }

func (k testKey) Sign(message []byte) ([]byte, error) {
	return ed25519.Sign(k.PrivateKey, message), nil
}

func (k testKey) key() sdk.PublicKey { return sdk.PublicKey(k.PublicKey()) }
func (k testKey) address() string    { return k.key().String() }

// stub is a node with configurable responses, for those that an honest node never gives.
type stub struct {
	mu           sync.Mutex
	status       int // HTTP status instead of a response
	asked        []string
	accounts     map[string]any            // by address, as in getMultipleAccounts
	answers      map[string]any            // by method: a result, or an *rpcError
	blocks       map[uint64]map[string]any // by slot, over the default
	transactions map[string][]byte         // final ones, by their ids
	final        uint64
	latest       uint64
	skew         uint64 // slots minus heights
	// refuseBlock has the code with which getBlock refuses a slot.
	refuseBlock map[uint64]int
}

// newStub is a node at slot 1,100 (final 1,068), 100 slots of which had no block.
func newStub() *stub {
	return &stub{
		final: 1068, latest: 1100, skew: 100, accounts: map[string]any{
			usdt: mintAccount(6, sdk.TokenProgramID), usdc: mintAccount(6, sdk.TokenProgramID),
		},
		answers: map[string]any{}, blocks: map[uint64]map[string]any{},
	}
}

// set changes the node's responses.
func (s *stub) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// count is how often a method was called.
func (s *stub) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, m := range s.asked {
		if m == method {
			n++
		}
	}
	return n
}

func hashAt(slot uint64) string {
	digest := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("block"), slot))
	return sdk.Hash(digest).String()
}

func (s *stub) block(slot uint64) map[string]any {
	b := map[string]any{
		"blockhash": hashAt(slot), "previousBlockhash": hashAt(slot - 1), "parentSlot": slot - 1,
		"blockHeight": slot - s.skew, "blockTime": stubNow.Unix(), "transactions": []any{},
	}
	for k, v := range s.blocks[slot] {
		b[k] = v
	}
	return b
}

func at(slot uint64, value any) map[string]any {
	return map[string]any{"context": map[string]any{"slot": slot}, "value": value}
}

// answer is the default response of a method.
func (s *stub) answer(method string, params []json.RawMessage) any {
	if a, ok := s.answers[method]; ok {
		return a
	}
	switch method {
	case "getGenesisHash":
		return GenesisMainnet
	case "getSlot":
		var o struct{ Commitment string }
		_ = json.Unmarshal(params[0], &o)
		if o.Commitment == finalized {
			return s.final
		}
		return s.latest
	case "getBlock":
		var slot uint64
		_ = json.Unmarshal(params[0], &slot)
		if code, ok := s.refuseBlock[slot]; ok {
			return &rpcError{Code: code, Message: "no block"}
		}
		return s.block(slot)
	case "getMultipleAccounts":
		var names []string
		_ = json.Unmarshal(params[0], &names)
		found := make([]any, len(names))
		for i, n := range names {
			found[i] = s.accounts[n]
		}
		return at(s.latest, found)
	case "getLatestBlockhash":
		return at(s.latest, map[string]any{"blockhash": hashAt(s.latest), "lastValidBlockHeight": s.latest - s.skew + blockhashLife})
	case "getMinimumBalanceForRentExemption":
		var size uint64
		_ = json.Unmarshal(params[0], &size)
		return (size + 128) * 6960
	case "getFeeForMessage":
		return at(s.latest, 10_040)
	case "getRecentPrioritizationFees":
		return []any{}
	case "simulateTransaction":
		return at(s.latest, map[string]any{"err": nil, "unitsConsumed": 15_000})
	case "getSignatureStatuses":
		var ids []string
		_ = json.Unmarshal(params[0], &ids)
		if s.transactions[ids[0]] != nil {
			return at(s.latest, []any{map[string]any{"slot": s.final, "confirmationStatus": finalized}})
		}
		return at(s.latest, []any{nil})
	case "getTransaction":
		return s.transaction(params)
	case "getFirstAvailableBlock":
		return 0
	case "isBlockhashValid":
		return at(s.latest, true)
	}
	return &rpcError{Code: -32601, Message: "Method not found"}
}

// transaction is one of the transactions, which moved nothing, in the form that is asked for.
func (s *stub) transaction(params []json.RawMessage) any {
	var id string
	var form struct{ Encoding string }
	_, _ = json.Unmarshal(params[0], &id), json.Unmarshal(params[1], &form)
	raw := s.transactions[id]
	switch {
	case raw == nil:
		return nil
	case form.Encoding == "base64":
		return map[string]any{"slot": s.final, "transaction": []string{base64.StdEncoding.EncodeToString(raw), "base64"}}
	}
	return map[string]any{
		"slot": s.final, "transaction": map[string]any{"signatures": []string{id}, "message": map[string]any{"accountKeys": []string{usdt}}},
		"meta": map[string]any{
			"err": nil, "fee": 5000, "preBalances": []int{9000}, "postBalances": []int{4000}, "preTokenBalances": []any{}, "postTokenBalances": []any{},
		},
	}
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	s.asked = append(s.asked, q.Method)
	if s.status != 0 {
		http.Error(w, "out of order", s.status)
		return
	}
	out := map[string]any{"jsonrpc": "2.0", "id": 1}
	a := s.answer(q.Method, q.Params)
	if refused, ok := a.(*rpcError); ok {
		out["error"] = map[string]any{"code": refused.Code, "message": refused.Message, "data": refused.Data}
	} else {
		out["result"] = a
	}
	_ = json.NewEncoder(w).Encode(out) // the client went away
}

// serve starts a stub on a local port.
func serve(t testing.TB, s *stub) Endpoint {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return Endpoint{URL: server.URL + "/rpc?key=secret"}
}

// stubbed is a driver for stub nodes.
func stubbed(t testing.TB, stubs ...*stub) *Client {
	t.Helper()
	c := Config{
		Genesis: GenesisMainnet, Now: func() time.Time { return stubNow },
		Tokens: map[money.Asset]string{money.USDT: usdt, money.USDC: usdc},
	}
	for _, s := range stubs {
		c.Nodes = append(c.Nodes, serve(t, s))
	}
	client, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func accountJSON(lamports uint64, owner sdk.PublicKey, data []byte) map[string]any {
	return map[string]any{
		"lamports": lamports, "owner": owner.String(), "executable": false, "rentEpoch": 0, "space": len(data),
		"data": []string{base64.StdEncoding.EncodeToString(data), "base64"},
	}
}

func mintAccount(decimals byte, program sdk.PublicKey) map[string]any {
	data := make([]byte, mintSize)
	data[44], data[45] = decimals, 1 // after the authority and the supply
	return accountJSON(1_461_600, program, data)
}

// holdingAccount is a token account. State 1 is initialised, 2 frozen.
func holdingAccount(mint, owner sdk.PublicKey, amount uint64, state byte) map[string]any {
	return accountJSON(2_039_280, sdk.TokenProgramID, holdingData(mint, owner, amount, state))
}

func holdingData(mint, owner sdk.PublicKey, amount uint64, state byte) []byte {
	data := make([]byte, tokenAccountSize)
	copy(data, mint[:])
	copy(data[32:], owner[:])
	binary.LittleEndian.PutUint64(data[64:], amount)
	data[108] = state
	return data
}

func walletAccount(lamports uint64) map[string]any {
	return accountJSON(lamports, sdk.SystemProgramID, nil)
}

func ataOf(t testing.TB, wallet sdk.PublicKey, mint string) sdk.PublicKey {
	t.Helper()
	a, err := tokenAccount(wallet, sdk.MustPublicKeyFromBase58(mint))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// harness is a stub with a sender who holds 100 USDT and 1 SOL, and a fee payer with 1 SOL.
func harness(t testing.TB) (*stub, chain.Draft) {
	t.Helper()
	s := newStub()
	alice, payer, bob := named("alice"), named("payer"), named("bob")
	const sol = 1_000_000_000
	s.accounts[alice.address()] = walletAccount(sol)
	s.accounts[payer.address()] = walletAccount(sol)
	s.accounts[ataOf(t, alice.key(), usdt).String()] = holdingAccount(sdk.MustPublicKeyFromBase58(usdt), alice.key(), 100_000_000, 1)
	return s, chain.Draft{
		Transfer: chain.Transfer{From: alice.address(), To: bob.address(), Amount: money.Must(money.USDT, "10")},
		FeePayer: payer.address(),
	}
}

func wantReason(t testing.TB, what string, err error, want chain.Reason) {
	t.Helper()
	if got := chain.ReasonOf(err); got != want {
		t.Errorf("%s: reason %q, want %q: %v", what, got, want, err)
	}
}
