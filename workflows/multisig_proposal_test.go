package workflows_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// proposalHarness plays the flow of a payment of 100 USDT, of 1,000, from a wallet on TRON that two of three owners outside control.
type proposalHarness struct {
	*harness
	who      exchange.Principal // who proposes
	one, two exchange.Principal // treasury officers
	account  exchange.MultisigAccount
	ask      exchange.ProposalRequest
	net      *ownersNetwork
	screens  *answering
	final    uint64
	signable time.Duration // until what is prepared expires; zero: when the test says so
	patience time.Duration // until a flow that has not ended fails the test; zero: six days
}

// ownersNetwork is the part of the network that carries out what owners signed. Signatures are the owners' addresses, with zeros after them.
type ownersNetwork struct {
	chain.Client
	*network
	w        *proposalHarness
	prepared int
	refuses  []error     // the next payloads, in their order
	expired  bool        // what was signed has expired
	other    string      // the transaction of another tool that carried it out
	at       chain.Block // in which that is
	fails    error       // the chain does not say what became of it
	lags     int         // the next looks, in which the node is behind
	looks    []time.Time // when the chain was asked what became of it
}

// answering is a screener.
type answering struct{ verdict exchange.Verdict }

func (a *answering) Screen(context.Context, exchange.Counterparty) (exchange.Screening, error) {
	return exchange.Screening{Screener: "test", Verdict: a.verdict}, nil
}

const payee = "TOutsideOutsideOutsideOutside"

func newProposal(t testing.TB) *proposalHarness {
	t.Helper()
	w := &proposalHarness{harness: newStage(t, networkName), screens: &answering{verdict: exchange.VerdictClear}, final: watchedTo}
	s := w.store.Store
	w.start = time.Now().UTC().Truncate(time.Second) // the database compares times with its own clock
	w.env.SetStartTime(w.start)
	if _, err := s.StartDeposits(t.Context(), networkName, exchange.ChainBlock{Number: watchedTo, ID: "start", Time: w.start}); err != nil {
		t.Fatal(err)
	}
	who := func(r exchange.Role) exchange.Principal { return storetest.PrincipalOf(storetest.User(t, s, r)) }
	w.who, w.one, w.two = who(exchange.RoleTreasury), who(exchange.RoleTreasury), who(exchange.RoleTreasury)
	all := money.Must(money.KES, "100000000")
	storetest.Patch(t, s, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{exchange.ApproveTransfer: {OneAbove: all, TwoAbove: all}}})
	storetest.Rested(t, s)
	storetest.AgreeValuations(t, s)
	w.account = storetest.MultisigWallet(t, s, exchange.MultisigRequest{
		ID: storetest.NewID(t), Network: networkName, Asset: money.USDT, Name: "Reserve", Custody: exchange.MultisigSelf, Address: "TAccountAccountAccountAccount",
		Threshold: 2, Policy: exchange.MultisigPolicy{Approvals: 1}, Owners: []exchange.MultisigOwner{
			{Address: "TOwnerAnnaAnnaAnnaAnnaAnna"}, {Address: "TOwnerBobBobBobBobBobBob"}, {Address: "TOwnerCaraCaraCaraCaraCara"},
		},
	})
	storetest.Deposit(t, s, w.account.ID, crypto("1000"))
	storetest.Gas(t, s, w.account.ID, money.Must(money.TRX, "1000"))
	w.ask = exchange.ProposalRequest{ID: storetest.NewID(t), WalletID: w.account.ID, Amount: crypto("100"), Destination: payee, Reference: "invoice 7"}
	w.signs.order = nil
	w.signs.about = []string{"100.000000 USDT", "/api/v1/auth/multisig/proposals/" + w.ask.ID.String()}
	w.net = &ownersNetwork{network: w.chain, w: w}
	recipients := &activities.Recipients{Store: w.store, Screener: w.screens}
	w.env.RegisterWorkflow(workflows.MultisigProposal)
	w.env.RegisterActivity(&activities.Proposals{Store: w.store})
	w.env.RegisterActivity(&activities.MultisigPayloads{Store: w.store, Client: w.net, Poll: time.Nanosecond})
	w.env.RegisterActivity(&activities.Signing{Signer: w.net, Store: w.store, Recipients: recipients})
	w.env.RegisterActivity(&activities.MultisigSigning{Store: w.store, Recipients: recipients})
	w.env.RegisterActivity(&activities.Chain{Store: w.store, Client: w.net, Poll: blockTime, Gas: proposalGas, Proposals: w.store})
	return w
}

func (n *ownersNetwork) Network() exchange.Network { return n.on }

func (n *ownersNetwork) Traits() chain.Traits { return chain.Traits{} }

func (n *ownersNetwork) Broadcast(ctx context.Context, raw []byte) (chain.Broadcast, error) {
	return n.network.Broadcast(ctx, raw)
}

func (n *ownersNetwork) Locate(ctx context.Context, txID string) (chain.Location, error) {
	return n.network.Locate(ctx, txID)
}

func (n *ownersNetwork) head() chain.Head {
	b := chain.Block{Number: n.w.final, ID: "final", Time: n.w.env.Now()}
	return chain.Head{Final: b, Latest: b}
}

func (n *ownersNetwork) Quorum(context.Context, string) (chain.Quorum, error) {
	q := chain.Quorum{Threshold: 2, Permission: 2, Head: n.head()}
	for _, o := range n.w.account.Owners {
		q.Owners = append(q.Owners, chain.Owner{Address: o.Address, Weight: uint32(o.Weight)})
	}
	q.Control = &chain.Quorum{Owners: q.Owners, Threshold: uint32(n.w.account.ControlThreshold)}
	return q, nil
}

func (n *ownersNetwork) PrepareJoint(_ context.Context, d chain.JointDraft) (chain.Joint, error) {
	if len(n.refuses) > 0 {
		err := n.refuses[0]
		n.refuses = n.refuses[1:]
		return chain.Joint{}, err
	}
	n.prepared++
	n.expired = false
	digest := sha256.Sum256(fmt.Appendf(nil, "%s %v %d", d.Account, d.Transfer, n.prepared))
	return chain.Joint{
		JointDraft: d, Digest: digest[:], Body: digest[:], ID: fmt.Sprintf("%x", digest), ExpiresAt: n.w.env.Now().Add(cmp.Or(n.w.signable, 20*time.Hour)), RefBlock: "b", Block: n.head().Final,
		FeeLimit: money.Must(money.TRX, "30"),
	}, nil
}

func (n *ownersNetwork) CheckJoint(chain.Joint) error { return nil }

func (n *ownersNetwork) Signature(_ chain.Joint, signature []byte) (chain.OwnerSignature, error) {
	name := strings.TrimRight(string(signature), "\x00")
	if !slices.ContainsFunc(n.w.account.Owners, func(o exchange.MultisigOwner) bool { return o.Address == name }) {
		return chain.OwnerSignature{}, chain.Errorf(chain.ReasonForeign, "%q is the signature of no owner", name)
	}
	return chain.OwnerSignature{Owner: name, Signature: signature}, nil
}

func (n *ownersNetwork) PrepareExecution(context.Context, chain.Joint, []chain.OwnerSignature, chain.ExecutionDraft) (chain.Execution, error) {
	return chain.Execution{}, chain.Errorf(chain.ReasonUnsupported, "the signer of these tests makes it")
}

func (n *ownersNetwork) SignExecution(chain.Execution, ...chain.Key) (chain.Signed, error) {
	return chain.Signed{}, chain.Errorf(chain.ReasonUnsupported, "the signer of these tests makes it")
}

// SignPayment is the signer. On TRON what owners signed is the transaction.
func (n *ownersNetwork) SignPayment(ctx context.Context, id uuid.UUID) (exchange.ChainAttempt, error) {
	if a, ok, err := n.store.LiveAttempt(ctx, id); err != nil || ok {
		return a, err
	}
	p, err := n.store.ChainPayment(ctx, id)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	if p.Purpose != exchange.ForProposal {
		return n.network.SignPayment(ctx, id)
	}
	a, f := n.build(p)
	switch {
	case f.trouble != nil:
		return a, f.trouble
	case f.refused != "":
		return a, chain.Errorf(f.refused, "the node says so")
	}
	y := n.w.payload()
	e := n.signed[a.TxID]
	a.TxID, a.Raw, a.ExpiresAt, a.RefBlock = y.JointID, []byte(y.JointID), y.ExpiresAt, y.RefBlock
	e.attempt, n.signed[a.TxID] = a, e
	return n.store.SaveSignedAttempt(ctx, a)
}

// Outcome looks at what was broadcast.
func (n *ownersNetwork) Outcome(ctx context.Context, j chain.Joint, executions ...string) (chain.JointOutcome, error) {
	n.looks = append(n.looks, n.w.env.Now())
	if n.lags > 0 {
		n.lags--
		return chain.JointOutcome{}, chain.Errorf(chain.ReasonUnavailable, "the final block is 90, and the transaction was prepared at 100")
	}
	if n.fails != nil {
		return chain.JointOutcome{}, n.fails
	}
	located := chain.Location{Stage: chain.StageFinal, OK: true, Head: n.head(), Block: n.at, Fee: money.Must(money.TRX, "1"), Code: "SUCCESS"}
	switch {
	case n.other != "":
		return chain.JointOutcome{State: chain.JointExecuted, TxID: n.other, Location: located}, nil
	case n.expired, n.w.signable > 0 && n.w.env.Now().After(j.ExpiresAt):
		return chain.JointOutcome{State: chain.JointExpired, Location: located}, nil
	}
	for _, id := range executions {
		l, err := n.network.Locate(ctx, id)
		if err != nil {
			return chain.JointOutcome{}, err
		}
		switch {
		case l.Stage == chain.StageFinal && l.OK:
			return chain.JointOutcome{State: chain.JointExecuted, TxID: id, Location: l}, nil
		case l.Stage == chain.StageFinal:
			return chain.JointOutcome{State: chain.JointFailed, TxID: id, Location: l}, nil
		case l.Stage == chain.StageIncluded:
			return chain.JointOutcome{State: chain.JointIncluded, TxID: id, Location: l}, nil
		}
	}
	return chain.JointOutcome{State: chain.JointOpen}, nil
}

// watchReads has the watch read one more block, which is later than all that was signed.
func (w *proposalHarness) watchReads() {
	w.final++
	storetest.Exec(w.t, w.store.Store, fmt.Sprintf(`ALTER TABLE deposit_cursors DISABLE TRIGGER USER; UPDATE deposit_cursors SET final_number = %[1]d, final_time = now() + interval '90 days';
		ALTER TABLE deposit_cursors ENABLE TRIGGER USER; INSERT INTO deposit_looks (network, identity, alive_at, looked_at, final_head)
		VALUES ('tron', database_identity(), now(), now() + interval '90 days', %[1]d) ON CONFLICT (network) DO UPDATE SET looked_at = now() + interval '90 days'`, w.final))
}

func (w *proposalHarness) row() exchange.Proposal {
	p, err := w.store.ProposalByID(w.t.Context(), w.ask.ID)
	if err != nil {
		w.t.Error(err)
	}
	return p
}

// decides has an officer decide.
func (w *proposalHarness) decides(action exchange.ApprovalAction, by exchange.Principal) {
	token, err := storetest.ProposalTicket(w.t.Context(), w.store.Store, w.row(), action, by)
	if err != nil {
		w.t.Errorf("a token: %v", err)
	}
	update := workflows.UpdateApprove
	if action == exchange.Reject {
		update = workflows.UpdateReject
	}
	w.env.UpdateWorkflow(update, token, w.answer("decision"), workflows.ApprovalRef{Token: token})
}

// payload is the newest payload.
func (w *proposalHarness) payload() exchange.MultisigPayload {
	all, err := w.store.Payloads(w.t.Context(), w.ask.ID)
	if err != nil || len(all) == 0 {
		w.t.Errorf("there is no payload: %v", err)
		return exchange.MultisigPayload{}
	}
	return all[len(all)-1]
}

// signed brings a signature, and keeps the answer by who signed.
func (w *proposalHarness) signed(who string) {
	signature := make([]byte, 65)
	copy(signature, who)
	terms := exchange.OutsideSignature{PayloadID: w.payload().ID, Signature: signature}.Terms()
	ref := w.intends(exchange.IntendProposalSign, uuid.New(), w.ask.ID, terms, w.who)
	ref.Verb = exchange.IntendProposalSign
	w.env.UpdateWorkflow(workflows.UpdateStep, ref.IntentID.String(), w.answer(who), ref)
}

// executes has an officer have it executed.
func (w *proposalHarness) executes() { w.executedBy(w.one) }

func (w *proposalHarness) executedBy(who exchange.Principal) {
	ref := w.intends(exchange.IntendProposalExecute, uuid.New(), w.ask.ID, nil, who)
	ref.Verb = exchange.IntendProposalExecute
	w.env.UpdateWorkflow(workflows.UpdateStep, ref.IntentID.String(), w.answer("execute"), ref)
}

func (w *proposalHarness) cancels() { w.cancelsThen(func() {}) }

// cancelsThen cancels it, and does something when that was answered.
func (w *proposalHarness) cancelsThen(then func()) {
	ref := w.intends(exchange.IntendProposalCancel, uuid.New(), w.ask.ID, nil, w.who)
	w.env.UpdateWorkflow(workflows.UpdateCancel, ref.IntentID.String(), w.answerThen("cancel", then), ref)
}

// approved, agreed and done play the way of a proposal without trouble: one officer approves after a minute, two owners sign after an hour, and it is
// executed after two.
func (w *proposalHarness) approved() {
	w.at(time.Minute, func() { w.decides(exchange.Approve, w.two) })
}

func (w *proposalHarness) agreed() {
	w.approved()
	w.at(time.Hour, func() { w.signed(w.account.Owners[0].Address) })
	w.at(time.Hour+time.Minute, func() { w.signed(w.account.Owners[2].Address) })
}

func (w *proposalHarness) done() {
	w.agreed()
	w.at(2*time.Hour, w.executes)
}

// orders gives an operator's retry.
func (w *proposalHarness) orders() {
	w.env.SignalWorkflow(workflows.SignalRetry, nil)
}

// play runs the flow, which must end so after it was parked with these reasons, and checks the wallet and the chain.
func (w *proposalHarness) play(t *testing.T, ends exchange.ProposalStatus, detail string, parked ...workflows.Reason) {
	t.Helper()
	id := w.intends(exchange.IntendProposal, w.ask.ID, w.ask.ID, w.ask.Terms(), w.who).IntentID
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.MultisigProposalID(w.ask.ID), TaskQueue: workflows.QueueFlows})
	w.at(cmp.Or(w.patience, 6*24*time.Hour), func() { // the database's clock does not follow the flow's, so that nothing expires
		t.Fatalf("it never ends; the answers were %v: %s", w.answers, detailsOf(t, w.env, workflows.MultisigProposalID(w.ask.ID)))
	})
	w.shows(workflows.ProposalAttributes(w.ask, w.account))
	w.env.ExecuteWorkflow(workflows.MultisigProposal, workflows.ProposalInput{IntentID: id})
	if !w.env.IsWorkflowCompleted() || w.env.GetWorkflowError() != nil {
		t.Fatalf("the flow ended: %t, %v", w.env.IsWorkflowCompleted(), w.env.GetWorkflowError())
	}
	var r workflows.ProposalResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	if p := w.row(); r.Status != ends || r.Detail != detail || p.Status != ends || p.StatusDetail != detail {
		t.Errorf("the flow ended as %s (%s), the proposal is %s (%s), want %s (%s)", r.Status, r.Detail, p.Status, p.StatusDetail, ends, detail)
	}
	has := map[bool]string{true: "900", false: "1000"}[ends == exchange.ProposalExecuted]
	a, err := w.store.Account(t.Context(), exchange.Owned(exchange.AccWalletBalance, w.account.ID, money.USDT))
	if err != nil || !a.Posted.Equal(crypto(has)) || a.Held.Positive() {
		t.Errorf("the wallet has %s, of which %s are held, want %s; %v", a.Posted, a.Held, has, err)
	}
	if sent := len(w.chain.sent(exchange.ForProposal)); sent > 1 || w.net.other == "" && (sent == 1) != (ends == exchange.ProposalExecuted) {
		t.Errorf("it ended as %s and was paid %d times", ends, sent)
	}
	w.signs.were(t, workflows.MultisigProposalID(w.ask.ID), parked...)
}

func TestMultisigProposal(t *testing.T) {
	t.Parallel()
	const executed, cancelled = exchange.ProposalExecuted, exchange.ProposalCancelled
	payload, outcomeOf, execution := workflows.ReasonProposalPayload, workflows.ReasonProposalOutcome, workflows.ReasonProposalExecution
	for _, c := range []struct {
		name   string
		people func(w *proposalHarness)
		ends   exchange.ProposalStatus
		detail string
		parked []workflows.Reason
	}{
		{"approved, signed, executed", (*proposalHarness).done, executed, exchange.WaitNothing, nil},
		{"its transaction is in a block that is undone", func(w *proposalHarness) {
			w.chain.script = func(int) outcome { return outcome{reorg: true} }
			w.done()
		}, executed, exchange.WaitNothing, nil},
		{"answers get lost", func(w *proposalHarness) {
			calls := map[string]int{"AdvanceProposal": 3, "StorePayload": 1, "StoreSignature": 1, "SignProposal": 1, "ExecuteProposal": 1, "SaveSignedAttempt": 1, "RecordFinal": 1}
			w.store.lost = func(call string) error {
				if calls[call] > 0 {
					calls[call]--
					return errAway
				}
				return nil
			}
			w.done()
		}, executed, exchange.WaitNothing, nil},
		{"an officer rejects", func(w *proposalHarness) {
			admin := storetest.PrincipalOf(storetest.User(w.t, w.store.Store, exchange.RoleAdmin))
			w.at(time.Minute, func() { w.decides(exchange.Reject, admin) })
		}, exchange.ProposalRejected, exchange.DetailRejected, nil},
		{"the proposer cancels before anything is signed", func(w *proposalHarness) { w.at(time.Minute, w.cancels) }, cancelled, exchange.DetailBySender, nil},
		{"cancelled when there is something to sign, until that has expired", func(w *proposalHarness) {
			w.agreed()
			w.at(2*time.Hour, w.cancels)
			w.at(3*time.Hour, func() {
				if p := w.row(); p.Ending != cancelled || p.Over() {
					w.t.Errorf("what was signed can be executed, and the proposal is %s, to end as %q", p.Status, p.Ending)
				}
			})
			w.at(20*time.Hour, func() { w.watchReads(); w.net.expired = true })
		}, cancelled, exchange.DetailBySender, nil},
		{"what was signed expires, and is signed anew", func(w *proposalHarness) {
			w.agreed()
			w.at(21*time.Hour, func() { w.watchReads(); w.net.expired = true })
			w.at(30*time.Hour, func() { w.signed(w.account.Owners[0].Address) })
			w.at(31*time.Hour, func() { w.signed(w.account.Owners[1].Address) })
			w.at(32*time.Hour, w.executes)
		}, executed, exchange.WaitNothing, nil},
		{"a stranger signs", func(w *proposalHarness) {
			w.at(30*time.Minute, func() { w.signed("a stranger") })
			w.at(40*time.Minute, func() {
				if w.answers["a stranger"] == nil {
					w.t.Error("the signature of a stranger was taken")
				}
			})
			w.done()
		}, executed, exchange.WaitNothing, nil},
		{"the payment would fail at first", func(w *proposalHarness) {
			w.net.refuses = []error{chain.Errorf(chain.ReasonFunds, "too little")}
			w.done()
		}, executed, exchange.WaitNothing, []workflows.Reason{payload}},
		{"the recipient is denied", func(w *proposalHarness) {
			w.screens.verdict = exchange.VerdictHit
			w.approved()
		}, exchange.ProposalRejected, exchange.DetailHit, nil},
		{"the chain is silent for a while", func(w *proposalHarness) {
			w.agreed()
			w.at(90*time.Minute, func() { w.net.fails = chain.Errorf(chain.ReasonProtocol, "nonsense") })
			w.at(3*time.Hour, func() { w.net.fails = nil })
			w.at(5*time.Hour, w.executes)
		}, executed, exchange.WaitNothing, []workflows.Reason{outcomeOf}},
		{"the signer refuses at first", func(w *proposalHarness) {
			w.chain.script = func(n int) outcome {
				if n == 1 {
					return outcome{trouble: exchange.Errorf(exchange.CodeForbidden, "no")}
				}
				return outcome{}
			}
			w.done()
		}, executed, exchange.WaitNothing, []workflows.Reason{execution}},
		{"it is frozen for a while", func(w *proposalHarness) {
			w.frozen(func() {})
			w.approved()
			w.at(30*time.Hour, func() { w.signed(w.account.Owners[0].Address) })
			w.at(31*time.Hour, func() { w.signed(w.account.Owners[1].Address) })
			w.at(32*time.Hour, w.executes)
		}, executed, exchange.WaitNothing, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newProposal(t)
			c.people(w)
			w.play(t, c.ends, c.detail, c.parked...)
		})
	}
}

// proposalRehearsals are the reasons of proposals.
func proposalRehearsals() map[workflows.Reason]rehearsal {
	played := func(set func(*parkedCommand, *proposalHarness)) rehearsal {
		return rehearsal{onlyRetry, func(t *testing.T, c *parkedCommand) {
			w := newProposal(t)
			set(c, w)
			c.await(t, w.env, w.signs, workflows.MultisigProposalID(w.ask.ID), w.orders)
			w.done()
			w.play(t, exchange.ProposalExecuted, exchange.WaitNothing, c.reason)
		}}
	}
	return map[workflows.Reason]rehearsal{
		workflows.ReasonProposalScreening: played(func(c *parkedCommand, w *proposalHarness) {
			w.screens.verdict = exchange.VerdictUnknown
			c.mend = func() { w.screens.verdict = exchange.VerdictClear }
		}),
		workflows.ReasonProposalPayload: played(func(_ *parkedCommand, w *proposalHarness) {
			w.net.refuses = []error{chain.Errorf(chain.ReasonFunds, "too little")}
		}),
		workflows.ReasonProposalOutcome: played(func(c *parkedCommand, w *proposalHarness) {
			w.at(10*time.Minute, func() { w.net.fails = chain.Errorf(chain.ReasonForeign, "its history is gone") })
			c.mend = func() { w.net.fails = nil }
		}),
		workflows.ReasonProposalExecution: played(func(c *parkedCommand, w *proposalHarness) {
			refuses := true
			w.chain.script = func(int) outcome {
				if refuses {
					return outcome{trouble: exchange.Errorf(exchange.CodeForbidden, "no")}
				}
				return outcome{}
			}
			c.mend = func() { refuses = false }
		}),
	}
}
