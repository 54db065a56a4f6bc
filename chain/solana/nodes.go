package solana

import (
	"context"
	"net/http"
	"time"

	"kivuko/chain"
	"kivuko/chain/endpoints"
)

const (
	maxIdleConnections = 16
	idleTimeout        = 90 * time.Second
)

// node is one endpoint.
type node struct {
	endpoint Endpoint
	genesis  string // that it must report
	client   *http.Client
}

// String names the node, without the secrets of its address.
func (n *node) String() string { return "node " + n.endpoint.String() }

type nodes = endpoints.Pool[*node]

func newNodes(c Config) *nodes {
	var all []*node
	for _, e := range c.Nodes {
		var transport http.RoundTripper = &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: maxIdleConnections, IdleConnTimeout: idleTimeout,
		}
		if c.Transport != nil {
			transport = c.Transport(transport)
		}
		all = append(all, &node{endpoint: e, genesis: c.Genesis, client: &http.Client{
			Transport: transport,
			// A redirect would send queries to an address that is not configured.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}})
	}
	return endpoints.New(all, c.CallTimeout, c.RetryAfter)
}

// ask sends a query to one node after the other until one responds.
func ask[T any](ctx context.Context, n *nodes, question func(context.Context, *node) (T, error)) (T, error) {
	return endpoints.Ask(ctx, n, question)
}

// Prove checks that a node belongs to the configured cluster.
func (n *node) Prove(ctx context.Context) error {
	genesis, err := call[string](ctx, n, "getGenesisHash")
	if err != nil {
		return err
	}
	if genesis != n.genesis {
		return chain.Errorf(chain.ReasonUnavailable, "%s is of another cluster: its genesis hash is %s, not %s", n, quote(genesis), n.genesis)
	}
	return nil
}
