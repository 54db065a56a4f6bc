package tron

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"kivuko/chain/endpoints"
)

// apiKeyHeader is TronGrid's metadata key for an API key.
const apiKeyHeader = "tron-pro-api-key"

// node is one endpoint.
type node struct {
	kind, address string
	conn          *grpc.ClientConn
	wallet        api.WalletClient
	solidity      api.WalletSolidityClient
}

// String names the node.
func (n *node) String() string { return n.kind + " node " + n.address }

// Prove checks nothing: a TRON node does not report its network.
func (n *node) Prove(context.Context) error { return nil }

type nodes = endpoints.Pool[*node]

// dial prepares the connections; each is opened at its first use.
func dial(kind string, list []Endpoint, timeout, retryAfter time.Duration, more []grpc.DialOption) (*nodes, error) {
	var all []*node
	for _, e := range list {
		conn, err := grpc.NewClient(e.Address, append(options(e), more...)...)
		if err != nil {
			hangUp(all)
			return nil, fmt.Errorf("tron: %s node %s: %w", kind, e, err)
		}
		all = append(all, &node{
			kind: kind, address: e.Address, conn: conn,
			wallet: api.NewWalletClient(conn), solidity: api.NewWalletSolidityClient(conn),
		})
	}
	return endpoints.New(all, timeout, retryAfter), nil
}

// askAgain makes gRPC send a read again when its connection ended, as happens when a node closes a kept-alive connection. A
// broadcast is sent once: the entry for a method precedes that for its service.
const askAgain = `{"methodConfig": [
	{"name": [{"service": "protocol.Wallet", "method": "BroadcastTransaction"}]},
	{"name": [{"service": "protocol.Wallet"}, {"service": "protocol.WalletSolidity"}],
	 "retryPolicy": {"maxAttempts": 2, "initialBackoff": "0.01s", "maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}
]}`

func options(e Endpoint) []grpc.DialOption {
	security := insecure.NewCredentials()
	if e.TLS {
		security = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})
	}
	o := []grpc.DialOption{
		grpc.WithTransportCredentials(security),
		grpc.WithDefaultServiceConfig(askAgain),
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

func hangUp(all []*node) {
	for _, one := range all {
		_ = one.conn.Close() // no important request is running, and the error has no use
	}
}

// ask sends a query to one node after the other until one responds.
func ask[T any](ctx context.Context, n *nodes, question func(context.Context, *node) (T, error)) (T, error) {
	return endpoints.Ask(ctx, n, question)
}

// unimplemented reports whether a node does not support a method.
func unimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }
