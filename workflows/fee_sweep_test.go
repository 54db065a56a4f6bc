package workflows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// feeHarness is a harness with a customer's wallet that has 100 USDT and 3 USDT of fees, whose sweep two officers agreed to.
type feeHarness struct {
	*harness
	wallet   exchange.Wallet
	treasury exchange.Wallet
	agreed   [2]exchange.User // who proposed and who confirmed
	sweep    uuid.UUID
}

// newFees is a harness in which nobody has agreed to anything yet.
func newFees(t testing.TB) *feeHarness {
	t.Helper()
	w := &feeHarness{harness: newHarness(t)}
	s := w.store.Store
	w.wallet, w.treasury = w.market.CustomerWallet, storetest.TreasuryWallet(t, s, networkName)
	storetest.Deposit(t, s, w.wallet.ID, crypto("100"))
	storetest.Earned(t, s, w.wallet.ID, crypto("3"))
	storetest.Gas(t, s, w.wallet.ID, money.Must(money.TRX, "1000"))
	w.agreed = [2]exchange.User{storetest.User(t, s, exchange.RoleTreasury), storetest.User(t, s, exchange.RoleTreasury)}
	w.signs.order = nil
	w.env.RegisterWorkflow(workflows.FeeSweep)
	w.env.RegisterWorkflow(workflows.SweepFees)
	w.env.RegisterActivity(&activities.Sweeps{Store: w.store})
	return w
}

// confirm has the second officer confirm what the first one proposed.
func (w *feeHarness) confirm(c exchange.ControlChange, err error) exchange.ControlChange {
	if err == nil {
		_, err = w.store.ConfirmChange(w.t.Context(), c.ID, "", storetest.PrincipalOf(w.agreed[1]))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func newFeeSweep(t testing.TB) *feeHarness {
	t.Helper()
	w := newFees(t)
	request := store.FeeSweepRequest{ID: uuid.New(), Network: networkName, Asset: money.USDT, Least: crypto("1")}
	c := w.confirm(w.store.ProposeFeeSweep(t.Context(), request, storetest.PrincipalOf(w.agreed[0])))
	all, _, err := w.store.FeeSweeps(t.Context(), store.FeeSweepFilter{ChangeID: c.ID}, everything)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	w.sweep = all[0].ID
	w.signs.about = []string{"3.000000 USDT", "/api/v1/auth/treasury/fee-sweeps/" + w.sweep.String()}
	return w
}

// orders gives an operator's command about the sweep.
func (w *feeHarness) orders(verb string) {
	w.notifyFlow(w.decreeWith(activities.ObjectFeeSweep, w.sweep, verb, "why"), verb)
}

// switched switches an officer who agreed on or off, past the second officer whom that needs.
func (w *feeHarness) switched(officer int, on bool) {
	storetest.Exec(w.t, w.store.Store, fmt.Sprintf(`BEGIN; ALTER TABLE users DISABLE TRIGGER users_staff_active; UPDATE users SET is_active = %t WHERE id = '%s';
		ALTER TABLE users ENABLE TRIGGER users_staff_active; COMMIT`, on, w.agreed[officer].ID))
}

// play runs the flow to its end, and checks that fees and coins are where its outcome says.
func (w *feeHarness) play(t *testing.T) exchange.FeeSweepStatus {
	t.Helper()
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.FeeSweepID(w.sweep), TaskQueue: workflows.QueueFlows})
	w.at(30*24*time.Hour, func() { t.Fatalf("it never ends; it was parked with %v", w.signs.reasons) })
	w.shows(workflows.FeeSweepAttributes(networkName))
	w.env.ExecuteWorkflow(workflows.FeeSweep, workflows.FeeSweepInput{})
	if !w.env.IsWorkflowCompleted() || w.env.GetWorkflowError() != nil {
		t.Fatalf("the flow ended: %t, %v", w.env.IsWorkflowCompleted(), w.env.GetWorkflowError())
	}
	var r workflows.FeeSweepResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	f, err := w.store.FeeSweep(t.Context(), w.sweep)
	if err != nil || f.Status != r.Status {
		t.Errorf("the flow ended as %s, the sweep is %s, %v", r.Status, f.Status, err)
	}
	sent := 0
	for _, p := range w.chain.sent(exchange.ForFeeSweep) {
		if sent++; p.ToAddress != w.treasury.Address || p.WalletID != w.wallet.ID || !p.Amount.Equal(crypto("3")) {
			t.Errorf("it paid %s from %s to %s", p.Amount, p.FromAddress, p.ToAddress)
		}
	}
	left, there := "3", "0"
	if r.Status == exchange.FeeSweepCompleted {
		left, there = "0", "3"
	}
	for account, want := range map[exchange.AccountRef]string{
		exchange.Owned(exchange.AccWalletFees, w.wallet.ID, money.USDT): left, exchange.Owned(exchange.AccWalletBalance, w.treasury.ID, money.USDT): there,
		exchange.Owned(exchange.AccCustody, w.treasury.ID, money.USDT): there, exchange.Owned(exchange.AccWalletBalance, w.wallet.ID, money.USDT): "100",
	} {
		if got := w.balance(account); !got.Equal(crypto(want)) {
			t.Errorf("%s has %s, want %s", account.Code(), got, want)
		}
	}
	if paid := r.Status == exchange.FeeSweepCompleted; paid != (sent == 1) {
		t.Errorf("it is %s and was paid %d times", r.Status, sent)
	}
	return r.Status
}

// refusing has the signer refuse until a time.
func (w *feeHarness) refusing(until time.Duration) {
	w.chain.script = func(int) outcome {
		if w.env.Now().Sub(w.start) < until {
			return outcome{trouble: exchange.Errorf(exchange.CodeForbidden, "no")}
		}
		return outcome{}
	}
}

func TestFeeSweep(t *testing.T) {
	t.Parallel()
	const done, left = exchange.FeeSweepCompleted, exchange.FeeSweepCancelled
	for _, c := range []struct {
		name   string
		people func(w *feeHarness)
		ends   exchange.FeeSweepStatus
		parked []workflows.Reason
	}{
		{name: "smooth", ends: done},
		{name: "answers get lost", ends: done, people: func(w *feeHarness) {
			calls := map[string]int{"ApproveFeeSweep": 2, "SaveSignedAttempt": 1, "RecordFinal": 1}
			w.store.lost = func(call string) error {
				if calls[call] > 0 {
					calls[call]--
					return errAway
				}
				return nil
			}
		}},
		{name: "the block is undone", ends: done, people: func(w *feeHarness) { w.chain.script = func(int) outcome { return outcome{reorg: true} } }},
		{name: "a transaction is lost and another one signed", ends: done, people: func(w *feeHarness) {
			w.chain.script = func(n int) outcome { return outcome{dropped: n == 1} }
		}},
		{name: "the signer refuses, a retry", ends: done, parked: []workflows.Reason{workflows.ReasonPayoutSigning}, people: func(w *feeHarness) {
			w.refusing(time.Hour)
			w.at(2*time.Hour, func() { w.orders(activities.VerbRetry) })
		}},
		{name: "the signer refuses, given up", ends: left, parked: []workflows.Reason{workflows.ReasonPayoutSigning}, people: func(w *feeHarness) {
			w.refusing(9 * time.Hour)
			w.at(2*time.Hour, func() { w.orders(activities.VerbRefund) })
		}},
		{name: "it fails on the chain, given up", ends: left, parked: []workflows.Reason{workflows.ReasonPayoutFailed}, people: func(w *feeHarness) {
			w.chain.script = func(int) outcome { return outcome{reverts: true} }
			w.at(2*time.Hour, func() { w.orders(activities.VerbRefund) })
		}},
		{name: "it fails on the chain, then it does not", ends: done, parked: []workflows.Reason{workflows.ReasonPayoutFailed}, people: func(w *feeHarness) {
			w.chain.script = func(n int) outcome { return outcome{reverts: n == 1} }
			w.at(2*time.Hour, func() { w.orders(activities.VerbRetry) })
		}},
		{name: "an officer was switched off, and is on again", ends: done, parked: []workflows.Reason{workflows.ReasonSweepOfficers, workflows.ReasonSweepOfficers}, people: func(w *feeHarness) {
			w.switched(0, false)
			w.at(time.Hour, func() { w.orders(activities.VerbRetry) })
			w.at(2*time.Hour, func() { w.switched(0, true); w.orders(activities.VerbRetry) })
		}},
		{name: "an officer was switched off, given up", ends: left, parked: []workflows.Reason{workflows.ReasonSweepOfficers}, people: func(w *feeHarness) {
			w.switched(1, false)
			w.at(time.Hour, func() { w.orders(activities.VerbRefund) })
		}},
		{name: "it is frozen for a while", ends: done, people: func(w *feeHarness) { w.frozen(func() {}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newFeeSweep(t)
			if c.people != nil {
				c.people(w)
			}
			if got := w.play(t); got != c.ends {
				t.Errorf("it ended as %s, want %s", got, c.ends)
			}
			w.signs.were(t, workflows.FeeSweepID(w.sweep), c.parked...)
		})
	}
}

// feeRehearsals are the reasons that only sweeps of fees have.
func feeRehearsals() map[workflows.Reason]rehearsal {
	return map[workflows.Reason]rehearsal{
		workflows.ReasonSweepOfficers: {retryOrRefund, func(t *testing.T, c *parkedCommand) {
			w := newFeeSweep(t)
			w.switched(0, false)
			c.mend = func() { w.switched(0, true) }
			c.await(t, w.env, w.signs, workflows.FeeSweepID(w.sweep), func() { w.orders(c.verb) })
			want := exchange.FeeSweepCancelled
			if c.verb == activities.VerbRetry {
				want = exchange.FeeSweepCompleted
			}
			if got := w.play(t); got != want {
				t.Errorf("it ended as %s, want %s", got, want)
			}
		}},
	}
}

// A schedule opens the sweeps that a rule asks for, once, and starts their flows, also when the first answer got lost.
func TestSweepFees(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		w := newFees(t)
		rule := exchange.FeeSweepRule{ID: uuid.New(), Network: networkName, Asset: money.USDT, Threshold: crypto("3"), Least: crypto("1")}
		w.confirm(w.store.ProposeFeeSweepRule(t.Context(), rule, storetest.PrincipalOf(w.agreed[0])))
		if lost {
			first := true
			w.store.lost = func(call string) error {
				if call == "OpenScheduledFeeSweeps" && first {
					first = false
					return errAway
				}
				return nil
			}
		}
		w.env.ExecuteWorkflow(workflows.SweepFees)
		var out workflows.FeesSwept
		if err := w.env.GetWorkflowResult(&out); err != nil || out.Failed != 0 || out.Begun != 1 {
			t.Errorf("lost %t: %+v, %v", lost, out, err)
		}
		all, _, err := w.store.FeeSweeps(t.Context(), store.FeeSweepFilter{}, everything)
		if err != nil || len(all) != 1 || !all[0].Scheduled {
			t.Fatalf("lost %t: the sweeps are %+v, %v", lost, all, err)
		}
		if all[0].Status != exchange.FeeSweepCompleted {
			t.Errorf("lost %t: it is %s", lost, all[0].Status)
		}
	}
}
