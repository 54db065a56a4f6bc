package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// Limits of waiting for officers at a bank.
const (
	bankPause    = 10 * time.Minute // between looks although nobody was woken
	bankPatience = 4 * time.Hour    // until somebody is called
)

// bankTask is what a sale keeps of its payment by bank.
type bankTask struct {
	woken bool // an officer said something
	again bool // one that was refused is to be paid all the same
}

// onConfirmBank hears from the API that officers said something. It proves nothing: the rows are read.
func (f *offRamp) onConfirmBank(workflow.Context, BankConfirmRef) (Ack, error) {
	f.bank.woken = true
	return Ack{Status: f.order.Status, Detail: f.order.Detail}, nil
}

// pay has the order paid out on its rail.
func (f *offRamp) pay(ctx workflow.Context) {
	if f.sale.Method == exchange.PaymentMethodBank {
		f.payByBank(ctx)
		return
	}
	f.payOut(ctx)
}

// payByBank waits until enough officers have paid the order at the bank. It ends when the order is completed by their
// last word, or failed with its refund opened.
func (f *offRamp) payByBank(ctx workflow.Context) {
	f.moved(ctx, StageBank, WaitsForBank, "an officer at the bank")
	began := workflow.Now(ctx)
	for f.order.Status == exchange.OrderProcessing {
		f.bank.woken = false
		in := activities.BankInput{OrderID: f.order.OrderID, Again: f.bank.again}
		step, err := step(ctx, database, "Look at the payment by bank", bank.LookAtBank, in)
		f.bank.again = false
		switch {
		case err == nil && step.State == activities.PayoutUncleared:
			f.clearedAgain(ctx, StageBank, WaitsForBank, "an officer at the bank")
			f.bank.again, began = in.Again, workflow.Now(ctx)
		case err != nil:
			f.parked(ctx, ReasonStepFailed, err)
			f.desk.unpark(ctx, WaitsForBank)
		case step.State == activities.RefundPaid:
			f.desk.unpark(ctx, WaitsForNobody)
			f.order.OrderState = activities.OrderState{OrderID: f.order.OrderID, Status: exchange.OrderCompleted, Detail: exchange.WaitNothing}
		case step.State == activities.RefundRefused:
			if !f.refused(ctx, ReasonBankRefused, nil) {
				f.desk.unpark(ctx, WaitsForBank)
				f.bank.again, began = true, workflow.Now(ctx)
			}
		default:
			f.awaitBank(ctx, step.State, began)
		}
	}
}

// awaitBank waits for officers, and calls for one after a while.
func (f *offRamp) awaitBank(ctx workflow.Context, state string, began time.Time) {
	detail := exchange.WaitBank
	switch state {
	case activities.BankWaitsSecond:
		detail = exchange.WaitBankSecond
	case activities.RefundFloatShort:
		detail = exchange.WaitFloat
	}
	f.mark(ctx, detail)
	if workflow.Now(ctx).Sub(began) >= bankPatience {
		f.desk.park(ctx, ReasonBankWaiting, nil)
	}
	f.pause(ctx, slower(ctx, bankPause, began), "Look at the payment by bank", func() bool { return f.bank.woken || f.desk.hasDecision() })
	if f.desk.hasDecision() {
		f.desk.unpark(ctx, WaitsForBank)
	}
}
