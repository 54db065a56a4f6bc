package chaintest

import (
	"bytes"
	"slices"
	"testing"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// MultisigHarness is the harness of a network with accounts of several owners. Its Client is a chain.Multisig.
type MultisigHarness interface {
	Harness
	// Rules are the network's for joint transactions.
	Rules() JointRules
	// NewMultisig makes an account of these owners, of whom threshold must sign, with the native coin for what the account
	// pays itself. It returns its address when it is final.
	NewMultisig(t testing.TB, owners []Account, threshold uint32) string
	// Payer makes an account that sends executions and pays for them. The zero Account: the account pays itself.
	Payer(t testing.TB) Account
	// Complete adds to a draft what the network needs besides: a fee payer, a nonce account of its own.
	Complete(t testing.TB, d chain.JointDraft, payer Account) chain.JointDraft
	// ForeignAccounts are addresses that Quorum must refuse, by what is wrong with them.
	ForeignAccounts(t testing.TB) map[string]string
}

// JointRules are a network's rules for joint transactions.
type JointRules struct {
	// Numbered joint transactions have a Sequence: one with a higher number waits for those before it.
	Numbered bool
	// Exclusive ones rule each other out: of those with the same Sequence, or nonce account, only one can be executed.
	Exclusive bool
	// Native is set where the account can hold and pay the native coin.
	Native bool
	// Named joint transactions name their signers, see JointDraft.Signers. No other owner's signature is accepted.
	Named bool
	// Reverting ones stay open when their execution fails in its block, and can be executed again. Elsewhere they are over.
	Reverting bool
	// Expires is set where the network stops accepting what was signed.
	Expires bool
}

// OwnersChanging is a network on which the owners of an account can change.
type OwnersChanging interface {
	// Change is the change that gives an account these owners.
	Change(owners []Account, threshold uint32) *chain.OwnersChange
}

// Elsewhere is a network on which anyone can carry out what the owners signed.
type Elsewhere interface {
	// ExecuteElsewhere does so without the driver's PrepareExecution and without a payer of the test. It returns the id of the
	// transaction when that is in the newest block.
	ExecuteElsewhere(t testing.TB, j chain.Joint, signatures []chain.OwnerSignature) string
}

// RunMultisig runs every scenario of joint transactions that the harness supports.
func RunMultisig(t *testing.T, start func(testing.TB) MultisigHarness) {
	for _, s := range []struct {
		name string
		run  func(*testing.T, *committee)
	}{
		{"who controls an account", quorumRead},
		{"accounts that are foreign", foreignAccounts},
		{"a payment by two of three owners", jointPayment},
		{"a draft for other owners", staleDraft},
		{"more than the account has", jointWithoutFunds},
		{"a payment by one key alone", plainPayment},
		{"a signature of one who is no owner", wrongOwner},
		{"one owner signs twice", sameOwnerTwice},
		{"too few owners", tooFewOwners},
		{"a signature of another proposal", anotherProposal},
		{"damaged signatures", damagedSignatures},
		{"a joint transaction that was changed", changedJoint},
		{"an execution that was changed", changedExecution},
		{"it is executed once", executedOnce},
		{"it is executed by another", executedElsewhere},
		{"its block is undone and it is executed again", undoneExecution},
		{"its execution fails in the block", failedExecution},
		{"another one takes its place", superseded},
		{"it is cancelled", cancelled},
		{"the owners change before its execution", changedOwners},
		{"it expires", expiredJoint},
	} {
		t.Run(s.name, func(t *testing.T) {
			h := start(t)
			client, ok := h.Client().(chain.Multisig)
			if !ok {
				t.Fatalf("%T is no chain.Multisig", h.Client())
			}
			const owners = 3
			c := &committee{stage: newStage(t, h), harness: h, joint: client}
			for range owners {
				c.owners = append(c.owners, h.NewAccount(t))
			}
			c.signing = c.owners[:2]
			c.account, c.payer = h.NewMultisig(t, c.owners, 2), h.Payer(t)
			s.run(t, c)
		})
	}
}

func quorumRead(t *testing.T, c *committee) {
	q := c.quorum(t)
	var want []chain.Owner
	for _, o := range c.owners {
		want = append(want, chain.Owner{Address: o.Address, Weight: 1})
	}
	slices.SortFunc(want, func(a, b chain.Owner) int { return bytes.Compare([]byte(a.Address), []byte(b.Address)) })
	got := slices.Clone(q.Owners)
	slices.SortFunc(got, func(a, b chain.Owner) int { return bytes.Compare([]byte(a.Address), []byte(b.Address)) })
	if !slices.Equal(got, want) || q.Threshold != 2 || q.Moving {
		t.Errorf("the quorum is %+v, want two of %+v", q, want)
	}
	if again := c.quorum(t); !slices.Equal(again.Owners, q.Owners) {
		t.Errorf("the owners are in another order the second time: %+v", again.Owners)
	}
	if q.Head.Final.ID == "" || q.Head.Latest.ID == "" {
		t.Errorf("the quorum was read at %+v", q.Head)
	}
	for _, bad := range append(c.BadAddresses(), "") {
		if q, err := c.joint.Quorum(t.Context(), bad); err == nil {
			t.Errorf("%q has the quorum %+v", bad, q)
		}
	}
}

func foreignAccounts(t *testing.T, c *committee) {
	all := c.harness.ForeignAccounts(t)
	all["an account of one key"] = c.sender(t, c.token("1")).Address
	all["an account that the chain does not know"] = c.NewAccount(t).Address
	for what, address := range all {
		q, err := c.joint.Quorum(t.Context(), address)
		wantReason(t, what, err, chain.ReasonForeign)
		if err != nil {
			t.Logf("%s: %v", what, err)
			q = c.quorum(t)
		}
		d := c.draftOf(t, c.NewAccount(t).Address, c.token("1"))
		d.Account, d.Transfer.From, d.Quorum = address, address, q
		if _, err := c.joint.PrepareJoint(t.Context(), d); err == nil {
			t.Errorf("%s: a joint transaction was prepared", what)
		}
	}
}

func jointPayment(t *testing.T, c *committee) {
	assets := c.Tokens()
	if c.harness.Rules().Native {
		assets = append(assets, c.native())
	}
	for i, asset := range assets {
		t.Run(string(asset), func(t *testing.T) {
			c.signing = []Account{c.owners[i%3], c.owners[(i+1)%3]}
			j, to := c.proposal(t, money.Must(asset, "3.000001"))
			before := c.quorum(t)
			c.executes(t, j, c.signing...)
			c.holds(t, to.Address, money.Must(asset, "3.000001"))
			if after := c.quorum(t); c.harness.Rules().Numbered && after.Sequence != before.Sequence+1 {
				t.Errorf("the next number was %d, and is %d after an execution", before.Sequence, after.Sequence)
			}
		})
	}
}

func staleDraft(t *testing.T, c *committee) {
	amount := c.token("2")
	c.Fund(t, c.account, amount)
	refused := func(what string, edit func(*chain.JointDraft)) {
		t.Helper()
		d := c.draftOf(t, c.NewAccount(t).Address, amount)
		d.Quorum.Owners = slices.Clone(d.Quorum.Owners)
		edit(&d)
		if _, err := c.joint.PrepareJoint(t.Context(), d); err == nil {
			t.Errorf("%s: a joint transaction was prepared", what)
		}
	}
	refused("another owner", func(d *chain.JointDraft) { d.Quorum.Owners[0].Address = c.NewAccount(t).Address })
	refused("an owner less", func(d *chain.JointDraft) { d.Quorum.Owners = d.Quorum.Owners[:2] })
	refused("another threshold", func(d *chain.JointDraft) { d.Quorum.Threshold = 1 })
	refused("another sender", func(d *chain.JointDraft) { d.Transfer.From = c.owners[0].Address })
	refused("an amount of zero", func(d *chain.JointDraft) { d.Transfer.Amount = money.Zero(amount.Asset()) })
	refused("an unsupported asset", func(d *chain.JointDraft) { d.Transfer.Amount = money.Must(c.Unsupported(), "1") })
	refused("to itself", func(d *chain.JointDraft) { d.Transfer.To = c.account })
}

func jointWithoutFunds(t *testing.T, c *committee) {
	c.Fund(t, c.account, c.token("1"))
	_, err := c.joint.PrepareJoint(t.Context(), c.draftOf(t, c.NewAccount(t).Address, c.token("1.000001")))
	wantReason(t, "a joint transaction", err, chain.ReasonFunds)
	wantMissing(t, err, c.token("0.000001"))
}

// plainPayment: what one key can't authorise is not prepared for it.
func plainPayment(t *testing.T, c *committee) {
	amount := c.token("2")
	c.Fund(t, c.account, amount)
	u, err := c.client.Prepare(t.Context(), c.draft(t, chain.Transfer{From: c.account, To: c.NewAccount(t).Address, Amount: amount}))
	if err == nil {
		t.Errorf("a payment of one key was prepared: %+v", u)
	}
}

func wrongOwner(t *testing.T, c *committee) {
	j, _ := c.proposal(t, c.token("2"))
	raw, err := c.NewAccount(t).Key.Sign(j.Digest)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.joint.Signature(j, raw)
	wantReason(t, "a signature of one who is no owner", err, chain.ReasonForeign)
	good := c.signedBy(t, j, c.owners[0])
	for _, name := range []string{c.owners[1].Address, c.NewAccount(t).Address} {
		c.refusesExecution(t, "a foreign signature under a name", j, append(good, chain.OwnerSignature{Owner: name, Signature: raw}))
	}
}

func sameOwnerTwice(t *testing.T, c *committee) {
	j, _ := c.proposal(t, c.token("2"))
	one := c.signedBy(t, j, c.owners[0])[0]
	c.refusesExecution(t, "one owner twice", j, []chain.OwnerSignature{one, one})
	renamed := chain.OwnerSignature{Owner: c.owners[1].Address, Signature: one.Signature}
	c.refusesExecution(t, "one owner's signature under another's name", j, []chain.OwnerSignature{one, renamed})
}

func tooFewOwners(t *testing.T, c *committee) {
	c.signing = []Account{c.owners[2], c.owners[0]}
	j, to := c.proposal(t, c.token("2"))
	c.refusesExecution(t, "no signature", j, nil)
	c.refusesExecution(t, "one signature", j, c.signedBy(t, j, c.owners[2]))
	all := c.signing
	if raw, err := c.owners[1].Key.Sign(j.Digest); err != nil {
		t.Fatal(err)
	} else if c.harness.Rules().Named {
		_, err := c.joint.Signature(j, raw)
		wantReason(t, "an owner who is not named", err, chain.ReasonForeign)
	} else {
		all = append(all, c.owners[1]) // more than are needed are no obstacle, in any order
	}
	c.executes(t, j, all...)
	c.holds(t, to.Address, c.token("2"))
}

func anotherProposal(t *testing.T, c *committee) {
	c.Fund(t, c.account, c.token("4"))
	first := c.prepareJoint(t, c.draftOf(t, c.NewAccount(t).Address, c.token("2")))
	second := c.prepareJoint(t, c.draftOf(t, c.NewAccount(t).Address, c.token("2")))
	if first.ID == second.ID || bytes.Equal(first.Digest, second.Digest) {
		t.Fatalf("two payments share the joint transaction %s", first.ID)
	}
	raw, err := c.owners[0].Key.Sign(second.Digest)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.joint.Signature(first, raw)
	wantReason(t, "a signature of another proposal", err, chain.ReasonForeign)
	mixed := append(c.signedBy(t, first, c.owners[1]), c.signedBy(t, second, c.owners[0])...)
	c.refusesExecution(t, "a signature of another proposal", first, mixed)
}

func damagedSignatures(t *testing.T, c *committee) {
	j, _ := c.proposal(t, c.token("2"))
	good, err := c.owners[0].Key.Sign(j.Digest)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good)
	flipped[10] ^= 1
	for what, bad := range map[string][]byte{
		"none": nil, "half": good[:len(good)/2], "one byte less": good[:len(good)-1], "one byte more": append(bytes.Clone(good), 0),
		"two": append(bytes.Clone(good), good...), "zeros": make([]byte, len(good)), "a changed bit": flipped,
	} {
		_, err := c.joint.Signature(j, bad)
		wantReason(t, what, err, chain.ReasonForeign)
	}
}

func changedJoint(t *testing.T, c *committee) {
	j, _ := c.proposal(t, c.token("2"))
	signatures := c.signedBy(t, j, c.owners[0], c.owners[1])
	refused := func(what string, edit func(*chain.Joint)) {
		t.Helper()
		changed := j
		transfer := *j.Transfer
		changed.Transfer, changed.Body, changed.Digest = &transfer, bytes.Clone(j.Body), bytes.Clone(j.Digest)
		edit(&changed)
		if err := c.joint.CheckJoint(changed); err == nil {
			t.Errorf("%s: it passed", what)
		}
		c.refusesExecution(t, what, changed, signatures)
	}
	refused("another amount", func(j *chain.Joint) { j.Transfer.Amount = c.token("1") })
	refused("another token", func(j *chain.Joint) {
		if tokens := c.Tokens(); len(tokens) > 1 {
			j.Transfer.Amount = money.Must(tokens[1], "2")
			return
		}
		j.Transfer = nil
	})
	refused("another recipient", func(j *chain.Joint) { j.Transfer.To = c.NewAccount(t).Address })
	refused("another account", func(j *chain.Joint) { j.Account, j.Transfer.From = c.owners[0].Address, c.owners[0].Address })
	refused("no purpose", func(j *chain.Joint) { j.Transfer = nil })
	refused("other bytes", func(j *chain.Joint) { j.Body[len(j.Body)/2] ^= 1 })
	refused("more bytes", func(j *chain.Joint) { j.Body = append(j.Body, ' ') })
	refused("no bytes", func(j *chain.Joint) { j.Body = nil })
	refused("another digest", func(j *chain.Joint) { j.Digest[0] ^= 1 })
	refused("another id", func(j *chain.Joint) { j.ID = "0x00" })
	if c.harness.Rules().Numbered {
		refused("another number", func(j *chain.Joint) { j.Sequence++ })
	}
}

func changedExecution(t *testing.T, c *committee) {
	j, _ := c.proposal(t, c.token("2"))
	x := c.prepareExecution(t, j, c.signedBy(t, j, c.owners[0], c.owners[1]))
	refused := func(what string, edit func(*chain.Execution)) {
		t.Helper()
		changed := stored(t, x)
		edit(&changed)
		if signed, err := c.joint.SignExecution(changed, c.payers()...); err == nil {
			t.Errorf("%s: it was signed as %s", what, signed.TxID)
		}
	}
	refused("another amount", func(x *chain.Execution) { x.Joint.Transfer.Amount = c.token("1") })
	refused("another recipient", func(x *chain.Execution) { x.Joint.Transfer.To = c.NewAccount(t).Address })
	refused("other bytes", func(x *chain.Execution) { x.Body[len(x.Body)/2] ^= 1 })
	refused("no bytes", func(x *chain.Execution) { x.Body = nil })
	refused("a signature less", func(x *chain.Execution) { x.Signatures = x.Signatures[:1] })
	refused("another signature", func(x *chain.Execution) {
		x.Signatures[0].Signature = bytes.Clone(x.Signatures[0].Signature)
		x.Signatures[0].Signature[5] ^= 1
	})
	refused("one owner twice", func(x *chain.Execution) { x.Signatures[1] = x.Signatures[0] })
	if _, err := c.joint.SignExecution(stored(t, x), c.payers()...); err != nil {
		t.Errorf("it was not changed, and is refused: %v", err)
	}
	if c.payer.Key == nil {
		return
	}
	if signed, err := c.joint.SignExecution(x, c.NewAccount(t).Key); err == nil {
		t.Errorf("another key signed %s", signed.TxID)
	}
	if signed, err := c.joint.SignExecution(x); err == nil {
		t.Errorf("no key signed %s", signed.TxID)
	}
}
