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
	"kivuko/workflows"
)

// replaced registers activities in the place of those of the world.
func replaced(name string) activity.RegisterOptions {
	return activity.RegisterOptions{Name: name, DisableAlreadyRegisteredCheck: true}
}

// payoutRehearsals are the words with which an order's payment in crypto is parked. A retry delivers it, a refund gives
// the shillings back and nothing is signed any more.
func payoutRehearsals() map[workflows.Reason]rehearsal {
	stuck := func(set func(c *cue, w *world)) rehearsal { return rehearsal{retryOrRefund, stuckPayout(set)} }
	table := map[workflows.Reason]rehearsal{
		workflows.ReasonPayoutOverdue:    {onlyRetry, overduePayout},
		workflows.ReasonPayoutFailed:     stuck(untilMended(fate{reverts: true})),
		workflows.ReasonPayoutExpiring:   stuck(untilMended(fate{dropped: true})),
		workflows.ReasonPayoutSigning:    stuck(untilMended(fate{trouble: exchange.Errorf(exchange.CodeForbidden, "no")})),
		workflows.ReasonPayoutGas:        stuck(untilMended(fate{refused: chain.ReasonGas})),
		workflows.ReasonPayoutGasCap:     stuck(withoutGas(activities.TopUp{Refused: activities.GasAboveCap}, fate{})),
		workflows.ReasonPayoutGasLimit:   stuck(withoutGas(activities.TopUp{Refused: activities.GasLimit}, fate{})),
		workflows.ReasonPayoutGasShort:   stuck(withoutGas(activities.TopUp{PaymentID: topUpPayment}, fate{refused: chain.ReasonFunds})),
		workflows.ReasonPayoutGasLost:    stuck(withoutGas(activities.TopUp{PaymentID: topUpPayment}, fate{reverts: true})),
		workflows.ReasonPayoutSentBefore: stuck(held(exchange.HoldSentBefore)),
		// What left by a foreign transaction is settled before a retry.
		workflows.ReasonPayoutForeignSend: stuck(held(exchange.HoldForeign)),
		workflows.ReasonPayoutUnexpected:  stuck(held(exchange.HoldUnexpected)),
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
		table[r] = stuck(untilMended(fate{refused: word}))
	}
	return table
}

// stuckPayout plays a purchase whose crypto can't be sent.
func stuckPayout(set func(c *cue, w *world)) func(*testing.T, *cue) {
	return func(t *testing.T, c *cue) {
		w := newWorld()
		set(c, w)
		c.await(t, w.env, w.signs, workflows.OnRampID(w.request.ID), func() { w.command(c.verb) })
		w.run(t)
		wants(c.verb, "")(t, w)
		c.settled(t, w)
	}
}

// settled checks how a purchase ended: delivered, or given back.
func (c *cue) settled(t *testing.T, w *world) {
	t.Helper()
	if c.verb == activities.VerbRefund {
		ended(t, w, exchange.OrderFailed, exchange.DetailRefundOpen)
		refunded(price)(t, w)
		return
	}
	delivered(t, w)
}

// delivered checks that the buyer has the crypto and the vendor the shillings.
func delivered(t *testing.T, w *world) {
	t.Helper()
	ended(t, w, exchange.OrderCompleted, exchange.WaitNothing)
	if w.chain.paid(w.request.ID) != 1 || len(w.operator.paidOut(w.request.ID)) != 0 {
		t.Errorf("the crypto was paid %d times, the shillings back %d times", w.chain.paid(w.request.ID), len(w.operator.paidOut(w.request.ID)))
	}
}

// untilMended gives every transaction the same fate as long as the cause is there.
func untilMended(f fate) func(*cue, *world) {
	return func(c *cue, w *world) {
		w.chain.script = func(int) fate {
			if c.mended() {
				return fate{}
			}
			return f
		}
	}
}

func held(hold exchange.SigningHold) func(*cue, *world) {
	return func(c *cue, w *world) {
		w.book.hold = func() exchange.SigningHold {
			if c.mended() {
				return exchange.HoldNone
			}
			return hold
		}
	}
}

var topUpPayment = uuid.MustParse("0192f0a0-0000-7000-8000-00000000ab01")

// withoutGas lets the sending wallet lack native coin, of which the house gives none, or some by a payment with a fate of
// its own.
func withoutGas(answer activities.TopUp, gas fate) func(*cue, *world) {
	return func(c *cue, w *world) {
		topUp := false // the next transaction is that of the gas
		w.chain.script = func(int) fate {
			switch {
			case c.mended():
				return fate{}
			case topUp:
				topUp = false
				return gas
			}
			return fate{refused: chain.ReasonGas}
		}
		w.env.RegisterActivityWithOptions(func(context.Context, activities.TopUpInput) (activities.TopUp, error) {
			w.book.mu.Lock()
			defer w.book.mu.Unlock()
			if topUp = answer.PaymentID != uuid.Nil; topUp {
				main, _ := w.book.paymentOf(w.request.ID)
				w.book.payments[answer.PaymentID] = exchange.ChainPayment{
					ID: answer.PaymentID, Purpose: exchange.ForGas, ObjectID: main.ID, Network: main.Network, Amount: main.Amount,
					FromAddress: "TGas", ToAddress: main.FromAddress, Status: exchange.ChainApproved,
				}
			}
			return answer, nil
		}, replaced("ApproveTopUp"))
	}
}

// recipient is what is known of who is to get the crypto.
type recipient struct {
	*book
	verdict exchange.Verdict
	cold    bool // the sending wallet
	clear   func() bool
}

func (r *recipient) SigningTerms(ctx context.Context, id uuid.UUID) (exchange.SigningTerms, error) {
	p, err := r.ChainPayment(ctx, id)
	return exchange.SigningTerms{Payment: p, External: true, Cold: r.cold}, err
}

func (r *recipient) RecordRecipient(_ context.Context, _ uuid.UUID, _ []exchange.Screening) error {
	return run(r.book, "RecordRecipient", func() error { return nil })
}

func (r *recipient) Screen(context.Context, exchange.Counterparty) (exchange.Screening, error) {
	if r.clear() {
		return exchange.Screening{Screener: "service", Verdict: exchange.VerdictClear}, nil
	}
	return exchange.Screening{Screener: "service", Verdict: r.verdict}, nil
}

// paying has the recipient looked at before anything is signed.
func paying(known recipient) func(*cue, *world) {
	return func(c *cue, w *world) {
		r := &recipient{book: w.book, clear: c.mended, verdict: known.verdict, cold: known.cold}
		w.env.RegisterActivityWithOptions(&activities.Signing{
			Signer: w.chain, Store: w.book, Recipients: &activities.Recipients{Store: r, Screener: r},
		}, replaced(""))
	}
}

// coldOffer plays an order that was opened against a cold wallet. A retry parks it again, which is why the runbook asks for
// a refund.
func coldOffer(t *testing.T, c *cue) {
	w := newWorld()
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

// overduePayout plays a transaction that can't be looked at. The nudge of the Web UI ends the pause between two looks, and
// the same transaction is seen to its end.
func overduePayout(t *testing.T, c *cue) {
	w := newWorld()
	w.book.fault = afterCall("RecordBroadcast", func(call string) error {
		if call == "LiveAttempt" && !c.mended() {
			return errBug
		}
		return nil
	})
	flow := workflows.CryptoPayoutID(uuid.NewSHA1(w.request.ID, []byte("payment")))
	c.await(t, w.env, w.signs, flow, func() { _ = w.env.SignalWorkflowByID(flow, workflows.SignalRetry, nil) })
	w.run(t)
	delivered(t, w)
	if took := w.env.Now().Sub(w.start); took > 8*time.Minute || w.chain.built != 1 {
		t.Errorf("the order took %s and %d transactions", took, w.chain.built)
	}
}
