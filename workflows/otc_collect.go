package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// otcCollection is what the flow of a deposit knows of its mobile money.
type otcCollection struct {
	prompts   []*prompt     // every prompt that was made, in order, or the wait for a payment by hand
	callbacks []CallbackRef // that are not handled yet
	joined    bool          // what an earlier run of the flow did is known
	byHand    bool          // nobody is prompted
	repeats   int
	repeatAt  time.Time // when to repeat a prompt after a temporary refusal
	overdue   bool      // its time ended while the outcome of a prompt was open
	giveUpAt  time.Time
	lapseAt   time.Time // when to end it by time again; zero for the first time
	paidBy    uuid.UUID // the attempt that brought the money
	credited  bool      // the database was asked to credit it
	named     int64     // the version of the deposit whose named payment the database was asked to take
	left      bool      // what may still come is watched elsewhere
}

// credit has the shillings credited that needed no officer. If the limit is lower by now, an officer settles them.
func (f *otcDeposit) credit(ctx workflow.Context) {
	f.paying.credited = true
	f.learn(ctx, mustStep(ctx, &f.flow, database, "Credit the shillings", otc.CreditOTC, f.named()))
}

// takeNamed has the payment booked that officers named. It stays where it is while another officer has to agree.
func (f *otcDeposit) takeNamed(ctx workflow.Context) {
	f.paying.named = f.row.Version
	f.learn(ctx, mustStep(ctx, &f.flow, rail, "Take the payment that was named", momo.TakeNamed, f.named()))
}

// current returns the prompt whose outcome the deposit waits for, nil if there is none.
func (c *otcCollection) current() *prompt {
	if n := len(c.prompts); n > 0 && c.prompts[n-1].open {
		return c.prompts[n-1]
	}
	return nil
}

// collect does the next thing on the way to the deposit's mobile money, or waits for it. A callback only wakes it; what counts is the
// result of ConfirmPayment. Time ends the wait, but never while a payment may be on its way.
func (f *otcDeposit) collect(ctx workflow.Context) {
	p := &f.paying
	f.rejoin(ctx)
	now := workflow.Now(ctx)
	current, over := p.current(), !now.Before(f.row.Expires)
	switch {
	case f.row.Collects == "": // found by rejoining
	case f.commands.hasDecision():
		f.decide(ctx, f.commands.take())
	case len(p.callbacks) > 0:
		f.applyCallbacks(ctx)
	case len(p.prompts) == 0 && !over, due(p.repeatAt, now) && !over:
		f.ask(ctx)
	case current != nil && due(current.next, now):
		f.look(ctx, current, over || current.asked >= len(quickLooks))
	case over && current != nil && !p.byHand && !p.overdue:
		f.outlive(ctx, current)
	case due(p.giveUpAt, now) && current != nil:
		p.giveUpAt = time.Time{}
		f.commands.park(ctx, ReasonDepositOutcome, nil)
	case due(f.lapsesAt(), now):
		f.lapse(ctx, current)
	default:
		f.awaitMoney(ctx, now, current)
	}
}

// rejoin finds what an earlier run of the flow did: it was terminated, or reset to its beginning. What the deposit waits for does not tell
// whether there are prompts: a refused one may have been repeated since. The wait for a payment by hand is asked for by the same row again.
func (f *otcDeposit) rejoin(ctx workflow.Context) {
	p := &f.paying
	if p.joined {
		return
	}
	p.joined, p.byHand = true, f.row.Collects == exchange.OTCByC2B
	if p.byHand {
		return
	}
	repeats, refused := f.row.Detail == exchange.WaitPrompt, false
	before := mustStep(ctx, &f.flow, database, "Find the prompts of an earlier run", otc.Prompts, f.named())
	for n := 1; n <= before.Prompts; n++ {
		p.prompts = append(p.prompts, &prompt{id: activities.CollectionID(f.depositID, n), open: true, since: workflow.Now(ctx)})
		f.submit(ctx, n) // which sends nothing again
		refused = !p.prompts[n-1].open
		f.look(ctx, p.prompts[n-1], false)
	}
	if repeats && refused && before.Prompts < maxPrompts {
		p.repeatAt = workflow.Now(ctx).Add(repeatPause) // for which the earlier run waited
	}
}

// ask prompts the merchant, or waits for it to pay by hand. That the operator accepted a prompt does not mean that it was paid.
func (f *otcDeposit) ask(ctx workflow.Context) {
	p := &f.paying
	n := len(p.prompts) + 1
	p.prompts = append(p.prompts, &prompt{id: activities.CollectionID(f.depositID, n), open: true})
	p.repeatAt, p.named = time.Time{}, 0 // a payment that was named before is booked on what is asked for now
	if !p.byHand {
		f.submit(ctx, n)
		return
	}
	in := activities.PromptInput{Object: exchange.DepositObject(f.depositID), N: n, Home: f.id}
	f.must(ctx, "Wait for the payment", func() error {
		_, err := step(ctx, rail, "Wait for the payment by hand", momo.AwaitPayer, in)
		if isConflict(err) { // the deposit takes no money any more
			return nil
		}
		return err
	})
	f.look(ctx, p.prompts[n-1], false) // it may have been paid before
}

// submit runs the step that sends a prompt. After an unexpected failure the prompt may still be on the phone, so it counts as open; the
// step itself never sends a prompt twice.
func (f *otcDeposit) submit(ctx workflow.Context, n int) {
	p := f.paying.prompts[n-1]
	in := activities.PromptInput{Object: exchange.DepositObject(f.depositID), N: n, Home: f.id, Until: f.row.Expires}
	s, err := step(ctx, rail, "Prompt the merchant", momo.PromptPayer, in)
	p.since = workflow.Now(ctx)
	p.open, p.unsure = err != nil || s.State != exchange.Refused, err != nil
	p.next = p.since.Add(quickLooks[0])
	switch {
	case err != nil:
		f.commands.park(ctx, ReasonStepFailed, err)
		return
	case !p.open && s.Transient && f.paying.repeats < maxRepeats && n < maxPrompts:
		f.paying.repeats++
		f.paying.repeatAt = p.since.Add(repeatPause)
	case !p.open && s.Config:
		f.commands.park(ctx, ReasonPromptRefused, refuse(exchange.CodeUnavailable, "the mobile money operator's code is "+s.Code))
		return
	case p.open:
		f.commands.unpark(ctx, WaitsForPayer)
	}
	f.refresh(ctx)
}

// refresh reads the deposit as it is.
func (f *otcDeposit) refresh(ctx workflow.Context) {
	f.learn(ctx, mustStep(ctx, &f.flow, database, "Read the deposit", otc.LapseOTC, f.named()))
}

// applyCallbacks checks the attempts that the stored callbacks are about.
func (f *otcDeposit) applyCallbacks(ctx workflow.Context) {
	refs := f.paying.callbacks
	f.paying.callbacks = nil
	done := map[uuid.UUID]bool{}
	for _, ref := range refs {
		for _, p := range f.paying.prompts {
			if (ref.AttemptID == uuid.Nil || ref.AttemptID == p.id) && !done[p.id] && f.row.Collects != "" {
				done[p.id] = true
				f.look(ctx, p, false)
			}
		}
	}
}

// look checks whether a prompt, or a payment by hand, is paid.
func (f *otcDeposit) look(ctx workflow.Context, p *prompt, thorough bool) {
	p.asked++
	p.next = f.nextLook(ctx, p)
	in := activities.ConfirmInput{AttemptID: p.id, Thorough: thorough}
	c, err := step(ctx, look, "Check whether the deposit is paid", momo.ConfirmPayment, in)
	if err != nil {
		e, ok := asApplication(err)
		switch {
		case passing(err):
		case ok && e.Type() == string(exchange.CodeNotFound): // a prompt without a row was never sent, because the row is written first
			p.open = false
		default:
			f.commands.park(ctx, ReasonStepFailed, err)
		}
		return
	}
	p.state = c.State
	if f.commands.reason == ReasonStepFailed {
		f.commands.unpark(ctx, WaitsForMomo)
	}
	switch c.State {
	case activities.PaymentPaid:
		p.open, f.paying.paidBy = false, p.id
		f.commands.unpark(ctx, WaitsForNothing)
	case activities.PaymentDeclined, activities.PaymentFailed:
		p.open, p.soft = f.paying.byHand, c.Soft // who pays by hand may do so until the end
	default: // nothing is decided: looked at again later
		return
	}
	f.refresh(ctx)
}

// nextLook returns the time of the next check: soon at first, then later. A payment by hand is found by its notice, or in the operator's
// statement, which wake the flow.
func (f *otcDeposit) nextLook(ctx workflow.Context, p *prompt) time.Time {
	if f.paying.byHand {
		return time.Time{}
	}
	return nextLook(ctx, p, f.commands.reason != "")
}

// outlive handles the end of the deposit's time while the outcome of a prompt is open.
func (f *otcDeposit) outlive(ctx workflow.Context, p *prompt) {
	f.paying.overdue = true
	f.paying.giveUpAt = workflow.Now(ctx).Add(unknownLimit)
	f.look(ctx, p, true)
}

// lapsesAt is when something ends by time: a claim, or the deposit. While a payment may be on its way, the end is tried again later.
func (f *otcDeposit) lapsesAt() time.Time {
	if f.paying.lapseAt.After(f.row.Due) {
		return f.paying.lapseAt
	}
	return f.row.Due
}

func (f *otcDeposit) lapse(ctx workflow.Context, current *prompt) {
	if f.paying.byHand && current != nil && workflow.Now(ctx).After(f.row.Expires) {
		if f.look(ctx, current, true); f.row.Collects == "" {
			return
		}
	}
	was := f.row.Version
	f.learn(ctx, mustStep(ctx, &f.flow, database, "End what is over by time", otc.LapseOTC, f.named()))
	if f.paying.lapseAt = (time.Time{}); f.row.Version == was {
		f.paying.lapseAt = workflow.Now(ctx).Add(slower(ctx, slowLook, f.row.Expires))
	}
}

// decide applies an operator's decision while the deposit is not paid.
func (f *otcDeposit) decide(ctx workflow.Context, _ decision) {
	p, reason := &f.paying, f.commands.reason
	current := p.current()
	f.commands.unpark(ctx, WaitsForMomo)
	switch {
	case reason == ReasonPromptRefused && current == nil && len(p.prompts) < maxPrompts && workflow.Now(ctx).Before(f.row.Expires):
		f.ask(ctx)
	case current != nil && current.unsure && !p.byHand:
		f.submit(ctx, len(p.prompts))
	case current != nil:
		f.look(ctx, current, true)
		if p.overdue && f.row.Collects != "" {
			p.giveUpAt = workflow.Now(ctx).Add(slowLook)
		}
	}
}

// awaitMoney waits until something is due or a message comes.
func (f *otcDeposit) awaitMoney(ctx workflow.Context, now time.Time, current *prompt) {
	was := f.row.Version
	var at time.Time
	what := ""
	sooner := func(t time.Time, s string) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at, what = t, s
		}
	}
	if !now.Before(f.row.Expires) || f.paying.byHand || current == nil {
		sooner(f.lapsesAt(), "Wait for people, or for the time")
	} else {
		sooner(f.row.Expires, "The deposit expires")
	}
	sooner(f.paying.repeatAt, "Prompt again")
	sooner(f.paying.giveUpAt, "Park the flow for an operator")
	if current != nil {
		sooner(current.next, "Ask the mobile money operator for the outcome of the prompt")
	}
	changed := func() bool {
		return f.row.Version != was || len(f.paying.callbacks) > 0 || f.commands.hasDecision() || f.long(ctx)
	}
	if at.IsZero() {
		patiently(ctx, changed)
		return
	}
	await(ctx, max(at.Sub(now), 0)+dueMargin, what, changed)
}

// leave has watched what may still bring money, now that the deposit takes none: other prompts, and payments by hand.
func (f *otcDeposit) leave(ctx workflow.Context) {
	c := &f.paying
	if !c.left && len(c.prompts) > 0 {
		c.left = true
		for _, p := range c.prompts {
			if p.id != c.paidBy && (p.open || p.soft) && !c.byHand {
				f.watch(ctx, p.id)
			}
		}
		if c.byHand && c.paidBy == uuid.Nil {
			in := activities.StopInput{Object: exchange.DepositObject(f.depositID)}
			f.must(ctx, "Wait no longer", func() error { return do(ctx, rail, "Wait for no payment by hand any more", momo.StopAwaiting, in) })
		}
	}
	refs := c.callbacks
	c.callbacks = nil
	for _, ref := range refs {
		if ref.AttemptID != uuid.Nil && !f.paidBy(ctx, ref.AttemptID) {
			f.watch(ctx, ref.AttemptID)
		}
	}
}

// paidBy reports whether an attempt brought the deposit's money, which is never late. Its watch would wake this flow, which would watch it
// again. A run that was begun anew does not know it, nor does one whose officers named the payment.
func (f *otcDeposit) paidBy(ctx workflow.Context, attempt uuid.UUID) bool {
	c := &f.paying
	if attempt == c.paidBy {
		return true
	}
	now, err := step(ctx, look, "Check what the prompt brought", momo.ConfirmPayment, activities.ConfirmInput{AttemptID: attempt})
	if err != nil || now.State != activities.PaymentPaid || now.Exception != uuid.Nil {
		return false
	}
	c.paidBy = attempt
	return true
}

// watch starts the watch over an attempt that may bring late money; one that runs looks by itself.
func (f *otcDeposit) watch(ctx workflow.Context, attempt uuid.UUID) {
	startWatch(ctx, LatePaymentInput{AttemptID: attempt, Object: exchange.DepositObject(f.depositID)})
}
