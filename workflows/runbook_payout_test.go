package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// replaced registers activities in place of the harness's.
func replaced(name string) activity.RegisterOptions {
	return activity.RegisterOptions{Name: name, DisableAlreadyRegisteredCheck: true}
}

// payoutRehearsals are the reasons with which an order's crypto payment parks. A retry delivers it; a refund returns
// the shillings, and nothing is signed after it.
func payoutRehearsals() map[workflows.Reason]rehearsal {
	stuck := func(set func(c *parkedCommand, w *harness)) rehearsal {
		return rehearsal{retryOrRefund, stuckPayout(set)}
	}
	table := map[workflows.Reason]rehearsal{
		workflows.ReasonPayoutOverdue:    {onlyRetry, overduePayout},
		workflows.ReasonPayoutFailed:     stuck(untilMended(outcome{reverts: true})),
		workflows.ReasonPayoutExpiring:   stuck(untilMended(outcome{dropped: true})),
		workflows.ReasonPayoutSigning:    stuck(untilMended(outcome{trouble: exchange.Errorf(exchange.CodeForbidden, "no")})),
		workflows.ReasonPayoutGas:        stuck(untilMended(outcome{refused: chain.ReasonGas})),
		workflows.ReasonPayoutGasCap:     stuck(withoutGas(activities.TopUp{Refused: activities.GasAboveCap}, outcome{})),
		workflows.ReasonPayoutGasLimit:   stuck(withoutGas(activities.TopUp{Refused: activities.GasLimit}, outcome{})),
		workflows.ReasonPayoutGasShort:   stuck(withoutGas(activities.TopUp{PaymentID: topUpPayment}, outcome{refused: chain.ReasonFunds})),
		workflows.ReasonPayoutGasLost:    stuck(withoutGas(activities.TopUp{PaymentID: topUpPayment}, outcome{reverts: true})),
		workflows.ReasonPayoutSentBefore: stuck(held(exchange.HoldSentBefore)),
		// A foreign transaction is settled before a retry.
		workflows.ReasonPayoutForeignSend: stuck(held(exchange.HoldForeign)),
		workflows.ReasonPayoutUnexpected:  stuck(held(exchange.HoldUnexpected)),
		workflows.ReasonPayoutInactive:    stuck(switchedOff),
		workflows.ReasonPayoutDenied:      stuck(paying(recipient{verdict: exchange.VerdictHit})),
		workflows.ReasonPayoutUnknown:     stuck(paying(recipient{verdict: exchange.VerdictUnknown})),
		workflows.ReasonPayoutCold:        {retryOrRefund, coldOffer},
	}
	for word, r := range map[chain.Reason]workflows.Reason{
		chain.ReasonAddress: workflows.ReasonPayoutAddress, chain.ReasonUnsupported: workflows.ReasonPayoutAsset,
		chain.ReasonFunds: workflows.ReasonPayoutFunds, chain.ReasonBlocked: workflows.ReasonPayoutBlocked,
		chain.ReasonPaused: workflows.ReasonPayoutPaused, chain.ReasonReverts: workflows.ReasonPayoutReverts,
		chain.ReasonFeeTooHigh: workflows.ReasonPayoutFee, chain.ReasonBudget: workflows.ReasonPayoutBudget,
		chain.ReasonForeign: workflows.ReasonPayoutForeign,
	} {
		table[r] = stuck(untilMended(outcome{refused: word}))
	}
	return table
}

// stuckPayout runs a purchase whose crypto can't be sent.
func stuckPayout(set func(c *parkedCommand, w *harness)) func(*testing.T, *parkedCommand) {
	return func(t *testing.T, c *parkedCommand) {
		w := newHarness(t)
		set(c, w)
		c.await(t, w.env, w.signs, workflows.OnRampID(w.request.ID), func() { w.command(c.verb) })
		w.run(t)
		wants(c.verb, "")(t, w)
		c.settled(t, w)
	}
}

// settled checks how a purchase ended: delivered, or refunded.
func (c *parkedCommand) settled(t *testing.T, w *harness) {
	t.Helper()
	if c.verb == activities.VerbRefund {
		ended(t, w, exchange.OrderFailed, exchange.DetailRefundOpen)
		refunded(price)(t, w)
		return
	}
	delivered(t, w)
}

// delivered checks that the buyer has the crypto and the vendor the shillings.
func delivered(t *testing.T, w *harness) {
	t.Helper()
	ended(t, w, exchange.OrderCompleted, exchange.WaitNothing)
	if w.chain.paid(w.request.ID) != 1 || len(w.operator.paidOut(w.request.ID)) != 0 {
		t.Errorf("the crypto was paid %d times, the shillings back %d times", w.chain.paid(w.request.ID), len(w.operator.paidOut(w.request.ID)))
	}
}

// untilMended gives every transaction the same outcome as long as the cause remains.
func untilMended(f outcome) func(*parkedCommand, *harness) {
	return func(c *parkedCommand, w *harness) {
		w.chain.script = func(int) outcome {
			if c.mended() {
				return outcome{}
			}
			return f
		}
	}
}

func held(hold exchange.SigningHold) func(*parkedCommand, *harness) {
	return func(c *parkedCommand, w *harness) {
		w.store.hold = func() exchange.SigningHold {
			if c.mended() {
				return exchange.HoldNone
			}
			return hold
		}
	}
}

// switchedOff switches the buyer's account off before anything is signed.
func switchedOff(c *parkedCommand, w *harness) {
	w.at(time.Second, func() { w.switched(w.market.Customer, false) })
	c.mend = func() { w.switched(w.market.Customer, true) }
}

// switched switches an account on or off.
func (w *harness) switched(u exchange.User, on bool) {
	if _, err := w.store.UpdateUser(w.t.Context(), u.ID, store.UserPatch{IsActive: &on}, storetest.By); err != nil {
		w.t.Error(err)
	}
}

var topUpPayment = uuid.MustParse("0192f0a0-0000-7000-8000-00000000ab01")

// withoutGas leaves the sending wallet without native coin. The house gives none, or some by a payment with an
// outcome of its own.
func withoutGas(answer activities.TopUp, gas outcome) func(*parkedCommand, *harness) {
	return func(c *parkedCommand, w *harness) {
		topUp := false // the next transaction is that of the gas
		w.chain.script = func(int) outcome {
			switch {
			case c.mended():
				return outcome{}
			case topUp:
				topUp = false
				return gas
			}
			return outcome{refused: chain.ReasonGas}
		}
		storetest.Gas(w.t, w.store.Store, storetest.GasWallet(w.t, w.store.Store, networkName).ID, money.Must(money.TRX, "1000"))
		w.env.RegisterActivityWithOptions(func(ctx context.Context, in activities.TopUpInput) (activities.TopUp, error) {
			if topUp = answer.PaymentID != uuid.Nil; topUp {
				p, err := w.store.ApproveTopUp(ctx, in.PaymentID, money.Must(money.TRX, "5"), 3)
				return activities.TopUp{PaymentID: p.ID}, activities.Failure(ctx, err)
			}
			return answer, nil
		}, replaced("ApproveTopUp"))
	}
}

// recipient is the screening of the crypto's recipient.
type recipient struct {
	*faultyStore
	verdict exchange.Verdict
	cold    bool // the sending wallet
	clear   func() bool
}

func (r *recipient) SigningTerms(ctx context.Context, id uuid.UUID) (exchange.SigningTerms, error) {
	p, err := r.ChainPayment(ctx, id)
	return exchange.SigningTerms{Payment: p, External: true, Cold: r.cold}, err
}

func (r *recipient) RecordRecipient(_ context.Context, _ uuid.UUID, _ []exchange.Screening) error {
	return nil
}

func (r *recipient) Screen(context.Context, exchange.Counterparty) (exchange.Screening, error) {
	if r.clear() {
		return exchange.Screening{Screener: "service", Verdict: exchange.VerdictClear}, nil
	}
	return exchange.Screening{Screener: "service", Verdict: r.verdict}, nil
}

// paying screens the recipient before anything is signed.
func paying(known recipient) func(*parkedCommand, *harness) {
	return func(c *parkedCommand, w *harness) {
		r := &recipient{faultyStore: w.store, clear: c.mended, verdict: known.verdict, cold: known.cold}
		w.env.RegisterActivityWithOptions(&activities.Signing{
			Signer: w.chain, Store: w.store, Recipients: &activities.Recipients{Store: r, Screener: r},
		}, replaced(""))
	}
}

// coldOffer runs an order that was opened against a cold wallet. A retry parks it again, so the runbook asks for a
// refund.
func coldOffer(t *testing.T, c *parkedCommand) {
	w := newHarness(t)
	paying(recipient{cold: true})(c, w)
	flow := workflows.OnRampID(w.request.ID)
	c.await(t, w.env, w.signs, flow, func() {
		w.command(c.verb)
		if c.verb == activities.VerbRetry {
			w.at(time.Hour, func() { w.command(activities.VerbRefund) })
		}
	})
	w.run(t)
	wants(c.verb, "")(t, w)
	ended(t, w, exchange.OrderFailed, exchange.DetailRefundOpen)
	refunded(price)(t, w)
	if w.chain.built != 0 {
		t.Error("something was signed for a cold wallet")
	}
}

// overduePayout runs a transaction that can't be checked. The retry signal of the Web UI ends the pause between two
// checks, and the same transaction is delivered.
func overduePayout(t *testing.T, c *parkedCommand) {
	w := newHarness(t)
	w.store.fault = afterCall("RecordBroadcast", func(call string) error {
		if call == "LiveAttempts" && !c.mended() {
			return errBug
		}
		return nil
	})
	c.await(t, w.env, w.signs, "crypto-payout:", func() { _ = w.env.SignalWorkflowByID(payoutFlow(w), workflows.SignalRetry, nil) })
	w.run(t)
	delivered(t, w)
	if took := w.env.Now().Sub(w.start); took > 8*time.Minute || w.chain.built != 1 {
		t.Errorf("the order took %s and %d transactions", took, w.chain.built)
	}
}
