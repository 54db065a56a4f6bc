package workflows

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// depositLook is how often the rows are read without a signal. Signals are sent again until they are received, so this is
// only a safety net.
const depositLook = 5 * time.Minute

// collect waits until the crypto is final, or the order expires and no crypto was seen. A signal only wakes it; what counts
// is the current row of the deposit. While a deposit is in a block, no timer ends the wait.
func (f *offRamp) collect(ctx workflow.Context) {
	f.lookAt = workflow.Now(ctx).Add(depositLook)
	for f.waiting() {
		now := workflow.Now(ctx)
		pending := f.order.Status == exchange.OrderPending
		switch {
		case len(f.deposits) > 0:
			f.applyMovement(ctx)
		case f.cancel != nil && !pending:
			f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "The deposit was seen, so the order can't be cancelled any more."))
		case f.cancel != nil:
			f.cancelled(ctx)
		case f.word != nil:
			f.decided(ctx)
		case pending && due(f.expiresAt, now):
			f.close(ctx, exchange.DetailExpired, activities.Behalf{})
		case due(f.lookAt, now):
			f.lookAround(ctx)
		default:
			f.wait(ctx, now, pending)
		}
	}
	f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "The order can't be cancelled any more."))
	f.answer(&f.word, refuse(exchange.CodeStateConflict, "The sale does not wait for your word any more."))
}

// waiting reports whether the order still waits for its crypto.
func (f *offRamp) waiting() bool {
	return f.order.Status == exchange.OrderPending || f.order.Status == exchange.OrderConfirming
}

// wait waits until something is due or a message comes.
func (f *offRamp) wait(ctx workflow.Context, now time.Time, pending bool) {
	at, what := f.lookAt, "Look for deposits"
	if pending && f.expiresAt.Before(at) {
		at, what = f.expiresAt, "The order expires"
	}
	await(ctx, at.Sub(now), what, func() bool { return len(f.deposits) > 0 || f.cancel != nil || f.word != nil })
}

// applyMovement handles the movement that was named first.
func (f *offRamp) applyMovement(ctx workflow.Context) {
	id := f.deposits[0]
	f.deposits = slices.DeleteFunc(f.deposits, func(other uuid.UUID) bool { return other == id }) // the row is read once for all its signals
	f.handling = true                                                                             // a parked step handles messages, and must not begin a second movement
	defer func() { f.handling = false }()
	in := activities.ApplyDepositInput{OrderID: f.order.OrderID, DepositID: id}
	f.afterMovement(ctx, quickly(ctx, &f.flow, "Apply a deposit", offRamps.ApplyDeposit, in))
}

// decided carries out the seller's word about crypto of another amount. A refusal changes nothing. After any other failure the
// rows may have changed, so the step is repeated.
func (f *offRamp) decided(ctx workflow.Context) {
	f.handling = true
	defer func() { f.handling = false }()
	in := activities.DecideDepositInput{OrderID: f.order.OrderID, Behalf: activities.Behalf{IntentID: f.word.intent}}
	var refusal error
	var applied activities.DepositApplied
	f.must(ctx, "Apply the seller's word", func() (err error) {
		applied, err = step(ctx, database, "Apply the seller's word about a deposit", offRamps.DecideDeposit, in)
		if err != nil && !unforeseen(err) && !passing(err) {
			refusal, err = err, nil
		}
		return err
	})
	if refusal != nil {
		f.answer(&f.word, passOn(refusal))
		return
	}
	f.afterMovement(ctx, applied)
	f.answer(&f.word, nil)
}

// afterMovement updates the flow. After a deposit vanished, the customer gets time to send it again.
func (f *offRamp) afterMovement(ctx workflow.Context, h activities.DepositApplied) {
	before := f.order.Status
	f.order.OrderState = h.OrderState
	if h.Crypto.Positive() {
		f.order.Crypto, f.order.Fiat = h.Crypto, h.Fiat
	}
	if h.RefundID != uuid.Nil {
		f.refundID = h.RefundID
	}
	if f.order.Status == before {
		return
	}
	switch f.order.Status {
	case exchange.OrderConfirming:
		f.moved(ctx, StageDeposit, WaitsForChain, "finality of the deposit")
	case exchange.OrderPending:
		if again := workflow.Now(ctx).Add(exchange.OrderLife); again.After(f.expiresAt) {
			f.expiresAt = again
		}
		show(ctx, AttrStatus.ValueSet(string(f.order.Status)), AttrWaitingFor.ValueSet(WaitsForDepositor), AttrDeadline.ValueSet(f.expiresAt))
		f.showWait(ctx, "the crypto: a reorganisation of the network removed the first deposit", f.expiresAt)
	case exchange.OrderProcessing, exchange.OrderCompleted, exchange.OrderCancelled, exchange.OrderFailed: // run goes on with these
	}
}

// lookAround finds deposits at the address.
func (f *offRamp) lookAround(ctx workflow.Context) {
	f.lookAt = workflow.Now(ctx).Add(slower(ctx, depositLook, f.since))
	in := activities.OrderInput{OrderID: f.order.OrderID}
	found, err := step(ctx, question, "Look for deposits", offRamps.FindDeposits, in)
	if err != nil {
		workflow.GetLogger(ctx).Warn("the deposits could not be read", "error", err)
		return
	}
	f.deposits = append(f.deposits, found.IDs...)
}

// close ends an order for which no crypto was seen. If a deposit is on its way after all, the order waits for it.
func (f *offRamp) close(ctx workflow.Context, detail string, asked activities.Behalf) {
	f.must(ctx, "Close the order", func() error {
		in := activities.CloseOffRampInput{OrderID: f.order.OrderID, Detail: detail, Behalf: asked}
		state, err := step(ctx, database, "Close the order: "+detail, offRamps.CloseOffRamp, in)
		if err == nil {
			f.order.OrderState = state
		}
		if !isConflict(err) {
			return err
		}
		f.lookAt = workflow.Now(ctx)
		f.lookAround(ctx)
		if f.order.Status == exchange.OrderPending {
			f.expiresAt = workflow.Now(ctx).Add(depositTimeout)
		}
		return nil
	})
}

// depositTimeout is how long an expired order waits for a deposit that is in the rows but not yet in its flow, before it
// tries to close again.
const depositTimeout = 30 * time.Second

// cancelled applies a cancellation, unless crypto was seen.
func (f *offRamp) cancelled(ctx workflow.Context) {
	f.close(ctx, exchange.DetailCancelled, activities.Behalf{IntentID: f.cancel.intent})
	if f.order.Status != exchange.OrderCancelled {
		f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "A deposit is on its way, so the order can't be cancelled any more."))
		return
	}
	f.answer(&f.cancel, nil)
}

// saleCard describes the state of a sale.
func saleCard(o activities.OpenedOrder, escrow, waits string, until time.Time) card {
	c := card{title: "Order " + string(o.Status)}
	c.add("Order", o.OrderID.String())
	c.add("Sells", fmt.Sprintf("%s %s on %s for %s %s", o.Crypto, o.Asset, o.Network, o.Fiat, o.Fiat.Asset()))
	c.add("Escrow", "`"+escrow+"`")
	c.add("Waits for", waits)
	if !until.IsZero() {
		c.add("Until", moment(until))
	}
	return c
}
