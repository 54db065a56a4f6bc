package solana

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"kivuko/chain"
)

const (
	maxIdleConnections = 16
	idleTimeout        = 90 * time.Second
)

// node is one endpoint with what is known of its health.
type node struct {
	endpoint  Endpoint
	client    *http.Client
	downUntil atomic.Int64 // Unix nanoseconds; before it the node is asked last
	proven    atomic.Bool  // it told the right genesis hash, and has answered since
}

// nodes are interchangeable endpoints, asked in the configured order, failing ones last.
type nodes struct {
	list       []*node
	genesis    string
	timeout    time.Duration
	retryAfter time.Duration
}

func newNodes(c Config) *nodes {
	all := &nodes{genesis: c.Genesis, timeout: c.CallTimeout, retryAfter: c.RetryAfter}
	for _, e := range c.Nodes {
		all.list = append(all.list, &node{endpoint: e, client: &http.Client{
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
				MaxIdleConnsPerHost: maxIdleConnections, IdleConnTimeout: idleTimeout,
			},
			// A redirection would take questions to a place that nobody configured.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}})
	}
	return all
}

func (n *nodes) close() {
	for _, one := range n.list {
		one.client.CloseIdleConnections()
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

// askOne puts a question to one node, within the time for it, and remembers how it went. A node that
// failed must prove its cluster again: another may stand at its address since.
func askOne[T any](ctx context.Context, n *nodes, one *node, question func(context.Context, *node) (T, error)) (T, error) {
	var none T
	bounded, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	err := n.prove(bounded, one)
	var answer T
	if err == nil {
		answer, err = question(bounded, one)
	}
	if err == nil {
		one.downUntil.Store(0)
		return answer, nil
	}
	if _, understood := errors.AsType[*chain.Error](err); !understood {
		err = chain.Wrap(chain.ReasonUnavailable, err, "node %s", one.endpoint)
	}
	if chain.ReasonOf(err) == chain.ReasonUnavailable && ctx.Err() == nil {
		one.proven.Store(false)
		one.downUntil.Store(time.Now().Add(n.retryAfter).UnixNano())
	}
	return none, err
}

// prove makes sure that a node is of the configured cluster. A node of another one counts as down, so
// that the others are asked.
func (n *nodes) prove(ctx context.Context, one *node) error {
	if one.proven.Load() {
		return nil
	}
	genesis, err := call[string](ctx, one, "getGenesisHash")
	if err != nil {
		return err
	}
	if genesis != n.genesis {
		return chain.Errorf(chain.ReasonUnavailable, "node %s is of another cluster: its genesis hash is %s, not %s", one.endpoint, quote(genesis), n.genesis)
	}
	one.proven.Store(true)
	return nil
}
