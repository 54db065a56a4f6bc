package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// depositLook is how often the rows are looked at although no signal came. Signals are sent again until they are
// taken, so it is only for what nobody thought of.
const depositLook = 5 * time.Minute

// collect waits for the crypto until it is final, or the order's time is over and none was seen. A signal only wakes
// it; what counts is the row that it names, as it is then. While a deposit is in a block no timer ends the waiting.
func (f *offRamp) collect(ctx workflow.Context) {
	f.lookAt = workflow.Now(ctx).Add(depositLook)
	for f.waiting() {
		now := workflow.Now(ctx)
		pending := f.order.Status == exchange.OrderPending
		switch {
		case len(f.deposits) > 0:
			f.heed(ctx)
		case f.cancel != nil && !pending:
			f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "The deposit was seen: the order can't be cancelled any more."))
		case f.cancel != nil:
			f.cancelled(ctx)
		case pending && due(f.expiresAt, now):
			f.close(ctx, cmp.Or(f.closing, exchange.DetailExpired), Actor{})
		case due(f.lookAt, now):
			f.lookAround(ctx)
		default:
			f.wait(ctx, now, pending)
		}
	}
	f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "The order can't be cancelled any more."))
}

// waiting tells whether the order still waits for its crypto.
func (f *offRamp) waiting() bool {
	return f.order.Status == exchange.OrderPending || f.order.Status == exchange.OrderConfirming
}

// wait sleeps until something is due or somebody speaks.
func (f *offRamp) wait(ctx workflow.Context, now time.Time, pending bool) {
	at, what := f.lookAt, "Look for deposits"
	if pending && f.expiresAt.Before(at) {
		at, what = f.expiresAt, "The order's time is over"
	}
	await(ctx, at.Sub(now), what, func() bool { return len(f.deposits) > 0 || f.cancel != nil })
}

// heed looks at the movement that was named first.
func (f *offRamp) heed(ctx workflow.Context) {
	id := f.deposits[0]
	f.deposits = slices.DeleteFunc(f.deposits, func(other uuid.UUID) bool { return other == id }) // one look at the row tells all
	f.heeding = true                                                                              // a step that is parked waits as everything else does, and must not begin another one
	defer func() { f.heeding = false }()
	in := activities.HeedDepositInput{OrderID: f.order.OrderID, DepositID: id}
	f.heard(ctx, mustStep(ctx, &f.flow, database, "Look at a deposit", offRamps.HeedDeposit, in))
}

// heard draws the consequence. A deposit that vanished gives the customer time to send it again.
func (f *offRamp) heard(ctx workflow.Context, h activities.DepositHeard) {
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
		f.tell(ctx, "the crypto, which a reorganisation of the network took away again", f.expiresAt)
	case exchange.OrderProcessing, exchange.OrderCompleted, exchange.OrderCancelled, exchange.OrderFailed: // the story goes on elsewhere
	}
}

// lookAround reads what came to the address.
func (f *offRamp) lookAround(ctx workflow.Context) {
	f.lookAt = workflow.Now(ctx).Add(slower(ctx, depositLook, f.since))
	in := activities.OrderInput{OrderID: f.order.OrderID}
	found, err := step(ctx, question, "Look for deposits", offRamps.FindDeposits, in)
	if err != nil {
		workflow.GetLogger(ctx).Warn("the deposits were not read", "error", err)
		return
	}
	f.deposits = append(f.deposits, found.IDs...)
}

// close ends an order for which no crypto was seen. Where some is on its way after all, the order waits for it.
func (f *offRamp) close(ctx workflow.Context, detail string, by Actor) {
	f.must(ctx, "Close the order", func() error {
		in := activities.CloseOffRampInput{OrderID: f.order.OrderID, Detail: detail, Actor: by}
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
			f.expiresAt = workflow.Now(ctx).Add(depositPatience)
		}
		return nil
	})
}

// depositPatience is how long an order whose time is over waits for a deposit of which the rows know and its flow
// does not, until it tries to close again.
const depositPatience = 30 * time.Second

// cancelled obeys whoever may give the order up, unless crypto was seen.
func (f *offRamp) cancelled(ctx workflow.Context) {
	f.close(ctx, exchange.DetailCancelled, f.cancel.actor)
	if f.order.Status != exchange.OrderCancelled {
		f.answer(&f.cancel, refuse(exchange.CodeStateConflict, "A deposit is on its way: the order can't be cancelled any more."))
		return
	}
	f.answer(&f.cancel, nil)
}

// saleCard says where a sale stands.
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
