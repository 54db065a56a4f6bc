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

// crowd is what pays out to many phones at once.
type crowd struct {
	Sales   []workflows.OffRampInput // whose intents have the ids of their orders
	Refunds []workflows.LatePaymentInput
}

// together runs sales and refunds in parallel, and WatchFloat every five minutes, as its schedule does. The refunds begin
// when they are told to.
func together(ctx workflow.Context, all crowd) error {
	as := func(id string) workflow.Context {
		return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: id, TaskQueue: workflows.QueueFlows})
	}
	for _, in := range all.Sales {
		workflow.ExecuteChildWorkflow(as(workflows.OffRampID(in.IntentID)), workflows.OffRamp, in)
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, refundsBegin).Receive(ctx, nil)
		for _, in := range all.Refunds {
			_ = workflow.Sleep(ctx, time.Second)
			workflow.ExecuteChildWorkflow(as(workflows.LatePaymentID(in.AttemptID)), workflows.LatePayment, in)
		}
	})
	for {
		if err := workflow.Sleep(ctx, 5*time.Minute); err != nil {
			return err
		}
		_ = workflow.ExecuteChildWorkflow(ctx, workflows.WatchFloat).Get(ctx, nil)
	}
}

// refundsBegin is the signal to begin the refunds.
const refundsBegin = "refunds begin"

// firstPayouts is how long after the crypto of the first two sales their payouts have been sent, which the operator refuses because
// of our credential.
const firstPayouts = 3 * time.Second

// owes books money that came late for an order that its customer had cancelled, so that it is owed to the phone.
func (w *harness) owes(m storetest.Market, magic string) workflows.LatePaymentInput {
	w.t.Helper()
	by := storetest.PrincipalOf(m.Customer)
	o, err := storetest.OpenOrder(w.t.Context(), w.store, exchange.OrderRequest{
		ID: storetest.NewID(w.t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: money.Must(money.USDT, bought), Phone: phone(magic),
	}, by)
	if err != nil {
		w.t.Fatal(err)
	}
	a := storetest.Attempt(w.t, w.store, o)
	if _, err = w.store.RecordFailure(w.t.Context(), a.ID, exchange.Observation{State: exchange.SeenFailed, Soft: true, Code: "1037"}); err == nil {
		_, err = w.store.CloseOrder(w.t.Context(), o.ID, exchange.OrderCancelled, exchange.DetailCancelled, exchange.Asked{})
	}
	if err == nil {
		_, err = w.store.AcceptPayment(w.t.Context(), a.ID, storetest.Paid(w.t, o.Price.Fiat), w.now())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return workflows.LatePaymentInput{AttemptID: a.ID, OrderID: o.ID}
}

// Case 18, with every payout number of the sandbox at once, as a sale and as a refund, and healthy ones among them: a payout
// that is refused because of our credential parks alone, and two in a row suspend payouts. After an officer closes the
// breaker, everything that was suspended continues. Payouts without an answer delay no other one.
func TestCatalogue18_EveryNumberAtOnce(t *testing.T) {
	t.Parallel()
	w := openSales(t)
	purchases := storetest.NewMarket(t, w.store)
	var healthy, all []exchange.OrderRequest
	var in crowd
	for _, b := range sandbox.Behaviours() {
		if b.Magic == "" || b.Magic == "00" || !slices.Contains(b.Ops, sandbox.OpPayout) {
			continue
		}
		all, in.Refunds = append(all, w.sale(b.Magic)), append(in.Refunds, w.owes(purchases, b.Magic))
		if len(all)%4 == 0 {
			r := w.sale("00")
			healthy, all, in.Refunds = append(healthy, r), append(all, r), append(in.Refunds, w.owes(purchases, "00"))
		}
	}
	for _, escrow := range storetest.EscrowPool(t, w.store, exchange.Tron, len(all)) {
		storetest.Gas(t, w.store, escrow.ID, money.Must(money.TRX, "100"))
	}
	for _, r := range all {
		in.Sales = append(in.Sales, workflows.OffRampInput{IntentID: w.intends(r, exchange.IntendSale)})
	}
	officer := storetest.PrincipalOf(storetest.User(t, w.store, exchange.RoleTreasury))
	closings := 0
	w.stopAfter = 12 * time.Hour
	w.play("payouts", together, in, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterWorkflow(together)
		var others []exchange.OrderRequest
		first := 0 // those that are refused in a row, while the first of the others are pending
		rest := func() {
			if first--; first > 0 {
				return
			}
			env.RegisterDelayedCallback(func() {
				if err := env.SignalWorkflowByID("payouts", refundsBegin, nil); err != nil {
					t.Error(err)
				}
			}, firstPayouts)
			for i, r := range others {
				w.comesAfter(env, firstPayouts+time.Duration(i)*time.Second, r, func() {})
			}
		}
		for _, r := range all {
			if r.Phone == phone("65") || r.Phone == phone("66") {
				first++
				w.comesAfter(env, time.Minute, r, rest)
			} else {
				others = append(others, r)
			}
		}
		for at := 30 * time.Minute; at < 8*time.Hour; at += 30 * time.Minute {
			env.RegisterDelayedCallback(func() {
				if b, err := w.store.Breaker(t.Context(), provider); err != nil || b.State() != exchange.BreakerOpen {
					return
				}
				closings++
				if err := storetest.Agreed(t, w.store)(w.store.ProposeBreakerClosed(t.Context(), provider, "the credential is right", officer)); err != nil {
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
	for _, r := range all {
		if o := w.order(r.ID); o.StatusDetail == exchange.WaitSuspended {
			t.Errorf("the sale to %s is still suspended", r.Phone)
		}
		w.succeeded(r.ID)
	}
	for _, r := range in.Refunds {
		if paid := w.succeeded(r.OrderID); !paid && w.order(r.OrderID).PaymentPhone.Digits() == phone("00") {
			t.Errorf("the healthy refund of order %s was not paid", r.OrderID)
		}
	}
	w.wantOnlyProven()
}

// succeeded checks that at most one payout of an order or of its refund succeeded, and reports whether one did.
func (w *harness) succeeded(order uuid.UUID) bool {
	w.t.Helper()
	all, err := w.store.Payouts(w.t.Context(), order)
	if err != nil {
		w.t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(a exchange.PaymentAttempt) bool { return a.Status != exchange.AttemptSucceeded })
	if len(all) > 1 {
		w.t.Errorf("order %s was paid out %d times", order, len(all))
	}
	return len(all) > 0
}

// wantOnlyProven checks that no flow stays suspended, and that only the sales and refunds that the operator refused because
// of our credential are parked with it.
func (w *harness) wantOnlyProven() {
	w.t.Helper()
	w.signs.mu.Lock()
	defer w.signs.mu.Unlock()
	refused := map[workflows.Reason]int{}
	for flow, calls := range w.signs.calling {
		reasons := w.signs.reasons[flow]
		if !calls || len(reasons) == 0 {
			continue
		}
		last := reasons[len(reasons)-1]
		if last == workflows.ReasonMomoSuspended || last == workflows.ReasonRefundSuspended {
			w.t.Errorf("%s is left suspended", flow)
		}
		refused[last]++
	}
	for _, r := range []workflows.Reason{workflows.ReasonMomoCredential, workflows.ReasonRefundCredential} {
		if refused[r] != credentialNumbers {
			w.t.Errorf("%d flows are parked with %s, want the %d that were refused; of all: %v", refused[r], r, credentialNumbers, w.signs.reasons)
		}
	}
}
