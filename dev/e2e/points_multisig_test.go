package e2e

import (
	"testing"

	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange"
)

// multisigRows are those with accounts of several owners, on Ethereum and, where an opening fails, on Solana.
func multisigRows() []row {
	return []row{
		{"MakeOwnerKeys/*/*", "signer-ethereum", always(multisigScenario{begin: sharedOpened, ends: exchange.MultisigActive, payments: 1})},
		{"ApproveOpening/*/*", "flows", always(multisigScenario{begin: sharedOpened, ends: exchange.MultisigActive, payments: 1})},
		{"VerifyMultisig/*/*", "chain-ethereum", always(multisigScenario{begin: sharedOpened, ends: exchange.MultisigActive, payments: 1})},
		{"VerifyMultisig/RefuseMultisig#?/*", "chain-ethereum", always(multisigScenario{begin: sharedRefused, ends: exchange.MultisigRefused})},
		{"GiveUpMultisig/*/*", "flows", always(multisigScenario{begin: sharedGivenUp, ends: exchange.MultisigRefused})},
	}
}

// givenRows are those with an account on TRON that is given to its owners.
func givenRows() []row {
	return []row{
		{"SignHandover/*/*", "signer-tron", always(multisigScenario{begin: sharedGiven, ends: exchange.MultisigActive, payments: 1})},
		{"DeliverHandover/*/*", "chain-tron", always(multisigScenario{begin: sharedGiven, ends: exchange.MultisigActive, payments: 1})},
		{"MakeOwnerKeys/StoreOpeningKey#?/*", "signer-tron", always(multisigScenario{begin: sharedGiven, ends: exchange.MultisigActive, payments: 1})},
	}
}

// multisigScenario is the scenario of an account of several owners.
type multisigScenario struct {
	begin    transferScene
	ends     exchange.MultisigStatus
	payments int
}

func (b multisigScenario) play(t *testing.T, w *harness, tr *trial, arm func()) {
	t.Helper()
	b.begin(t, w, tr, arm)
}

func (b multisigScenario) judge(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	tr.answered(t)
	s := w.sharedIs(t, tr.shared, b.ends)
	w.openedOnce(t, s, b.payments)
	if b.ends == exchange.MultisigActive {
		n, _ := w.nodeOf(s.Network)
		o := w.outsidersOn(t, n)
		w.onTron(t, o, s)
		w.isShared(t, o, s)
	}
}

// sharedOpened has two officers open an account while the process dies.
func sharedOpened(t *testing.T, w *harness, tr *trial, arm func()) {
	people := w.outsidersOn(t, w.ethereum()).people(t, 1)
	waits := w.asksForShared(t, exchange.Ethereum, exchange.MultisigSelf, "", 2,
		w.officerOwner(t, demo.TreasuryEmail), owner(people[0]), w.officerOwner(t, secondOfficer))
	arm()
	tr.shared = w.agreesToShared(t, waits)
}

// sharedGiven has two officers have an account made on TRON while the process dies.
func sharedGiven(t *testing.T, w *harness, tr *trial, arm func()) {
	people := w.outsidersOn(t, w.tronNode()).people(t, 2)
	waits := w.asksForShared(t, exchange.Tron, exchange.MultisigSelf, "", 2, owner(people[0]), w.officerOwner(t, demo.TreasuryEmail), owner(people[1]))
	arm()
	tr.shared = w.agreesToShared(t, waits)
}

// sharedRefused has two officers adopt an account that is another one than they agreed to.
func sharedRefused(t *testing.T, w *harness, tr *trial, arm func()) {
	o := w.outsidersOn(t, w.ethereum())
	people := o.people(t, 2)
	address := o.opens(t, newSeed(), quorumOf(people, 1))
	waits := w.asksForShared(t, exchange.Ethereum, exchange.MultisigSelf, address, 2, owner(people[0]), owner(people[1]))
	arm()
	tr.shared = w.agreesToShared(t, waits)
}

// sharedGivenUp has an officer give up an account whose opening failed on the chain.
func sharedGivenUp(t *testing.T, w *harness, tr *trial, arm func()) {
	heal(t, w.solana())
	tr.shared = w.failsToOpen(t).ID
	arm()
	tr.background(t, w.operator(t), ofShared(tr.shared, "refund"), testbed.Key(), map[string]any{"note": "crash trial"}, nil)
}
