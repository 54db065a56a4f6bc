package ethereum

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
)

const (
	// maxAnswerBytes bounds one answer; the receipts of a full block are a few megabytes.
	maxAnswerBytes = 64 << 20
	// maxIdle is how many connections to a node are kept between questions.
	maxIdle = 32
)

// node is one endpoint with what is known of its health.
type node struct {
	endpoint  Endpoint
	downUntil atomic.Int64 // Unix nanoseconds; before it the node is asked last
	verified  atomic.Bool  // it has told the right chain id

	mu   sync.Mutex
	conn *rpc.Client // nil until the first question
}

// nodes are interchangeable endpoints, asked in the configured order, failing ones last.
type nodes struct {
	list       []*node
	chainID    uint64
	timeout    time.Duration
	retryAfter time.Duration
}

// webClient follows no redirection, which could lead to a place without TLS, and reads no answer
// without an end.
func webClient() *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: DefaultMaxHeadAge,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	return &http.Client{
		Transport:     bounded{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded cuts answers off.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = cut{io.LimitReader(answer.Body, maxAnswerBytes), answer.Body}
	}
	return answer, err
}

// cut is a body with an end.
type cut struct {
	io.Reader
	io.Closer
}

func newNodes(c Config) *nodes {
	all := &nodes{chainID: c.ChainID, timeout: c.CallTimeout, retryAfter: c.RetryAfter}
	for _, e := range c.Nodes {
		all.list = append(all.list, &node{endpoint: e})
	}
	return all
}

func (n *nodes) close() {
	for _, one := range n.list {
		one.mu.Lock()
		if one.conn != nil {
			one.conn.Close()
			one.conn = nil
		}
		one.mu.Unlock()
	}
}

// client opens the connection at the first question. A WebSocket that broke is opened again by the
// library; one that could not be opened is tried anew at the next question.
func (n *node) client(ctx context.Context) (*rpc.Client, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn != nil {
		return n.conn, nil
	}
	conn, err := rpc.DialOptions(ctx, n.endpoint.URL,
		rpc.WithHeaders(n.endpoint.Headers), rpc.WithHTTPClient(webClient()), rpc.WithWebsocketMessageSizeLimit(maxAnswerBytes))
	if err != nil {
		return nil, err
	}
	n.conn = conn
	return conn, nil
}

// order lists the nodes, healthy ones first.
func (n *nodes) order() []*node {
	now := time.Now().UnixNano()
	healthy, down := make([]*node, 0, len(n.list)), make([]*node, 0, len(n.list))
	for _, one := range n.list {
		if one.downUntil.Load() > now {
			down = append(down, one)
		} else {
			healthy = append(healthy, one)
		}
	}
	return append(healthy, down...)
}

// ask puts a question to one node after the other until one answers. The question runs against a
// single node, so that its parts fit each other. An *chain.Error other than ReasonUnavailable is an
// answer and ends the search.
func ask[T any](ctx context.Context, n *nodes, question func(context.Context, *rpc.Client) (T, error)) (T, error) {
	var none T
	var last error
	for _, one := range n.order() {
		answer, err := askOne(ctx, n, one, question)
		if err == nil || chain.ReasonOf(err) != chain.ReasonUnavailable {
			return answer, err
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	return none, last
}

// askOne puts a question to one node, within the time for it, and remembers how it went. A node of
// another chain is never asked.
func askOne[T any](ctx context.Context, n *nodes, one *node, question func(context.Context, *rpc.Client) (T, error)) (T, error) {
	var none T
	bounded, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	answer, err := func() (T, error) {
		conn, err := one.client(bounded)
		if err != nil {
			return none, err
		}
		if err := one.verify(bounded, conn, n.chainID); err != nil {
			return none, err
		}
		return question(bounded, conn)
	}()
	if err == nil {
		one.downUntil.Store(0)
		return answer, nil
	}
	if _, understood := errors.AsType[*chain.Error](err); !understood {
		err = chain.Wrap(chain.ReasonUnavailable, plain(err), "node %s", one.endpoint)
	}
	if chain.ReasonOf(err) == chain.ReasonUnavailable && ctx.Err() == nil {
		one.downUntil.Store(time.Now().Add(n.retryAfter).UnixNano())
		one.verified.Store(false) // it may come back as another one
	}
	return none, err
}

// verify asks a node once which chain it is on.
func (n *node) verify(ctx context.Context, conn *rpc.Client, want uint64) error {
	if n.verified.Load() {
		return nil
	}
	var id hexutil.Uint64
	if err := conn.CallContext(ctx, &id, "eth_chainId"); err != nil {
		return err
	}
	if uint64(id) != want {
		return chain.Errorf(chain.ReasonUnavailable, "node %s is on the chain %d and not on %d, so it is not used", n.endpoint, uint64(id), want)
	}
	n.verified.Store(true)
	return nil
}

// maxErrorText bounds what is quoted of a node's message.
const maxErrorText = 200

// plain makes an error of the RPC library fit for logs: an HTTP error holds the whole body, and a
// failed connection the address with its key.
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

// missing tells whether a node does not offer a method at all (JSON-RPC 2.0, section 5.1; EIP-1474).
func missing(err error) bool {
	const methodNotFound, methodNotSupported = -32601, -32004
	e, ok := errors.AsType[rpc.Error](err)
	return ok && (e.ErrorCode() == methodNotFound || e.ErrorCode() == methodNotSupported)
}
