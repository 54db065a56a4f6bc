package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// Limits of waiting for officers at a bank.
const (
	bankPause   = 10 * time.Minute // between checks without a signal
	bankTimeout = 4 * time.Hour    // until the flow parks
)

// bankTask is the state of a sale's payment by bank.
type bankTask struct {
	woken bool // an officer confirmed or refused the payment
	again bool // a refused payment is to be tried again
}

// onConfirmBank handles the API's notice of an officer's confirmation or refusal. It proves nothing: the flow reads the
// rows.
func (f *offRamp) onConfirmBank(workflow.Context, BankConfirmRef) (Ack, error) {
	f.bank.woken = true
	return Ack{Status: f.order.Status, Detail: f.order.Detail}, nil
}

// pay pays the order out by its payment method.
func (f *offRamp) pay(ctx workflow.Context) {
	if f.sale.Method == exchange.PaymentMethodBank {
		f.payByBank(ctx)
		return
	}
	f.payOut(ctx)
}

// payByBank waits until enough officers have confirmed the payment at the bank. It ends when their last confirmation
// completes the order, or when the order failed and its refund is open.
func (f *offRamp) payByBank(ctx workflow.Context) {
	f.moved(ctx, StageBank, WaitsForBank, "an officer at the bank")
	began, frozen := workflow.Now(ctx), time.Time{}
	for f.order.Status == exchange.OrderProcessing {
		f.bank.woken = false
		in := activities.BankInput{OrderID: f.order.OrderID, Again: f.bank.again}
		step, err := step(ctx, database, "Check the bank payment", bank.LookAtBank, in)
		f.bank.again = false
		switch {
		case err == nil && step.State == activities.PayoutUncleared:
			f.clearedAgain(ctx, StageBank, WaitsForBank, "an officer at the bank")
			f.bank.again, began = in.Again, workflow.Now(ctx)
		case err != nil:
			f.parked(ctx, ReasonStepFailed, err)
			f.commands.unpark(ctx, WaitsForBank)
		case step.State == activities.PayoutPaid:
			f.commands.unpark(ctx, WaitsForNothing)
			f.order.OrderState = activities.OrderState{OrderID: f.order.OrderID, Status: exchange.OrderCompleted, Detail: exchange.WaitNothing}
		case step.State == activities.PayoutRefused, step.State == activities.PayoutInactive:
			reason := ReasonBankRefused
			if step.State == activities.PayoutInactive {
				reason = ReasonBankInactive
			}
			if !f.refused(ctx, reason, nil) {
				f.commands.unpark(ctx, WaitsForBank)
				f.bank.again, began = true, workflow.Now(ctx)
			}
		case step.State == activities.PayoutFrozen:
			frozen = since(ctx, frozen, true)
			f.awaitBank(ctx, step.State, frozen)
			f.bank.again, began = in.Again, workflow.Now(ctx) // the officers' time begins after the freeze
		default:
			f.awaitBank(ctx, step.State, began)
		}
	}
}

// awaitBank waits for officers, and parks the flow after a while.
func (f *offRamp) awaitBank(ctx workflow.Context, state string, began time.Time) {
	detail := exchange.WaitBank
	switch state {
	case activities.BankWaitsSecond:
		detail = exchange.WaitBankSecond
	case activities.PayoutFloatShort:
		detail = exchange.WaitFloat
	case activities.PayoutFrozen:
		detail = exchange.WaitFrozen
	}
	f.mark(ctx, detail)
	if state != activities.PayoutFrozen && workflow.Now(ctx).Sub(began) >= bankTimeout {
		f.commands.park(ctx, ReasonBankWaiting, nil)
	}
	waiting(f.until).pause(ctx, slower(ctx, bankPause, began), "Check the bank payment", func() bool { return f.bank.woken || f.commands.hasDecision() })
	if f.commands.hasDecision() {
		f.commands.unpark(ctx, WaitsForBank)
	}
}
