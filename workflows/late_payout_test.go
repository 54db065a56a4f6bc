package workflows_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// stored stores what the operator reports about an attempt, in the order of its reports. A report with a ticket answers a
// query of ours. No flow is notified.
func (w *payoutHarness) stored(t *testing.T, a exchange.PaymentAttempt, reports ...exchange.Observation) {
	t.Helper()
	for i, o := range reports {
		kind := exchange.CallbackResult
		if o.Ticket != "" {
			kind = exchange.CallbackStatus
			if err := w.store.Store.SavePayoutQuery(t.Context(), a.ID, o.Ticket); err != nil {
				t.Fatal(err)
			}
		}
		body, err := json.Marshal(o)
		if err == nil {
			err = w.store.SaveCallback(t.Context(), exchange.MomoCallback{
				ID: uuid.New(), AttemptID: a.ID, Kind: kind, Body: body, ReceivedAt: w.start.Add(time.Duration(i) * time.Second),
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// signalled gives a command about the order by signal, as the Web UI does.
func (w *payoutHarness) signalled(verb, note string) {
	id := w.decreeWith(activities.ObjectOrder, w.request.ID, verb, note)
	w.env.SignalWorkflow(verb, workflows.CommandRef{CommandID: id})
}

// TestUnclaimedLatePayout ends at once and does not park.
func TestUnclaimedLatePayout(t *testing.T) {
	t.Parallel()
	no := func(ticket string) exchange.Observation {
		return exchange.Observation{State: exchange.SeenFailed, Code: "2040", Class: exchange.ClassPayee, Ticket: ticket}
	}
	yes := exchange.Observation{State: exchange.SeenSucceeded, Code: "0", Receipt: "UKL0000002"}
	for name, reports := range map[string][]exchange.Observation{
		"no source claims it":          {no("")},
		"denied twice since the claim": {yes, no("first"), no("second")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, a := refusedBefore(t, exchange.MomoRefund, payer{})
			w.stored(t, a, reports...)
			flow := workflows.LatePayoutID(a.ID)
			if got := w.checkLate(t, a); got != workflows.LateClean || w.signs.steps[flow]["activity"] != 1 || w.operator.looked != 0 {
				t.Errorf("ended %s after %v and %d queries", got, w.signs.steps[flow], w.operator.looked)
			}
			if p := w.payable(); p.Paid || p.Claimed {
				t.Errorf("the refund is %s, claimed %t", p.Status, p.Claimed)
			}
			w.signs.were(t, flow)
		})
	}
}

// TestLatePayoutThatIsAccounted does not park either: the payout completed its refund.
func TestLatePayoutThatIsAccounted(t *testing.T) {
	t.Parallel()
	p := payer{code: "0"}
	w, a := refusedBefore(t, exchange.MomoRefund, p)
	w.operator.fault = w.during(0, time.Minute, errAway, "resolve")
	if got := w.late(t, a, p); got != workflows.LateAccounted || w.operator.looked != 2 {
		t.Errorf("ended %s after %d queries", got, w.operator.looked)
	}
	w.paidOnce(t, a, true)
	refunded(price)(t, w.harness)
	w.decided(t, "")
	w.signs.were(t, workflows.LatePayoutID(a.ID))
}

// TestRefundThatWasPaidTwice waits for an operator to settle the exception.
func TestRefundThatWasPaidTwice(t *testing.T) {
	t.Parallel()
	p := payer{code: "0"}
	w, a := refusedBefore(t, exchange.MomoRefund, p)
	w.paidByAnother(t)
	w.at(time.Hour, func() { w.decided(t, exchange.ExcOpen) })
	w.at(time.Hour, func() { w.signalled(activities.VerbResolve, "the payee keeps it") })
	if got := w.late(t, a, p); got != workflows.LateResolved {
		t.Errorf("ended %s", got)
	}
	w.paidOnce(t, a, false)
	w.decided(t, exchange.ExcAccepted)
	w.signs.were(t, workflows.LatePayoutID(a.ID), workflows.ReasonRefundTwice)
}

// TestUnconfirmedClaim parks after some queries; a receipt settles it.
func TestUnconfirmedClaim(t *testing.T) {
	t.Parallel()
	p := payer{code: "0", mute: true}
	w, a := refusedBefore(t, exchange.MomoRefund, p)
	w.at(2*time.Hour, func() {
		if p := w.payable(); p.Paid || !p.Claimed {
			t.Errorf("the refund is %s, claimed %t", p.Status, p.Claimed)
		}
	})
	w.at(3*time.Hour, func() { w.signalled(activities.VerbResolve, "UKL0000002") })
	if got := w.late(t, a, p); got != workflows.LateAccounted || w.operator.looked < 6 {
		t.Errorf("ended %s after %d queries", got, w.operator.looked)
	}
	w.paidOnce(t, a, true)
	refunded(price)(t, w.harness)
	w.signs.were(t, workflows.LatePayoutID(a.ID), workflows.ReasonRefundLate)
}

// TestHoldsOfExchange compares the codes of the database with the reasons of flows.
func TestHoldsOfExchange(t *testing.T) {
	for hold, reason := range map[exchange.SigningHold]workflows.Reason{
		exchange.HoldForeign: workflows.ReasonPayoutForeignSend, exchange.HoldSentBefore: workflows.ReasonPayoutSentBefore,
		exchange.HoldUnexpected: workflows.ReasonPayoutUnexpected,
	} {
		if "payout-"+string(hold) != string(reason) {
			t.Errorf("%s is shown as %s", hold, reason)
		}
	}
}
