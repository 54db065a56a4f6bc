package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/exchange"
)

// handlers registers the handlers of the order, before the first wait.
func (f *offRamp) handlers(ctx workflow.Context) error {
	f.card = func(waits string, until time.Time) card { return saleCard(f.order, f.sale.Escrow, waits, until) }
	// Deposits that come while the order waits for its crypto are handled by collect.
	f.arrived, f.attend = f.surplus, f.applyMovement
	h := f.ramp.handlers(ctx, offRampForm, exchange.IntendSaleCancel)
	signal(f.commands.ears, "deposits", SignalDeposit, func(_ workflow.Context, ref DepositRef) { f.deposits = append(f.deposits, ref.DepositID) })
	f.hearsOfPayouts()
	f.commands.ears.woken("refund address", SignalRefundAddress, func(workflow.Context) {
		if f.back != nil {
			f.back.wake()
		}
	})
	h.update(UpdateConfirmBank, "An officer confirmed or refused the order's bank payment; the flow reads the rows.", apart(f.onConfirmBank), nil)
	h.update(UpdateAcceptDeposit, "The seller wants to be paid for crypto of another amount, which is priced at the order's rate.", apart(f.onWord(exchange.IntendSaleAccept)), f.admitWord)
	h.update(UpdateReturnDeposit, "The seller wants crypto of another amount back.", apart(f.onWord(exchange.IntendSaleReturn)), f.admitWord)
	f.approvals = &refundApprovals{}
	f.approvals.open(h, f.commands)
	return h.err
}

// admitWord refuses a word of the seller while no deposit waits for it. Whether one does is in the rows.
func (f *offRamp) admitWord(IntentRef) error {
	switch {
	case f.refusal != nil || !f.opened || !f.pending() || f.sale.FundFromID != uuid.Nil:
		return refuse(exchange.CodeStateConflict, "The sale does not wait for your word about its deposit.")
	case f.word != nil:
		return refuse(exchange.CodeStateConflict, "You have already decided about the deposit.")
	}
	return nil
}

// onWord checks the seller's word, by an intent of a kind, and hands it to the main coroutine.
func (f *offRamp) onWord(kind exchange.IntentKind) func(workflow.Context, IntentRef) (Ack, error) {
	return func(ctx workflow.Context, ref IntentRef) (Ack, error) {
		if err := checkIntent(ctx, ref, kind); err != nil {
			return Ack{}, err
		}
		if err := f.admitWord(ref); err != nil { // something happened meanwhile
			return Ack{}, err
		}
		return f.ask(ctx, &f.word, ref)
	}
}

// surplus reports whether crypto came to the address although the order has its crypto or has ended.
func (f *offRamp) surplus() bool {
	return len(f.deposits) > 0 && f.opened && !f.waiting() && !f.handling
}
