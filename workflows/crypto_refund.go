package workflows

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// refundGlance is how often a crypto refund that waits for an operator is checked: the customer may have set the refund
// address.
const refundGlance = 15 * time.Minute

// cryptoRefund carries out a crypto refund for the flow that owes it. It waits for an address, for the cool-off after the
// last payout and for the officers' approvals, has the payment carried out, and parks when something is missing. At every
// step the database decides whether the crypto may be sent.
type cryptoRefund struct {
	refundID  uuid.UUID
	orderID   uuid.UUID // zero when the money belongs to no order
	merchant  uuid.UUID
	network   exchange.Network
	commands  *commands
	approvals *refundApprovals // receives the officers' decisions
	until     waiting
	resumed   *bool // set by a signal to look again whether the payment is being carried out
	unknown   bool  // the senders of the order's crypto have yet to be screened
	// paid settles a payout that an operator proves to have been made after all, and reports whether it is settled. It is nil
	// when there was no payout.
	paid func(workflow.Context, activities.Proof) bool

	state   activities.ChainRefundState
	verdict exchange.Verdict // of the senders of the crypto, once they were screened
	woken   bool             // the refund has changed
	began   time.Time
}

// run ends when the crypto was returned, or when the receipt of the payout settled the refund.
func (b *cryptoRefund) run(ctx workflow.Context) {
	b.began = workflow.Now(ctx)
	b.approvals.about = b
	defer func() { b.approvals.about = nil }()
	for {
		b.woken = false
		b.screen(ctx)
		in := activities.ChainRefundInput{RefundID: b.refundID}
		err := b.learn(step(ctx, database, "Approve the refund payment", chainRefunds.ApproveRefundPayment, in))
		switch {
		case err != nil:
			b.parked(ctx, ReasonStepFailed, err)
		case b.state.Status == exchange.RefundCompleted:
			b.commands.unpark(ctx, WaitsForNothing)
			return
		case b.state.Status == exchange.RefundProcessing:
			b.send(ctx)
		default:
			b.wait(ctx)
		}
	}
}

// screen asks who sent the crypto. It goes back by itself only to the customer of senders whom the screening accepts; without
// its answer an officer decides.
func (b *cryptoRefund) screen(ctx workflow.Context) {
	if !b.unknown {
		return
	}
	s, err := step(ctx, question, "Screen the crypto's senders", offRamps.ScreenDeposit, activities.OrderInput{OrderID: b.orderID})
	if err != nil {
		workflow.GetLogger(ctx).Warn("the crypto's senders could not be screened", "error", err)
		return
	}
	b.verdict, b.unknown = s.Verdict, s.Verdict == exchange.VerdictUnknown
}

// notCleared tells officers of senders whom the screening does not accept.
func (b *cryptoRefund) notCleared() error {
	if b.verdict == "" || b.verdict == exchange.VerdictClear {
		return nil
	}
	return fmt.Errorf("the screening of the crypto's senders says %q", string(b.verdict))
}

// learn stores the refund's state, unless the step failed.
func (b *cryptoRefund) learn(s activities.ChainRefundState, err error) error {
	if err == nil {
		b.state = s
	}
	return err
}

// wake notes that the refund has changed: an address or a decision came.
func (b *cryptoRefund) wake() { b.woken = true }

// send has the payment carried out, and waits for an operator when no transaction can be made.
func (b *cryptoRefund) send(ctx workflow.Context) {
	b.commands.unpark(ctx, WaitsForChain)
	in := CryptoPayoutInput{PaymentID: b.state.PaymentID, OrderID: b.orderID, RefundID: b.refundID, Network: b.state.Network}
	c := child{
		summary: "Return crypto", priority: fairness(priorityRefund, b.merchant),
		shown:   attributes(StageRefund, WaitsForChain, AttrNetwork.ValueSet(string(b.state.Network)), AttrMerchantID.ValueSet(b.merchant.String())),
		resumed: b.resumed,
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
	b.commands.park(ctx, reason, err)
	for !b.commands.hasDecision() { // only an operator can let the payment go on, but the refund may be withdrawn meanwhile
		b.until.pause(ctx, slower(ctx, refundGlance, b.began), "Check the refund again", func() bool { return b.woken || b.commands.hasDecision() })
		if !b.commands.hasDecision() && !b.sending(ctx) {
			return
		}
	}
	if d := b.commands.take(); d.verb == activities.VerbRefund {
		b.address(ctx, d.proof)
	} else {
		_ = approveAgain(ctx, &in.PaymentID, d.proof) // a failure is logged, and the next round finds the payment still parked
	}
}

// sending reports whether the refund still waits for the approved payment. A payout that is proven late withdraws the
// payment while nothing is signed.
func (b *cryptoRefund) sending(ctx workflow.Context) bool {
	b.woken = false
	payment := b.state.PaymentID
	in := activities.ChainRefundInput{RefundID: b.refundID}
	err := b.learn(step(ctx, database, "Check the refund", chainRefunds.ApproveRefundPayment, in))
	return err != nil || (b.state.Status == exchange.RefundProcessing && b.state.PaymentID == payment)
}

// wait waits for what the refund lacks. A wait that ends by itself does not park the flow.
func (b *cryptoRefund) wait(ctx workflow.Context) {
	reason := ReasonRefundSecond
	switch b.state.Wait {
	case exchange.RefundWaitsCoolOff:
		b.commands.unpark(ctx, WaitsForNothing)
		b.commands.describe(ctx, b.card("the end of the cool-off after the last refused payout", b.state.Until))
		b.until.pause(ctx, max(b.state.Until.Sub(workflow.Now(ctx)), time.Second), "Wait for the end of the cool-off", func() bool { return b.woken })
		return
	case exchange.RefundWaitsAddress:
		reason = ReasonRefundAddress
	case exchange.RefundWaitsClaim, exchange.RefundWaitsPayout:
		reason = ReasonRefundClaimed
	case exchange.RefundWaitsOfficer, exchange.RefundWaitsRefused, exchange.RefundReady:
	}
	d, decided := b.parked(ctx, reason, b.notCleared())
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
		if reason == ReasonRefundClaimed && d.proof.CommandID != uuid.Nil { // a retry signal alone dismisses nothing
			b.dismiss(ctx, d.proof)
		}
	}
}

// parked waits for an operator, and reports whether there is a decision. It also returns from time to time and whenever the
// refund changes, so that the caller checks the refund; the flow stays parked with the reason until something has changed.
func (b *cryptoRefund) parked(ctx workflow.Context, r Reason, cause error) (decision, bool) {
	b.commands.park(ctx, r, cause)
	b.until.pause(ctx, slower(ctx, refundGlance, b.began), "Check the refund again", func() bool { return b.woken || b.commands.hasDecision() })
	if !b.commands.hasDecision() {
		return decision{}, false
	}
	return b.commands.take(), true
}

// address sets the refund's address as the operator asked. A command without an address only makes the flow check again.
func (b *cryptoRefund) address(ctx workflow.Context, proof activities.Proof) {
	in := activities.AddressRefundInput{RefundID: b.refundID, Proof: proof}
	err := b.commands.carryOut(ctx, func(k kind) error {
		return b.learn(step(ctx, k, "Set the refund's address", chainRefunds.AddressRefund, in))
	})
	if err != nil {
		workflow.GetLogger(ctx).Warn("no refund address was set", "error", err)
	}
}

// dismiss lets the refund go on despite a claim that the payee was paid. Another officer has to agree.
func (b *cryptoRefund) dismiss(ctx workflow.Context, proof activities.Proof) {
	in := activities.AddressRefundInput{RefundID: b.refundID, Proof: proof}
	if err := b.learn(step(ctx, database, "Go on with the refund", chainRefunds.DismissClaim, in)); err != nil {
		workflow.GetLogger(ctx).Error("the claim could not be dismissed", "error", err)
	}
}

func (b *cryptoRefund) card(waits string, until time.Time) card {
	c := card{title: "Crypto refund"}
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

// refundApprovals receives the officers' decisions about what a flow waits with for them: a refund in crypto, or a sale from a
// custodial wallet.
type refundApprovals struct {
	about decidable[RefundAck] // nil while nothing waits
}

// open registers the handlers. It is called before the first wait of a flow that may wait for officers.
func (d *refundApprovals) open(h *handlers, c *commands) {
	idle := func() error {
		if d.about == nil {
			return refuse(exchange.CodeStateConflict, "Nothing waits for an officer's decision.")
		}
		return nil
	}
	(&approvalHandler[RefundAck]{
		commands: c, idle: idle,
		admit: func(ApprovalRef) error { return idle() },
		about: func() decidable[RefundAck] { return d.about },
	}).open(h)
}

func (b *cryptoRefund) prove(ctx workflow.Context, action exchange.ApprovalAction, token string) (RefundAck, error) {
	in := activities.DecideRefundInput{RefundID: b.refundID, Action: action, Token: token}
	s, err := step(ctx, database, "Prove the officer's decision", chainRefunds.DecideRefund, in)
	if err != nil {
		return RefundAck{}, err
	}
	b.wake()
	return RefundAck{Status: s.Status, Wait: s.Wait, Needed: s.Needed, Agreed: s.Agreed}, nil
}

func (b *cryptoRefund) note(ctx workflow.Context, action exchange.ApprovalAction, channel exchange.ApprovalChannel, code exchange.Code) error {
	return do(ctx, database, "Record a decision without proof", chainRefunds.RecordRefusedRefundDecision,
		activities.RefusedRefundDecisionInput{RefundID: b.refundID, Action: action, Channel: channel, Code: code})
}

// RefundAck is the answer to a decision: the refund's state, or how many officers agreed that a sale may go on.
type RefundAck struct {
	Status exchange.RefundStatus `json:"status,omitempty"`
	Wait   exchange.RefundWait   `json:"wait,omitempty"`
	Needed int                   `json:"needed,omitempty"`
	Agreed int                   `json:"agreed,omitempty"`
}
