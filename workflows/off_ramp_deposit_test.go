package workflows_test

import (
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

func depositing() []sell {
	const min = time.Minute
	return []sell{
		{name: "paid", set: func(m *market) { m.deposit(min, 1, crypto("10")) }, status: sold, detail: none, check: every(responded("open", ""), tried(1), took(1, exchange.TakenExact))},
		{
			name: "final before it is seen", status: sold, detail: none,
			set: func(m *market) { m.at(min, m.comes(1, exchange.DepositFinal, crypto("10"), true)) },
		},
		{
			name: "nothing comes", set: func(*market) {}, status: exchange.OrderCancelled, detail: exchange.DetailExpired, check: after(30 * min),
		},
		{
			name: "seen in time and final after it", status: sold, detail: none,
			set: func(m *market) {
				m.at(29*min, m.comes(1, exchange.DepositSeen, crypto("10"), true))
				m.at(50*min, m.comes(1, exchange.DepositFinal, crypto("10"), true))
			},
		},
		{
			name: "reorganised away, and nothing more", status: exchange.OrderCancelled, detail: exchange.DetailExpired, check: after(40 * min),
			set: func(m *market) {
				m.at(20*min, m.comes(1, exchange.DepositSeen, crypto("10"), true))
				m.at(25*min, m.comes(1, exchange.DepositOrphaned, crypto("10"), true))
			},
		},
		{
			name: "reorganised away, and back", status: sold, detail: none,
			set: func(m *market) {
				m.at(20*min, m.comes(1, exchange.DepositSeen, crypto("10"), true))
				m.at(25*min, m.comes(1, exchange.DepositOrphaned, crypto("10"), true))
				m.deposit(38*min, 1, crypto("10"))
			},
		},
		{
			name: "all signals at once", status: sold, detail: none,
			set: func(m *market) {
				m.at(min, func() {
					m.comes(1, exchange.DepositSeen, crypto("10"), true)()
					m.comes(1, exchange.DepositOrphaned, crypto("10"), true)()
					m.comes(1, exchange.DepositFinal, crypto("10"), true)()
				})
			},
		},
		{
			name: "the signals are lost", status: sold, detail: none, check: after(5 * min),
			set: func(m *market) { m.at(min, m.comes(1, exchange.DepositFinal, crypto("10"), false)) },
		},
		{
			name: "its time is over before a lost signal", status: sold, detail: none,
			set: func(m *market) {
				m.at(29*min+50*time.Second, m.comes(1, exchange.DepositSeen, crypto("10"), false))
				m.at(33*min, m.comes(1, exchange.DepositFinal, crypto("10"), false))
			},
		},
		{
			name: "a signal about nothing", status: sold, detail: none,
			set: func(m *market) {
				m.at(30*time.Second, func() { m.env.SignalWorkflow(workflows.SignalDeposit, workflows.DepositRef{DepositID: id(99)}) })
				m.at(40*time.Second, func() { m.env.SignalWorkflow(workflows.SignalDeposit, "nothing at all") })
				m.deposit(min, 1, crypto("10"))
			},
		},
		{
			name: "priced anew", set: func(m *market) { m.deposit(min, 1, crypto("9.5")) }, status: sold, detail: none,
			check: every(took(1, exchange.TakenRepriced), func(t *testing.T, m *market) {
				if !m.order.Price.Fiat.Equal(money.Must(money.KES, "1228")) {
					t.Errorf("the price is %s", m.order.Price.Fiat)
				}
			}),
		},
		{
			name: "too little", set: func(m *market) { m.deposit(min, 1, crypto("4")) }, status: exchange.OrderFailed, detail: exchange.DetailMismatch,
			check: every(took(1, exchange.TakenMismatch), tried()),
		},
		{
			name: "too much", set: func(m *market) { m.deposit(min, 1, crypto("21")) }, status: exchange.OrderFailed, detail: exchange.DetailMismatch,
		},
		{
			name: "another coin, then the right one", status: sold, detail: none, check: every(took(1, exchange.TakenWrongAsset), took(2, exchange.TakenExact)),
			set: func(m *market) {
				m.deposit(min, 1, money.Must(money.USDC, "10"))
				m.deposit(5*min, 2, crypto("10"))
			},
		},
		{
			name: "another coin, and nothing more", status: exchange.OrderCancelled, detail: exchange.DetailExpired,
			set: func(m *market) { m.deposit(min, 1, money.Must(money.USDC, "10")) },
		},
		{
			name: "two deposits", status: sold, detail: none, check: every(took(1, exchange.TakenExact), took(2, exchange.TakenDuplicate), tried(1)),
			set: func(m *market) {
				m.deposit(min, 1, crypto("10"))
				m.at(2*min+5*time.Second, m.comes(2, exchange.DepositFinal, crypto("10"), true)) // while the payout is under way
			},
		},
		{
			name: "a second deposit without a signal", status: sold, detail: none, check: took(2, exchange.TakenDuplicate),
			set: func(m *market) {
				m.deposit(min, 1, crypto("10"))
				m.at(2*min+5*time.Second, m.comes(2, exchange.DepositFinal, crypto("10"), false))
			},
		},
	}
}

func givingUp() []sell {
	const min = time.Minute
	return []sell{
		{
			name: "cancelled", set: func(m *market) { m.at(min, m.cancel) }, status: exchange.OrderCancelled, detail: exchange.DetailCancelled,
			check: every(responded("cancel", ""), after(min)),
		},
		{
			name: "cancelled when a deposit was seen", status: sold, detail: none, check: responded("cancel", exchange.CodeStateConflict),
			set: func(m *market) {
				m.deposit(min, 1, crypto("10"))
				m.at(90*time.Second, m.cancel)
			},
		},
		{
			name: "cancelled while a deposit comes without a signal", status: sold, detail: none, check: responded("cancel", exchange.CodeStateConflict),
			set: func(m *market) {
				m.at(min, m.comes(1, exchange.DepositSeen, crypto("10"), false))
				m.at(2*min, m.cancel)
				m.at(3*min, m.comes(1, exchange.DepositFinal, crypto("10"), true))
			},
		},
		{
			name: "cancelled when it is over", status: sold, detail: none, check: responded("cancel", exchange.CodeStateConflict),
			set: func(m *market) {
				m.deposit(min, 1, crypto("10"))
				m.at(2*min+15*time.Second, m.cancel)
			},
		},
	}
}
