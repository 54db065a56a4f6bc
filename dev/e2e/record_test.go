package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"

	"kivuko/dev/stack"
	"kivuko/exchange"
	"kivuko/worker"
	"kivuko/workflows"
)

// recordVariable makes this run keep its flows as samples that later builds must replay.
const recordVariable = "KIVUKO_RECORD"

// TestRecordHistories runs the scenarios whose histories workflows/testdata/histories holds. It records only on
// request, and only scenarios without a sample: a sample that is rewritten with every change proves nothing.
func TestRecordHistories(t *testing.T) {
	if os.Getenv(recordVariable) == "" {
		t.Skip(recordVariable + " is not set")
	}
	w := open(t)
	codec, err := w.codec()
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{harness: w, codec: codec, dir: filepath.Join("..", "..", "workflows", "testdata", "histories")}
	for _, story := range []struct {
		name string
		play func(*testing.T)
	}{
		{"paid", r.paid},
		{"retried", r.retried},
		{"cancelled", r.cancelled},
		{"refunded", r.refunded},
		{"late", r.late},
		{"transfers", r.transfers},
		{"networks", r.networks},
		{"decided", r.decided},
		{"fee sweeps", r.feeSweeps},
		{"scheduled", r.scheduled},
		{"watched", r.watched},
		{"delivered", r.delivered},
		{"listed", r.listed},
		{"repeated", r.repeated},
		{"sales", r.sales},
		{"returned", r.returned},
		{"kinds", r.kinds},
		{"banked", r.banked},
		{"deposited", r.deposited},
		{"withdrawn", r.withdrawals},
		{"swapped", r.swapped},
		{"shared", r.shared},
		{"proposed", r.proposed},
		{"sent back", r.sentBack},
		{"stranded", r.stranded},
		{"paid late", r.paidLate},
		{"unanswered", r.unanswered},
		{"replenished", r.replenished},
		{"continued", r.continued}, // this and the last change Temporal's settings
		{"relayed", r.relayed},
	} {
		t.Run(story.name, story.play)
	}
}

type recorder struct {
	harness *harness
	codec   *worker.Codec
	dir     string
}

// keep records a flow that has ended. An existing sample stays: flows of its build may still be under way.
func (r *recorder) keep(t *testing.T, flow, name string) {
	t.Helper()
	file := r.file(name)
	if file == "" {
		return
	}
	eventually(t, "the end of "+flow, func() error {
		return r.harness.temporal.GetWorkflow(t.Context(), flow, "").Get(t.Context(), nil)
	})
	r.keepRun(t, flow, "", name)
}

// keepRun records one run of a flow up to its newest event.
func (r *recorder) keepRun(t *testing.T, flow, run, name string) {
	t.Helper()
	if err := recordHistory(t.Context(), r.harness.temporal, r.codec, flow, run, r.file(name)); err != nil {
		t.Fatal(err)
	}
}

// file returns where to write a sample, or the empty string if it exists.
func (r *recorder) file(name string) string {
	file := filepath.Join(r.dir, name+".json")
	if _, err := os.Stat(file); err == nil {
		return ""
	}
	return file
}

func (r *recorder) refund(t *testing.T, order uuid.UUID) uuid.UUID {
	t.Helper()
	var id uuid.UUID
	if err := r.harness.db.QueryRowContext(t.Context(), `SELECT id FROM refunds WHERE order_id = $1`, order).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

func (r *recorder) paid(t *testing.T) {
	o := r.harness.buy(t, purchase{crypto: "10"})
	r.harness.ends(t, o.ID, "completed", "")
	r.keep(t, workflows.OnRampID(o.ID), "on_ramp_paid")
}

// retried records an order whose first prompt fails on a wrong PIN and whose second is paid.
func (r *recorder) retried(t *testing.T) {
	phone := newPhone()
	r.harness.fault(t, "result:2001", "prompt", phone)
	o := r.harness.buy(t, purchase{crypto: "11", phone: phone})
	r.harness.until(t, o.ID, "waiting for another prompt", detail("payment_retry"))
	r.harness.sendCommand(t, r.harness.amina(t), o.ID, "retry-payment", nil)
	r.harness.ends(t, o.ID, "completed", "")
	r.keep(t, workflows.OnRampID(o.ID), "on_ramp_retried")
}

// cancelled records an order that its customer cancels after a failed prompt.
func (r *recorder) cancelled(t *testing.T) {
	phone := newPhone()
	r.harness.fault(t, "result:1", "prompt", phone)
	o := r.harness.buy(t, purchase{crypto: "12", phone: phone})
	r.harness.until(t, o.ID, "waiting for another prompt", detail("payment_retry"))
	r.harness.sendCommand(t, r.harness.amina(t), o.ID, "cancel", nil)
	r.harness.ends(t, o.ID, "cancelled", "")
	r.keep(t, workflows.OnRampID(o.ID), "on_ramp_cancelled")
}

// refunded records an order whose transfer fails on the chain and whose money goes back by command.
func (r *recorder) refunded(t *testing.T) {
	r.harness.tron(t, "/faults", map[string]any{"fail_next": 1, "fail_with": "REVERT"})
	o := r.harness.buy(t, purchase{crypto: "13"})
	r.harness.parked(t, workflows.OnRampID(o.ID))
	r.harness.sendCommand(t, r.harness.operator(t), o.ID, "refund", map[string]any{"note": "the transfer failed"})
	r.harness.ends(t, o.ID, "failed", "")
	r.keep(t, workflows.OnRampID(o.ID), "on_ramp_refunded")
}

// late records payments that arrive after their orders are over: one goes back by command, one by rule.
func (r *recorder) late(t *testing.T) {
	w := r.harness
	o := w.paidAfterDeclining(t)
	r.keep(t, workflows.LatePaymentID(w.collection(t, o.ID)), "late_payment_refunded")
	o = w.paidAfterCancelling(t)
	r.keep(t, workflows.LatePaymentID(w.collection(t, o.ID)), "late_payment_by_rule")
}

// codec returns a codec with the payload keys of the product.
func (w *harness) codec() (*worker.Codec, error) {
	keys, err := stack.PayloadKeys(w.stack.Tools())
	if err != nil {
		return nil, err
	}
	return worker.NewCodec(keys)
}

// watched records the deposit watch, which never ends, after it has reported at least once.
func (r *recorder) watched(t *testing.T) {
	file := r.file("deposit_watch_following")
	if file == "" {
		return
	}
	id := workflows.DepositWatchID(exchange.Tron)
	eventually(t, "a report of "+id, func() error {
		h, err := readHistory(t.Context(), r.harness.temporal, r.codec, id, "")
		for _, e := range h.GetEvents() {
			if e.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED {
				return nil
			}
		}
		return errors.Join(err, errors.New("it has not reported yet"))
	})
	if err := recordHistory(t.Context(), r.harness.temporal, r.codec, id, "", file); err != nil {
		t.Fatal(err)
	}
}
