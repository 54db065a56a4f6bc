package catalogue

import (
	"crypto/sha256"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/momo/sandbox"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// Case 17: the payout's outcome is unknown, and a refund of the crypto is requested. It is refused, by command and in the
// store. Only the operator's refusal of the payout allows it, with as many officers as the refund rule requires.
func TestCatalogue17_NoCryptoGoesBackInDoubt(t *testing.T) {
	t.Parallel()
	w := openSales(t)
	storetest.Exec(t, w.store, `UPDATE approval_rules SET one_above = 1000 WHERE object_type = 'refund'`)
	r := w.sale("71") // the queue times out, and the refusal is held back
	o := w.sell(r,
		after(30*time.Minute, func(env *testsuite.TestWorkflowEnvironment) {
			w.is(w.order(r.ID), exchange.OrderProcessing, w.order(r.ID).StatusDetail)
			if _, _, err := w.store.OpenChainRefund(t.Context(), exchange.ChainRefundRequest{OrderID: r.ID, Reason: "asked"}, storetest.By); exchange.CodeOf(err) != exchange.CodeStateConflict {
				t.Errorf("the store sends the crypto back: %v", err)
			}
			w.sendCommand(env, r.ID, activities.VerbRefund, "")
		}),
		after(40*time.Minute, func(*testsuite.TestWorkflowEnvironment) { w.late() }),
		after(3*time.Hour, func(env *testsuite.TestWorkflowEnvironment) {
			if n := len(w.chain.paid(w.refund().ID)); n != 0 {
				t.Errorf("the crypto went back without a second officer, %d times", n)
			}
			w.approve(env, w.refund())
		}))
	w.wentBack(o)
	w.parked(workflows.MomoPayoutID(exchange.OrderObject(r.ID)), workflows.ReasonMomoUnknown)
	w.parked(workflows.OffRampID(r.ID), workflows.ReasonRefundSecond)
	w.books()
}

// approve makes another officer approve a refund in crypto in its current version.
func (w *harness) approve(env *testsuite.TestWorkflowEnvironment, r exchange.Refund) {
	w.t.Helper()
	const token = "a token of the test"
	officer := storetest.User(w.t, w.store, exchange.RoleTreasury)
	_, err := w.store.IssueRefundTicket(w.t.Context(), exchange.ApprovalTicket{
		ID: storetest.NewID(w.t), TokenHash: sha256.Sum256([]byte(token)), OfficerID: officer.ID, ObjectType: exchange.ApproveRefund, ObjectID: r.ID,
		Action: exchange.Approve, Amount: r.Amount, Digest: r.Digest, Channel: exchange.ChannelAPI, CreatedAt: w.now(), ExpiresAt: w.now().Add(time.Minute),
	}, storetest.PrincipalOf(officer))
	if err != nil {
		w.t.Errorf("no right to decide: %v", err)
	}
	env.UpdateWorkflow(workflows.UpdateApprove, token, w.answer("approve"), workflows.ApprovalRef{Token: token})
}

// Case 18: the operator refuses our credential. After two refusals nothing is sent any more, because more would lock the
// account. When an officer has corrected it, one payout is tried, and then all of them are sent.
func TestCatalogue18_TheCredentialIsRefused(t *testing.T) {
	t.Parallel()
	w := openSales(t)
	w.fault("credential_wrong", sandbox.OpPayout)
	w.fault("credential_locked", sandbox.OpPayout)
	var all []exchange.OrderRequest
	for i := range 2 {
		r := w.sale("00")
		all = append(all, r)
		w.stopAfter = 30 * time.Minute
		if o := w.sell(r); o.Status != exchange.OrderProcessing {
			t.Errorf("the sale is %s", o.Status)
		}
		if i == 0 { // for the second, no status query can be sent any more
			w.parkedStill(workflows.OffRampID(r.ID), workflows.ReasonMomoCredential)
		} else { // so its outcome is unknown to the child, which ends here with its environment
			w.parkedStill(workflows.MomoPayoutID(exchange.OrderObject(r.ID)), workflows.ReasonMomoUnknown)
		}
	}
	if n := w.sent.Load(); n != 2 {
		t.Errorf("%d payouts were sent with a credential that is refused", n)
	}
	if _, err := storetest.OpenOffRamp(t.Context(), w.store, w.sale("00"), storetest.By); exchange.CodeOf(err) != exchange.CodeSuspended {
		t.Errorf("a sale is opened although it can't be paid out: %v", err)
	}
	officer := storetest.User(t, w.store, exchange.RoleTreasury)
	if err := storetest.Agreed(t, w.store)(w.store.ProposeBreakerClosed(t.Context(), provider, "the password was changed", storetest.PrincipalOf(officer))); err != nil {
		t.Fatal(err)
	}
	all[0], all[1] = all[1], all[0] // the open payout is asked about first, and is the trial
	for _, r := range all {
		o := w.resumes(r, after(10*time.Minute, func(env *testsuite.TestWorkflowEnvironment) { w.sendCommand(env, r.ID, activities.VerbRetry, "") }))
		w.is(o, exchange.OrderCompleted, exchange.WaitNothing)
	}
	all = append(all, w.sale("00"))
	w.is(w.sell(all[2]), exchange.OrderCompleted, exchange.WaitNothing)
	if out := w.effects(sandbox.Payout); len(out) != len(all) {
		t.Errorf("the operator paid out %+v", out)
	}
	w.books()
}
