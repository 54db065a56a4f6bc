package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// ramp is what the flows of orders have in common.
type ramp struct {
	flow
	order   activities.OpenedOrder
	orderID uuid.UUID
	card    func(waits string, until time.Time) card
	cancel  *request // of the customer
}

// request is an update that waits until the flow's main coroutine handles it.
type request struct {
	intent uuid.UUID
	done   bool
	err    error
}

// handlers registers the handlers that all orders have. An intent of the kind cancels cancels the order.
func (f *ramp) handlers(ctx workflow.Context, form IDForm, cancels exchange.IntentKind) *handlers {
	h := &handlers{ctx: ctx}
	if f.orderID, h.err = form.object(ctx); h.err != nil {
		return h
	}
	h.err = f.reach(ctx, form.of(f.orderID), "order "+f.orderID.String(), of(activities.ObjectOrder, f.orderID))
	f.mark = f.markOrder
	f.hearsOfFloat()
	h.update(UpdateOpen, "Answers when the order is stored, or refused.", apartOpen(f.onOpen), nil)
	h.update(UpdateCancel, "Cancels the order while nothing was paid.", apart(func(ctx workflow.Context, ref IntentRef) (Ack, error) {
		return f.onCancel(ctx, ref, cancels)
	}), f.admitCancel)
	return h
}

func (f *ramp) onOpen(ctx workflow.Context) (Opened, error) {
	if err := f.hasOpened(ctx); err != nil {
		return Opened{}, err
	}
	return Opened{OrderID: f.order.OrderID}, nil
}

// pending reports whether the order still waits for its payment.
func (f *ramp) pending() bool { return f.order.Status == exchange.OrderPending }

func (f *ramp) admitCancel(IntentRef) error {
	switch {
	case f.refusal != nil || (f.opened && !f.pending()):
		return refuse(exchange.CodeStateConflict, "The order can't be cancelled any more.")
	case f.cancel != nil:
		return refuse(exchange.CodeStateConflict, "The order is already being cancelled.")
	}
	return nil
}

// onCancel checks the request first: one that can't be proven must not reach the main coroutine.
func (f *ramp) onCancel(ctx workflow.Context, ref IntentRef, kind exchange.IntentKind) (Ack, error) {
	if err := checkIntent(ctx, ref, kind); err != nil {
		return Ack{}, err
	}
	if err := f.admitCancel(ref); err != nil { // another request came meanwhile
		return Ack{}, err
	}
	return f.ask(ctx, &f.cancel, ref)
}

// ask hands a request to the main coroutine and waits for its answer.
func (f *ramp) ask(ctx workflow.Context, slot **request, ref IntentRef) (Ack, error) {
	r := &request{intent: ref.IntentID}
	*slot = r
	if err := workflow.Await(ctx, func() bool { return r.done }); err != nil {
		return Ack{}, err
	}
	return Ack{Status: f.order.Status, Detail: f.order.Detail}, r.err
}

// answer ends a request, if there is one.
func (f *ramp) answer(slot **request, err error) {
	if r := *slot; r != nil {
		r.done, r.err = true, err
		*slot = nil
	}
}

// markOrder writes what the order waits for, until it has ended; purchases and sales have the same final states. The detail
// is only for readers, so a failure does not stop the flow.
func (f *ramp) markOrder(ctx workflow.Context, detail string) {
	if f.order.Detail == detail || f.order.OrderID == uuid.Nil || exchange.OnRampMachine.Terminal(f.order.Status) {
		return
	}
	in := activities.MarkOrderInput{OrderID: f.order.OrderID, Detail: detail}
	if err := do(ctx, database, "Set the order's detail: "+detail, orders.MarkOrder, in); err != nil {
		workflow.GetLogger(ctx).Error("the order's detail could not be written", "error", err)
		return
	}
	f.order.Detail = detail
}

// payOutCrypto runs the child that carries out a chain payment of the order, until it succeeds or returns a reason.
func (f *ramp) payOutCrypto(ctx workflow.Context, payment uuid.UUID, verb, to string, until waiting) CryptoPayoutResult {
	in := CryptoPayoutInput{PaymentID: payment, OrderID: f.order.OrderID, Network: f.order.Network}
	c := child{
		summary:  verb + " " + f.order.Crypto.String() + " " + string(f.order.Asset) + " " + to,
		priority: fairness(priorityOrder, f.order.MerchantID),
		shown: attributes(StagePayout, WaitsForChain, AttrNetwork.ValueSet(string(f.order.Network)), AttrAsset.ValueSet(string(f.order.Asset)),
			AttrMerchantID.ValueSet(f.order.MerchantID.String())),
		resumed: &f.resumed,
	}
	var result CryptoPayoutResult
	f.must(ctx, c.summary, func() (err error) {
		result, err = carry(ctx, in, c, until)
		return err
	})
	return result
}

// moved shows a new stage.
func (f *ramp) moved(ctx workflow.Context, stage, waitsFor, words string) {
	show(ctx, AttrStatus.ValueSet(string(f.order.Status)), AttrStage.ValueSet(stage), AttrWaitingFor.ValueSet(waitsFor))
	f.showWait(ctx, words, time.Time{})
}

// showWait shows in the details what the order waits for, and until when.
func (f *ramp) showWait(ctx workflow.Context, waits string, until time.Time) {
	f.commands.describe(ctx, f.card(waits, until))
}

// ended shows that the order has ended.
func (f *ramp) ended(ctx workflow.Context) {
	f.moved(ctx, StageDone, WaitsForNothing, "nothing")
}
