package chaintest

import (
	"bytes"
	"slices"
	"testing"
	"time"

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

func executedOnce(t *testing.T, c *committee) {
	amount := c.token("2")
	j, to := c.proposal(t, amount)
	c.Fund(t, c.account, amount) // a second execution would have what to pay with
	signed := c.executes(t, j, c.signing...)
	c.broadcast(t, signed, chain.BroadcastKnown, chain.BroadcastRejected)
	c.refusesExecution(t, "a second execution", j, c.signedBy(t, j, c.signing...))
	c.Mine(t, 1)
	c.Finalise(t)
	c.holds(t, to.Address, amount)
	c.outcome(t, j, chain.JointExecuted)
}

// executedElsewhere: what the owners signed is carried out by a stranger while our execution is on its way.
func executedElsewhere(t *testing.T, c *committee) {
	by := can[Elsewhere](t, c.stage)
	amount := c.token("2")
	j, to := c.proposal(t, amount)
	c.Fund(t, c.account, amount)
	signatures := c.signedBy(t, j, c.owners[0], c.owners[1])
	ours := c.executionOf(t, j, signatures)
	theirs := by.ExecuteElsewhere(t, j, signatures)
	c.outcome(t, j, chain.JointIncluded)
	if _, err := c.client.Broadcast(t.Context(), ours.Raw); err != nil {
		t.Fatal(err)
	}
	c.Mine(t, 1)
	c.completesJoint(t, j, theirs)
	c.holds(t, to.Address, amount)
}

func undoneExecution(t *testing.T, c *committee) {
	chainOf := can[Reorganising](t, c.stage)
	amount := c.token("2")
	j, to := c.proposal(t, amount)
	signed := c.executionOf(t, j, c.signedBy(t, j, c.owners[0], c.owners[1]))
	c.broadcast(t, signed, chain.BroadcastAccepted)
	c.Mine(t, 1)
	c.outcome(t, j, chain.JointIncluded)
	chainOf.Reorganise(t, 1, true)
	c.outcome(t, j, chain.JointOpen)
	c.broadcast(t, signed, chain.BroadcastAccepted, chain.BroadcastKnown)
	c.Mine(t, 1)
	c.completesJoint(t, j, signed.TxID)
	c.holds(t, to.Address, amount)
}

// failedExecution: the token refuses in the block. Nothing moves, and the joint transaction stays open or is over, by the rules.
func failedExecution(t *testing.T, c *committee) {
	issuer := can[TokenControls](t, c.stage)
	amount := c.token("2")
	j, to := c.proposal(t, amount)
	signatures := c.signedBy(t, j, c.owners[0], c.owners[1])
	signed := c.executionOf(t, j, signatures)
	issuer.Pause(t, amount.Asset())
	c.refusesExecution(t, "a paused token", j, signatures)
	c.broadcast(t, signed, chain.BroadcastAccepted)
	c.Mine(t, 1)
	c.Finalise(t)
	if l := c.locate(t, signed, chain.StageFinal); l.OK || len(l.Transfers) > 0 {
		t.Errorf("a failed execution looks like a payment: %+v", l)
	}
	want := chain.JointFailed
	if c.harness.Rules().Reverting {
		want = chain.JointOpen
	}
	c.outcome(t, j, want)
	if o, err := c.joint.Outcome(t.Context(), j, signed.TxID); err != nil || o.State != want {
		t.Errorf("with the id of its execution the outcome is %+v, %v", o, err)
	}
	c.holds(t, to.Address, money.Zero(amount.Asset()))
	c.holds(t, c.account, amount)
}

func superseded(t *testing.T, c *committee) {
	if !c.harness.Rules().Exclusive {
		t.Skip("joint transactions don't rule each other out here")
	}
	amount := c.token("2")
	j, to := c.proposal(t, amount)
	c.Fund(t, c.account, amount)
	other := c.NewAccount(t)
	d := j.JointDraft
	d.Transfer = &chain.Transfer{From: c.account, To: other.Address, Amount: amount}
	c.signing = c.owners[1:]
	d.Signers = c.signers()
	rival := c.prepareJoint(t, d)
	signed := c.executionOf(t, rival, c.signedBy(t, rival, c.signing...))
	c.broadcast(t, signed, chain.BroadcastAccepted)
	c.Mine(t, 1)
	c.outcome(t, j, chain.JointOpen) // the block that took its place may be undone
	c.completesJoint(t, rival, signed.TxID)
	if o := c.outcome(t, j, chain.JointSuperseded); o.TxID != signed.TxID {
		t.Errorf("superseded by %s, want %s", o.TxID, signed.TxID)
	}
	c.refusesExecution(t, "a superseded one", j, c.signedBy(t, j, c.owners[0], c.owners[1]))
	c.holds(t, to.Address, money.Zero(amount.Asset()))
	c.holds(t, other.Address, amount)
}

func cancelled(t *testing.T, c *committee) {
	if !c.harness.Rules().Numbered {
		t.Skip("joint transactions have no numbers here")
	}
	amount := c.token("2")
	j, to := c.proposal(t, amount)
	d := j.JointDraft
	d.Transfer = nil
	cancel := c.prepareJoint(t, d)
	signed := c.executes(t, cancel, c.owners[0], c.owners[1])
	if o := c.outcome(t, j, chain.JointSuperseded); o.TxID != signed.TxID {
		t.Errorf("superseded by %s, want %s", o.TxID, signed.TxID)
	}
	c.holds(t, to.Address, money.Zero(amount.Asset()))
	c.holds(t, c.account, amount)
}

// changedOwners: an owner who signed is replaced before the execution.
func changedOwners(t *testing.T, c *committee) {
	network := can[OwnersChanging](t, c.stage)
	amount := c.token("2")
	c.Fund(t, c.account, amount)
	d := c.draftOf(t, c.NewAccount(t).Address, amount)
	change := d
	if c.harness.Rules().Numbered {
		d.Sequence++ // after the change
	}
	payment := c.prepareJoint(t, d)
	signatures := c.signedBy(t, payment, c.owners[0], c.owners[1])
	joined := c.NewAccount(t)
	owners := []Account{c.owners[0], c.owners[2], joined}
	change.Transfer, change.Owners = nil, network.Change(owners, 2)
	j := c.prepareJoint(t, change)
	signed := c.executionOf(t, j, c.signedBy(t, j, c.owners...))
	c.broadcast(t, signed, chain.BroadcastAccepted)
	c.Mine(t, 1)
	if q := c.quorum(t); !q.Moving {
		t.Errorf("the owners change, and the quorum is %+v", q)
	}
	c.refusesExecution(t, "a signature of a former owner", payment, signatures)
	c.completesJoint(t, j, signed.TxID)
	q := c.quorum(t)
	if q.Moving || q.Threshold != 2 || len(q.Owners) != len(owners) {
		t.Errorf("the quorum is %+v", q)
	}
	for _, o := range owners {
		if !slices.ContainsFunc(q.Owners, func(x chain.Owner) bool { return x.Address == o.Address }) {
			t.Errorf("%s is not among the owners %+v", o.Address, q.Owners)
		}
	}
	c.refusesExecution(t, "a signature of a former owner", payment, signatures)
	c.owners = owners
	again, to := c.proposal(t, amount)
	c.executes(t, again, joined, c.owners[1])
	c.holds(t, to.Address, amount)
}

func expiredJoint(t *testing.T, c *committee) {
	if !c.harness.Rules().Expires {
		t.Skip("joint transactions don't expire here")
	}
	network, ok := c.Harness.(Expiring)
	if !ok {
		t.Fatalf("%T can't let time pass", c.Harness)
	}
	c.Fund(t, c.account, c.token("2"))
	const life = time.Hour
	d := c.draftOf(t, c.NewAccount(t).Address, c.token("2"))
	d.Life = life
	j := c.prepareJoint(t, d)
	signatures := c.signedBy(t, j, c.owners[0], c.owners[1])
	signed := c.executionOf(t, j, signatures)
	network.AdvanceTime(t, 2*life)
	c.Mine(t, 1)
	c.outcome(t, j, chain.JointOpen) // another block may still take the place of the newest
	c.Finalise(t)
	c.outcome(t, j, chain.JointExpired)
	c.refusesExecution(t, "an expired one", j, signatures)
	c.broadcast(t, signed, chain.BroadcastRejected)
}
