package solana

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/gagliardetto/solana-go"
)

// TestAnyParametersAreAnswered gives every method every mix of parameters: each is
// answered or refused, and none ends the node.
func TestAnyParametersAreAnswered(t *testing.T) {
	b := newBench(t)
	alice := b.alice()
	signature := b.Transactions(alice.PublicKey())[0].Signature
	b.finalise()
	shapes := []any{
		nil, 0, -1, 1e30, "", "\x00", alice.PublicKey(), solana.SystemProgramID, signature,
		[]any{},
		[]any{nil},
		[]any{alice.PublicKey()},
		[]any{signature},
		object{},
		object{"commitment": 1},
		object{"mint": nil},
		object{"mint": USDTAddress},
		object{"mentions": []any{7}},
		object{"encoding": "jsonParsed", "dataSlice": object{"offset": uint64(1) << 63, "length": uint64(1) << 63}},
		object{"filters": []any{object{}, nil}},
		object{"filters": []any{object{"memcmp": object{"offset": uint64(1) << 63, "bytes": "1"}}}},
		object{"accounts": object{"addresses": []any{"x"}}, "maxSupportedTransactionVersion": -1, "transactionDetails": "accounts"},
	}
	server := &rpcServer{node: b.Node, methods: methods()}
	c := &connection{queue: make(chan []byte, 1_000_000), drop: func() { t.Error("dropped") }, subs: map[uint64]*subscription{}}
	ask := func(name string, params []any) {
		t.Helper()
		body, err := json.Marshal(object{"jsonrpc": "2.0", "id": 1, "method": name, "params": params})
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := server.handle(body)
		raw, err := json.Marshal(answer)
		var out answerOrError
		if err == nil {
			err = json.Unmarshal(raw, &out)
		}
		if err != nil || (out.Result == nil) == (out.Error == nil) {
			t.Errorf("%s is answered with %s, %v", body, raw, err)
		}
		b.receive(c, body)
	}
	names := []string{"slotSubscribe", "rootSubscribe", "accountSubscribe", "signatureSubscribe", "logsSubscribe", "logsUnsubscribe"}
	for name := range server.methods {
		names = append(names, name)
	}
	for _, name := range names {
		ask(name, nil)
		for _, first := range shapes {
			ask(name, []any{first})
			for _, second := range shapes {
				ask(name, []any{first, second})
			}
		}
		clear(c.subs)
		c.order = nil
	}
	b.block()
	if got := b.ask("getHealth"); string(got.Result) != `"ok"` {
		t.Errorf("health %s", got.Result)
	}
}

// answerOrError tells a result of null from none.
type answerOrError struct {
	Result *json.RawMessage
	Error  *rpcError
}

func (a *answerOrError) UnmarshalJSON(raw []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	if result, ok := fields["result"]; ok {
		a.Result = &result
	}
	if refusal, ok := fields["error"]; ok {
		return json.Unmarshal(refusal, &a.Error)
	}
	return nil
}

// FuzzMessages gives both servers any bytes.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"getBlock","params":[1,{"encoding":"jsonParsed"}]}`,
		`[{"jsonrpc":"2.0","method":"getSlot"}]`, `{"jsonrpc":"2.0","id":1,"method":"logsSubscribe","params":["all"]}`, `null`, `[[]]`, `{"id":{}}`,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"simulateTransaction","params":["%s"]}`, solana.Signature{}),
	} {
		f.Add([]byte(seed))
	}
	n, err := New(Config{Log: quiet()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = n.Close() })
	server := &rpcServer{node: n, methods: methods()}
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, _ := server.handle(body)
		if _, err := json.Marshal(answer); err != nil {
			t.Errorf("an answer that can't be written: %v", err)
		}
		n.receive(&connection{queue: make(chan []byte, 10), drop: func() {}, subs: map[uint64]*subscription{}}, body)
	})
}
