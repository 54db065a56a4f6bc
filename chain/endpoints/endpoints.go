// Package endpoints queries the interchangeable nodes of one network, so that the failure of one node stops nothing.
package endpoints

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"kivuko/chain"
)

// Node is one endpoint. String names it in errors, without the secrets of its address.
type Node interface {
	fmt.Stringer
	// Prove checks that the node belongs to the configured network. It is called before the first query and again after
	// every failure, because the address may lead to another node by then. A node that fails it counts as down, and the
	// others are queried.
	Prove(ctx context.Context) error
}

// Pool holds the nodes in their configured order, with their health.
type Pool[N Node] struct {
	members    []*member[N]
	timeout    time.Duration
	retryAfter time.Duration
}

type member[N Node] struct {
	node      N
	downUntil atomic.Int64 // Unix nanoseconds; until then the node is queried last
	proven    atomic.Bool
}

// New makes a pool. A query to one node takes at most the timeout, and a failed node is queried after the others until
// retryAfter has passed.
func New[N Node](nodes []N, timeout, retryAfter time.Duration) *Pool[N] {
	p := &Pool[N]{timeout: timeout, retryAfter: retryAfter}
	for _, n := range nodes {
		p.members = append(p.members, &member[N]{node: n})
	}
	return p
}

// Nodes lists the nodes in their configured order.
func (p *Pool[N]) Nodes() []N {
	nodes := make([]N, len(p.members))
	for i, m := range p.members {
		nodes[i] = m.node
	}
	return nodes
}

// order lists the nodes, healthy ones first.
func (p *Pool[N]) order() []*member[N] {
	now := time.Now().UnixNano()
	healthy, down := make([]*member[N], 0, len(p.members)), make([]*member[N], 0, len(p.members))
	for _, m := range p.members {
		if m.downUntil.Load() > now {
			down = append(down, m)
		} else {
			healthy = append(healthy, m)
		}
	}
	return append(healthy, down...)
}

// ErrUnable marks the failure of a healthy node that can't serve this query, as set up. Others are queried, and the node does not
// count as down.
var ErrUnable = errors.New("the node does not serve this query")

// Ask sends a query to one node after the other until one responds. All parts of the query run on a single node, so that
// they are consistent. A *chain.Error other than ReasonUnavailable is a result and ends the search.
func Ask[T any, N Node](ctx context.Context, p *Pool[N], question func(context.Context, N) (T, error)) (T, error) {
	var none T
	var last error
	for answer, err := range All(ctx, p, question) {
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

// All sends a query to every node, one after the other, while the caller continues.
func All[T any, N Node](ctx context.Context, p *Pool[N], question func(context.Context, N) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, m := range p.order() {
			if !yield(ask(ctx, p, m, question)) {
				return
			}
		}
	}
}

// ask sends a query to one node, within the timeout, and records the node's health.
func ask[T any, N Node](ctx context.Context, p *Pool[N], m *member[N], question func(context.Context, N) (T, error)) (T, error) {
	var none T
	bounded, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	var answer T
	err := m.prove(bounded)
	if err == nil {
		answer, err = question(bounded, m.node)
	}
	if err == nil {
		m.downUntil.Store(0)
		return answer, nil
	}
	if _, understood := errors.AsType[*chain.Error](err); !understood {
		err = chain.Wrap(chain.ReasonUnavailable, err, "%s", m.node)
	}
	if chain.ReasonOf(err) == chain.ReasonUnavailable && !errors.Is(err, ErrUnable) && ctx.Err() == nil {
		m.proven.Store(false)
		m.downUntil.Store(time.Now().Add(p.retryAfter).UnixNano())
	}
	return none, err
}

func (m *member[N]) prove(ctx context.Context) error {
	if m.proven.Load() {
		return nil
	}
	if err := m.node.Prove(ctx); err != nil {
		return err
	}
	m.proven.Store(true)
	return nil
}

// CodeNoAnswer is the code of a broadcast without a response from any node. The bytes may have arrived.
const CodeNoAnswer = "NO_ANSWER"

// Offer sends a transaction to every node at once, because a node may be cut off, be busy or not forward it. The best
// response counts.
func Offer[N Node](ctx context.Context, p *Pool[N], offer func(context.Context, N) (chain.Broadcast, error)) chain.Broadcast {
	answers := make([]chain.Broadcast, len(p.members))
	var all sync.WaitGroup
	for i, m := range p.members {
		all.Go(func() {
			answer, err := ask(ctx, p, m, offer)
			if err != nil {
				answer = chain.Broadcast{State: chain.BroadcastUnknown, Code: CodeNoAnswer, Text: err.Error()}
			}
			answers[i] = answer
		})
	}
	all.Wait()
	best := answers[0]
	for _, a := range answers[1:] {
		if rank(a.State) > rank(best.State) {
			best = a
		}
	}
	return best
}

// rank orders responses by how strongly they show that the transaction is under way.
func rank(s chain.BroadcastState) int {
	switch s {
	case chain.BroadcastAccepted:
		return 3
	case chain.BroadcastKnown:
		return 2
	case chain.BroadcastUnknown:
		return 1
	case chain.BroadcastRejected:
	}
	return 0
}
