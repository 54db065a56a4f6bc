package workflows_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// story is a scenario of an order.
type story struct {
	name     string
	payers   []payer   // by prompt; the last one repeats
	payout   []payer   // by payout of a refund
	outcomes []outcome // by transaction
	people   func(w *harness)
	status   exchange.OrderStatus
	detail   string
	check    func(t *testing.T, w *harness)
}

func pick[T any](list []T, n int, other T) T {
	if len(list) == 0 {
		return other
	}
	return list[min(n, len(list))-1]
}

var pays = payer{code: "0", after: 5 * time.Second}

func (s story) play(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.operator.script = func(a exchange.PaymentAttempt, n int) payer {
		if a.Direction == exchange.Payout {
			return pick(s.payout, n, pays)
		}
		return pick(s.payers, n, pays)
	}
	w.chain.script = func(n int) outcome { return pick(s.outcomes, n, outcome{}) }
	if s.people != nil {
		s.people(w)
	}
	w.run(t)
	ended(t, w, s.status, s.detail)
	if s.check != nil {
		s.check(t, w)
	}
}

// ended checks how an order ended.
func ended(t testing.TB, w *harness, status exchange.OrderStatus, detail string) {
	t.Helper()
	if o := w.order(); o.Status != status || o.StatusDetail != detail {
		t.Errorf("the order is %s (%s), want %s (%s)", o.Status, o.StatusDetail, status, detail)
	}
	w.sound(t)
}

func retryPayment(w *harness, id string) func() {
	return func() {
		w.env.UpdateWorkflow(workflows.UpdateRetryPayment, id, w.answer(id), w.asks(exchange.IntendPrompt))
	}
}

func cancel(w *harness) {
	w.env.UpdateWorkflow(workflows.UpdateCancel, "cancel", w.answer("cancel"), w.asks(exchange.IntendPurchaseCancel))
}

func wants(id string, want exchange.Code) func(*testing.T, *harness) {
	return func(t *testing.T, w *harness) {
		t.Helper()
		err, answered := w.answers[id]
		if !answered {
			t.Fatalf("%s never got a response", id)
		}
		if got := code(err); got != want {
			t.Errorf("the response to %s is %q (%v), want %q", id, got, err, want)
		}
	}
}

// refunded checks that the operator paid the amount back, once.
func refunded(amount string) func(*testing.T, *harness) {
	return func(t *testing.T, w *harness) {
		t.Helper()
		out := w.operator.paidOut(w.request.ID)
		if len(out) != 1 || !out[0].amount.Equal(money.Must(money.KES, amount)) {
			t.Errorf("paid back: %v, want %s once", out, amount)
		}
		for _, r := range w.refunds() {
			if r.Status != exchange.RefundCompleted {
				t.Errorf("refund of %s is %s", r.Amount, r.Status)
			}
		}
	}
}

func exception(kind exchange.ExceptionKind, status exchange.ExceptionStatus) func(*testing.T, *harness) {
	return func(t *testing.T, w *harness) {
		t.Helper()
		for _, e := range w.exceptions() {
			if e.Kind == kind && e.Status == status {
				return
			}
		}
		t.Errorf("no exception %s that is %s among %v", kind, status, w.exceptions())
	}
}

// lasted checks that the scenario took about the given time.
func lasted(d time.Duration) func(*testing.T, *harness) {
	return func(t *testing.T, w *harness) {
		t.Helper()
		if took := w.env.Now().Sub(w.start); took < d || took > d+5*time.Minute {
			t.Errorf("it took %s, want %s", took, d)
		}
	}
}

// waitedWith checks the reasons with which the flow parked, in order.
func waitedWith(want ...workflows.Reason) func(*testing.T, *harness) {
	return func(t *testing.T, w *harness) {
		t.Helper()
		w.signs.were(t, workflows.OnRampID(w.request.ID), want...)
	}
}

func all(checks ...func(*testing.T, *harness)) func(*testing.T, *harness) {
	return func(t *testing.T, w *harness) {
		t.Helper()
		for _, c := range checks {
			c(t, w)
		}
	}
}

// price is the cost of 10 USDT at the market's rate, in whole shillings.
const price = "1295"

func collecting() []story {
	const done, none = exchange.OrderCompleted, exchange.WaitNothing
	min := time.Minute
	return []story{
		{name: "paid", status: done, detail: none, check: wants("open", "")},
		{name: "callback lost", payers: []payer{{code: "0", after: 5 * time.Second, silent: true}}, status: done, detail: none},
		{name: "callback twice", payers: []payer{{code: "0", after: 5 * time.Second, twice: true}}, status: done, detail: none},
		{name: "callback before the answer", payers: []payer{{code: "0", early: true}}, status: done, detail: none},
		{name: "callback before a lost answer", payers: []payer{{code: "0", early: true, deaf: true}}, status: done, detail: none},
		{
			name: "questions unanswered, a notice confirms", status: done, detail: none,
			payers: []payer{{code: "0", after: 5 * time.Second, mute: true, confirms: true}},
		},
		{
			name: "question contradicts, the statement decides", status: done, detail: none,
			payers: []payer{{code: "0", after: 5 * time.Second, lies: true}},
		},
		{name: "foreign callback, the question decides", payers: []payer{{code: "0", after: 5 * time.Second, foreign: true}}, status: done, detail: none},
		{
			name: "submission unknown and paid", status: done, detail: none,
			payers: []payer{{code: "0", after: 20 * time.Second, deaf: true}},
		},
		{
			name: "submission unknown, callback lost, the statement and a notice decide", status: done, detail: none,
			payers: []payer{{code: "0", after: 20 * time.Second, deaf: true, silent: true, confirms: true}},
		},
		{
			name: "submission never arrived", status: exchange.OrderCancelled, detail: exchange.DetailExpired,
			payers: []payer{{unsent: true}},
		},
		{name: "declined", payers: []payer{{code: "1032", after: 8 * time.Second}}, status: exchange.OrderFailed, detail: exchange.DetailDeclined},
		{
			name: "declined, then paid late, refunded by command", payers: []payer{{code: "1032", after: 8 * time.Second, late: 10 * min}},
			status: exchange.OrderFailed, detail: exchange.DetailDeclined,
			people: func(w *harness) { w.at(30*min, func() { w.lateCommand("refund") }) },
			check:  all(exception(exchange.ExcLate, exchange.ExcRefunded), refunded(price)),
		},
		{
			name: "no response, then another prompt", payers: []payer{{code: "1037", after: 60 * time.Second}, pays}, status: done, detail: none,
			people: func(w *harness) { w.at(2*min, retryPayment(w, "retry")) }, check: wants("retry", ""),
		},
		{
			name: "another prompt while one is open", payers: []payer{{code: "0", after: 40 * time.Second}}, status: done, detail: none,
			people: func(w *harness) { w.at(20*time.Second, retryPayment(w, "retry")) }, check: wants("retry", exchange.CodeStateConflict),
		},
		{
			name: "wrong PIN, then nothing", payers: []payer{{code: "2001", after: 10 * time.Second}},
			status: exchange.OrderCancelled, detail: exchange.DetailExpired,
		},
		{
			name: "insufficient balance, then another prompt", payers: []payer{{code: "1", after: 10 * time.Second}, pays}, status: done, detail: none,
			people: func(w *harness) { w.at(5*min, retryPayment(w, "retry")) },
		},
		{
			name: "late success while the order still waits", payers: []payer{{code: "1037", after: 60 * time.Second, late: 3 * min}}, status: done, detail: none,
		},
		{
			name:   "both prompts are paid",
			payers: []payer{{code: "1037", after: 60 * time.Second, late: 5 * min}, pays}, status: done, detail: none,
			people: func(w *harness) {
				w.at(2*min, retryPayment(w, "retry"))
				w.at(30*min, func() { w.lateCommand("refund") })
			},
			check: all(exception(exchange.ExcDuplicate, exchange.ExcRefunded), refunded(price)),
		},
		{
			name: "late success after expiry, kept by command", payers: []payer{{code: "1037", after: 60 * time.Second, late: 20 * min, silent: true}},
			status: exchange.OrderCancelled, detail: exchange.DetailExpired,
			people: func(w *harness) { w.at(3*time.Hour, func() { w.lateCommand("resolve") }) },
			check:  exception(exchange.ExcLate, exchange.ExcAccepted),
		},
		{
			name: "paid too much", payers: []payer{{code: "0", after: 5 * time.Second, pays: "1310", confirms: true}}, status: done, detail: none,
			check: all(exception(exchange.ExcOver, exchange.ExcRefunded), refunded("15")),
		},
		{
			name: "paid too little", payers: []payer{{code: "0", after: 5 * time.Second, pays: "1000", confirms: true}},
			status: exchange.OrderFailed, detail: exchange.DetailUnderpaid,
			check: all(exception(exchange.ExcUnder, exchange.ExcRefunded), refunded("1000")),
		},
		{
			name: "cancelled by the customer", payers: []payer{{code: "", after: 48 * time.Hour, silent: true}},
			people: func(w *harness) {
				w.at(20*time.Second, func() { cancel(w) })
				w.at(26*time.Hour, func() { w.lateCommand("resolve") }) // no source ever reports the prompt's outcome
			},
			status: exchange.OrderCancelled, detail: exchange.DetailCancelled, check: wants("cancel", ""),
		},
		{
			name: "cancelled when it is paid already", payers: []payer{{code: "0", after: 18 * time.Second, silent: true}},
			people: func(w *harness) { w.at(20*time.Second, func() { cancel(w) }) },
			status: done, detail: none, check: wants("cancel", exchange.CodeStateConflict),
		},
		{
			name: "cancelled, then paid", payers: []payer{{code: "0", after: 30 * time.Second}},
			people: func(w *harness) { w.at(20*time.Second, func() { cancel(w) }) },
			status: exchange.OrderCancelled, detail: exchange.DetailCancelled,
			check: all(wants("cancel", ""), byRule, exception(exchange.ExcLate, exchange.ExcRefunded), refunded(price)),
		},
		{
			name: "cancelled, then paid, and the callback is lost, refunded by command", payers: []payer{{code: "0", after: 30 * time.Second, silent: true}},
			people: func(w *harness) {
				w.at(20*time.Second, func() { cancel(w) })
				w.at(time.Hour, func() { undecided(w); w.lateCommand("refund") })
			},
			status: exchange.OrderCancelled, detail: exchange.DetailCancelled,
			check: all(wants("cancel", ""), wants("undecided", ""), exception(exchange.ExcLate, exchange.ExcRefunded), refunded(price)),
		},
		{
			name:   "cancelled, then only rows without a payer, refunded by command",
			payers: []payer{{code: "0", after: 30 * time.Second, silent: true, lies: true, confirms: true}},
			people: func(w *harness) {
				w.at(20*time.Second, func() { cancel(w) })
				w.at(time.Hour, func() { undecided(w); w.lateCommand("refund") })
			},
			status: exchange.OrderCancelled, detail: exchange.DetailCancelled,
			check: all(wants("cancel", ""), wants("undecided", ""), exception(exchange.ExcLate, exchange.ExcRefunded), refunded(price)),
		},
		{
			name: "cancelled, then paid by another phone, kept by command", payers: []payer{{code: "0", after: 30 * time.Second}},
			people: func(w *harness) {
				w.operator.stranger = true
				w.at(20*time.Second, func() { cancel(w) })
				w.at(time.Hour, func() { undecided(w); w.lateCommand("resolve") })
			},
			status: exchange.OrderCancelled, detail: exchange.DetailCancelled,
			check: all(wants("cancel", ""), wants("undecided", ""), exception(exchange.ExcLate, exchange.ExcAccepted)),
		},
		{
			name: "outcome unknown past the order's time, then paid", payers: []payer{{code: "0", after: 25 * min}}, status: done, detail: none,
		},
		{
			name: "outcome unknown, resolved by command", payers: []payer{{code: "0", after: 72 * time.Hour, silent: true, mute: true}},
			people: func(w *harness) {
				w.at(2*time.Hour, func() { w.command("resolve") })
				w.at(40*time.Hour, func() { w.lateCommand("resolve") })
			},
			status: exchange.OrderCancelled, detail: exchange.DetailExpired, check: wants("resolve", ""),
		},
		{
			name:   "the subscriber is locked, then prompted again",
			payers: []payer{{refuse: "500.001.1001", transient: true}, pays}, status: done, detail: none,
		},
		{
			name: "prompts are refused by our own fault", payers: []payer{{refuse: "403.002.1001", config: true}, pays}, status: done, detail: none,
			people: func(w *harness) { w.at(5*min, func() { w.command("retry") }) }, check: wants("retry", ""),
		},
		{
			name: "prompts are refused and no operator helps", payers: []payer{{refuse: "403.002.1001", config: true}},
			status: exchange.OrderCancelled, detail: exchange.DetailExpired,
		},
		{
			name: "a command without a row", status: done, detail: none, outcomes: []outcome{{refused: chain.ReasonGas}, {refused: chain.ReasonGas}, {refused: chain.ReasonGas}, {}},
			people: func(w *harness) {
				w.at(min, func() {
					ref := workflows.CommandRef{CommandID: uuid.New()}
					w.env.UpdateWorkflow(workflows.UpdateCommand, "forged", w.answer("forged"), ref)
					w.env.SignalWorkflow(workflows.SignalRefund, ref)
				})
				w.at(2*min, func() { w.env.SignalWorkflow(workflows.SignalRetry, nil) })
			},
			check: all(wants("forged", exchange.CodeNotFound), func(t *testing.T, w *harness) {
				if len(w.refunds()) != 0 {
					t.Error("a forged signal refunded the order")
				}
			}),
		},
	}
}

func delivering() []story {
	const done, none = exchange.OrderCompleted, exchange.WaitNothing
	min := time.Minute
	return []story{
		{
			name: "dropped, rebuilt only after its end", outcomes: []outcome{{dropped: true}, {}}, status: done, detail: none,
			check: func(t *testing.T, w *harness) {
				if w.env.Now().Sub(w.start) < txLife {
					t.Error("rebuilt while the first transaction could still be included")
				}
			},
		},
		{name: "reorganised away", outcomes: []outcome{{reorg: true}}, status: done, detail: none, check: func(t *testing.T, w *harness) {
			if len(w.chain.txs) != 1 {
				t.Errorf("%d transactions were made where the first one was alive", len(w.chain.txs))
			}
		}},
		{
			name: "reverted, retried by command", outcomes: []outcome{{reverts: true}, {}}, status: done, detail: none,
			people: func(w *harness) { w.at(5*min, func() { w.command("retry") }) }, check: wants("retry", ""),
		},
		{
			name: "no gas, retried by a signal", outcomes: []outcome{{refused: chain.ReasonGas}, {refused: chain.ReasonGas}, {}}, status: done, detail: none,
			people: func(w *harness) { w.at(5*min, func() { w.env.SignalWorkflow(workflows.SignalRetry, nil) }) },
		},
		{
			name: "blocked, refunded by command", outcomes: []outcome{{refused: chain.ReasonBlocked}},
			status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			people: func(w *harness) { w.at(5*min, func() { w.command("refund") }) },
			check:  all(wants("refund", ""), refunded(price)),
		},
		{
			name: "refunded by a proven signal", outcomes: []outcome{{refused: chain.ReasonBlocked}},
			status: exchange.OrderFailed, detail: exchange.DetailRefundOpen, check: refunded(price),
			people: func(w *harness) {
				w.at(5*min, func() {
					w.env.SignalWorkflow(workflows.SignalRefund, workflows.CommandRef{CommandID: w.decree("refund")})
				})
			},
		},
		{
			name: "a command that nothing waits for", status: done, detail: none, check: wants("refund", exchange.CodeStateConflict),
			people: func(w *harness) { w.at(6*time.Second, func() { w.command("refund") }) },
		},
		{
			name: "a refund that is refused, then retried", outcomes: []outcome{{refused: chain.ReasonBlocked}},
			payout: []payer{{refuse: "2040"}, pays}, status: exchange.OrderFailed, detail: exchange.DetailRefundOpen, check: refunded(price),
			people: func(w *harness) {
				w.at(5*min, func() { w.command("refund") })
				w.at(10*min, func() { w.command("retry") })
			},
		},
		{
			name: "a refund that fails, then is settled by other means", outcomes: []outcome{{refused: chain.ReasonBlocked}},
			payout: []payer{{code: "2040", after: 5 * time.Second}}, status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			people: func(w *harness) {
				w.at(5*min, func() { w.command("refund") })
				w.at(time.Hour, func() { w.command("resolve") })
			},
			check: func(t *testing.T, w *harness) {
				if len(w.operator.paidOut(w.request.ID)) != 0 {
					t.Error("paid out twice over")
				}
				for _, r := range w.refunds() {
					if r.Status != exchange.RefundCompleted || r.Receipt != "UKLMANUAL1" {
						t.Errorf("refund %+v", r)
					}
				}
			},
		},
		{
			name: "a refund whose submission is unknown", outcomes: []outcome{{refused: chain.ReasonBlocked}},
			payout: []payer{{code: "0", after: 10 * time.Second, deaf: true, silent: true}},
			status: exchange.OrderFailed, detail: exchange.DetailRefundOpen, check: refunded(price),
			people: func(w *harness) { w.at(5*min, func() { w.command("refund") }) },
		},
		{
			name: "a refund with an unknown outcome, then its receipt", outcomes: []outcome{{refused: chain.ReasonBlocked}},
			payout: []payer{{code: "0", after: 10 * time.Second, deaf: true, silent: true, mute: true}},
			status: exchange.OrderFailed, detail: exchange.DetailRefundOpen, check: all(wants("resolve", ""), refunded(price)),
			people: func(w *harness) {
				w.at(5*min, func() { w.command("refund") })
				w.at(3*time.Hour, func() { w.command("resolve") })
			},
		},
		{
			name: "a refund without float, then with", outcomes: []outcome{{refused: chain.ReasonBlocked}},
			status: exchange.OrderFailed, detail: exchange.DetailRefundOpen, check: refunded(price),
			people: func(w *harness) {
				w.setFloat(money.Must(money.KES, "10"))
				w.at(5*min, func() { w.command("refund") })
				w.at(10*min, func() {
					w.setFloat(money.Must(money.KES, "5000"))
					w.command("retry")
				})
			},
		},
		{
			name: "a refund without float is notified of some, and of none before", outcomes: []outcome{{refused: chain.ReasonBlocked}},
			status: exchange.OrderFailed, detail: exchange.DetailRefundOpen, check: all(refunded(price), lasted(10*min)),
			people: func(w *harness) {
				w.setFloat(money.Must(money.KES, "10"))
				wake := func() { w.env.SignalWorkflow(workflows.SignalFloat, nil) }
				w.at(4*min, wake) // while the flow waits for something else
				w.at(5*min, func() { w.command("refund") })
				w.at(8*min, wake)
				w.at(10*min, func() {
					w.setFloat(money.Must(money.KES, "5000"))
					wake()
				})
			},
		},
		{
			name: "the address is corrected", outcomes: []outcome{{refused: chain.ReasonAddress}, {refused: chain.ReasonPaused}, {}},
			status: exchange.OrderCompleted, detail: exchange.WaitNothing,
			people: func(w *harness) {
				w.at(5*min, func() {
					w.correctAddress(betterAddress)
					w.command("retry")
				})
				w.at(time.Hour, func() { w.command("retry") }) // of the payment to the new address
			},
			check: all(deliveredTo(betterAddress), waitedWith(workflows.ReasonPayoutAddress, workflows.ReasonPayoutPaused)),
		},
		{
			name: "float is not what a refused refund waits for", outcomes: []outcome{{refused: chain.ReasonBlocked}},
			payout: []payer{{refuse: "2040"}, pays}, status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			people: func(w *harness) {
				w.at(5*min, func() { w.command("refund") })
				w.at(10*min, func() { w.env.SignalWorkflow(workflows.SignalFloat, nil) })
				w.at(time.Hour, func() { w.command("retry") })
			},
			check: all(refunded(price), lasted(time.Hour), waitedWith(workflows.ReasonPayoutBlocked, workflows.ReasonRefundRefused)),
		},
	}
}

// deliveredTo checks that the crypto went to an address, and nowhere else.
func deliveredTo(address string) func(*testing.T, *harness) {
	return func(t *testing.T, w *harness) {
		t.Helper()
		delivered(t, w)
		p, err := w.store.ChainPaymentOf(t.Context(), exchange.ForOrder, w.request.ID)
		if err != nil || p.Status != exchange.ChainCompleted || p.ToAddress != address {
			t.Errorf("the last payment is %+v, %v", p, err)
		}
	}
}

const betterAddress = "TBetterAddress0000000000000"

// correctAddress gives the order another address, as two officers do.
func (w *harness) correctAddress(address string) {
	c, err := w.store.ProposeOrderAddress(w.t.Context(), w.request.ID, address, "the customer called back", w.officer)
	if err != nil {
		w.t.Fatal(err)
	}
	second := storetest.PrincipalOf(storetest.User(w.t, w.store.Store, exchange.RoleAdmin))
	if _, err := w.store.ConfirmChange(w.t.Context(), c.ID, "", second); err != nil {
		w.t.Fatal(err)
	}
}

func TestStories(t *testing.T) {
	t.Parallel()
	for _, s := range append(collecting(), delivering()...) {
		t.Run(s.name, s.play)
	}
}

func TestRefusedOrderEndsItsFlow(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for range 2 { // all that the offer has
		w.market.Order(t, w.store.Store, "500")
	}
	r := w.run(t)
	if code(w.answers["open"]) != exchange.CodeInsufficientOffer {
		t.Errorf("the response to open: %v", w.answers["open"])
	}
	if r.Status != "" || w.order().ID != uuid.Nil || len(w.operator.submitted) != 0 {
		t.Errorf("result %+v; a refused order must leave nothing behind", r)
	}
}
