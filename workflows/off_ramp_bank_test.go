package workflows_test

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// counter is a bank payment with the officers' confirmations that the flow reads.
type counter struct {
	m     *market
	state string
	looks int
	begun int // how often a refused payment was put in the treasury's queue again
	// denied puts the sender on the deny list before a refused payment is put in the treasury's queue again.
	denied bool
}

func (c *counter) look(_ context.Context, in activities.BankInput) (activities.BankStep, error) {
	return step(c.m, "LookAtBank", func() (activities.BankStep, error) {
		c.looks++
		if c.state == activities.PayoutUncleared {
			c.state = activities.BankWaits // for the next look
			return activities.BankStep{State: activities.PayoutUncleared}, nil
		}
		if in.Again && c.denied {
			c.denied, c.state = false, activities.PayoutRefused
			return activities.BankStep{State: activities.PayoutUncleared}, nil
		}
		if in.Again && c.state == activities.PayoutRefused {
			c.state = activities.BankWaits
			c.begun++
		}
		return activities.BankStep{State: c.state}, nil
	})
}

// say lets officers confirm or refuse the payment, with or without a notice to the flow.
func (c *counter) say(state string, notified bool) func() {
	return func() {
		c.m.mu.Lock()
		if c.state = state; state == activities.PayoutPaid {
			c.m.paid++
			if err := c.m.move(exchange.OrderCompleted, exchange.WaitNothing); err != nil {
				panic(err)
			}
		}
		c.m.mu.Unlock()
		if notified {
			c.m.env.UpdateWorkflow(workflows.UpdateConfirmBank, state, c.m.answer("bank "+state), workflows.BankConfirmRef{})
		}
	}
}

// TestSaleIsPaidByBank waits for officers, and parks when none confirms in time.
func TestSaleIsPaidByBank(t *testing.T) {
	const min = time.Minute
	failed := exchange.OrderFailed
	for _, s := range []struct {
		name   string
		set    func(m *market, c *counter)
		status exchange.OrderStatus
		detail string
		parked []workflows.Reason
		begun  int
	}{
		{"confirmed at once", func(m *market, c *counter) { m.at(20*min, c.say(activities.PayoutPaid, true)) }, sold, none, nil, 0},
		{"by two officers", func(m *market, c *counter) {
			m.at(20*min, c.say(activities.BankWaitsSecond, true))
			m.at(50*min, func() {
				if m.order.StatusDetail != exchange.WaitBankSecond {
					m.answers["detail"] = errBug
				}
			})
			m.at(60*min, c.say(activities.PayoutPaid, true))
		}, sold, none, nil, 0},
		{"confirmed, and the flow is not notified", func(m *market, c *counter) { m.at(20*min, c.say(activities.PayoutPaid, false)) }, sold, none, nil, 0},
		{
			"decided hours later", func(m *market, c *counter) { m.at(9*time.Hour, c.say(activities.PayoutPaid, true)) }, sold, none,
			[]workflows.Reason{workflows.ReasonBankWaiting},
			0,
		},
		{"the house has too little at its bank", func(m *market, c *counter) {
			c.state = activities.PayoutFloatShort
			m.at(40*min, c.say(activities.BankWaits, false))
			m.at(90*min, c.say(activities.PayoutPaid, true))
		}, sold, none, nil, 0},
		{"refused, then paid all the same", func(m *market, c *counter) {
			m.at(20*min, c.say(activities.PayoutRefused, true))
			m.at(60*min, m.command("retry"))
			m.at(90*min, c.say(activities.PayoutPaid, true))
		}, sold, none, []workflows.Reason{workflows.ReasonBankRefused}, 1},
		{"refused, and given back", func(m *market, c *counter) {
			m.at(20*min, c.say(activities.PayoutRefused, true))
			m.at(60*min, m.command("refund"))
		}, failed, exchange.DetailRefundOpen, []workflows.Reason{workflows.ReasonBankRefused}, 0},
		{"the sender is denied since, and given back", func(m *market, c *counter) {
			c.state, m.said = activities.PayoutUncleared, []exchange.Verdict{exchange.VerdictClear, exchange.VerdictHit}
			m.at(60*min, m.command("refund"))
		}, failed, exchange.DetailRefundOpen, []workflows.Reason{workflows.ReasonDepositDenied}, 0},
		{"refused, the sender is denied since and cleared, then paid", func(m *market, c *counter) {
			c.denied, m.said = true, []exchange.Verdict{exchange.VerdictClear, exchange.VerdictHit, exchange.VerdictClear}
			m.at(20*min, c.say(activities.PayoutRefused, true))
			m.at(60*min, m.command("retry"))
			m.at(90*min, m.command("retry"))
			m.at(120*min, c.say(activities.PayoutPaid, true))
		}, sold, none, []workflows.Reason{workflows.ReasonBankRefused, workflows.ReasonDepositDenied}, 1},
		{"a look breaks off", func(m *market, c *counter) {
			m.fault = once("LookAtBank")
			m.at(20*min, c.say(activities.PayoutPaid, true))
		}, sold, none, nil, 0},
	} {
		t.Run(s.name, func(t *testing.T) {
			m := newMarket()
			m.request.PayoutMethod = exchange.PaymentMethodBank
			c := &counter{m: m, state: activities.BankWaits}
			m.env.RegisterActivityWithOptions(c.look, activity.RegisterOptions{Name: "LookAtBank"})
			m.deposit(time.Minute, 1, crypto("10"))
			s.set(m, c)
			m.run(t)
			if m.order.Status != s.status || m.order.StatusDetail != s.detail || m.answers["detail"] != nil || c.begun != s.begun {
				t.Errorf("the order is %s (%s); begun again %d times; while it waited for a second officer: %v", m.order.Status, m.order.StatusDetail, c.begun, m.answers["detail"])
			}
			m.sound(t)
			m.signs.were(t, workflows.OffRampID(m.request.ID), s.parked...)
			if c.looks > 40 || len(m.tries) > 0 {
				t.Errorf("%d looks, %d payouts by mobile money", c.looks, len(m.tries))
			}
		})
	}
}
