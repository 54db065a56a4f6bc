package tron

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
)

// The part of TronGrid's v1 API by which tronweb and wallets read events. A real
// network has it beside its nodes, not in them.
const (
	defaultEvents = 20
	maxEvents     = 200
)

// eventAPI serves
//
//	GET /v1/transactions/ID/events
//	GET /v1/contracts/ADDRESS/events
//	GET /v1/blocks/NUMBER/events and /v1/blocks/latest/events
//
// newest first, with event_name, block_number, only_confirmed, only_unconfirmed,
// min_block_timestamp, max_block_timestamp, order_by, limit and fingerprint.
func (n *Node) eventAPI(w http.ResponseWriter, r *http.Request) {
	f, err := readEventFilter(r)
	if err != nil {
		writeJSON(w, http.StatusBadRequest, object{"success": false, "error": err.Error(), "statusCode": http.StatusBadRequest})
		return
	}
	list := n.chain.events(f)
	meta := object{"at": time.Now().UnixMilli()}
	if f.offset = min(f.offset, len(list)); len(list) > f.offset+f.limit {
		meta["fingerprint"] = strconv.Itoa(f.offset + f.limit)
		list = list[:f.offset+f.limit]
	}
	page := list[f.offset:]
	meta["page_size"] = len(page)
	writeJSON(w, http.StatusOK, object{"success": true, "data": page, "meta": meta})
}

// eventFilter is what a request asks for.
type eventFilter struct {
	transaction            string
	contract               *Address
	block                  *int64
	latest                 bool
	name                   string
	confirmed, unconfirmed bool
	since, until           int64 // milliseconds
	ascending              bool
	limit, offset          int
}

var errNoSuchList = errors.New("no such list of events")

func readEventFilter(r *http.Request) (eventFilter, error) {
	q := r.URL.Query()
	f := eventFilter{
		name: q.Get("event_name"), confirmed: q.Get("only_confirmed") == "true", unconfirmed: q.Get("only_unconfirmed") == "true",
		ascending: q.Get("order_by") == "block_timestamp,asc",
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.Method != http.MethodGet || len(parts) != 4 || parts[3] != "events" {
		return f, errNoSuchList
	}
	switch what := parts[2]; parts[1] {
	case "transactions":
		f.transaction = strings.ToLower(what)
	case "contracts":
		a, err := ParseAddress(what)
		if err != nil {
			return f, err
		}
		f.contract = &a
	case "blocks":
		if f.latest = what == "latest"; !f.latest {
			q.Set("block_number", what)
		}
	default:
		return f, errNoSuchList
	}
	return f, f.readNumbers(q)
}

func (f *eventFilter) readNumbers(q url.Values) error {
	limit, offset, block := int64(defaultEvents), int64(0), int64(-1)
	for _, field := range []struct {
		name string
		into *int64
	}{
		{"limit", &limit},
		{"fingerprint", &offset},
		{"block_number", &block},
		{"min_block_timestamp", &f.since},
		{"max_block_timestamp", &f.until},
	} {
		text := q.Get(field.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("%s: want a whole number", field.name)
		}
		*field.into = n
	}
	if limit == 0 || limit > maxEvents {
		return fmt.Errorf("limit: want 1 to %d", maxEvents)
	}
	if block >= 0 {
		f.block = &block
	}
	f.limit, f.offset = int(limit), int(min(offset, maxListed))
	return nil
}

// events lists the events that a filter lets pass.
func (c *chain) events(f eventFilter) []object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := []object{}
	for i := range c.blocks {
		b := c.blocks[len(c.blocks)-1-i]
		if f.ascending {
			b = c.blocks[i]
		}
		if f.passes(b, c.solid, c.head().number) {
			out = append(out, c.blockEvents(b, f)...)
		}
		if len(out) > maxListed {
			break
		}
	}
	return out
}

func (f *eventFilter) passes(b *block, solid, head int64) bool {
	switch {
	case f.block != nil && b.number != *f.block, f.latest && b.number != head,
		f.confirmed && b.number > solid, f.unconfirmed && b.number <= solid,
		f.since > 0 && b.time < f.since, f.until > 0 && b.time > f.until:
		return false
	}
	return true
}

func (c *chain) blockEvents(b *block, f eventFilter) []object {
	var out []object
	for _, info := range b.infos {
		id := hex.EncodeToString(info.Id)
		if f.transaction != "" && f.transaction != id {
			continue
		}
		for i, l := range info.Log {
			at := addressOfVM(common.Address(l.Address))
			if f.contract != nil && *f.contract != at {
				continue
			}
			caller, _ := addressOf(info.ContractAddress)
			e := c.event(at, l)
			if f.name != "" && e["event_name"] != f.name {
				continue
			}
			e["block_number"], e["block_timestamp"], e["transaction_id"], e["event_index"] = b.number, b.time, id, i
			e["contract_address"], e["caller_contract_address"] = at.String(), caller.String()
			if b.number > c.solid {
				e["_unconfirmed"] = true
			}
			out = append(out, e)
		}
	}
	return out
}

// event reads a log by the contract's ABI; what it can't read is left as it is.
func (c *chain) event(at Address, l *core.TransactionInfo_Log) object {
	for _, e := range c.state.contract(at).GetAbi().GetEntrys() {
		if e.Type != core.SmartContract_ABI_Entry_Event || len(l.Topics) == 0 {
			continue
		}
		signature, text := eventTexts(e)
		if common.Hash(l.Topics[0]) != crypto.Keccak256Hash([]byte(signature)) {
			continue
		}
		result, types, err := eventValues(e, l)
		if err != nil {
			break
		}
		return object{"event_name": e.Name, "event": text, "result": result, "result_type": types}
	}
	topics := make([]string, len(l.Topics))
	for i, t := range l.Topics {
		topics[i] = hex.EncodeToString(t)
	}
	return object{"event_name": "", "result": object{"topics": topics, "data": hex.EncodeToString(l.Data)}, "result_type": object{}}
}

// eventTexts are the signature that is hashed and the form that people read.
func eventTexts(e *core.SmartContract_ABI_Entry) (signature, text string) {
	var kinds, parts []string
	for _, p := range e.Inputs {
		kind := canonicalKind(p.Type)
		kinds = append(kinds, kind)
		if p.Indexed {
			kind += " indexed"
		}
		parts = append(parts, kind+" "+p.Name)
	}
	return e.Name + "(" + strings.Join(kinds, ",") + ")", e.Name + "(" + strings.Join(parts, ", ") + ")"
}

// canonicalKind is a type as signatures have it.
func canonicalKind(kind string) string {
	switch kind {
	case "uint", "int":
		return kind + "256"
	}
	return kind
}

// eventValues are the values of an event by position and by name: numbers as
// decimal text, addresses as 20 bytes behind 0x.
func eventValues(e *core.SmartContract_ABI_Entry, l *core.TransactionInfo_Log) (result, types object, err error) {
	var plain abi.Arguments
	result, types = object{}, object{}
	kinds := make([]abi.Type, len(e.Inputs))
	for i, p := range e.Inputs {
		if kinds[i], err = abi.NewType(canonicalKind(p.Type), "", nil); err != nil {
			return nil, nil, err
		}
		types[p.Name] = canonicalKind(p.Type)
		if !p.Indexed {
			plain = append(plain, abi.Argument{Name: p.Name, Type: kinds[i]})
		}
	}
	values, err := plain.Unpack(l.Data)
	if err != nil {
		return nil, nil, err
	}
	topics := l.Topics[1:]
	for i, p := range e.Inputs {
		var value any
		switch {
		case !p.Indexed:
			value, values = values[0], values[1:]
		case len(topics) == 0:
			return nil, nil, fmt.Errorf("event %s has too few topics", e.Name)
		default:
			if value, err = topicValue(p.Name, kinds[i], topics[0]); err != nil {
				return nil, nil, err
			}
			topics = topics[1:]
		}
		result[strconv.Itoa(i)] = valueJSON(value)
		result[p.Name] = valueJSON(value)
	}
	return result, types, nil
}

// topicValue reads an indexed value; the topic of one that may be longer
// has its hash.
func topicValue(name string, kind abi.Type, topic []byte) (any, error) {
	switch kind.T {
	case abi.StringTy, abi.BytesTy, abi.SliceTy, abi.ArrayTy, abi.TupleTy:
		return common.Hash(topic), nil
	}
	values, err := abi.Arguments{{Name: name, Type: kind}}.Unpack(topic)
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

func valueJSON(v any) any {
	switch x := v.(type) {
	case common.Address:
		return "0x" + hex.EncodeToString(x[:])
	case common.Hash:
		return hex.EncodeToString(x[:])
	case []byte:
		return hex.EncodeToString(x)
	case bool, string:
		return fmt.Sprint(x)
	}
	return fmt.Sprint(v)
}
