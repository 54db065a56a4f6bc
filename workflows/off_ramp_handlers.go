package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"kivuko/exchange"
)

// handlers registers the handlers of the order, before the first wait.
func (f *offRamp) handlers(ctx workflow.Context) error {
	f.card = func(waits string, until time.Time) card { return saleCard(f.order, f.sale.Escrow, waits, until) }
	// Deposits that come while the order waits for its crypto are handled by collect.
	f.arrived, f.attend = f.surplus, f.applyMovement
	h := f.ramp.handlers(ctx, offRampForm, exchange.IntendSaleCancel)
	signal(ctx, "deposits", SignalDeposit, func(_ workflow.Context, ref DepositRef) { f.deposits = append(f.deposits, ref.DepositID) })
	woken(ctx, "refund address", SignalRefundAddress, func(workflow.Context) {
		if f.back != nil {
			f.back.wake()
		}
	})
	h.update(UpdateConfirmBank, "An officer confirmed or refused the order's bank payment; the flow reads the rows.", apart(f.onConfirmBank), nil)
	f.approvals = &refundApprovals{}
	f.approvals.open(h, f.commands)
	return h.err
}

// surplus reports whether crypto came to the address although the order has its crypto or has ended.
func (f *offRamp) surplus() bool {
	return len(f.deposits) > 0 && f.opened && !f.waiting() && !f.handling
}
