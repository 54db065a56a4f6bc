package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// OffRamp is the flow of an order that sells crypto: open, wait for the crypto, screen its sender, pay out the shillings,
// and send the crypto to the vendor; or return it.
func OffRamp(ctx workflow.Context, in OffRampInput) (OffRampResult, error) {
	// Money may be moving, so a cancellation of the execution is ignored. Customers cancel orders by the update "cancel",
	// operators by their commands.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &offRamp{in: in}
	if err := f.handlers(ctx); err != nil {
		return OffRampResult{}, err
	}
	return attended(ctx, f.commands, f.run)
}

// offRamp is the state of one sale. The database rows decide what is done; the fields here are the progress of the flow.
type offRamp struct {
	ramp
	in   OffRampInput
	sale activities.OpenedOffRamp // as it was opened

	deposits  []uuid.UUID // movements that are not handled yet
	handling  bool        // one is being handled
	word      *request    // of the seller, about crypto of another amount
	since     time.Time   // start of the wait for crypto
	expiresAt time.Time   // end of the wait for crypto; later than the order's after a deposit vanished
	lookAt    time.Time   // when the rows are read without a signal
	unfunded  bool        // the payment from the customer's wallet was given up

	bank      bankTask
	refundID  uuid.UUID // of the refund that is owed
	back      *cryptoRefund
	approvals *refundApprovals // receives the officers' decisions
}

func (f *offRamp) run(ctx workflow.Context) (OffRampResult, error) {
	f.open(ctx)
	if f.refusal != nil {
		return f.finish(ctx)
	}
	if f.sale.FundFromID != uuid.Nil && f.released(ctx) {
		f.fund(ctx)
	}
	f.collect(ctx)
	// A payout that was begun is looked at first, whatever the screening says by now. The database lets no other begin without one.
	if f.order.Status == exchange.OrderProcessing && (f.sale.PaidOut || f.cleared(ctx)) {
		f.pay(ctx)
	}
	switch f.order.Status {
	case exchange.OrderCompleted:
		f.sweep(ctx)
	case exchange.OrderFailed:
		f.giveBack(ctx)
	case exchange.OrderPending, exchange.OrderConfirming, exchange.OrderProcessing, exchange.OrderCancelled: // nothing to move
	}
	f.release(ctx)
	return f.finish(ctx)
}

// open writes the order; the update "open" returns the outcome. If no escrow address is free, it first tries to add one to
// the pool.
func (f *offRamp) open(ctx workflow.Context) {
	in, provisioned := activities.IntentInput{IntentID: f.in.IntentID}, 0
	f.sale = open(ctx, &f.flow, "Open the order", offRamps.OpenOffRamp, in, func(err error) bool {
		provisioned++
		return provisioned <= maxProvisions && isExhausted(err) && provisionEscrow(ctx, f.in.IntentID)
	})
	f.order = f.sale.OpenedOrder
	if f.refusal != nil {
		return
	}
	f.since, f.expiresAt = workflow.Now(ctx), f.order.ExpiresAt
	f.deposits = append(f.deposits, f.sale.Deposits...)
	if !shownAtStart(ctx) {
		show(ctx, AttrNetwork.ValueSet(string(f.order.Network)), AttrAsset.ValueSet(string(f.order.Asset)),
			AttrMerchantID.ValueSet(f.order.MerchantID.String()), AttrDeadline.ValueSet(f.expiresAt))
	}
	f.showWait(ctx, "the crypto", f.expiresAt)
}

// maxProvisions is how often an order asks for another address after other orders took the new one first.
const maxProvisions = 3

// isExhausted reports whether no escrow address is free.
func isExhausted(err error) bool {
	e, ok := asApplication(err)
	return ok && e.Type() == string(exchange.CodeEscrowExhausted)
}

// again reports whether a refusal is temporary. Its answer is not stored under the request's idempotency key, so the same
// request may come again with the same id. The flow then fails, because only a failed flow's id may be used again.
func again(err error) bool {
	e, ok := asApplication(err)
	return ok && (e.Type() == string(exchange.CodeEscrowExhausted) || e.Type() == string(exchange.CodeSuspended))
}

// cleared screens the sender of the crypto, and reports whether the payout may go on. Only a clear screening lets it go on;
// an operator can only return the crypto.
func (f *offRamp) cleared(ctx workflow.Context) bool {
	f.moved(ctx, StageScreening, WaitsForScreener, "the screening of the crypto's sender")
	for {
		in := activities.OrderInput{OrderID: f.order.OrderID}
		s, err := step(ctx, question, "Screen the crypto's sender", offRamps.ScreenDeposit, in)
		if err == nil && s.Verdict == exchange.VerdictClear {
			return true
		}
		reason := ReasonDepositScreening
		if err == nil && s.Verdict == exchange.VerdictHit {
			reason = ReasonDepositDenied
		}
		if f.refused(ctx, reason, err) {
			return false
		}
		f.commands.unpark(ctx, WaitsForScreener)
	}
}

// clearedAgain screens the sender again, after a payout did not begin because the screening result changed: for example,
// the sender is on the deny list now. The payout goes on at its stage, or the crypto is returned.
func (f *offRamp) clearedAgain(ctx workflow.Context, stage, waitsFor, words string) {
	f.commands.unpark(ctx, WaitsForScreener)
	f.mark(ctx, exchange.WaitScreening)
	if f.cleared(ctx) {
		f.moved(ctx, stage, waitsFor, words)
	}
}

// refused waits for an operator's decision about a payout that can't be made, and reports whether the crypto is returned.
// If the refund can't be opened, the flow keeps waiting.
func (f *offRamp) refused(ctx workflow.Context, r Reason, cause error) bool {
	for {
		d := f.parked(ctx, r, cause)
		if d.verb != activities.VerbRefund {
			return false
		}
		if cause = f.refund(ctx, d.proof, string(r)); cause == nil {
			return true
		}
	}
}

// refund fails the order and opens the refund of its crypto, by a command or by policy.
func (f *offRamp) refund(ctx workflow.Context, proof activities.Proof, why string) error {
	in := activities.OpenChainRefundInput{OrderID: f.order.OrderID, Proof: proof, Reason: why}
	opened, err := step(ctx, database, "Open the refund", chainRefunds.OpenChainRefund, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the refund could not be opened", "error", err)
		return err
	}
	f.order.OrderState, f.refundID = opened.OrderState, opened.RefundID
	f.commands.unpark(ctx, WaitsForChain)
	return nil
}

// sweep sends the crypto to the vendor. The order is already completed; its crypto is still at the escrow address and can't
// be returned any more.
func (f *offRamp) sweep(ctx workflow.Context) {
	f.moved(ctx, StageSweep, WaitsForChain, "the network")
	approved := quickly(ctx, &f.flow, "Approve the sweep", sweeps.ApproveSweep, activities.OrderInput{OrderID: f.order.OrderID})
	f.commands.about.about = "sweep of order " + f.order.OrderID.String()
	f.commands.only = []string{activities.VerbRetry}
	defer func() { f.commands.only = nil }()
	for {
		result := f.payOutCrypto(ctx, approved.PaymentID, "Send", "to the vendor", f.until)
		if result.Completed {
			return
		}
		d := f.parked(ctx, Reason(result.Reason), nil)
		f.must(ctx, "Approve the sweep again", func() error { return approveAgain(ctx, &approved.PaymentID, d.proof) })
		f.commands.unpark(ctx, WaitsForChain)
	}
}

// giveBack returns the crypto. If the payout is proven to have been made after all, the order stays failed and its crypto
// goes to the vendor, who paid for it.
func (f *offRamp) giveBack(ctx workflow.Context) {
	f.moved(ctx, StageRefund, WaitsForChain, "the refund")
	if f.refundID == uuid.Nil { // a new run for an order that had failed: its refund exists
		f.must(ctx, "Find the refund", func() error { return f.refund(ctx, activities.Proof{}, "") })
	}
	b := &cryptoRefund{
		refundID: f.refundID, orderID: f.order.OrderID, network: f.order.Network, merchant: f.order.MerchantID, commands: f.commands, approvals: f.approvals,
		until: f.until, resumed: &f.resumed, paid: f.keepPayout, unknown: true,
	}
	f.back = b
	b.run(ctx)
	f.back = nil
	if b.state.PaymentID == uuid.Nil { // settled by the payout's receipt, here or by late evidence
		f.sweep(ctx)
	}
}

// keepPayout applies the decision of an operator who proves by a receipt that the payout of a failed order was made.
func (f *offRamp) keepPayout(ctx workflow.Context, proof activities.Proof) bool {
	in := activities.KeepPayoutInput{OrderID: f.order.OrderID, Proof: proof}
	if err := do(ctx, rail, "Keep the payout instead of the refund", payouts.KeepPayout, in); err != nil {
		workflow.GetLogger(ctx).Error("the payout could not be kept", "error", err)
		return false
	}
	return true
}

// release ends the lease of the escrow address. Crypto there that is not the order's becomes an exception.
func (f *offRamp) release(ctx workflow.Context) {
	quickly(ctx, &f.flow, "Release the escrow address", escrow.ReleaseEscrow, activities.OrderInput{OrderID: f.order.OrderID})
}

// finish answers the open updates and ends the flow. For crypto that comes to the address from now on, the deposit watch
// opens an exception.
func (f *offRamp) finish(ctx workflow.Context) (OffRampResult, error) {
	letOthersRun(ctx)
	f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "The order has ended."))
	f.answer(&f.word, refuse(exchange.CodeStateConflict, "The order has ended."))
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return OffRampResult{}, err
	}
	if again(f.refusal) {
		return OffRampResult{}, passOn(f.refusal)
	}
	if f.order.Status == "" { // refused
		return OffRampResult{OrderID: f.orderID, Detail: words(f.refusal)}, nil
	}
	f.ended(ctx)
	return OffRampResult{OrderID: f.order.OrderID, Status: f.order.Status, Detail: f.order.Detail}, nil
}
