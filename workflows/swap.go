package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Swap is the flow of a swap: collect what the owner gives, pay what the owner gets when that is final, and compare chain and ledger. A
// payout that can't be made goes back.
func Swap(ctx workflow.Context, in SwapInput) (SwapResult, error) {
	// Money is held, so a cancellation of the execution is ignored. Owners cancel swaps by the update "cancel".
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &swap{in: in}
	if err := f.handlers(ctx); err != nil {
		return SwapResult{}, err
	}
	return attended(ctx, f.commands, f.run)
}

// swap is the state of one swap. Its database row decides the next step, because people and the network change it meanwhile.
type swap struct {
	flow
	in     SwapInput
	swapID uuid.UUID
	row    activities.OpenedSwap
	again  time.Time // when an officer last had the payout tried again

	differed uint64 // the block at which chain and ledger were first seen to differ
}

// Pauses of swaps.
const (
	refundPause = 10 * time.Minute // until it is asked again whether a payout that stands still can be given up
	payoutGrace = 2 * time.Minute  // that a payout has at least, where its time was over before it began
	oddPause    = time.Minute      // until the row is read again that is not where its flow is
	syncPause   = 5 * time.Second  // until chain and ledger are compared again while a payment is on its way
	reviewPause = 10 * time.Minute // until a swap that needs a review is looked at again
)

func (f *swap) run(ctx workflow.Context) (SwapResult, error) {
	f.open(ctx)
	for f.refusal == nil && !f.over() {
		switch f.row.Status {
		case exchange.SwapReserved:
			f.begin(ctx)
		case exchange.SwapCollecting:
			f.collect(ctx)
		case exchange.SwapCollected, exchange.SwapPayingOut:
			f.payOut(ctx)
		case exchange.SwapSyncing:
			f.sync(ctx)
		case exchange.SwapReview:
			f.review(ctx)
		case exchange.SwapRefunding:
			f.refund(ctx)
		case exchange.SwapCompleted, exchange.SwapRefunded, exchange.SwapCancelled, exchange.SwapExpired, exchange.SwapFailed: // ended
		}
	}
	return f.finish(ctx)
}

func (f *swap) over() bool { return exchange.SwapMachine.Terminal(f.row.Status) }

func (f *swap) named() activities.SwapInput { return activities.SwapInput{SwapID: f.swapID} }

// open writes the swap and shows it.
func (f *swap) open(ctx workflow.Context) {
	f.row = open(ctx, &f.flow, "Open the swap", swaps.OpenSwap, activities.IntentInput{IntentID: f.in.IntentID}, nil)
	if f.refusal == nil {
		f.showState(ctx)
	}
}

// learn stores the swap's state unless it is older. Answers of two steps may come in any order.
func (f *swap) learn(ctx workflow.Context, s activities.SwapState) {
	newer := s.Version > f.row.Version
	if newer || s.Version == f.row.Version {
		f.row.SwapState = s
	}
	if newer {
		f.showState(ctx)
	}
}

// take stores the answer of a step as it is, because a database that was put back has an earlier row; but what people did during the step is newer.
func (f *swap) take(ctx workflow.Context, overtaken bool, s activities.SwapState) {
	if overtaken {
		f.learn(ctx, s)
		return
	}
	newer := s.Version != f.row.Version
	if f.row.SwapState = s; newer {
		f.showState(ctx)
	}
}

// look reads the row, which people and the network change without this flow.
func (f *swap) look(ctx workflow.Context) {
	overtaken := f.changed()
	s := mustStep(ctx, &f.flow, database, "Look at the swap", swaps.ReadSwap, f.named())
	f.take(ctx, overtaken(), s)
}

// lookAgain reads the row after a signal to do so, which comes when officers have changed it.
func (f *swap) lookAgain(ctx workflow.Context) {
	f.resumed = false
	f.look(ctx)
}

// changed reports whether the row is another one than now, once it is.
func (f *swap) changed() func() bool {
	was := f.row.Version
	return func() bool { return f.row.Version != was }
}

// begin has the first leg approved when officers and limits allow it, or waits for officers. What is not signed in time expires. When people
// did something meanwhile, the answer may be older, and the database is asked again.
func (f *swap) begin(ctx workflow.Context) {
	overtaken := f.changed()
	s := mustStep(ctx, &f.flow, database, "Approve the collection", swaps.CollectSwap, f.named())
	again := overtaken()
	f.take(ctx, again, s)
	switch {
	case again, f.row.Status != exchange.SwapReserved:
	case s.PaymentID != uuid.Nil:
		f.pay(ctx, f.collection(s.PaymentID), f.row.Expires, f.expire)
	default:
		changed := f.changed()
		waiting(f.until).pause(ctx, f.left(ctx, f.row.Expires), "Wait for officers until the reservation expires", changed)
		if !changed() {
			f.expire(ctx)
		}
	}
}

// left is the time until a moment, by the database's clock.
func (f *swap) left(ctx workflow.Context, until time.Time) time.Duration {
	return max(until.Sub(workflow.Now(ctx)), 0) + dueMargin
}

// expire ends the swap unless something is signed.
func (f *swap) expire(ctx workflow.Context) {
	if f.row.Status == exchange.SwapReserved {
		overtaken := f.changed()
		s := mustStep(ctx, &f.flow, database, "End the swap if nothing is signed", swaps.ExpireSwap, f.named())
		f.take(ctx, overtaken(), s)
	}
}

// collect carries out the first leg, of which something was signed. Only an operator gives it up then.
func (f *swap) collect(ctx workflow.Context) {
	s := mustStep(ctx, &f.flow, database, "Find the collection", swaps.CollectSwap, f.named())
	f.learn(ctx, s)
	if f.row.Status == exchange.SwapCollecting {
		f.pay(ctx, f.collection(s.PaymentID), time.Time{}, nil)
	}
}

// payOut has the second leg approved and carried out. One that stands still when its time is over goes back, if it can't happen any more.
func (f *swap) payOut(ctx workflow.Context) {
	s, err := step(ctx, database, "Approve the payout", swaps.PayOutSwap, f.named())
	if err != nil {
		f.troubled(ctx, leg{role: exchange.LegPayout}, ReasonStepFailed, err, f.payoutDue(), f.giveBack)
		return
	}
	if f.learn(ctx, s); f.row.Status == exchange.SwapCollected {
		f.puzzled(ctx)
		return
	}
	if f.owes(exchange.LegPayout) {
		f.pay(ctx, f.payment(exchange.LegPayout, s.PaymentID, f.row.To), f.payoutDue(), f.giveBack)
	}
}

// payoutDue is until when the second leg is waited for. An officer who has it tried again gives it as much time once more.
func (f *swap) payoutDue() time.Time {
	due := f.row.PayoutDue
	if again := f.again.Add(exchange.SwapPayoutPatience); !f.again.IsZero() && again.After(due) {
		return again
	}
	return due
}

// giveBack has what was collected go back, unless the second leg may still move money: then it is waited for further.
func (f *swap) giveBack(ctx workflow.Context) {
	s, err := step(ctx, database, "Give the payout up if it can't happen any more", swaps.RefundSwap, f.named())
	if err == nil {
		f.learn(ctx, s)
		return
	}
	if !isConflict(err) {
		workflow.GetLogger(ctx).Error("the swap could not be refunded", "error", err)
	}
	f.look(ctx)
}

// sync compares chain and ledger, until no payment on its way keeps them from being compared.
func (f *swap) sync(ctx workflow.Context) {
	began := workflow.Now(ctx)
	for f.row.Status == exchange.SwapSyncing {
		f.compare(ctx)
		if changed := f.changed(); f.row.Status == exchange.SwapSyncing {
			waiting(f.until).pause(ctx, slower(ctx, syncPause, began), "Wait until chain and ledger can be compared", changed)
		}
	}
}

// compare compares once. While the network can't be read, the wait of the caller repeats it.
func (f *swap) compare(ctx workflow.Context) {
	in := activities.SyncSwapInput{SwapID: f.swapID, Differed: f.differed}
	s, err := step(ctx, watch(f.row.Network), "Compare chain and ledger", syncing.SyncSwap, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("chain and ledger could not be compared", "error", err)
		f.look(ctx)
		return
	}
	f.differed = s.Differed
	f.learn(ctx, s.SwapState)
}

// review waits for officers. Balances that differ are compared again from time to time; a payout that stands still is only tried again by
// an officer, or goes back by two.
func (f *swap) review(ctx workflow.Context) {
	began := workflow.Now(ctx)
	for f.row.Status == exchange.SwapReview {
		reason := ReasonSwapStuck
		if f.row.Detail == exchange.DetailDiffers {
			reason = ReasonSwapDiffers
		}
		d, decided := f.attention(ctx, reason, nil, workflow.Now(ctx).Add(slower(ctx, reviewPause, began)))
		switch {
		case f.row.Status != exchange.SwapReview:
		case reason == ReasonSwapDiffers:
			f.compare(ctx)
		case decided:
			f.retryPayout(ctx, d.proof)
		default:
			f.look(ctx)
		}
	}
	f.commands.unpark(ctx, f.waitsFor())
}

// retryPayout has a payout go on that stands still, by an operator's command, and gives it as much time once more.
func (f *swap) retryPayout(ctx workflow.Context, proof activities.Proof) {
	s, err := step(ctx, database, "Let the payout go on", swaps.RetrySwapPayout, activities.SwapCommandInput{SwapID: f.swapID, Proof: proof})
	if err != nil {
		workflow.GetLogger(ctx).Error("the payout could not be tried again", "error", err)
		f.look(ctx)
		return
	}
	f.again = workflow.Now(ctx)
	f.learn(ctx, s)
}

// refund carries out the payment by which what was collected goes back.
func (f *swap) refund(ctx workflow.Context) {
	s := mustStep(ctx, &f.flow, database, "Approve the refund", swaps.RefundSwap, f.named())
	f.learn(ctx, s)
	if f.row.Status == exchange.SwapRefunding {
		f.pay(ctx, f.payment(exchange.LegRefund, s.PaymentID, f.row.From), time.Time{}, nil)
	}
}

// leg is a payment of the swap that is carried out.
type leg struct {
	role    exchange.SwapLegRole
	payment uuid.UUID
	amount  money.Amount
}

func (f *swap) collection(payment uuid.UUID) leg {
	return f.payment(exchange.LegCollect, payment, f.row.From)
}

func (f *swap) payment(role exchange.SwapLegRole, payment uuid.UUID, m money.Amount) leg {
	return leg{role, payment, m}
}

// legWords are what operators read of a leg.
var legWords = map[exchange.SwapLegRole]string{exchange.LegCollect: "Collect ", exchange.LegPayout: "Pay out ", exchange.LegRefund: "Give back "}

// pay has a leg carried out. The transaction of the database that completes it also moves the swap on. If a moment is given, late is called
// when it has passed and the leg is not at its end, and again from time to time.
func (f *swap) pay(ctx workflow.Context, l leg, due time.Time, late func(workflow.Context)) {
	if l.payment == uuid.Nil { // the database was put back to before it was approved
		f.puzzled(ctx)
		return
	}
	until := due
	if least := workflow.Now(ctx).Add(payoutGrace); l.role == exchange.LegPayout && until.Before(least) {
		until = least
	}
	in := CryptoPayoutInput{PaymentID: l.payment, SwapID: f.swapID, Network: f.row.Network}
	c := child{
		summary: legWords[l.role] + l.amount.String() + " " + string(l.amount.Asset()), priority: fairness(priorityOrder, f.row.MerchantID),
		shown: attributes(f.stage(), WaitsForChain, AttrNetwork.ValueSet(string(f.row.Network)), AttrAsset.ValueSet(string(l.amount.Asset()))), resumed: &f.resumed,
	}
	result, err := carry(ctx, in, c, f.punctually(until, late))
	if f.look(ctx); !f.owes(l.role) {
		return
	}
	reason := Reason(result.Reason)
	if err != nil || result.Completed { // paid, but not booked
		reason = ReasonStepFailed
	}
	if f.row.Status == exchange.SwapCollecting { // something was signed: no time ends it any more
		due, late = time.Time{}, nil
	}
	f.troubled(ctx, l, reason, err, due, late)
}

// owes reports whether the swap is where a leg is carried out.
func (f *swap) owes(role exchange.SwapLegRole) bool {
	switch role {
	case exchange.LegCollect:
		return f.row.Status == exchange.SwapReserved || f.row.Status == exchange.SwapCollecting
	case exchange.LegPayout:
		return f.row.Status == exchange.SwapPayingOut
	case exchange.LegRefund:
		return f.row.Status == exchange.SwapRefunding
	}
	return false
}

// punctually waits, and calls late when a moment has passed, and again from time to time.
func (f *swap) punctually(due time.Time, late func(workflow.Context)) waiting {
	if due.IsZero() {
		return f.until
	}
	return func(ctx workflow.Context, ready func() bool) {
		waiting(f.until).pause(ctx, f.left(ctx, due), "Wait for the payment until its time is over", ready)
		for !ready() {
			late(ctx)
			waiting(f.until).pause(ctx, slower(ctx, refundPause, due), "Wait for the payment, whose time is over", ready)
		}
	}
}

// puzzled reads the row again after a while that is not where its flow is.
func (f *swap) puzzled(ctx workflow.Context) {
	f.look(ctx)
	waiting(f.until).pause(ctx, oddPause, "Wait before the swap is looked at again", f.changed())
}

// troubled waits for an operator when a leg can't be carried out now, or until its time is over. When that is over, late is called; officers
// look at a payout that can't be given up then.
func (f *swap) troubled(ctx workflow.Context, l leg, r Reason, cause error, due time.Time, late func(workflow.Context)) {
	if was := f.row.Status; late != nil && !workflow.Now(ctx).Before(due) {
		late(ctx)
		if f.row.Status == was && was == exchange.SwapPayingOut {
			f.learn(ctx, mustStep(ctx, &f.flow, database, "Have officers look at the payout", swaps.StallSwap, f.named()))
		}
		if f.row.Status != was {
			return
		}
		due = workflow.Now(ctx).Add(slower(ctx, refundPause, due))
	}
	d, decided := f.attention(ctx, r, cause, due)
	f.commands.unpark(ctx, f.waitsFor())
	switch {
	case decided && d.verb == activities.VerbRefund:
		f.giveUp(ctx, d.proof)
	case decided:
		f.tryAgain(ctx, l, d.proof)
	}
}

// tryAgain approves a leg again by an operator's command. A command that came too late changes nothing.
func (f *swap) tryAgain(ctx workflow.Context, l leg, proof activities.Proof) {
	if l.role == exchange.LegPayout {
		f.retryPayout(ctx, proof)
		return
	}
	_ = approveAgain(ctx, &l.payment, proof) // the row shows whether it was approved
	f.look(ctx)
}

// giveUp ends a swap whose first leg can't be carried out, by an operator's command. While a transaction may move the money the store
// refuses, and the flow goes on with the state of the row.
func (f *swap) giveUp(ctx workflow.Context, proof activities.Proof) {
	var s activities.SwapState
	err := f.commands.carryOut(ctx, func(k kind) (err error) {
		s, err = step(ctx, k, "Give the swap up", swaps.GiveUpSwap, activities.SwapCommandInput{SwapID: f.swapID, Proof: proof})
		return err
	})
	if err != nil {
		workflow.GetLogger(ctx).Error("the swap could not be given up", "error", err)
		f.look(ctx)
		return
	}
	f.learn(ctx, s)
}

// attention waits for an operator's command, until the row changes, or until a moment if one is given. It reports whether there is a
// decision.
func (f *swap) attention(ctx workflow.Context, r Reason, cause error, due time.Time) (decision, bool) {
	if f.row.Status != exchange.SwapCollecting { // before, the owner cancels it; later, only two officers decide
		f.commands.only = []string{activities.VerbRetry}
	}
	defer func() { f.commands.only = nil }()
	changed := f.changed()
	f.commands.park(ctx, r, cause)
	ready := func() bool { return f.commands.hasDecision() || changed() }
	if due.IsZero() {
		f.until(ctx, ready)
	} else {
		waiting(f.until).pause(ctx, f.left(ctx, due), "Wait for an operator until the time is over", ready)
	}
	if f.commands.hasDecision() {
		return f.commands.take(), true
	}
	return decision{}, false
}

// finish waits for the handlers and ends the flow.
func (f *swap) finish(ctx workflow.Context) (SwapResult, error) {
	if err := lastHandlers(ctx); err != nil {
		return SwapResult{}, err
	}
	if f.row.Status == "" { // refused
		return SwapResult{SwapID: f.swapID, Detail: words(f.refusal)}, nil
	}
	f.showState(ctx)
	return SwapResult{SwapID: f.swapID, Status: f.row.Status, Detail: f.row.Detail}, nil
}
