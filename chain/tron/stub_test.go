package tron

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"kivuko/exchange/money"
)

const (
	usdt  = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
	alice = "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH"
	bob   = "TJJYK18kh99YuZj5G2bLPDUQQ7tyk9kWZs"
)

var stubNow = time.UnixMilli(1_800_000_000_000)

// stub is a node with configurable responses, for those that an honest node never gives. Everything else is the empty
// message, which is java-tron's response for missing objects.
type stub struct {
	mu       sync.Mutex // held during each response
	head     int64      // number of the newest block
	lag      time.Duration
	down     bool
	lose     int // calls whose connection is closed instead of a response
	asked    int
	key      string
	tx       *core.Transaction
	info     *core.TransactionInfo
	pending  *core.Transaction
	block    *api.BlockExtention
	infos    *api.TransactionInfoList
	answer   *api.Return
	constant func(*core.TriggerSmartContract) *api.TransactionExtention
	params   *core.ChainParameters
	account  *core.Account
	resource *api.AccountResourceMessage
}

type stubWallet struct {
	api.UnimplementedWalletServer
	*stub
}

type stubSolidity struct {
	api.UnimplementedWalletSolidityServer
	*stub
}

func orEmpty[T any](v *T) *T {
	if v == nil {
		v = new(T)
	}
	return v
}

// set changes the node's responses.
func (s *stub) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// questions is how many calls it received.
func (s *stub) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *stub) headBlock(number int64) *api.BlockExtention {
	id := make([]byte, hashLength)
	binary.BigEndian.PutUint64(id, uint64(number))
	return &api.BlockExtention{Blockid: id, BlockHeader: &core.BlockHeader{RawData: &core.BlockHeaderRaw{
		Number: number, Timestamp: stubNow.Add(-s.lag).UnixMilli(), ParentHash: make([]byte, hashLength),
	}}}
}

func (s *stub) getBlock(r *api.BlockReq) (*api.BlockExtention, error) {
	if r.GetIdOrNum() == "" {
		return s.headBlock(s.head), nil
	}
	var n int64
	for _, d := range r.GetIdOrNum() {
		n = 10*n + int64(d-'0')
	}
	return s.headBlock(n), nil
}

func (s *stub) call(m *core.TriggerSmartContract) (*api.TransactionExtention, error) {
	if s.constant == nil {
		return &api.TransactionExtention{}, nil
	}
	return s.constant(m), nil
}

func (s stubWallet) GetBlock(_ context.Context, r *api.BlockReq) (*api.BlockExtention, error) {
	return s.getBlock(r)
}

func (s stubSolidity) GetBlock(_ context.Context, r *api.BlockReq) (*api.BlockExtention, error) {
	return s.getBlock(r)
}

func (s stubWallet) GetBlockByNum2(context.Context, *api.NumberMessage) (*api.BlockExtention, error) {
	return orEmpty(s.block), nil
}

func (s stubSolidity) GetBlockByNum2(context.Context, *api.NumberMessage) (*api.BlockExtention, error) {
	return orEmpty(s.block), nil
}

func (s stubWallet) GetTransactionInfoByBlockNum(context.Context, *api.NumberMessage) (*api.TransactionInfoList, error) {
	return orEmpty(s.infos), nil
}

func (s stubSolidity) GetTransactionInfoByBlockNum(context.Context, *api.NumberMessage) (*api.TransactionInfoList, error) {
	return orEmpty(s.infos), nil
}

func (s stubWallet) GetTransactionById(context.Context, *api.BytesMessage) (*core.Transaction, error) {
	return orEmpty(s.tx), nil
}

func (s stubSolidity) GetTransactionById(context.Context, *api.BytesMessage) (*core.Transaction, error) {
	return orEmpty(s.tx), nil
}

func (s stubWallet) GetTransactionInfoById(context.Context, *api.BytesMessage) (*core.TransactionInfo, error) {
	return orEmpty(s.info), nil
}

func (s stubSolidity) GetTransactionInfoById(context.Context, *api.BytesMessage) (*core.TransactionInfo, error) {
	return orEmpty(s.info), nil
}

func (s stubWallet) GetTransactionFromPending(context.Context, *api.BytesMessage) (*core.Transaction, error) {
	return orEmpty(s.pending), nil
}

func (s stubWallet) BroadcastTransaction(context.Context, *core.Transaction) (*api.Return, error) {
	return orEmpty(s.answer), nil
}

func (s stubWallet) TriggerConstantContract(_ context.Context, m *core.TriggerSmartContract) (*api.TransactionExtention, error) {
	return s.call(m)
}

func (s stubSolidity) TriggerConstantContract(_ context.Context, m *core.TriggerSmartContract) (*api.TransactionExtention, error) {
	return s.call(m)
}

func (s stubWallet) GetChainParameters(context.Context, *api.EmptyMessage) (*core.ChainParameters, error) {
	return orEmpty(s.params), nil
}

func (s stubWallet) GetAccount(context.Context, *core.Account) (*core.Account, error) {
	return orEmpty(s.account), nil
}

func (s stubSolidity) GetAccount(context.Context, *core.Account) (*core.Account, error) {
	return orEmpty(s.account), nil
}

func (s stubWallet) GetAccountResource(context.Context, *core.Account) (*api.AccountResourceMessage, error) {
	return orEmpty(s.resource), nil
}

// connections records accepted connections by the client's address.
type connections struct {
	net.Listener
	mu     sync.Mutex
	byPeer map[string]net.Conn
}

func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.byPeer[conn.RemoteAddr().String()] = conn
	}
	return conn, err
}

// hangUp closes the connection of a call.
func (c *connections) hangUp(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := peer.FromContext(ctx); ok {
		_ = c.byPeer[p.Addr.String()].Close() // the stub owns it
	}
}

// serve starts a stub on a local port.
func serve(t *testing.T, s *stub) Endpoint {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := &connections{Listener: l, byPeer: map[string]net.Conn{}}
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked++
		if keys := metadata.ValueFromIncomingContext(ctx, apiKeyHeader); len(keys) == 1 {
			s.key = keys[0]
		}
		if s.lose > 0 {
			s.lose--
			accepted.hangUp(ctx)
		}
		if s.down {
			return nil, status.Error(codes.Unavailable, "out of order")
		}
		return h(ctx, req)
	}))
	api.RegisterWalletServer(server, stubWallet{stub: s})
	api.RegisterWalletSolidityServer(server, stubSolidity{stub: s})
	go func() { _ = server.Serve(accepted) }() // ends with Stop
	t.Cleanup(server.Stop)
	return Endpoint{Address: l.Addr().String()}
}

// stubbed is a driver for stub nodes.
func stubbed(t *testing.T, full, solid []*stub) *Client {
	t.Helper()
	c := Config{Tokens: map[money.Asset]string{money.USDT: usdt}, Now: func() time.Time { return stubNow }}
	for _, s := range full {
		c.FullNodes = append(c.FullNodes, serve(t, s))
	}
	for _, s := range solid {
		c.SolidityNodes = append(c.SolidityNodes, serve(t, s))
	}
	client, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// success is a constant call that returned one word.
func success(word []byte) *api.TransactionExtention {
	return &api.TransactionExtention{
		Result: &api.Return{Result: true}, ConstantResult: [][]byte{word},
		Transaction: &core.Transaction{Ret: []*core.Transaction_Result{{Ret: core.Transaction_Result_SUCESS}}},
	}
}

// signedFixture is a signed transfer and its id.
func signedFixture(t testing.TB, c *Client) (id string, encoded []byte, tx *core.Transaction) {
	t.Helper()
	key := testKey{unhex(t, "2d8f68944bdbfbc0769542fba8fc2d2a3de67393334471624364c7006da2aa54")}
	from, err := c.Address(key.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	u := prepared(t, c, from)
	signed, err := c.Sign(u, key)
	if err != nil {
		t.Fatal(err)
	}
	tx, err = decodeSigned(signed.Raw)
	if err != nil {
		t.Fatal(err)
	}
	return signed.TxID, signed.Raw, tx
}

func idBytes(t testing.TB, id string) []byte {
	t.Helper()
	b, err := hex.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
