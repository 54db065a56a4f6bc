package ethereum

import (
	"crypto/ecdsa"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"

	"kivuko/exchange/money"
)

const stubChain = 31_337

var (
	usdtContract = common.HexToAddress("0xdAC17F958D2ee523a2206206994597C13D831ec7")
	usdcContract = common.HexToAddress("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48")
	alice        = common.HexToAddress("0x00000000000000000000000000000000000A11cE")
	bob          = common.HexToAddress("0x0000000000000000000000000000000000000B0b")
)

// rpcError is a JSON-RPC error of a stub.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string  { return e.Message }
func (e *rpcError) ErrorCode() int { return e.Code }

// answer is a stub's handler of one method.
type answer func(params []json.RawMessage) (any, *rpcError)

func fixed(v any) answer {
	return func([]json.RawMessage) (any, *rpcError) { return v, nil }
}

func fails(code int, message string) answer {
	return func([]json.RawMessage) (any, *rpcError) { return nil, &rpcError{code, message} }
}

// stub is a node with configurable responses.
type stub struct {
	URL string

	mu       sync.Mutex
	methods  map[string]answer
	calls    map[string]int
	requests int // over HTTP
	status   int // sent instead of every response, when set
}

// newStub is a node with an empty chain whose newest block is 100 and whose final block is 90.
func newStub(t *testing.T) *stub {
	t.Helper()
	s := &stub{methods: map[string]answer{}, calls: map[string]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	s.set("eth_chainId", fixed(hexutil.Uint64(stubChain)))
	s.heads(100, 90)
	s.set("eth_getTransactionByHash", fixed(nil))
	s.set("eth_getTransactionReceipt", fixed(nil))
	s.set("eth_getTransactionCount", fixed(hexutil.Uint64(0)))
	return s
}

func (s *stub) set(method string, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.methods[method] = a
}

func (s *stub) fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *stub) called(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// heads makes every block a header without transactions.
func (s *stub) heads(latest, final uint64) {
	s.set("eth_getBlockByNumber", func(params []json.RawMessage) (any, *rpcError) {
		var tag string
		if err := json.Unmarshal(params[0], &tag); err != nil {
			return nil, &rpcError{-32602, err.Error()}
		}
		switch tag {
		case tagLatest:
			return blockAt(latest), nil
		case tagFinal:
			return blockAt(final), nil
		}
		if n, err := hexutil.DecodeUint64(tag); err == nil && n <= latest {
			return blockAt(n), nil
		}
		return nil, nil
	})
}

func hashAt(number uint64) common.Hash {
	return crypto.Keccak256Hash(new(big.Int).SetUint64(number).Bytes())
}

func blockAt(number uint64) map[string]any {
	return map[string]any{
		"number": hexutil.Uint64(number), "hash": hashAt(number), "parentHash": hashAt(number - 1), "timestamp": hexutil.Uint64(time.Now().Unix()),
		"baseFeePerGas": (*hexutil.Big)(big.NewInt(1e9)), "receiptsRoot": types.EmptyReceiptsHash, "transactions": []any{},
	}
}

// request is a JSON-RPC request.
type request struct {
	ID     json.RawMessage
	Method string
	Params []json.RawMessage
}

// ServeHTTP answers JSON-RPC, one request or a batch of them.
func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	batch, one := []request(nil), request{}
	if json.Unmarshal(body, &batch) != nil {
		if err := json.Unmarshal(body, &one); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		batch = []request{one}
	}
	s.mu.Lock()
	s.requests++
	s.mu.Unlock()
	var all []any
	for _, q := range batch {
		all = append(all, s.respond(q))
	}
	s.mu.Lock()
	status := s.status
	s.mu.Unlock()
	if status != 0 {
		http.Error(w, "no", status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var out any = all
	if one.Method != "" {
		out = all[0]
	}
	_ = json.NewEncoder(w).Encode(out) // the client went away
}

func (s *stub) respond(q request) map[string]any {
	s.mu.Lock()
	s.calls[q.Method]++
	take := s.methods[q.Method]
	s.mu.Unlock()
	if take == nil {
		take = fails(-32601, "the method "+q.Method+" does not exist")
	}
	out := map[string]any{"jsonrpc": "2.0", "id": q.ID}
	if result, err := take(q.Params); err != nil {
		out["error"] = err
	} else {
		out["result"] = result
	}
	return out
}

// driver is a client of the stubs, in their order.
func driver(t *testing.T, stubs ...*stub) *Client {
	t.Helper()
	c := Config{
		ChainID: stubChain, CallTimeout: 5 * time.Second,
		Tokens: map[money.Asset]string{money.USDT: usdtContract.Hex(), money.USDC: usdcContract.Hex()},
	}
	for _, s := range stubs {
		c.Nodes = append(c.Nodes, Endpoint{URL: s.URL})
	}
	client, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// testKey is a private key of a test.
type testKey struct {
	*ecdsa.PrivateKey
	change func([]byte) []byte // changes signatures, for tests that need bad ones
}

func newKey(t *testing.T) testKey {
	t.Helper()
	k, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return testKey{PrivateKey: k}
}

func (k testKey) address() common.Address { return crypto.PubkeyToAddress(k.PrivateKey.PublicKey) }

// PublicKey is uncompressed.
func (k testKey) PublicKey() []byte { return crypto.FromECDSAPub(&k.PrivateKey.PublicKey) }

// Sign signs a digest.
func (k testKey) Sign(digest []byte) ([]byte, error) {
	signature, err := crypto.Sign(digest, k.PrivateKey)
	if k.change != nil {
		signature = k.change(signature)
	}
	return signature, err
}

// transferLog is a Transfer event.
func transferLog(contract, from, to common.Address, amount int64) *types.Log {
	return &types.Log{
		Address: contract, Data: common.BigToHash(big.NewInt(amount)).Bytes(),
		Topics: []common.Hash{transferTopic(), common.BytesToHash(from.Bytes()), common.BytesToHash(to.Bytes())},
	}
}

// receiptOf is the receipt of a transaction in a block.
func receiptOf(id common.Hash, number uint64, status uint64, logs ...*types.Log) *types.Receipt {
	const gas, price = 50_000, 2_000_000_000
	r := &types.Receipt{
		Type: types.DynamicFeeTxType, Status: status, TxHash: id, BlockHash: hashAt(number), BlockNumber: new(big.Int).SetUint64(number),
		GasUsed: gas, CumulativeGasUsed: gas, EffectiveGasPrice: big.NewInt(price), Logs: logs,
	}
	if r.Logs == nil {
		r.Logs = []*types.Log{}
	}
	for _, l := range r.Logs {
		l.TxHash, l.BlockHash, l.BlockNumber = id, r.BlockHash, number
	}
	r.Bloom = types.CreateBloom(r)
	return r
}

// mine puts a transaction into a block of the stub.
func (s *stub) mine(t transaction, r *types.Receipt) {
	n := hexutil.Uint64(r.BlockNumber.Uint64())
	t.BlockNumber = &n
	s.set("eth_getTransactionByHash", fixed(t))
	s.set("eth_getTransactionReceipt", fixed(r))
}

// fill makes the stub's block 95 hold transactions and their receipts.
func (s *stub) fill(txs []transaction, receipts types.Receipts) {
	const number = 95
	b := blockAt(number)
	b["transactions"], b["receiptsRoot"] = txs, types.DeriveSha(receipts, trie.NewStackTrie(nil))
	s.set("eth_getBlockByNumber", fixed(b))
	s.set("eth_getBlockReceipts", fixed(receipts))
}
