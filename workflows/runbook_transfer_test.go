package workflows_test

import (
	"testing"
	"time"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/workflows"
)

// transferRehearsals are the reasons of transfers.
func transferRehearsals() map[workflows.Reason]rehearsal {
	const back = exchange.TransferCancelled
	moves := func(set func(*parkedCommand, *transferHarness), over exchange.TransferStatus, detail string) func(*testing.T, *parkedCommand) {
		return func(t *testing.T, c *parkedCommand) {
			w := newTransferHarness(t)
			set(c, w)
			c.await(t, w.env, w.signs, workflows.TransferID(w.ask.ID), func() { w.order(c.verb) })
			r := w.play(t)
			wants(c.verb, "")(t, w.harness)
			want, why := over, detail
			if c.verb == activities.VerbRetry {
				want, why = exchange.TransferCompleted, exchange.WaitNothing
			}
			if r.Status != want || r.Detail != why {
				t.Errorf("the transfer ended as %s (%s), want %s (%s)", r.Status, r.Detail, want, why)
			}
		}
	}
	return map[workflows.Reason]rehearsal{
		workflows.ReasonScreening: {retryOrRefund, moves(func(c *parkedCommand, w *transferHarness) {
			w.screener.replies(answer{verdict: exchange.VerdictUnknown})
			c.mend = func() { w.screener.replies() }
		}, back, exchange.DetailByStaff)},
		workflows.ReasonBlocked: {[]string{activities.VerbRefund}, moves(func(_ *parkedCommand, w *transferHarness) {
			w.deny()
		}, exchange.TransferBlocked, exchange.DetailReleased)},
		// A retry checks the rows; the transaction that an officer submits ends the wait.
		workflows.ReasonColdWallet: {retryOrRefund, moves(func(c *parkedCommand, w *transferHarness) {
			w.freeze()
			c.mend = func() {
				w.at(time.Hour, func() { w.asksPayload("payload") })
				w.at(2*time.Hour, func() { w.brings("import", "good") })
			}
		}, back, exchange.DetailByStaff)},
	}
}

// watchRehearsals are the reasons of the deposit watch, which never ends: it continues as a new run and is not parked.
func watchRehearsals() map[workflows.Reason]rehearsal {
	watches := func(after time.Duration, look func(c *parkedCommand, s *shore) error) rehearsal {
		return rehearsal{onlyRetry, func(t *testing.T, c *parkedCommand) {
			env, s, shown := newShore()
			s.fault = func(int) error { return look(c, s) }
			c.after = after
			c.await(t, env, shown, workflows.DepositWatchID(exchange.Tron), func() { env.SignalWorkflow(workflows.SignalRetry, nil) })
			env.ExecuteWorkflow(workflows.DepositWatch, watchTron)
			if err := env.GetWorkflowError(); err == nil {
				t.Error("the watch ended")
			}
		}}
	}
	return map[workflows.Reason]rehearsal{
		workflows.ReasonDepositsStalled: watches(time.Minute, func(c *parkedCommand, _ *shore) error {
			if c.mended() {
				return nil
			}
			return chain.Errorf(chain.ReasonProtocol, "final block 8 follows from nothing")
		}),
		// The flow unparks when every movement is settled; a retry has no effect.
		workflows.ReasonDepositQuarantine: watches(time.Nanosecond, func(c *parkedCommand, s *shore) error {
			if s.set = 2; c.mended() {
				s.set = 0
			}
			return nil
		}),
	}
}
