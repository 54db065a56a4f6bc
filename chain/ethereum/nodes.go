package ethereum

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
	"kivuko/chain/endpoints"
)

const (
	// maxAnswerBytes bounds one response; the receipts of a full block are a few megabytes.
	maxAnswerBytes = 64 << 20
	// maxIdle is how many connections to a node are kept between queries.
	maxIdle = 32
)

// node is one endpoint.
type node struct {
	endpoint Endpoint
	chainID  uint64 // that it must report
	wrap     func(http.RoundTripper) http.RoundTripper

	mu   sync.Mutex
	conn *rpc.Client // nil until the first query
}

// String names the node, without the secrets of its address.
func (n *node) String() string { return "node " + n.endpoint.String() }

type nodes = endpoints.Pool[*node]

// webClient follows no redirects, which could lead to an address without TLS, and limits responses.
func webClient(wrap func(http.RoundTripper) http.RoundTripper) *http.Client {
	var transport http.RoundTripper = &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: DefaultMaxHeadAge,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if wrap != nil {
		transport = wrap(transport)
	}
	return &http.Client{
		Transport:     bounded{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded limits the size of responses.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = cut{io.LimitReader(answer.Body, maxAnswerBytes), answer.Body}
	}
	return answer, err
}

// cut is a body with a size limit.
type cut struct {
	io.Reader
	io.Closer
}

func newNodes(c Config) *nodes {
	all := make([]*node, len(c.Nodes))
	for i, e := range c.Nodes {
		all[i] = &node{endpoint: e, chainID: c.ChainID, wrap: c.Transport}
	}
	return endpoints.New(all, c.CallTimeout, c.RetryAfter)
}

func (n *node) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn != nil {
		n.conn.Close()
		n.conn = nil
	}
}

// client opens the connection at the first query. The library reopens a broken WebSocket; one that could not be opened is
// tried again at the next query.
func (n *node) client(ctx context.Context) (*rpc.Client, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn != nil {
		return n.conn, nil
	}
	conn, err := rpc.DialOptions(ctx, n.endpoint.URL,
		rpc.WithHTTPClient(webClient(n.wrap)), rpc.WithWebsocketMessageSizeLimit(maxAnswerBytes))
	if err != nil {
		return nil, err
	}
	n.conn = conn
	return conn, nil
}

// ask sends a query to one node after the other until one responds.
func ask[T any](ctx context.Context, n *nodes, question func(context.Context, *rpc.Client) (T, error)) (T, error) {
	return endpoints.Ask(ctx, n, reading(question))
}

// idempotent marks requests that net/http may send again on a new connection, when the node closed a kept one just as they
// were sent (net/http Transport). Without a value the header is not sent.
var idempotent = http.Header{"Idempotency-Key": nil}

// reading wraps a query that only reads.
func reading[T any](question func(context.Context, *rpc.Client) (T, error)) func(context.Context, *node) (T, error) {
	return connected(func(ctx context.Context, conn *rpc.Client) (T, error) {
		return question(rpc.NewContextWithHeaders(ctx, idempotent), conn)
	})
}

// connected turns a query on a connection into one on a node. It makes errors of the RPC library safe for logs.
func connected[T any](question func(context.Context, *rpc.Client) (T, error)) func(context.Context, *node) (T, error) {
	return func(ctx context.Context, n *node) (answer T, err error) {
		conn, err := n.client(ctx)
		if err == nil {
			answer, err = question(ctx, conn)
		}
		return answer, understood(err)
	}
}

// understood leaves the driver's own errors unchanged.
func understood(err error) error {
	if _, ours := errors.AsType[*chain.Error](err); ours || err == nil {
		return err
	}
	return plain(err)
}

// Prove asks the node which chain it is on.
func (n *node) Prove(ctx context.Context) error {
	_, err := reading(n.prove)(ctx, n)
	return err
}

func (n *node) prove(ctx context.Context, conn *rpc.Client) (hexutil.Uint64, error) {
	var id hexutil.Uint64
	if err := conn.CallContext(ctx, &id, "eth_chainId"); err != nil {
		return id, err
	}
	if uint64(id) != n.chainID {
		return id, chain.Errorf(chain.ReasonUnavailable, "%s is on the chain %d and not on %d, so it is not used", n, uint64(id), n.chainID)
	}
	return id, nil
}

// maxErrorText bounds how much of a node's message is quoted.
const maxErrorText = 200

// plain makes an error of the RPC library safe for logs: an HTTP error contains the whole body, and a failed connection the
// address with its key.
func plain(err error) error {
	if e, ok := errors.AsType[rpc.HTTPError](err); ok {
		return errors.New("HTTP status " + quote(e.Status))
	}
	if e, ok := errors.AsType[rpc.Error](err); ok {
		return errors.New("JSON-RPC error: " + quote(e.Error()))
	}
	for _, known := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, known) {
			return known
		}
	}
	if e, ok := errors.AsType[interface {
		error
		Unwrap() error
		Timeout() bool
	}](err); ok && e.Unwrap() != nil {
		return errors.New(quote(e.Unwrap().Error()))
	}
	return errors.New(quote(err.Error()))
}

// missing reports whether a node does not support a method (JSON-RPC 2.0, section 5.1; EIP-1474).
func missing(err error) bool {
	const methodNotFound, methodNotSupported = -32601, -32004
	e, ok := errors.AsType[rpc.Error](err)
	return ok && (e.ErrorCode() == methodNotFound || e.ErrorCode() == methodNotSupported)
}
