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
		{name: "paid", set: func(w *saleHarness) { w.deposit(min, 1, crypto("10")) }, status: sold, detail: none, check: every(responded("open", ""), tried(1), took(1, exchange.ClaimExact))},
		{
			name: "final before it is seen", status: sold, detail: none,
			set: func(w *saleHarness) { w.at(min, w.comes(1, exchange.DepositFinal, crypto("10"), true)) },
		},
		{
			name: "nothing comes", set: func(*saleHarness) {}, status: exchange.OrderCancelled, detail: exchange.DetailExpired, check: after(30 * min),
		},
		{
			name: "seen in time and final after it", status: sold, detail: none,
			set: func(w *saleHarness) {
				w.at(29*min, w.comes(1, exchange.DepositSeen, crypto("10"), true))
				w.at(50*min, w.comes(1, exchange.DepositFinal, crypto("10"), true))
			},
		},
		{
			name: "reorganised away, and nothing more", status: exchange.OrderCancelled, detail: exchange.DetailExpired, check: after(40 * min),
			set: func(w *saleHarness) {
				w.at(20*min, w.comes(1, exchange.DepositSeen, crypto("10"), true))
				w.at(25*min, w.comes(1, exchange.DepositOrphaned, crypto("10"), true))
			},
		},
		{
			name: "reorganised away, and back", status: sold, detail: none,
			set: func(w *saleHarness) {
				w.at(20*min, w.comes(1, exchange.DepositSeen, crypto("10"), true))
				w.at(25*min, w.comes(1, exchange.DepositOrphaned, crypto("10"), true))
				w.deposit(38*min, 1, crypto("10"))
			},
		},
		{
			name: "all signals at once", status: sold, detail: none,
			set: func(w *saleHarness) {
				w.at(min, func() {
					w.comes(1, exchange.DepositSeen, crypto("10"), true)()
					w.comes(1, exchange.DepositOrphaned, crypto("10"), true)()
					w.comes(1, exchange.DepositFinal, crypto("10"), true)()
				})
			},
		},
		{
			name: "the signals are lost", status: sold, detail: none, check: after(5 * min),
			set: func(w *saleHarness) { w.at(min, w.comes(1, exchange.DepositFinal, crypto("10"), false)) },
		},
		{
			name: "the signals are lost while the flow is away", status: sold, detail: none,
			set: func(w *saleHarness) {
				w.store.lost = func(call string) error {
					if call != "OpenOffRamp" || w.final.Number > watchedTo {
						return nil
					}
					w.comes(1, exchange.DepositFinal, crypto("10"), false)()
					return exchange.Errorf(exchange.CodeUnavailable, "the worker died")
				}
			},
			check: func(t *testing.T, w *saleHarness) {
				if o := w.order(); o.DepositAt.IsZero() || o.CompletedAt.After(w.start.Add(3*min)) {
					t.Errorf("the sale was completed at %s", o.CompletedAt)
				}
			},
		},
		{
			name: "its time is over before a lost signal", status: sold, detail: none,
			set: func(w *saleHarness) {
				w.at(29*min+50*time.Second, w.comes(1, exchange.DepositSeen, crypto("10"), false))
				w.at(33*min, w.comes(1, exchange.DepositFinal, crypto("10"), false))
			},
		},
		{
			name: "a signal about nothing", status: sold, detail: none,
			set: func(w *saleHarness) {
				w.at(30*time.Second, func() { w.env.SignalWorkflow(workflows.SignalDeposit, workflows.DepositRef{DepositID: id(99)}) })
				w.at(40*time.Second, func() { w.env.SignalWorkflow(workflows.SignalDeposit, "nothing at all") })
				w.deposit(min, 1, crypto("10"))
			},
		},
		{ // D6: the price and the end of a sale are not anybody's to decide
			name: "others' money, then the seller's", status: sold, detail: none,
			check: every(took(1, exchange.ClaimDuplicate), took(2, exchange.ClaimDuplicate), took(3, exchange.ClaimExact), tried(1)),
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("0.01"))
				w.deposit(3*min, 2, crypto("12"))
				w.deposit(5*min, 3, crypto("10"))
			},
		},
		{
			name: "others' money, and the seller cancels", status: exchange.OrderCancelled, detail: exchange.DetailCancelled,
			check: every(responded("cancel", ""), took(1, exchange.ClaimLate)),
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("12"))
				w.at(5*min, w.cancel)
			},
		},
		{
			name: "another amount, for which the seller wants to be paid", status: sold, detail: none,
			check: every(responded(workflows.UpdateAcceptDeposit, ""), took(1, exchange.ClaimDuplicate), took(2, exchange.ClaimRepriced), tried(1), func(t *testing.T, w *saleHarness) {
				if o := w.order(); !o.Price.Fiat.Equal(money.Must(money.KES, "1228")) || o.CompletedAt.After(w.start.Add(15*min)) {
					t.Errorf("the price is %s, at %s", o.Price.Fiat, o.CompletedAt)
				}
			}),
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("0.01"))
				w.deposit(3*min, 2, crypto("9.5"))
				w.at(6*min, w.says(workflows.UpdateAcceptDeposit))
			},
		},
		{
			name: "another amount, which the seller wants back", status: exchange.OrderFailed, detail: exchange.DetailMismatch,
			check: every(responded(workflows.UpdateReturnDeposit, ""), took(1, exchange.ClaimUnder), tried()),
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("9.5"))
				w.at(5*min, w.says(workflows.UpdateReturnDeposit))
			},
		},
		{
			name: "another amount that can't be priced, then the right one", status: sold, detail: none,
			check: every(responded(workflows.UpdateAcceptDeposit, exchange.CodeStateConflict), took(1, exchange.ClaimDuplicate), took(2, exchange.ClaimExact), tried(1)),
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("4"))
				w.at(5*min, w.says(workflows.UpdateAcceptDeposit))
				w.deposit(7*min, 2, crypto("10"))
			},
		},
		{
			name: "a word about nothing", status: sold, detail: none, check: responded(workflows.UpdateReturnDeposit, exchange.CodeNotFound),
			set: func(w *saleHarness) {
				w.at(30*time.Second, w.says(workflows.UpdateReturnDeposit))
				w.deposit(min, 1, crypto("10"))
			},
		},
		{
			name: "a word after the right amount was seen", status: sold, detail: none,
			check: every(responded(workflows.UpdateAcceptDeposit, exchange.CodeStateConflict), took(1, exchange.ClaimDuplicate), took(2, exchange.ClaimExact)),
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("9.5"))
				w.at(3*min, w.comes(2, exchange.DepositSeen, crypto("10"), true))
				w.at(4*min, w.says(workflows.UpdateAcceptDeposit))
				w.at(5*min, w.comes(2, exchange.DepositFinal, crypto("10"), true))
			},
		},
		{
			name: "priced anew", set: func(w *saleHarness) { w.deposit(min, 1, crypto("9.5")) }, status: sold, detail: none,
			check: every(took(1, exchange.ClaimRepriced), func(t *testing.T, w *saleHarness) {
				if !w.order().Price.Fiat.Equal(money.Must(money.KES, "1228")) {
					t.Errorf("the price is %s", w.order().Price.Fiat)
				}
			}),
		},
		{
			name: "too little", set: func(w *saleHarness) { w.deposit(min, 1, crypto("4")) }, status: exchange.OrderFailed, detail: exchange.DetailMismatch,
			check: every(took(1, exchange.ClaimUnder), tried()),
		},
		{
			name: "too much", set: func(w *saleHarness) { w.deposit(min, 1, crypto("500.01")) }, status: exchange.OrderFailed, detail: exchange.DetailMismatch,
			check: took(1, exchange.ClaimOver),
		},
		{
			name: "another coin, then the right one", status: sold, detail: none, check: every(took(1, exchange.ClaimWrongAsset), took(2, exchange.ClaimExact)),
			set: func(w *saleHarness) {
				w.deposit(min, 1, money.Must(money.USDC, "10"))
				w.deposit(5*min, 2, crypto("10"))
			},
		},
		{
			name: "another coin, and nothing more", status: exchange.OrderCancelled, detail: exchange.DetailExpired,
			set: func(w *saleHarness) { w.deposit(min, 1, money.Must(money.USDC, "10")) },
		},
		{
			name: "two deposits", status: sold, detail: none, check: every(took(1, exchange.ClaimExact), took(2, exchange.ClaimDuplicate), tried(1)),
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("10"))
				w.at(2*min+5*time.Second, w.comes(2, exchange.DepositFinal, crypto("10"), true)) // while the payout is under way
			},
		},
		{
			name: "a second deposit without a signal", status: sold, detail: none, check: took(2, exchange.ClaimDuplicate),
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("10"))
				w.at(2*min+5*time.Second, w.comes(2, exchange.DepositFinal, crypto("10"), false))
			},
		},
	}
}

func givingUp() []sell {
	const min = time.Minute
	return []sell{
		{
			name: "cancelled", set: func(w *saleHarness) { w.at(min, w.cancel) }, status: exchange.OrderCancelled, detail: exchange.DetailCancelled,
			check: every(responded("cancel", ""), after(min)),
		},
		{
			name: "cancelled when a deposit was seen", status: sold, detail: none, check: responded("cancel", exchange.CodeStateConflict),
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("10"))
				w.at(90*time.Second, w.cancel)
			},
		},
		{
			name: "cancelled while a deposit comes without a signal", status: sold, detail: none, check: responded("cancel", exchange.CodeStateConflict),
			set: func(w *saleHarness) {
				w.at(min, w.comes(1, exchange.DepositSeen, crypto("10"), false))
				w.at(2*min, w.cancel)
				w.at(3*min, w.comes(1, exchange.DepositFinal, crypto("10"), true))
			},
		},
		{
			name: "cancelled when it is over", status: sold, detail: none, check: responded("cancel", exchange.CodeStateConflict),
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("10"))
				w.at(2*min+10*time.Second, w.cancel)
			},
		},
	}
}
