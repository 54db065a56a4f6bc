package solana

import (
	"slices"
	"testing"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
)

// inHistory puts a transaction into a stub's chain, as the newest of its nonce account.
func (s *stub) inHistory(id string, slot uint64, failure any, raw []byte) {
	list, _ := s.answers["getSignaturesForAddress"].([]any)
	s.answers["getSignaturesForAddress"] = append([]any{map[string]any{"signature": id, "slot": slot, "err": failure}}, list...)
	s.transactions[id] = raw
}

// used is a stub network on which the nonce of a signed joint transaction has another value, and its signed execution.
func used(t *testing.T) (*stub, *Client, chain.Joint, chain.Signed) {
	t.Helper()
	s, c, d := committee(t, 2, 3)
	s.transactions = map[string][]byte{}
	j := jointIn(t, c, d)
	x, err := c.PrepareExecution(t.Context(), j, signedByAll(t, c, j), chain.ExecutionDraft{})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := c.SignExecution(x, named("payer"))
	if err != nil {
		t.Fatal(err)
	}
	s.set(func() {
		s.accounts[d.NonceAccount] = nonceAccountOf(1, named("payer").key(), hashAt(6))
		s.answers["getSignaturesForAddress"] = []any{}
	})
	return s, c, j, signed
}

// advancedBy is a transaction of the fee payer that advances the nonce account.
func advancedBy(t *testing.T, c *Client, j chain.Joint) chain.Signed {
	t.Helper()
	u, err := c.Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{From: j.FeePayer, To: j.NonceAccount, Amount: lamports(1)}, Step: chain.NonceAdvance})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := c.Sign(u, named("payer"))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// A node that keeps too little history, or has none of the transactions that changed the nonce, proves nothing.
func TestOutcomeNeedsHistory(t *testing.T) {
	t.Parallel()
	s, c, j, signed := used(t)
	_, err := c.Outcome(t.Context(), j)
	wantReason(t, "no history", err, chain.ReasonUnavailable)
	advance := advancedBy(t, c, j)
	s.set(func() {
		s.inHistory(advance.TxID, 1110, map[string]any{"InstructionError": []any{0, "x"}}, advance.Raw)
	})
	_, err = c.Outcome(t.Context(), j)
	wantReason(t, "an advance that failed", err, chain.ReasonUnavailable)
	s.set(func() {
		s.answers["getSignaturesForAddress"] = []any{}
		s.inHistory(advance.TxID, 1110, nil, advance.Raw)
		s.answers["getFirstAvailableBlock"] = j.Block.Number + 1
	})
	_, err = c.Outcome(t.Context(), j)
	wantReason(t, "a short history", err, chain.ReasonUnavailable)
	s.set(func() { s.answers["getFirstAvailableBlock"] = 0 })
	earlier := advancedBy(t, c, j) // it made the value that was signed
	s.set(func() {
		s.answers["getSignaturesForAddress"] = []any{}
		s.inHistory(earlier.TxID, j.Block.Number-1, nil, earlier.Raw)
		s.inHistory(advance.TxID, 1110, nil, advance.Raw)
	})
	if o, err := c.Outcome(t.Context(), j); err != nil || o.State != chain.JointSuperseded || o.TxID != advance.TxID {
		t.Errorf("%+v, %v", o, err)
	}
	s.set(func() { s.inHistory(signed.TxID, 1109, nil, flipped(signed.Raw, 80)) })
	if o, err := c.Outcome(t.Context(), j); err == nil {
		t.Errorf("bytes of another signature: %+v", o)
	}
}

// That another transaction took the place is true only if no node has the message itself.
func TestOutcomeAsksEveryNode(t *testing.T) {
	t.Parallel()
	s, c, j, signed := used(t)
	advance := advancedBy(t, c, j)
	other := newStub()
	other.accounts, other.transactions = s.accounts, map[string][]byte{}
	other.answers["getSignaturesForAddress"] = []any{}
	both := stubbed(t, s, other)
	s.set(func() { s.inHistory(advance.TxID, 1120, nil, advance.Raw) })
	other.set(func() { other.inHistory(signed.TxID, 1110, nil, signed.Raw) })
	// The stubs' transactions move nothing, so this one can't have been executed rightly.
	if o, err := both.Outcome(t.Context(), j); o.TxID != signed.TxID || chain.ReasonOf(err) != chain.ReasonProtocol {
		t.Errorf("a node has it, and it is %+v, %v", o, err)
	}
	if o, err := c.Outcome(t.Context(), j); err != nil || o.State != chain.JointSuperseded {
		t.Errorf("by one node: %+v, %v", o, err)
	}
	other.set(func() { other.answers["getSignaturesForAddress"] = &rpcError{Code: -32005, Message: "Node is behind"} })
	if o, err := both.Outcome(t.Context(), j); err != nil || o.State != chain.JointSuperseded {
		t.Errorf("while another is behind: %+v, %v", o, err)
	}
	other.set(func() {
		other.answers["getSignaturesForAddress"] = []any{}
		other.inHistory(signed.TxID, 1110, nil, []byte("nonsense"))
	})
	if o, err := both.Outcome(t.Context(), j); err == nil {
		t.Errorf("while another talks nonsense: %+v", o)
	}
}

// A transaction that named the same value and failed used it all the same.
func TestOutcomeByAFailure(t *testing.T) {
	t.Parallel()
	s, c, j, _ := used(t)
	s.set(func() { s.accounts[j.NonceAccount] = nonceAccountOf(1, named("payer").key(), hashAt(5)) })
	d := j.JointDraft
	d.Signers = []string{named("owner 0").address(), named("owner 2").address()}
	rival := jointIn(t, c, d)
	x, err := c.PrepareExecution(t.Context(), rival, signedByAll(t, c, rival), chain.ExecutionDraft{})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := c.SignExecution(x, named("payer"))
	if err != nil {
		t.Fatal(err)
	}
	s.set(func() { s.accounts[j.NonceAccount] = nonceAccountOf(1, named("payer").key(), hashAt(6)) })
	advance := advancedBy(t, c, j)
	s.set(func() {
		s.inHistory(signed.TxID, 1110, map[string]any{"InstructionError": []any{5, map[string]any{"Custom": 1}}}, signed.Raw)
		s.inHistory(advance.TxID, 1115, nil, advance.Raw)
	})
	if o, err := c.Outcome(t.Context(), j); err != nil || o.State != chain.JointSuperseded || o.TxID != signed.TxID {
		t.Errorf("%+v, %v", o, err)
	}
}

// The advance that made the signed value can be in the block at which it was read, and used nothing of it.
func TestOutcomeAfterItsBlock(t *testing.T) {
	t.Parallel()
	s, c, j, _ := used(t)
	maker, advance := advancedBy(t, c, j), advancedBy(t, c, j)
	s.set(func() { s.inHistory(maker.TxID, j.Block.Number, nil, maker.Raw) })
	_, err := c.Outcome(t.Context(), j)
	wantReason(t, "the advance that made the value", err, chain.ReasonUnavailable)
	s.set(func() { s.inHistory(advance.TxID, j.Block.Number+1, nil, advance.Raw) })
	if o, err := c.Outcome(t.Context(), j); err != nil || o.State != chain.JointSuperseded || o.TxID != advance.TxID {
		t.Errorf("%+v, %v", o, err)
	}
}

// A transaction that lives by a later value shows that the node lacks the one that changed the signed value.
func TestOutcomeWithAGap(t *testing.T) {
	t.Parallel()
	s, c, j, signed := used(t)
	later := jointIn(t, c, j.JointDraft)
	x, err := c.PrepareExecution(t.Context(), later, signedByAll(t, c, later), chain.ExecutionDraft{})
	if err != nil {
		t.Fatal(err)
	}
	next, err := c.SignExecution(x, named("payer"))
	if err != nil {
		t.Fatal(err)
	}
	for name, failure := range map[string]any{"executed": nil, "failed": map[string]any{"InstructionError": []any{5, map[string]any{"Custom": 1}}}} {
		s.set(func() {
			s.answers["getSignaturesForAddress"] = []any{}
			s.inHistory(next.TxID, 1115, failure, next.Raw)
		})
		_, err = c.Outcome(t.Context(), j)
		wantReason(t, "the next one "+name, err, chain.ReasonUnavailable)
		s.set(func() {
			s.answers["getSignaturesForAddress"] = []any{}
			s.inHistory(signed.TxID, 1110, nil, signed.Raw)
			s.inHistory(next.TxID, 1115, failure, next.Raw)
		})
		if o, err := c.Outcome(t.Context(), j); o.TxID != signed.TxID || chain.ReasonOf(err) != chain.ReasonProtocol { // the stub moves nothing
			t.Errorf("before the next one %s: %+v, %v", name, o, err)
		}
	}
}

// Strangers who name the nonce account can't hide the transaction itself, and make no outcome of their own.
func TestOutcomeAmongMany(t *testing.T) {
	t.Parallel()
	s, c, j, signed := used(t)
	stranger := advancedBy(t, c, j)
	tx, err := sdk.TransactionFromBytes(stranger.Raw)
	if err != nil {
		t.Fatal(err)
	}
	tx.Message.Instructions = tx.Message.Instructions[:1] // it advances nothing
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	list := []any{}
	for i := range maxInspected + 1 {
		id := sdk.Signature{byte(i), byte(i >> 8), 1}
		tx.Signatures = []sdk.Signature{id}
		one := append(append([]byte{1}, id[:]...), raw[1+sdk.SignatureLength:]...)
		list = append(list, map[string]any{"signature": id.String(), "slot": 1115, "err": nil})
		s.transactions[id.String()] = one
	}
	newer := sdk.Signature{9, 9, 9}
	s.transactions[newer.String()] = []byte{0x81, 1, 2}
	s.set(func() { s.answers["getSignaturesForAddress"] = slices.Clone(list) })
	_, err = c.Outcome(t.Context(), j)
	wantReason(t, "strangers", err, chain.ReasonUnavailable)
	s.set(func() {
		s.answers["getSignaturesForAddress"] = append([]any{map[string]any{"signature": newer.String(), "slot": 1115}}, list[:5]...)
		s.inHistory(stranger.TxID, 1110, nil, stranger.Raw)
	})
	if o, err := c.Outcome(t.Context(), j); err != nil || o.State != chain.JointSuperseded || o.TxID != stranger.TxID {
		t.Errorf("%+v, %v", o, err)
	}
	s.set(func() {
		s.inHistory(signed.TxID, 1110, nil, signed.Raw)
		s.answers["getSignaturesForAddress"] = append(s.answers["getSignaturesForAddress"].([]any), list...)
	})
	found := func(what string) {
		// The stubs' transactions move nothing, so this one can't have been executed rightly.
		if o, err := c.Outcome(t.Context(), j); o.TxID != signed.TxID || chain.ReasonOf(err) != chain.ReasonProtocol {
			t.Errorf("%s: %+v, %v", what, o, err)
		}
	}
	found("the newest of many")
	s.set(func() { // page after page like this one, without an end
		page := slices.Repeat(list, historyPage/len(list)+1)[:historyPage]
		page[historyPage-1] = map[string]any{"signature": signed.TxID, "slot": 1110}
		s.answers["getSignaturesForAddress"] = page
	})
	found("one of too many")
}

// A stored execution that is in a block decides, whatever the history has. One in no block decides nothing, and neither does an id of
// another transaction.
func TestOutcomeByStoredExecutions(t *testing.T) {
	t.Parallel()
	s, c, j, signed := used(t)
	advance := advancedBy(t, c, j)
	s.set(func() {
		s.inHistory(advance.TxID, 1110, nil, advance.Raw)
		delete(s.transactions, signed.TxID)
	})
	if o, err := c.Outcome(t.Context(), j, signed.TxID); err != nil || o.State != chain.JointSuperseded || o.TxID != advance.TxID {
		t.Errorf("an execution in no block: %+v, %v", o, err)
	}
	for _, id := range []string{advance.TxID, "", j.ID} {
		if o, err := c.Outcome(t.Context(), j, id); err != nil || o.State != chain.JointSuperseded || o.TxID != advance.TxID {
			t.Errorf("with the id of another transaction: %+v, %v", o, err)
		}
	}
	s.set(func() {
		s.transactions[signed.TxID] = signed.Raw
		s.answers["getSignaturesForAddress"] = &rpcError{Code: -32000, Message: "too many"}
	})
	_, err := c.Outcome(t.Context(), j)
	wantReason(t, "without the id", err, chain.ReasonUnavailable)
	if o, err := c.Outcome(t.Context(), j, signed.TxID); o.State != chain.JointExecuted || o.TxID != signed.TxID || chain.ReasonOf(err) != chain.ReasonProtocol {
		t.Errorf("a final execution, which the stub lets move nothing: %+v, %v", o, err)
	}
	form := map[string]any{"slot": 1068, "transaction": map[string]any{"signatures": []string{signed.TxID}, "message": map[string]any{"accountKeys": []string{usdt}}}}
	form["meta"] = map[string]any{
		"err": map[string]any{"InstructionError": []any{5, map[string]any{"Custom": 17}}}, "fee": 5000, "preBalances": []int{9000}, "postBalances": []int{4000},
		"preTokenBalances": []any{}, "postTokenBalances": []any{},
	}
	failure := map[string]any{"slot": 1068, "err": form["meta"].(map[string]any)["err"], "confirmationStatus": finalized}
	s.set(func() {
		s.answers["getTransaction"], s.answers["getSignatureStatuses"] = form, at(1100, []any{failure})
	})
	if o, err := c.Outcome(t.Context(), j, signed.TxID); err != nil || o.State != chain.JointFailed || o.TxID != signed.TxID {
		t.Errorf("a failed execution: %+v, %v", o, err)
	}
}

// naming is a stranger's transaction at a value of a nonce account, whose instructions the network includes and refuses.
func naming(t *testing.T, value string, all ...sdk.Instruction) chain.Signed {
	t.Helper()
	mallory := named("mallory")
	tx, err := sdk.NewTransaction(all, sdk.MustHashFromBase58(value), sdk.TransactionPayer(mallory.key()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Sign(func(sdk.PublicKey) *sdk.PrivateKey { return (*sdk.PrivateKey)(&mallory.PrivateKey) }); err != nil {
		t.Fatal(err)
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return chain.Signed{TxID: tx.Signatures[0].String(), Raw: raw}
}

// All nonce accounts that advance in one slot have the same value. A stranger who has one with the value of ours, and names ours
// without its authority's signature, before our execution and with its memo, takes the place of nothing.
func TestOutcomeAmongForgeries(t *testing.T) {
	t.Parallel()
	s, c, j, signed := used(t)
	m, err := readMessage(j.Body)
	if err != nil {
		t.Fatal(err)
	}
	memo := slices.IndexFunc(m.Instructions, func(in sdk.CompiledInstruction) bool { return m.AccountKeys[in.ProgramIDIndex] == sdk.MemoProgramID })
	same := sdk.NewInstruction(sdk.MemoProgramID, nil, m.Instructions[memo].Data)
	mallory, ours := named("mallory").key(), sdk.MustPublicKeyFromBase58(j.NonceAccount)
	own, stolen := advance(named("a nonce of mallory").key(), mallory), advance(ours, mallory)
	unsigned := sdk.NewInstruction(sdk.SystemProgramID, sdk.AccountMetaSlice{
		sdk.Meta(ours).WRITE(), sdk.Meta(sdk.SysVarRecentBlockHashesPubkey), sdk.Meta(named("payer").key()),
	}, advanceData)
	cancel := advancedBy(t, c, j)
	for name, forged := range map[string]chain.Signed{
		"in a later instruction": naming(t, j.RefBlock, own, same, unsigned), "in the first": naming(t, j.RefBlock, unsigned, same),
		"as its authority": naming(t, j.RefBlock, stolen, same),
	} {
		before := func(id string, raw []byte) {
			s.answers["getSignaturesForAddress"] = []any{}
			s.inHistory(forged.TxID, 1108, map[string]any{"InstructionError": []any{0, "MissingRequiredSignature"}}, forged.Raw)
			if id != "" {
				s.inHistory(id, 1110, nil, raw)
			}
		}
		s.set(func() { before(signed.TxID, signed.Raw) })
		if o, err := c.Outcome(t.Context(), j); o.TxID != signed.TxID || chain.ReasonOf(err) != chain.ReasonProtocol { // the stub moves nothing
			t.Errorf("named %s before our execution: %+v, %v", name, o, err)
		}
		s.set(func() { before(cancel.TxID, cancel.Raw) })
		if o, err := c.Outcome(t.Context(), j); err != nil || o.State != chain.JointSuperseded || o.TxID != cancel.TxID {
			t.Errorf("named %s before our cancellation: %+v, %v", name, o, err)
		}
		s.set(func() { before("", nil) })
		_, err := c.Outcome(t.Context(), j)
		wantReason(t, "named "+name, err, chain.ReasonUnavailable)
	}
}

// A lower ceiling of the configuration makes no joint transaction undecidable, and ends the signing of dear ones.
func TestOutcomeWithoutTheFee(t *testing.T) {
	t.Parallel()
	s, c, d := committee(t, 2, 3)
	j := jointIn(t, c, d)
	cheap := stubbed(t, s)
	cheap.config.Fees.PriceCeiling = 5
	wantReason(t, "a check", cheap.CheckJoint(j), chain.ReasonFeeTooHigh)
	if o, err := cheap.Outcome(t.Context(), j); err != nil || o.State != chain.JointOpen {
		t.Errorf("%+v, %v", o, err)
	}
}
