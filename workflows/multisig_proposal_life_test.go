package workflows_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/mock"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// A history has at most 51,200 events. A step of the flow needs three, a timer two, and what it wakes three more.
const (
	mostEvents     = 51_200
	eventsOfStep   = 6
	eventsOfTimer  = 5
	eventsOfUpdate = 10
)

// events is an upper bound of the events in the history of the proposal's flow.
func (w *proposalHarness) events() int {
	w.signs.mu.Lock()
	defer w.signs.mu.Unlock()
	id := workflows.MultisigProposalID(w.ask.ID)
	steps := w.signs.steps[id]
	return (steps["activity"]+steps["local activity"]+steps["child"])*eventsOfStep + steps["timer"]*eventsOfTimer + w.signs.shown[id] + len(w.answers)*eventsOfUpdate
}

// took checks that a flow has few events: no wait of it is a loop without a pause.
func (w *proposalHarness) took(t *testing.T, most int) {
	t.Helper()
	if n := w.events(); n > most {
		t.Errorf("the history has %d events or more, want %d at most: %v", n, most, w.signs.steps[workflows.MultisigProposalID(w.ask.ID)])
	}
}

// freezes freezes all payments, and lifts that after a time.
func (w *proposalHarness) freezes(from, to time.Duration) {
	by := storetest.PrincipalOf(storetest.User(w.t, w.store.Store, exchange.RoleAdmin))
	w.at(from, func() {
		if _, err := w.store.Freeze(w.t.Context(), uuid.New(), "a key may have leaked", by); err != nil {
			w.t.Error(err)
		}
	})
	w.at(to, func() {
		if err := storetest.Agreed(w.t, w.store.Store)(w.store.ProposeLift(w.t.Context(), "it has not", by)); err != nil {
			w.t.Error(err)
		}
	})
}

// otherExecutes has another tool send what the owners signed: the watch reads it in the next block, which is final.
func (w *proposalHarness) otherExecutes() {
	c, _, err := w.store.DepositCursor(w.t.Context(), networkName)
	if err != nil {
		w.t.Error(err)
		return
	}
	w.final = c.Final.Number + 1
	w.net.other, w.net.at = w.payload().JointID, chain.Block{Number: w.final, ID: "other"}
	scan := exchange.BlockScan{
		Network: networkName, Block: exchange.ChainBlock{Number: w.final, ID: "other", Parent: c.Final.ID, Time: w.env.Now()},
		Movements: []exchange.ChainMovement{{TxID: w.net.other, From: w.account.Address, To: payee, Amount: w.ask.Amount}},
	}
	if _, err := w.store.RecordFinalBlock(w.t.Context(), scan); err != nil {
		w.t.Error(err)
	}
}

// longest is the longest time between two looks at the chain from a moment to another.
func (w *proposalHarness) longest(from, to time.Duration) (gap time.Duration) {
	last := w.start.Add(from)
	for _, at := range append(w.net.looks, w.start.Add(to)) {
		if at.Before(w.start.Add(from)) || at.After(w.start.Add(to)) {
			continue
		}
		gap, last = max(gap, at.Sub(last)), at
	}
	return gap
}

// What was executed by an officer and is frozen until it expires is signed and executed anew, and paid once. Meanwhile the flow sleeps.
func TestFrozenUntilItExpires(t *testing.T) {
	t.Parallel()
	w := newProposal(t)
	w.freezes(90*time.Minute, 30*time.Hour)
	w.done()
	w.at(22*time.Hour, func() { w.watchReads(); w.net.expired = true })
	w.at(29*time.Hour, func() {
		if p := w.row(); p.Status != exchange.ProposalApproving || p.ExecutedBy != uuid.Nil {
			t.Errorf("what was signed has expired, and the proposal is %s, executed by %s", p.Status, p.ExecutedBy)
		}
	})
	w.at(35*time.Hour, func() { w.signed(w.account.Owners[0].Address) })
	w.at(36*time.Hour, func() { w.signed(w.account.Owners[1].Address) })
	w.at(37*time.Hour, func() {
		if sent := w.chain.sent(exchange.ForProposal); len(sent) != 0 {
			t.Errorf("it was sent %d times before an officer had it executed anew", len(sent))
		}
		w.executes()
	})
	w.play(t, exchange.ProposalExecuted, exchange.WaitNothing)
	w.took(t, 6_000) // with a look every half an hour
}

// Another tool sends what the owners signed: in a freeze in which ours may not be sent, and when our own execution was refused.
func TestOthersExecute(t *testing.T) {
	t.Parallel()
	for name, people := range map[string]func(*proposalHarness){
		"while ours is frozen": func(w *proposalHarness) {
			w.freezes(90*time.Minute, 5*24*time.Hour)
			w.done()
			w.at(3*time.Hour, w.otherExecutes)
		},
		"before ours, in a freeze": func(w *proposalHarness) {
			w.freezes(90*time.Minute, 5*24*time.Hour)
			w.agreed()
			w.at(110*time.Minute, w.otherExecutes)
		},
		"after ours was refused": func(w *proposalHarness) {
			w.agreed()
			w.at(100*time.Minute, func() {
				w.executedBy(storetest.PrincipalOf(storetest.User(w.t, w.store.Store, exchange.RoleVendor)))
			})
			w.at(110*time.Minute, func() {
				if w.answers["execute"] == nil {
					w.t.Error("a merchant had it executed")
				}
				w.otherExecutes()
			})
		},
		"when it is to end": func(w *proposalHarness) {
			w.agreed()
			w.at(2*time.Hour, w.cancels)
			w.at(3*time.Hour, w.otherExecutes)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newProposal(t)
			people(w)
			w.play(t, exchange.ProposalExecuted, exchange.DetailOther)
			if took := w.env.Now().Sub(w.start); took > 4*time.Hour {
				t.Errorf("it was seen after %s", took)
			}
			w.took(t, 3_000)
		})
	}
}

// A payment that is parked within the delivery is an officer's to retry, and is made then.
func TestRetryOfAParkedExecution(t *testing.T) {
	t.Parallel()
	w := newProposal(t)
	retried := false
	w.at(110*time.Minute, func() { // as after transactions that failed too often
		if _, err := w.store.ParkChainPayment(t.Context(), w.row().PaymentID, "OUT_OF_GAS"); err != nil {
			t.Error(err)
		}
	})
	w.done()
	w.at(4*time.Hour, func() {
		if sent := w.chain.sent(exchange.ForProposal); len(sent) != 0 {
			t.Errorf("a parked payment was sent %d times", len(sent))
		}
		w.orders()
		retried = true
	})
	w.play(t, exchange.ProposalExecuted, exchange.WaitNothing, workflows.ReasonProposalExecution)
	if took := w.env.Now().Sub(w.start); !retried || took > 4*time.Hour+5*time.Minute {
		t.Errorf("it was paid after %s", took)
	}
	w.took(t, 2_000)
}

// A proposal that is parked goes on as soon as its row is another one, and does not wait for its next try.
func TestParkedGoesOnWithItsRow(t *testing.T) {
	t.Parallel()
	w := newProposal(t)
	for range 200 {
		w.net.refuses = append(w.net.refuses, chain.Errorf(chain.ReasonFunds, "too little"))
	}
	w.approved()
	w.at(30*time.Hour, w.cancels)
	w.play(t, exchange.ProposalCancelled, exchange.DetailBySender, workflows.ReasonProposalPayload)
	if took := w.env.Now().Sub(w.start); took > 30*time.Hour+time.Minute {
		t.Errorf("it ended after %s", took)
	}
	w.took(t, 2_000)
}

// What people do while a step is on its way is seen at once, also when the answer of the step is older.
func TestPeopleActDuringAStep(t *testing.T) {
	t.Parallel()
	for call, from := range map[string]time.Duration{"AdvanceProposal": 0, "SignProposal": 2 * time.Hour} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			w := newProposal(t)
			var acted time.Time
			looks := 0
			w.store.lost = func(done string) error {
				if done == call && acted.IsZero() && w.env.Now().Sub(w.start) >= from {
					acted, looks = w.env.Now(), len(w.net.looks)
					answered := make(chan struct{})
					w.cancelsThen(func() { close(answered) })
					<-answered
				}
				return nil
			}
			if from > 0 {
				w.agreed()
				w.at(10*time.Hour, func() { w.watchReads(); w.net.expired = true })
			}
			w.play(t, exchange.ProposalCancelled, exchange.DetailBySender)
			seen := w.env.Now()
			if from > 0 {
				seen = w.net.looks[looks]
			}
			if acted.IsZero() || seen.Sub(acted) > time.Minute {
				t.Errorf("it was cancelled at %s, which was seen at %s", acted, seen)
			}
		})
	}
}

// A signal to look again has the flow ask the chain at once, whatever it waits for, and once.
func TestASignalLooksAtTheChain(t *testing.T) {
	t.Parallel()
	const woken = 10*time.Hour + 7*time.Minute
	for name, c := range map[string]struct {
		people func(*proposalHarness)
		parked []workflows.Reason
	}{
		"it waits for owners": {func(w *proposalHarness) { w.agreed() }, nil},
		"it is to end": {func(w *proposalHarness) {
			w.agreed()
			w.at(2*time.Hour, w.cancels)
		}, nil},
		"the chain did not answer": {func(w *proposalHarness) {
			w.agreed()
			w.at(2*time.Hour, w.cancels)
			w.at(3*time.Hour, func() { w.net.fails = chain.Errorf(chain.ReasonForeign, "its history is gone") })
			w.at(woken, func() { w.net.fails = nil })
		}, []workflows.Reason{workflows.ReasonProposalOutcome}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, looks := newProposal(t), 0
			c.people(w)
			w.at(woken, func() {
				looks = len(w.net.looks)
				w.env.SignalWorkflow(workflows.SignalResume, nil)
			})
			w.at(woken+time.Minute, func() {
				if n := len(w.net.looks) - looks; n < 1 || n > 2 { // one may be due anyway
					t.Errorf("within a minute the chain was asked %d times", n)
				}
				w.cancelsThen(func() { // before, what has expired would be prepared anew
					w.watchReads()
					w.net.expired = true
					w.env.SignalWorkflow(workflows.SignalResume, nil)
				})
			})
			w.play(t, exchange.ProposalCancelled, exchange.DetailBySender, c.parked...)
			if took := w.env.Now().Sub(w.start); took > woken+5*time.Minute {
				t.Errorf("its end was seen after %s", took)
			}
			w.took(t, 1_500)
		})
	}
}

// While a proposal lives the chain is looked at every half an hour at least: another tool may execute it. One that is to end is looked at less and
// less often, for months.
func TestLooksAtTheChain(t *testing.T) {
	t.Parallel()
	const life, ends = 5 * 24 * time.Hour, 200 * 24 * time.Hour
	w := newProposal(t)
	w.patience = ends + 10*24*time.Hour
	w.agreed()
	w.at(life, w.cancels)
	w.at(ends, func() { w.watchReads(); w.net.expired = true })
	w.play(t, exchange.ProposalCancelled, exchange.DetailBySender)
	const margin = time.Minute
	if gap := w.longest(time.Hour, life); gap > 30*time.Minute+margin {
		t.Errorf("%s passed between two looks at what could be executed", gap)
	}
	if gap := w.longest(life, life+7*24*time.Hour); gap > 30*time.Minute+margin {
		t.Errorf("%s passed between two looks in the first week of the end", gap)
	}
	if gap := w.longest(life, ends); gap < time.Hour || gap > 24*time.Hour {
		t.Errorf("the looks of months are %s apart at most", gap)
	}
	t.Logf("%d looks, %d events", len(w.net.looks), w.events())
	w.took(t, mostEvents/2)
}

// A node that is behind the block of a payload does not say what became of it: the flow asks again after a while, and is not parked.
func TestLaggingNode(t *testing.T) {
	t.Parallel()
	w := newProposal(t)
	w.net.lags = 6
	w.done()
	w.play(t, exchange.ProposalExecuted, exchange.WaitNothing)
	if first, seventh := w.net.looks[0], w.net.looks[6]; w.net.lags != 0 || seventh.Sub(first) < 20*time.Second || seventh.Sub(first) > 5*time.Minute {
		t.Errorf("the chain was asked at %s and for the seventh time at %s", first, seventh)
	}
	w.took(t, 1_500)
}

// An account that pays its fees itself and lacks native coin gets some before anything is signed.
func TestFuelBeforeThePayload(t *testing.T) {
	t.Parallel()
	w := newProposal(t)
	gas := storetest.GasWallet(t, w.store.Store, networkName)
	storetest.Gas(t, w.store.Store, gas.ID, money.Must(money.TRX, "500"))
	w.net.refuses = []error{&chain.Error{Reason: chain.ReasonGas, Detail: "too little", Missing: money.Must(money.TRX, "20")}}
	w.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, workflows.SignalGas, mock.Anything).Return(errors.New("no such flow"))
	w.done()
	w.play(t, exchange.ProposalExecuted, exchange.WaitNothing)
	if brought := w.chain.sent(exchange.ForGas); len(brought) != 1 || brought[0].ToAddress != w.account.Address {
		t.Errorf("brought: %+v", brought)
	}
	w.took(t, 1_500)
}

// Where no gas can be brought, the proposal is parked with that, and goes on when the account has some.
func TestFuelIsRefused(t *testing.T) {
	t.Parallel()
	w := newProposal(t)
	w.net.refuses = []error{&chain.Error{Reason: chain.ReasonGas, Detail: "too little", Missing: money.Must(money.TRX, "500")}} // above the cap
	w.done()
	w.play(t, exchange.ProposalExecuted, exchange.WaitNothing, workflows.ReasonProposalPayload)
}

// A proposal to a recipient who is new has enough approvals and rests. Every ten minutes the rule is asked again, and after the rest it goes on by itself.
func TestProposalRestsWithItsRecipient(t *testing.T) {
	t.Parallel()
	w := newProposal(t)
	storetest.Exec(t, w.store.Store, `UPDATE release_policy SET rest_seconds = 93600, rest_above = 1000`)
	const rest, margin = 6*time.Hour + 5*time.Minute, time.Minute
	var asked []time.Time
	w.store.lost = func(call string) error {
		if call == "AdvanceProposal" {
			asked = append(asked, w.env.Now())
		}
		return nil
	}
	w.approved()
	w.at(rest, func() {
		if p := w.row(); p.Status != exchange.ProposalApproving || p.StatusDetail != exchange.WaitRest || p.PaymentID != uuid.Nil || w.net.prepared != 0 {
			t.Errorf("in the rest it is %s (%s), and %d payloads were prepared", p.Status, p.StatusDetail, w.net.prepared)
		}
		if len(asked) < 30 {
			t.Fatalf("the rule was asked %d times in six hours", len(asked))
		}
		for i, at := range asked[2:] {
			if pause := at.Sub(asked[i+1]); pause < 10*time.Minute || pause > 10*time.Minute+margin {
				t.Errorf("the rule was asked again after %s", pause)
			}
		}
		storetest.Rested(t, w.store.Store)
	})
	w.at(rest+10*time.Minute+margin, func() {
		if p := w.row(); p.Status != exchange.ProposalSigning || w.net.prepared != 1 {
			t.Errorf("after the rest it is %s (%s), and %d payloads were prepared", p.Status, p.StatusDetail, w.net.prepared)
		}
	})
	w.at(7*time.Hour, func() { w.signed(w.account.Owners[0].Address) })
	w.at(8*time.Hour, func() { w.signed(w.account.Owners[1].Address) })
	w.at(9*time.Hour, w.executes)
	w.play(t, exchange.ProposalExecuted, exchange.WaitNothing)
	w.took(t, 3_000)
}

// Our own transaction is in a block that is undone, and no other block takes it until it has expired. So the payload is void, owners sign the payment
// anew, and it is paid once.
func TestUndoneUntilItExpires(t *testing.T) {
	t.Parallel()
	w := newProposal(t)
	w.chain.script = func(n int) outcome { return outcome{undone: n == 1} }
	w.signable = 130 * time.Minute // ten minutes after it is executed
	w.done()
	payloads := func() []exchange.MultisigPayload {
		all, err := w.store.Payloads(t.Context(), w.ask.ID)
		if err != nil || len(all) == 0 {
			t.Fatalf("%d payloads, %v", len(all), err)
		}
		return all
	}
	w.at(2*time.Hour+8*time.Minute, func() {
		if p, all := w.row(), payloads(); !p.Sent() || p.TxHash != all[0].JointID || len(all) != 1 || !all[0].Open() {
			t.Errorf("what was sent is not expired, and the proposal is %s by %s, with %d payloads, %s", p.Status, p.TxHash, len(all), all[0].Status)
		}
	})
	w.at(2*time.Hour+9*time.Minute, w.watchReads)
	w.at(2*time.Hour+30*time.Minute, func() {
		if p, all := w.row(), payloads(); p.Status != exchange.ProposalSigning || p.ExecutedBy != uuid.Nil || p.TxHash != "" || len(all) != 2 || all[0].Status != exchange.PayloadVoid || !all[1].Open() {
			t.Errorf("what was sent has expired, and the proposal is %s by %q, executed by %s, with %d payloads, %s", p.Status, p.TxHash, p.ExecutedBy, len(all), all[0].Status)
		}
	})
	w.at(3*time.Hour, func() { w.signed(w.account.Owners[0].Address) })
	w.at(3*time.Hour+time.Minute, func() { w.signed(w.account.Owners[1].Address) })
	w.at(3*time.Hour+2*time.Minute, w.executes)
	w.play(t, exchange.ProposalExecuted, exchange.WaitNothing)
	if p, all := w.row(), payloads(); len(all) != 2 || all[0].Status != exchange.PayloadVoid || all[1].Status != exchange.PayloadExecuted || p.TxHash != all[1].JointID {
		t.Errorf("it was paid by %s with %d payloads, %s", p.TxHash, len(all), all[0].Status)
	}
	w.took(t, 3_000)
}

// putBack has the row of the proposal have so many versions more or less than it has.
func (w *proposalHarness) putBack(by int) {
	storetest.Exec(w.t, w.store.Store, fmt.Sprintf(`SET session_replication_role = replica; UPDATE multisig_proposals SET version = version + %d WHERE id = '%s';
		SET session_replication_role = origin`, by, w.ask.ID))
}

// A flow that knows more than a database that was put back takes the row as it is and goes on with it: at its next step, and at once after the signal
// that comes to all flows then.
func TestProposalInADatabaseThatWasPutBack(t *testing.T) {
	t.Parallel()
	resume := func(w *proposalHarness) { w.env.SignalWorkflow(workflows.SignalResume, nil) }
	for name, people := range map[string]func(*proposalHarness){
		"while it waits for officers": func(w *proposalHarness) {
			w.at(10*time.Second, func() { w.putBack(100); resume(w) })
			w.at(30*time.Second, func() { w.putBack(-100); resume(w) })
		},
		"while it waits for owners": func(w *proposalHarness) {
			w.at(30*time.Minute, func() { w.putBack(100); resume(w) })
			w.at(40*time.Minute, func() { w.putBack(-100) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newProposal(t)
			people(w)
			w.done()
			w.at(10*time.Minute, func() {
				if p := w.row(); p.Status != exchange.ProposalSigning {
					t.Errorf("after its approval it is %s (%s)", p.Status, p.StatusDetail)
				}
			})
			w.play(t, exchange.ProposalExecuted, exchange.WaitNothing)
			if took := w.env.Now().Sub(w.start); took > 2*time.Hour+10*time.Minute {
				t.Errorf("it was paid after %s", took)
			}
			w.took(t, 2_000)
		})
	}
}

// proposalGas is the policy of top-ups of these tests.
var proposalGas = activities.GasPolicy{Floor: money.Must(money.TRX, "1"), Cap: money.Must(money.TRX, "300"), Limit: 3}
