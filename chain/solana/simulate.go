package solana

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
)

// encode is the encoding of bytes in requests.
func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// wire is a transaction as it is sent: its signatures, then its message. The number of signatures is a compact-u16, which is
// a plain byte below 128.
func wire(signatures []sdk.Signature, body []byte) []byte {
	out := []byte{byte(len(signatures))}
	for _, s := range signatures {
		out = append(out, s[:]...)
	}
	return append(out, body...)
}

// simulate runs the transaction without a price, on a state not older than its blockhash, and returns the computation that
// it used.
func simulate(ctx context.Context, n *node, p plan, minSlot uint64) (uint64, error) {
	p.price = 0
	body, err := p.message()
	if err != nil {
		return 0, err
	}
	return simulateSigned(ctx, n, make([]sdk.Signature, p.signatures()), body, minSlot)
}

// simulateSigned runs a message as it is. Its signatures may be missing.
func simulateSigned(ctx context.Context, n *node, signatures []sdk.Signature, body []byte, minSlot uint64) (uint64, error) {
	answer, err := call[contextAnswer[struct {
		Err   json.RawMessage `json:"err"`
		Units *uint64         `json:"unitsConsumed"`
	}]](ctx, n, "simulateTransaction", encode(wire(signatures, body)), options{
		"encoding": "base64", "commitment": confirmed, "sigVerify": false, "minContextSlot": minSlot,
	})
	if err != nil {
		return 0, err
	}
	if answer.Context.Slot < minSlot {
		return 0, chain.Errorf(chain.ReasonUnavailable, "the node simulates by slot %d, at least %d is needed", answer.Context.Slot, minSlot)
	}
	if failure := failureOf(answer.Value.Err); failure != "" {
		return 0, refusal(failure)
	}
	if answer.Value.Units == nil {
		return 0, chain.Errorf(chain.ReasonUnavailable, "the node does not report the computation that a simulation used")
	}
	return *answer.Value.Units, nil
}

// succeeded is the code of a transaction without an error.
const succeeded = "SUCCESS"

// failureOf is a transaction's error on one line, as the network writes it; empty for none.
func failureOf(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return ""
	}
	var name string
	if json.Unmarshal(raw, &name) == nil && name != "" {
		return quote(name)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return "an unreadable error"
	}
	text := compact.String()
	if len(text) > maxNodeText {
		text = text[:maxNodeText]
	}
	return text
}

// Errors of the Token program (spl-token error.rs), as numbers of InstructionError.Custom.
const (
	tokenShort  = `{"Custom":1}]`  // InsufficientFunds
	tokenFrozen = `{"Custom":17}]` // AccountFrozen
)

// refusal classifies the error of a simulation. Everything that the accounts showed was refused before, so this error comes
// from a change in between.
func refusal(failure string) error {
	reason := chain.ReasonReverts
	switch {
	case strings.Contains(failure, tokenFrozen):
		reason = chain.ReasonBlocked
	case strings.Contains(failure, tokenShort):
		reason = chain.ReasonFunds
	case failure == "InsufficientFundsForFee", failure == "AccountNotFound", strings.Contains(failure, "InsufficientFundsForRent"):
		reason = chain.ReasonGas
	case failure == "BlockhashNotFound", failure == "AccountInUse", failure == "ClusterMaintenance":
		reason = chain.ReasonUnavailable
	}
	return chain.Errorf(reason, "the network would refuse the transfer: %s", failure)
}
