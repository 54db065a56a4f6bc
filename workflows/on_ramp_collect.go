package workflows

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// Limits of collecting.
const (
	maxPrompts     = 6                // of one order, sent by us or asked for by the customer
	maxRepeats     = 3                // prompts that are repeated without the customer
	repeatPause    = 75 * time.Second // the operator locks a payer for a minute
	slowLook       = 5 * time.Minute
	parkedLook     = 15 * time.Minute
	unknownLimit   = 30 * time.Minute // after the order expired, until the flow parks
	childBusyPause = 30 * time.Second
)

// quickLooks are the first checks after a prompt: callbacks get lost, and the operator does not repeat them.
var quickLooks = []time.Duration{15 * time.Second, 30 * time.Second, 45 * time.Second, 60 * time.Second, 90 * time.Second}

// collect prompts the payer until the order is paid or has ended. A callback only wakes it; what counts is the result of
// ConfirmPayment. The order's expiry ends the wait, but never while a debit is possible.
func (f *onRamp) collect(ctx workflow.Context) {
	if f.pending() && len(f.prompts) == 0 && workflow.Now(ctx).Before(f.order.ExpiresAt) {
		f.prompt(ctx)
	}
	for f.pending() {
		now := workflow.Now(ctx)
		current := f.current()
		switch {
		case f.commands.hasDecision():
			f.decide(ctx, f.commands.take())
		case len(f.callbacks) > 0:
			f.applyCallbacks(ctx)
		case f.cancel != nil:
			f.cancelled(ctx)
		case f.retry != nil:
			f.again(ctx)
		case f.expired(now) && current == nil:
			f.close(ctx, exchange.OrderCancelled, exchange.DetailExpired, activities.Behalf{})
		case f.expired(now) && !f.overdue:
			f.outlive(ctx, current)
		case due(f.repeatAt, now):
			f.repeatAt = time.Time{}
			f.prompt(ctx)
		case current != nil && due(current.next, now):
			f.look(ctx, current, f.overdue || current.asked >= len(quickLooks))
		case f.overdue && due(f.giveUpAt, now):
			f.giveUp(ctx, current)
		default:
			f.wait(ctx, now, current)
		}
	}
	f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "The order can't be cancelled any more."))
	f.answer(&f.retry, refuse(exchange.CodeStateConflict, "The order does not wait for a payment any more."))
}

func due(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

func (f *onRamp) expired(now time.Time) bool { return !now.Before(f.order.ExpiresAt) }

// current returns the prompt whose outcome the order waits for, nil if there is none.
func (f *onRamp) current() *prompt {
	if n := len(f.prompts); n > 0 && f.prompts[n-1].open {
		return f.prompts[n-1]
	}
	return nil
}

// prompt sends one prompt to the payer. That the operator accepted the prompt does not mean that it was paid.
func (f *onRamp) prompt(ctx workflow.Context) {
	n := len(f.prompts) + 1
	f.prompts = append(f.prompts, &prompt{id: activities.CollectionID(f.order.OrderID, n), open: true})
	f.repeatAt = time.Time{}
	f.submit(ctx, n)
}

// submit runs the step that sends the prompt. After an unexpected failure the prompt may still be on the phone, so it
// counts as open; the step itself never sends a prompt twice.
func (f *onRamp) submit(ctx workflow.Context, n int) {
	p := f.prompts[n-1]
	in := activities.PromptInput{OrderID: f.order.OrderID, N: n, Home: f.id, Until: f.order.ExpiresAt}
	s, err := step(ctx, rail, "Prompt the payer", momo.PromptPayer, in)
	p.since = workflow.Now(ctx)
	p.open, p.unsure = err != nil || s.State != exchange.Refused, err != nil
	p.next = p.since.Add(quickLooks[0])
	switch {
	case err != nil:
		f.commands.park(ctx, ReasonStepFailed, err)
	case p.open:
		f.order.Detail = exchange.WaitPayment
		if s.State == exchange.Unknown {
			f.order.Detail = exchange.WaitOutcome
		}
		f.commands.unpark(ctx, WaitsForPayer)
		f.showWait(ctx, "the payer", f.order.ExpiresAt)
	default:
		f.turnedDown(ctx, s)
	}
}

// turnedDown handles a prompt that the operator did not accept, so that it can't be paid.
func (f *onRamp) turnedDown(ctx workflow.Context, s activities.Submitted) {
	f.order.Detail = exchange.WaitRetry
	f.showWait(ctx, "the customer, who may ask for another prompt", f.order.ExpiresAt)
	switch {
	case s.Transient && f.repeats < maxRepeats && len(f.prompts) < maxPrompts:
		f.repeats++
		f.repeatAt = workflow.Now(ctx).Add(repeatPause)
	case s.Config:
		f.commands.park(ctx, ReasonPromptRefused, refuse(exchange.CodeUnavailable, "the mobile money operator's code is "+s.Code))
	}
}

// applyCallbacks checks the prompts that the stored callbacks are about.
func (f *onRamp) applyCallbacks(ctx workflow.Context) {
	refs := f.callbacks
	f.callbacks = nil
	done := map[uuid.UUID]bool{}
	for _, ref := range refs {
		for _, p := range f.prompts {
			if (ref.AttemptID != uuid.Nil && ref.AttemptID != p.id) || done[p.id] || !f.pending() {
				continue
			}
			done[p.id] = true
			f.look(ctx, p, false)
		}
	}
}

// look checks the outcome of a prompt and acts on it.
func (f *onRamp) look(ctx workflow.Context, p *prompt, thorough bool) {
	f.examine(ctx, p, activities.ConfirmInput{AttemptID: p.id, Thorough: thorough})
}

func (f *onRamp) examine(ctx workflow.Context, p *prompt, in activities.ConfirmInput) {
	p.asked++
	p.next = f.nextLook(ctx, p)
	c, err := step(ctx, look, "Check whether the order is paid", momo.ConfirmPayment, in)
	if err != nil {
		f.unseen(ctx, p, err)
		return
	}
	p.state = c.State
	f.order.Detail = c.Order.Detail
	if f.commands.reason == ReasonStepFailed {
		f.commands.unpark(ctx, WaitsForMomo)
	}
	switch c.State {
	case activities.PaymentPaid:
		f.paid(ctx, p, c)
	case activities.PaymentDeclined:
		f.lost(p, c.Soft)
		if p == f.prompts[len(f.prompts)-1] {
			f.close(ctx, exchange.OrderFailed, exchange.DetailDeclined, activities.Behalf{})
		}
	case activities.PaymentFailed:
		wasOpen := p.open
		f.lost(p, c.Soft)
		if wasOpen && !f.expired(workflow.Now(ctx)) {
			f.mark(ctx, exchange.WaitRetry)
			f.commands.unpark(ctx, WaitsForPayer)
			f.showWait(ctx, "the customer, who may ask for another prompt", f.order.ExpiresAt)
		}
	default: // nothing is decided: looked at again later
	}
}

// paid takes over the result of the booked payment.
func (f *onRamp) paid(ctx workflow.Context, p *prompt, c activities.Confirmed) {
	p.open = false
	f.payment, f.order.OrderState = c, c.Order
	if c.RefundID != uuid.Nil && !slices.Contains(f.owed, c.RefundID) {
		f.owed = append(f.owed, c.RefundID)
	}
	f.commands.unpark(ctx, WaitsForChain)
}

// unseen handles a failed check. A prompt without a row was never sent, because the row is written first.
func (f *onRamp) unseen(ctx workflow.Context, p *prompt, err error) {
	e, ok := asApplication(err)
	switch {
	case passing(err):
	case ok && p.unsure && e.Type() == string(exchange.CodeNotFound):
		p.open = false
		f.mark(ctx, exchange.WaitRetry)
		f.commands.unpark(ctx, WaitsForPayer)
	default:
		f.commands.park(ctx, ReasonStepFailed, err)
	}
}

func (f *onRamp) lost(p *prompt, soft bool) {
	p.open, p.soft = false, soft
}

func (f *onRamp) nextLook(ctx workflow.Context, p *prompt) time.Time {
	return nextLook(ctx, p, f.commands.reason != "")
}

// nextLook returns the time of the next check of a prompt: soon at first, then later.
func nextLook(ctx workflow.Context, p *prompt, parked bool) time.Time {
	now := workflow.Now(ctx)
	for _, after := range quickLooks {
		if at := p.since.Add(after); at.After(now) {
			return at
		}
	}
	if parked {
		return now.Add(slower(ctx, parkedLook, p.since))
	}
	return now.Add(slowLook)
}

// outlive handles the order's expiry while the outcome of a prompt is open.
func (f *onRamp) outlive(ctx workflow.Context, p *prompt) {
	f.look(ctx, p, true)
	if !f.pending() || f.current() == nil {
		return
	}
	f.overdue = true
	f.giveUpAt = workflow.Now(ctx).Add(unknownLimit)
	if f.order.Detail != exchange.WaitReceipt {
		f.mark(ctx, exchange.WaitOutcome)
	}
	show(ctx, AttrWaitingFor.ValueSet(WaitsForMomo), AttrDeadline.ValueSet(f.giveUpAt))
	f.showWait(ctx, "the mobile money operator, for the outcome of the last prompt", f.giveUpAt)
}

// giveUp parks the flow because the outcome of a prompt stays unknown. The checks go on.
func (f *onRamp) giveUp(ctx workflow.Context, p *prompt) {
	f.giveUpAt = time.Time{}
	f.commands.park(ctx, openReason(p.state), nil)
	f.mark(ctx, exchange.WaitOperator)
}

// openReason returns the park reason for a payment that is not proven.
func openReason(s activities.PaymentState) Reason {
	switch s {
	case activities.PaymentReceipt:
		return ReasonReceiptMissing
	case activities.PaymentClaimed:
		return ReasonOneSource
	case activities.PaymentDisputed:
		return ReasonDisagree
	default: // no source reports a payment
	}
	return ReasonOutcomeUnknown
}

// claimed reports whether a source says that the prompt was paid.
func claimed(s activities.PaymentState) bool { return openReason(s) != ReasonOutcomeUnknown }

// decide applies an operator's decision while the order is not paid.
func (f *onRamp) decide(ctx workflow.Context, d decision) {
	reason := f.commands.reason
	current := f.current()
	f.commands.unpark(ctx, WaitsForMomo)
	switch {
	case d.verb == activities.VerbResolve:
		f.settle(ctx, d, current)
	case reason == ReasonPromptRefused && current == nil && len(f.prompts) < maxPrompts:
		f.prompt(ctx)
	case current != nil && current.unsure:
		f.submit(ctx, len(f.prompts))
	case current != nil:
		f.look(ctx, current, true)
		if f.pending() && f.overdue && f.current() != nil {
			f.giveUpAt = workflow.Now(ctx).Add(slowLook)
		}
	}
}

// settle applies the decision of an operator who looked the prompt up. The receipt in the note is the second source of a
// payment. If no source says that the order was paid, it ends; if money appears later, the watch over the prompt makes it an
// exception.
func (f *onRamp) settle(ctx workflow.Context, d decision, current *prompt) {
	if current != nil {
		f.examine(ctx, current, activities.ConfirmInput{AttemptID: current.id, Thorough: true, Attestation: d.proof})
		if !f.pending() {
			return
		}
		if claimed(current.state) {
			f.commands.park(ctx, openReason(current.state), nil)
			return
		}
	}
	f.close(ctx, exchange.OrderCancelled, exchange.DetailExpired, d.proof.Behalf())
}

// cancelled cancels the order as the customer asked, unless a last check finds that it is paid or that a source reports a
// payment.
func (f *onRamp) cancelled(ctx workflow.Context) {
	asked := activities.Behalf{IntentID: f.cancel.intent}
	if p := f.current(); p != nil {
		f.look(ctx, p, false)
		switch {
		case !f.pending():
			f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "The order can't be cancelled any more."))
			return
		case claimed(p.state):
			f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "The payment is being confirmed, so the order can't be cancelled any more."))
			return
		}
	}
	f.close(ctx, exchange.OrderCancelled, exchange.DetailCancelled, asked)
	if f.order.Status != exchange.OrderCancelled {
		f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "The order can't be cancelled any more."))
		return
	}
	f.answer(&f.cancel, nil)
}

// again sends another prompt at the customer's request.
func (f *onRamp) again(ctx workflow.Context) {
	switch {
	case f.expired(workflow.Now(ctx)):
		f.answer(&f.retry, refuse(exchange.CodeExpired, "The order has expired."))
		return
	case f.current() != nil || !f.repeatAt.IsZero():
		f.answer(&f.retry, refuse(exchange.CodeStateConflict, "The last prompt is still open."))
		return
	case len(f.prompts) >= maxPrompts:
		f.answer(&f.retry, refuse(exchange.CodeStateConflict, "The order has reached its limit of prompts."))
		return
	}
	f.prompt(ctx)
	f.answer(&f.retry, nil)
}

// close ends an unpaid order. If an earlier check booked a payment but its response was lost, the order goes on as paid.
func (f *onRamp) close(ctx workflow.Context, to exchange.OrderStatus, detail string, asked activities.Behalf) {
	in := activities.CloseOrderInput{OrderID: f.order.OrderID, To: to, Detail: detail, Behalf: asked}
	f.must(ctx, "Close the order", func() error {
		state, err := step(ctx, database, "Close the order: "+detail, orders.CloseOrder, in)
		if err == nil {
			f.order.OrderState = state
		}
		elsewhere := isConflict(err) || (err == nil && f.order.Detail != detail) // it ended for another reason
		if elsewhere && f.recall(ctx) {
			return nil
		}
		return err
	})
	f.commands.unpark(ctx, WaitsForNothing)
}

// recall finds a payment of the order that was booked but whose response was lost.
func (f *onRamp) recall(ctx workflow.Context) bool {
	for _, p := range f.prompts {
		in := activities.ConfirmInput{AttemptID: p.id}
		c, err := step(ctx, look, "Check which payment paid the order", momo.ConfirmPayment, in)
		if err == nil && c.State == activities.PaymentPaid && c.Order.Status != exchange.OrderPending {
			f.paid(ctx, p, c)
			return true
		}
	}
	return false
}

// wait waits until something is due or a message comes.
func (f *onRamp) wait(ctx workflow.Context, now time.Time, current *prompt) {
	at, what := f.order.ExpiresAt, "The order expires"
	if f.overdue {
		at, what = time.Time{}, ""
	}
	sooner := func(t time.Time, s string) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at, what = t, s
		}
	}
	sooner(f.repeatAt, "Prompt again")
	sooner(f.giveUpAt, "Park the flow for an operator")
	if current != nil {
		sooner(current.next, "Ask the mobile money operator for the outcome of the prompt")
	}
	await(ctx, at.Sub(now), what, func() bool {
		return len(f.callbacks) > 0 || f.cancel != nil || f.retry != nil || f.commands.hasDecision()
	})
}
