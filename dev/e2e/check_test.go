package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/workflowservice/v1"

	"kivuko/dev/invariants"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/sandbox"
)

// invariants checks what must be true at every moment.
func (w *harness) invariants(t *testing.T) {
	t.Helper()
	for _, rule := range invariants.Rules() {
		var broken []string
		eventually(t, rule.Words, func() (err error) {
			broken, err = rule.Broken(t.Context(), w.db)
			return err
		})
		if len(broken) > 0 {
			t.Errorf("%s, but %s", rule.Words, strings.Join(broken, "; "))
		}
	}
}

// agree waits until no transaction is pending on the chain, and compares the vendor's wallet there with the
// ledger, to the unit. The chain's balance is the sum of the node's own record.
func (w *harness) agree(t *testing.T) {
	t.Helper()
	eventually(t, "ledger and chain agree about "+w.wallet.Address, func() error { return w.compare(t.Context()) })
}

func (w *harness) compare(ctx context.Context) error {
	sun, units, err := w.holdings(ctx, w.wallet.Address, usdt)
	if err != nil {
		return err
	}
	for asset, chain := range map[money.Asset]*big.Int{money.TRX: sun, money.USDT: units} {
		a, err := w.store.Account(ctx, exchange.Owned(exchange.AccCustody, w.wallet.ID, asset))
		if err != nil {
			return err
		}
		if a.Posted.Units().Cmp(chain) != 0 {
			return fmt.Errorf("the ledger says %s %s, the chain %s units", a.Posted, asset, chain)
		}
	}
	return nil
}

// paidOnce checks a completed purchase: collected once by the operator's books, delivered once by the node's
// record, with the amounts of the order.
func (w *harness) paidOnce(t *testing.T, b sandbox.Books, o order) {
	t.Helper()
	if o.Status != "completed" {
		t.Errorf("order %s is %s, not completed", o.ID, o)
	}
	effects := collected(b, o.ID)
	if len(effects) != 1 {
		t.Errorf("order %s was collected %d times: %+v", o.ID, len(effects), effects)
	} else if effects[0].Receipt != o.Receipt.String {
		t.Errorf("order %s names receipt %q, the operator %q", o.ID, o.Receipt.String, effects[0].Receipt)
	}
	moves := w.arrived(t, o.WalletAddress)
	if len(moves) != 1 {
		t.Errorf("order %s was paid out %d times: %+v", o.ID, len(moves), moves)
		return
	}
	want, err := money.Parse(money.USDT, o.CryptoAmount)
	if err != nil {
		t.Fatal(err)
	}
	if m := moves[0]; m.Amount != want.Units().String() || m.Token != usdt || m.From != w.wallet.Address || m.Transaction != o.TxHash.String {
		t.Errorf("order %s of %s USDT in %s moved %+v", o.ID, o.CryptoAmount, o.TxHash.String, m)
	}
}

// notPaidOut checks that no crypto left for an order.
func (w *harness) notPaidOut(t *testing.T, o order) {
	t.Helper()
	if moves := w.arrived(t, o.WalletAddress); len(moves) != 0 {
		t.Errorf("order %s is %s, yet it was paid out: %+v", o.ID, o, moves)
	}
}

// refunded waits until a phone got exactly the amount back, in one payout, and the refund is booked.
func (w *harness) refunded(t *testing.T, o order, shillings int64) {
	t.Helper()
	eventually(t, "the refund is booked", func() error {
		var open, done int
		err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FILTER (WHERE status <> 'completed'), count(*) FILTER (WHERE status = 'completed')
			FROM refunds WHERE order_id = $1`, o.ID).Scan(&open, &done)
		if err != nil {
			return err
		}
		if open != 0 || done != 1 {
			return fmt.Errorf("%d refunds are open and %d completed", open, done)
		}
		return nil
	})
	back := paidBack(w.books(t), o.Phone.String)
	if len(back) != 1 || back[0].Amount != shillings {
		t.Errorf("order %s: want KES %d paid back once, the operator's books say %+v", o.ID, shillings, back)
	}
}

// needsAttention finds the parked flows of an object, as operators do.
func (w *harness) needsAttention(ctx context.Context, flow string) (bool, error) {
	list, err := w.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("KivukoNeedsAttention = true AND WorkflowId = '%s' AND ExecutionStatus = 'Running'", flow),
	})
	return err == nil && len(list.GetExecutions()) == 1, err
}

func (w *harness) parked(t *testing.T, flow string) {
	t.Helper()
	eventually(t, flow+" waits for an operator", func() error {
		parked, err := w.needsAttention(t.Context(), flow)
		if err == nil && !parked {
			err = errors.New("visibility does not show it")
		}
		return err
	})
}

// attempt is the database's row of a signed transaction.
type attempt struct{ tx, status string }

func (w *harness) attempts(t *testing.T, orderID uuid.UUID) []attempt {
	t.Helper()
	var all []attempt
	eventually(t, "reading transactions", func() error {
		rows, err := w.db.QueryContext(t.Context(), `SELECT a.tx_id, a.status FROM chain_attempts a
			JOIN chain_payments p ON p.id = a.payment_id WHERE p.purpose = 'order' AND p.object_id = $1 ORDER BY a.n`, orderID)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		all = nil
		for rows.Next() {
			var a attempt
			if err := rows.Scan(&a.tx, &a.status); err != nil {
				return err
			}
			all = append(all, a)
		}
		return rows.Err()
	})
	return all
}

// attemptsAre waits for an order's transactions to be in the given states.
func (w *harness) attemptsAre(t *testing.T, orderID uuid.UUID, want ...string) []attempt {
	t.Helper()
	var have []attempt
	eventually(t, "transactions are "+strings.Join(want, ", "), func() error {
		have = w.attempts(t, orderID)
		var states []string
		for _, a := range have {
			states = append(states, a.status)
		}
		if !slices.Equal(states, want) {
			return fmt.Errorf("they are %v", states)
		}
		return nil
	})
	return have
}

// statuses returns the past states of an order, by its timeline.
func (w *harness) timeline(t *testing.T, id uuid.UUID) []string {
	t.Helper()
	var out struct {
		Events []struct {
			Type     string    `json:"type"`
			Sequence int64     `json:"sequence"`
			At       time.Time `json:"at"`
		} `json:"events"`
	}
	if err := w.amina(t).Get(t.Context(), "/api/v1/auth/orders/"+id.String()+"/timeline", &out); err != nil {
		t.Fatal(err)
	}
	var types []string
	var last time.Time
	for _, e := range out.Events {
		if e.At.Before(last) {
			t.Errorf("the timeline of %s is out of order at %s", id, e.Type)
		}
		last = e.At
		types = append(types, e.Type)
	}
	return types
}
