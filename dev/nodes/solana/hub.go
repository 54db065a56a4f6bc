package solana

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Limits of the websocket. A client that reads too slowly loses its connection,
// as with Agave, and must look for what it missed.
const (
	maxConnections   = 200
	maxSubscriptions = 1_000 // of a connection
	maxQueued        = 4_096 // messages of a connection
	writeWait        = 10 * time.Second
)

// hub keeps the websockets and their subscriptions. Where both locks are taken,
// the ledger's comes first.
type hub struct {
	mu          sync.Mutex
	lastID      uint64
	connections map[*connection]bool
	closed      bool
	work        sync.WaitGroup
}

func newHub() *hub { return &hub{connections: map[*connection]bool{}} }

// connection is one websocket. Its queue is written to with the hub locked, so
// that all messages leave in the order of the chain.
type connection struct {
	queue chan []byte
	drop  context.CancelFunc
	subs  map[uint64]*subscription
	order []uint64 // of subscribing
}

// send queues a message, or drops a connection whose queue is full.
func (c *connection) send(message any) {
	raw, err := json.Marshal(message)
	if err != nil {
		c.drop()
		return
	}
	select {
	case c.queue <- raw:
	default:
		c.drop()
	}
}

// subscription asks the ledger for what is new.
type subscription struct {
	id     uint64
	method string // of its notifications
	// next gives the results to send, and whether there will be no more.
	next func(*ledger) (results []any, done bool)
}

// notify notifies every subscriber of what a change of the ledger, which is locked,
// means for it.
func (h *hub) notify(l *ledger) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.connections {
		for _, id := range c.order {
			if s := c.subs[id]; s != nil {
				c.poll(l, s)
			}
		}
	}
}

// poll sends the notifications of a subscription.
func (c *connection) poll(l *ledger, s *subscription) {
	results, done := s.next(l)
	for _, result := range results {
		c.send(object{"jsonrpc": jsonRPCVersion, "method": s.method, "params": object{"subscription": s.id, "result": result}})
	}
	if done {
		c.forget(s.id)
	}
}

func (c *connection) forget(id uint64) {
	delete(c.subs, id)
	kept := make([]uint64, 0, len(c.order))
	for _, other := range c.order {
		if other != id {
			kept = append(kept, other)
		}
	}
	c.order = kept
}

// close ends all connections and waits for them.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for c := range h.connections {
		c.drop()
	}
	h.mu.Unlock()
	h.work.Wait()
}

// join makes a connection known, unless there are too many.
func (h *hub) join(c *connection) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.connections) >= maxConnections {
		return false
	}
	h.connections[c] = true
	h.work.Add(1)
	return true
}

func (h *hub) leave(c *connection) {
	h.mu.Lock()
	delete(h.connections, c)
	h.mu.Unlock()
	h.work.Done()
}

// upgrade serves a websocket until it ends.
func (s *rpcServer) upgrade(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "Used HTTP Method is not allowed. POST or OPTIONS is required", http.StatusMethodNotAllowed)
		return
	}
	// Pages of other origins may connect: the node is public to this machine.
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = ws.CloseNow() }() // mostly closed already
	ws.SetReadLimit(maxBodyBytes)
	ctx, drop := context.WithCancel(context.WithoutCancel(r.Context()))
	defer drop()
	c := &connection{queue: make(chan []byte, maxQueued), drop: drop, subs: map[uint64]*subscription{}}
	h := s.node.hub
	if !h.join(c) {
		_ = ws.Close(websocket.StatusTryAgainLater, "too many connections") // the client may be gone
		return
	}
	defer h.leave(c)
	h.work.Go(func() {
		defer drop()
		for {
			select {
			case <-ctx.Done():
				return
			case message := <-c.queue:
				if err := write(ctx, ws, message); err != nil {
					return
				}
			}
		}
	})
	for {
		_, body, err := ws.Read(ctx)
		if err != nil {
			return
		}
		s.node.receive(c, body)
	}
}

func write(ctx context.Context, ws *websocket.Conn, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	return ws.Write(ctx, websocket.MessageText, message)
}
