package solana

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	bin "github.com/gagliardetto/binary"
	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/chain/endpoints"
)

// Bounds of the search for the transaction that used a nonce. Anyone may name our nonce account in a transaction.
const (
	historyPage  = 1_000 // the most that a node returns (getSignaturesForAddress)
	historyPages = 5
	maxInspected = 200
)

// Outcome implements chain.Multisig. While the nonce account has the value that was signed, the message can be executed. When
// it has another final value, the transaction that used the old one is in the account's history: it is this one, or another
// took its place. A known execution that is in a block needs no history, which strangers can fill.
func (c *Client) Outcome(ctx context.Context, j chain.Joint, executions ...string) (chain.JointOutcome, error) {
	in, err := c.jointOf(j.JointDraft)
	if err != nil {
		return chain.JointOutcome{}, err
	}
	_, p, err := reads(c.unsigned(j), in) // whatever a fee may be by now
	if err != nil {
		return chain.JointOutcome{}, err
	}
	for _, id := range executions {
		if !p.signed(j.Body, id) {
			continue // an execution of another choice of owners
		}
		if o, err := c.outcomeBy(ctx, id, j); err != nil || o.State != chain.JointOpen {
			return o, err
		}
	}
	final, err := c.nonceAt(ctx, finalized, p, j.Block.Number)
	if err != nil {
		return chain.JointOutcome{}, err
	}
	if final.value != p.blockhash {
		return c.ended(ctx, j, p, final.slot)
	}
	latest, err := c.nonceAt(ctx, confirmed, p, final.slot)
	if err != nil || latest.value == p.blockhash {
		return chain.JointOutcome{State: chain.JointOpen}, err
	}
	use, err := ask(ctx, c.nodes, func(ctx context.Context, n *node) (nonceUse, error) {
		return usedBy(ctx, n, j, p, confirmed, latest.slot)
	})
	if err != nil || !use.ours {
		return chain.JointOutcome{State: chain.JointOpen}, err // a block that may be undone proves nothing about another one
	}
	return c.outcomeBy(ctx, use.id, j)
}

// outcomeBy is the outcome by one execution: open while that is in no block.
func (c *Client) outcomeBy(ctx context.Context, id string, j chain.Joint) (chain.JointOutcome, error) {
	l, err := c.Locate(ctx, id)
	switch {
	case err != nil:
		return chain.JointOutcome{}, err
	case l.Stage == chain.StageIncluded:
		return chain.JointOutcome{State: chain.JointIncluded, TxID: id, Location: l}, nil
	case l.Stage == chain.StageFinal:
		return executed(id, l, *j.Transfer)
	}
	return chain.JointOutcome{State: chain.JointOpen}, nil
}

func (c *Client) nonceAt(ctx context.Context, commitment string, p plan, since uint64) (nonceState, error) {
	return ask(ctx, c.nodes, func(ctx context.Context, n *node) (nonceState, error) {
		state, found, err := readNonce(ctx, n, commitment, p.nonce, since)
		if err == nil && !found {
			err = chain.Errorf(chain.ReasonForeign, "the nonce account %s is gone", p.nonce)
		}
		return state, err
	})
}

// ended judges a message whose nonce has another final value. That another transaction used it is true only if no node has
// this one.
func (c *Client) ended(ctx context.Context, j chain.Joint, p plan, slot uint64) (chain.JointOutcome, error) {
	var other string
	var failures []error
	for use, err := range endpoints.All(ctx, c.nodes, func(ctx context.Context, n *node) (nonceUse, error) { return usedBy(ctx, n, j, p, finalized, slot) }) {
		switch {
		case err != nil:
			failures = append(failures, err)
		case use.ours:
			l, err := c.finalOne(ctx, use.id)
			if err != nil {
				return chain.JointOutcome{}, err
			}
			return executed(use.id, l, *j.Transfer)
		default:
			other = use.id
		}
	}
	for _, err := range failures {
		if other == "" || chain.ReasonOf(err) != chain.ReasonUnavailable {
			return chain.JointOutcome{}, err
		}
	}
	if other == "" {
		return chain.JointOutcome{}, chain.Errorf(chain.ReasonUnavailable, "no node answered")
	}
	l, err := c.finalOne(ctx, other)
	return chain.JointOutcome{State: chain.JointSuperseded, TxID: other, Location: l}, err
}

// finalOne locates a transaction that is in the final chain.
func (c *Client) finalOne(ctx context.Context, id string) (chain.Location, error) {
	l, err := c.Locate(ctx, id)
	if err == nil && l.Stage != chain.StageFinal {
		err = chain.Errorf(chain.ReasonUnavailable, "the final transaction %s is not found as one", id)
	}
	return l, err
}

// executed is the outcome of the message's own final transaction.
func executed(id string, l chain.Location, want chain.Transfer) (chain.JointOutcome, error) {
	o := chain.JointOutcome{State: chain.JointExecuted, TxID: id, Location: l}
	switch f := (chain.Facts{Expected: want, Location: l}); {
	case !l.OK:
		o.State = chain.JointFailed
	case !f.Pays():
		return o, chain.Errorf(chain.ReasonProtocol, "transaction %s succeeded and did not pay %s %s", id, want.Amount, want.Amount.Asset())
	}
	return o, nil
}

// nonceUse is the transaction that used the value of a nonce account.
type nonceUse struct {
	id   string
	ours bool // it is the joint transaction itself
}

// signatureEntry is one transaction in an address's history.
type signatureEntry struct {
	ID   string          `json:"signature"`
	Slot uint64          `json:"slot"`
	Err  json.RawMessage `json:"err"`
}

// usedBy finds the transaction that used the value of the joint transaction's nonce account, by the state of one node.
func usedBy(ctx context.Context, n *node, j chain.Joint, p plan, commitment string, minSlot uint64) (nonceUse, error) {
	if err := keeps(ctx, n, j.Block.Number); err != nil {
		return nonceUse{}, err
	}
	// The value was final after the block, and no nonce account changes twice in one.
	all, err := history(ctx, n, p.nonce, j.Block.Number, commitment, minSlot)
	for _, entry := range all {
		if p.signed(j.Body, entry.ID) {
			return nonceUse{id: entry.ID, ours: true}, nil
		}
	}
	if err != nil {
		return nonceUse{}, err
	}
	slices.Reverse(all) // the first change of the value is the one that used it
	for i, entry := range all {
		if i == maxInspected {
			return nonceUse{}, chain.Errorf(chain.ReasonUnavailable, "more than %d transactions name the nonce account %s", maxInspected, p.nonce)
		}
		m, err := messageOf(ctx, n, entry.ID, commitment)
		if err != nil {
			return nonceUse{}, err
		}
		switch {
		case m == nil:
		case p.uses(m) && m.RecentBlockhash != p.blockhash:
			return nonceUse{}, chain.Errorf(chain.ReasonUnavailable, "node %s lacks the transaction before %s that changed the nonce account %s", n.endpoint, entry.ID, p.nonce)
		case p.uses(m), failureOf(entry.Err) == "" && touches(m, p.nonce):
			return nonceUse{id: entry.ID}, nil
		}
	}
	return nonceUse{}, chain.Errorf(chain.ReasonUnavailable, "node %s has no transaction that changed the nonce account %s", n.endpoint, p.nonce)
}

// signed reports whether a transaction's id, which is its fee payer's signature, is one over a message. So the message of a
// transaction can be recognised without reading it.
func (p plan) signed(body []byte, id string) bool {
	signature, err := sdk.SignatureFromBase58(id)
	return err == nil && verifies(p.payer, body, signature[:])
}

// uses reports whether a message lives by the plan's nonce account: its first instruction advances that, signed by its
// authority. The network includes such a message only at the account's value, and changes the value even if the rest fails. The
// value alone shows nothing: all nonce accounts that advance in one slot get the same.
func (p plan) uses(m *sdk.Message) bool {
	if len(m.Instructions) == 0 || !m.IsSigner(p.payer) {
		return false
	}
	accounts, ok := advanced(m, m.Instructions[0])
	return ok && accounts[0] == p.nonce && accounts[2] == p.payer
}

// keeps checks that a node still has the blocks since one.
func keeps(ctx context.Context, n *node, since uint64) error {
	first, err := call[uint64](ctx, n, "getFirstAvailableBlock")
	if err == nil && first > since {
		err = chain.Errorf(chain.ReasonUnavailable, "node %s keeps nothing before block %d", n.endpoint, first)
	}
	return err
}

// history lists the transactions that name an address after a slot, the newest first. With an error it has those that were read.
func history(ctx context.Context, n *node, key sdk.PublicKey, since uint64, commitment string, minSlot uint64) ([]signatureEntry, error) {
	var all []signatureEntry
	for range historyPages {
		o := options{"commitment": commitment, "limit": historyPage, "minContextSlot": minSlot}
		if len(all) > 0 {
			o["before"] = all[len(all)-1].ID
		}
		page, err := call[[]signatureEntry](ctx, n, "getSignaturesForAddress", key.String(), o)
		if err != nil {
			return all, err
		}
		for _, entry := range page {
			if entry.Slot <= since {
				return all, nil
			}
			all = append(all, entry)
		}
		if len(page) < historyPage {
			return all, nil
		}
	}
	return all, chain.Errorf(chain.ReasonUnavailable, "more than %d transactions name %s", historyPages*historyPage, key)
}

// messageOf reads the message of a transaction in a block. It is nil for a format that is newer than the driver: our nonce
// account's authority signs none.
func messageOf(ctx context.Context, n *node, id, commitment string) (*sdk.Message, error) {
	answer, err := call[*struct {
		Transaction [2]string `json:"transaction"`
	}](ctx, n, "getTransaction", id, options{"commitment": commitment, "encoding": "base64", "maxSupportedTransactionVersion": maxVersion})
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return nil, chain.Errorf(chain.ReasonUnavailable, "node %s lists transaction %s and does not have it", n.endpoint, quote(id))
	}
	raw, err := base64.StdEncoding.DecodeString(answer.Transaction[0])
	if err == nil && len(raw) > 0 && raw[0]&newerFormat != 0 {
		return nil, nil
	}
	tx := &sdk.Transaction{}
	if err == nil {
		err = tx.UnmarshalWithDecoder(bin.NewBinDecoder(raw))
	}
	if err == nil && (len(tx.Signatures) == 0 || tx.Signatures[0].String() != id) {
		err = errors.New("it has another signature")
	}
	if err != nil {
		return nil, chain.Wrap(chain.ReasonProtocol, err, "transaction %s can't be read", quote(id))
	}
	return &tx.Message, nil
}

// newerFormat is set in the first byte of a transaction that doesn't begin with the number of its signatures (SIMD-0385).
const newerFormat = 0x80

// touches reports whether a message has an instruction that advances a nonce account. When it succeeded, the account's
// authority has signed it.
func touches(m *sdk.Message, nonce sdk.PublicKey) bool {
	return slices.ContainsFunc(m.Instructions, func(in sdk.CompiledInstruction) bool {
		accounts, ok := advanced(m, in)
		return ok && accounts[0] == nonce
	})
}

// advanced are the accounts of an instruction that advances a nonce account: the account, a system variable, the authority.
func advanced(m *sdk.Message, in sdk.CompiledInstruction) (accounts [3]sdk.PublicKey, ok bool) {
	program, err := m.Program(in.ProgramIDIndex)
	if err != nil || program != sdk.SystemProgramID || !bytes.Equal(in.Data, advanceData) || len(in.Accounts) < len(accounts) {
		return accounts, false
	}
	for i := range accounts {
		if accounts[i], err = m.Account(in.Accounts[i]); err != nil {
			return accounts, false
		}
	}
	return accounts, true
}
