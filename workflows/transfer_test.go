package workflows_test

import (
	"testing"
	"time"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// passage is a scenario of a transfer.
type passage struct {
	name     string
	internal bool
	required int
	cold     bool
	durable  bool // the cold wallet's transactions are valid by a nonce account
	answers  []answer
	outcomes []outcome
	people   func(w *transferHarness)
	status   exchange.TransferStatus
	detail   string
	reasons  []workflows.Reason // that it was parked with
	check    func(t *testing.T, w *transferHarness)
}

func (s passage) play(t *testing.T) {
	w := newTransferHarness(t)
	if s.durable {
		w = newTransferHarnessOn(t, exchange.Solana)
	}
	if s.internal {
		w.inside()
	}
	if s.required > 0 {
		w.needs(s.required)
	}
	if s.cold {
		w.freeze()
	}
	w.screener.replies(s.answers...)
	w.chain.script = func(n int) outcome { return pick(s.outcomes, n, outcome{}) }
	if s.people != nil {
		s.people(w)
	}
	r := w.play(t)
	if r.Status != s.status || r.Detail != s.detail {
		t.Errorf("the transfer ended as %s (%s), want %s (%s)", r.Status, r.Detail, s.status, s.detail)
	}
	w.signs.were(t, workflows.TransferID(w.ask.ID), s.reasons...)
	if s.check != nil {
		s.check(t, w)
	}
}

func answered(id string, want exchange.Code) func(*testing.T, *transferHarness) {
	return func(t *testing.T, w *transferHarness) { t.Helper(); wants(id, want)(t, w.harness) }
}

func noted(want ...exchange.Code) func(*testing.T, *transferHarness) {
	return func(t *testing.T, w *transferHarness) {
		t.Helper()
		if len(w.noted) != len(want) {
			t.Fatalf("noted %v, want %v", w.noted, want)
		}
		for i := range want {
			if w.noted[i] != want[i] {
				t.Errorf("noted %v, want %v", w.noted, want)
			}
		}
	}
}

const (
	whenParked = time.Hour
	sent       = exchange.TransferCompleted
)

func screeningPassages() []passage {
	return []passage{
		{name: "internal", internal: true, status: sent, detail: none, check: func(t *testing.T, w *transferHarness) {
			answered("open", "")(t, w)
			if w.screener.asked != 0 {
				t.Error("a recipient in our custody was screened")
			}
		}},
		{name: "external", status: sent, detail: none},
		{
			name: "on the deny list", status: exchange.TransferBlocked, detail: exchange.DetailReleased, reasons: []workflows.Reason{workflows.ReasonBlocked},
			people: func(w *transferHarness) {
				w.deny()
				w.at(whenParked, func() { w.order(activities.VerbRefund) })
			},
		},
		{
			name: "the screener says no", answers: []answer{{verdict: exchange.VerdictHit}}, status: exchange.TransferBlocked, detail: exchange.DetailReleased,
			reasons: []workflows.Reason{workflows.ReasonBlocked},
			people: func(w *transferHarness) {
				w.at(time.Minute, func() { w.cancel() })
				w.at(2*time.Minute, func() { w.order(activities.VerbRetry) })
				w.at(3*time.Minute, func() {
					if !w.held() {
						panic("the money of a blocked transfer was freed without a decision")
					}
				})
				w.at(whenParked, func() { w.order(activities.VerbRefund) })
			},
			check: func(t *testing.T, w *transferHarness) {
				answered("cancel", exchange.CodeStateConflict)(t, w)
				answered(activities.VerbRetry, exchange.CodeStateConflict)(t, w)
			},
		},
		{
			name: "the screener does not know, later it does", answers: []answer{{verdict: exchange.VerdictUnknown}, {verdict: exchange.VerdictClear}},
			status: sent, detail: none, reasons: []workflows.Reason{workflows.ReasonScreening},
			people: func(w *transferHarness) { w.at(whenParked, func() { w.order(activities.VerbRetry) }) },
		},
		{
			name: "the screener is silent, a retry signal asks again", answers: []answer{noAnswer, noAnswer, noAnswer, noAnswer, noAnswer, noAnswer, noAnswer, noAnswer, noAnswer, noAnswer, noAnswer, {verdict: exchange.VerdictClear}},
			status: sent, detail: none, reasons: []workflows.Reason{workflows.ReasonScreening},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.env.SignalWorkflow(workflows.SignalRetry, nil) })
			},
		},
		{
			name: "the screener stays silent, the money goes back", answers: []answer{noAnswer}, status: exchange.TransferCancelled,
			detail: exchange.DetailByStaff, reasons: []workflows.Reason{workflows.ReasonScreening},
			people: func(w *transferHarness) { w.at(whenParked, func() { w.order(activities.VerbRefund) }) },
		},
		{
			name: "given up while the screening is unknown", answers: []answer{{verdict: exchange.VerdictUnknown}}, status: exchange.TransferCancelled,
			detail: exchange.DetailBySender, reasons: []workflows.Reason{workflows.ReasonScreening},
			people: func(w *transferHarness) { w.at(whenParked, func() { w.cancel() }) }, check: answered("cancel", ""),
		},
	}
}

func approvalPassages() []passage {
	approve := func(w *transferHarness, at time.Duration) {
		w.at(at, func() { w.decide("approve", workflows.UpdateApprove, w.token(1, exchange.Approve)) })
	}
	approveSoon := func(w *transferHarness) {
		w.whenAsked(func() { w.decide("approve", workflows.UpdateApprove, w.token(1, exchange.Approve)) })
	}
	return []passage{
		{name: "approved through the API", required: 1, status: sent, detail: none, people: func(w *transferHarness) { approveSoon(w) }, check: answered("approve", "")},
		{
			name: "approved by signal", required: 1, status: sent, detail: none, check: noted(),
			people: func(w *transferHarness) {
				w.whenAsked(func() { w.knock(workflows.SignalApprove, w.token(1, exchange.Approve)) })
			},
		},
		{
			name: "two officers, one by the API and one by a signal", required: 2, status: sent, detail: none,
			people: func(w *transferHarness) {
				w.whenAsked(func() {
					again := w.token(1, exchange.Approve)
					w.decide("approve", workflows.UpdateApprove, w.token(1, exchange.Approve))
					w.at(time.Minute, func() { w.decide("again", workflows.UpdateApprove, again) })
				})
				w.at(2*time.Hour, func() { w.knock(workflows.SignalApprove, w.token(2, exchange.Approve)) })
			},
			check: func(t *testing.T, w *transferHarness) {
				answered("again", exchange.CodeConflict)(t, w)
				noted(exchange.CodeConflict)(t, w)
			},
		},
		{
			name: "rejected by signal", required: 2, status: exchange.TransferRejected, detail: exchange.DetailRejected,
			people: func(w *transferHarness) {
				approveSoon(w)
				w.at(time.Hour, func() { w.knock(workflows.SignalReject, w.token(2, exchange.Reject)) })
			},
		},
		{
			name: "rejected through the API", required: 1, status: exchange.TransferRejected, detail: exchange.DetailRejected,
			people: func(w *transferHarness) {
				w.whenAsked(func() { w.decide("reject", workflows.UpdateReject, w.token(1, exchange.Reject)) })
			},
		},
		{
			name: "signals without a valid token decide nothing", required: 1, status: exchange.TransferCancelled, detail: exchange.DetailLapsed,
			people: func(w *transferHarness) {
				w.whenAsked(func() {
					w.env.SignalWorkflow(workflows.SignalApprove, nil)
					w.at(time.Second, func() { w.env.SignalWorkflow(workflows.SignalApprove, "yes") })
					w.at(2*time.Second, func() { w.knock(workflows.SignalApprove, "made up") })
					w.at(3*time.Second, func() { w.knock(workflows.SignalApprove, w.token(1, exchange.Reject)) })
					w.at(4*time.Second, func() {
						late := w.token(1, exchange.Approve)
						w.at(exchange.ApprovalTokenTTL, func() { w.knock(workflows.SignalApprove, late) })
					})
				})
			},
			check: noted(exchange.CodeNotFound, exchange.CodeNotFound, exchange.CodeNotFound, exchange.CodeNotFound, exchange.CodeExpired),
		},
		{
			name: "a flood of signals is noted a hundred times and the API still decides", required: 1, status: sent, detail: none,
			people: func(w *transferHarness) {
				w.whenAsked(func() {
					for range 120 {
						w.knock(workflows.SignalApprove, "made up")
					}
				})
				approve(w, time.Hour)
			},
			check: func(t *testing.T, w *transferHarness) {
				answered("approve", "")(t, w)
				if n := len(w.noted); n != 100 {
					t.Errorf("%d false signals were processed", n)
				}
			},
		},
		{
			name: "officers decide after its execution was cancelled", required: 1, status: sent, detail: none, check: answered("approve", ""),
			people: func(w *transferHarness) {
				w.whenAsked(w.env.CancelWorkflow)
				approve(w, time.Hour)
			},
		},
		{name: "no officer decides", required: 1, status: exchange.TransferCancelled, detail: exchange.DetailLapsed},
		{
			name: "one decides and the second never does", required: 2, status: exchange.TransferCancelled, detail: exchange.DetailLapsed,
			people: func(w *transferHarness) { approve(w, 24*time.Hour) },
		},
		{
			name: "given up while officers think", required: 1, status: exchange.TransferCancelled, detail: exchange.DetailBySender,
			people: func(w *transferHarness) {
				w.at(time.Hour, func() {
					late := w.token(1, exchange.Approve)
					w.cancel()
					w.at(time.Millisecond, func() { w.decide("approve", workflows.UpdateApprove, late) })
				})
			},
			check: answered("cancel", ""),
		},
		{
			name: "no approval required", status: sent, detail: none, outcomes: []outcome{{slow: 20 * time.Second}},
			check: answered("approve", exchange.CodeStateConflict),
			people: func(w *transferHarness) {
				w.at(10*time.Second, func() { w.decide("approve", workflows.UpdateApprove, "made up") })
			},
		},
	}
}

func payingPassages() []passage {
	return []passage{
		{name: "dropped and signed anew", outcomes: []outcome{{dropped: true}, {}}, status: sent, detail: none},
		{name: "reorganised away", internal: true, outcomes: []outcome{{reorg: true}}, status: sent, detail: none},
		{
			name: "failed on the chain, tried again", outcomes: []outcome{{reverts: true}, {}}, status: sent, detail: none,
			reasons: []workflows.Reason{workflows.ReasonPayoutFailed},
			people:  func(w *transferHarness) { w.at(whenParked, func() { w.order(activities.VerbRetry) }) },
		},
		{
			name: "failed on the chain, the money goes back", outcomes: []outcome{{reverts: true}}, status: exchange.TransferFailed, detail: exchange.DetailGivenUp,
			reasons: []workflows.Reason{workflows.ReasonPayoutFailed},
			people:  func(w *transferHarness) { w.at(whenParked, func() { w.order(activities.VerbRefund) }) }, check: answered(activities.VerbRefund, ""),
		},
		{
			name: "failed on the chain, the money goes back when that is read", outcomes: []outcome{{reverts: true}}, status: exchange.TransferFailed, detail: exchange.DetailGivenUp,
			reasons: []workflows.Reason{workflows.ReasonPayoutFailed},
			people: func(w *transferHarness) {
				w.unread = 3 * time.Hour
				w.at(whenParked, func() { w.order(activities.VerbRefund) })
				w.at(2*time.Hour, func() {
					if f := w.row(); f.Over() {
						w.t.Errorf("the transfer is %s before the watch has read the chain", f.Status)
					}
				})
			},
			check: answered(activities.VerbRefund, ""),
		},
		{
			name: "to an invalid address, the money goes back", outcomes: []outcome{{refused: chain.ReasonAddress}}, status: exchange.TransferFailed,
			detail: exchange.DetailGivenUp, reasons: []workflows.Reason{workflows.ReasonPayoutAddress},
			people: func(w *transferHarness) { w.at(whenParked, func() { w.order(activities.VerbRefund) }) }, check: answered(activities.VerbRefund, ""),
		},
		{
			name: "can't be built, given up by its sender", outcomes: []outcome{{refused: chain.ReasonBlocked}}, status: exchange.TransferCancelled,
			detail: exchange.DetailBySender, reasons: []workflows.Reason{workflows.ReasonPayoutBlocked},
			people: func(w *transferHarness) { w.at(whenParked, func() { w.cancel() }) }, check: answered("cancel", ""),
		},
		{
			name: "the signer refuses, then signs", outcomes: []outcome{{trouble: exchange.Errorf(exchange.CodeForbidden, "over the ceiling")}, {}}, status: sent, detail: none,
			reasons: []workflows.Reason{workflows.ReasonPayoutSigning},
			people:  func(w *transferHarness) { w.at(whenParked, func() { w.order(activities.VerbRetry) }) },
		},
		{
			name: "too late to give up", outcomes: []outcome{{slow: time.Minute}}, status: sent, detail: none,
			people: func(w *transferHarness) { w.at(30*time.Second, func() { w.cancel() }) }, check: answered("cancel", exchange.CodeStateConflict),
		},
		{
			name: "cold, given back by an operator", internal: true, cold: true, status: exchange.TransferCancelled, detail: exchange.DetailByStaff,
			reasons: []workflows.Reason{workflows.ReasonColdWallet},
			people:  func(w *transferHarness) { w.at(whenParked, func() { w.order(activities.VerbRefund) }) },
		},
		{
			name: "cold, given up by its sender", cold: true, status: exchange.TransferCancelled, detail: exchange.DetailBySender,
			reasons: []workflows.Reason{workflows.ReasonColdWallet},
			people:  func(w *transferHarness) { w.at(whenParked, func() { w.cancel() }) },
		},
	}
}

func TestTransfers(t *testing.T) {
	t.Parallel()
	for group, list := range map[string][]passage{"screening": screeningPassages(), "approval": approvalPassages(), "paying": payingPassages()} {
		for _, s := range list {
			t.Run(group+"/"+s.name, func(t *testing.T) { t.Parallel(); s.play(t) })
		}
	}
}

func TestRefusedTransferAnswersAndEnds(t *testing.T) {
	t.Parallel()
	w := newTransferHarness(t)
	w.ask.Amount = money.Must(money.USDT, "1000")
	r := w.play(t)
	answered("open", exchange.CodeInsufficientFunds)(t, w)
	if r.Status != "" {
		t.Errorf("a refused transfer is %s", r.Status)
	}
}

// Every step may fail before its effect or lose its response after it. The transfer still arrives, once.
func TestTransfersSurviveFaults(t *testing.T) {
	t.Parallel()
	calls := []string{
		"OpenTransfer", "AdvanceTransfer", "TransferByID", "Denied", "RecordScreening", "SignTransfer", "Decide", "ChainPayment", "LiveAttempt",
		"SaveSignedAttempt", "RecordBroadcast", "RecordIncluded", "RecordFinal",
	}
	away := exchange.Errorf(exchange.CodeUnavailable, "away")
	for _, call := range calls {
		for _, after := range []bool{false, true} {
			name := "before " + call
			if after {
				name = "after " + call
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newTransferHarness(t)
				w.needs(1)
				times := 2
				trouble := func(c string) error {
					if c != call || times == 0 {
						return nil
					}
					times--
					return away
				}
				if after {
					w.store.lost = trouble
				} else {
					w.store.fault = trouble
				}
				w.at(time.Hour, func() { w.decide("approve", workflows.UpdateApprove, w.token(1, exchange.Approve)) })
				if r := w.play(t); r.Status != exchange.TransferCompleted {
					t.Errorf("the transfer is %s (%s)", r.Status, r.Detail)
				}
				if times == 2 {
					t.Errorf("%s was never in trouble", call)
				}
			})
		}
	}
}
