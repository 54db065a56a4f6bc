package workflows_test

import (
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// swapRehearsals are the reasons of swaps.
func swapRehearsals() map[workflows.Reason]rehearsal {
	return map[workflows.Reason]rehearsal{
		workflows.ReasonSwapDiffers: {onlyRetry, swapped(func(c *parkedCommand, w *swapHarness) {
			w.lies = usdc("1")
			c.mend = func() { w.lies = money.Amount{} }
		})},
		workflows.ReasonSwapStuck: {onlyRetry, swapped(func(c *parkedCommand, w *swapHarness) {
			w.outcomes(outcome{}, outcome{astray: true})
			w.at(29*time.Minute, w.passes)
			c.mend = w.settles
		})},
	}
}

// swapped runs a swap that is completed after a retry.
func swapped(set func(*parkedCommand, *swapHarness)) func(*testing.T, *parkedCommand) {
	return func(t *testing.T, c *parkedCommand) {
		w := newSwapHarness(t)
		set(c, w)
		c.await(t, w.env, w.signs, workflows.SwapID(w.ask.ID), func() { w.orders(c.verb) })
		w.ends(t, exchange.SwapCompleted, exchange.WaitNothing)
		wants(c.verb, "")(t, w.harness)
	}
}

// settles has two officers find that what left the treasury is not the payout.
func (w *swapHarness) settles() {
	all, err := w.store.OpenQuarantine(w.t.Context(), networkName)
	if err != nil || len(all) != 1 {
		w.t.Errorf("%d movements wait in the quarantine; %v", len(all), err)
		return
	}
	c, err := w.store.ProposeSettlement(w.t.Context(), all[0].ID, [16]byte{}, "a burn, booked as a loss", w.one)
	if err == nil {
		_, err = w.store.ConfirmChange(w.t.Context(), c.ID, "", w.two)
	}
	if err != nil {
		w.t.Error(err)
	}
}
