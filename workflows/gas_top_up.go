package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// Looks for gas that has arrived. The signer may ask a node that does not have the block yet. Gas that does not suffice then is
// waited for until it is final, and more is sent.
const (
	gasLooks = 3
	gasPause = 3 * time.Second // between two looks
)

// gasTopUp is a payment that brings gas, which a flow of its own carries out. That flow goes on after the payment that needed the
// gas has ended.
type gasTopUp struct {
	result CryptoPayoutResult
	err    error
	over   bool
}

// topUp sends native coin from the gas wallet to the sending wallet, by a payment that is signed and delivered like every
// other. It returns "" when a block has the top-up, or it is final, or the sender needs none any more; then the signer decides
// whether it suffices. Otherwise it returns the reason. While one top-up is under way, no other one is approved.
func (f *cryptoPayout) topUp(ctx workflow.Context, need activities.NeedGas) string {
	if f.gas == nil {
		in := activities.TopUpInput{PaymentID: f.in.PaymentID, Missing: need.Missing}
		approved, err := step(ctx, topUp(f.in.Network), "Approve gas for the sending wallet", chains.ApproveTopUp, in)
		if err != nil {
			workflow.GetLogger(ctx).Error("the gas top-up could not be approved", "error", err)
			return activities.GasFailed
		}
		if approved.Waits {
			if f.waiting.IsZero() {
				f.waiting = workflow.Now(ctx)
			}
			c := card{title: "Gas is on its way"}
			c.add("Payment", f.in.PaymentID.String())
			c.add("For", f.in.about())
			c.add("Waits for", "a top-up of the sending wallet that was brought ahead of need")
			describe(ctx, c)
			await(ctx, slower(ctx, gasPause, f.waiting), "Look for the gas that is on its way", func() bool { return f.retried })
			f.retried = false
			return ""
		}
		f.waiting = time.Time{}
		if approved.PaymentID == uuid.Nil {
			return approved.Refused
		}
		f.fetchGas(ctx, approved.PaymentID)
	}
	f.awaitGas(ctx)
	if !f.gas.over {
		return ""
	}
	brought := f.gas
	f.gas = nil
	return brought.reason(ctx)
}

// fetchGas starts the flow of a top-up.
func (f *cryptoPayout) fetchGas(ctx workflow.Context, payment uuid.UUID) {
	c := card{title: "Gas top-up is pending"}
	c.add("Payment", f.in.PaymentID.String())
	c.add("For", f.in.about())
	c.add("Waits for", "the gas top-up of the sending wallet, payment "+payment.String())
	describe(ctx, c)
	in := f.in
	in.PaymentID, in.GasFor, in.Since = payment, f.in.PaymentID, time.Time{}
	g := &gasTopUp{}
	f.gas = g
	workflow.GoNamed(ctx, "gas top-up", func(ctx workflow.Context) {
		g.result, g.err = carry(ctx, in, child{summary: "Gas for the payment " + f.in.PaymentID.String()}, patiently)
		g.over = true
	})
}

// awaitGas waits until a block has the top-up, or its flow has ended. After the signal it also returns after a pause, a few times.
func (f *cryptoPayout) awaitGas(ctx workflow.Context) {
	ready := func() bool { return f.gas.over || f.arrived }
	if f.looks > 0 {
		f.looks--
		await(ctx, gasPause, "Look for the gas again", ready)
	} else {
		patiently(ctx, ready)
	}
	if f.arrived {
		f.arrived, f.looks = false, gasLooks
	}
}

// tellArrival wakes the flow of the payment that needs the gas. One that has ended needs it no more.
func (f *cryptoPayout) tellArrival(ctx workflow.Context) {
	if err := workflow.SignalExternalWorkflow(ctx, CryptoPayoutID(f.in.GasFor), "", SignalGas, nil).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Info("no flow waits for the gas", "payment", f.in.GasFor, "error", err)
	}
}

// reason returns why a top-up that has ended brought no gas, or "".
func (g *gasTopUp) reason(ctx workflow.Context) string {
	switch {
	case g.err != nil:
		workflow.GetLogger(ctx).Error("the gas top-up failed", "error", g.err)
		return activities.GasFailed
	case g.result.Completed:
		return ""
	case g.result.Reason == string(ReasonPayoutFunds) || g.result.Reason == string(ReasonPayoutGas):
		return activities.GasWalletShort
	case g.result.Reason == string(ReasonPayoutBudget):
		return activities.GasBudget
	}
	return activities.GasFailed
}
