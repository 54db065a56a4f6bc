package catalogue

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/sandbox"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// seller is where the crypto of sales comes from.
const seller = "Tseller000000000000000000000000000"

// paidFor10 is the price of a sale of 10 USDT at 129.355, rounded down to whole shillings.
const paidFor10 = 1293

// openSales makes a harness in which a vendor buys crypto.
func openSales(t *testing.T) *harness {
	t.Helper()
	w := openWith(t, start, storetest.NewSellers)
	w.selling, w.block = true, watchedTo
	gas, _, err := w.store.ListWallets(t.Context(), store.Everything(), store.WalletFilter{Purpose: exchange.HouseEscrow}, store.Page{Number: 1, Size: 50})
	if err != nil {
		t.Fatal(err)
	}
	for _, escrow := range gas {
		storetest.Gas(t, w.store, escrow.ID, money.Must(money.TRX, "100"))
	}
	return w
}

// sales plays a case of a payout once for each number with a fault of the operator.
func sales(t *testing.T, magics map[string]string, play func(w *harness, magic string)) {
	t.Helper()
	for name, magic := range magics {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openSales(t)
			play(w, magic)
			w.books()
		})
	}
}

// offer returns the request of the cases' sale, paid out to the number with a fault of the operator.
func (w *harness) sale(magic string) exchange.OrderRequest {
	return exchange.OrderRequest{
		ID: storetest.NewID(w.t), CustomerID: w.market.Customer.ID, OfferID: w.market.Offer.ID, Crypto: money.Must(money.USDT, bought),
		Type: exchange.OffRampSell, Phone: phone(magic), RefundAddress: "TRefund" + magic, ExpiresAt: w.now().Add(exchange.OffRampLife),
	}
}

// sell plays a sale to its end. Its crypto comes after a minute.
func (w *harness) sell(r exchange.OrderRequest, script ...func(*testsuite.TestWorkflowEnvironment)) exchange.Order {
	w.t.Helper()
	return w.resumes(r, append(script, func(env *testsuite.TestWorkflowEnvironment) { w.comesAfter(env, time.Minute, r, func() {}) })...)
}

// resumes plays a sale from its beginning, as after a reset: steps that its rows show as done are not repeated.
func (w *harness) resumes(r exchange.OrderRequest, script ...func(*testsuite.TestWorkflowEnvironment)) exchange.Order {
	w.t.Helper()
	in := workflows.OffRampInput{IntentID: w.intends(r, exchange.IntendSale)}
	w.play(workflows.OffRampID(r.ID), workflows.OffRamp, in, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { env.UpdateWorkflow(workflows.UpdateOpen, r.ID.String(), w.answer("open")) }, 0)
		for _, s := range script {
			s(env)
		}
	})
	if err := w.answers["open"]; err != nil {
		w.t.Fatalf("the sale was not opened: %v", err)
	}
	return w.order(r.ID)
}

// comesAfter has the crypto of a sale come after a time, once the sale is open, and then does something. The clock of the test runs
// on while many sales are opened, so no time of it says that one is.
func (w *harness) comesAfter(env *testsuite.TestWorkflowEnvironment, at time.Duration, r exchange.OrderRequest, then func()) {
	env.RegisterDelayedCallback(func() {
		_, err := w.store.OrderByID(w.t.Context(), r.ID)
		switch {
		case err == nil:
			w.comes(env, r)
			then()
		case exchange.CodeOf(err) == exchange.CodeNotFound:
			w.comesAfter(env, time.Second, r, then)
		default:
			w.t.Error(err)
		}
	}, at)
}

// comes books the deposit of a sale in a final block, as the watch over the chain does, and wakes the flow.
func (w *harness) comes(env *testsuite.TestWorkflowEnvironment, r exchange.OrderRequest) {
	w.t.Helper()
	w.block++
	id := func(n uint64) string {
		if n == watchedTo {
			return "start"
		}
		return fmt.Sprintf("block-%d", n)
	}
	scan := exchange.BlockScan{
		Network: exchange.Tron, Block: exchange.ChainBlock{Number: w.block, ID: id(w.block), Parent: id(w.block - 1), Time: w.now()},
		Movements: []exchange.ChainMovement{{TxID: "deposit-" + r.ID.String(), From: seller, To: w.order(r.ID).EscrowAddress, Amount: r.Crypto}},
		Minimum:   map[money.Asset]money.Amount{money.USDT: money.Must(money.USDT, "0.01")},
	}
	if _, err := w.store.RecordFinalBlock(w.t.Context(), scan); err != nil {
		w.t.Error(err)
		return
	}
	due, err := w.store.DueWakeups(w.t.Context(), exchange.Tron)
	if err != nil || len(due) != 1 || due[0].WorkflowID != workflows.OffRampID(r.ID) {
		w.t.Errorf("the deposit wakes %+v, %v", due, err)
		return
	}
	if err := env.SignalWorkflowByID(due[0].WorkflowID, workflows.SignalDeposit, workflows.DepositRef{DepositID: due[0].DepositID}); err != nil {
		w.t.Error(err)
	}
	if err := w.store.RecordWoken(w.t.Context(), []uuid.UUID{due[0].ID}); err != nil {
		w.t.Error(err)
	}
}

// sold checks a sale that the operator paid out once, under the sale's first id.
func (w *harness) sold(o exchange.Order) {
	w.t.Helper()
	w.is(o, exchange.OrderCompleted, exchange.WaitNothing)
	out := w.effects(sandbox.Payout)
	if len(out) != 1 || out[0].Amount != paidFor10 || out[0].Phone != o.PaymentPhone.Digits() || out[0].Receipt != o.MomoReceipt {
		w.t.Errorf("the operator paid out %+v, the order names %s", out, o.MomoReceipt)
	}
	if ids := w.payouts(); len(ids) != 1 || ids[0] != activities.PayoutID(o.ID, 1).String() {
		w.t.Errorf("the operator took payouts under %v", ids)
	}
}

// wentBack checks a sale that was not paid out and whose crypto went back to the seller.
func (w *harness) wentBack(o exchange.Order) {
	w.t.Helper()
	w.is(o, exchange.OrderFailed, exchange.DetailRefundOpen)
	refund := w.refund()
	paid := w.chain.paid(refund.ID)
	if refund.Status != exchange.RefundCompleted || len(paid) != 1 || paid[0].ToAddress != o.RefundAddress || !paid[0].Amount.Equal(o.Price.Crypto) {
		w.t.Errorf("the refund is %s and the chain paid %+v", refund.Status, paid)
	}
	if out := w.effects(sandbox.Payout); len(out) != 0 {
		w.t.Errorf("shillings were paid out, too: %+v", out)
	}
}

// Case 12, for a sale.
func TestCatalogue12_ThePayoutOfASaleIsUnknown(t *testing.T) {
	t.Parallel()
	sales(t, map[string]string{"answered with 500": "60", "connection breaks": "61", "system error, no result": "64"}, func(w *harness, magic string) {
		w.sold(w.sell(w.sale(magic)))
	})
}

// Case 12, where the operator never got it: it is sent again under the same id.
func TestCatalogue12_ThePayoutOfASaleNeverArrived(t *testing.T) {
	t.Parallel()
	sales(t, map[string]string{"system error": "system_error", "throttled": "payout_spike"}, func(w *harness, behaviour string) {
		w.fault(behaviour, sandbox.OpPayout)
		w.sold(w.sell(w.sale("00")))
		if n := w.sent.Load(); n != 2 {
			w.t.Errorf("the payout was sent %d times", n)
		}
	})
}

// Case 12, where no status query gets an answer: after some of them the flow parks, and the payout is neither refused nor
// made again until an operator names its receipt.
func TestCatalogue12_NoSourceReportsThePayoutOfASale(t *testing.T) {
	t.Parallel()
	sales(t, map[string]string{"the status is silent": "69", "the status is pending for ever": "72"}, func(w *harness, magic string) {
		r := w.sale(magic)
		o := w.sell(r,
			after(26*time.Hour, func(env *testsuite.TestWorkflowEnvironment) {
				w.is(w.order(r.ID), exchange.OrderProcessing, w.order(r.ID).StatusDetail)
				if a := w.payoutOf(r.ID); a.Status != exchange.AttemptAccepted {
					w.t.Errorf("after a day without an answer the payout is %s", a.Status)
				}
				w.sendCommand(env, r.ID, activities.VerbResolve, w.effects(sandbox.Payout)[0].Receipt)
			}))
		w.sold(o)
		w.parked(workflows.MomoPayoutID(exchange.OrderObject(r.ID)), workflows.ReasonMomoUnknown)
	})
}

// A sale that is started again while its payout is open looks at that first, although its sender is on the deny list by now: the payee
// has the money.
func TestASaleThatIsStartedAgainLooksAtItsPayoutFirst(t *testing.T) {
	t.Parallel()
	w := openSales(t)
	r := w.sale("69")
	w.stopAfter = time.Hour
	w.sell(r)
	payout := workflows.MomoPayoutID(exchange.OrderObject(r.ID))
	w.parkedStill(payout, workflows.ReasonMomoUnknown) // and is gone
	d := exchange.DeniedAddress{ID: storetest.NewID(t), Network: exchange.Tron, Address: seller, Reason: "why"}
	if _, err := w.store.Deny(t.Context(), d, storetest.PrincipalOf(storetest.User(t, w.store, exchange.RoleAdmin))); err != nil {
		t.Fatal(err)
	}
	w.sold(w.resumes(r, after(2*time.Hour, func(env *testsuite.TestWorkflowEnvironment) {
		w.sendCommand(env, r.ID, activities.VerbResolve, w.effects(sandbox.Payout)[0].Receipt)
	})))
	w.books()
}

// payoutOf returns the newest attempt to pay a sale out.
func (w *harness) payoutOf(order uuid.UUID) exchange.PaymentAttempt {
	w.t.Helper()
	all, err := w.store.Payouts(w.t.Context(), order)
	if err != nil || len(all) == 0 {
		w.t.Fatalf("the payouts of the sale: %+v, %v", all, err)
	}
	return all[0]
}

// Case 13, for a sale.
func TestCatalogue13_TheIDOfASaleIsKnown(t *testing.T) {
	t.Parallel()
	w := openSales(t)
	w.dies.Store(true)
	w.sold(w.sell(w.sale("00")))
	if n := w.sent.Load(); n != 2 {
		t.Errorf("the payout was sent %d times", n)
	}
	w.books()
}

// Case 14, for a sale: a timeout of the operator's queue is no refusal, and no crypto goes back because of it.
func TestCatalogue14_TheQueueTimesOutOnASale(t *testing.T) {
	t.Parallel()
	sales(t, map[string]string{"then it is paid": "59", "then it is paid, and the result is lost": "74"}, func(w *harness, magic string) {
		w.sold(w.sell(w.sale(magic), after(8*time.Minute, func(*testsuite.TestWorkflowEnvironment) { w.late() })))
	})
	sales(t, map[string]string{"then it is refused": "71"}, func(w *harness, magic string) {
		w.wentBack(w.sell(w.sale(magic), after(8*time.Minute, func(*testsuite.TestWorkflowEnvironment) {
			if w.order(w.lastOrder()).Status != exchange.OrderProcessing {
				w.t.Error("a timeout ended the sale")
			}
			w.late()
		})))
	})
}

// Case 15, for a sale: the result is lost, and answers to status queries prove the outcome.
func TestCatalogue15_TheResultOfASaleIsLost(t *testing.T) {
	t.Parallel()
	sales(t, map[string]string{"of a payment": "55"}, func(w *harness, magic string) { w.sold(w.sell(w.sale(magic))) })
	sales(t, map[string]string{"of a refusal": "78"}, func(w *harness, magic string) {
		o := w.sell(w.sale(magic), after(2*time.Hour, func(env *testsuite.TestWorkflowEnvironment) {
			w.sendCommand(env, w.lastOrder(), activities.VerbRefund, "")
		}))
		w.wentBack(o)
	})
}

// Case 16, for a sale: result and status contradict each other. No crypto goes back meanwhile, even by command.
func TestCatalogue16_ResultAndStatusOfASaleDisagree(t *testing.T) {
	t.Parallel()
	sales(t, map[string]string{"the status says Failed": "68", "the status reports another amount": "73"}, func(w *harness, magic string) {
		r := w.sale(magic)
		o := w.sell(r,
			after(2*time.Hour, func(env *testsuite.TestWorkflowEnvironment) {
				_, _, err := w.store.OpenChainRefund(w.t.Context(), exchange.ChainRefundRequest{OrderID: r.ID, Reason: "the status said so"}, storetest.By)
				if exchange.CodeOf(err) != exchange.CodeStateConflict {
					w.t.Errorf("the crypto could go back: %v", err)
				}
				w.sendCommand(env, r.ID, activities.VerbResolve, w.effects(sandbox.Payout)[0].Receipt)
			}))
		w.sold(o)
		w.parked(workflows.MomoPayoutID(exchange.OrderObject(r.ID)), workflows.ReasonMomoDisagree)
	})
}

// Case 19, for a sale: the operator's payout account is short; the payout is made again under a new id after a top-up.
func TestCatalogue19_TheFloatIsShortForASale(t *testing.T) {
	t.Parallel()
	w := openSales(t)
	w.fault("utility_short", sandbox.OpPayout)
	o := w.sell(w.sale("00"))
	w.is(o, exchange.OrderCompleted, exchange.WaitNothing)
	if ids := w.payouts(); len(ids) != 2 || ids[1] != activities.PayoutID(o.ID, 2).String() {
		t.Errorf("the operator took payouts under %v", ids)
	}
	w.books()
}
