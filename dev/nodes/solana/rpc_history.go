package solana

import (
	"fmt"

	"kivuko/dev/nodes/solana/svm"
)

// statusBlocks is how many final blocks getSignatureStatuses remembers without a
// search, Agave's MAX_CACHE_ENTRIES.
const statusBlocks = 300

func getSignatureStatuses(c *call) (any, error) {
	var texts []string
	if err := c.argument(0, "signatures", &texts); err != nil {
		return nil, err
	}
	if len(texts) > maxSignatureStatuses {
		return nil, invalid("Too many inputs provided; max %d", maxSignatureStatuses)
	}
	var o struct {
		SearchHistory bool `json:"searchTransactionHistory"`
	}
	if err := c.options(1, &o); err != nil {
		return nil, err
	}
	l := c.node.ledger
	l.mu.RLock()
	defer l.mu.RUnlock()
	v := l.view(processed, c.behind)
	out := []any{}
	for _, text := range texts {
		signature, err := parseSignature(text)
		if err != nil {
			return nil, err
		}
		e := v.entry(signature)
		if e == nil || !o.SearchHistory && e.height+statusBlocks < l.root {
			out = append(out, nil)
			continue
		}
		out = append(out, v.status(e))
	}
	return inContext(v, out), nil
}

// sureness is the commitment of a transaction in the view: a node that is behind
// is also behind with its final block.
func (v view) sureness(e *entry) commitment {
	return v.commitmentOf(e.height + v.height() - v.at)
}

func (v view) status(e *entry) object {
	sure := v.sureness(e)
	var confirmations any = v.at - e.height
	if sure == finalized {
		confirmations = nil
	}
	return object{
		"slot": e.slot, "confirmations": confirmations, "err": errorOrNull(e.result.Err),
		"status": okOrErr(e.result.Err), "confirmationStatus": sure,
	}
}

func okOrErr(err *svm.TransactionError) object {
	if err == nil {
		return object{"Ok": nil}
	}
	return object{"Err": err}
}

// getSignaturesForAddress lists the newest transactions first.
func getSignaturesForAddress(c *call) (any, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	o := struct {
		reading
		Limit  *int   `json:"limit"`
		Before string `json:"before"`
		Until  string `json:"until"`
	}{}
	if err := c.options(1, &o); err != nil {
		return nil, err
	}
	limit := maxSignaturesForAddress
	if o.Limit != nil {
		limit = *o.Limit
	}
	if limit < 1 || limit > maxSignaturesForAddress {
		return nil, invalid("Invalid limit; max %d", maxSignaturesForAddress)
	}
	for _, text := range []string{o.Before, o.Until} {
		if text == "" {
			continue
		}
		if _, err := parseSignature(text); err != nil {
			return nil, err
		}
	}
	if err := o.checkHistory(); err != nil {
		return nil, err
	}
	l := c.node.ledger
	l.mu.RLock()
	defer l.mu.RUnlock()
	v, err := c.view(o.reading)
	if err != nil {
		return nil, err
	}
	out := []object{}
	entries := l.byAddress[key]
	waiting := o.Before != ""
	for i := len(entries) - 1; i >= 0 && len(out) < limit; i-- {
		e := entries[i]
		if waiting {
			waiting = e.tx.ID().String() != o.Before
			continue
		}
		if e.tx.ID().String() == o.Until {
			break
		}
		if v.shows(e) {
			out = append(out, object{
				"signature": e.tx.ID(), "slot": e.slot, "err": errorOrNull(e.result.Err), "memo": memoOf(e.tx),
				"blockTime": e.time, "confirmationStatus": v.sureness(e), "transactionIndex": e.index,
			})
		}
	}
	return out, nil
}

// memoOf is the memos of a transaction with their lengths, null for none.
func memoOf(tx *svm.Transaction) any {
	text := ""
	for _, step := range tx.Message.Instructions {
		if !isMemoProgram(tx.Keys()[step.ProgramIDIndex]) {
			continue
		}
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("[%d] %s", len(step.Data), string(step.Data))
	}
	if text == "" {
		return nil
	}
	return text
}

// historical is the options of a read of blocks or transactions.
type historical struct {
	reading
	Encoding           string `json:"encoding"`
	MaxVersion         *int   `json:"maxSupportedTransactionVersion"`
	TransactionDetails string `json:"transactionDetails"`
	Rewards            *bool  `json:"rewards"`
}

// historical reads the options at a place; they may be the encoding alone.
func (c *call) historical(i int) (o historical, err error) {
	if c.has(i) && c.args[i][0] == '"' {
		err = c.argument(i, "encoding", &o.Encoding)
	} else {
		err = c.options(i, &o)
	}
	if err != nil {
		return o, err
	}
	switch o.Encoding {
	case "", "json":
		o.Encoding = "json"
	case encodingBinary:
		o.Encoding = encodingBase58
	case encodingBase58, encodingBase64, encodingJSONParsed:
	default:
		return o, invalid("Invalid params: unknown variant `%s`, expected one of `base64`, `base58`, `json`, `jsonParsed`", o.Encoding)
	}
	return o, o.checkHistory()
}

// supported refuses a transaction of a version that the caller can't read.
func (o historical) supported(tx *svm.Transaction) error {
	if tx.Message.IsVersioned() && o.MaxVersion == nil {
		return &rpcError{
			Code: codeVersion,
			Message: "Transaction version (0) is not supported by the requesting client. " +
				`Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": 0`,
		}
	}
	return nil
}

func getTransaction(c *call) (any, error) {
	var text string
	if err := c.argument(0, "signature", &text); err != nil {
		return nil, err
	}
	signature, err := parseSignature(text)
	if err != nil {
		return nil, err
	}
	o, err := c.historical(1)
	if err != nil {
		return nil, err
	}
	c.node.ledger.mu.RLock()
	defer c.node.ledger.mu.RUnlock()
	v, err := c.view(o.reading)
	if err != nil {
		return nil, err
	}
	e := v.entry(signature)
	if e == nil {
		return nil, nil
	}
	if err := o.supported(e.tx); err != nil {
		return nil, err
	}
	out := showTransaction(e, o)
	out["slot"], out["blockTime"], out["transactionIndex"] = e.slot, e.time, e.index
	return out, nil
}

func getBlock(c *call) (any, error) {
	var slot uint64
	if err := c.argument(0, "slot", &slot); err != nil {
		return nil, err
	}
	o, err := c.historical(1)
	if err != nil {
		return nil, err
	}
	c.node.ledger.mu.RLock()
	defer c.node.ledger.mu.RUnlock()
	v, err := c.view(o.reading)
	if err != nil {
		return nil, err
	}
	height, err := v.block(slot)
	if err != nil {
		return nil, err
	}
	h, parent := v.headers[height], v.headers[max(height, 1)-1]
	out := object{
		"blockHeight": height, "blockTime": h.unix(), "blockhash": h.hash, "previousBlockhash": parent.hash, "parentSlot": parent.slot,
	}
	if o.Rewards == nil || *o.Rewards {
		out["rewards"] = []any{}
	}
	return out, v.addTransactions(out, slot, o)
}

// addTransactions writes a block's transactions in the detail asked for.
func (v view) addTransactions(out object, slot uint64, o historical) error {
	var show func(*entry) any
	name := "transactions"
	switch o.TransactionDetails {
	case "none":
		return nil
	case "", "full":
		show = func(e *entry) any { return showTransaction(e, o) }
	case "accounts":
		show = func(e *entry) any { return showAccounts(e, o) }
	case "signatures":
		name = "signatures"
		show = func(e *entry) any { return e.tx.ID() }
	default:
		return invalid("Invalid params: unknown variant `%s`, expected one of `full`, `signatures`, `none`, `accounts`", o.TransactionDetails)
	}
	list := []any{}
	for _, e := range v.blocks[slot] {
		if err := o.supported(e.tx); err != nil && name == "transactions" {
			return err
		}
		list = append(list, show(e))
	}
	out[name] = list
	return nil
}
