package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"go.temporal.io/api/workflowservice/v1"

	"kivuko/dev/testbed"
	"kivuko/workflows"
)

// running returns the id of the only running flow of a type.
func (w *harness) running(t *testing.T, flow string) (string, error) {
	t.Helper()
	list, err := w.temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", flow),
	})
	if err != nil {
		return "", err
	}
	if len(list.GetExecutions()) == 0 {
		return "", errors.New("none runs")
	}
	return list.GetExecutions()[0].GetExecution().GetWorkflowId(), nil
}

// readStatement reads the operator's statement now, in a new run.
func (w *harness) readStatement(t *testing.T) { t.Helper(); w.trigger(t, testbed.Statement) }

// over waits until no flow of a type runs. Runs that a dead process worked on continue at once.
func (w *harness) over(t *testing.T, flow string) {
	t.Helper()
	w.hastenAll(t, flow)
	eventually(t, "no "+flow+" runs", func() error {
		if id, err := w.running(t, flow); err == nil {
			return fmt.Errorf("%s does", id)
		}
		return nil
	})
}

// TestStatementIsHeldAgainstTheBooks makes payments without any callback: one for an order, whose flow goes on when
// the statement is read, and one without an order, which is set aside for an operator.
func TestStatementIsHeldAgainstTheBooks(t *testing.T) {
	w := open(t)
	phone := newPhone()
	w.fault(t, "all_lost", "prompt", phone)
	o := w.buy(t, purchase{fiat: "700", phone: phone})
	eventually(t, "the payer has paid", func() error {
		if len(collected(w.books(t), o.ID)) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	stray := w.payWithoutOrder(t, 321)
	w.readStatement(t)
	w.paidOnce(t, w.books(t), w.ends(t, o.ID, "completed", ""))
	w.setAside(t, stray, 321)
	w.readStatement(t) // the second run finds the same lines
	w.setAside(t, stray, 321)
	w.invariants(t)
	w.agree(t)
}

// payWithoutOrder pays to our number without an order. The operator sends no callback; only its statement has the payment.
func (w *harness) payWithoutOrder(t *testing.T, shillings int64) (receipt string) {
	t.Helper()
	return w.payWithoutOrderFrom(t, newPhone(), shillings)
}

func (w *harness) payWithoutOrderFrom(t *testing.T, phone string, shillings int64) (receipt string) {
	t.Helper()
	w.fault(t, "confirmation_lost", "c2b", phone)
	var out struct {
		Receipt string `json:"receipt"`
	}
	in := map[string]any{"phone": phone, "reference": "RENT", "amount": shillings}
	if err := call(t.Context(), http.MethodPost, w.momo()+"/control/pay", in, &out); err != nil {
		t.Fatal(err)
	}
	return out.Receipt
}

// setAside waits until a payment is set aside: stored once, booked once, and shown to operators once.
func (w *harness) setAside(t *testing.T, receipt string, shillings int64) {
	t.Helper()
	err := await(t.Context(), recovery, func() error {
		var stored, booked, shown int
		err := w.db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM c2b_payments WHERE receipt = $1 AND amount = $2),
			(SELECT count(*) FROM ledger_entries WHERE key = 'momo:' || $1),
			(SELECT count(*) FROM payment_exceptions WHERE receipt = $1 AND kind = 'unmatched' AND status = 'open' AND amount = $2)`,
			receipt, shillings).Scan(&stored, &booked, &shown)
		if err == nil && (stored != 1 || booked != 1 || shown != 1) {
			err = fmt.Errorf("stored %d times, booked %d times, shown %d times", stored, booked, shown)
		}
		return err
	})
	if err != nil {
		t.Errorf("payment %s, which has no order: %v", receipt, err)
	}
}

// statementScenario is a payment without an order, which only the operator's statement lists.
type statementScenario struct{ receipt string }

// The amount of a trial's payment without an order.
const strayShillings = 432

func (b *statementScenario) play(t *testing.T, w *harness, _ *trial, arm func()) {
	t.Helper()
	b.receipt = w.payWithoutOrder(t, strayShillings)
	arm()
	w.readStatement(t)
}

// restarted makes the run continue that the process worked on, so that the next trial's crash point is hit by its own
// run.
func (b *statementScenario) restarted(t *testing.T, w *harness, _ *trial) {
	t.Helper()
	w.over(t, workflows.TypeReconcilePayments)
}

func (b *statementScenario) judge(t *testing.T, w *harness, _ *trial) {
	t.Helper()
	w.setAside(t, b.receipt, strayShillings)
}
