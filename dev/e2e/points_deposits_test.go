package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// depositScenario is the scenario of a deposit, on Ethereum, whose chain stands still until the process has died.
type depositScenario struct {
	begin  transferScene
	status string
	// patient waits for Temporal's timeouts after the crash; the other trials skip them, because the next trial
	// needs the watch.
	patient bool
}

func depositRows() []row {
	const worker = "chain-ethereum"
	final := depositScenario{begin: finalFirst, status: "final"}
	last := final
	last.patient = true
	return []row{
		{"FollowDeposits/DropSeenBlock#?/*", worker, always(depositScenario{begin: takenAway, status: "orphaned"})},
		{"FollowDeposits/RecordSeenBlock#?/*", worker, always(depositScenario{begin: seenFirst, status: "final"})},
		{"FollowDeposits/RecordFinalBlock#?/*", worker, always(final)},
		{"FollowDeposits/RecordFinalBlock#1/after", worker, always(last)},
	}
}

func (b depositScenario) play(t *testing.T, w *harness, tr *trial, arm func()) {
	t.Helper()
	tr.deposit, tr.amount = w.ownWallet(t, exchange.Ethereum), money.Must(money.USDT, "12.5")
	post(t, w.ethereum(), "/pause", nil)
	post(t, w.ethereum(), "/finalise", nil)
	w.caughtUp(t)
	b.begin(t, w, tr, arm)
}

// caughtUp waits until the watch has read all blocks, so that the next block is the deposit's.
func (w *harness) caughtUp(t *testing.T) {
	t.Helper()
	eventually(t, "the watch has caught up", func() error {
		var state struct{ Head, Final struct{ Number uint64 } }
		if err := w.ethereum().Call(t.Context(), http.MethodGet, "/state", nil, &state); err != nil {
			return err
		}
		c, _, err := w.store.DepositCursor(t.Context(), exchange.Ethereum)
		if err == nil && (c.Final.Number != state.Final.Number || c.Tip.Number != state.Head.Number) {
			err = fmt.Errorf("it is at %d and %d, the chain at %d and %d", c.Final.Number, c.Tip.Number, state.Final.Number, state.Head.Number)
		}
		return err
	})
}

// comes makes the deposit, in a separate block.
func (w *harness) comes(t *testing.T, tr *trial) {
	t.Helper()
	if err := w.ethereum().Fund(t.Context(), tr.deposit.Address, tr.amount); err != nil {
		t.Fatal(err)
	}
}

func seenFirst(t *testing.T, w *harness, tr *trial, arm func()) {
	arm()
	w.comes(t, tr)
}

func finalFirst(t *testing.T, w *harness, tr *trial, arm func()) {
	w.comes(t, tr)
	w.caughtUp(t)
	arm()
	post(t, w.ethereum(), "/finalise", nil)
}

// takenAway replaces the block in which the deposit was seen.
func takenAway(t *testing.T, w *harness, tr *trial, arm func()) {
	w.comes(t, tr)
	w.caughtUp(t)
	arm()
	post(t, w.ethereum(), "/reorganise", map[string]any{"blocks": 1, "drop": true})
}

func (b depositScenario) restarted(t *testing.T, w *harness, _ *trial) {
	t.Helper()
	post(t, w.ethereum(), "/resume", nil)
	if !b.patient {
		w.hasten(t, workflows.DepositWatchID(exchange.Ethereum))
	}
}

func (b depositScenario) judge(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	err := await(t.Context(), recovery, func() error {
		all, err := w.deposits(t.Context(), tr.deposit.Address)
		if err == nil && (len(all) != 1 || all[0].status != b.status) {
			err = fmt.Errorf("the rows are %+v", all)
		}
		return err
	})
	if err != nil {
		t.Fatalf("the deposit should be %s: %v", b.status, err)
	}
	held, err := demo.Held(t.Context(), w.store, tr.deposit, money.USDT)
	switch {
	case b.status == "final" && (err != nil || !held.Equal(tr.amount)):
		t.Errorf("%s was booked as %s: %v", tr.amount, held, err)
	case b.status != "final" && exchange.CodeOf(err) != exchange.CodeNotFound && held.Positive():
		t.Errorf("%s was booked of an orphan", held)
	}
}
