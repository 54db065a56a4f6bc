package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// sell is a scenario of a sale.
type sell struct {
	name   string
	set    func(m *market)
	status exchange.OrderStatus
	detail string
	parked []workflows.Reason
	check  func(t *testing.T, m *market)
}

func (s sell) play(t *testing.T) {
	m := newMarket()
	s.set(m)
	m.run(t)
	if m.order.Status != s.status || m.order.StatusDetail != s.detail {
		t.Errorf("the order is %s (%s), want %s (%s)", m.order.Status, m.order.StatusDetail, s.status, s.detail)
	}
	m.sound(t)
	m.signs.were(t, workflows.OffRampID(m.request.ID), s.parked...)
	if s.check != nil {
		s.check(t, m)
	}
}

const (
	sold = exchange.OrderCompleted
	none = exchange.WaitNothing
)

func told(id string, want exchange.Code) func(*testing.T, *market) {
	return func(t *testing.T, m *market) {
		t.Helper()
		err, heard := m.answers[id]
		if !heard {
			t.Fatalf("%s never got a response", id)
		}
		if got := code(err); got != want {
			t.Errorf("the response to %s is %q (%v), want %q", id, got, err, want)
		}
	}
}

func took(n byte, want exchange.DepositVerdict) func(*testing.T, *market) {
	return func(t *testing.T, m *market) {
		t.Helper()
		if got := m.claims[id(100+n)]; got != want {
			t.Errorf("the deposit %d was taken as %q, want %q", n, got, want)
		}
	}
}

func tried(want ...int) func(*testing.T, *market) {
	return func(t *testing.T, m *market) {
		t.Helper()
		if !slices.Equal(m.tries, want) {
			t.Errorf("the payouts were %v, want %v", m.tries, want)
		}
	}
}

func every(checks ...func(*testing.T, *market)) func(*testing.T, *market) {
	return func(t *testing.T, m *market) {
		t.Helper()
		for _, c := range checks {
			c(t, m)
		}
	}
}

// after checks that the scenario took about the given time.
func after(d time.Duration) func(*testing.T, *market) {
	return func(t *testing.T, m *market) {
		t.Helper()
		if took := m.env.Now().Sub(m.start); took < d || took > d+time.Minute {
			t.Errorf("it took %s, want %s", took, d)
		}
	}
}

func depositing() []sell {
	const min = time.Minute
	return []sell{
		{name: "paid", set: func(m *market) { m.deposit(min, 1, crypto("10")) }, status: sold, detail: none, check: every(told("open", ""), tried(1), took(1, exchange.TakenExact))},
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
			name: "a second deposit of which no signal tells", status: sold, detail: none, check: took(2, exchange.TakenDuplicate),
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
			check: every(told("cancel", ""), after(min)),
		},
		{
			name: "cancelled when a deposit was seen", status: sold, detail: none, check: told("cancel", exchange.CodeStateConflict),
			set: func(m *market) {
				m.deposit(min, 1, crypto("10"))
				m.at(90*time.Second, m.cancel)
			},
		},
		{
			name: "cancelled while a deposit comes of which no signal tells", status: sold, detail: none, check: told("cancel", exchange.CodeStateConflict),
			set: func(m *market) {
				m.at(min, m.comes(1, exchange.DepositSeen, crypto("10"), false))
				m.at(2*min, m.cancel)
				m.at(3*min, m.comes(1, exchange.DepositFinal, crypto("10"), true))
			},
		},
		{
			name: "cancelled when it is over", status: sold, detail: none, check: told("cancel", exchange.CodeStateConflict),
			set: func(m *market) {
				m.deposit(min, 1, crypto("10"))
				m.at(2*min+15*time.Second, m.cancel)
			},
		},
	}
}

func screened() []sell {
	const min = time.Minute
	return []sell{
		{
			name: "a denied sender, given back", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen, parked: []workflows.Reason{workflows.ReasonDepositDenied},
			set: func(m *market) {
				m.said = []exchange.Verdict{exchange.VerdictHit}
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, m.command("refund"))
			},
			check: every(tried(), told("refund", "")),
		},
		{
			name: "a denied sender, cleared", status: sold, detail: none, parked: []workflows.Reason{workflows.ReasonDepositDenied},
			set: func(m *market) {
				m.said = []exchange.Verdict{exchange.VerdictHit, exchange.VerdictClear}
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, m.command("retry"))
			},
		},
		{
			name: "an unknown sender, given back in the second try", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonDepositScreening},
			set: func(m *market) {
				m.said, m.refusals = []exchange.Verdict{exchange.VerdictUnknown}, 1
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, m.command("refund"))
				m.at(2*time.Hour, m.command("refund"))
			},
		},
		{
			name: "an order that nobody may resolve", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonDepositDenied},
			set: func(m *market) {
				m.said = []exchange.Verdict{exchange.VerdictHit}
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, m.command("resolve"))
				m.at(2*time.Hour, m.command("refund"))
			},
			check: told("resolve", exchange.CodeStateConflict),
		},
		{
			name: "denied between the screening and the payout, given back", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonDepositDenied}, check: every(tried(1), told("refund", "")),
			set: func(m *market) {
				m.said, m.payouts = []exchange.Verdict{exchange.VerdictClear, exchange.VerdictHit}, []momoOutcome{uncleared}
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, m.command("refund"))
			},
		},
		{
			name: "denied between two payouts, and cleared", status: sold, detail: none,
			parked: []workflows.Reason{workflows.ReasonDepositDenied}, check: tried(1, 2, 2),
			set: func(m *market) {
				m.said = []exchange.Verdict{exchange.VerdictClear, exchange.VerdictHit, exchange.VerdictClear}
				m.payouts = []momoOutcome{wasRefused("busy", "momo-refused", "17"), uncleared, wasPaid}
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, m.command("retry"))
			},
		},
		{
			name: "denied while a person is called because of the float, and cleared at once", status: sold, detail: none,
			parked: []workflows.Reason{workflows.ReasonMomoFloat},
			set: func(m *market) {
				short := momoOutcome{after: 40 * min, result: workflows.MomoPayoutResult{Reason: "momo-float"}}
				m.payouts = []momoOutcome{short, short, uncleared, {after: 4 * time.Hour, result: wasPaid.result}}
				m.deposit(min, 1, crypto("10"))
				m.at(4*time.Hour, m.command("retry")) // only the payout that is under way waits for it
			},
			check: every(tried(1, 1, 1, 1), func(t *testing.T, m *market) {
				if !slices.Equal(m.verbs, []string{"retry"}) {
					t.Errorf("the payout received %v", m.verbs)
				}
			}),
		},
	}
}

// uncleared is a payout that does not begin because the sender of the crypto must be screened again.
var uncleared = momoOutcome{after: time.Second, result: workflows.MomoPayoutResult{Reason: "deposit-screening"}}

// claimed is a payout that is not sent because a source claims that a refused one was made.
var claimed = momoOutcome{after: time.Second, result: workflows.MomoPayoutResult{Reason: "momo-claimed"}}

func payingOut() []sell {
	const min = time.Minute
	busy := wasRefused("busy", "momo-refused", "17")
	float := momoOutcome{after: time.Second, result: workflows.MomoPayoutResult{Reason: "momo-float"}}
	full := momoOutcome{after: time.Second, result: workflows.MomoPayoutResult{Reason: "momo-payee_limit", Class: "payee_day"}}
	return []sell{
		{
			name: "a payee who can't be paid", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen, check: tried(1),
			set: func(m *market) {
				m.payouts = []momoOutcome{wasRefused("payee", "momo-refused", "2040")}
				m.deposit(min, 1, crypto("10"))
			},
		},
		{
			name: "a payee who can't be paid, and a refund that must wait", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonStepFailed},
			set: func(m *market) {
				m.payouts, m.refusals = []momoOutcome{wasRefused("payee", "momo-refused", "2040")}, 1
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, m.command("retry"))
			},
		},
		{
			name: "busy, then paid", status: sold, detail: none, check: tried(1, 2, 3),
			set: func(m *market) {
				m.payouts = []momoOutcome{busy, busy, wasPaid}
				m.deposit(min, 1, crypto("10"))
			},
		},
		{
			name: "busy for ever, given back", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonMomoRefused}, check: tried(1, 2, 3, 4),
			set: func(m *market) {
				m.payouts = []momoOutcome{busy}
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, m.command("refund"))
			},
		},
		{
			name: "the payee's limit, paid later", status: sold, detail: none, parked: []workflows.Reason{workflows.ReasonMomoPayeeLimit}, check: tried(1, 2),
			set: func(m *market) {
				m.payouts = []momoOutcome{wasRefused("payee_limit", "momo-payee_limit", "8"), wasPaid}
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, m.command("retry"))
			},
		},
		{
			name: "declared not made by two persons: given back", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen, check: tried(1),
			set: func(m *market) {
				m.payouts = []momoOutcome{wasRefused("declared", "momo-refused", "declared")}
				m.deposit(min, 1, crypto("10"))
			},
		},
		{
			name: "a refused payout that somebody claims: waits until that is settled", status: sold, detail: none, check: tried(1, 2, 2, 2),
			parked: []workflows.Reason{workflows.ReasonMomoClaimed, workflows.ReasonMomoClaimed},
			set: func(m *market) {
				m.payouts = []momoOutcome{busy, claimed, claimed, wasPaid}
				m.deposit(min, 1, crypto("10"))
			},
		},
		{
			name: "a refused payout that somebody claims, and a receipt that does not fit", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonMomoClaimed}, check: tried(1, 2),
			set: func(m *market) {
				m.payouts = []momoOutcome{busy, claimed}
				m.settle = func() error { return conflict("another amount") }
				m.deposit(min, 1, crypto("10"))
				m.at(10*min, m.command("resolve"))
				m.at(12*min, m.command("refund"))
			},
		},
		{
			name: "the payee gets no more today: paid tomorrow", status: sold, detail: none,
			check: func(t *testing.T, m *market) {
				tried(1, 1)(t, m)
				if len(m.answers) != 1 { // to the opening
					t.Errorf("it did not wait for the next day, or for longer: %v", m.answers)
				}
			},
			set: func(m *market) {
				m.payouts = []momoOutcome{full, wasPaid}
				m.deposit(min, 1, crypto("10"))
				m.at(11*time.Hour+58*min, func() { // 23:58 in Kenya
					if m.order.StatusDetail != exchange.WaitPayeeDay || len(m.tries) != 1 {
						m.answers["waits"] = errBug
					}
				})
				m.at(12*time.Hour+2*min, func() { m.answers["paid"] = errBug }) // the flow is over by then
			},
		},
		{
			name: "the payee gets no more tomorrow either: given back", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonMomoPayeeLimit}, check: tried(1, 1),
			set: func(m *market) {
				m.payouts = []momoOutcome{full}
				m.deposit(min, 1, crypto("10"))
				m.at(24*time.Hour, m.command("refund"))
			},
		},
		{
			name: "suspended: nothing was sent, so that the try is the same", status: sold, detail: none,
			parked: []workflows.Reason{workflows.ReasonMomoSuspended}, check: tried(1, 1),
			set: func(m *market) {
				m.payouts = []momoOutcome{{after: time.Second, result: workflows.MomoPayoutResult{Reason: "momo-suspended"}}, wasPaid}
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, m.command("retry"))
			},
		},
		{
			name: "suspended, then the breaker is closed: it goes on by itself, after the payout on trial", status: sold, detail: none,
			parked: []workflows.Reason{workflows.ReasonMomoSuspended}, check: every(tried(1, 1, 1), after(time.Hour+2*min+5*time.Second)),
			set: func(m *market) {
				m.payouts = []momoOutcome{
					{after: time.Second, result: workflows.MomoPayoutResult{Reason: "momo-suspended", Class: "credential"}},
					{after: time.Second, result: workflows.MomoPayoutResult{Reason: "momo-suspended", Class: "trial"}},
					wasPaid,
				}
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, func() { m.env.SignalWorkflow(workflows.SignalFloat, nil) })
			},
		},
		{
			name: "refused with our credential: another payout when the breaker is closed, under a new id", status: sold, detail: none,
			parked: []workflows.Reason{workflows.ReasonMomoCredential}, check: tried(1, 2),
			set: func(m *market) {
				m.payouts = []momoOutcome{wasRefused("credential", "momo-credential", "2001"), wasPaid}
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, func() { m.env.SignalWorkflow(workflows.SignalFloat, nil) })
			},
		},
		{
			name: "no float, topped up soon, and a second time too late", status: sold, detail: none, check: every(tried(1, 1), after(3*min)),
			set: func(m *market) {
				m.payouts = []momoOutcome{float, wasPaid}
				m.deposit(min, 1, crypto("10"))
				m.at(3*min, func() { m.env.SignalWorkflow(workflows.SignalFloat, nil) })
				m.at(3*min+5*time.Second, func() { m.env.SignalWorkflow(workflows.SignalFloat, nil) })
			},
		},
		{
			name: "topped up while a try finds no float", status: sold, detail: none, check: every(tried(1, 1), after(4*min)),
			set: func(m *market) {
				m.payouts = []momoOutcome{{after: 2 * min, result: workflows.MomoPayoutResult{Reason: "momo-float"}}, wasPaid}
				m.deposit(min, 1, crypto("10"))
				m.at(3*min, func() { m.env.SignalWorkflow(workflows.SignalFloat, nil) })
			},
		},
		{
			name: "the operator says that there is no float", status: sold, detail: none, check: tried(1, 2),
			set: func(m *market) {
				m.payouts = []momoOutcome{wasRefused("float", "momo-float", "1"), wasPaid}
				m.deposit(min, 1, crypto("10"))
			},
		},
		{
			name: "no float for an hour", status: sold, detail: none, parked: []workflows.Reason{workflows.ReasonMomoFloat},
			set: func(m *market) {
				m.payouts = append(slices.Repeat([]momoOutcome{float}, 7), wasPaid)
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, m.command("retry"))
			},
		},
		{
			name: "a callback is passed on", status: sold, detail: none,
			set: func(m *market) {
				m.payouts = []momoOutcome{{result: wasPaid.result, until: workflows.SignalCallback}}
				m.deposit(min, 1, crypto("10"))
				m.at(3*min, func() { m.env.SignalWorkflow(workflows.SignalCallback, workflows.CallbackRef{CallbackID: id(7)}) })
			},
			check: func(t *testing.T, m *market) {
				if m.callbacks != 1 {
					t.Errorf("%d callbacks were passed on", m.callbacks)
				}
			},
		},
		{
			name: "a command is passed on", status: sold, detail: none, check: told("resolve", ""),
			set: func(m *market) {
				m.payouts = []momoOutcome{{result: wasPaid.result, until: workflows.SignalResolve}}
				m.deposit(min, 1, crypto("10"))
				m.at(3*min, m.command("resolve"))
			},
		},
	}
}

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
			parked: []workflows.Reason{workflows.ReasonPayoutGasShort}, check: told("refund", ""),
			set: func(m *market) {
				m.request.FundWalletID, m.funding = id(10), []string{"payout-gas_wallet_short"}
				m.at(time.Hour, m.command("refund"))
			},
		},
		{
			name: "the wallet has no gas, given up by the customer", status: exchange.OrderCancelled, detail: exchange.DetailCancelled,
			parked: []workflows.Reason{workflows.ReasonPayoutGasShort}, check: told("cancel", ""),
			set: func(m *market) {
				m.request.FundWalletID, m.funding = id(10), []string{"payout-gas_wallet_short"}
				m.at(min, m.cancel)
			},
		},
		{
			name: "given up before it is signed", status: exchange.OrderCancelled, detail: exchange.DetailCancelled, check: told("cancel", ""),
			set: func(m *market) {
				m.request.FundWalletID = id(10)
				m.at(10*time.Second, m.cancel)
			},
		},
		{
			name: "given up too late", status: sold, detail: none, check: told("cancel", exchange.CodeStateConflict),
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
			check: every(told("refund", exchange.CodeStateConflict), told("retry", "")),
		},
	}
}

func opening() []sell {
	const min = time.Minute
	return []sell{
		{
			name: "the pool is exhausted and grows", status: sold, detail: none, check: told("open", ""),
			set: func(m *market) {
				m.exhausted = 1
				m.deposit(min, 1, crypto("10"))
			},
		},
		{name: "the pool is exhausted and full", set: func(m *market) { m.exhausted, m.full = 1, true }, check: told("open", exchange.CodeEscrowExhausted)},
		{
			name: "the pool grows and another order was quicker", status: sold, detail: none, check: told("open", ""),
			set: func(m *market) {
				m.exhausted = 3
				m.deposit(min, 1, crypto("10"))
			},
		},
		{name: "the pool grows and others are always quicker", set: func(m *market) { m.exhausted = 4 }, check: told("open", exchange.CodeEscrowExhausted)},
		{
			name: "refused", check: told("open", exchange.CodeInsufficientOffer),
			set: func(m *market) {
				m.fault = func(string) error { return exchange.Errorf(exchange.CodeInsufficientOffer, "the offer has less left") }
			},
		},
	}
}

// TestSales runs every scenario of an order that sells crypto.
func TestSales(t *testing.T) {
	for _, s := range slices.Concat(opening(), depositing(), givingUp(), screened(), payingOut(), givingBack(), funding(), sweeping()) {
		t.Run(s.name, s.play)
	}
}

// TestSalesSurviveFaults has each step of a sale fail once before it does its work, and once after it.
func TestSalesSurviveFaults(t *testing.T) {
	steps := []string{
		"OpenOffRamp", "ChainDeposit", "SeeDeposit", "TakeDeposit", "ScreenTerms", "Denied", "RecordDepositScreening", "ApproveSweep", "ReleaseEscrow",
		"OpenChainRefund", "CloseOffRamp", "LoseDeposit", "ApproveFunding", "OrderByID",
	}
	for _, call := range steps {
		for name, where := range map[string]func(m *market, f func(string) error){
			"before": func(m *market, f func(string) error) { m.fault = f },
			"after":  func(m *market, f func(string) error) { m.lost = f },
		} {
			t.Run(call+" "+name, func(t *testing.T) {
				m := newMarket()
				hits := 0
				where(m, func(c string) error {
					if c == call && hits < 2 {
						hits++
						return exchange.Errorf(exchange.CodeUnavailable, "the database is away")
					}
					return nil
				})
				status := sold
				switch call {
				case "OpenChainRefund":
					status = exchange.OrderFailed
					m.payouts = []momoOutcome{wasRefused("payee", "momo-refused", "2040")}
				case "ApproveFunding", "OrderByID":
					m.request.FundWalletID = id(10)
				case "LoseDeposit":
					m.at(30*time.Second, m.comes(1, exchange.DepositSeen, crypto("10"), true))
					m.at(40*time.Second, m.comes(1, exchange.DepositOrphaned, crypto("10"), true))
				case "CloseOffRamp":
					status = exchange.OrderCancelled
				}
				if status != exchange.OrderCancelled && m.request.FundWalletID == uuid.Nil {
					m.deposit(time.Minute, 1, crypto("10"))
				}
				m.run(t)
				if hits == 0 || m.order.Status != status {
					t.Errorf("after %d faults the order is %s, want %s", hits, m.order.Status, status)
				}
				m.sound(t)
			})
		}
	}
}
