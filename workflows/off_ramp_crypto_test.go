package workflows_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

func givingBack() []sell {
	const min = time.Minute
	failed := func(w *saleHarness) {
		w.request.RefundAddress = ""
		w.payouts(refuses("2040"))
		w.deposit(min, 1, crypto("10"))
	}
	return []sell{
		{
			name: "the customer names an address later", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonRefundAddress}, check: after(3 * time.Hour),
			set: func(w *saleHarness) {
				failed(w)
				w.at(3*time.Hour, func() {
					w.names()
					w.env.SignalWorkflow(workflows.SignalRefundAddress, nil)
				})
			},
		},
		{
			name: "the last payout has to cool off", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen, check: after(exchange.RefundCoolOff + 2*min),
			set: func(w *saleHarness) {
				w.payouts(refuses("2040"))
				w.deposit(min, 1, crypto("10"))
				// The database's own clock, which it compares with, does not skip time: at the end of the flow's wait the policy
				// says that the refused payout is old enough.
				w.startAt(time.Now().UTC().Truncate(time.Second).Add(-3 * min))
				over := 2*min + 7*time.Second + exchange.RefundCoolOff
				w.at(over-time.Second, func() {
					if n := len(w.chain.sent(exchange.ForRefund)); n != 0 {
						w.t.Errorf("%d refunds were sent before the end of the cool-off", n)
					}
				})
				w.at(over, func() { storetest.Exec(w.t, w.store.Store, `UPDATE refund_policy SET cool_off_seconds = 0`) })
			},
		},
		{
			name: "the payout was made after all", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonRefundAddress, workflows.ReasonRefundClaimed},
			set: func(w *saleHarness) {
				failed(w)
				w.payouts(payer{code: "2040", after: 5 * time.Second, late: 5 * min})
				w.at(10*min, w.claim(true))
				w.at(time.Hour, w.tell("resolve"))
			},
			check: func(t *testing.T, w *saleHarness) {
				if swept, back := len(w.chain.sent(exchange.ForSweep)), len(w.chain.sent(exchange.ForRefund)); swept != 1 || back != 0 {
					t.Errorf("the crypto was swept %d times and given back %d times", swept, back)
				}
			},
		},
		{
			name: "one source claimed that it was paid, without proof", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonRefundAddress, workflows.ReasonRefundClaimed, workflows.ReasonRefundSecond},
			check:  every(responded("retry", ""), responded("agree", "")),
			set: func(w *saleHarness) {
				failed(w)
				w.at(10*min, w.claim(true))
				w.at(11*min, w.names)
				w.at(time.Hour, w.tell("retry"))
				w.at(2*time.Hour, w.agree("agree"))
			},
		},
		{
			name: "a payout proves true while the refund waits for its signature", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonPayoutSigning, workflows.ReasonRefundClaimed, workflows.ReasonRefundSecond},
			check:  every(responded("retry", ""), responded("agree", "")),
			set: func(w *saleHarness) {
				failed(w)
				w.request.RefundAddress = homeward
				w.chain.script = func(n int) outcome {
					if w.env.Now().Sub(w.start) < time.Hour {
						return outcome{trouble: exchange.Errorf(exchange.CodeForbidden, "no")}
					}
					return outcome{}
				}
				w.at(time.Hour, w.claim(true))
				w.at(48*time.Hour, w.tell("retry"))
				w.at(50*time.Hour, w.agree("agree"))
			},
		},
	}
}

// shortOfGas leaves the sending wallet without gas until a command is sent at the given time.
func (w *saleHarness) shortOfGas(at time.Duration, send func()) {
	c := &parkedCommand{verb: activities.VerbRetry}
	withoutGas(activities.TopUp{PaymentID: topUpPayment}, outcome{refused: chain.ReasonFunds})(c, w.harness)
	w.at(at, func() { c.sent = true; send() })
}

func funding() []sell {
	const min = time.Minute
	return []sell{
		{
			name: "paid from a wallet in our custody", status: sold, detail: none,
			check: every(tried(1), func(t *testing.T, w *saleHarness) {
				if left := w.balance(exchange.Owned(exchange.AccWalletBalance, w.market.CustomerWallet.ID, money.USDT)); !left.Equal(crypto("15")) {
					t.Errorf("the wallet has %s left", left)
				}
			}),
			set: func(w *saleHarness) { w.fromWallet() },
		},
		{
			name: "the wallet has no gas, then goes on", status: sold, detail: none, parked: []workflows.Reason{workflows.ReasonPayoutGasShort},
			set: func(w *saleHarness) {
				w.fromWallet()
				w.shortOfGas(time.Hour, w.tell("retry")) // long after the order's time
			},
		},
		{
			name: "the wallet has no gas, given up by an operator", status: exchange.OrderCancelled, detail: exchange.DetailExpired,
			parked: []workflows.Reason{workflows.ReasonPayoutGasShort}, check: every(responded("refund", ""), kept),
			set: func(w *saleHarness) {
				w.fromWallet()
				w.shortOfGas(time.Hour, w.tell("refund"))
			},
		},
		{
			name: "the wallet has no gas, given up by the customer", status: exchange.OrderCancelled, detail: exchange.DetailCancelled,
			parked: []workflows.Reason{workflows.ReasonPayoutGasShort}, check: every(responded("cancel", ""), kept),
			set: func(w *saleHarness) {
				w.fromWallet()
				w.shortOfGas(5*min, w.cancel)
			},
		},
		{
			name: "given up before it is signed", status: exchange.OrderCancelled, detail: exchange.DetailCancelled, check: every(responded("cancel", ""), kept),
			set: func(w *saleHarness) {
				w.fromWallet()
				w.store.hold = func() exchange.SigningHold { return exchange.HoldWatch }
				w.at(10*time.Second, func() { w.cancel(); w.store.hold = nil })
			},
		},
		{
			name: "given up too late", status: sold, detail: none, check: responded("cancel", exchange.CodeStateConflict),
			set: func(w *saleHarness) {
				w.fromWallet()
				w.at(2*time.Second, w.cancel)
			},
		},
	}
}

// kept checks that nothing left the customer's wallet.
func kept(t *testing.T, w *saleHarness) {
	t.Helper()
	a, err := w.store.Account(t.Context(), exchange.Owned(exchange.AccWalletBalance, w.market.CustomerWallet.ID, money.USDT))
	if err != nil || !a.Posted.Equal(crypto("25")) || a.Held.Sign() != 0 || len(w.chain.sent(exchange.ForFunding)) != 0 {
		t.Errorf("the wallet has %s, of which %s are held, %v", a.Posted, a.Held, err)
	}
}

func sweeping() []sell {
	const min = time.Minute
	return []sell{
		{
			name: "the sweep has no gas, then goes on", status: sold, detail: none, parked: []workflows.Reason{workflows.ReasonPayoutGasShort},
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("10"))
				w.at(time.Hour, w.tell("refund")) // the shillings are paid, so nothing goes back
				w.shortOfGas(2*time.Hour, w.tell("retry"))
			},
			check: every(responded("refund", exchange.CodeStateConflict), responded("retry", "")),
		},
	}
}

// exhaust lends every address of the pool to other orders, and each new one while others are quicker.
func (w *saleHarness) exhaust(quicker int) {
	for range 4 {
		w.market.Sale(w.t, w.store.Store, "10")
	}
	asked := 0
	w.store.fault = func(call string) error {
		if call == "OpenOffRamp" {
			if asked++; asked > 1 && asked <= quicker+1 {
				w.market.Sale(w.t, w.store.Store, "10")
			} else if asked > 1 {
				w.fuelPool()
			}
		}
		return nil
	}
	w.other = uuid.New() // the vendor's shillings are promised to others
}

func opening() []sell {
	const min = time.Minute
	grown := func(n int) func(*testing.T, *saleHarness) {
		return func(t *testing.T, w *saleHarness) {
			if w.keys.made != n {
				t.Errorf("%d wallets were made, want %d", w.keys.made, n)
			}
		}
	}
	return []sell{
		{
			name: "the pool is exhausted and grows", status: sold, detail: none, check: every(responded("open", ""), grown(1)),
			set: func(w *saleHarness) {
				w.exhaust(0)
				w.deposit(min, 1, crypto("10"))
			},
		},
		{
			name: "the pool is exhausted and full", check: every(responded("open", exchange.CodeEscrowExhausted), grown(0)),
			set: func(w *saleHarness) {
				w.exhaust(0)
				storetest.Exec(w.t, w.store.Store, `UPDATE escrow_policy SET keep_free = 0, most = 4, version = version + 1 WHERE network = 'tron'`)
			},
		},
		{
			name: "the pool grows and another order was quicker", status: sold, detail: none, check: every(responded("open", ""), grown(3)),
			set: func(w *saleHarness) {
				w.exhaust(2)
				w.deposit(min, 1, crypto("10"))
			},
		},
		{
			name: "the pool grows and others are always quicker", check: every(responded("open", exchange.CodeEscrowExhausted), grown(3)),
			set: func(w *saleHarness) { w.exhaust(3) },
		},
		{
			name: "refused", check: responded("open", exchange.CodeInsufficientOffer),
			set: func(w *saleHarness) {
				for range 3 {
					w.market.Sale(w.t, w.store.Store, "500")
				}
				w.market.Sale(w.t, w.store.Store, "450")
				w.request.Crypto = crypto("100") // of 50 that are left
			},
		},
	}
}
