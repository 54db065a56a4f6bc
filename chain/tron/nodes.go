package tron

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"kivuko/chain"
)

// apiKeyHeader is TronGrid's metadata key for an API key.
const apiKeyHeader = "tron-pro-api-key"

// node is one endpoint with what is known of its health.
type node struct {
	name      string
	conn      *grpc.ClientConn
	wallet    api.WalletClient
	solidity  api.WalletSolidityClient
	downUntil atomic.Int64 // Unix nanoseconds; before it the node is asked last
}

// nodes are interchangeable endpoints, asked in the configured order, failing ones last.
type nodes struct {
	kind       string
	list       []*node
	timeout    time.Duration
	retryAfter time.Duration
}

// dial prepares the connections; none is opened before it is used.
func dial(kind string, endpoints []Endpoint, timeout, retryAfter time.Duration) (*nodes, error) {
	all := &nodes{kind: kind, timeout: timeout, retryAfter: retryAfter}
	for _, e := range endpoints {
		conn, err := grpc.NewClient(e.Address, options(e)...)
		if err != nil {
			all.close()
			return nil, fmt.Errorf("tron: %s node %s: %w", kind, e, err)
		}
		all.list = append(all.list, &node{
			name: e.Address, conn: conn,
			wallet: api.NewWalletClient(conn), solidity: api.NewWalletSolidityClient(conn),
		})
	}
	return all, nil
}

func options(e Endpoint) []grpc.DialOption {
	security := insecure.NewCredentials()
	if e.TLS {
		security = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})
	}
	o := []grpc.DialOption{
		grpc.WithTransportCredentials(security),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)),
	}
	if e.APIKey != "" {
		key := e.APIKey
		o = append(o, grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any,
			conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			return invoke(metadata.AppendToOutgoingContext(ctx, apiKeyHeader, key), method, req, reply, conn, opts...)
		}))
	}
	return o
}

func (n *nodes) close() {
	for _, one := range n.list {
		_ = one.conn.Close() // nothing is in flight that matters, and nobody could act on it
	}
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
func ask[T any](ctx context.Context, n *nodes, question func(context.Context, *node) (T, error)) (T, error) {
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

// askOne puts a question to one node, within the time for it, and remembers how it went.
func askOne[T any](ctx context.Context, n *nodes, one *node, question func(context.Context, *node) (T, error)) (T, error) {
	var none T
	bounded, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	answer, err := question(bounded, one)
	if err == nil {
		one.downUntil.Store(0)
		return answer, nil
	}
	if _, understood := errors.AsType[*chain.Error](err); !understood {
		err = chain.Wrap(chain.ReasonUnavailable, err, "%s node %s", n.kind, one.name)
	}
	if chain.ReasonOf(err) == chain.ReasonUnavailable && ctx.Err() == nil {
		one.downUntil.Store(time.Now().Add(n.retryAfter).UnixNano())
	}
	return none, err
}

// unimplemented tells whether a node does not offer a method at all.
func unimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }
