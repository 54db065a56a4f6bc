package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
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

func responded(id string, want exchange.Code) func(*testing.T, *market) {
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
			check: every(tried(), responded("refund", "")),
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
			name: "an order that can't be resolved", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonDepositDenied},
			set: func(m *market) {
				m.said = []exchange.Verdict{exchange.VerdictHit}
				m.deposit(min, 1, crypto("10"))
				m.at(time.Hour, m.command("resolve"))
				m.at(2*time.Hour, m.command("refund"))
			},
			check: responded("resolve", exchange.CodeStateConflict),
		},
		{
			name: "denied between the screening and the payout, given back", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonDepositDenied}, check: every(tried(1), responded("refund", "")),
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
			name: "denied while it is parked because of the float, and cleared at once", status: sold, detail: none,
			parked: []workflows.Reason{workflows.ReasonMomoFloat},
			set: func(m *market) {
				short := momoOutcome{after: 40 * min, result: workflows.MomoPayoutResult{Reason: "momo-float", Class: "float"}}
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
	float := momoOutcome{after: time.Second, result: workflows.MomoPayoutResult{Reason: "momo-float", Class: "float"}}
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
			name: "declared not made by two officers: given back", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen, check: tried(1),
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
				m.payouts = []momoOutcome{{after: time.Second, result: workflows.MomoPayoutResult{Reason: "momo-suspended", Class: "credential"}}, wasPaid}
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
				m.payouts = []momoOutcome{{after: 2 * min, result: float.result}, wasPaid}
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
			name: "parked without float, then busy: parked no longer", status: sold, detail: none, parked: []workflows.Reason{workflows.ReasonMomoFloat},
			check: func(t *testing.T, m *market) {
				if err := m.answers["still parked"]; err != nil {
					t.Error("the flow is parked while it waits for the operator")
				}
			},
			set: func(m *market) {
				m.payouts = append(slices.Repeat([]momoOutcome{float}, 7), busy, wasPaid)
				m.deposit(min, 1, crypto("10"))
				m.at(38*min, func() {
					m.signs.mu.Lock()
					defer m.signs.mu.Unlock()
					if m.signs.alarmed[workflows.OffRampID(m.request.ID)] {
						m.answers["still parked"] = errBug
					}
				})
			},
		},
		{
			name: "a command is passed on", status: sold, detail: none, check: responded("resolve", ""),
			set: func(m *market) {
				m.payouts = []momoOutcome{{result: wasPaid.result, until: workflows.SignalResolve}}
				m.deposit(min, 1, crypto("10"))
				m.at(3*min, m.command("resolve"))
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
