package catalogue

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/sandbox"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// credentialNumbers is the number of phones whose payouts the operator refuses because of only our credential: not
// entitled, wrong and locked. The code of an inactive account belongs to our set-up as well.
const credentialNumbers = 3

// together runs sales in parallel, and WatchFloat every five minutes, as its schedule does.
func together(ctx workflow.Context, all []workflows.OffRampInput) error {
	for _, in := range all {
		o := workflow.ChildWorkflowOptions{WorkflowID: workflows.OffRampID(in.Request.ID), TaskQueue: workflows.QueueFlows}
		workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, o), workflows.OffRamp, in)
	}
	for {
		if err := workflow.Sleep(ctx, 5*time.Minute); err != nil {
			return err
		}
		_ = workflow.ExecuteChildWorkflow(ctx, workflows.WatchFloat).Get(ctx, nil)
	}
}

// Case 18, with every payout number of the sandbox at once and healthy sales among them: a payout that is refused because of
// our credential parks alone, and two in a row suspend payouts. After an officer closes the breaker, all suspended sales
// continue. Payouts without an answer delay no other one.
func TestCatalogue18_EveryNumberAtOnce(t *testing.T) {
	t.Parallel()
	w := openSales(t)
	var healthy, all []exchange.OrderRequest
	for _, b := range sandbox.Behaviours() {
		if b.Magic == "" || b.Magic == "00" || !slices.Contains(b.Ops, sandbox.OpPayout) {
			continue
		}
		all = append(all, w.sale(b.Magic))
		if len(all)%4 == 0 {
			r := w.sale("00")
			healthy, all = append(healthy, r), append(all, r)
		}
	}
	for _, escrow := range storetest.EscrowPool(t, w.store, exchange.Tron, len(all)) {
		storetest.Gas(t, w.store, escrow.ID, money.Must(money.TRX, "100"))
	}
	officer := storetest.PrincipalOf(storetest.User(t, w.store, exchange.RoleTreasury))
	closings := 0
	w.stopAfter = 12 * time.Hour
	inputs := make([]workflows.OffRampInput, len(all))
	for i, r := range all {
		inputs[i] = workflows.OffRampInput{Request: r, Actor: workflows.Actor{UserID: r.CustomerID, Role: exchange.RoleCustomer}}
	}
	w.play("sales", together, inputs, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterWorkflow(together)
		for i, r := range all {
			at := 63*time.Second + time.Duration(i)*time.Second
			if r.Phone == phone("65") || r.Phone == phone("66") { // refused in a row, while the first of the others are pending
				at = time.Minute
			}
			env.RegisterDelayedCallback(func() { w.comes(env, r) }, at)
		}
		for at := 30 * time.Minute; at < 8*time.Hour; at += 30 * time.Minute {
			env.RegisterDelayedCallback(func() {
				if b, err := w.store.Breaker(t.Context(), provider); err != nil || b.State() != exchange.BreakerOpen {
					return
				}
				closings++
				if _, err := w.store.CloseBreaker(t.Context(), provider, "the credential is right", officer); err != nil {
					t.Error(err)
				}
			}, at)
		}
	})
	for _, r := range healthy {
		w.is(w.order(r.ID), exchange.OrderCompleted, exchange.WaitNothing)
	}
	if b, err := w.store.Breaker(t.Context(), provider); err != nil || b.State() != exchange.BreakerClosed || closings == 0 {
		t.Errorf("in the end the breaker is %+v after %d closings, %v", b, closings, err)
	}
	paid := map[uuid.UUID]int{}
	for _, r := range all {
		if o := w.order(r.ID); o.StatusDetail == exchange.WaitSuspended {
			t.Errorf("the sale to %s is still suspended", r.Phone)
		}
		payouts, err := w.store.Payouts(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range payouts {
			if a.Status == exchange.AttemptSucceeded {
				paid[r.ID]++
			}
		}
		if paid[r.ID] > 1 {
			t.Errorf("the sale to %s was paid %d times", r.Phone, paid[r.ID])
		}
	}
	w.wantOnlyProven()
}

// wantOnlyProven checks that no flow stays suspended, and that only the sales that the operator refused because of our
// credential are parked with it.
func (w *harness) wantOnlyProven() {
	w.t.Helper()
	w.signs.mu.Lock()
	defer w.signs.mu.Unlock()
	refused := 0
	for flow, calls := range w.signs.calling {
		reasons := w.signs.reasons[flow]
		if !calls || len(reasons) == 0 {
			continue
		}
		last := reasons[len(reasons)-1]
		if last == workflows.ReasonMomoSuspended {
			w.t.Errorf("%s is left suspended", flow)
		}
		if last == workflows.ReasonMomoCredential {
			refused++
		}
	}
	if refused != credentialNumbers {
		w.t.Errorf("%d sales are parked because of our credential, want the %d that were refused", refused, credentialNumbers)
	}
}
