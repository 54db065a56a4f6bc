package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/workflows"
)

func confirming(o order) bool { return o.Status == "confirming" || o.Over() }

// reverted makes two transfers fail on the chain. Both payments park; one is retried, the money of the other goes
// back.
func reverted(t *testing.T, w *harness) {
	w.mend(t)
	w.tron(t, "/faults", map[string]any{"fail_next": 2, "fail_with": "REVERT"})
	again, back := w.buy(t, purchase{crypto: "5"}), w.buy(t, purchase{fiat: "500"})
	for _, o := range []order{again, back} {
		w.until(t, o.ID, "parked", detail("operator"))
		w.parked(t, workflows.OnRampID(o.ID))
		w.attemptsAre(t, o.ID, "failed")
	}
	w.tron(t, "/reset", nil)
	t.Parallel()
	w.sendCommand(t, w.operator(t), again.ID, "retry", nil)
	w.sendCommand(t, w.operator(t), back.ID, "refund", map[string]string{"note": "the transfer fails"})
	again = w.ends(t, again.ID, "completed", "")
	w.paidOnce(t, w.books(t), again)
	w.attemptsAre(t, again.ID, "failed", "succeeded")
	back = w.ends(t, back.ID, "failed", "refund_opened")
	w.refunded(t, back, 500)
	w.notPaidOut(t, back)
	eventually(t, "no flow needs an operator", func() error {
		for _, o := range []order{again, back} {
			parked, err := w.needsAttention(t.Context(), workflows.OnRampID(o.ID))
			if err != nil || parked {
				return fmt.Errorf("order %s: %w", o.ID, errors.Join(err, errors.New("it is still listed")))
			}
		}
		return nil
	})
}

// timeStep is how far the chain's clock is advanced so that a transaction expires; the rest of its lifetime passes.
// The product refuses a node whose blocks are dated more than two minutes from its own clock, which limits the sum of
// all steps of a run.
const timeStep = transactionLife - 5*time.Second

// dropped makes the node forget every transaction that it accepts. No other one may be signed before the first can
// never be included.
func dropped(t *testing.T, w *harness) {
	const many = 1000
	w.mend(t)
	w.tron(t, "/faults", map[string]any{"drop_next": many})
	o := w.buy(t, purchase{crypto: "5"})
	w.until(t, o.ID, "confirming", confirming)
	time.Sleep(20 * tronPoll) // time enough to sign another one, if anything would
	first := w.attemptsAre(t, o.ID, "broadcast")
	w.tron(t, "/time", map[string]any{"advance_ms": timeStep.Milliseconds()})
	eventually(t, "another transaction is signed", func() error {
		if n := len(w.attempts(t, o.ID)); n < 2 {
			return fmt.Errorf("there is %d", n)
		}
		return nil
	})
	w.tron(t, "/reset", nil)
	o = w.ends(t, o.ID, "completed", "")
	all := w.attemptsAre(t, o.ID, "expired", "succeeded")
	if all[0] != (attempt{first[0].tx, "expired"}) || all[1].tx != o.TxHash.String {
		t.Errorf("the transactions are %+v, the order names %s", all, o.TxHash.String)
	}
	w.paidOnce(t, w.books(t), o)
}

// reorganised removes the block that includes a transaction, and the transaction with it.
func reorganised(t *testing.T, w *harness) {
	w.mend(t)
	o := w.aboard(t, purchase{crypto: "5"}, func() {})
	w.attemptsAre(t, o.ID, "included")
	w.takeAway(t, o)
	o, _ = w.read(t, o.ID)
	if gone := w.arrived(t, o.WalletAddress); len(gone) != 0 {
		t.Fatalf("the reorganised chain still has %+v", gone)
	}
	w.attemptsAre(t, o.ID, "broadcast")
	w.tron(t, "/resume", nil)
	o = w.ends(t, o.ID, "completed", "")
	w.paidOnce(t, w.books(t), o)
	w.attemptsAre(t, o.ID, "succeeded")
	if events := w.timeline(t, o.ID); !slices.Contains(events, "order.processing") || count(events, "order.confirming") != 2 {
		t.Errorf("the timeline does not show the step back: %v", events)
	}
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// aboard opens an order on a paused chain and includes its transaction in the last block until the chain resumes.
// However slow the machine is, the product finds the transaction before it is final. It calls before when the
// transaction is broadcast.
func (w *harness) aboard(t *testing.T, p purchase, before func()) order {
	t.Helper()
	w.tron(t, "/pause", nil)
	o := w.buy(t, p)
	w.until(t, o.ID, "confirming", confirming)
	before()
	w.tron(t, "/produce", map[string]any{"blocks": 1})
	return o
}

// takeAway replaces the block that includes an order's transaction, and the blocks after it, by empty ones, as if the
// transaction had never been sent. The chain must be paused.
func (w *harness) takeAway(t *testing.T, o order) {
	t.Helper()
	moves := w.arrived(t, o.WalletAddress)
	if len(moves) != 1 || moves[0].Solid {
		t.Fatalf("the transfer is not in one block that is not final: %+v", moves)
	}
	var state struct {
		Head struct{ Number int64 }
	}
	if err := w.control(t.Context(), http.MethodGet, "/state", nil, &state); err != nil {
		t.Fatal(err)
	}
	w.tron(t, "/reorganise", map[string]any{"blocks": state.Head.Number - moves[0].Block + 1, "drop": true})
}

// mend makes the node behave normally again after the test, also if the test failed midway.
func (w *harness) mend(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if err := w.control(context.Background(), http.MethodPost, "/reset", nil, nil); err != nil {
			t.Error(err)
		}
	})
}

// paymentOf returns the id of an order's chain payment.
func (w *harness) paymentOf(t *testing.T, orderID uuid.UUID) (id uuid.UUID) {
	t.Helper()
	err := w.db.QueryRowContext(t.Context(), `SELECT id FROM chain_payments WHERE purpose = 'order' AND object_id = $1`, orderID).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
