package solana

import (
	"encoding/json"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/base58"
)

// call is one request while it is answered.
type call struct {
	node    *Node
	args    []json.RawMessage
	behind  uint64  // blocks
	outcome outcome // of what it sent
}

// method answers a call. Its errors are *rpcError.
type method func(*call) (any, error)

// has reports whether an argument is there.
func (c *call) has(i int) bool { return i < len(c.args) && string(c.args[i]) != "null" }

// argument reads the argument at a place into a variable.
func (c *call) argument(i int, name string, into any) error {
	if i >= len(c.args) {
		return invalid("Invalid params: missing %s", name)
	}
	if err := json.Unmarshal(c.args[i], into); err != nil {
		return invalid("Invalid params: %s: %v", name, err)
	}
	return nil
}

// options reads an argument that may be missing. Unknown fields are passed over,
// as Agave does.
func (c *call) options(i int, into any) error {
	if !c.has(i) {
		return nil
	}
	return c.argument(i, "options", into)
}

// key is the address that most methods take first.
func (c *call) key() (solana.PublicKey, error) {
	var text string
	if err := c.argument(0, "address", &text); err != nil {
		return solana.PublicKey{}, err
	}
	return parseKey(text)
}

// parseKey refuses with Agave's texts.
func parseKey(text string) (solana.PublicKey, error) {
	raw, err := base58.Decode(text)
	switch {
	case err != nil || text == "":
		return solana.PublicKey{}, invalid(textInvalidParam + "Invalid")
	case len(raw) != solana.PublicKeyLength:
		return solana.PublicKey{}, invalid(textInvalidParam + "WrongSize")
	}
	return solana.PublicKey(raw), nil
}

func parseSignature(text string) (solana.Signature, error) {
	raw, err := base58.Decode(text)
	switch {
	case err != nil || text == "":
		return solana.Signature{}, invalid(textInvalidParam + "Invalid")
	case len(raw) != solana.SignatureLength:
		return solana.Signature{}, invalid(textInvalidParam + "WrongSize")
	}
	return solana.Signature(raw), nil
}

// reading is the options that all reads have.
type reading struct {
	Commitment     commitment `json:"commitment"`
	MinContextSlot *uint64    `json:"minContextSlot"`
}

// sure is the commitment asked for; Agave's default is finalized.
func (r reading) sure() (commitment, error) {
	switch r.Commitment {
	case "":
		return finalized, nil
	case processed, confirmed, finalized:
		return r.Commitment, nil
	}
	return "", invalid("Invalid params: unknown variant `%s`, expected one of `processed`, `confirmed`, `finalized`.", string(r.Commitment))
}

// checkHistory refuses what can't be asked of the history of blocks.
func (r reading) checkHistory() error {
	c, err := r.sure()
	if err == nil && c == processed {
		return invalid(textBelowConfirmed)
	}
	return err
}

// view is the chain that the call sees. The ledger is locked.
func (c *call) view(r reading) (view, error) {
	sure, err := r.sure()
	if err != nil {
		return view{}, err
	}
	v := c.node.ledger.view(sure, c.behind)
	if r.MinContextSlot != nil && v.slot() < *r.MinContextSlot {
		return view{}, &rpcError{Code: codeMinContextSlot, Message: textMinContextSlot, Data: object{"contextSlot": v.slot()}}
	}
	return v, nil
}

// inContext is a value with the slot that it was read at.
func inContext(v view, value any) object {
	return object{"context": object{"apiVersion": apiVersion, "slot": v.slot()}, "value": value}
}

// reads makes a method of a function that reads with the options at a place.
func reads(options int, f func(*call, view) (any, error)) method {
	return func(c *call) (any, error) {
		var r reading
		if err := c.options(options, &r); err != nil {
			return nil, err
		}
		c.node.ledger.mu.RLock()
		defer c.node.ledger.mu.RUnlock()
		v, err := c.view(r)
		if err != nil {
			return nil, err
		}
		return f(c, v)
	}
}

// methods are all that the node answers over HTTP.
func methods() map[string]method {
	return map[string]method{
		"getHealth":              getHealth,
		"getVersion":             fixed(object{"solana-core": apiVersion, "feature-set": 0}),
		"getGenesisHash":         fixed(GenesisHash()),
		"getIdentity":            fixed(object{"identity": mustKey(GenesisAddress)}),
		"getFirstAvailableBlock": fixed(0),
		"minimumLedgerSlot":      fixed(0),
		"getEpochSchedule": fixed(object{
			"slotsPerEpoch": slotsPerEpoch, "leaderScheduleSlotOffset": slotsPerEpoch, "warmup": false, "firstNormalEpoch": 0, "firstNormalSlot": 0,
		}),

		"getSlot":             reads(0, func(_ *call, v view) (any, error) { return v.slot(), nil }),
		"getBlockHeight":      reads(0, func(_ *call, v view) (any, error) { return v.at, nil }),
		"getTransactionCount": reads(0, func(_ *call, v view) (any, error) { return v.header().total, nil }),
		"getEpochInfo":        reads(0, getEpochInfo),
		"getLatestBlockhash":  reads(0, getLatestBlockhash),
		"isBlockhashValid":    reads(1, isBlockhashValid),
		"getFeeForMessage":    reads(1, getFeeForMessage),

		"getMinimumBalanceForRentExemption": getMinimumBalance,
		"getRecentPrioritizationFees":       getRecentPrioritizationFees,

		"getBalance":              reads(1, getBalance),
		"getAccountInfo":          reads(1, getAccountInfo),
		"getMultipleAccounts":     reads(1, getMultipleAccounts),
		"getProgramAccounts":      reads(1, getProgramAccounts),
		"getTokenAccountBalance":  reads(1, getTokenAccountBalance),
		"getTokenSupply":          reads(1, getTokenSupply),
		"getTokenAccountsByOwner": reads(2, getTokenAccountsByOwner),

		"sendTransaction":         sendTransaction,
		"simulateTransaction":     simulateTransaction,
		"requestAirdrop":          requestAirdrop,
		"getSignatureStatuses":    getSignatureStatuses,
		"getSignaturesForAddress": getSignaturesForAddress,
		"getTransaction":          getTransaction,
		"getBlock":                getBlock,
		"getBlocks":               getBlocks,
		"getBlocksWithLimit":      getBlocksWithLimit,
		"getBlockTime":            getBlockTime,
	}
}

func fixed(answer any) method { return func(*call) (any, error) { return answer, nil } }
