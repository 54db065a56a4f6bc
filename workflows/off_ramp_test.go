package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// sell is a scenario of a sale.
type sell struct {
	name   string
	set    func(w *saleHarness)
	status exchange.OrderStatus
	detail string
	parked []workflows.Reason
	check  func(t *testing.T, w *saleHarness)
}

func (s sell) play(t *testing.T) {
	t.Parallel()
	w := newSale(t)
	s.set(w)
	w.run(t)
	if o := w.order(); o.Status != s.status || o.StatusDetail != s.detail {
		t.Errorf("the order is %s (%s), want %s (%s)", o.Status, o.StatusDetail, s.status, s.detail)
	}
	w.sound(t)
	w.signs.were(t, workflows.OffRampID(w.request.ID), s.parked...)
	if s.check != nil {
		s.check(t, w)
	}
}

const (
	sold = exchange.OrderCompleted
	none = exchange.WaitNothing
)

func responded(id string, want exchange.Code) func(*testing.T, *saleHarness) {
	return func(t *testing.T, w *saleHarness) {
		t.Helper()
		wants(id, want)(t, w.harness)
	}
}

func took(n int, want exchange.ClaimKind) func(*testing.T, *saleHarness) {
	return func(t *testing.T, w *saleHarness) {
		t.Helper()
		if got, _ := w.claimed(n); got != want {
			t.Errorf("the deposit %d was taken as %q, want %q", n, got, want)
		}
	}
}

// tried checks which tries the flow asked for, those included in which nothing was sent.
func tried(want ...int) func(*testing.T, *saleHarness) {
	return func(t *testing.T, w *saleHarness) {
		t.Helper()
		var got []int
		for _, in := range w.signs.payouts {
			got = append(got, in.Try)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the payouts were %v, want %v", got, want)
		}
	}
}

func every(checks ...func(*testing.T, *saleHarness)) func(*testing.T, *saleHarness) {
	return func(t *testing.T, w *saleHarness) {
		t.Helper()
		for _, c := range checks {
			c(t, w)
		}
	}
}

// after checks that the scenario took about the given time.
func after(d time.Duration) func(*testing.T, *saleHarness) {
	return func(t *testing.T, w *saleHarness) {
		t.Helper()
		if took := w.env.Now().Sub(w.start); took < d || took > d+time.Minute {
			t.Errorf("it took %s, want %s", took, d)
		}
	}
}

// beforeCall does something just before a call of the store, for the first time.
func (w *saleHarness) beforeCall(name string, do func()) {
	done := false
	w.store.fault = func(call string) error {
		if call == name && !done {
			done = true
			do()
		}
		return nil
	}
}

func screened() []sell {
	const min = time.Minute
	return []sell{
		{
			name: "a denied sender, given back", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen, parked: []workflows.Reason{workflows.ReasonDepositDenied},
			set: func(w *saleHarness) {
				w.verdicts(exchange.VerdictHit)
				w.deposit(min, 1, crypto("10"))
				w.at(time.Hour, w.tell("refund"))
			},
			check: every(tried(), responded("refund", "")),
		},
		{
			name: "a sender on the deny list, given back", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonDepositDenied}, check: every(tried(), responded("refund", "")),
			set: func(w *saleHarness) {
				w.deny()
				w.deposit(min, 1, crypto("10"))
				w.at(time.Hour, w.tell("refund"))
			},
		},
		{
			name: "a denied sender, cleared", status: sold, detail: none, parked: []workflows.Reason{workflows.ReasonDepositDenied},
			set: func(w *saleHarness) {
				w.verdicts(exchange.VerdictHit, exchange.VerdictClear)
				w.deposit(min, 1, crypto("10"))
				w.at(time.Hour, w.tell("retry"))
			},
		},
		{
			name: "an unknown sender, given back in the second try", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonDepositScreening},
			set: func(w *saleHarness) {
				w.verdicts(exchange.VerdictUnknown)
				w.store.fault = w.during(0, 90*min, conflict("a payout may still pay"), "OpenChainRefund")
				w.deposit(min, 1, crypto("10"))
				w.at(time.Hour, w.tell("refund"))
				w.at(2*time.Hour, w.tell("refund"))
			},
		},
		{
			name: "an order that can't be resolved", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonDepositDenied},
			set: func(w *saleHarness) {
				w.verdicts(exchange.VerdictHit)
				w.deposit(min, 1, crypto("10"))
				w.at(time.Hour, w.tell("resolve"))
				w.at(2*time.Hour, w.tell("refund"))
			},
			check: responded("resolve", exchange.CodeStateConflict),
		},
		{
			name: "denied between the screening and the payout, given back", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonDepositDenied}, check: every(tried(1), responded("refund", "")),
			set: func(w *saleHarness) {
				w.beforeCall("BeginPayout", w.deny)
				w.deposit(min, 1, crypto("10"))
				w.at(time.Hour, w.tell("refund"))
			},
		},
		{
			name: "denied between two payouts, and cleared", status: sold, detail: none,
			parked: []workflows.Reason{workflows.ReasonDepositDenied}, check: tried(1, 2, 2),
			set: func(w *saleHarness) {
				w.payouts(refuses("17"), pays)
				w.deposit(min, 1, crypto("10"))
				w.at(4*min, w.deny)
				w.at(time.Hour, func() { w.undeny(); w.tell("retry")() })
			},
		},
		{
			name: "denied while it is parked because of the float, and cleared at once", status: sold, detail: none,
			parked: []workflows.Reason{workflows.ReasonMomoFloat},
			set: func(w *saleHarness) {
				w.setFloat(money.Must(money.KES, "10"))
				w.payouts(payer{code: "0", after: 4 * time.Hour})
				w.deposit(min, 1, crypto("10"))
				w.at(44*min, func() { w.deny(); w.setFloat(money.Must(money.KES, "100000")) })
				w.store.fault = func(call string) error {
					if call == "ScreenTerms" && w.denied != uuid.Nil {
						w.undeny()
						w.denied = uuid.Nil
					}
					return nil
				}
				w.at(4*time.Hour, w.tell("retry")) // only the payout that is under way waits for it
			},
			check: func(t *testing.T, w *saleHarness) {
				if n := len(w.signs.payouts); n < 4 || w.signs.payouts[n-1].Try != 1 || w.denied != uuid.Nil {
					t.Errorf("the payouts were %v, the sender was never looked up again: %t", w.signs.payouts, w.denied != uuid.Nil)
				}
				commands := slices.DeleteFunc(slices.Clone(w.signs.passed), func(s string) bool { return s == workflows.SignalCallback })
				if !slices.Equal(commands, []string{workflows.SignalRetry}) {
					t.Errorf("the payout received %v", commands)
				}
			},
		},
	}
}

func payingOut() []sell {
	const min = time.Minute
	enough := func(w *saleHarness) { w.setFloat(money.Must(money.KES, "100000")) }
	short := func(w *saleHarness) { w.setFloat(money.Must(money.KES, "10")) }
	return []sell{
		{
			name: "a payee who can't be paid", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen, check: tried(1),
			set: func(w *saleHarness) {
				w.payouts(refuses("2040"))
				w.deposit(min, 1, crypto("10"))
			},
		},
		{
			name: "a payee who can't be paid, and a refund that must wait", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonStepFailed},
			set: func(w *saleHarness) {
				w.payouts(refuses("2040"))
				w.store.fault = w.during(0, 30*min, conflict("a payout may still pay"), "OpenChainRefund")
				w.deposit(min, 1, crypto("10"))
				w.at(time.Hour, w.tell("retry"))
			},
		},
		{
			name: "busy, then paid", status: sold, detail: none, check: tried(1, 2, 3),
			set: func(w *saleHarness) {
				w.payouts(refuses("17"), refuses("17"), pays)
				w.deposit(min, 1, crypto("10"))
			},
		},
		{
			name: "a late word about a payout that was refused, while the next one waits", status: sold, detail: none, check: func(t *testing.T, w *saleHarness) {
				tried(1, 2)(t, w)
				if late := workflows.LatePayoutID(activities.PayoutID(w.request.ID, 1)); !slices.Contains(w.signs.started, late) {
					t.Errorf("%s was not started: %v", late, w.signs.started)
				}
			},
			set: func(w *saleHarness) {
				w.payouts(refuses("17"), pays)
				w.deposit(min, 1, crypto("10"))
				w.at(4*min, func() {
					w.env.SignalWorkflow(workflows.SignalCallback, workflows.CallbackRef{AttemptID: activities.PayoutID(w.request.ID, 1)})
				})
			},
		},
		{
			name: "a payout about which nothing is heard, while another step is parked", status: sold, detail: none,
			parked: []workflows.Reason{workflows.ReasonStepFailed},
			set: func(w *saleHarness) {
				w.payouts(payer{code: "0", after: 8 * min})
				w.deposit(min, 1, crypto("10"))
				w.at(3*min, w.comes(2, exchange.DepositSeen, crypto("10"), true))
				w.store.fault = w.during(3*min, time.Hour, errBug, "ChainDeposit")
				w.at(30*min, func() {
					if child := workflows.MomoPayoutID(exchange.OrderObject(w.request.ID)); !slices.Contains(w.signs.started, child) {
						w.t.Errorf("%s does not run: %v", child, w.signs.started)
					}
				})
				w.at(2*time.Hour, w.tell("retry"))
				w.at(3*time.Hour, w.comes(2, exchange.DepositFinal, crypto("10"), true))
			},
		},
		{
			name: "busy for ever, given back", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonMomoRefused}, check: tried(1, 2, 3, 4),
			set: func(w *saleHarness) {
				w.payouts(refuses("17"))
				w.deposit(min, 1, crypto("10"))
				w.at(time.Hour, w.tell("refund"))
			},
		},
		{
			name: "the payee's limit, paid later", status: sold, detail: none, parked: []workflows.Reason{workflows.ReasonMomoPayeeLimit}, check: tried(1, 2),
			set: func(w *saleHarness) {
				w.payouts(refuses("8"), pays)
				w.deposit(min, 1, crypto("10"))
				w.at(time.Hour, w.tell("retry"))
			},
		},
		{
			name: "declared not made by two officers: given back, when a third agrees", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonRefundSecond}, check: every(tried(1), responded("agree", "")),
			set: func(w *saleHarness) {
				w.payouts(payer{silent: true, mute: true, after: 1000 * time.Hour, code: "0"})
				w.deposit(min, 1, crypto("10"))
				w.at(2*time.Hour, w.declare)
				w.at(4*time.Hour, w.agree("agree"))
			},
		},
		{
			name: "suspended: nothing was sent, so that the try is the same", status: sold, detail: none,
			parked: []workflows.Reason{workflows.ReasonMomoSuspended}, check: tried(1, 1),
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("10"))
				w.at(30*time.Second, w.suspend)
				w.at(time.Hour, func() { w.resume(); w.tell("retry")() })
			},
		},
		{
			name: "suspended, then the breaker is closed: it goes on by itself, after the payout on trial", status: sold, detail: none,
			parked: []workflows.Reason{workflows.ReasonMomoSuspended}, check: every(tried(1, 1, 1), after(time.Hour+2*min+5*time.Second)),
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("10"))
				w.at(30*time.Second, func() {
					w.anotherOwed()
					trial := w.other
					w.suspend()
					w.other = trial
				})
				w.at(time.Hour, func() {
					w.resume()
					if err := w.beginAnother(); err != nil {
						w.t.Errorf("the payout on trial: %v", err)
					}
					w.floated()
				})
				w.at(time.Hour+min, w.anotherPaid)
			},
		},
		{
			name: "refused with our credential: another payout when the breaker is closed, under a new id", status: sold, detail: none,
			parked: []workflows.Reason{workflows.ReasonMomoCredential}, check: tried(1, 2),
			set: func(w *saleHarness) {
				w.payouts(refuses("2001"), pays)
				w.deposit(min, 1, crypto("10"))
				w.at(time.Hour, w.floated)
			},
		},
		{
			name: "no float, topped up soon, and a second time too late", status: sold, detail: none, check: every(tried(1, 1), after(3*min)),
			set: func(w *saleHarness) {
				short(w)
				w.deposit(min, 1, crypto("10"))
				w.at(3*min, func() { enough(w); w.floated() })
				w.at(3*min+5*time.Second, w.floated)
			},
		},
		{
			name: "topped up while a try finds no float", status: sold, detail: none, check: every(tried(1, 1), after(2*min)),
			set: func(w *saleHarness) {
				short(w)
				w.deposit(min, 1, crypto("10"))
				begun := 0
				w.store.fault = func(call string) error {
					if call != "BeginPayout" {
						return nil
					}
					switch begun++; begun {
					case 1: // the signal comes before the next try of this step
						w.at(time.Millisecond, w.floated)
						return errAway
					case 3:
						enough(w)
					}
					return nil
				}
			},
		},
		{
			name: "the operator says that there is no float", status: sold, detail: none, check: tried(1, 2),
			set: func(w *saleHarness) {
				w.payouts(refuses("1"), pays)
				w.deposit(min, 1, crypto("10"))
			},
		},
		{
			name: "no float for an hour", status: sold, detail: none, parked: []workflows.Reason{workflows.ReasonMomoFloat},
			set: func(w *saleHarness) {
				short(w)
				w.deposit(min, 1, crypto("10"))
				w.at(time.Hour, func() { enough(w); w.tell("retry")() })
			},
		},
		{
			name: "parked without float, then busy: parked no longer", status: sold, detail: none, parked: []workflows.Reason{workflows.ReasonMomoFloat},
			check: func(t *testing.T, w *saleHarness) {
				if err := w.answers["still parked"]; err != nil {
					t.Error("the flow is parked while it waits for the operator")
				}
			},
			set: func(w *saleHarness) {
				short(w)
				w.payouts(refuses("17"), pays)
				w.deposit(min, 1, crypto("10"))
				w.at(36*min, func() { enough(w); w.tell("retry")() })
				w.at(38*min, func() {
					w.signs.mu.Lock()
					defer w.signs.mu.Unlock()
					if w.signs.alarmed[workflows.OffRampID(w.request.ID)] {
						w.answers["still parked"] = errBug
					}
				})
			},
		},
		{
			name: "a command is passed on", status: sold, detail: none, check: responded("resolve", ""),
			set: func(w *saleHarness) {
				w.payouts(payer{code: "0", after: 5 * time.Second, silent: true, mute: true})
				w.deposit(min, 1, crypto("10"))
				w.at(30*min, w.tell("resolve")) // when the payout is parked
			},
		},
	}
}

// TestSales runs every scenario of an order that sells crypto.
func TestSales(t *testing.T) {
	t.Parallel()
	for _, s := range slices.Concat(opening(), depositing(), givingUp(), screened(), payingOut(), claiming(), givingBack(), funding(), sweeping()) {
		t.Run(s.name, s.play)
	}
}

// TestSalesSurviveFaults has each step of a sale fail twice before it does its work, and twice after it.
func TestSalesSurviveFaults(t *testing.T) {
	t.Parallel()
	steps := []string{
		"OpenOffRamp", "ChainDeposit", "SeeDeposit", "TakeDeposit", "ScreenTerms", "Denied", "RecordDepositScreening", "ApproveSweep", "ReleaseEscrow",
		"OpenChainRefund", "ApproveRefundPayment", "CloseOffRamp", "LoseDeposit", "ChainPaymentOf", "OrderByID",
	}
	for _, call := range steps {
		for name, where := range map[string]func(w *saleHarness, f func(string) error){
			"before": func(w *saleHarness, f func(string) error) { w.store.fault = f },
			"after":  func(w *saleHarness, f func(string) error) { w.store.lost = f },
		} {
			t.Run(call+" "+name, func(t *testing.T) {
				t.Parallel()
				w, hits := newSale(t), 0
				where(w, func(c string) error {
					if c == call && hits < 2 {
						hits++
						return exchange.Errorf(exchange.CodeUnavailable, "the database is away")
					}
					return nil
				})
				status := w.prepare(call)
				w.run(t)
				if o := w.order(); hits == 0 || o.Status != status {
					t.Errorf("after %d faults the order is %s, want %s", hits, o.Status, status)
				}
				w.sound(t)
			})
		}
	}
}

// prepare makes the sale need a step, and returns how it ends.
func (w *saleHarness) prepare(call string) exchange.OrderStatus {
	status := sold
	switch call {
	case "OpenChainRefund", "ApproveRefundPayment":
		status = exchange.OrderFailed
		w.payouts(refuses("2040"))
	case "ChainPaymentOf", "OrderByID":
		w.fromWallet()
		return sold
	case "LoseDeposit":
		w.at(30*time.Second, w.comes(1, exchange.DepositSeen, crypto("10"), true))
		w.at(40*time.Second, w.comes(1, exchange.DepositOrphaned, crypto("10"), true))
	case "CloseOffRamp":
		return exchange.OrderCancelled
	}
	w.deposit(time.Minute, 1, crypto("10"))
	return status
}
