package workflows_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// newOwners are the keys of owners that the signer makes.
type newOwners struct {
	activities.OwnerKeyMaker

	made int
}

func (n *newOwners) CreateOwnerKey(_ context.Context, account uuid.UUID, _ exchange.Network, owner int) (string, exchange.SealedKey, error) {
	n.made++
	return "TOwnerNewNewNewNewNewNewNew", exchange.SealedKey{
		WalletID: account, Purpose: exchange.OwnerKeyPurpose(owner), Ciphertext: []byte("sealed"), MasterKey: "test", PublicKey: []byte("public"), Algorithm: "secp256k1",
	}, nil
}

// newOwnersProposal plays the flow of a change of the owners: two of three stay, and an officer comes whose key is ours.
func newOwnersProposal(t *testing.T) (*proposalHarness, *newOwners) {
	t.Helper()
	w, keys := newProposal(t), &newOwners{}
	w.env.RegisterActivity(&activities.MultisigKeys{Keys: keys, Store: w.store})
	c := exchange.OwnersChange{Threshold: 2, ControlThreshold: 3, Owners: []exchange.MultisigOwner{
		{Address: w.account.Owners[0].Address}, {Address: w.account.Owners[1].Address}, {UserID: w.one.UserID},
	}}
	w.ask = exchange.ProposalRequest{ID: w.ask.ID, Kind: exchange.ProposeOwners, WalletID: w.account.ID, Change: c.Complete(w.account)}
	w.signs.about = []string{"Change the owners of a wallet", "/api/v1/auth/multisig/proposals/" + w.ask.ID.String()}
	storetest.Pause(t, w.store.Store, 0) // the database's clock does not follow the flow's
	return w, keys
}

// approvedByBoth has both officers approve, who are all that can.
func (w *proposalHarness) approvedByBoth() {
	w.at(20*time.Second, func() { w.decides(exchange.Approve, w.one) }) // tokens live for a minute
	w.at(40*time.Second, func() { w.decides(exchange.Approve, w.two) })
}

// allSign has all three owners sign: as much as changes of the owners need.
func (w *proposalHarness) allSign() {
	for i, o := range w.account.Owners {
		w.at(time.Hour+time.Duration(i)*time.Minute, func() { w.signed(o.Address) })
	}
}

// chainChanges has the final chain show the new owners.
func (w *proposalHarness) chainChanges() {
	change, err := exchange.OwnersChangeOf(w.row().After)
	if err != nil {
		w.t.Error(err)
	}
	w.final += 1000 // its final block is later than that of the change, and the watch has read it
	storetest.Exec(w.t, w.store.Store, fmt.Sprintf(`BEGIN; SET LOCAL session_replication_role = replica; UPDATE deposit_cursors SET final_number = %d; COMMIT`, w.final))
	w.account.Owners, w.account.Threshold, w.account.ControlThreshold = change.Owners, change.Threshold, change.ControlThreshold
}

// run runs the flow, which must end so, and counts the transactions that were sent.
func (w *proposalHarness) run(t *testing.T, ends exchange.ProposalStatus, sent int) {
	t.Helper()
	id := w.intends(exchange.IntendProposal, w.ask.ID, w.ask.ID, w.ask.Terms(), w.who).IntentID
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.MultisigProposalID(w.ask.ID), TaskQueue: workflows.QueueFlows})
	w.at(6*24*time.Hour, func() { t.Fatalf("it never ends; the answers were %v", w.answers) })
	w.shows(workflows.ProposalAttributes(w.ask, w.account))
	w.env.ExecuteWorkflow(workflows.MultisigProposal, workflows.ProposalInput{IntentID: id})
	if !w.env.IsWorkflowCompleted() || w.env.GetWorkflowError() != nil {
		t.Fatalf("the flow ended: %t, %v", w.env.IsWorkflowCompleted(), w.env.GetWorkflowError())
	}
	if p := w.row(); p.Status != ends {
		t.Errorf("the proposal is %s (%s), want %s; the answers were %v", p.Status, p.StatusDetail, ends, w.answers)
	}
	if n := len(w.chain.sent(exchange.ForProposal)); n != sent {
		t.Errorf("it was sent %d times, want %d", n, sent)
	}
}

// The owners change when the final chain shows them, and not before; the key of who is new is made once.
func TestOwnersProposal(t *testing.T) {
	t.Parallel()
	w, keys := newOwnersProposal(t)
	w.approvedByBoth()
	w.allSign()
	w.at(2*time.Hour, w.executes)
	shown := false
	w.at(3*time.Hour, func() {
		shown = true
		if a, err := w.store.MultisigAccountByID(t.Context(), w.account.ID); err != nil || a.Owners[2].UserID != uuid.Nil {
			t.Errorf("agreed before the chain shows them: %+v, %v", a.Owners, err)
		}
		w.chainChanges()
	})
	w.run(t, exchange.ProposalExecuted, 1)
	if !shown {
		t.Error("the change was executed before the chain showed the new owners")
	}
	a, err := w.store.MultisigAccountByID(t.Context(), w.account.ID)
	if err != nil || len(a.Owners) != 3 || a.Owners[2].UserID != w.one.UserID || a.Threshold != 2 || a.ControlThreshold != 3 || keys.made != 1 {
		t.Errorf("%d keys; agreed: %+v, %v", keys.made, a, err)
	}
}

// In the pause an officer rejects, and nothing is prepared.
func TestOwnersProposalRests(t *testing.T) {
	t.Parallel()
	w, keys := newOwnersProposal(t)
	storetest.Pause(t, w.store.Store, 86400)
	w.approvedByBoth()
	veto := storetest.PrincipalOf(storetest.User(t, w.store.Store, exchange.RoleTreasury))
	w.at(50*time.Second, func() { w.decides(exchange.Reject, veto) })
	w.run(t, exchange.ProposalRejected, 0)
	if w.net.prepared != 0 || keys.made != 0 {
		t.Errorf("%d payloads and %d keys", w.net.prepared, keys.made)
	}
}

// A wallet that differs from what was agreed when the pause is over keeps the change waiting, without a loop: its flow sleeps longer and longer.
func TestOwnersProposalOfAWalletThatDiffers(t *testing.T) {
	t.Parallel()
	w, keys := newOwnersProposal(t)
	becomes := func(status exchange.MultisigStatus) {
		storetest.Exec(t, w.store.Store, `BEGIN; SET LOCAL session_replication_role = replica; UPDATE multisig_accounts SET status = '`+string(status)+`'; COMMIT`)
	}
	w.at(30*time.Second, func() { becomes(exchange.MultisigDiffers) })
	w.approvedByBoth()
	w.at(4*24*time.Hour, func() {
		if w.net.prepared != 0 || keys.made != 0 {
			t.Errorf("%d payloads and %d keys of a wallet that differs", w.net.prepared, keys.made)
		}
		becomes(exchange.MultisigActive)
	})
	w.at(4*24*time.Hour+time.Hour, func() {
		if w.net.prepared == 0 {
			t.Error("nothing is prepared an hour after the wallet is as agreed")
		}
		w.cancels()
	})
	w.at(4*24*time.Hour+2*time.Hour, func() { w.watchReads(); w.net.expired = true })
	w.run(t, exchange.ProposalCancelled, 0)
	w.took(t, 10_000)
}
