package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// Limits of paying an order or a refund out.
const (
	busyPause      = 5 * time.Minute // after the operator was busy
	maxBusy        = 3               // payouts that are repeated without an operator
	floatPause     = 5 * time.Minute // between checks whether there is enough float
	floatQuestions = 30 * time.Minute
	trialPause     = 2 * time.Minute // how long a payout on trial delays the next one
)

// momoTries pays out an order, a refund or a withdrawal for the flow that owes it. The next payout is made only after the previous one
// was definitely refused, so that no two can pay. A payout whose outcome does not show soon gets a child.
type momoTries struct {
	*flow
	in    MomoPayoutInput // of the next try
	child child
	owed  func() bool // reports whether the object is still to be paid
	card  func(waits string, until time.Time) card
	// refund carries out an operator's refund: it returns the crypto of an order, and confirms the payee of a refund. It is nil where no
	// reason takes that command.
	refund func(ctx workflow.Context, proof activities.Proof, why string) error
	// own decides how to go on after results that only some objects have, and reports whether it did; nil when there are none.
	own func(ctx workflow.Context, r MomoPayoutResult) bool

	direct  bool      // the payout is being made without a child
	attempt uuid.UUID // the payout that is, or was, made
	woken   bool      // a callback about it came
	running bool      // a child runs, which takes commands and callbacks
	rests   string    // what the next try waits for while no child runs and the flow takes a retry; empty otherwise
	again   bool      // an operator ended that rest
	busy    int       // tries that were repeated because the operator was busy
	short   time.Time // since when the float is too small; zero while it is not
	frozen  time.Time // since when outgoing payments are frozen; zero while they are not
	claimed time.Time // since when a source reports that a refused payout was made; zero while no source does
	full    bool      // the last try failed at the payee's daily limit
}

// run reports whether the object was paid: by a payout, or by a receipt that an operator found. Otherwise the object is no longer to be paid.
func (p *momoTries) run(ctx workflow.Context) bool {
	p.commands.pass, p.payout = p.pass, p // which stays, for late callbacks
	defer func() { p.commands.pass = nil }()
	for p.owed() {
		p.floated = false // a signal from here on may be about float that this try did not see
		result, err := p.pay(ctx)
		switch {
		case err != nil:
			p.park(ctx, MomoPayoutResult{Reason: string(ReasonStepFailed)}, err)
		case result.Completed:
			p.commands.unpark(ctx, WaitsForNothing)
			return true
		default:
			p.unpaid(ctx, result)
		}
	}
	return false
}

// pay makes one payout.
func (p *momoTries) pay(ctx workflow.Context) (result MomoPayoutResult, err error) {
	if p.commands.reason == "" {
		p.commands.describe(ctx, p.card("the mobile money operator", time.Time{}))
	}
	p.child.resumed = &p.resumed
	waiting(p.until).beside(ctx, "payout", func(ctx workflow.Context) {
		s, known, trouble := p.directly(ctx)
		if known || trouble != nil {
			result, err = payoutResult(payoutReasons[p.in.Object.Type], s), trouble
			return
		}
		result, err = runWatched(ctx, p.child, MomoPayout, p.in, patiently, func(running bool) { p.running = running })
	})
	return result, err
}

// directly makes one payout without a child, which costs half the events, and reports whether its outcome is known. A payout of which
// the operator says nothing in time, or something that contradicts itself, or whose check fails, goes on in the child: it finds the
// attempt in the rows.
func (p *momoTries) directly(ctx workflow.Context) (activities.PayoutStep, bool, error) {
	p.attempt, p.direct, p.woken, p.in.Asked = activities.PayoutID(p.in.Object.ID, p.in.Try), true, false, time.Time{}
	defer func() { p.direct = false }()
	s, err := p.in.submit(ctx, rail.ranked(p.child.priority))
	if err != nil {
		return s, false, err
	}
	p.attempt = s.AttemptID
	known := p.outcome(ctx, &s)
	if p.woken && s.State == activities.PayoutRefused { // the callback came while the step ran that found this
		p.checkLate(ctx, s.AttemptID)
	}
	return s, known, nil
}

// outcome looks for the outcome of a payout: after each callback, or once after a while. It asks the operator the first time.
func (p *momoTries) outcome(ctx workflow.Context, s *activities.PayoutStep) bool {
	for looks := 0; isOpen(s.State); looks++ {
		if looks == payoutQuestions {
			return false
		}
		await(ctx, payoutLookPause, payoutLook, func() bool { return p.woken })
		if !p.woken && looks > 0 {
			return false
		}
		p.woken = false
		if looks == 0 {
			p.in.Asked = workflow.Now(ctx)
		}
		now, err := checkPayout(ctx, look.ranked(p.child.priority), *s, looks == 0, 1)
		if err != nil {
			return false
		}
		*s = now
	}
	return s.State != activities.PayoutDisputed
}

// unpaid decides how to go on after a try that paid nothing.
func (p *momoTries) unpaid(ctx workflow.Context, r MomoPayoutResult) {
	short := r.Class == exchange.ClassFloat
	if r.Refused {
		p.in.Try = max(p.in.Try, r.Try) + 1
	}
	p.short, p.claimed = since(ctx, p.short, short), since(ctx, p.claimed, p.isClaim(r))
	p.frozen = since(ctx, p.frozen, r.Class == exchange.ClassFrozen)
	full := r.Class == exchange.ClassPayeeDay && !p.full
	p.full = full
	switch {
	case r.Class == exchange.ClassOverdue: // nothing was sent: the next try has a time of its own
	case p.own != nil && p.own(ctx, r):
	case full:
		p.awaitDay(ctx)
	case r.Refused && r.Class == exchange.ClassBusy && p.busy < maxBusy:
		p.busy++
		p.rest(ctx, busyPause, "Pay again", "the mobile money operator, which was busy", never)
	case short:
		p.awaitFloat(ctx)
	case r.Class == exchange.ClassFrozen:
		p.note(ctx, exchange.WaitFrozen)
		p.rest(ctx, slower(ctx, trialPause, p.frozen), "Check whether the freeze was lifted", "two officers to lift the freeze of all outgoing payments", never)
	case r.Class == exchange.ClassTrial:
		p.note(ctx, exchange.WaitSuspended)
		p.rest(ctx, trialPause, "Check whether the payout on trial was accepted", "another payout, on trial after our credential was refused", p.moreFloat)
	default:
		p.park(ctx, r, nil)
	}
}

// isClaim reports whether nothing was sent because a source reports a refused payout as made.
func (p *momoTries) isClaim(r MomoPayoutResult) bool {
	return Reason(r.Reason) == payoutReasons[p.in.Object.Type][activities.PayoutClaimed]
}

// since returns the start of a state: now when it begins, zero while it does not hold.
func since(ctx workflow.Context, before time.Time, holds bool) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case before.IsZero():
		return workflow.Now(ctx)
	}
	return before
}

// park waits for an operator's decision and carries it out; one that can't be carried out parks the flow again. A payout
// that waits for our credential, or for the database's release, also goes on after a signal that payouts resume, and one that a source claims to be
// made is checked from time to time, because the check of late evidence does not notify this flow.
func (p *momoTries) park(ctx workflow.Context, r MomoPayoutResult, cause error) {
	reason, detail := Reason(r.Reason), exchange.WaitOperator
	suspended := r.Class == exchange.ClassCredential || r.Class == exchange.ClassDatabase
	if suspended && !r.Refused {
		detail = exchange.WaitSuspended
	}
	woken := func() bool {
		return p.commands.hasDecision() || (p.floated && suspended)
	}
	for {
		p.commands.park(ctx, reason, cause)
		p.note(ctx, detail)
		if p.isClaim(r) {
			waiting(p.until).pause(ctx, slower(ctx, refundGlance, p.claimed), "Check whether the claim is settled", woken)
		} else {
			p.until(ctx, woken)
		}
		if !p.commands.hasDecision() {
			break
		}
		if cause = p.apply(ctx, reason, p.commands.take()); cause == nil {
			break
		}
	}
	p.commands.unpark(ctx, WaitsForMomo)
}

// apply carries out an operator's decision. The try after a receipt finds the object paid.
func (p *momoTries) apply(ctx workflow.Context, reason Reason, d decision) error {
	switch d.verb {
	case activities.VerbRefund:
		return p.refund(ctx, d.proof, string(reason))
	case activities.VerbResolve:
		return p.settle(ctx, d.proof, reason == payoutReasons[p.in.Object.Type][activities.PayoutSuspended])
	}
	return nil
}

// settle completes the object by the receipt of a payout, or of a payment by other means. It names no attempt: the flow may
// have been started again, and then doesn't know which one was the last. A lost payout has none: it was made before the database
// was put back.
func (p *momoTries) settle(ctx workflow.Context, proof activities.Proof, lost bool) error {
	in := activities.SettlePayoutInput{Object: p.in.Object, Proof: proof, Lost: lost}
	err := do(ctx, rail, "Settle the payout", payouts.SettlePayout, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the payout could not be settled", "error", err)
	}
	return err
}

// awaitFloat waits until there may be enough float, and parks the flow after a while.
func (p *momoTries) awaitFloat(ctx workflow.Context) {
	p.note(ctx, exchange.WaitFloat)
	if workflow.Now(ctx).Sub(p.short) >= floatQuestions {
		p.commands.park(ctx, payoutReasons[p.in.Object.Type][activities.PayoutFloatShort], nil)
	}
	p.rest(ctx, slower(ctx, floatPause, p.short), "Check whether there is enough float", "more float", p.moreFloat)
}

// eastAfrica is the operator's offset from UTC; there is no daylight saving time.
const eastAfrica = 3 * time.Hour

// nextDay is one minute past the start of the operator's next day: the database's clock may be slow, and at midnight it
// would count another payout for the day before.
func nextDay(now time.Time) time.Time {
	return now.Add(eastAfrica).Truncate(24 * time.Hour).Add(24*time.Hour + time.Minute - eastAfrica)
}

// awaitDay waits for the operator's next day, when the payee's daily limit starts again. If the limit refuses that payout
// too, the flow parks.
func (p *momoTries) awaitDay(ctx workflow.Context) {
	p.note(ctx, exchange.WaitPayeeDay)
	now := workflow.Now(ctx)
	p.rest(ctx, nextDay(now).Sub(now), "Wait for the operator's next day", "the next day: the mobile money operator's daily limit for this payee is reached", never)
	if p.again {
		p.full = false // the day has not passed, so the limit may refuse once more
	}
}

// rest shows what the flow waits for, and waits for a time, until ready, or until an operator's retry. Only a flow that lacks
// float may be parked meanwhile.
func (p *momoTries) rest(ctx workflow.Context, d time.Duration, summary, waits string, ready func() bool) {
	if p.short.IsZero() {
		p.commands.unpark(ctx, WaitsForMomo)
	}
	if p.commands.reason == "" {
		p.commands.describe(ctx, p.card(waits, workflow.Now(ctx).Add(d)))
	}
	p.rests, p.again = waits, false
	waiting(p.until).pause(ctx, d, summary, func() bool { return ready() || p.again || p.commands.hasDecision() })
	p.rests = ""
	if p.commands.hasDecision() { // a retry
		p.commands.take()
		p.commands.unpark(ctx, WaitsForMomo)
	}
}

func never() bool { return false }

func (p *momoTries) moreFloat() bool { return p.floated }

// pass forwards an operator's command to the child. Between two tries there is none, and a retry ends the wait.
func (p *momoTries) pass(ctx workflow.Context, name string, ref CommandRef) error {
	switch {
	case p.rests != "" && name == activities.VerbRetry:
		p.again = true
		return nil
	case p.rests != "":
		return refuse(exchange.CodeStateConflict, "The payout accepts only a retry. It waits for "+p.rests+".")
	case p.direct:
		return refuse(exchange.CodeStateConflict, "The payout has just been sent. Repeat the command when its flow is parked.")
	case !p.running:
		return refuse(exchange.CodeStateConflict, "The payout is not being made now.")
	}
	return workflow.SignalExternalWorkflow(ctx, p.child.id, "", name, ref).Get(ctx, nil)
}

// wake hands a callback on to where the payout is made. One about another payout of the object, or that comes while none is made, gets a
// check of its own: the operator may say that a payout was made after it was refused.
func (p *momoTries) wake(ctx workflow.Context, ref CallbackRef) {
	mine := ref.AttemptID == p.attempt || ref.AttemptID == uuid.Nil
	if p.direct && mine {
		p.woken = true
		return
	}
	if p.running {
		err := workflow.SignalExternalWorkflow(ctx, p.child.id, "", SignalCallback, ref).Get(ctx, nil)
		if err == nil {
			return
		}
		workflow.GetLogger(ctx).Warn("a callback could not be forwarded to the child flow", "error", err)
	}
	if ref.AttemptID != uuid.Nil {
		p.checkLate(ctx, ref.AttemptID)
	}
}

// checkLate starts the check of late evidence about a payout, unless it runs.
func (p *momoTries) checkLate(ctx workflow.Context, attempt uuid.UUID) {
	of := p.in.Object
	in := LatePayoutInput{AttemptID: attempt, RefundID: of.RefundID(), OrderID: p.in.OrderID, WithdrawalID: of.WithdrawalID()}
	c := child{id: LatePayoutID(attempt), summary: LatePayoutSummary, shown: LatePayoutAttributes()}
	if _, err := start(ctx, c, LatePayout, in); err != nil {
		workflow.GetLogger(ctx).Error("a check of late evidence could not be started", "attempt", attempt, "error", err)
	}
}
