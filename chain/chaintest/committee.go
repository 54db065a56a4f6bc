package chaintest

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// committee is an account that two of three owners control.
type committee struct {
	*stage
	harness MultisigHarness
	joint   chain.Multisig
	owners  []Account
	signing []Account // those who sign the next proposal
	account string
	payer   Account
}

func (c *committee) quorum(t *testing.T) chain.Quorum {
	t.Helper()
	q, err := c.joint.Quorum(t.Context(), c.account)
	if err != nil {
		t.Fatalf("quorum: %v", err)
	}
	return q
}

// draftOf is a draft at the account's next number.
func (c *committee) draftOf(t *testing.T, to string, amount money.Amount) chain.JointDraft {
	t.Helper()
	q := c.quorum(t)
	return c.harness.Complete(t, chain.JointDraft{
		Account: c.account, Quorum: q, Sequence: q.Sequence, Transfer: &chain.Transfer{From: c.account, To: to, Amount: amount}, Signers: c.signers(),
	}, c.payer)
}

// signers are the names of those who sign the next proposal, where it needs them.
func (c *committee) signers() []string {
	var names []string
	if c.harness.Rules().Named {
		for _, o := range c.signing {
			names = append(names, o.Address)
		}
		slices.Sort(names)
	}
	return names
}

// prepareJoint prepares a joint transaction, and returns it as it comes back from a store: owners sign over days.
func (c *committee) prepareJoint(t *testing.T, d chain.JointDraft) chain.Joint {
	t.Helper()
	made, err := c.joint.PrepareJoint(t.Context(), d)
	if err != nil {
		t.Fatalf("prepare a joint transaction: %v", err)
	}
	text, err := made.Encode()
	if err != nil {
		t.Fatal(err)
	}
	j, err := chain.DecodeJoint(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.joint.CheckJoint(j); err != nil {
		t.Fatalf("a prepared joint transaction is refused: %v", err)
	}
	if j.ExpiresAt.IsZero() == c.harness.Rules().Expires {
		t.Fatalf("the joint transaction expires at %s", j.ExpiresAt)
	}
	if len(j.Digest) == 0 || len(j.Body) == 0 || j.ID == "" || j.Block.ID == "" || j.FeeLimit.Asset() != c.native() {
		t.Fatalf("the joint transaction is incomplete: %+v", j)
	}
	return j
}

// proposal is a payment out of the account, which gets the amount first.
func (c *committee) proposal(t *testing.T, amount money.Amount) (chain.Joint, Account) {
	t.Helper()
	to := c.NewAccount(t)
	c.Fund(t, c.account, amount)
	return c.prepareJoint(t, c.draftOf(t, to.Address, amount)), to
}

// signedBy has owners sign.
func (c *committee) signedBy(t *testing.T, j chain.Joint, owners ...Account) []chain.OwnerSignature {
	t.Helper()
	var all []chain.OwnerSignature
	for _, o := range owners {
		raw, err := o.Key.Sign(j.Digest)
		if err != nil {
			t.Fatal(err)
		}
		one, err := c.joint.Signature(j, raw)
		if err != nil || one.Owner != o.Address {
			t.Fatalf("the signature of %s is read as %+v, %v", o.Address, one, err)
		}
		again, err := c.joint.Signature(j, one.Signature)
		if err != nil || again.Owner != o.Address || !bytes.Equal(again.Signature, one.Signature) {
			t.Fatalf("a canonical signature is read as %+v, %v", again, err)
		}
		all = append(all, one)
	}
	return all
}

// execution is the draft of the payer's next transaction.
func (c *committee) execution(t *testing.T) chain.ExecutionDraft {
	t.Helper()
	d := chain.ExecutionDraft{Payer: c.payer.Address}
	if numbered, ok := c.client.(chain.Sequenced); ok && d.Payer != "" {
		n, err := numbered.Nonces(t.Context(), d.Payer)
		if err != nil {
			t.Fatal(err)
		}
		d.Nonce = n.Latest
	}
	return d
}

func (c *committee) payers() []chain.Key {
	if c.payer.Key == nil {
		return nil
	}
	return []chain.Key{c.payer.Key}
}

func (c *committee) prepareExecution(t *testing.T, j chain.Joint, signatures []chain.OwnerSignature) chain.Execution {
	t.Helper()
	x, err := c.joint.PrepareExecution(t.Context(), j, signatures, c.execution(t))
	if err != nil {
		t.Fatalf("prepare an execution: %v", err)
	}
	return x
}

// stored is an execution as it comes back from a store, which shares nothing with the one that was put in.
func stored(t *testing.T, x chain.Execution) chain.Execution {
	t.Helper()
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	var back chain.Execution
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// executionOf is the signed transaction that carries out a joint one.
func (c *committee) executionOf(t *testing.T, j chain.Joint, signatures []chain.OwnerSignature) chain.Signed {
	t.Helper()
	signed, err := c.joint.SignExecution(stored(t, c.prepareExecution(t, j, signatures)), c.payers()...)
	if err != nil {
		t.Fatalf("sign an execution: %v", err)
	}
	if signed.TxID == "" || len(signed.Raw) == 0 {
		t.Fatalf("the execution is incomplete: %+v", signed)
	}
	return signed
}

// refusesExecution checks that no execution can be prepared.
func (c *committee) refusesExecution(t *testing.T, what string, j chain.Joint, signatures []chain.OwnerSignature) {
	t.Helper()
	if x, err := c.joint.PrepareExecution(t.Context(), j, signatures, c.execution(t)); err == nil {
		t.Errorf("%s: an execution was prepared: %+v", what, x.Unsigned)
	}
}

func (c *committee) outcome(t *testing.T, j chain.Joint, want chain.JointState) chain.JointOutcome {
	t.Helper()
	o, err := c.joint.Outcome(t.Context(), j)
	if err != nil {
		t.Fatalf("outcome: %v", err)
	}
	if o.State != want {
		t.Fatalf("the outcome is %s, want %s: %+v", o.State, want, o)
	}
	return o
}

// executes carries a joint transaction through to a final block.
func (c *committee) executes(t *testing.T, j chain.Joint, owners ...Account) chain.Signed {
	t.Helper()
	signed := c.executionOf(t, j, c.signedBy(t, j, owners...))
	c.outcome(t, j, chain.JointOpen)
	c.broadcast(t, signed, chain.BroadcastAccepted)
	c.Mine(t, 1)
	c.completesJoint(t, j, signed.TxID)
	return signed
}

// completesJoint checks the evidence of an execution in the newest block, and again when it is final.
func (c *committee) completesJoint(t *testing.T, j chain.Joint, txID string) {
	t.Helper()
	c.outcome(t, j, chain.JointIncluded)
	c.Finalise(t)
	o := c.outcome(t, j, chain.JointExecuted)
	if o.TxID != txID || o.Location.Stage != chain.StageFinal || !o.Location.OK || o.Location.Block.ID == "" {
		t.Errorf("executed by %s, and the evidence is %+v", txID, o)
	}
	if known, err := c.joint.Outcome(t.Context(), j, txID); err != nil || known.State != o.State || known.TxID != txID {
		t.Errorf("with the id of its execution the outcome is %+v, %v", known, err)
	}
	if j.Transfer != nil {
		expectMovement(t, o.Location.Transfers, "", *j.Transfer)
	}
}
