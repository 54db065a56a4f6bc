package solana

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/solana/svm"
)

// receive answers one message of a websocket: subscribe or unsubscribe. The answer
// is queued with both locks held, so that no notification overtakes it.
func (n *Node) receive(c *connection, body []byte) {
	n.ledger.mu.RLock()
	defer n.ledger.mu.RUnlock()
	n.hub.mu.Lock()
	defer n.hub.mu.Unlock()
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		c.send(r.answer(nil, &rpcError{Code: codeParse, Message: "Parse error"}))
		return
	}
	result, s, err := n.subscribe(c, &r)
	if r.ID != nil { // clients keep the connection open with notifications
		c.send(r.answer(result, err))
	}
	if s != nil {
		c.poll(n.ledger, s)
	}
}

// subscribe carries a request out and returns the new subscription, if it made one.
func (n *Node) subscribe(c *connection, r *request) (result any, s *subscription, err error) {
	args, err := r.arguments()
	if err != nil {
		return nil, nil, err
	}
	call := &call{node: n, args: args}
	if kind, ok := strings.CutSuffix(r.Method, "Unsubscribe"); ok {
		var id uint64
		if err := call.argument(0, "subscription", &id); err != nil {
			return nil, nil, err
		}
		if s := c.subs[id]; s == nil || s.method != kind+"Notification" {
			return nil, nil, invalid("Invalid subscription id.")
		}
		c.forget(id)
		return true, nil, nil
	}
	kinds := map[string]func() (func(*ledger) ([]any, bool), error){
		"slotSubscribe": call.onSlot, "rootSubscribe": call.onRoot, "accountSubscribe": call.onAccount,
		"programSubscribe": call.onProgram, "signatureSubscribe": call.onSignature, "logsSubscribe": call.onLogs,
	}
	build, ok := kinds[r.Method]
	if !ok {
		return nil, nil, &rpcError{Code: codeNoMethod, Message: "Method not found"}
	}
	if len(c.subs) >= maxSubscriptions {
		return nil, nil, &rpcError{Code: codeInvalidRequest, Message: fmt.Sprintf("Internal Error: Subscription refused. Node subscription limit of %d reached", maxSubscriptions)}
	}
	next, err := build()
	if err != nil {
		return nil, nil, err
	}
	n.hub.lastID++
	s = &subscription{id: n.hub.lastID, method: strings.TrimSuffix(r.Method, "Subscribe") + "Notification", next: next}
	c.subs[s.id] = s
	c.order = append(c.order, s.id)
	return s.id, s, nil
}

// onSlot notifies of every new slot with a block.
func (c *call) onSlot() (func(*ledger) ([]any, bool), error) {
	last := c.node.ledger.head().slot
	return func(l *ledger) ([]any, bool) {
		head := l.head()
		if head.slot == last {
			return nil, false
		}
		last = head.slot
		parent := l.headers[max(l.height(), 1)-1].slot
		return []any{object{"slot": head.slot, "parent": parent, "root": l.headers[l.root].slot}}, false
	}, nil
}

// onRoot notifies of every slot that becomes final.
func (c *call) onRoot() (func(*ledger) ([]any, bool), error) {
	last := c.node.ledger.root
	return func(l *ledger) (out []any, done bool) {
		for ; last < l.root; last++ {
			out = append(out, l.headers[last+1].slot)
		}
		return out, false
	}, nil
}

// subscriptionOptions reads the options, which come second.
func (c *call) subscriptionOptions() (commitment, accountForm, error) {
	var o struct {
		reading
		accountForm
	}
	if err := c.options(1, &o); err != nil {
		return "", accountForm{}, err
	}
	sure, err := o.sure()
	if err != nil {
		return "", accountForm{}, err
	}
	return sure, o.accountForm, o.accountForm.check()
}

// onAccount notifies when an account changes at the commitment.
func (c *call) onAccount() (func(*ledger) ([]any, bool), error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	sure, form, err := c.subscriptionOptions()
	if err != nil {
		return nil, err
	}
	last, _ := c.node.ledger.view(sure, 0).Account(key)
	return func(l *ledger) ([]any, bool) {
		v := l.view(sure, 0)
		account, _ := v.Account(key)
		if sameAccount(account, last) {
			return nil, false
		}
		last = account
		shown, err := v.show(account, true, form)
		if err != nil { // too long for the encoding
			shown = nil
		}
		return []any{inContext(v, shown)}, false
	}, nil
}

// onProgram notifies of each account of a program that was written and matches the filters.
func (c *call) onProgram() (func(*ledger) ([]any, bool), error) {
	matches, err := c.programFilter()
	if err != nil {
		return nil, err
	}
	sure, form, err := c.subscriptionOptions()
	if err != nil {
		return nil, err
	}
	last := c.node.ledger.view(sure, 0).slot()
	return func(l *ledger) (out []any, done bool) {
		v := l.view(sure, 0)
		for _, key := range v.accounts.addresses(v.slot()) {
			account, _ := v.Account(key)
			if v.accounts.written(key, v.slot()) <= last || !matches(account) {
				continue
			}
			shown, err := v.show(account, true, form)
			if err != nil { // too long for the encoding
				shown = nil
			}
			out = append(out, inContext(v, object{"pubkey": key, "account": shown}))
		}
		last = max(last, v.slot())
		return out, false
	}, nil
}

func sameAccount(x, y svm.Account) bool {
	return x.Lamports == y.Lamports && x.Owner == y.Owner && bytes.Equal(x.Data, y.Data)
}

// onSignature notifies once, when a transaction has reached the commitment.
func (c *call) onSignature() (func(*ledger) ([]any, bool), error) {
	var text string
	if err := c.argument(0, "signature", &text); err != nil {
		return nil, err
	}
	signature, err := parseSignature(text)
	if err != nil {
		return nil, err
	}
	sure, _, err := c.subscriptionOptions()
	if err != nil {
		return nil, err
	}
	return func(l *ledger) ([]any, bool) {
		v := l.view(sure, 0)
		e := v.entry(signature)
		if e == nil {
			return nil, false
		}
		return []any{inContext(v, object{"err": errorOrNull(e.result.Err)})}, true
	}, nil
}

// onLogs sends the logs of the transactions that name an address, or of all.
func (c *call) onLogs() (func(*ledger) ([]any, bool), error) {
	key, err := c.logsFilter()
	if err != nil {
		return nil, err
	}
	sure, _, err := c.subscriptionOptions()
	if err != nil {
		return nil, err
	}
	// Slots, not heights: those of another fork are new, and its heights are not.
	last := c.node.ledger.view(sure, 0).slot()
	return func(l *ledger) (out []any, done bool) {
		v := l.view(sure, 0)
		first := v.at + 1
		for first > 0 && l.headers[first-1].slot > last {
			first--
		}
		for height := first; height <= v.at; height++ {
			at := view{l, height}
			for _, e := range l.blocks[at.slot()] {
				if key == nil || names(e.tx, *key) {
					out = append(out, inContext(at, object{
						"signature": e.tx.ID(), "err": errorOrNull(e.result.Err), "logs": orEmpty(e.result.Logs),
					}))
				}
			}
		}
		last = max(last, v.slot())
		return out, false
	}, nil
}

// logsFilter is the address to look for; nil means all.
func (c *call) logsFilter() (*solana.PublicKey, error) {
	var all string
	if err := c.argument(0, "filter", &all); err == nil {
		if all != "all" && all != "allWithVotes" {
			return nil, invalid("Invalid params: unknown variant `%s`, expected one of `all`, `allWithVotes`, `mentions`", all)
		}
		return nil, nil
	}
	var some struct {
		Mentions []string `json:"mentions"`
	}
	if err := c.argument(0, "filter", &some); err != nil {
		return nil, err
	}
	if len(some.Mentions) != 1 {
		return nil, invalid("Invalid Request: Only 1 address supported")
	}
	key, err := parseKey(some.Mentions[0])
	if err != nil {
		return nil, err
	}
	return &key, nil
}

func names(tx *svm.Transaction, key solana.PublicKey) bool {
	for _, k := range tx.Keys() {
		if k == key {
			return true
		}
	}
	return false
}
