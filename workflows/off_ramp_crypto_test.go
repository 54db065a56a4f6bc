package workflows_test

import (
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/workflows"
)

func givingBack() []sell {
	const min = time.Minute
	failed := func(m *market, waits exchange.RefundWait) {
		m.payouts, m.waits = []momoOutcome{wasRefused("payee", "momo-refused", "2040")}, waits
		m.deposit(min, 1, crypto("10"))
	}
	on := func(m *market) func() {
		return func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.waits = ""
		}
	}
	return []sell{
		{
			name: "the customer names an address later", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonRefundAddress}, check: after(3*time.Hour + 20*time.Second),
			set: func(m *market) {
				failed(m, exchange.RefundWaitsAddress)
				m.at(3*time.Hour, func() {
					on(m)()
					m.env.SignalWorkflow(workflows.SignalRefundAddress, nil)
				})
			},
		},
		{
			name: "the payout was made after all", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonRefundClaimed},
			set: func(m *market) {
				failed(m, exchange.RefundWaitsClaim)
				m.at(time.Hour, m.command("resolve"))
			},
			check: func(t *testing.T, m *market) {
				if m.swept != 1 || m.refunded != 0 {
					t.Errorf("the crypto was swept %d times and given back %d times", m.swept, m.refunded)
				}
			},
		},
	}
}

func funding() []sell {
	const min = time.Minute
	return []sell{
		{
			name: "paid from a wallet in our custody", status: sold, detail: none, check: tried(1),
			set: func(m *market) { m.request.FundWalletID = id(10) },
		},
		{
			name: "the wallet has no gas, then goes on", status: sold, detail: none, parked: []workflows.Reason{workflows.ReasonPayoutGasShort},
			set: func(m *market) {
				m.request.FundWalletID, m.funding = id(10), []string{"payout-gas_wallet_short", ""}
				m.at(time.Hour, m.command("retry")) // long after the order's time
			},
		},
		{
			name: "the wallet has no gas, given up by an operator", status: exchange.OrderCancelled, detail: exchange.DetailExpired,
			parked: []workflows.Reason{workflows.ReasonPayoutGasShort}, check: responded("refund", ""),
			set: func(m *market) {
				m.request.FundWalletID, m.funding = id(10), []string{"payout-gas_wallet_short"}
				m.at(time.Hour, m.command("refund"))
			},
		},
		{
			name: "the wallet has no gas, given up by the customer", status: exchange.OrderCancelled, detail: exchange.DetailCancelled,
			parked: []workflows.Reason{workflows.ReasonPayoutGasShort}, check: responded("cancel", ""),
			set: func(m *market) {
				m.request.FundWalletID, m.funding = id(10), []string{"payout-gas_wallet_short"}
				m.at(min, m.cancel)
			},
		},
		{
			name: "given up before it is signed", status: exchange.OrderCancelled, detail: exchange.DetailCancelled, check: responded("cancel", ""),
			set: func(m *market) {
				m.request.FundWalletID = id(10)
				m.at(10*time.Second, m.cancel)
			},
		},
		{
			name: "given up too late", status: sold, detail: none, check: responded("cancel", exchange.CodeStateConflict),
			set: func(m *market) {
				m.request.FundWalletID, m.signed = id(10), true
				m.at(10*time.Second, m.cancel)
			},
		},
	}
}

func sweeping() []sell {
	const min = time.Minute
	return []sell{
		{
			name: "the sweep has no gas, then goes on", status: sold, detail: none, parked: []workflows.Reason{workflows.ReasonPayoutGasShort},
			set: func(m *market) {
				m.sweeps = []string{"payout-gas_wallet_short", ""}
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, m.command("refund")) // the shillings are paid, so nothing goes back
				m.at(2*time.Hour, m.command("retry"))
			},
			check: every(responded("refund", exchange.CodeStateConflict), responded("retry", "")),
		},
	}
}

func opening() []sell {
	const min = time.Minute
	return []sell{
		{
			name: "the pool is exhausted and grows", status: sold, detail: none, check: responded("open", ""),
			set: func(m *market) {
				m.exhausted = 1
				m.deposit(min, 1, crypto("10"))
			},
		},
		{name: "the pool is exhausted and full", set: func(m *market) { m.exhausted, m.full = 1, true }, check: responded("open", exchange.CodeEscrowExhausted)},
		{
			name: "the pool grows and another order was quicker", status: sold, detail: none, check: responded("open", ""),
			set: func(m *market) {
				m.exhausted = 3
				m.deposit(min, 1, crypto("10"))
			},
		},
		{name: "the pool grows and others are always quicker", set: func(m *market) { m.exhausted = 4 }, check: responded("open", exchange.CodeEscrowExhausted)},
		{
			name: "refused", check: responded("open", exchange.CodeInsufficientOffer),
			set: func(m *market) {
				m.fault = func(string) error { return exchange.Errorf(exchange.CodeInsufficientOffer, "the offer has less left") }
			},
		},
	}
}
