package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// OffRamp is the flow of an order that sells crypto: open, wait for the crypto, see who sent it, pay the shillings
// out, and hand the crypto to the vendor; or give it back.
func OffRamp(ctx workflow.Context, in OffRampInput) (OffRampResult, error) {
	// Money may be on its way, so a cancellation of the execution is not obeyed. Customers cancel orders
	// by the update "cancel", operators by their commands.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &offRamp{in: in}
	if err := f.handlers(ctx); err != nil {
		return OffRampResult{}, err
	}
	return attended(ctx, f.desk, f.run)
}

// offRamp is one sale on its way. Rows decide what is done; what is kept here is where to go on.
type offRamp struct {
	ramp
	in   OffRampInput
	sale activities.OpenedOffRamp // as it was opened

	deposits  []uuid.UUID // movements that nobody looked at yet
	heeding   bool        // one is being looked at
	since     time.Time   // of the wait for crypto
	expiresAt time.Time   // of the wait for crypto; later than the order's when a deposit vanished again
	lookAt    time.Time   // when the rows are looked at although nobody was woken
	closing   string      // why the order is closed without crypto; empty: its time is over
	unfunded  bool        // the payment from the customer's wallet was given up

	paying   bool // a payout's flow is at work, to which callbacks go
	floated  bool // somebody says that there is more to pay out from
	bank     bankTask
	refundID uuid.UUID // what is owed back
	back     *cryptoBack
	door     *refundDoor // where officers decide about it
}

func (f *offRamp) run(ctx workflow.Context) (OffRampResult, error) {
	f.open(ctx)
	if f.refusal != nil {
		return f.finish(ctx)
	}
	if f.sale.FundFromID != uuid.Nil {
		f.fund(ctx)
	}
	f.collect(ctx)
	if f.order.Status == exchange.OrderProcessing && f.cleared(ctx) {
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

// open writes the order. The update "open" answers with what came of it; see the on-ramp's. A pool without a free
// address grows, where it may, before the customer is sent away.
func (f *offRamp) open(ctx workflow.Context) {
	in, grown := activities.OpenOffRampInput{Request: f.in.Request, Actor: f.in.Actor}, 0
	f.sale = open(ctx, &f.flow, "Open the order", offRamps.OpenOffRamp, in, func(err error) bool {
		grown++
		return grown <= maxGrowth && isDry(err) && f.grow(ctx)
	})
	f.order = f.sale.OpenedOrder
	if f.refusal != nil {
		return
	}
	f.since, f.expiresAt = workflow.Now(ctx), f.order.ExpiresAt
	if f.in.Request.Seen == (exchange.SeenOffer{}) { // else the flow was started with them
		show(ctx, AttrNetwork.ValueSet(string(f.order.Network)), AttrAsset.ValueSet(string(f.order.Asset)),
			AttrMerchantID.ValueSet(f.order.MerchantID.String()), AttrDeadline.ValueSet(f.expiresAt))
	}
	f.tell(ctx, "the crypto", f.expiresAt)
}

// maxGrowth is how often an order asks for another address when others were quicker to borrow the one that was made.
const maxGrowth = 3

// isDry tells that no escrow address is free.
func isDry(err error) bool {
	e, ok := asApplication(err)
	return ok && e.Type() == string(exchange.CodeEscrowDry)
}

// again tells a refusal that passes by itself. Its answer is not kept under the request's key, so the same request comes
// again with the same id; the flow fails with it, because only a failed flow's id may be used for another run.
func again(err error) bool {
	e, ok := asApplication(err)
	return ok && (e.Type() == string(exchange.CodeEscrowDry) || e.Type() == string(exchange.CodeSuspended))
}

// grow makes one more address of the pool and reports whether there is one.
func (f *offRamp) grow(ctx workflow.Context) bool {
	network := f.in.Request.Network
	if f.in.Request.Seen.Network != "" {
		network = f.in.Request.Seen.Network
	}
	return growEscrow(ctx, network, f.in.Request.ID)
}

// cleared has the sender of the crypto looked at, and reports whether the payout may go on. Nobody but the screening
// lets it go on; a person can only give the crypto back.
func (f *offRamp) cleared(ctx workflow.Context) bool {
	f.moved(ctx, StageScreening, WaitsForScreener, "the screening of who sent the crypto")
	for {
		in := activities.OrderInput{OrderID: f.order.OrderID}
		s, err := step(ctx, question, "See who sent the crypto", offRamps.ScreenDeposit, in)
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
		f.desk.unpark(ctx, WaitsForScreener)
	}
}

// clearedAgain has the sender looked at once more, for a payout that did not begin because the word about them changed since
// the first look: they came on the deny list, for example. The payout goes on at its stage, or the crypto is given back.
func (f *offRamp) clearedAgain(ctx workflow.Context, stage, waitsFor, words string) {
	f.desk.unpark(ctx, WaitsForScreener)
	f.mark(ctx, exchange.WaitScreening)
	if f.cleared(ctx) {
		f.moved(ctx, stage, waitsFor, words)
	}
}

// refused waits with crypto that can't be paid for until an operator decides, and reports whether it is given back
// instead. A refund that could not be opened leaves the flow waiting.
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

// refund fails the order and opens the refund of its crypto, by policy where nobody asked for it.
func (f *offRamp) refund(ctx workflow.Context, proof activities.Proof, why string) error {
	in := activities.OpenChainRefundInput{OrderID: f.order.OrderID, Proof: proof, Reason: why}
	opened, err := step(ctx, database, "Open the refund", chainRefunds.OpenChainRefund, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the refund was not opened", "error", err)
		return err
	}
	f.order.OrderState, f.refundID = opened.OrderState, opened.RefundID
	f.desk.unpark(ctx, WaitsForChain)
	return nil
}

// sweep hands the crypto on to the vendor. The order is completed already; only its crypto still stands at the
// escrow address, and can't go back any more.
func (f *offRamp) sweep(ctx workflow.Context) {
	f.moved(ctx, StageSweep, WaitsForChain, "the network")
	approved := mustStep(ctx, &f.flow, database, "Approve the sweep", sweeps.ApproveSweep, activities.OrderInput{OrderID: f.order.OrderID})
	f.desk.about = "sweep of order " + f.order.OrderID.String()
	f.desk.only = []string{activities.VerbRetry}
	defer func() { f.desk.only = nil }()
	for {
		result := f.payOutCrypto(ctx, approved.PaymentID, "Bring", "to the vendor", f.until)
		if result.Completed {
			return
		}
		d := f.parked(ctx, Reason(result.Reason), nil)
		f.must(ctx, "Approve the sweep again", func() error { return approveAgain(ctx, approved.PaymentID, d.proof) })
		f.desk.unpark(ctx, WaitsForChain)
	}
}

// giveBack sees the refund of the crypto to its end. When the payout proves to have been made after all, the order stays
// failed and its crypto goes to the vendor, who paid for it.
func (f *offRamp) giveBack(ctx workflow.Context) {
	f.moved(ctx, StageRefund, WaitsForChain, "the refund")
	if f.refundID == uuid.Nil { // the flow was run anew for an order that had failed: its refund is there
		f.must(ctx, "Find the refund", func() error { return f.refund(ctx, activities.Proof{}, "") })
	}
	b := &cryptoBack{
		refundID: f.refundID, orderID: f.order.OrderID, network: f.order.Network, merchant: f.order.MerchantID, desk: f.desk, door: f.door,
		until: f.until, paid: f.keepPayout,
	}
	f.back = b
	b.run(ctx)
	f.back = nil
	if b.state.PaymentID == uuid.Nil { // it was settled by the payout's receipt, here or by a look at a late word
		f.sweep(ctx)
	}
}

// keepPayout obeys an operator who proves by its receipt that the payout of a failed order was made.
func (f *offRamp) keepPayout(ctx workflow.Context, proof activities.Proof) bool {
	in := activities.KeepPayoutInput{OrderID: f.order.OrderID, Proof: proof}
	if err := do(ctx, rail, "Let the payout stand", payouts.KeepPayout, in); err != nil {
		workflow.GetLogger(ctx).Error("the payout does not stand", "error", err)
		return false
	}
	return true
}

// release lets the escrow address rest. What lies there and is not the order's becomes an exception with it.
func (f *offRamp) release(ctx workflow.Context) {
	mustStep(ctx, &f.flow, database, "Let the escrow address rest", escrow.ReleaseEscrow, activities.OrderInput{OrderID: f.order.OrderID})
}

// finish answers who still waits and ends the flow. What comes to the address from now on is found by the watch over
// the chain, which opens an exception.
func (f *offRamp) finish(ctx workflow.Context) (OffRampResult, error) {
	letOthersRun(ctx)
	f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "The order is over."))
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return OffRampResult{}, err
	}
	if again(f.refusal) {
		return OffRampResult{}, passOn(f.refusal)
	}
	if f.order.Status == "" { // refused
		return OffRampResult{OrderID: f.in.Request.ID, Detail: words(f.refusal)}, nil
	}
	f.ended(ctx)
	return OffRampResult{OrderID: f.order.OrderID, Status: f.order.Status, Detail: f.order.Detail}, nil
}
