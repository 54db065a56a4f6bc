package workflows_test

import (
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
	"kivuko/workflows/workflowstest"
)

// refusedBefore is a payout whose only attempt was recorded as refused, although the operator may pay it still.
func refusedBefore(t *testing.T, kind exchange.MomoObjectType, p payer) (*payoutHarness, exchange.PaymentAttempt) {
	t.Helper()
	w := newPayoutHarness(t, kind, p)
	a := w.refused(1)
	w.operator.submitted[a.ID], w.operator.plans[a.ID] = 1, p
	return w, a
}

// givesUp opens the refund of the order's crypto.
func (w *payoutHarness) givesUp(t *testing.T) exchange.Refund {
	t.Helper()
	_, r, err := w.store.OpenChainRefund(t.Context(), exchange.ChainRefundRequest{OrderID: w.request.ID, Reason: "refused"}, storetest.By)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sendsBack gives the crypto back to an address of the customer's.
func (w *payoutHarness) sendsBack(t *testing.T) {
	t.Helper()
	ctx, s := t.Context(), w.store.Store
	r := w.givesUp(t)
	for _, change := range []string{ // the database compares with its own clock
		`UPDATE refund_policy SET cool_off_seconds = 0`, `ALTER TABLE payment_attempts DISABLE TRIGGER USER`,
		`UPDATE payment_attempts SET settled_at = '2020-01-01' WHERE status = 'failed'`, `ALTER TABLE payment_attempts ENABLE TRIGGER USER`,
	} {
		storetest.Exec(t, s, change)
	}
	l, err := s.EscrowLease(ctx, w.request.ID)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Gas(t, s, l.WalletID, money.Must(money.TRX, "1000"))
	if _, err := s.SetRefundAddress(ctx, store.Everything(), w.request.ID, "Thome0000000000000000000000000000000", nil, storetest.PrincipalOf(w.market.Customer)); err != nil {
		t.Fatal(err)
	}
	standing, err := s.ApproveRefundPayment(ctx, r.ID)
	if err == nil {
		err = s.RecordRecipient(ctx, standing.Payment.ID, []exchange.Screening{{Screener: "deny_list", Verdict: exchange.VerdictClear}})
	}
	if err == nil {
		_, err = w.chain.SignPayment(ctx, standing.Payment.ID)
	}
	if err != nil {
		t.Fatalf("the refund waits for %q: %v", standing.Wait, err)
	}
}

// paidByAnother completes the payout by a second attempt.
func (w *payoutHarness) paidByAnother(t *testing.T) {
	t.Helper()
	obs := storetest.Paid(t, w.payable().Amount)
	if _, err := w.store.Store.CompletePayout(t.Context(), w.of, w.begun(w.of, 2).ID, obs); err != nil {
		t.Fatal(err)
	}
}

// late runs the check of late evidence as the API starts it. The operator pays a moment later.
func (w *payoutHarness) late(t *testing.T, a exchange.PaymentAttempt, p payer) string {
	t.Helper()
	w.at(time.Second, func() { w.operator.mu.Lock(); defer w.operator.mu.Unlock(); w.operator.finish(a, p, "0") })
	w.operator.mu.Lock()
	w.operator.results[a.ID] = "0"
	w.operator.callback(a, exchange.CallbackResult, exchange.Observation{ // this callback started the flow
		State: exchange.SeenSucceeded, Receipt: fmt.Sprintf("UKL%07d", len(w.operator.book)+1), Amount: a.Amount, Source: exchange.SourceCallback,
	})
	w.operator.mu.Unlock()
	return w.checkLate(t, a)
}

// checkLate runs the check of late evidence.
func (w *payoutHarness) checkLate(t *testing.T, a exchange.PaymentAttempt) string {
	t.Helper()
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.LatePayoutID(a.ID), TaskQueue: workflows.QueueFlows})
	w.env.ExecuteWorkflow(workflows.LatePayout, workflows.LatePayoutOf(a))
	if err := w.env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	var r workflows.LatePayoutResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	return r.Outcome
}

// paidOnce checks that the attempt is proven, and whether it completed the payout or is booked as paid twice.
func (w *payoutHarness) paidOnce(t *testing.T, a exchange.PaymentAttempt, completed bool) {
	t.Helper()
	stored, err := w.store.Store.Attempt(t.Context(), a.ID)
	if err != nil || stored.Status != exchange.AttemptSucceeded {
		t.Errorf("the attempt is %s, %v", stored.Status, err)
	}
	if p := w.payable(); completed != (p.Paid && p.Receipt == stored.Receipt) {
		t.Errorf("the payout is %s with %q, the attempt has %q", p.Status, p.Receipt, stored.Receipt)
	}
	if _, twice, err := w.store.Store.PaidTwiceBy(t.Context(), a.ID); err != nil || twice == completed {
		t.Errorf("paid twice: %t, %v", twice, err)
	}
}

// TestLateSuccessOfAnOrdersPayout books a payout that is proven after it was recorded as refused, and parks only if no other
// flow does.
func TestLateSuccessOfAnOrdersPayout(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]struct {
		before    func(*payoutHarness, *testing.T)
		want      string
		completed bool
		exception exchange.ExceptionStatus
		parked    []workflows.Reason
	}{
		"while the order waits":    {func(*payoutHarness, *testing.T) {}, workflows.LateAccounted, true, "", nil},
		"the crypto is still here": {func(w *payoutHarness, t *testing.T) { w.givesUp(t) }, workflows.LateAccounted, false, exchange.ExcOpen, nil},
		"the crypto is gone":       {(*payoutHarness).sendsBack, workflows.LateResolved, false, exchange.ExcAccepted, []workflows.Reason{workflows.ReasonMomoTwice}},
		"another attempt has paid": {(*payoutHarness).paidByAnother, workflows.LateResolved, false, exchange.ExcAccepted, []workflows.Reason{workflows.ReasonMomoTwice}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := payer{code: "0"}
			w, a := refusedBefore(t, exchange.MomoOrder, p)
			s.before(w, t)
			if s.want == workflows.LateResolved {
				w.at(3*time.Hour, func() { w.command("resolve") })
			}
			if got := w.late(t, a, p); got != s.want {
				t.Errorf("the check ended %s, want %s", got, s.want)
			}
			w.paidOnce(t, a, s.completed)
			w.signs.were(t, workflows.LatePayoutID(a.ID), s.parked...)
			w.decided(t, s.exception)
		})
	}
}

// decided checks the status of the only exception about a double payment, or that there is none.
func (w *payoutHarness) decided(t *testing.T, want exchange.ExceptionStatus) {
	t.Helper()
	var have []exchange.ExceptionStatus
	for _, x := range w.exceptions() {
		if x.Kind == exchange.ExcPaidTwice {
			have = append(have, x.Status)
		}
	}
	if len(have) > 1 || (len(have) == 1) != (want != "") || len(have) == 1 && have[0] != want {
		t.Errorf("the exceptions are %v, want %s", have, want)
	}
}

// TestLateClaimAboutAnOrdersPayout has only one source report that a payout was made. The crypto waits from then on, and an
// operator proves the payout.
func TestLateClaimAboutAnOrdersPayout(t *testing.T) {
	t.Parallel()
	p := payer{code: "0", mute: true}
	w, a := refusedBefore(t, exchange.MomoOrder, p)
	w.at(time.Minute, func() {
		if p, err := w.store.OrderPayout(t.Context(), w.request.ID); err != nil || !p.Doubted || !p.Claimed {
			t.Errorf("nothing is in doubt: %+v, %v", p, err)
		}
	})
	w.at(5*time.Hour, func() { w.says("resolve", "UKL0000001") })
	if got := w.late(t, a, p); got != workflows.LateAccounted {
		t.Errorf("the check ended %s", got)
	}
	w.paidOnce(t, a, true)
	if p := w.payable(); p.Receipt != "UKL0000001" {
		t.Errorf("booked with %q", p.Receipt)
	}
	w.signs.were(t, workflows.LatePayoutID(a.ID), workflows.ReasonMomoLate)
}

// TestPayoutThatStands keeps a payout instead of the refund: a proven one, or one that the operator's receipt proves.
func TestPayoutThatStands(t *testing.T) {
	t.Parallel()
	for name, proven := range map[string]bool{"proven before": true, "proven by the receipt": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, a := refusedBefore(t, exchange.MomoOrder, payer{code: "0"})
			r := w.givesUp(t)
			const receipt = "UKL0000001"
			if proven {
				obs := exchange.Observation{State: exchange.SeenSucceeded, Receipt: receipt, Amount: a.Amount, Source: exchange.SourceCallback}
				if _, err := w.store.Store.CompletePayout(t.Context(), w.of, a.ID, obs); err != nil {
					t.Fatal(err)
				}
			}
			id := w.decreeWith(activities.ObjectOrder, w.request.ID, activities.VerbResolve, receipt)
			suite := testsuite.WorkflowTestSuite{}
			suite.SetLogger(workflowstest.Silent())
			env := suite.NewTestActivityEnvironment()
			p := &activities.Payouts{Store: w.store, Operator: w.operator, Provider: "daraja", Now: time.Now}
			env.RegisterActivity(p)
			_, err := env.ExecuteActivity(p.KeepPayout, activities.KeepPayoutInput{OrderID: w.request.ID, Proof: activities.Proof{
				CommandID: id, Object: activities.ObjectRef{Type: activities.ObjectOrder, ID: w.request.ID}, Verb: activities.VerbResolve,
			}})
			kept, readErr := w.store.OrderPayout(t.Context(), w.request.ID)
			if err != nil || readErr != nil || kept.Status != exchange.PayoutCompleted || kept.PaidBy != a.ID || kept.Receipt != receipt {
				t.Errorf("the payout is %+v, %v, %v", kept, err, readErr)
			}
			if stored, err := w.store.Store.Attempt(t.Context(), a.ID); err != nil || stored.Receipt != receipt {
				t.Errorf("the attempt has %q, %v", stored.Receipt, err)
			}
			if r, err := w.store.Refund(t.Context(), r.ID); err != nil || r.Status != exchange.RefundCompleted || r.Receipt != receipt {
				t.Errorf("the refund is %s with %q, %v", r.Status, r.Receipt, err)
			}
			w.decided(t, exchange.ExcAccepted)
		})
	}
}

// says gives a command about the order, with a note, to the flow that the environment runs.
func (w *harness) says(verb, note string) {
	w.notifyFlow(w.decreeWith(activities.ObjectOrder, w.request.ID, verb, note), verb)
}
