package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// refundGlance is how often a refund in crypto that waits for a person is looked at by itself: the customer may have
// said where it goes.
const refundGlance = 15 * time.Minute

// cryptoBack sees a refund in crypto to its end on behalf of the flow that owes it: it waits for an address, for the
// last payout to cool off and for the persons who have to agree, has the payment carried out, and parks when something
// is missing. The database judges at every step whether the crypto may go.
type cryptoBack struct {
	refundID uuid.UUID
	orderID  uuid.UUID // zero where the money belongs to no order
	merchant uuid.UUID
	network  exchange.Network
	desk     *desk
	door     *refundDoor // where officers decide about it
	until    waiting
	// paid settles a payout that an operator proves to have paid the order after all, and reports whether it is settled.
	// It is nil where no payout can have paid.
	paid func(workflow.Context, activities.Proof) bool

	state activities.ChainRefundState
	woken bool // something about the refund is new
	began time.Time
}

// run ends when the crypto is back, or when the refund was settled by a payout that proved true.
func (b *cryptoBack) run(ctx workflow.Context) {
	b.began = workflow.Now(ctx)
	b.door.back = b
	defer func() { b.door.back = nil }()
	for {
		b.woken = false
		in := activities.ChainRefundInput{RefundID: b.refundID}
		err := b.learn(step(ctx, database, "Have the crypto sent back", chainRefunds.ApproveRefundPayment, in))
		switch {
		case err != nil:
			b.parked(ctx, ReasonStepFailed, err)
		case b.state.Status == exchange.RefundCompleted:
			b.desk.unpark(ctx, WaitsForNobody)
			return
		case b.state.Status == exchange.RefundProcessing:
			b.send(ctx)
		default:
			b.wait(ctx)
		}
	}
}

// learn takes over where the refund stands, where a step could tell.
func (b *cryptoBack) learn(s activities.ChainRefundState, err error) error {
	if err == nil {
		b.state = s
	}
	return err
}

// wake tells that something about the refund is new: an address, a decision.
func (b *cryptoBack) wake() { b.woken = true }

// send has the payment carried out, and waits for a person when no transaction of it can be made.
func (b *cryptoBack) send(ctx workflow.Context) {
	b.desk.unpark(ctx, WaitsForChain)
	in := CryptoPayoutInput{PaymentID: b.state.PaymentID, OrderID: b.orderID, RefundID: b.refundID, Network: b.state.Network}
	c := child{
		summary: "Send crypto back", priority: fairness(priorityRefund, b.merchant),
		shown: attributes(StageRefund, WaitsForChain, AttrNetwork.ValueSet(string(b.state.Network)), AttrMerchantID.ValueSet(b.merchant.String())),
	}
	result, err := carry(ctx, in, c, b.until)
	if err == nil && result.Completed {
		return
	}
	reason := Reason(result.Reason)
	if err != nil {
		reason = ReasonStepFailed
	}
	if !b.sending(ctx) {
		return
	}
	b.desk.park(ctx, reason, err)
	for !b.desk.hasDecision() { // nothing that passes by itself lets the payment go on, but it may be taken back
		b.pause(ctx, slower(ctx, refundGlance, b.began), "Look at the refund again", func() bool { return b.woken || b.desk.hasDecision() })
		if !b.desk.hasDecision() && !b.sending(ctx) {
			return
		}
	}
	if d := b.desk.take(); d.verb == activities.VerbRefund {
		b.address(ctx, d.proof)
	} else {
		_ = approveAgain(ctx, in.PaymentID, d.proof) // it is logged, and the next round finds the payment parked still
	}
}

// sending looks whether the refund still waits for the payment that was approved. A payout that proves true takes it
// back as long as nothing is signed.
func (b *cryptoBack) sending(ctx workflow.Context) bool {
	b.woken = false
	payment := b.state.PaymentID
	in := activities.ChainRefundInput{RefundID: b.refundID}
	err := b.learn(step(ctx, database, "Look at the refund", chainRefunds.ApproveRefundPayment, in))
	return err != nil || (b.state.Status == exchange.RefundProcessing && b.state.PaymentID == payment)
}

// wait waits for what the refund lacks. What passes by itself parks nobody.
func (b *cryptoBack) wait(ctx workflow.Context) {
	reason := ReasonRefundSecond
	switch b.state.Wait {
	case exchange.RefundWaitsCoolOff:
		b.desk.unpark(ctx, WaitsForNobody)
		describe(ctx, b.card("the last payout to have been refused for long enough", b.state.Until))
		b.pause(ctx, max(b.state.Until.Sub(workflow.Now(ctx)), time.Second), "The last payout has cooled off", func() bool { return b.woken })
		return
	case exchange.RefundWaitsAddress:
		reason = ReasonRefundAddress
	case exchange.RefundWaitsClaim, exchange.RefundWaitsPayout:
		reason = ReasonRefundClaimed
	case exchange.RefundWaitsOfficer, exchange.RefundWaitsRefused, exchange.RefundReady:
	}
	d, decided := b.parked(ctx, reason, nil)
	if !decided {
		return
	}
	switch d.verb {
	case activities.VerbRefund:
		b.address(ctx, d.proof)
	case activities.VerbResolve:
		if b.paid != nil && b.paid(ctx, d.proof) {
			return
		}
	default:
		if reason == ReasonRefundClaimed && d.proof.CommandID != uuid.Nil { // a mere nudge dismisses nothing
			b.dismiss(ctx, d.proof)
		}
	}
}

// parked waits for a person, and reports whether one has spoken. The refund is looked at again from time to time
// and whenever something about it is new; it stays parked with the reason until something has changed.
func (b *cryptoBack) parked(ctx workflow.Context, r Reason, cause error) (decision, bool) {
	b.desk.park(ctx, r, cause)
	b.pause(ctx, slower(ctx, refundGlance, b.began), "Look at the refund again", func() bool { return b.woken || b.desk.hasDecision() })
	if !b.desk.hasDecision() {
		return decision{}, false
	}
	return b.desk.take(), true
}

// address sends the refund where a person said. A command that names no address is a word to look again.
func (b *cryptoBack) address(ctx workflow.Context, proof activities.Proof) {
	in := activities.AddressRefundInput{RefundID: b.refundID, Proof: proof}
	if err := b.learn(step(ctx, database, "Take the address over", chainRefunds.AddressRefund, in)); err != nil {
		workflow.GetLogger(ctx).Warn("no address was taken over", "error", err)
	}
}

// dismiss lets the refund go on though somebody claimed that its payee was paid. Another person has to agree to it.
func (b *cryptoBack) dismiss(ctx workflow.Context, proof activities.Proof) {
	in := activities.AddressRefundInput{RefundID: b.refundID, Proof: proof}
	if err := b.learn(step(ctx, database, "Go on with the refund", chainRefunds.DismissClaim, in)); err != nil {
		workflow.GetLogger(ctx).Error("the claim was not dismissed", "error", err)
	}
}

// pause waits as the flow waits that owes the refund, for at most a while.
func (b *cryptoBack) pause(ctx workflow.Context, d time.Duration, summary string, ready func() bool) {
	timed, cancel := workflow.WithCancel(ctx)
	defer cancel()
	timer := workflow.NewTimerWithOptions(timed, d, workflow.TimerOptions{Summary: summary})
	b.until(ctx, func() bool { return timer.IsReady() || ready() })
}

func (b *cryptoBack) card(waits string, until time.Time) card {
	c := card{title: "Crypto goes back"}
	c.add("Refund", b.refundID.String())
	if b.orderID != uuid.Nil {
		c.add("Order", b.orderID.String())
	}
	if b.network != "" {
		c.add("Network", string(b.network))
	}
	c.add("Waits for", waits)
	if !until.IsZero() {
		c.add("Until", moment(until))
	}
	return c
}

// refundDoor is where officers decide about a refund in crypto. Updates of the API and signals of the Web UI lead to one
// handler, which believes nothing but a token, as for transfers.
type refundDoor struct {
	back    *cryptoBack // nil while nobody waits
	refused int         // signals without a valid token
}

// openRefundDoor registers the handlers. It is called before the first wait of a flow that may owe crypto.
func openRefundDoor(h *handlers, d *refundDoor) {
	for _, u := range []struct {
		update, signal string
		action         exchange.ApprovalAction
	}{{UpdateApprove, SignalApprove, exchange.Approve}, {UpdateReject, SignalReject, exchange.Reject}} {
		h.update(u.update, "An officer's decision about the refund, with a token that the API made for it.",
			func(ctx workflow.Context, ref ApprovalRef) (RefundAck, error) {
				return d.decide(ctx, u.action, exchange.DoorAPI, ref)
			}, d.admit)
		signal(h.ctx, "signal "+u.signal, u.signal, func(ctx workflow.Context, sent any) { d.listen(ctx, u.signal, u.action, sent) })
	}
}

// admit refuses decisions while no refund waits.
func (d *refundDoor) admit(ApprovalRef) error {
	if d.back == nil {
		return refuse(exchange.CodeStateConflict, "No refund in crypto waits for a decision.")
	}
	return nil
}

// listen is the Web UI's door. Whatever was typed arrives; what can't be read as a token is refused like a wrong one.
func (d *refundDoor) listen(ctx workflow.Context, name string, action exchange.ApprovalAction, sent any) {
	if d.back == nil || d.refused >= maxRefused {
		workflow.GetLogger(ctx).Warn("a signal was ignored", "signal", name)
		return
	}
	if _, err := d.decide(ctx, action, exchange.DoorSignal, tokenIn(sent)); err != nil {
		d.refused++
	}
}

// decide is the one handler. What is not proven is noted for the auditor and changes nothing.
func (d *refundDoor) decide(ctx workflow.Context, action exchange.ApprovalAction, door exchange.ApprovalDoor, ref ApprovalRef) (RefundAck, error) {
	back := d.back
	in := activities.DecideRefundInput{RefundID: back.refundID, Action: action, Token: ref.Token}
	s, err := step(ctx, database, "Prove the officer's decision", chainRefunds.DecideRefund, in)
	if err == nil {
		back.wake()
		return RefundAck{Status: s.Status, Wait: s.Wait, Needed: s.Needed, Agreed: s.Agreed}, nil
	}
	refusal := activities.RefusedRefundDecisionInput{RefundID: back.refundID, Action: action, Door: door, Code: exchange.CodeOf(AsExchangeError(err))}
	if err := do(ctx, database, "Note a decision without proof", chainRefunds.RecordRefusedRefundDecision, refusal); err != nil {
		workflow.GetLogger(ctx).Error("a decision without proof was not noted", "error", err)
	}
	return RefundAck{}, passOn(err)
}

// RefundAck answers a decision about a refund with where it stands.
type RefundAck struct {
	Status exchange.RefundStatus `json:"status,omitempty"`
	Wait   exchange.RefundWait   `json:"wait,omitempty"`
	Needed int                   `json:"needed,omitempty"`
	Agreed int                   `json:"agreed,omitempty"`
}
