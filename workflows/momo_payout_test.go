package workflows_test

import (
	"slices"
	"testing"
	"time"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// refusal is the expected result of a definite refusal.
func refusal(reason workflows.Reason, class exchange.OutcomeClass, code string) workflows.MomoPayoutResult {
	return workflows.MomoPayoutResult{Refused: true, Reason: string(reason), Class: class, Code: code}
}

var paidOut = workflows.MomoPayoutResult{Completed: true}

// TestMomoPayout runs one attempt against every behaviour of the operator.
func TestMomoPayout(t *testing.T) {
	t.Parallel()
	const sec, min = time.Second, time.Minute
	for _, s := range []struct {
		name   string
		plan   payer
		people func(w *payoutHarness)
		want   workflows.MomoPayoutResult
		parked []workflows.Reason
		check  func(t *testing.T, w *payoutHarness)
		only   exchange.MomoObjectType // what can be in this state; any where it is empty
	}{
		{name: "paid", plan: payer{code: "0", after: 5 * sec}, want: paidOut, check: asked(1)},
		{name: "paid, reported twice", plan: payer{code: "0", after: 5 * sec, twice: true}, want: paidOut},
		{name: "the result comes first", plan: payer{code: "0", early: true}, want: paidOut},
		{name: "taken, and the answer is lost", plan: payer{code: "0", after: 5 * sec, deaf: true}, want: paidOut},
		{name: "the answer and the result are lost", plan: payer{code: "0", after: 5 * sec, deaf: true, silent: true}, want: paidOut},
		{name: "the result is lost", plan: payer{code: "0", after: 5 * sec, silent: true}, want: paidOut, check: asked(2)},
		{name: "the result comes late", plan: payer{code: "0", after: 40 * min}, want: paidOut, parked: []workflows.Reason{workflows.ReasonMomoUnknown}},
		{name: "refused at the gateway", plan: payer{refuse: "403.002.1001", config: true}, want: refusal(workflows.ReasonMomoCredential, exchange.ClassCredential, "403.002.1001")},
		{name: "not sent at all", plan: payer{refuse: "not_sent", transient: true}, want: refusal(workflows.ReasonMomoRefused, exchange.ClassBusy, "not_sent")},
		{name: "the payee is not registered", plan: payer{code: "2040", after: 5 * sec}, want: refusal(workflows.ReasonMomoRefused, exchange.ClassPayee, "2040")},
		{name: "the payee's limit", plan: payer{code: "8", after: 5 * sec}, want: refusal(workflows.ReasonMomoPayeeLimit, exchange.ClassPayeeLimit, "8")},
		{name: "our float", plan: payer{code: "1", after: 5 * sec}, want: refusal(workflows.ReasonMomoFloat, exchange.ClassFloat, "1")},
		{name: "our account", plan: payer{code: "2028", after: 5 * sec}, want: refusal(workflows.ReasonMomoRefused, exchange.ClassAccount, "2028")},
		{
			name: "refused, and the result is lost", plan: payer{code: "2040", after: 5 * sec, silent: true},
			want: refusal(workflows.ReasonMomoRefused, exchange.ClassDenied, "not_paid"),
		},
		{
			name: "our credential", plan: payer{code: "2001", after: 5 * sec}, want: refusal(workflows.ReasonMomoCredential, exchange.ClassCredential, "2001"),
			check: func(t *testing.T, w *payoutHarness) {
				if b, err := w.store.Store.Breaker(t.Context(), "daraja"); err != nil || b.Hits != 1 || b.Code != "2001" {
					t.Errorf("refusals of the credential: %+v, %v", b, err)
				}
			},
		},
		{
			name: "a refusal without a second source", plan: payer{code: "2040", after: 5 * sec},
			people: func(w *payoutHarness) {
				w.operator.fault = w.during(0, 2*time.Hour, errAway, "resolve")
				w.at(time.Hour, func() { w.undecided("refused by one source") })
			},
			want:   refusal(workflows.ReasonMomoRefused, exchange.ClassPayee, "2040"),
			parked: []workflows.Reason{workflows.ReasonMomoUnknown},
			check:  wantsAnswer("refused by one source"),
		},
		{
			name: "no source reports anything, until an officer finds it", plan: payer{code: "0", after: 5 * sec, silent: true, mute: true},
			people: func(w *payoutHarness) {
				w.at(time.Hour, func() { w.command("retry") })
				w.at(30*24*time.Hour, func() { w.command("resolve") })
			},
			want: paidOut, parked: []workflows.Reason{workflows.ReasonMomoUnknown},
			check: func(t *testing.T, w *payoutHarness) {
				if n := w.operator.looked; n < 7 || n > 120 {
					t.Errorf("%d queries in a month", n)
				}
				if p := w.payable(); p.Receipt != "UKLMANUAL1" {
					t.Errorf("booked with %q", p.Receipt)
				}
			},
		},
		{
			name: "no source reports anything, until the operator does", plan: payer{code: "0", after: 5 * sec, silent: true},
			people: func(w *payoutHarness) { w.operator.fault = w.during(0, 3*time.Hour, errAway, "resolve") },
			want:   paidOut, parked: []workflows.Reason{workflows.ReasonMomoUnknown},
		},
		{
			name: "no source reports anything, until two officers declare that it was not made", plan: payer{unsent: true, mute: true, silent: true},
			people: func(w *payoutHarness) {
				w.at(3*time.Hour, w.declared)
				w.at(3*time.Hour, func() { w.command("retry") })
			},
			want:   refusal(workflows.ReasonMomoRefused, exchange.ClassDeclared, "declared"),
			parked: []workflows.Reason{workflows.ReasonMomoUnknown},
		},
		{ // the operator is asked first, although the declaration is there
			name: "two officers declare it before the operator had its time", plan: payer{unsent: true, mute: true, silent: true},
			people: func(w *payoutHarness) {
				w.at(min, w.declared)
				w.at(2*min, func() { w.env.SignalWorkflow(workflows.SignalCallback, workflows.CallbackRef{}) })
				w.at(9*min, func() { w.undecided("declared too early") })
			},
			want:  refusal(workflows.ReasonMomoRefused, exchange.ClassDeclared, "declared"),
			check: wantsAnswer("declared too early"),
		},
		{
			name: "two officers deny what the operator claims", plan: payer{code: "0", after: 5 * sec},
			people: func(w *payoutHarness) {
				w.operator.fault = w.during(0, 24*time.Hour, errAway, "resolve") // only the result reports that it was paid
				w.at(2*time.Hour, w.declared)
				w.at(4*time.Hour, func() { w.command("resolve") })
			},
			want: paidOut, parked: []workflows.Reason{workflows.ReasonMomoUnknown, workflows.ReasonMomoDisagree},
		},
		{
			name: "two officers and the operator's answers deny what its result claims", plan: payer{code: "0", after: 5 * sec, reversed: true},
			people: func(w *payoutHarness) {
				w.at(3*time.Hour, w.declared)
				w.at(3*time.Hour, func() { w.command("retry") })
			},
			want:   refusal(workflows.ReasonMomoRefused, exchange.ClassDeclared, "declared"),
			parked: []workflows.Reason{workflows.ReasonMomoDisagree},
		},
		{
			name: "a large payout, and one officer's receipt", plan: payer{code: "0", after: 5 * sec, silent: true, mute: true},
			people: func(w *payoutHarness) {
				w.receiptsNeedTwo()
				w.at(time.Hour, func() { w.command("resolve") })
				w.at(2*time.Hour, func() {
					w.undecided("settled by one officer")
					w.attested("UKLMANUAL1")
				})
				w.at(3*time.Hour, func() { w.command("resolve") })
			},
			want: paidOut, parked: []workflows.Reason{workflows.ReasonMomoUnknown}, check: wantsAnswer("settled by one officer"),
		},
		{
			name: "said to be paid by a try before", plan: payer{}, people: (*payoutHarness).claimed,
			want: workflows.MomoPayoutResult{Reason: string(workflows.ReasonMomoClaimed)}, check: nothingWritten,
		},
		{
			name: "the payee gets no more today", plan: payer{}, people: (*payoutHarness).fillDay,
			want: workflows.MomoPayoutResult{Reason: string(workflows.ReasonMomoPayeeLimit), Class: exchange.ClassPayeeDay}, check: nothingWritten,
		},
		{
			name: "who sent the crypto is denied since", plan: payer{}, people: (*payoutHarness).denySender, only: exchange.MomoOrder,
			want: workflows.MomoPayoutResult{Reason: string(workflows.ReasonDepositScreening)}, check: nothingWritten,
		},
		{
			name: "the sources contradict each other", plan: payer{code: "0", after: 5 * sec, lies: true},
			people: func(w *payoutHarness) {
				w.at(20*min, func() { w.command("retry") })
				w.at(2*time.Hour, func() { w.command("resolve") })
			},
			want: paidOut, parked: []workflows.Reason{workflows.ReasonMomoDisagree},
		},
		{
			name: "another amount was paid", plan: payer{code: "0", after: 5 * sec, pays: "1292"},
			people: func(w *payoutHarness) { w.at(2*time.Hour, func() { w.command("resolve") }) },
			want:   paidOut, parked: []workflows.Reason{workflows.ReasonMomoDisagree},
		},
		{
			name: "the float is short", plan: payer{}, people: func(w *payoutHarness) { w.leave("1292") },
			want: workflows.MomoPayoutResult{Reason: string(workflows.ReasonMomoFloat), Class: exchange.ClassFloat}, check: nothingWritten,
		},
		{
			name: "payouts are suspended", plan: payer{}, people: (*payoutHarness).suspend,
			want: workflows.MomoPayoutResult{Reason: string(workflows.ReasonMomoSuspended), Class: exchange.ClassCredential}, check: nothingWritten,
		},
		{
			name: "suspended while it is open", plan: payer{code: "0", after: 5 * sec},
			people: func(w *payoutHarness) {
				w.at(sec, w.suspend)
				w.at(3*time.Hour, func() {
					w.answers["asked with a refused credential"] = nil
					if n := w.operator.looked; n > 0 {
						w.answers["asked with a refused credential"] = conflict("%d queries", n)
					}
					w.resume()
				})
			},
			want: paidOut, parked: []workflows.Reason{workflows.ReasonMomoUnknown}, check: wantsAnswer("asked with a refused credential"),
		},
		{
			name: "a bug that is mended", plan: payer{code: "0", after: 5 * sec},
			people: func(w *payoutHarness) { w.store.fault = w.during(0, 8*min, errBug, "Callbacks") },
			want:   paidOut, parked: []workflows.Reason{workflows.ReasonStepFailed},
		},
	} {
		for _, kind := range []exchange.MomoObjectType{exchange.MomoOrder, exchange.MomoRefund} {
			if s.only != "" && s.only != kind {
				continue
			}
			t.Run(s.name+" of "+string(kind), func(t *testing.T) {
				t.Parallel()
				w := newPayoutHarness(t, kind, s.plan)
				want, parked := s.want, s.parked
				if kind == exchange.MomoRefund {
					want.Reason, parked = string(refundReasons[workflows.Reason(want.Reason)]), []workflows.Reason{}
					for _, r := range s.parked {
						parked = append(parked, refundReasons[r])
					}
				}
				if s.people != nil {
					s.people(w)
				}
				if want.Refused {
					want.AttemptID, want.Try = activities.PayoutID(w.of.ID, 1), 1
				}
				if got := w.pay(t); got != want {
					t.Errorf("it ended %+v, want %+v", got, want)
				}
				if p := w.payable(); p.Paid != want.Completed {
					t.Errorf("the payout is %s", p.Status)
				}
				w.sound(t)
				w.parkedWith(t, parked...)
				if s.check != nil {
					s.check(t, w)
				}
			})
		}
	}
}

// refundReasons are the reasons to park with a refund where an order has another. States that no refund has are missing.
var refundReasons = map[workflows.Reason]workflows.Reason{
	workflows.ReasonMomoUnknown: workflows.ReasonRefundUnknown, workflows.ReasonMomoDisagree: workflows.ReasonRefundDisagree,
	workflows.ReasonMomoFloat: workflows.ReasonRefundFloat, workflows.ReasonMomoSuspended: workflows.ReasonRefundSuspended,
	workflows.ReasonStepFailed: workflows.ReasonStepFailed, workflows.ReasonMomoClaimed: workflows.ReasonRefundLate,
	workflows.ReasonMomoPayeeLimit: workflows.ReasonRefundPayeeLimit, workflows.ReasonMomoCredential: workflows.ReasonRefundCredential,
	workflows.ReasonMomoRefused: workflows.ReasonRefundRefused,
}

// parkedWith checks the reasons with which the flow parked. A flow that returns a refusal leaves parking to its parent.
func (w *payoutHarness) parkedWith(t *testing.T, want ...workflows.Reason) {
	t.Helper()
	w.signs.mu.Lock()
	defer w.signs.mu.Unlock()
	var names []string
	for _, r := range want {
		names = append(names, string(r))
	}
	if got := w.signs.reasons[workflows.MomoPayoutID(w.of)]; !slices.Equal(got, names) {
		t.Errorf("parked with %v, want %v", got, names)
	}
}

// asked checks how often the operator was queried.
func asked(n int) func(*testing.T, *payoutHarness) {
	return func(t *testing.T, w *payoutHarness) {
		t.Helper()
		if w.operator.looked != n {
			t.Errorf("%d queries, want %d", w.operator.looked, n)
		}
	}
}

func nothingWritten(t *testing.T, w *payoutHarness) {
	t.Helper()
	_, err := w.store.Store.Attempt(t.Context(), activities.PayoutID(w.of.ID, w.try))
	if exchange.CodeOf(err) != exchange.CodeNotFound || w.operator.counts[exchange.Payout] != 0 {
		t.Errorf("the attempt was written, or %v, and there were %d submissions", err, w.operator.counts[exchange.Payout])
	}
}

// wantsAnswer checks what was noted under a key while the flow ran. A flow that ended before is too early.
func wantsAnswer(key string) func(*testing.T, *payoutHarness) {
	return func(t *testing.T, w *payoutHarness) {
		t.Helper()
		if err, noted := w.answers[key]; err != nil || !noted {
			t.Errorf("%s: noted %t, %v", key, noted, err)
		}
	}
}

// TestPayoutThatNeverArrived loses the first request. The same payout is sent again under its own id while the
// operator certainly remembers ids of that age; after that it is only queried.
func TestPayoutThatNeverArrived(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]time.Duration{"for a moment": time.Minute, "for longer than ids are known": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPayoutHarness(t, exchange.MomoOrder, payer{code: "0", after: 5 * time.Second})
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

// TestPayoutStepsMayRunTwice has every database step of a payout fail once before its effect, and once after it.
func TestPayoutStepsMayRunTwice(t *testing.T) {
	t.Parallel()
	steps := []string{"Payable", "Attempt", "BeginPayout", "RecordSubmission", "Callbacks", "Breaker", "SavePayoutQuery", "PayoutQueries"}
	for code, ends := range map[string][]string{"0": {"CompletePayout"}, "2040": {"RecordFailure", "FailPayout"}} {
		for _, call := range append(ends, steps...) {
			t.Run(call+" of "+code, func(t *testing.T) {
				t.Parallel()
				w := newPayoutHarness(t, exchange.MomoOrder, payer{code: code, after: 5 * time.Second})
				failed := 0
				fails := func(once func(string) error) func(string) error {
					return func(call string) error {
						err := once(call)
						if err != nil {
							failed++
						}
						return err
					}
				}
				w.store.fault, w.store.lost = fails(once(call)), fails(once(call))
				want := paidOut
				if code != "0" {
					want = refusal(workflows.ReasonMomoRefused, exchange.ClassPayee, code)
					want.AttemptID, want.Try = activities.PayoutID(w.of.ID, 1), 1
				}
				if got := w.pay(t); got != want || failed != 2 {
					t.Errorf("it ended %+v after %d failures, want %+v", got, failed, want)
				}
				w.sound(t)
			})
		}
	}
}
