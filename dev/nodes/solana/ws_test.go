package solana

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/ws"
)

// timeout is how long a test waits for what must come.
const timeout = time.Hour

// listen connects solana-go's websocket client.
func (b *bench) listen() *ws.Client {
	b.t.Helper()
	c, err := ws.Connect(context.Background(), "ws://"+b.WSAddr())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return c
}

// receive takes the next message of a subscription.
func receive[T any](t *testing.T, next func(context.Context) (T, error)) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	got, err := next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSubscriptionsThroughTheClient(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	c := b.listen()
	slots, err := c.SlotSubscribe()
	if err != nil {
		t.Fatal(err)
	}
	accounts, err := c.AccountSubscribe(bob.PublicKey(), rpc.CommitmentConfirmed)
	if err != nil {
		t.Fatal(err)
	}
	logs, err := c.LogsSubscribeMentions(bob.PublicKey(), rpc.CommitmentProcessed)
	if err != nil {
		t.Fatal(err)
	}
	signature := b.send(b.pay(alice, bob, sol))
	landed, err := c.SignatureSubscribe(signature, rpc.CommitmentFinalized)
	if err != nil {
		t.Fatal(err)
	}
	b.subscribed(4)
	head := b.block()
	if got := receive(t, slots.Recv); got.Slot != head.Slot || got.Parent != head.Slot-1 || got.Root != 0 {
		t.Errorf("slot %+v", got)
	}
	if got := receive(t, logs.Recv); got.Value.Signature != signature || got.Context.Slot != head.Slot || len(got.Value.Logs) != 2 {
		t.Errorf("logs %+v", got)
	}
	b.block()
	if got := receive(t, accounts.Recv); got.Value.Lamports != sol || got.Context.Slot != head.Slot {
		t.Errorf("account %+v", got)
	}
	b.finalise()
	if got := receive(t, landed.Recv); got.Value.Err != nil {
		t.Errorf("signature %+v", got)
	}
	late, err := c.SignatureSubscribe(signature, rpc.CommitmentFinalized)
	if err != nil {
		t.Fatal(err)
	}
	receive(t, late.Recv) // at once, without another block
}

// rawSocket is a connection whose messages a test sees as they are.
type rawSocket struct {
	t  *testing.T
	ws *websocket.Conn
}

func (b *bench) raw() rawSocket {
	b.t.Helper()
	c, response, err := websocket.Dial(context.Background(), "ws://"+b.RPCAddr(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if response.Body != nil {
		_ = response.Body.Close()
	}
	c.SetReadLimit(1 << 20)
	b.t.Cleanup(func() { _ = c.CloseNow() })
	return rawSocket{b.t, c}
}

func (r rawSocket) say(format string, args ...any) {
	r.t.Helper()
	if err := r.ws.Write(context.Background(), websocket.MessageText, fmt.Appendf(nil, format, args...)); err != nil {
		r.t.Fatal(err)
	}
}

func (r rawSocket) hear() string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, raw, err := r.ws.Read(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(raw)
}

// Notifications of all subscriptions of a connection come in the order of the
// chain, and none before the answer to its subscription.
func TestNotificationsAreOrdered(t *testing.T) {
	b := newBench(t)
	r := b.raw()
	for i := range 3 {
		r.say(`{"jsonrpc":"2.0","id":%d,"method":"slotSubscribe"}`, i)
		if got := r.hear(); !strings.Contains(got, fmt.Sprintf(`"id":%d`, i)) || !strings.Contains(got, `"result":`) {
			t.Fatalf("answer %d: %s", i, got)
		}
	}
	const blocks = 200
	b.blocks(blocks)
	for slot := 1; slot <= blocks; slot++ {
		for subscription := 1; subscription <= 3; subscription++ {
			var got struct {
				Params struct {
					Subscription int
					Result       struct{ Slot int }
				}
			}
			if err := json.Unmarshal([]byte(r.hear()), &got); err != nil {
				t.Fatal(err)
			}
			if got.Params.Subscription != subscription || got.Params.Result.Slot != slot {
				t.Fatalf("%+v came instead of slot %d of subscription %d", got, slot, subscription)
			}
		}
	}
	r.say(`{"jsonrpc":"2.0","id":9,"method":"slotUnsubscribe","params":[2]}`)
	if got := r.hear(); !strings.Contains(got, `"result":true`) {
		t.Fatal(got)
	}
	b.block()
	for _, id := range []int{1, 3} {
		if got := r.hear(); !strings.Contains(got, fmt.Sprintf(`"subscription":%d`, id)) {
			t.Fatalf("%s came instead of subscription %d", got, id)
		}
	}
}

// Logs of a fork are sent although its heights are not new.
func TestLogsOfAnotherFork(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	b.blocks(3)
	r := b.raw()
	r.say(`{"jsonrpc":"2.0","id":1,"method":"logsSubscribe","params":[{"mentions":["%s"]},{"commitment":"processed"}]}`, bob.PublicKey())
	r.hear()
	signature := b.send(b.pay(alice, bob, sol))
	for range 2 { // in a block, and again on the other fork
		slot := b.block().Slot
		got := r.hear()
		if !strings.Contains(got, signature.String()) || !strings.Contains(got, fmt.Sprintf(`"slot":%d}`, slot)) {
			t.Fatal(got)
		}
		if err := b.Reorganise(1, false); err != nil {
			t.Fatal(err)
		}
	}
}

// Of a program's accounts, those that a block wrote and that match are sent, and no others.
func TestProgramSubscription(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	b.block()
	r := b.raw()
	r.say(`{"jsonrpc":"2.0","id":1,"method":"programSubscribe","params":["%s",{"commitment":"processed","encoding":"base64","filters":[{"dataSize":0}]}]}`, solana.SystemProgramID)
	r.hear()
	b.blocks(2) // write nothing
	b.send(b.pay(alice, bob, sol))
	slot := b.block().Slot
	seen := map[string]bool{}
	for range 2 {
		var got struct {
			Method string
			Params struct {
				Result struct {
					Context struct{ Slot uint64 }
					Value   struct {
						Pubkey  string
						Account struct{ Lamports uint64 }
					}
				}
			}
		}
		text := r.hear()
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Method != "programNotification" || got.Params.Result.Context.Slot != slot {
			t.Fatalf("%s, %v", text, err)
		}
		if v := got.Params.Result.Value; v.Pubkey == bob.PublicKey().String() && v.Account.Lamports != sol {
			t.Errorf("%s", text)
		}
		seen[got.Params.Result.Value.Pubkey] = true
	}
	if !seen[alice.PublicKey().String()] || !seen[bob.PublicKey().String()] {
		t.Errorf("notified of %v", seen)
	}
	r.say(`{"jsonrpc":"2.0","id":2,"method":"programUnsubscribe","params":[1]}`)
	if got := r.hear(); !strings.Contains(got, `"result":true`) {
		t.Error(got)
	}
}

func TestBadSubscriptions(t *testing.T) {
	b := newBench(t)
	r := b.raw()
	for request, code := range map[string]int{
		`{"jsonrpc":`: codeParse,
		`{"jsonrpc":"2.0","id":1,"method":"voteSubscribe"}`:                                   codeNoMethod,
		`{"jsonrpc":"2.0","id":1,"method":"accountSubscribe","params":["x"]}`:                 codeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"programSubscribe","params":["x"]}`:                 codeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"signatureSubscribe"}`:                              codeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"logsSubscribe","params":["some"]}`:                 codeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"logsSubscribe","params":[{"mentions":[]}]}`:        codeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"slotUnsubscribe","params":[77]}`:                   codeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"accountUnsubscribe","params":[]}`:                  codeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"slotSubscribe","params":{"a":1}}`:                  codeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"logsSubscribe","params":["all",{"commitment":1}]}`: codeInvalidParams,
	} {
		r.say("%s", request)
		if got := r.hear(); !strings.Contains(got, fmt.Sprintf(`"code":%d`, code)) {
			t.Errorf("%s: %s", request, got)
		}
	}
	response, err := http.Get("http://" + b.RPCAddr())
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET has status %d", response.StatusCode)
	}
}

// A client that does not read loses its connection, and nothing waits for it.
func TestSlowReaderIsDisconnected(t *testing.T) {
	b := newBench(t)
	r := b.raw()
	for i := range 400 {
		r.say(`{"jsonrpc":"2.0","id":%d,"method":"slotSubscribe"}`, i)
		r.hear()
	}
	for b.connected() {
		b.blocks(10)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for {
		if _, _, err := r.ws.Read(ctx); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				t.Fatal("the connection is still open")
			}
			return
		}
	}
}

// subscribed waits until the node has so many subscriptions: the client does not
// wait for the answers.
func (b *bench) subscribed(want int) {
	b.t.Helper()
	count := func() (got int) {
		b.hub.mu.Lock()
		defer b.hub.mu.Unlock()
		for c := range b.hub.connections {
			got += len(c.subs)
		}
		return got
	}
	for end := time.Now().Add(timeout); count() < want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("the node has %d subscriptions, want %d", count(), want)
		}
	}
}

func (b *bench) connected() bool {
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	return len(b.hub.connections) > 0
}

// A full queue ends the connection, and does not lose a message in the middle.
func TestFullQueueEndsTheConnection(t *testing.T) {
	dropped := false
	c := &connection{queue: make(chan []byte, 2), drop: func() { dropped = true }}
	for i := range 3 {
		if dropped {
			t.Fatalf("dropped before message %d", i)
		}
		c.send(i)
	}
	if !dropped {
		t.Error("a message was lost and the connection stays")
	}
}

func TestCloseEndsWebsockets(t *testing.T) {
	b := newBench(t)
	r := b.raw()
	r.say(`{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}`)
	r.hear()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.ws.Read(context.Background()); err == nil {
		t.Error("the websocket outlives the node")
	}
}
