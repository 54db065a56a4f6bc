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

func confirming(o order) bool { return o.Status == "confirming" || o.over() }

// reverted lets two transfers fail on the chain. Both payments park; one is tried again, of the other the money
// goes back.
func reverted(t *testing.T, w *world) {
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
	w.tell(t, w.operator(t), again.ID, "retry", nil)
	w.tell(t, w.operator(t), back.ID, "refund", map[string]string{"note": "the transfer fails"})
	again = w.ends(t, again.ID, "completed", "")
	w.paidOnce(t, w.books(t), again)
	w.attemptsAre(t, again.ID, "failed", "succeeded")
	back = w.ends(t, back.ID, "failed", "refund_opened")
	w.refunded(t, back, 500)
	w.notPaidOut(t, back)
	eventually(t, "nothing asks for a person any more", func() error {
		for _, o := range []order{again, back} {
			parked, err := w.needsAttention(t.Context(), workflows.OnRampID(o.ID))
			if err != nil || parked {
				return fmt.Errorf("order %s: %w", o.ID, errors.Join(err, errors.New("it is shown")))
			}
		}
		return nil
	})
}

// timeStep is how far the chain's clock is put forward to let a transaction expire; the rest of its life passes.
// The product refuses a node whose blocks are dated more than two minutes from its own clock, which bounds all
// steps of a run together.
const timeStep = transactionLife - 5*time.Second

// dropped lets the node forget every transaction that it accepts. No other one may be signed before the first
// can never be included.
func dropped(t *testing.T, w *world) {
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

// reorganised takes the block away in which a transaction was, and the transaction with it.
func reorganised(t *testing.T, w *world) {
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
		t.Errorf("the timeline does not tell of the way back: %v", events)
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

// aboard opens an order on a chain that stands still, and has its transaction taken into a block, which is the last
// one until the chain goes on: however slow the machine is, the product meets the transaction before it is final.
// Before says that the transaction is on its way.
func (w *world) aboard(t *testing.T, p purchase, before func()) order {
	t.Helper()
	w.tron(t, "/pause", nil)
	o := w.buy(t, p)
	w.until(t, o.ID, "confirming", confirming)
	before()
	w.tron(t, "/produce", map[string]any{"blocks": 1})
	return o
}

// takeAway replaces the block in which an order's transaction is, and those after it, by empty ones. The transaction is
// as if it had never been sent. The chain stands still.
func (w *world) takeAway(t *testing.T, o order) {
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

// mend makes the node behave again when the test is over, also when it failed in the middle.
func (w *world) mend(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if err := w.control(context.Background(), http.MethodPost, "/reset", nil, nil); err != nil {
			t.Error(err)
		}
	})
}

// paymentOf is the id of an order's chain payment.
func (w *world) paymentOf(t *testing.T, orderID uuid.UUID) (id uuid.UUID) {
	t.Helper()
	err := w.db.QueryRowContext(t.Context(), `SELECT id FROM chain_payments WHERE purpose = 'order' AND object_id = $1`, orderID).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
