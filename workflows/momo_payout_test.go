package workflows_test

import (
	"slices"
	"testing"
	"time"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// refusal is what a definite refusal is told as.
func refusal(reason workflows.Reason, class, code string) workflows.MomoPayoutResult {
	return workflows.MomoPayoutResult{Refused: true, Reason: string(reason), Class: class, Code: code}
}

var paidOut = workflows.MomoPayoutResult{Completed: true}

// TestMomoPayout plays one attempt through whatever the operator may do with it.
func TestMomoPayout(t *testing.T) {
	const sec, min = time.Second, time.Minute
	for _, s := range []struct {
		name   string
		plan   payer
		people func(w *payoutWorld)
		want   workflows.MomoPayoutResult
		parked []workflows.Reason
		check  func(t *testing.T, w *payoutWorld)
	}{
		{name: "paid", plan: payer{code: "0", after: 5 * sec}, want: paidOut, check: asked(1)},
		{name: "paid, told twice", plan: payer{code: "0", after: 5 * sec, twice: true}, want: paidOut},
		{name: "the result comes first", plan: payer{code: "0", early: true}, want: paidOut},
		{name: "taken, and the answer is lost", plan: payer{code: "0", after: 5 * sec, deaf: true}, want: paidOut},
		{name: "the answer and the result are lost", plan: payer{code: "0", after: 5 * sec, deaf: true, silent: true}, want: paidOut},
		{name: "the result is lost", plan: payer{code: "0", after: 5 * sec, silent: true}, want: paidOut, check: asked(2)},
		{name: "the result comes late", plan: payer{code: "0", after: 40 * min}, want: paidOut, parked: []workflows.Reason{workflows.ReasonMomoUnknown}},
		{name: "refused at the gateway", plan: payer{refuse: "403.002.1001", config: true}, want: refusal(workflows.ReasonMomoCredential, activities.ClassCredential, "403.002.1001")},
		{name: "not sent at all", plan: payer{refuse: "not_sent", transient: true}, want: refusal(workflows.ReasonMomoRefused, activities.ClassBusy, "not_sent")},
		{name: "the payee is not registered", plan: payer{code: "2040", after: 5 * sec}, want: refusal(workflows.ReasonMomoRefused, activities.ClassPayee, "2040")},
		{name: "the payee's limit", plan: payer{code: "8", after: 5 * sec}, want: refusal(workflows.ReasonMomoPayeeLimit, activities.ClassPayeeLimit, "8")},
		{name: "our float", plan: payer{code: "1", after: 5 * sec}, want: refusal(workflows.ReasonMomoFloat, activities.ClassFloat, "1")},
		{name: "our account", plan: payer{code: "2028", after: 5 * sec}, want: refusal(workflows.ReasonMomoRefused, activities.ClassConfig, "2028")},
		{
			name: "refused, and the result is lost", plan: payer{code: "2040", after: 5 * sec, silent: true},
			want: refusal(workflows.ReasonMomoRefused, activities.ClassDenied, "not_paid"),
		},
		{
			name: "our credential", plan: payer{code: "2001", after: 5 * sec}, want: refusal(workflows.ReasonMomoCredential, activities.ClassCredential, "2001"),
			check: func(t *testing.T, w *payoutWorld) {
				if !slices.Equal(w.rows.hits, []string{"2001"}) {
					t.Errorf("refusals of the credential: %v", w.rows.hits)
				}
			},
		},
		{
			name: "a refusal that nobody confirms", plan: payer{code: "2040", after: 5 * sec},
			people: func(w *payoutWorld) {
				w.operator.fault = w.during(0, 2*time.Hour, errAway, "resolve")
				w.at(time.Hour, func() {
					if w.rows.payout.Status != exchange.PayoutProcessing {
						w.answers["refused by one voice"] = errBug
					}
				})
			},
			want:   refusal(workflows.ReasonMomoRefused, activities.ClassPayee, "2040"),
			parked: []workflows.Reason{workflows.ReasonMomoUnknown},
			check:  wantsAnswer("refused by one voice"),
		},
		{
			name: "nobody says anything, until a person finds it", plan: payer{code: "0", after: 5 * sec, silent: true, mute: true},
			people: func(w *payoutWorld) {
				w.at(time.Hour, func() { w.command("retry") })
				w.at(30*24*time.Hour, func() { w.command("resolve") })
			},
			want: paidOut, parked: []workflows.Reason{workflows.ReasonMomoUnknown},
			check: func(t *testing.T, w *payoutWorld) {
				if n := w.operator.looked; n < 7 || n > 120 {
					t.Errorf("%d questions in a month", n)
				}
				if w.rows.payout.Receipt != "UKLMANUAL1" {
					t.Errorf("booked with %q", w.rows.payout.Receipt)
				}
			},
		},
		{
			name: "nobody says anything, until the operator does", plan: payer{code: "0", after: 5 * sec, silent: true},
			people: func(w *payoutWorld) { w.operator.fault = w.during(0, 3*time.Hour, errAway, "resolve") },
			want:   paidOut, parked: []workflows.Reason{workflows.ReasonMomoUnknown},
		},
		{
			name: "nobody says anything, until two persons declare that it was not made", plan: payer{unsent: true, mute: true, silent: true},
			people: func(w *payoutWorld) {
				w.at(min, func() { w.rows.declared = true }) // before it is parked a word counts for nothing
				w.at(2*min, func() { w.env.SignalWorkflow(workflows.SignalCallback, workflows.CallbackRef{}) })
				w.at(3*min, func() {
					if w.rows.payout.Status != exchange.PayoutProcessing {
						w.answers["declared too early"] = errBug
					}
					w.rows.declared = false
				})
				w.at(3*time.Hour, func() { w.rows.declared = true })
				w.at(3*time.Hour, func() { w.command("retry") })
			},
			want:   refusal(workflows.ReasonMomoRefused, activities.ClassDeclared, exchange.CodeDeclared),
			parked: []workflows.Reason{workflows.ReasonMomoUnknown}, check: wantsAnswer("declared too early"),
		},
		{
			name: "two persons deny what the operator claims", plan: payer{code: "0", after: 5 * sec},
			people: func(w *payoutWorld) {
				w.operator.fault = w.during(0, 24*time.Hour, errAway, "resolve") // the result alone says that it was paid
				w.at(2*time.Hour, func() { w.rows.declared = true })
				w.at(4*time.Hour, func() { w.command("resolve") })
			},
			want: paidOut, parked: []workflows.Reason{workflows.ReasonMomoUnknown, workflows.ReasonMomoDisagree},
		},
		{
			name: "a large payout, and one person's receipt", plan: payer{code: "0", after: 5 * sec, silent: true, mute: true},
			people: func(w *payoutWorld) {
				w.rows.second = true
				w.at(time.Hour, func() { w.command("resolve") })
				w.at(2*time.Hour, func() {
					if w.rows.booked > 0 {
						w.answers["settled by one person"] = errBug
					}
					w.rows.second = false // another person named it too
				})
				w.at(3*time.Hour, func() { w.command("resolve") })
			},
			want: paidOut, parked: []workflows.Reason{workflows.ReasonMomoUnknown}, check: wantsAnswer("settled by one person"),
		},
		{
			name: "said to be paid by a try before", plan: payer{}, people: func(w *payoutWorld) { w.rows.payout.Claimed = true },
			want: workflows.MomoPayoutResult{Reason: string(workflows.ReasonMomoClaimed)}, check: nothingWritten,
		},
		{
			name: "the payee gets no more today", plan: payer{}, people: func(w *payoutWorld) {
				w.book.fault = w.during(0, time.Hour, exchange.Errorf(exchange.CodeLimitReached, "no more today"), "BeginOrderPayout")
			},
			want: workflows.MomoPayoutResult{Reason: string(workflows.ReasonMomoPayeeLimit), Class: activities.ClassPayeeDay}, check: nothingWritten,
		},
		{
			name: "who sent the crypto is denied since", plan: payer{}, people: func(w *payoutWorld) {
				w.book.fault = w.during(0, time.Hour, exchange.Wrap(exchange.CodeStateConflict, exchange.ErrUncleared, "look again"), "BeginOrderPayout")
			},
			want: workflows.MomoPayoutResult{Reason: string(workflows.ReasonDepositScreening)}, check: nothingWritten,
		},
		{
			name: "the voices contradict each other", plan: payer{code: "0", after: 5 * sec, lies: true},
			people: func(w *payoutWorld) {
				w.at(20*min, func() { w.command("retry") })
				w.at(2*time.Hour, func() { w.command("resolve") })
			},
			want: paidOut, parked: []workflows.Reason{workflows.ReasonMomoDisagree},
		},
		{
			name: "another amount was paid", plan: payer{code: "0", after: 5 * sec, pays: "1292"},
			people: func(w *payoutWorld) { w.at(2*time.Hour, func() { w.command("resolve") }) },
			want:   paidOut, parked: []workflows.Reason{workflows.ReasonMomoDisagree},
		},
		{
			name: "the float is short", plan: payer{}, people: func(w *payoutWorld) { w.book.float = money.Must(money.KES, "1292") },
			want: workflows.MomoPayoutResult{Reason: string(workflows.ReasonMomoFloat), Class: activities.ClassFloat}, check: nothingWritten,
		},
		{
			name: "payouts are suspended", plan: payer{}, people: func(w *payoutWorld) { w.rows.suspended = true },
			want: workflows.MomoPayoutResult{Reason: string(workflows.ReasonMomoSuspended), Class: activities.ClassCredential}, check: nothingWritten,
		},
		{
			name: "suspended while it is open", plan: payer{code: "0", after: 5 * sec},
			people: func(w *payoutWorld) {
				w.at(sec, func() { w.rows.suspended = true })
				w.at(3*time.Hour, func() {
					if w.operator.looked > 0 {
						w.answers["asked with a refused credential"] = errBug
					}
					w.rows.suspended = false
				})
			},
			want: paidOut, parked: []workflows.Reason{workflows.ReasonMomoUnknown}, check: wantsAnswer("asked with a refused credential"),
		},
		{
			name: "a bug that is mended", plan: payer{code: "0", after: 5 * sec},
			people: func(w *payoutWorld) { w.book.fault = w.during(0, 8*min, errBug, "Callbacks") },
			want:   paidOut, parked: []workflows.Reason{workflows.ReasonStepFailed},
		},
	} {
		t.Run(s.name, func(t *testing.T) {
			w := newPayoutWorld(s.plan)
			if s.people != nil {
				s.people(w)
			}
			if got := w.pay(t); got != s.want {
				t.Errorf("it ended %+v, want %+v", got, s.want)
			}
			if done := w.rows.payout.Status == exchange.PayoutCompleted; done != s.want.Completed {
				t.Errorf("the payout is %s", w.rows.payout.Status)
			}
			w.sound(t)
			w.parkedWith(t, s.parked...)
			if s.check != nil {
				s.check(t, w)
			}
		})
	}
}

// parkedWith checks what the flow called a person for. One that hands a refusal back leaves the call to its parent.
func (w *payoutWorld) parkedWith(t *testing.T, want ...workflows.Reason) {
	t.Helper()
	w.signs.mu.Lock()
	defer w.signs.mu.Unlock()
	var names []string
	for _, r := range want {
		names = append(names, string(r))
	}
	if got := w.signs.reasons[workflows.MomoPayoutID(w.request.ID)]; !slices.Equal(got, names) {
		t.Errorf("parked with %v, want %v", got, names)
	}
}

// asked checks how often the operator was asked.
func asked(n int) func(*testing.T, *payoutWorld) {
	return func(t *testing.T, w *payoutWorld) {
		t.Helper()
		if w.operator.looked != n {
			t.Errorf("%d questions, want %d", w.operator.looked, n)
		}
	}
}

func nothingWritten(t *testing.T, w *payoutWorld) {
	t.Helper()
	if len(w.rows.attempts) != 0 || w.operator.counts[exchange.Payout] != 0 {
		t.Errorf("%d attempts, %d submissions", len(w.rows.attempts), w.operator.counts[exchange.Payout])
	}
}

func wantsAnswer(key string) func(*testing.T, *payoutWorld) {
	return func(t *testing.T, w *payoutWorld) {
		t.Helper()
		if w.answers[key] != nil {
			t.Error(key)
		}
	}
}

// TestPayoutThatNeverArrived loses the first request on its way. The same payout is sent again under its own id while the
// operator is sure to know ids of that age; once that is over it is asked for and never sent.
func TestPayoutThatNeverArrived(t *testing.T) {
	for name, lost := range map[string]time.Duration{"for a moment": time.Minute, "for longer than ids are known": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newPayoutWorld(payer{code: "0", after: 5 * time.Second})
			w.operator.fault = w.during(0, lost, errAway, "submit")
			if lost > 10*time.Minute {
				w.at(2*time.Hour, func() {
					if w.operator.counts[exchange.Payout] > 0 {
						t.Error("it was sent when the operator may have forgotten its id")
					}
				})
				w.at(3*time.Hour, func() { w.command("resolve") })
			}
			if got := w.pay(t); got != paidOut {
				t.Errorf("it ended %+v", got)
			}
			if n := w.operator.counts[exchange.Payout]; (lost < 10*time.Minute) != (n == 1) {
				t.Errorf("%d requests arrived", n)
			}
		})
	}
}

// TestPayoutStepsMayRunTwice loses the answer of every step of the database once, after its effect and before it.
func TestPayoutStepsMayRunTwice(t *testing.T) {
	for _, plan := range []payer{{code: "0", after: 5 * time.Second}, {code: "2040", after: 5 * time.Second}} {
		for _, call := range []string{"OrderPayout", "Attempt", "BeginOrderPayout", "RecordSubmission", "Callbacks", "CompleteOrderPayout", "RecordFailure", "FailOrderPayout", "Breaker"} {
			for _, after := range []bool{false, true} {
				w := newPayoutWorld(plan)
				if after {
					w.book.lost = once(call)
				} else {
					w.book.fault = once(call)
				}
				want := paidOut
				if plan.code != "0" {
					want = refusal(workflows.ReasonMomoRefused, activities.ClassPayee, plan.code)
				}
				if got := w.pay(t); got != want {
					t.Errorf("%s lost (after %t): it ended %+v, want %+v", call, after, got, want)
				}
				w.sound(t)
			}
		}
	}
}
